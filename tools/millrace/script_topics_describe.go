package main

import (
	"cmp"
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"millrace/tools/internal/client"
)

// scriptPartition is a partition as kafka-topics.sh --describe shows it. elr and
// lastELR are nil where the broker does not tell them.
type scriptPartition struct {
	number, leader int32
	replicas, isr  []int32
	elr, lastELR   []int32
	knowsELR       bool
	moving         *kmsg.ListPartitionReassignmentsResponseTopicPartition
}

// scriptTopic is a topic as kafka-topics.sh --describe shows it.
type scriptTopic struct {
	name       string
	id         kadm.TopicID
	partitions []scriptPartition
	configs    []kadm.Config
	tree       bool // read from coordination, and shown as Kafka 2.x shows it
	marked     bool // its deletion was asked for
}

func (s *topicsScript) describe(ctx context.Context, cl *client.Admin, out io.Writer) error {
	topics, err := s.toDescribe(ctx, cl)
	if err != nil || len(topics) == 0 {
		return err
	}
	has, err := client.AskAPIs(ctx, cl)
	if err != nil {
		return err
	}
	list, err := scriptTopics(ctx, cl, has, topics, int32(s.perResponse.Value))
	if err != nil {
		return err
	}
	brokers, err := cl.ListBrokers(ctx)
	if err != nil {
		return err
	}
	for _, t := range list {
		s.print(out, t, brokers.NodeIDs())
	}
	return nil
}

// toDescribe finds the topics by --topic-id, or else by --topic.
func (s *topicsScript) toDescribe(ctx context.Context, cl *client.Admin) (kadm.TopicDetails, error) {
	if s.topicID == "" {
		return s.matching(ctx, cl, true)
	}
	topics, err := cl.ListTopicsWithInternal(ctx)
	if err != nil {
		return nil, err
	}
	id, err := base64.RawURLEncoding.DecodeString(s.topicID)
	if err != nil || len(id) != 16 {
		return nil, fmt.Errorf("Illegal base64 character in the topic id %s", s.topicID) //nolint:staticcheck // Kafka's words
	}
	for name, t := range topics {
		if t.ID != kadm.TopicID(id) {
			delete(topics, name)
		}
	}
	if len(topics) == 0 && !s.ifExists {
		return nil, fmt.Errorf("TopicId '%s' does not exist as expected", s.topicID) //nolint:staticcheck // Kafka's words
	}
	return topics, nil
}

// scriptTopics gathers what --describe prints; brokers that lack an API leave gaps.
func scriptTopics(ctx context.Context, cl *client.Admin, has client.APIs, topics kadm.TopicDetails, limit int32) ([]scriptTopic, error) {
	names := topics.Names()
	configs, err := cl.DescribeTopicConfigs(ctx, names...)
	if err != nil {
		return nil, err
	}
	elr := map[string]map[int32]kmsg.DescribeTopicPartitionsResponseTopicPartition{}
	if has[kmsg.DescribeTopicPartitions.Int16()] {
		if elr, err = eligible(ctx, cl, names, limit); err != nil {
			return nil, err
		}
	}
	moving := map[string]map[int32]*kmsg.ListPartitionReassignmentsResponseTopicPartition{}
	if has[kmsg.ListPartitionReassignments.Int16()] {
		moving = reassignments(ctx, cl)
	}
	var list []scriptTopic
	for _, t := range topics.Sorted() {
		row := scriptTopic{name: t.Topic, id: t.ID}
		for _, p := range t.Partitions.Sorted() {
			e, knows := elr[t.Topic][p.Partition]
			row.partitions = append(row.partitions, scriptPartition{
				number: p.Partition, leader: p.Leader, replicas: p.Replicas, isr: p.ISR,
				elr: e.EligibleLeaderReplicas, lastELR: e.LastKnownELR, knowsELR: knows && e.EligibleLeaderReplicas != nil,
				moving: moving[t.Topic][p.Partition],
			})
		}
		if c, err := configs.On(t.Topic, nil); err == nil {
			row.configs = c.Configs
		}
		list = append(list, row)
	}
	return list, nil
}

