package engine

import (
	"encoding/binary"
	"errors"
	"fmt"
	"sort"

	"millrace/engine/batch"
	"millrace/engine/index"
)

// Read returns a pinned range of bytes that starts with the batch that holds
// offset from, or with the next one after a gap. It takes no lock and copies
// nothing. The range
//   - never passes limit, which lies on a batch boundary at or below End;
//   - has at most `most` bytes, cut wherever that falls, except that the first
//     batch comes whole or not at all: with atLeastOne whole, however large;
//     otherwise a first batch above it leaves the slice empty;
//   - ends with its segment; read on from the next offset.
//
// At from == limit, and between limit and End, the slice is empty. Outside
// [Start, End] the error is an *OutOfRangeError.
func (l *Log) Read(from Offset, most int, limit Offset, atLeastOne bool) (*Slice, error) {
	for {
		if l.closed.Load() {
			return nil, ErrClosed
		}
		start, end := l.Start(), l.End()
		if from < start || from > end {
			return nil, &OutOfRangeError{Want: from, Start: start, End: end}
		}
		limit = min(limit, end)
		if from >= limit || most <= 0 && !atLeastOne {
			return &Slice{First: from}, nil
		}
		s, retry, err := l.readOnce(from, most, limit, atLeastOne)
		if !retry {
			return s, err
		}
	}
}

// readOnce asks for another round when the list of segments or the end of one
// has changed under it, or when an index had to be made again.
func (l *Log) readOnce(from Offset, most int, limit Offset, atLeastOne bool) (_ *Slice, retry bool, _ error) {
	// The hints before End: a truncation lowers End, cuts and then replaces the
	// hints, so what is noted in these below is true for as long as they are read.
	known := l.boundaries()
	if limit = min(limit, l.End()); from >= limit {
		return &Slice{First: from}, false, nil
	}
	list := *l.segments.Load()
	for i := segmentOf(list, from); i < len(list); i++ {
		seg := list[i]
		if !seg.pin() {
			return nil, true, nil
		}
		next := Offset(noLimit)
		if i+1 < len(list) {
			next = list[i+1].base
		}
		s, err := l.slice(known, seg, next, from, most, limit, atLeastOne)
		switch {
		case errors.Is(err, index.ErrCorrupt):
			seg.unpin()
			return nil, true, l.repairIndex(seg, err)
		case err != nil:
			seg.unpin()
			// A cut replaces the hints before it touches the file: a look-up that
			// began before it may meet the new end of the file.
			return nil, l.closed.Load() || l.isGone(seg) || l.hints.Load() != known, err
		case s != nil:
			if s.size == 0 {
				seg.unpin() // an empty slice holds nothing
			}
			return s, false, nil
		}
		seg.unpin() // from lies in a gap behind this segment's last batch
	}
	return &Slice{First: from}, false, nil
}

// segmentOf finds the segment that an offset belongs to.
func segmentOf(list []*segment, o Offset) int {
	if n := len(list) - 1; o >= list[n].base {
		return n // the tail, where most reads are
	}
	return max(0, sort.Search(len(list), func(i int) bool { return list[i].base > o })-1)
}

// isGone tells that a failed read is due to truncation or deletion meanwhile.
func (l *Log) isGone(s *segment) bool {
	for _, t := range *l.segments.Load() {
		if t == s {
			return false
		}
	}
	return true
}

// slice cuts the range out of one segment, which is pinned and becomes the
// slice's unless it is empty. It returns nil if the segment has nothing at or
// above from.
func (l *Log) slice(known *hints, seg *segment, next, from Offset, most int, limit Offset, atLeastOne bool) (*Slice, error) {
	f, err := seg.file()
	if err != nil {
		return nil, err
	}
	first, size := from, 0
	pos, ok := known.get(from, seg)
	if !ok && from == seg.base {
		pos, ok = 0, seg.size.Load() > 0
	}
	if !ok {
		e, found, err := seg.locate(from)
		if err != nil || !found {
			return nil, err
		}
		pos, size, first = e.pos, e.size, min(e.base, from)
		if e.base == from {
			known.put(from, seg, pos)
		}
		if e.base >= limit {
			return &Slice{First: from}, nil // a gap up to the limit
		}
	}
	end, err := l.limitPosition(seg, next, limit, known)
	if err != nil {
		return nil, err
	}
	n := end - pos
	if n <= 0 {
		return nil, nil
	}
	if n > int64(most) {
		if size, err = firstSize(f, pos, size); err != nil {
			return nil, err
		}
		if size > most && !atLeastOne {
			return &Slice{First: from}, nil
		}
		n = min(end-pos, int64(max(most, size)))
	}
	return &Slice{First: first, segment: seg, file: f, pos: pos, size: int(n)}, nil
}

// limitPosition is where the bytes below limit end in this segment.
func (l *Log) limitPosition(seg *segment, next, limit Offset, known *hints) (int64, error) {
	if limit >= next {
		return seg.size.Load(), nil // a closed segment, whole
	}
	if pos, ok := known.get(limit, seg); ok {
		return pos, nil
	}
	e, _, err := seg.locate(limit)
	if err != nil {
		return 0, err
	}
	// Not found is right as well: limit is at or below End, so all bytes below
	// it were there at the look-up, and e.pos is where they ended then.
	known.put(limit, seg, e.pos)
	return e.pos, nil
}

// firstSize is the size of the batch at pos, unless it is known.
func firstSize(f *segmentFile, pos int64, known int) (int, error) {
	if known > 0 {
		return known, nil
	}
	var head [batch.LogOverhead]byte
	if err := readFull(f, head[:], pos); err != nil {
		return 0, fmt.Errorf("%s: read at %d: %w", f.segment.path(logSuffix), pos, err)
	}
	return batch.LogOverhead + int(int32(binary.BigEndian.Uint32(head[8:]))), nil
}
