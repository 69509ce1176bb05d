package main

import (
	"cmp"
	"context"
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"millrace/tools/internal/client"
)

// topicPartition names one partition.
type topicPartition struct {
	Topic     string
	Partition int32
}

func compareTopicPartition(a, b topicPartition) int {
	return cmp.Or(cmp.Compare(a.Topic, b.Topic), cmp.Compare(a.Partition, b.Partition))
}

// Times of ListOffsets that are no times but places.
const (
	atLatest       = -1
	atEarliest     = -2
	atMaxTimestamp = -3
)

// listedAt is an answer to listOffsets; offset is -1 where there is none.
type listedAt struct {
	offset int64
	err    error
}

// listOffsets asks for the offset at a time, in ms or one of the places above. kadm
// puts the end where nothing is that late, which callers here must tell apart.
func listOffsets(ctx context.Context, cl *client.Admin, where []topicPartition, at int64) (map[topicPartition]listedAt, error) {
	out := map[topicPartition]listedAt{}
	if len(where) == 0 {
		return out, nil
	}
	req := kmsg.NewPtrListOffsetsRequest()
	req.ReplicaID = -1
	where = slices.SortedFunc(slices.Values(where), compareTopicPartition)
	for _, tp := range where {
		if n := len(req.Topics); n == 0 || req.Topics[n-1].Topic != tp.Topic {
			t := kmsg.NewListOffsetsRequestTopic()
			t.Topic = tp.Topic
			req.Topics = append(req.Topics, t)
		}
		p := kmsg.NewListOffsetsRequestTopicPartition()
		p.Partition, p.Timestamp, p.CurrentLeaderEpoch = tp.Partition, at, -1
		t := &req.Topics[len(req.Topics)-1]
		t.Partitions = append(t.Partitions, p)
	}
	var answered error
	for _, shard := range cl.Raw.RequestSharded(ctx, req) {
		if shard.Err != nil {
			// The partitions of a broker that did not answer, or that no broker leads.
			if answered == nil {
				answered = shard.Err
			}
			for _, t := range shard.Req.(*kmsg.ListOffsetsRequest).Topics {
				for _, p := range t.Partitions {
					out[topicPartition{t.Topic, p.Partition}] = listedAt{-1, shard.Err}
				}
			}
			continue
		}
		for _, t := range shard.Resp.(*kmsg.ListOffsetsResponse).Topics {
			for _, p := range t.Partitions {
				out[topicPartition{t.Topic, p.Partition}] = listedAt{p.Offset, kerr.ErrorForCode(p.ErrorCode)}
			}
		}
	}
	if len(out) == 0 {
		return nil, answered
	}
	return out, nil
}

// sortedPartitions are the keys of a map of partitions in order.
func sortedPartitions[V any](m map[topicPartition]V) []topicPartition {
	keys := make([]topicPartition, 0, len(m))
	for tp := range m {
		keys = append(keys, tp)
	}
	slices.SortFunc(keys, compareTopicPartition)
	return keys
}
