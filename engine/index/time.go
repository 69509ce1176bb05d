package index

import (
	"encoding/binary"
	"fmt"
	"math"

	"millrace/engine/vfs"
)

// Time is the time index of one segment: from a timestamp (milliseconds) to the
// last offset of the batch that first reached it.
type Time struct{ table }

var timeLayout = layout{
	size: 12,
	key:  func(e []byte) int64 { return int64(binary.BigEndian.Uint64(e)) },
	off:  func(e []byte, base int64) int64 { return base + int64(int32(binary.BigEndian.Uint32(e[8:]))) },
	bad: func(prev, cur []byte) string {
		ts, rel := int64(binary.BigEndian.Uint64(cur)), int32(binary.BigEndian.Uint32(cur[8:]))
		if ts < 0 || rel < 0 {
			return fmt.Sprintf("timestamp %d of offset +%d is negative", ts, rel)
		}
		if prev == nil {
			return ""
		}
		prevTS, prevRel := int64(binary.BigEndian.Uint64(prev)), int32(binary.BigEndian.Uint32(prev[8:]))
		if ts <= prevTS || rel < prevRel {
			return fmt.Sprintf("timestamp %d of offset +%d does not follow %d of +%d", ts, rel, prevTS, prevRel)
		}
		return ""
	},
}

// OpenTime opens the time index of the segment with the given base offset; see OpenOffset.
func OpenTime(fsys vfs.FS, path string, base int64, maxBytes int, active bool) (*Time, error) {
	return (*Set)(nil).OpenTime(fsys, path, base, maxBytes, active)
}

// Append adds one entry; nothing happens if ts is not above the last one's.
func (x *Time) Append(ts, off int64) error {
	rel := off - x.base
	if rel < 0 || rel > math.MaxInt32 {
		return &OrderError{File: x.Path(), Last: x.base, New: off}
	}
	if ts < 0 { // records without a time
		return nil
	}
	var e entry
	binary.BigEndian.PutUint64(e[:], uint64(ts))
	binary.BigEndian.PutUint32(e[8:], uint32(rel))
	return x.append(e, true)
}

// Lookup returns the largest entry with a timestamp at or below ts, or (-1, base)
// if there is none: no record before that entry's offset has a later timestamp.
func (x *Time) Lookup(ts int64) (entryTS, off int64, err error) {
	e, ok, err := x.find(ts)
	if !ok {
		return -1, x.base, err
	}
	entryTS, off = x.decode(e)
	return entryTS, off, nil
}

// Last returns the last entry, or (-1, base, false) of an empty index or one that cannot be read.
func (x *Time) Last() (ts, off int64, ok bool) {
	e, ok := x.lastEntry()
	if !ok {
		return -1, x.base, false
	}
	ts, off = x.decode(e)
	return ts, off, true
}

func (x *Time) decode(e entry) (int64, int64) {
	return int64(binary.BigEndian.Uint64(e[:])), x.base + int64(int32(binary.BigEndian.Uint32(e[8:])))
}

// Full tells that no regular entry can be added; one spare is kept for the entry at the roll.
func (x *Time) Full() bool { return x.entries() >= x.limit-1 }

// TruncateTo drops every entry for an offset at or above off, synced. A sealed index becomes active again.
func (x *Time) TruncateTo(off int64) error { return x.truncate(off) }
