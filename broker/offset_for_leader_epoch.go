package broker

import (
	"log/slog"

	"github.com/twmb/franz-go/pkg/kmsg"

	"millrace/replica"
)

// handleOffsetForLeaderEpoch serves OffsetForLeaderEpoch: where the leader epoch that
// a client or follower has seen last came to its end, so that it can tell whether
// what it has was taken back.
func (b *Broker) handleOffsetForLeaderEpoch(rc *requestContext, request kmsg.Request) kmsg.Response {
	req := request.(*kmsg.OffsetForLeaderEpochRequest)
	resp := req.ResponseKind().(*kmsg.OffsetForLeaderEpochResponse)
	for i := range req.Topics {
		t := &req.Topics[i]
		topic := kmsg.NewOffsetForLeaderEpochResponseTopic()
		topic.Topic = t.Topic
		for j := range t.Partitions {
			p := &t.Partitions[j]
			answer := kmsg.NewOffsetForLeaderEpochResponseTopicPartition()
			answer.Partition, answer.LeaderEpoch, answer.EndOffset = p.Partition, unknownEpoch, unknownOffset
			if err := b.epochEnd(t.Topic, p, &answer); err != nil {
				f := failureOf(err)
				if answer.ErrorCode = f.code; f.serious {
					b.limits.storage.log(rc.log, slog.LevelError, "OffsetForLeaderEpoch failed", "topic", t.Topic, "partition", p.Partition, "error", err)
				}
			}
			topic.Partitions = append(topic.Partitions, answer)
		}
		resp.Topics = append(resp.Topics, topic)
	}
	return resp
}

func (b *Broker) epochEnd(topic string, p *kmsg.OffsetForLeaderEpochRequestTopicPartition, answer *kmsg.OffsetForLeaderEpochResponseTopicPartition) error {
	partition, err := b.partitionOf(topic, p.Partition)
	if err != nil {
		return err
	}
	if err := partition.CheckEpoch(p.CurrentLeaderEpoch); err != nil {
		return err
	}
	if err := partition.Lead(); err != nil {
		return err
	}
	answer.LeaderEpoch, answer.EndOffset = partition.EpochEnd(p.LeaderEpoch)
	return nil
}

// partitionOf finds a partition of which this broker has a replica.
func (b *Broker) partitionOf(topic string, index int32) (*replica.Partition, error) {
	t := b.replicas.Topic(topic)
	if t == nil {
		return nil, errUnknownTopic
	}
	p := t.Partition(index)
	if p == nil {
		return nil, errUnknownTopic
	}
	return p, nil
}
