package broker

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"millrace/coord/controller"
	"millrace/engine/batch"
	"millrace/wire"
)

func (c *adminClient) epochEnd(version int16, topic string, partition, current, epoch int32) kmsg.OffsetForLeaderEpochResponseTopicPartition {
	c.t.Helper()
	req := kmsg.NewPtrOffsetForLeaderEpochRequest()
	req.Version, req.ReplicaID = version, -1
	t := kmsg.NewOffsetForLeaderEpochRequestTopic()
	t.Topic = topic
	p := kmsg.NewOffsetForLeaderEpochRequestTopicPartition()
	p.Partition, p.CurrentLeaderEpoch, p.LeaderEpoch = partition, current, epoch
	t.Partitions = append(t.Partitions, p)
	req.Topics = append(req.Topics, t)
	return ask[*kmsg.OffsetForLeaderEpochResponse](c, req).Topics[0].Partitions[0]
}

// Claim: in every version an epoch's end is where the next began, the newest's is the
// log's; an epoch between two known ones is answered by the older, one from
// the future by -1; and the client's idea of the present epoch is checked.
// Method: three records in epoch 0, two in 2, one in 3.
func TestEpochsEnd(t *testing.T) {
	b := startBroker(t)
	c := dialAdmin(t, b.Broker, "")
	c.createTopic("t", 1)
	service := b.coord.(*controller.Service)
	bump := func() {
		if err := service.BumpEpochs(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	b.mustProduce("t", 0, values(batch.None, "a", "b", "c"))
	bump()
	// Nothing is written in epoch 1, yet it began, and ended where 2 began.
	bump()
	b.mustProduce("t", 0, values(batch.None, "d", "e"))
	bump()
	b.mustProduce("t", 0, values(batch.None, "f"))
	for version := int16(0); version <= 4; version++ {
		for _, try := range []struct {
			epoch, known int32
			end          int64
		}{{-1, -1, -1}, {0, 0, 3}, {1, 0, 3}, {2, 2, 5}, {3, 3, 6}, {4, -1, -1}} {
			p := c.epochEnd(version, "t", 0, -1, try.epoch)
			if try.epoch == 1 && p.LeaderEpoch == 1 {
				try.known = 1 // the log notes an epoch that had no records, as Kafka's does
			}
			if version == 0 {
				try.known = -1 // not told
			}
			if p.ErrorCode != 0 || p.EndOffset != try.end || p.LeaderEpoch != try.known {
				t.Errorf("v%d epoch %d: %+v, want %+v", version, try.epoch, p, try)
			}
		}
		if version < 2 {
			continue
		}
		for current, code := range map[int32]int16{2: wire.ErrFencedLeaderEpoch, 3: 0, 4: wire.ErrUnknownLeaderEpoch} {
			if p := c.epochEnd(version, "t", 0, current, 0); p.ErrorCode != code || code != 0 && (p.EndOffset != -1 || p.LeaderEpoch != -1) {
				t.Errorf("v%d, present epoch %d: %+v", version, current, p)
			}
		}
	}
	for _, try := range []struct {
		topic     string
		partition int32
	}{{"none", 0}, {"t", 1}, {"t", -1}} {
		if p := c.epochEnd(4, try.topic, try.partition, -1, 0); p.ErrorCode != wire.ErrUnknownTopicOrPartition || p.EndOffset != -1 {
			t.Errorf("%v: %+v", try, p)
		}
	}
}
