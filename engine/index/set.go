package index

import (
	"sync"

	"millrace/engine/vfs"
)

// Set bounds the live maps and the open files of all indexes opened through it.
// Linux allows 65,530 maps a process and touching gets slow long before; a file
// descriptor is scarcer still. When all maps are taken, an index goes without: it
// stays paged, which costs appends no more. When all files are, an index that was
// not used since the hand last passed gives its own up (the clock rule); if none
// was idle, the asking index opens its file for one call.
//
// A nil Set has no bound: no index goes without a map, and every file stays open.
type Set struct {
	mu    sync.Mutex
	max   int
	maps  int
	files []*table // a clock: places
	hand  int      // and a hand
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
	return s.maps
}

func (s *Set) Files() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.files)
}

// takeMap gives t, whose mu the caller holds, one of the places for mappings, if one is free.
func (s *Set) takeMap(t *table) bool {
	if s == nil {
		return true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !t.hasMap && s.maps < s.max {
		t.hasMap = true
		s.maps++
	}
	return t.hasMap
}

// mapsLeft tells whether takeMap might succeed, for who has work to do before it.
func (s *Set) mapsLeft() bool {
	if s == nil {
		return true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.maps < s.max
}

func (s *Set) dropMap(t *table) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if t.hasMap {
		t.hasMap = false
		s.maps--
	}
}

// takeFile finds t, whose mu the caller holds, a place for an open file. Another table
// gives up its own only if its lock is free: waiting for it could deadlock with a
// table that waits for Set.mu.
func (s *Set) takeFile(t *table) bool {
	if s == nil {
		return true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if t.fileSlot >= 0 {
		return true
	}
	if len(s.files) < s.max {
		t.fileSlot = len(s.files)
		s.files = append(s.files, t)
		return true
	}
	for range min(2*len(s.files), maxSweep) {
		s.hand = (s.hand + 1) % len(s.files)
		v := s.files[s.hand]
		if v.used.Swap(false) || !v.closeIdle() {
			continue
		}
		v.fileSlot, t.fileSlot = -1, s.hand
		s.files[s.hand] = t
		return true
	}
	return false
}

func (s *Set) dropFile(t *table) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.remove(t)
}

// Relieve closes up to n files that nobody is using, and says how many: for who finds no descriptor. They are opened again when they are needed.
func (s *Set) Relieve(n int) (closed int) {
	if s == nil {
		return 0
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := len(s.files) - 1; i >= 0 && closed < n; i-- {
		if v := s.files[i]; v.closeIdle() {
			s.remove(v)
			closed++
		}
	}
	return closed
}

// closeIdle closes the file of t, which has a place, unless somebody is using it. Caller holds Set.mu.
func (t *table) closeIdle() bool {
	if !t.mu.TryLock() {
		return false
	}
	defer t.mu.Unlock()
	t.file.Close()
	t.file = nil
	return true
}

// remove gives up t's place for a file. Caller holds mu.
func (s *Set) remove(t *table) {
	i := t.fileSlot
	if i < 0 {
		return
	}
	end := len(s.files) - 1
	moved := s.files[end]
	s.files[i], s.files[end] = moved, nil
	moved.fileSlot, t.fileSlot = i, -1
	s.files = s.files[:end]
}
