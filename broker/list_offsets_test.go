package broker

import (
	"bytes"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"millrace/engine/batch"
	"millrace/wire"
)

func (b *testBroker) listOffset(c *client, version int16, topic string, timestamp int64) kmsg.ListOffsetsResponseTopicPartition {
	b.t.Helper()
	req := kmsg.NewPtrListOffsetsRequest()
	req.ReplicaID = -1
	t := kmsg.NewListOffsetsRequestTopic()
	t.Topic = topic
	p := kmsg.NewListOffsetsRequestTopicPartition()
	p.Timestamp, p.CurrentLeaderEpoch, p.MaxNumOffsets = timestamp, -1, 10
	t.Partitions = append(t.Partitions, p)
	req.Topics = append(req.Topics, t)
	return c.ask(req, version).(*kmsg.ListOffsetsResponse).Topics[0].Partitions[0]
}

// Claim: the first record at or after a time is found, with its own timestamp;
// none is -1 without an error.
// Method: the case's table, as four batches and as one, compressed, in every
// version.
func TestField_F045_ListOffsets(t *testing.T) {
	b := startBroker(t, "log.message.timestamp.before.max.ms=9223372036854775807")
	b.topic("single", 1, "retention.ms=-1")
	b.topic("compressed", 1, "retention.ms=-1")
	one := batch.NewBuilder(batch.Gzip, 0)
	for _, at := range []int64{2, 4, 6, 8} {
		each := batch.NewBuilder(batch.None, 0)
		_ = each.Add(batch.Record{Timestamp: at, Value: []byte("v")})
		b.mustProduce("single", 0, bytes.Clone(each.Bytes()))
		_ = one.Add(batch.Record{Timestamp: at, Value: []byte("v")})
	}
	b.mustProduce("compressed", 0, bytes.Clone(one.Bytes()))
	c := b.dial()
	for _, topic := range []string{"single", "compressed"} {
		for version := int16(1); version <= 11; version++ {
			for _, row := range []struct{ ask, offset, timestamp int64 }{
				{2, 0, 2}, {3, 1, 4}, {4, 1, 4}, {5, 2, 6}, {6, 2, 6}, {7, 3, 8}, {8, 3, 8}, {9, -1, -1}, {-1, 4, -1}, {-2, 0, -1},
			} {
				p := b.listOffset(c, version, topic, row.ask)
				if p.ErrorCode != 0 || p.Offset != row.offset || p.Timestamp != row.timestamp {
					t.Errorf("%s v%d, time %d: code %d, offset %d, timestamp %d, want %d and %d", topic, version, row.ask, p.ErrorCode, p.Offset, p.Timestamp, row.offset, row.timestamp)
				}
			}
		}
		if p := b.listOffset(c, 0, topic, -1); len(p.OldStyleOffsets) != 2 || p.OldStyleOffsets[0] != 4 || p.OldStyleOffsets[1] != 0 {
			t.Errorf("%s v0 latest: %v, want [4 0]", topic, p.OldStyleOffsets)
		}
		if p := b.listOffset(c, 0, topic, -2); len(p.OldStyleOffsets) != 1 || p.OldStyleOffsets[0] != 0 {
			t.Errorf("%s v0 earliest: %v, want [0]", topic, p.OldStyleOffsets)
		}
	}
}

// Claim: special timestamps are served from their version on, and refused below.
// Method: all of them, one version below their first and at it.
func TestSpecialTimestampsByVersion(t *testing.T) {
	b := startBroker(t)
	b.topic("t", 1)
	b.mustProduce("t", 0, values(batch.None, "a", "b"))
	c := b.dial()
	for special, row := range map[int64]struct {
		first  int16
		offset int64
	}{-3: {7, 1}, -4: {8, 0}, -5: {9, -1}, -6: {11, -1}} {
		if p := b.listOffset(c, row.first-1, "t", special); p.ErrorCode != wire.ErrUnsupportedVersion {
			t.Errorf("%d in v%d: %s, want 35", special, row.first-1, wire.ErrorName(p.ErrorCode))
		}
		p := b.listOffset(c, row.first, "t", special)
		if special == -3 && p.Offset != 0 && p.Offset != 1 || special != -3 && p.Offset != row.offset || p.ErrorCode != 0 {
			t.Errorf("%d in v%d: code %d, offset %d, want %d", special, row.first, p.ErrorCode, p.Offset, row.offset)
		}
	}
	for _, unknown := range []int64{-7, -99} {
		if p := b.listOffset(c, 11, "t", unknown); p.ErrorCode != wire.ErrUnsupportedVersion || p.Offset != -1 {
			t.Errorf("%d, which nobody knows: %s at %d, want 35", unknown, wire.ErrorName(p.ErrorCode), p.Offset)
		}
	}
	if p := b.listOffset(c, 4, "nope", -1); p.ErrorCode != wire.ErrUnknownTopicOrPartition || p.Offset != -1 {
		t.Errorf("unknown topic: %s at %d", wire.ErrorName(p.ErrorCode), p.Offset)
	}
}
