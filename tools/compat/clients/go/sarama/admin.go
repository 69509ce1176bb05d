package main

import (
	"context"

	"github.com/IBM/sarama"

	"millrace/tools/compat/clients/go/report"
)

func admin(ctx context.Context, bootstrap string, a report.Args) error {
	cfg, err := config(a)
	if err != nil {
		return err
	}
	client, err := sarama.NewClient([]string{bootstrap}, cfg)
	if err != nil {
		return err
	}
	c, err := sarama.NewClusterAdminFromClient(client)
	if err != nil {
		return err
	}
	defer c.Close()
	if err := topicAdmin(c, cfg); err != nil {
		return err
	}
	end, err := client.GetOffset(a.Topic, 0, sarama.OffsetNewest)
	report.Want("list offsets", err, end, 10)
	if err = c.DeleteRecords(a.Topic, map[int32]int64{0: 3}); err == nil {
		end, err = client.GetOffset(a.Topic, 0, sarama.OffsetOldest)
	}
	report.Want("delete records", err, end, 3)
	groups, err := c.ListConsumerGroups()
	_, there := groups[a.Group]
	report.Want("list groups", err, there, true)
	described, err := c.DescribeConsumerGroups([]string{a.Group})
	if err != nil {
		return err
	}
	report.Want("describe group", nil, described[0].State, "Empty")
	committed := func() (int64, error) {
		r, err := c.ListConsumerGroupOffsets(a.Group, map[string][]int32{a.Topic: {0}})
		if err != nil {
			return 0, err
		}
		return r.GetBlock(a.Topic, 0).Offset, nil
	}
	n, err := committed()
	report.Want("group's offsets", err, n, 4)
	if _, err = c.AlterConsumerGroupOffsets(a.Group, map[string]map[int32]sarama.OffsetAndMetadata{a.Topic: {0: {Offset: 6, LeaderEpoch: -1}}}, nil); err == nil {
		n, err = committed()
	}
	report.Want("alter group's offsets", err, n, 6)
	if err = c.DeleteConsumerGroup(a.Group); err == nil {
		groups, err = c.ListConsumerGroups()
	}
	_, there = groups[a.Group]
	report.Want("delete group", err, there, false)
	return nil
}

func topicAdmin(c sarama.ClusterAdmin, cfg *sarama.Config) error {
	const topic = "made"
	first, second := "12345678", "7654321"
	report.Must("create topic", c.CreateTopic(topic, &sarama.TopicDetail{NumPartitions: 3, ReplicationFactor: 1, ConfigEntries: map[string]*string{"retention.ms": &first}}, false))
	partitions := func() (int, error) {
		d, err := c.DescribeTopics([]string{topic})
		if err != nil {
			return 0, err
		}
		return len(d[0].Partitions), nil
	}
	n, err := partitions()
	report.Want("describe topic", err, n, 3)
	retention := func() (string, error) {
		entries, err := c.DescribeConfig(sarama.ConfigResource{Type: sarama.TopicResource, Name: topic, ConfigNames: []string{"retention.ms"}})
		if err != nil {
			return "", err
		}
		return entries[0].Value, nil
	}
	v, err := retention()
	report.Want("describe config", err, v, first)
	if cfg.Version.IsAtLeast(sarama.V2_3_0_0) {
		err = c.IncrementalAlterConfig(sarama.TopicResource, topic, map[string]sarama.IncrementalAlterConfigsEntry{"retention.ms": {Operation: sarama.IncrementalAlterConfigsOperationSet, Value: &second}}, false)
	} else {
		err = c.AlterConfig(sarama.TopicResource, topic, map[string]*string{"retention.ms": &second}, false)
	}
	if err == nil {
		v, err = retention()
	}
	report.Want("alter config", err, v, second)
	if err = c.CreatePartitions(topic, 5, nil, false); err == nil {
		n, err = partitions()
	}
	report.Want("add partitions", err, n, 5)
	if err = c.DeleteTopic(topic); err != nil {
		return err
	}
	topics, err := c.ListTopics()
	_, there := topics[topic]
	report.Want("delete topic", err, there, false)
	return nil
}
