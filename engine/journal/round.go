package journal

import (
	"math"

	"millrace/engine/vfs"
)

// round gathers what becomes durable together. There are two, taking turns: one open, which everybody adds to, and one
// that is running or has ended. The open one is guarded by Journal.mu; of the running one the buffer belongs to the
// runner, the rest stays under Journal.mu.
type round struct {
	number uint64 // 0 while neither open nor running

	block  []byte // header (filled in by the runner) and records so far; its capacity is the whole aligned buffer
	count  int    // records in block
	cuts   int    // of them, cuts
	unsaid bool   // a cut found no room in block: the round must leave nothing in the journal that could be replayed

	members []member

	waiting waiterList
	waiters int // Waits that came for this round, its runner included
	synced  int // files synced in it; the runner's
}

// member is one owner in a round.
type member struct {
	state  *ownerState
	end    int64 // everything of the owner below this is durable once the round has ended
	bytes  int   // of data, copied or not
	sync   bool  // its files are synced in the round
	logged bool  // it has batches in the block
}

func (r *round) init() { r.block = vfs.AlignedBuffer(firstBufferBytes)[:headerBytes] }

func (r *round) free() {
	vfs.FreeBuffer(r.block)
	r.block = nil
}

// reset makes an ended round ready to be opened again. It keeps its memory.
func (r *round) reset() {
	r.number = 0
	r.block = r.block[:headerBytes]
	r.count, r.cuts, r.unsaid = 0, 0, false
	clear(r.members)
	r.members = r.members[:0]
	r.waiters, r.synced = 0, 0
}

// needsBlock reports whether there is anything that only the block makes durable.
func (r *round) needsBlock() bool {
	if r.cuts > 0 {
		return true
	}
	for i := range r.members {
		if m := &r.members[i]; m.logged && !m.sync {
			return true
		}
	}
	return false
}

func (r *round) empty() bool { return len(r.members) == 0 }

// slot is where ownerState.in keeps the place of this round. The two rounds at hand have neighbouring numbers.
func (r *round) slot() int { return int(r.number & 1) }

// member returns the entry of s, or nil.
func (r *round) member(s *ownerState) *member {
	in := &s.in[r.slot()]
	if r.number == 0 || in.round != r.number {
		return nil
	}
	return &r.members[in.index]
}

// join returns the entry of s, made if there is none. It is good until the next join.
func (r *round) join(s *ownerState) *member {
	if m := r.member(s); m != nil {
		return m
	}
	in := &s.in[r.slot()]
	in.round, in.index = r.number, len(r.members)
	r.members = append(r.members, member{state: s, end: none})
	return &r.members[in.index]
}

// reserve makes room for n more bytes below limit. It reports false if they do not fit.
func (r *round) reserve(n, limit int) bool {
	need := len(r.block) + n
	if need <= cap(r.block) {
		return need <= limit
	}
	if need > limit {
		return false
	}
	size := cap(r.block)
	for size < need {
		size *= 2
	}
	grown := vfs.AlignedBuffer(size)[:len(r.block)]
	copy(grown, r.block)
	vfs.FreeBuffer(r.block)
	r.block = grown
	return true
}

// addBatches copies data into the block. It reports false, and adds nothing, if it does not fit.
func (r *round) addBatches(rec *record, data [][]byte) bool {
	rec.kind = kindBatches
	n := recordBytes + padTo(rec.size, 8)
	if !r.reserve(n, maxBlockBytes-cutReserve) {
		return false
	}
	at := len(r.block)
	r.block = r.block[:at+n]
	rec.put(r.block[at:])
	at += recordBytes
	for _, d := range data {
		at += copy(r.block[at:], d)
	}
	clear(r.block[at:])
	r.count++
	return true
}

// addCut writes a cut record.
func (r *round) addCut(id LogID, from int64) {
	if !r.reserve(recordBytes, maxBlockBytes) {
		r.unsaid = true
		return
	}
	rec := record{id: id, base: from, end: from, kind: kindCut}
	at := len(r.block)
	r.block = r.block[:at+recordBytes]
	rec.put(r.block[at:])
	r.count++
	r.cuts++
}