// eligible asks for the replicas that may become leader out of sync (KIP-966).
func eligible(ctx context.Context, cl *client.Admin, names []string, limit int32) (map[string]map[int32]kmsg.DescribeTopicPartitionsResponseTopicPartition, error) {
	out := map[string]map[int32]kmsg.DescribeTopicPartitionsResponseTopicPartition{}
	req := kmsg.NewPtrDescribeTopicPartitionsRequest()
	req.ResponsePartitionLimit = cmp.Or(limit, 2000)
	for _, name := range names {
		t := kmsg.NewDescribeTopicPartitionsRequestTopic()
		t.Topic = name
		req.Topics = append(req.Topics, t)
	}
	for {
		resp, err := req.RequestWith(ctx, cl.Raw)
		if err != nil {
			return nil, err
		}
		for _, t := range resp.Topics {
			if t.Topic == nil || kerr.ErrorForCode(t.ErrorCode) != nil {
				continue
			}
			if out[*t.Topic] == nil {
				out[*t.Topic] = map[int32]kmsg.DescribeTopicPartitionsResponseTopicPartition{}
			}
			for _, p := range t.Partitions {
				out[*t.Topic][p.Partition] = p
			}
		}
		if resp.NextCursor == nil {
			return out, nil
		}
		cursor := kmsg.NewDescribeTopicPartitionsRequestCursor()
		cursor.Topic, cursor.Partition = resp.NextCursor.Topic, resp.NextCursor.Partition
		req.Cursor = &cursor
		from := slices.IndexFunc(req.Topics, func(t kmsg.DescribeTopicPartitionsRequestTopic) bool { return t.Topic >= cursor.Topic })
		req.Topics = req.Topics[max(from, 0):]
	}
}

// reassignments asks which partitions are on the move. Without an answer none is.
func reassignments(ctx context.Context, cl *client.Admin) map[string]map[int32]*kmsg.ListPartitionReassignmentsResponseTopicPartition {
	out := map[string]map[int32]*kmsg.ListPartitionReassignmentsResponseTopicPartition{}
	resp, err := kmsg.NewPtrListPartitionReassignmentsRequest().RequestWith(ctx, cl.Raw)
	if err != nil {
		return out
	}
	for _, t := range resp.Topics {
		out[t.Topic] = map[int32]*kmsg.ListPartitionReassignmentsResponseTopicPartition{}
		for i := range t.Partitions {
			out[t.Topic][t.Partitions[i].Partition] = &t.Partitions[i]
		}
	}
	return out
}

// replicationFactor is the count of replicas apart from those that are being added.
func (p scriptPartition) replicationFactor() int {
	if p.moving == nil {
		return len(p.replicas)
	}
	return len(p.moving.Replicas) - len(p.moving.AddingReplicas)
}

func (t scriptTopic) minISR() int {
	for _, c := range t.configs {
		if c.Key == "min.insync.replicas" {
			n, _ := strconv.Atoi(c.MaybeValue())
			return n
		}
	}
	return 1
}

// overrides are the settings that are not Kafka's defaults, as name=value.
func (t scriptTopic) overrides() (list []string) {
	for _, c := range t.configs {
		if c.Source != kmsg.ConfigSourceDefaultConfig {
			list = append(list, c.Key+"="+c.MaybeValue())
		}
	}
	return list
}

func (s *topicsScript) print(out io.Writer, t scriptTopic, live []int32) {
	filtered := s.unavailable || s.underReplicated || s.underISR || s.atISR
	overrides := t.overrides()
	if !filtered && (!s.altered || len(overrides) > 0) {
		fmt.Fprintf(out, "Topic: %s", t.name)
		if t.id != (kadm.TopicID{}) {
			fmt.Fprintf(out, "\tTopicId: %s", idText(t.id))
		}
		factor := 0
		if len(t.partitions) > 0 {
			factor = t.partitions[0].replicationFactor()
		}
		fmt.Fprintf(out, "\tPartitionCount: %d\tReplicationFactor: %d\tConfigs: %s%s\n", len(t.partitions), factor, strings.Join(overrides, ","), t.mark())
	}
	if s.altered {
		return
	}
	for _, p := range t.partitions {
		switch {
		case !filtered,
			s.underReplicated && p.replicationFactor() > len(p.isr),
			s.unavailable && !slices.Contains(live, p.leader),
			s.underISR && (p.leader < 0 || len(p.isr) < t.minISR()),
			s.atISR && len(p.isr) == t.minISR():
			fmt.Fprintln(out, p.line(t.name)+t.rest(p))
		}
	}
}

func (p scriptPartition) line(topic string) string {
	leader := "none"
	if p.leader >= 0 {
		leader = strconv.Itoa(int(p.leader))
	}
	line := fmt.Sprintf("\tTopic: %s\tPartition: %d\tLeader: %s\tReplicas: %s\tIsr: %s", topic, p.number, leader, joined(p.replicas), joined(p.isr))
	if p.moving != nil {
		line += "\tAdding Replicas: " + joined(p.moving.AddingReplicas) + "\tRemoving Replicas: " + joined(p.moving.RemovingReplicas)
	}
	return line
}

// rest ends a partition's line.
func (t scriptTopic) rest(p scriptPartition) string {
	switch {
	case t.tree:
		return t.mark()
	case !p.knowsELR:
		return "\tElr: N/A\tLastKnownElr: N/A"
	}
	return "\tElr: " + joined(p.elr) + "\tLastKnownElr: " + joined(p.lastELR)
}

func (t scriptTopic) mark() string {
	if t.marked {
		return "\tMarkedForDeletion: true"
	}
	return ""
}
