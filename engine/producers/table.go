package producers

import (
	"math"
	"time"

	"millrace/engine/batch"
)

const (
	noSequence = -1
	noEpoch    = -1
	noOffset   = -1
)

// Table is the producer state of one log. Not safe for concurrent use: the lock of
// the log guards it.
type Table struct {
	expire time.Duration
	byID   map[int64]*producer // nil until the first: most logs never see one

	undo   []undo // what Begin..Rollback takes back
	inside bool
	free   *producer // spare, so that a rolled back first batch costs nothing
}

// producer is what the log remembers of one producer id.
type producer struct {
	epoch            int16
	count            int8              // batches kept
	first            int8              // index of the oldest
	batches          [keptBatches]kept // ring
	timestamp        int64             // of the last batch or marker; -1 unknown
	idleSince        int64             // ms; 0: it was active since the last Expire
	coordinatorEpoch int32             // of the last marker; -1 none
	txnFirst         int64             // first offset of the open transaction; -1 none
}

// kept is one batch, by its last record.
type kept struct {
	lastOffset int64
	timestamp  int64
	lastSeq    int32
	delta      int32 // last offset and sequence - first
}

// Seen is a batch that the log already holds.
type Seen struct {
	Base      int64 // its first offset
	Timestamp int64 // the timestamp given to Update
}

type undo struct {
	id  int64
	new bool
	old producer
}

// New returns an empty table whose producers are forgotten after expire without a
// batch (producer.id.expiration.ms).
func New(expire time.Duration) *Table { return &Table{expire: expire} }

// Check judges a client's batch by the rules of idempotence. dup is set if it is one
// of the producer's last five: it must not be stored again, and is answered with
// what dup says. err is nil or a *SequenceError. A batch without producer passes.
// An unknown producer may begin at any sequence: its state may have expired, or its
// records were deleted before this log had it (F075).
func (t *Table) Check(i batch.Info) (dup *Seen, err error) {
	if i.ProducerID < 0 {
		return nil, nil
	}
	p := t.byID[i.ProducerID]
	if p == nil {
		return nil, nil
	}
	if i.ProducerEpoch == p.epoch && !i.IsControl() {
		if k := p.find(i.BaseSequence, i.LastSequence()); k != nil {
			return &Seen{Base: k.lastOffset - int64(k.delta), Timestamp: k.timestamp}, nil
		}
	}
	if i.ProducerEpoch < p.epoch {
		return nil, &SequenceError{i.ProducerID, i.ProducerEpoch, int32(p.epoch), int32(i.ProducerEpoch), FencedEpoch}
	}
	if i.IsControl() { // markers have no sequence
		return nil, nil
	}
	if want, ok := p.next(i.ProducerEpoch); ok && i.BaseSequence != want {
		return nil, &SequenceError{i.ProducerID, i.ProducerEpoch, want, i.BaseSequence, OutOfOrder}
	}
	return nil, nil
}

// next returns the sequence with which a batch of epoch must begin; ok is false if any will do.
func (p *producer) next(epoch int16) (want int32, ok bool) {
	if p.epoch == noEpoch {
		return 0, false
	}
	if epoch != p.epoch || p.count == 0 {
		return 0, true
	}
	last := p.last().lastSeq
	if last == math.MaxInt32 {
		return 0, true
	}
	return last + 1, true
}

func (p *producer) find(firstSeq, lastSeq int32) *kept {
	for i := range p.count {
		k := &p.batches[(p.first+i)%keptBatches]
		if k.lastSeq == lastSeq && before(k.lastSeq, k.delta) == firstSeq {
			return k
		}
	}
	return nil
}

// before is seq - n in the ring of sequences 0..2^31-1.
func before(seq, n int32) int32 { return int32((int64(seq) - int64(n)) & math.MaxInt32) }

func (p *producer) last() *kept {
	return &p.batches[(p.first+p.count-1)%keptBatches]
}

func (p *producer) push(k kept) {
	if p.count == keptBatches {
		p.first = (p.first + 1) % keptBatches
		p.count--
	}
	p.count++
	*p.last() = k
}

