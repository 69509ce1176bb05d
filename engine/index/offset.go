package index

import (
	"encoding/binary"
	"fmt"
	"math"

	"millrace/engine/vfs"
)

// Offset is the offset index of one segment: from the last offset of a batch to
// the byte position at which that batch begins.
type Offset struct{ table }

var offsetLayout = layout{
	size: 8,
	key:  func(e []byte) int64 { return int64(int32(binary.BigEndian.Uint32(e))) },
	off:  func(e []byte, base int64) int64 { return base + int64(int32(binary.BigEndian.Uint32(e))) },
	bad: func(prev, cur []byte) string {
		rel, pos := int32(binary.BigEndian.Uint32(cur)), int32(binary.BigEndian.Uint32(cur[4:]))
		if rel < 0 || pos < 0 {
			return fmt.Sprintf("offset +%d at position %d is negative", rel, pos)
		}
		if prev == nil {
			return ""
		}
		prevRel, prevPos := int32(binary.BigEndian.Uint32(prev)), int32(binary.BigEndian.Uint32(prev[4:]))
		if rel <= prevRel || pos <= prevPos {
			return fmt.Sprintf("offset +%d at position %d does not follow +%d at %d", rel, pos, prevRel, prevPos)
		}
		return ""
	},
}

// OpenOffset opens the offset index of the segment with the given base offset.
// An active one is created if missing, checked at once, and grows to at most
// maxBytes; a sealed one is not touched before its first look-up. The index is
// returned also with an error that wraps ErrCorrupt: Reset it and append anew.
//
// An index that ends early, or is empty, is well-formed: only the owner, who knows
// the segment's size, can tell that entries are missing (compare with Last).
func OpenOffset(fsys vfs.FS, path string, base int64, maxBytes int, active bool) (*Offset, error) {
	return (*Set)(nil).OpenOffset(fsys, path, base, maxBytes, active)
}

// Append adds one entry: the last offset of a batch and the position of its first
// byte. Both must lie above those of the last entry. ErrFull asks for a roll; an
// error from a full disk leaves the index as it was.
func (x *Offset) Append(off int64, pos int32) error {
	rel := off - x.base
	if rel < 0 || rel > math.MaxInt32 {
		return &OrderError{File: x.Path(), Last: x.base, New: off}
	}
	var e entry
	binary.BigEndian.PutUint32(e[:], uint32(rel))
	binary.BigEndian.PutUint32(e[4:], uint32(pos))
	return x.append(e, false)
}

// Lookup returns the largest entry at or below off, or (base, 0) if there is none.
// One pread at most, but for the first look-up in a deferred or sealed index,
// which reads and checks all of it.
func (x *Offset) Lookup(off int64) (entryOff int64, pos int32, err error) {
	e, ok, err := x.find(off - x.base)
	if !ok {
		return x.base, 0, err
	}
	entryOff, pos = x.decode(e)
	return entryOff, pos, nil
}

// Last returns the last entry, or (base, 0, false) of an empty index or one that cannot be read.
func (x *Offset) Last() (off int64, pos int32, ok bool) {
	e, ok := x.lastEntry()
	if !ok {
		return x.base, 0, false
	}
	off, pos = x.decode(e)
	return off, pos, true
}

func (x *Offset) decode(e entry) (int64, int32) {
	return x.base + int64(int32(binary.BigEndian.Uint32(e[:]))), int32(binary.BigEndian.Uint32(e[4:]))
}

// Full tells that no entry can be added.
func (x *Offset) Full() bool { return x.entries() >= x.limit }

// TruncateTo drops every entry at or above off, synced. A sealed index becomes active again.
func (x *Offset) TruncateTo(off int64) error { return x.truncate(off) }
