package main

import (
	"context"
	"slices"
	"time"

	"github.com/segmentio/kafka-go"

	"millrace/tools/compat/clients/go/report"
)

func admin(ctx context.Context, bootstrap string, a report.Args) error {
	c := &kafka.Client{Addr: kafka.TCP(bootstrap), Timeout: 20 * time.Second, Transport: &kafka.Transport{MetadataTTL: 50 * time.Millisecond}}
	if err := topicAdmin(ctx, c); err != nil {
		return err
	}
	r, err := c.ListOffsets(ctx, &kafka.ListOffsetsRequest{Topics: map[string][]kafka.OffsetRequest{a.Topic: {kafka.LastOffsetOf(0)}}})
	if err != nil {
		return err
	}
	report.Want("list offsets", nil, r.Topics[a.Topic][0].LastOffset, 10)
	groups, err := c.ListGroups(ctx, &kafka.ListGroupsRequest{})
	if err != nil {
		return err
	}
	report.Want("list groups", groups.Error, groups.Groups[0].GroupID, a.Group)
	described, err := c.DescribeGroups(ctx, &kafka.DescribeGroupsRequest{GroupIDs: []string{a.Group}})
	if err != nil {
		return err
	}
	report.Want("describe group", described.Groups[0].Error, described.Groups[0].GroupState, "Empty")
	committed := func() (int64, error) {
		r, err := c.OffsetFetch(ctx, &kafka.OffsetFetchRequest{GroupID: a.Group, Topics: map[string][]int{a.Topic: {0}}})
		if err != nil {
			return 0, err
		}
		return r.Topics[a.Topic][0].CommittedOffset, r.Error
	}
	n, err := committed()
	report.Want("group's offsets", err, n, 4)
	if _, err = c.OffsetCommit(ctx, &kafka.OffsetCommitRequest{GroupID: a.Group, GenerationID: -1, Topics: map[string][]kafka.OffsetCommit{a.Topic: {{Partition: 0, Offset: 6}}}}); err == nil {
		n, err = committed()
	}
	report.Want("alter group's offsets", err, n, 6)
	deleted, err := c.DeleteGroups(ctx, &kafka.DeleteGroupsRequest{GroupIDs: []string{a.Group}})
	if err == nil {
		err = deleted.Errors[a.Group]
	}
	if err == nil {
		groups, err = c.ListGroups(ctx, &kafka.ListGroupsRequest{})
	}
	report.Want("delete group", err, len(groups.Groups), 0)
	return nil
}

func topicAdmin(ctx context.Context, c *kafka.Client) error {
	const topic = "made"
	made, err := c.CreateTopics(ctx, &kafka.CreateTopicsRequest{Topics: []kafka.TopicConfig{{Topic: topic, NumPartitions: 3, ReplicationFactor: 1, ConfigEntries: []kafka.ConfigEntry{{ConfigName: "retention.ms", ConfigValue: "12345678"}}}}})
	if err == nil {
		err = made.Errors[topic]
	}
	report.Must("create topic", err)
	partitions := func() (int, error) {
		m, err := c.Metadata(ctx, &kafka.MetadataRequest{Topics: []string{topic}})
		if err != nil {
			return 0, err
		}
		return len(m.Topics[0].Partitions), m.Topics[0].Error
	}
	n, err := partitions()
	report.Want("describe topic", err, n, 3)
	retention := func() (string, error) {
		r, err := c.DescribeConfigs(ctx, &kafka.DescribeConfigsRequest{Resources: []kafka.DescribeConfigRequestResource{{ResourceType: kafka.ResourceTypeTopic, ResourceName: topic, ConfigNames: []string{"retention.ms"}}}})
		if err != nil {
			return "", err
		}
		return r.Resources[0].ConfigEntries[0].ConfigValue, r.Resources[0].Error
	}
	v, err := retention()
	report.Want("describe config", err, v, "12345678")
	if _, err = c.IncrementalAlterConfigs(ctx, &kafka.IncrementalAlterConfigsRequest{Resources: []kafka.IncrementalAlterConfigsRequestResource{{ResourceType: kafka.ResourceTypeTopic, ResourceName: topic,
		Configs: []kafka.IncrementalAlterConfigsRequestConfig{{Name: "retention.ms", Value: "7654321", ConfigOperation: kafka.ConfigOperationSet}}}}}); err == nil {
		v, err = retention()
	}
	report.Want("alter config", err, v, "7654321")
	grown, err := c.CreatePartitions(ctx, &kafka.CreatePartitionsRequest{Topics: []kafka.TopicPartitionsConfig{{Name: topic, Count: 5}}})
	if err == nil {
		err = grown.Errors[topic]
	}
	for i := 0; err == nil && n != 5 && i < 50; i++ { // its metadata is what it was some time ago
		time.Sleep(50 * time.Millisecond)
		n, err = partitions()
	}
	report.Want("add partitions", err, n, 5)
	deleted, err := c.DeleteTopics(ctx, &kafka.DeleteTopicsRequest{Topics: []string{topic}})
	if err == nil {
		err = deleted.Errors[topic]
	}
	report.Must("delete topic request", err)
	listed := func() (bool, error) {
		m, err := c.Metadata(ctx, &kafka.MetadataRequest{})
		if err != nil {
			return false, err
		}
		return slices.ContainsFunc(m.Topics, func(t kafka.Topic) bool { return t.Name == topic }), nil
	}
	there, err := listed()
	for i := 0; err == nil && there && i < 50; i++ {
		time.Sleep(50 * time.Millisecond)
		there, err = listed()
	}
	report.Want("delete topic", err, there, false)
	return nil
}