// Update notes a batch, with the base offset it has in the log and the timestamp to
// answer a duplicate with (its largest, or the time of its append). Batches of a
// leader and of recovery come without Check: they are facts. Nothing happens for a
// batch without producer.
func (t *Table) Update(i batch.Info, base int64, ts int64) {
	if i.ProducerID < 0 {
		return
	}
	p := t.touch(i.ProducerID)
	if i.ProducerEpoch != p.epoch {
		p.epoch, p.count = i.ProducerEpoch, 0
	}
	p.timestamp, p.idleSince = ts, 0
	if i.IsControl() {
		p.txnFirst = noOffset
		return
	}
	if i.BaseSequence < 0 {
		return
	}
	p.push(kept{lastOffset: base + int64(i.LastOffsetDelta), timestamp: ts, lastSeq: i.LastSequence(), delta: i.LastOffsetDelta})
	if i.IsTransactional() && p.txnFirst == noOffset {
		p.txnFirst = base
	}
}

// NoteCoordinator records the epoch of the coordinator whose marker Update just noted.
func (t *Table) NoteCoordinator(producerID int64, epoch int32) {
	if p := t.byID[producerID]; p != nil {
		p.coordinatorEpoch = epoch
	}
}

// touch returns the producer to be changed, new if need be, and remembers what it was.
func (t *Table) touch(id int64) *producer {
	p := t.byID[id]
	isNew := p == nil
	if isNew {
		if p = t.free; p == nil {
			p = new(producer)
		}
		t.free = nil
		*p = producer{epoch: noEpoch, timestamp: -1, coordinatorEpoch: -1, txnFirst: noOffset}
		if t.byID == nil {
			t.byID = make(map[int64]*producer)
		}
		t.byID[id] = p
	}
	if t.inside {
		t.undo = append(t.undo, undo{id: id, new: isNew, old: *p})
	}
	return p
}

// Begin starts remembering what Update changes, until Commit or Rollback: several
// queued batches, perhaps of one producer, are checked and noted one after another
// before the one write that stores them all, and that may fail.
func (t *Table) Begin() { t.inside, t.undo = true, t.undo[:0] }

// Commit keeps what was noted since Begin.
func (t *Table) Commit() { t.inside = false }

// Rollback takes back what was noted since Begin.
func (t *Table) Rollback() {
	t.inside = false
	for n := len(t.undo) - 1; n >= 0; n-- { // the oldest change of a producer last
		u := &t.undo[n]
		if u.new {
			t.free = t.byID[u.id]
			delete(t.byID, u.id)
		} else {
			*t.byID[u.id] = u.old
		}
	}
}

// Expire forgets the producers that have been idle for the expiry time and have no
// open transaction; it returns how many. Idle is measured by our clock, from one call
// to the next: a producer that writes records of last year is not idle, and one
// that writes records of next year is not immortal.
func (t *Table) Expire(now time.Time) int {
	ms, gone := now.UnixMilli(), 0
	for id, p := range t.byID {
		switch {
		case p.idleSince == 0:
			p.idleSince = ms
		case p.txnFirst == noOffset && ms-p.idleSince >= t.expire.Milliseconds():
			delete(t.byID, id)
			gone++
		}
	}
	return gone
}

// SetExpiry changes the expiry time.
func (t *Table) SetExpiry(expire time.Duration) { t.expire = expire }

// Len returns the number of producers.
func (t *Table) Len() int { return len(t.byID) }

// Reset forgets everything. After a truncation the log loads the newest snapshot
// that is left and notes the batches from there on.
func (t *Table) Reset() { t.byID, t.inside, t.undo = nil, false, nil }

// OpenTxn returns the first offset of the oldest open transaction; ok is false if
// there is none (then nothing holds the last stable offset back).
func (t *Table) OpenTxn() (first int64, ok bool) {
	for _, p := range t.byID {
		if p.txnFirst != noOffset && (!ok || p.txnFirst < first) {
			first, ok = p.txnFirst, true
		}
	}
	return first, ok
}
