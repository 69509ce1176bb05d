package index

import (
	"sync"

	"millrace/engine/vfs"
)

// Set bounds the live maps and the open files of all indexes opened through it.
// Linux allows 65,530 maps a process and touching gets slow long before; a file
// descriptor is scarcer still. When all places are taken, an index that was not
// used since the hand last passed gives its own up (the clock rule); if none was
// idle, the asking index goes without: it stays paged, or opens its file for one call.
//
// A nil Set has no bound: every active index is mapped, every file stays open.
type Set struct {
	mu    sync.Mutex
	max   int
	maps  ring
	files ring
}

// ring is a clock: places and a hand.
type ring struct {
	items []*table
	hand  int
}

// NewSet returns a set of at most max maps and max files.
func NewSet(max int) *Set { return &Set{max: max} }

// OpenOffset is the package's OpenOffset within the bounds of s.
func (s *Set) OpenOffset(fsys vfs.FS, path string, base int64, maxBytes int, active bool) (*Offset, error) {
	x := s.DeferOffset(fsys, path, base, maxBytes, active)
	return x, x.openNow(active)
}

// OpenTime is the package's OpenTime within the bounds of s.
func (s *Set) OpenTime(fsys vfs.FS, path string, base int64, maxBytes int, active bool) (*Time, error) {
	x := s.DeferTime(fsys, path, base, maxBytes, active)
	return x, x.openNow(active)
}

// DeferOffset is OpenOffset without any I/O, for a clean start: what is wrong with
// the file shows at the first use (Load, Append, Lookup, TruncateTo).
func (s *Set) DeferOffset(fsys vfs.FS, path string, base int64, maxBytes int, active bool) *Offset {
	return &Offset{newTable(s, &offsetLayout, fsys, path, base, maxBytes, active)}
}

// DeferTime is OpenTime without any I/O.
func (s *Set) DeferTime(fsys vfs.FS, path string, base int64, maxBytes int, active bool) *Time {
	return &Time{newTable(s, &timeLayout, fsys, path, base, maxBytes, active)}
}

// Maps and Files return how many are live, for metrics and tests.
func (s *Set) Maps() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.maps.items)
}

func (s *Set) Files() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.files.items)
}

// takeMap finds t, whose mu the caller holds, a place for a mapping. Another table
// gives up its own only if its lock is free: waiting for it could deadlock with a
// table that waits for Set.mu.
func (s *Set) takeMap(t *table) bool {
	if s == nil {
		return true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.take(&s.maps, t, (*table).slotOfMap, func(v *table) { _ = v.demote() }) // only munmap can fail, and only for a wrong address
}

func (s *Set) takeFile(t *table) bool {
	if s == nil {
		return true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.take(&s.files, t, (*table).slotOfFile, func(v *table) {
		v.file.Close()
		v.file = nil
	})
}

func (s *Set) dropMap(t *table)  { s.drop(t, (*table).slotOfMap) }
func (s *Set) dropFile(t *table) { s.drop(t, (*table).slotOfFile) }

func (t *table) slotOfMap(s *Set) (*ring, *int)  { return &s.maps, &t.mapSlot }
func (t *table) slotOfFile(s *Set) (*ring, *int) { return &s.files, &t.fileSlot }

type slotOf func(t *table, s *Set) (*ring, *int)

func (s *Set) take(r *ring, t *table, slot slotOf, evict func(*table)) bool {
	_, mine := slot(t, s)
	if *mine >= 0 {
		return true
	}
	if len(r.items) < s.max {
		*mine = len(r.items)
		r.items = append(r.items, t)
		return true
	}
	for range min(2*len(r.items), maxSweep) {
		r.hand = (r.hand + 1) % len(r.items)
		v := r.items[r.hand]
		if v.used.Swap(false) || !v.mu.TryLock() {
			continue
		}
		evict(v)
		v.mu.Unlock()
		_, theirs := slot(v, s)
		*theirs, *mine = -1, r.hand
		r.items[r.hand] = t
		return true
	}
	return false
}

func (s *Set) drop(t *table, slot slotOf) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	r, mine := slot(t, s)
	i := *mine
	if i < 0 {
		return
	}
	end := len(r.items) - 1
	moved := r.items[end]
	r.items[i] = moved
	_, theirs := slot(moved, s)
	*theirs = i
	*mine = -1
	r.items[end] = nil
	r.items = r.items[:end]
}
