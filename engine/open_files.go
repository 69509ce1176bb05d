package engine

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"syscall"

	"millrace/engine/vfs"
)

// FileSet bounds the open segment files of all logs that are opened through it. A
// file is opened when it is first used. When all places are taken, one that was not
// used since the hand last passed is closed (the clock rule, as in index.Set); its
// next use opens it again.
//
// Only a file of which all is synced is closed. The system tells a failed write-back
// to the descriptors that were open at the time: one opened later may sync without an
// error what was lost before. So where all idle files hold unsynced bytes, a sync of
// some of them is asked for and meanwhile the set grows by a little (spare); beyond
// that one is synced on the spot. Files that are being read, written or synced stay
// in any case: no append and no read fails because of the set.
//
// Locks: it comes after Log.mu and a segment's handle, and takes those of other logs
// and segments only if they are free. Using an open file takes none of its.
type FileSet struct {
	max, spare int

	mu   sync.Mutex
	ring []*segment // with an open file
	hand int

	asked  atomic.Pointer[promise] // the newest round that was asked for
	counts struct{ opened, reopened, evicted, syncs atomic.Int64 }
}

// FileStats are the figures of a FileSet. All but Open and Max count since the start.
type FileStats struct {
	Open, Max int   // open segment files, and how many are to be open at most
	Opened    int64 // files opened
	Reopened  int64 // of them, those that had been closed to stay within Max
	Evicted   int64 // files closed for that
	Syncs     int64 // syncs that were done, or asked of the journal, so that files could be closed
}

// NewFileSet returns a set of about max files, at least one.
func NewFileSet(max int) *FileSet {
	if max < 1 {
		max = 1
	}
	return &FileSet{max: max, spare: max/64 + 1}
}

// Stats takes the set's lock for a moment.
func (f *FileSet) Stats() FileStats {
	f.mu.Lock()
	open := len(f.ring)
	f.mu.Unlock()
	c := &f.counts
	return FileStats{open, f.max, c.opened.Load(), c.reopened.Load(), c.evicted.Load(), c.syncs.Load()}
}

// FileStats returns the figures of the Store's open segment files.
func (s *Store) FileStats() FileStats { return s.files.Stats() }

// openFile opens a segment's file. When the system has no
// descriptor left, files are closed and it is tried once more.
func (f *folder) openFile(name string, flag int) (vfs.File, error) {
	f.moving.RLock()
	defer f.moving.RUnlock()
	file, err := f.open(name, flag)
	if !noDescriptors(err) {
		return file, err
	}
	if f.files != nil && f.files.relieve(relievedFiles) > 0 {
		if file, err = f.open(name, flag); !noDescriptors(err) {
			return file, err
		}
	}
	return nil, fmt.Errorf("%w: RLIMIT_NOFILE is %d (ulimit -n, LimitNOFILE= of the service); it is tried again at the next use", err, openFileLimit())
}

func noDescriptors(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)
}

// add enters a segment whose file was just opened, and closes another one if there are
// too many. Caller holds s.handle, and a pin or the log's lock.
func (f *FileSet) add(s *segment) {
	if f == nil {
		return
	}
	f.counts.opened.Add(1)
	if s.handle.evicted {
		f.counts.reopened.Add(1)
	}
	f.mu.Lock()
	s.slot = len(f.ring) + 1
	f.ring = append(f.ring, s)
	over := len(f.ring) - f.max
	var dirty []*segment
	if over > 0 {
		var closed int
		closed, dirty = f.sweep(min(over, 2)) // two for one brings it back after it has grown
		over -= closed
	}
	f.mu.Unlock()
	if over <= 0 {
		return
	}
	f.askSync(dirty)
	if over > f.spare {
		f.syncOne(dirty)
	}
}

// drop takes a segment out whose file is being closed. Caller holds s.handle.
func (f *FileSet) drop(s *segment) {
	if f == nil {
		return
	}
	f.mu.Lock()
	f.remove(s)
	f.mu.Unlock()
}

// remove is drop for those who hold mu as well.
func (f *FileSet) remove(s *segment) {
	if s.slot == 0 {
		return
	}
	end := len(f.ring) - 1
	moved := f.ring[end]
	f.ring[s.slot-1], moved.slot = moved, s.slot
	f.ring[end] = nil
	f.ring, s.slot = f.ring[:end], 0
}

// sweep moves the hand until so many files are closed, over all files twice at most. It also returns some
// that are idle and would have to be synced first. Caller holds mu.
func (f *FileSet) sweep(want int) (closed int, dirty []*segment) {
	for range min(2*len(f.ring), maxFileSweep) {
		if closed == want || len(f.ring) == 0 {
			break
		}
		f.hand++
		if f.hand >= len(f.ring) {
			f.hand = 0
		}
		s := f.ring[f.hand]
		file := s.open.Load()
		if file == nil || file.used.Load() {
			if file != nil {
				file.used.Store(false)
			}
			continue
		}
		switch s.evict(func() { f.remove(s) }) {
		case evicted:
			closed++
			f.counts.evicted.Add(1)
			f.hand-- // another one has come to its place
		case unsynced:
			if len(dirty) < askedFiles {
				dirty = append(dirty, s)
			}
		}
	}
	return closed, dirty
}

