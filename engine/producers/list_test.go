package producers

import (
	"slices"
	"testing"
	"time"

	"millrace/engine/batch"
)

// Claim: every producer is listed once, by id, with its newest batch, also after the
// ring of kept batches has turned, and with what is not known as -1.
// Method: one producer of many batches, one of a transaction, one of which only a
// marker is known.
func TestProducersAreListed(t *testing.T) {
	table := New(time.Hour)
	if got := table.List(); len(got) != 0 {
		t.Errorf("%v", got)
	}
	for sequence := range int32(keptBatches + 3) {
		table.Update(batch.Info{ProducerID: 9, Magic: 2, ProducerEpoch: 2, BaseSequence: sequence * 2, LastOffsetDelta: 1, Count: 2}, int64(sequence)*2, 100+int64(sequence))
	}
	const transactional, control = 1 << 4, 1 << 5
	table.Update(batch.Info{ProducerID: 4, Magic: 2, BaseSequence: 0, Attributes: transactional}, 50, 200)
	table.Update(batch.Info{ProducerID: 7, Magic: 2, BaseSequence: -1, Attributes: transactional | control}, 60, 300)
	table.NoteCoordinator(7, 3)
	want := []State{
		{ProducerID: 4, Epoch: 0, LastSequence: 0, LastOffset: 50, Timestamp: 200, CoordinatorEpoch: -1, TxnFirst: 50},
		{ProducerID: 7, Epoch: 0, LastSequence: -1, LastOffset: -1, Timestamp: 300, CoordinatorEpoch: 3, TxnFirst: -1},
		{ProducerID: 9, Epoch: 2, LastSequence: 2*(keptBatches+3) - 1, LastOffset: 2*(keptBatches+3) - 1, Timestamp: 100 + keptBatches + 2, CoordinatorEpoch: -1, TxnFirst: -1},
	}
	if got := table.List(); !slices.Equal(got, want) {
		t.Errorf("%+v\nwant %+v", got, want)
	}
}
