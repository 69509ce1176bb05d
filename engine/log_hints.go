package engine

import "sync/atomic"

// hints remembers where recent batch boundaries lie: ends of combined writes,
// which is where rounds end, watermarks stand and tail readers come back to.
// So a read at the tail and the look-up of its limit walk no index.
//
// It is a direct-mapped cache: an offset has one slot. Each slot is guarded by
// a sequence number (odd while it is written), so that readers take no lock; a
// torn read is seen as a miss. A miss costs one index look-up and is never wrong.
//
// Truncation makes boundaries invalid, so it replaces the whole table: a reader
// that still holds the old one can only write into what nobody reads any more.
// Segments are told apart by more than their base: compaction puts another file
// in the place of one, and a reader may still be in the old.
type hints struct {
	slots [hintCount]hint
}

type hint struct {
	seq    atomic.Uint32
	pos    atomic.Uint32 // positions fit in 31 bits
	offset atomic.Int64
	owner  atomic.Int64 // the segment's id
}

func slotOf(off Offset) int {
	// Fibonacci hashing: offsets often step by a constant.
	return int(uint64(off) * 0x9E3779B97F4A7C15 >> (64 - hintBits))
}

// put notes that the entry at pos of the segment begins at off.
func (h *hints) put(off Offset, seg *segment, pos int64) {
	s := &h.slots[slotOf(off)]
	seq := s.seq.Load()
	if seq&1 != 0 || !s.seq.CompareAndSwap(seq, seq+1) {
		return // somebody else is writing this slot; theirs is as good
	}
	s.offset.Store(int64(off))
	s.owner.Store(seg.id)
	s.pos.Store(uint32(pos))
	s.seq.Store(seq + 2)
}

// get returns the position of offset off in the segment.
func (h *hints) get(off Offset, seg *segment) (pos int64, ok bool) {
	s := &h.slots[slotOf(off)]
	seq := s.seq.Load()
	if seq == 0 || seq&1 != 0 || s.offset.Load() != int64(off) || s.owner.Load() != seg.id {
		return 0, false
	}
	pos = int64(s.pos.Load())
	return pos, s.seq.Load() == seq
}