// relieve closes up to n files, however few are open.
func (f *FileSet) relieve(n int) int {
	f.mu.Lock()
	closed, _ := f.sweep(n)
	f.mu.Unlock()
	return closed
}

// askSync makes files part of the next rounds of their journals, unless a round that was
// asked for before is still to come. Nobody waits for it.
func (f *FileSet) askSync(segments []*segment) {
	if p := f.asked.Load(); p != nil && !p.kept() && p.home.poisoned.Load() == nil {
		return
	}
	for _, s := range segments {
		l := s.folder.log
		if !l.mu.TryLock() {
			continue
		}
		if l.refusal() == nil && l.synced.Load() < l.end.Load() {
			p := l.home.Load().addSync()
			l.mu.unflushed = 0
			f.asked.Store(&p)
			f.counts.syncs.Add(1)
		}
		l.mu.Unlock()
	}
}

// syncOne syncs one of the files here and now and closes it: the others are all unsynced or in use.
func (f *FileSet) syncOne(segments []*segment) {
	for _, s := range segments {
		l := s.folder.log
		if !l.mu.TryLock() {
			continue
		}
		done := false
		if file := s.open.Load(); file != nil && s.pins.Load() == 1 && l.refusal() == nil && l.lists(s) {
			f.counts.syncs.Add(1)
			if err := file.Sync(); err != nil {
				l.poison(err) // L4
			} else {
				done = s.closeIdle(func() { f.drop(s) })
			}
		}
		l.mu.Unlock()
		if done {
			f.counts.evicted.Add(1)
			return
		}
	}
}

type eviction int8

const (
	busy     eviction = iota // in use, or none of a log's present segments
	unsynced                 // idle, with bytes that no sync has reached
	evicted
)

// evict closes the file if nobody uses it and all of it is synced. drop is called with
// the handle held.
func (s *segment) evict(drop func()) eviction {
	l := s.folder.log
	if s.pins.Load() != 1 || !l.mu.TryLock() {
		return busy
	}
	defer l.mu.Unlock()
	// Where an operation was left half-way the name may be another's: such a log keeps what it has open.
	if l.refusal() != nil || !l.lists(s) {
		return busy
	}
	if l.RecoveryPoint() < l.endOf(s) {
		return unsynced
	}
	if s.closeIdle(drop) {
		return evicted
	}
	return busy
}

// closeIdle closes the file unless somebody has pinned the segment. Caller holds Log.mu, so
// there is nobody who uses it without a pin. Who pins it from now on either is seen here, or
// sees that there is no open file, and then waits for the handle (segment.file).
func (s *segment) closeIdle(drop func()) bool {
	if !s.handle.TryLock() {
		return false
	}
	defer s.handle.Unlock()
	file := s.handle.file
	if file == nil {
		return false
	}
	s.open.Store(nil)
	if s.pins.Load() != 1 {
		s.open.Store(file)
		return false
	}
	file.Close()
	s.handle.file, s.handle.evicted = nil, true
	drop()
	return true
}

// lists tells whether s is one of the log's segments now. Caller holds mu.
func (l *Log) lists(s *segment) bool {
	list := l.segments.Load()
	return list != nil && (*list)[segmentOf(*list, s.base)] == s
}

// endOf is where the offsets of a listed segment end. Caller holds mu.
func (l *Log) endOf(s *segment) Offset {
	list := *l.segments.Load()
	if i := segmentOf(list, s.base); i+1 < len(list) {
		return list[i+1].base
	}
	return l.End()
}

// closeFile gives the descriptor back. Nobody but the caller uses the segment.
func (s *segment) closeFile() {
	s.handle.Lock()
	defer s.handle.Unlock()
	if s.handle.file == nil {
		return
	}
	s.handle.file.Close()
	s.handle.file = nil
	s.open.Store(nil)
	s.folder.files.drop(s)
}

// closeFiles gives back what recovery has opened: a start over many logs that were not
// stopped cleanly would have each of them open at once, and all unsynced. The sync that ends
// recovery is one of the whole file system, which needs none of them. The log is not served yet.
func (l *Log) closeFiles() {
	for _, s := range *l.segments.Load() {
		s.closeFile()
	}
}

// rename gives the folder another name. Nobody opens a segment in it meanwhile.
func (f *folder) rename(to string) error {
	f.moving.Lock()
	defer f.moving.Unlock()
	err := f.fs.Rename(f.dir(), to)
	if err == nil {
		f.path.Store(&to)
	}
	return err
}