// Add makes data, the batches [base, end) of o, part of the open round. The caller holds the lock of o's log, so that the
// journal has a log's records in the log's order, and has written data to the segment file already; data is copied, not kept.
//
// base is the log's end before data was appended, also where the first batch begins above it (a follower of a compacted
// log): replay puts an entry where the log's end is its base.
//
// Once a log has more than the threshold in a round, or when the journal is off or the round full, data is not copied: o's files are synced
// in the round, which makes all of the log durable.
func (j *Journal) Add(o Owner, epoch int32, base, end int64, data [][]byte) Ticket {
	size := 0
	for _, d := range data {
		size += len(d)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	r := j.open
	if !j.accepts() {
		return Ticket{r.number}
	}
	s := j.state(o)
	m := r.join(s)
	s.gone = false
	m.end, s.added = end, end
	m.bytes += size
	switch {
	case m.sync: // already, and that covers whatever the log has when the round begins
	case j.off:
		m.sync = true
	case m.bytes > j.threshold:
		m.sync = true
		j.stats.Large++
	default:
		rec := record{id: s.id, epoch: epoch, base: base, end: end, size: size}
		if r.addBatches(&rec, data) {
			m.logged = true
		} else {
			m.sync = true
			j.stats.Fallbacks++
		}
	}
	j.armFlush()
	return Ticket{r.number}
}

// AddSync makes the open round sync o's files: an explicit sync, or a roll, whose old segment SyncTargets still returns.
func (j *Journal) AddSync(o Owner) Ticket {
	j.mu.Lock()
	defer j.mu.Unlock()
	r := j.open
	if !j.accepts() {
		return Ticket{r.number}
	}
	s := j.state(o)
	s.gone = false
	r.join(s).sync = true
	j.armFlush()
	return Ticket{r.number}
}

// Cut records that everything of o at or above from is taken back: a truncation, a reset or, with from = math.MinInt64, the
// log's deletion, after which the journal has nothing more to do with o unless o adds again. The caller has synced the
// truncation (or the rename) itself, has lowered o's End just before, and holds the lock of o's log. Until the ticket's round has
// ended, a crash may bring back either state; afterwards only the cut one.
func (j *Journal) Cut(o Owner, from int64) Ticket {
	j.mu.Lock()
	defer j.mu.Unlock()
	r := j.open
	if !j.accepts() {
		return Ticket{r.number}
	}
	s := j.owners[o]
	if s == nil {
		return Ticket{} // the journal never heard of o, or has forgotten it: nothing to take back
	}
	s.cut(from)
	s.gone = from == math.MinInt64
	member := false
	for i := range j.rounds {
		if m := j.rounds[i].member(s); m != nil {
			m.end = min(m.end, from)
			member = true
		}
	}
	readable := member || s.pins > 0 // only then may the journal hold something that the cut takes back
	j.unpin(s, from)
	if !readable || j.off {
		if s.gone {
			j.forget(s)
		}
		return Ticket{}
	}
	m := r.join(s)
	if s.gone {
		m.sync = false // the files are on their way out
	}
	r.addCut(s.id, from)
	j.armFlush()
	return Ticket{r.number}
}

// accepts reports whether the open round takes anything. Otherwise the Wait that follows says why not.
func (j *Journal) accepts() bool { return j.phase == started && j.failed == nil }

// unpin lets the files forget what a cut of s took back.
func (j *Journal) unpin(s *ownerState, from int64) {
	for _, f := range j.files {
		pin, ok := f.pins[s]
		switch {
		case !ok:
		case from == math.MinInt64:
			delete(f.pins, s)
			s.pins--
		case pin > from:
			f.pins[s] = from
		}
	}
	if len(j.sealed) > 0 {
		j.wakeKeeper() // it may have been waiting for this
	}
}
