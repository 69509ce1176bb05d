package broker

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"millrace/engine/batch"
	"millrace/wire"
)

// Claim: the producers that a partition remembers are told with their last sequence;
// those without idempotence are not; what is not there is refused with a message.
// Method: two producers and plain records.
func TestDescribeProducers(t *testing.T) {
	b := startBroker(t)
	c := dialAdmin(t, b.Broker, "")
	c.createTopic("t", 2)
	for sequence := range int32(3) {
		b.mustProduce("t", 0, idempotent(9, sequence))
	}
	b.mustProduce("t", 0, idempotent(4, 0))
	b.mustProduce("t", 1, values(batch.None, "plain"))
	req := kmsg.NewPtrDescribeProducersRequest()
	req.Topics = []kmsg.DescribeProducersRequestTopic{{Topic: "t", Partitions: []int32{0, 1, 2}}, {Topic: "none", Partitions: []int32{0}}}
	r := ask[*kmsg.DescribeProducersResponse](c, req)
	p := r.Topics[0].Partitions
	if len(p[0].ActiveProducers) != 2 || p[0].ErrorCode != 0 || len(p[1].ActiveProducers) != 0 || p[1].ErrorCode != 0 {
		t.Fatalf("%+v", r)
	}
	for i, want := range []struct {
		id   int64
		last int32
	}{{4, 0}, {9, 2}} {
		got := p[0].ActiveProducers[i]
		if got.ProducerID != want.id || got.LastSequence != want.last || got.ProducerEpoch != 0 || got.LastTimestamp < 1e12 || got.CoordinatorEpoch != -1 || got.CurrentTxnStartOffset != -1 {
			t.Errorf("%+v", got)
		}
	}
	for _, gone := range []kmsg.DescribeProducersResponseTopicPartition{p[2], r.Topics[1].Partitions[0]} {
		if gone.ErrorCode != wire.ErrUnknownTopicOrPartition || gone.ErrorMessage == nil {
			t.Errorf("%+v", gone)
		}
	}
}
