package producers

import (
	"cmp"
	"slices"
)

// State is what an operator may see of one producer.
type State struct {
	ProducerID       int64
	Epoch            int16 // -1: none known
	LastSequence     int32 // -1: no batch known
	LastOffset       int64 // of the last record of its newest batch; -1: no batch known
	Timestamp        int64 // ms, of the last batch or marker; -1 unknown
	CoordinatorEpoch int32 // of the last marker; -1 none
	TxnFirst         int64 // first offset of the open transaction; -1 none
}

// List returns all producers by id.
func (t *Table) List() []State {
	out := make([]State, 0, len(t.byID))
	for id, p := range t.byID {
		s := State{ProducerID: id, Epoch: p.epoch, LastSequence: noSequence, LastOffset: -1, Timestamp: p.timestamp, CoordinatorEpoch: p.coordinatorEpoch, TxnFirst: p.txnFirst}
		if p.count > 0 {
			s.LastSequence, s.LastOffset = p.last().lastSeq, p.last().lastOffset
		}
		out = append(out, s)
	}
	slices.SortFunc(out, func(a, b State) int { return cmp.Compare(a.ProducerID, b.ProducerID) })
	return out
}
