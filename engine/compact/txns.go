package compact

import "slices"

// Aborted is an aborted transaction as a segment's transaction index has it: the offset of its first record, and of its marker.
type Aborted struct {
	ProducerID  int64
	First, Last int64
	Stable      int64 // the last stable offset when the marker was written; carried along
}

// txns follows the transactions of a range of the log while its batches go by in order.
type txns struct {
	pending []Aborted         // not begun yet, by first offset
	aborted map[int64]*ending // begun and to be aborted, by producer
	commits map[int64]bool    // producers with records that no marker has followed yet
}

// ending is an aborted transaction under way.
type ending struct {
	Aborted
	data bool // some of its records were met
}

func newTxns(aborted []Aborted) *txns {
	t := &txns{pending: slices.Clone(aborted), aborted: map[int64]*ending{}, commits: map[int64]bool{}}
	slices.SortFunc(t.pending, func(a, b Aborted) int { return int(min(max(a.First-b.First, -1), 1)) })
	return t
}

// upTo begins the aborted transactions that have a record at or below last.
func (t *txns) upTo(last int64) {
	for len(t.pending) > 0 && t.pending[0].First <= last {
		t.aborted[t.pending[0].ProducerID] = &ending{Aborted: t.pending[0]}
		t.pending = t.pending[1:]
	}
}

// data notes a transactional batch of records and tells whether its transaction was aborted: the records go.
func (t *txns) data(producer, last int64) bool {
	t.upTo(last)
	if e := t.aborted[producer]; e != nil {
		e.data = true
		return true
	}
	t.commits[producer] = true
	return false
}

// marker notes the end of a transaction. empty: none of its records were met, so the marker is of no use any more. still is the
// aborted transaction of which records were met, for the new segment's index.
func (t *txns) marker(producer, last int64, commit bool) (empty bool, still *Aborted) {
	t.upTo(last)
	if commit {
		met := t.commits[producer]
		delete(t.commits, producer)
		return !met, nil
	}
	e := t.aborted[producer]
	delete(t.aborted, producer)
	if e != nil && e.data {
		return false, &e.Aborted
	}
	return true, nil
}
