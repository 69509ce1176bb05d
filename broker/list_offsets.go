package broker

import (
	"log/slog"
	"math"

	"github.com/twmb/franz-go/pkg/kmsg"

	"millrace/engine"
	"millrace/replica"
	"millrace/wire"
)

// Special timestamps of ListOffsets, and the version each came with.
const (
	offsetLatest          = -1
	offsetEarliest        = -2
	offsetMaxTimestamp    = -3 // v7
	offsetEarliestLocal   = -4 // v8
	offsetLatestTiered    = -5 // v9
	offsetPendingUpload   = -6 // v11
	unknownOffset         = -1
	unknownEpoch          = -1
	unknownTimestampValue = -1
)

func (b *Broker) handleListOffsets(rc *requestContext, r kmsg.Request) kmsg.Response {
	req := r.(*kmsg.ListOffsetsRequest)
	resp := kmsg.NewPtrListOffsetsResponse()
	seen := map[partitionKey]int{}
	for i := range req.Topics {
		for j := range req.Topics[i].Partitions {
			seen[partitionKey{name: req.Topics[i].Topic, index: req.Topics[i].Partitions[j].Partition}]++
		}
	}
	for i := range req.Topics {
		t := &req.Topics[i]
		topic := kmsg.NewListOffsetsResponseTopic()
		topic.Topic = t.Topic
		for j := range t.Partitions {
			p := &t.Partitions[j]
			answer := kmsg.NewListOffsetsResponseTopicPartition()
			answer.Partition = p.Partition
			answer.Timestamp, answer.Offset, answer.LeaderEpoch = unknownTimestampValue, unknownOffset, unknownEpoch
			var err error
			if seen[partitionKey{name: t.Topic, index: p.Partition}] > 1 {
				err = errDuplicatePart
			} else {
				err = b.listOffset(rc, req, t.Topic, p, &answer)
			}
			if err != nil {
				b.failListOffset(rc, t.Topic, &answer, err)
			}
			topic.Partitions = append(topic.Partitions, answer)
		}
		resp.Topics = append(resp.Topics, topic)
	}
	return resp
}

func (b *Broker) failListOffset(rc *requestContext, topic string, answer *kmsg.ListOffsetsResponseTopicPartition, err error) {
	f := failureOf(err)
	answer.ErrorCode = f.codeFor(wire.KeyListOffsets, rc.header.Version)
	answer.Timestamp, answer.Offset, answer.LeaderEpoch = unknownTimestampValue, unknownOffset, unknownEpoch
	if f.serious {
		b.limits.storage.log(rc.log, slog.LevelError, "ListOffsets failed", "topic", topic, "partition", answer.Partition, "error", err)
	}
}

func (b *Broker) listOffset(rc *requestContext, req *kmsg.ListOffsetsRequest, name string, p *kmsg.ListOffsetsRequestTopicPartition, answer *kmsg.ListOffsetsResponseTopicPartition) error {
	version := rc.header.Version
	if version < firstVersionOf(p.Timestamp) {
		return errTimestampKind
	}
	topic := b.replicas.Topic(name)
	if topic == nil {
		return errUnknownTopic
	}
	partition := topic.Partition(p.Partition)
	if partition == nil {
		return errUnknownTopic
	}
	if version >= 4 {
		if err := partition.CheckEpoch(p.CurrentLeaderEpoch); err != nil {
			return err
		}
	}
	if err := partition.Lead(); err != nil {
		return err
	}
	limit := partition.ReadLimit(replica.Isolation(req.IsolationLevel))
	found, err := findOffset(partition, p.Timestamp, limit)
	if err != nil {
		return err
	}
	if version == 0 {
		answer.OldStyleOffsets = oldStyleOffsets(partition, p, found, limit)
		return nil
	}
	answer.Offset, answer.Timestamp, answer.LeaderEpoch = found.offset, found.timestamp, found.epoch
	return nil
}

// firstVersionOf is the version that a special timestamp came with; of those
// that nobody knows it is one that is never served.
func firstVersionOf(timestamp int64) int16 {
	if timestamp < offsetPendingUpload {
		return math.MaxInt16
	}
	switch timestamp {
	case offsetMaxTimestamp:
		return 7
	case offsetEarliestLocal:
		return 8
	case offsetLatestTiered:
		return 9
	case offsetPendingUpload:
		return 11
	}
	return 0
}

// foundOffset is an answer; all -1 if there is no such record.
type foundOffset struct {
	offset, timestamp int64
	epoch             int32
}

// findOffset answers one partition. What lies at or above limit is not there
// yet, for the client.
func findOffset(p *replica.Partition, timestamp int64, limit engine.Offset) (foundOffset, error) {
	log := p.Log()
	none := foundOffset{unknownOffset, unknownTimestampValue, unknownEpoch}
	switch timestamp {
	case offsetLatest:
		_, epoch := p.Leader()
		return foundOffset{int64(limit), unknownTimestampValue, epoch}, nil
	case offsetEarliest, offsetEarliestLocal:
		start := log.Start()
		return foundOffset{int64(start), unknownTimestampValue, epochOf(p, start)}, nil
	case offsetLatestTiered, offsetPendingUpload:
		return none, nil // nothing is tiered
	case offsetMaxTimestamp:
		offset, at, err := log.MaxTimestamp()
		if err != nil || offset < 0 || offset >= limit {
			return none, err
		}
		return foundOffset{int64(offset), at, epochOf(p, offset)}, nil
	}
	offset, at, found, err := log.OffsetForTime(timestamp)
	if err != nil || !found || offset >= limit {
		return none, err
	}
	return foundOffset{int64(offset), at, epochOf(p, offset)}, nil
}

// epochOf finds the leader epoch that an offset was written in: the one before
// the first that ends at or below it. The walk is over epochs, not records.
func epochOf(p *replica.Partition, offset engine.Offset) int32 {
	_, latest := p.Leader()
	epoch, _ := p.EpochEnd(latest)
	for epoch > 0 {
		before, end := p.EpochEnd(epoch - 1)
		if before < 0 || before >= epoch || end <= int64(offset) {
			break
		}
		epoch = before
	}
	return epoch
}

// oldStyleOffsets is v0's answer: offsets at or before the time, newest first,
// at most as many as were asked for.
func oldStyleOffsets(p *replica.Partition, ask *kmsg.ListOffsetsRequestTopicPartition, found foundOffset, limit engine.Offset) []int64 {
	start := int64(p.Log().Start())
	first := found.offset
	if first < 0 {
		first = int64(limit) // everything is older than the time asked for
	}
	offsets := []int64{first}
	if ask.Timestamp != offsetEarliest && first > start {
		offsets = append(offsets, start)
	}
	return offsets[:min(len(offsets), max(int(ask.MaxNumOffsets), 0))]
}
