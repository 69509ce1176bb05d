package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/confluentinc/confluent-kafka-go/v2/kafka"

	"millrace/tools/compat/clients/go/report"
)

// topicAdmin creates, describes, changes, grows and deletes a topic.
func topicAdmin(ctx context.Context, c *kafka.AdminClient) error {
	const topic = "made"
	made, err := c.CreateTopics(ctx, []kafka.TopicSpecification{{Topic: topic, NumPartitions: 3, ReplicationFactor: 1, Config: map[string]string{"retention.ms": "12345678"}}})
	if err == nil && made[0].Error.Code() != kafka.ErrNoError {
		err = made[0].Error
	}
	report.Must("create topic", err)
	described, err := c.DescribeTopics(ctx, kafka.NewTopicCollectionOfTopicNames([]string{topic}))
	if err != nil {
		return err
	}
	report.Want("describe topic", nil, len(described.TopicDescriptions[0].Partitions), 3)
	resource := kafka.ConfigResource{Type: kafka.ResourceTopic, Name: topic}
	retention := func() (string, error) {
		r, err := c.DescribeConfigs(ctx, []kafka.ConfigResource{resource})
		if err != nil {
			return "", err
		}
		return r[0].Config["retention.ms"].Value, nil
	}
	v, err := retention()
	report.Want("describe config", err, v, "12345678")
	change := resource
	change.Config = []kafka.ConfigEntry{{Name: "retention.ms", Value: "7654321", IncrementalOperation: kafka.AlterConfigOpTypeSet}}
	altered, err := c.IncrementalAlterConfigs(ctx, []kafka.ConfigResource{change})
	if err == nil && altered[0].Error.Code() != kafka.ErrNoError {
		err = altered[0].Error
	}
	if err == nil {
		v, err = retention()
	}
	report.Want("alter config", err, v, "7654321")
	grown, err := c.CreatePartitions(ctx, []kafka.PartitionsSpecification{{Topic: topic, IncreaseTo: 5}})
	if err == nil && grown[0].Error.Code() != kafka.ErrNoError {
		err = grown[0].Error
	}
	if err == nil {
		described, err = c.DescribeTopics(ctx, kafka.NewTopicCollectionOfTopicNames([]string{topic}))
	}
	report.Want("add partitions", err, len(described.TopicDescriptions[0].Partitions), 5)
	deleted, err := c.DeleteTopics(ctx, []string{topic})
	if err == nil && deleted[0].Error.Code() != kafka.ErrNoError {
		err = deleted[0].Error
	}
	if err == nil {
		described, err = c.DescribeTopics(ctx, kafka.NewTopicCollectionOfTopicNames([]string{topic}))
	}
	report.Want("delete topic", err, described.TopicDescriptions[0].Error.Code(), kafka.ErrUnknownTopicOrPart)
	return nil
}

func admin(ctx context.Context, bootstrap string, a report.Args) error {
	c, err := kafka.NewAdminClient(&kafka.ConfigMap{"bootstrap.servers": bootstrap})
	if err != nil {
		return err
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(ctx, 60*time.Second)
	defer cancel()
	if err := topicAdmin(ctx, c); err != nil {
		return err
	}
	tp := at(a.Topic)
	offset := func(spec kafka.OffsetSpec) (kafka.Offset, error) {
		r, err := c.ListOffsets(ctx, map[kafka.TopicPartition]kafka.OffsetSpec{tp: spec})
		for _, v := range r.ResultInfos {
			return v.Offset, err
		}
		return -1, err
	}
	end, err := offset(kafka.LatestOffsetSpec)
	report.Want("list offsets", err, int64(end), 10)
	before := tp
	before.Offset = 3
	if _, err = c.DeleteRecords(ctx, []kafka.TopicPartition{before}); err == nil {
		end, err = offset(kafka.EarliestOffsetSpec)
	}
	report.Want("delete records", err, int64(end), 3)
	groups, err := c.ListConsumerGroups(ctx)
	if err != nil {
		return err
	}
	report.Want("list groups", nil, groups.Valid[0].GroupID, a.Group)
	g, err := c.DescribeConsumerGroups(ctx, []string{a.Group})
	if err != nil {
		return err
	}
	report.Want("describe group", nil, g.ConsumerGroupDescriptions[0].State, kafka.ConsumerGroupStateEmpty)
	committed := func() (int64, error) {
		r, err := c.ListConsumerGroupOffsets(ctx, []kafka.ConsumerGroupTopicPartitions{{Group: a.Group, Partitions: []kafka.TopicPartition{tp}}})
		if err != nil {
			return 0, err
		}
		return int64(r.ConsumerGroupsTopicPartitions[0].Partitions[0].Offset), nil
	}
	n, err := committed()
	report.Want("group's offsets", err, n, 4)
	moved := tp
	moved.Offset = 6
	if _, err = c.AlterConsumerGroupOffsets(ctx, []kafka.ConsumerGroupTopicPartitions{{Group: a.Group, Partitions: []kafka.TopicPartition{moved}}}); err == nil {
		n, err = committed()
	}
	report.Want("alter group's offsets", err, n, 6)
	if _, err = c.DeleteConsumerGroups(ctx, []string{a.Group}); err == nil {
		groups, err = c.ListConsumerGroups(ctx)
	}
	report.Want("delete group", err, len(groups.Valid), 0)
	return nil
}

func transaction(ctx context.Context, bootstrap string, a report.Args) error {
	logs := make(chan kafka.LogEvent, 10000)
	p, err := kafka.NewProducer(&kafka.ConfigMap{"bootstrap.servers": bootstrap, "transactional.id": "t1", "debug": "eos", "go.logs.channel.enable": true, "go.logs.channel": logs})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	if err := p.InitTransactions(ctx); err != nil {
		report.Must("init", fmt.Errorf("%w; its log: %s", err, coordinatorLog(logs)))
	}
	for _, commit := range []bool{true, false} {
		report.Must("begin", p.BeginTransaction())
		for _, v := range []string{"1", "2", "3"} {
			if err := send(p, message(a.Topic, report.Record{Value: []byte(v), Time: 1})); err != nil {
				return err
			}
		}
		if commit {
			report.Must("commit", p.CommitTransaction(ctx))
		} else {
			report.Must("abort", p.AbortTransaction(ctx))
		}
	}
	p.Close()
	return nil
}

// coordinatorLog is the log's line on why there is no coordinator, which librdkafka looks for until its time is up.
func coordinatorLog(logs <-chan kafka.LogEvent) string {
	for {
		select {
		case l := <-logs:
			if _, why, ok := strings.Cut(l.Message, "Failed to find transaction coordinator"); ok {
				return "no transaction coordinator" + why
			}
		default:
			return "nothing of a coordinator"
		}
	}
}
