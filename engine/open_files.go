package engine

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"

	"millrace/engine/index"
	"millrace/engine/vfs"
)

// FileSet bounds the open segment files of all logs that are opened through it. A
// file is opened when it is first used. When all places are taken, one that nobody
// uses is closed, and its next use opens it again. Which one is drawn by lot, with a
// second chance for those that were used since they were last drawn: where all files
// are used in turn and a few have no place, the clock rule would close each of them
// just before its turn. For the same case most newcomers are closed for the next one
// (bimodal insertion), or each of them would cost another file its place: with places
// for seven of eight files used in turn, one append in seven opens a file instead of one in four.
//
// Closing a file must not lose what the system has to say of it. It tells a failed
// write-back to the descriptors that were open at the time: one opened later may sync
// without an error what was lost before. So what was unsynced when a file was closed
// is synced by a sync of the whole file system (segment.closedAt), which goes through a
// descriptor that is never closed: the directory's lock (vfs.FS.SyncFS). A file whose
// sync has failed stays open.
//
// Files that are being read, written or synced stay in any case: no append and no read
// fails, or waits for a disk, because of the set.
//
// Locks: it comes after Log.mu and a segment's handle, and takes those of other logs
// and segments only if they are free. Using an open file takes none of its.
type FileSet struct {
	max int

	mu   sync.Mutex
	open []*segment // with an open file

	counts struct{ opened, reopened, evicted, unsynced atomic.Int64 }
}

// FileStats are the figures of a FileSet. All but Open and Max count since the start.
type FileStats struct {
	Open, Max int   // open segment files, and how many are to be open at most
	Opened    int64 // files opened
	Reopened  int64 // of them, those that had been closed to stay within Max
	Evicted   int64 // files closed for that
	Unsynced  int64 // of them, those with bytes that were not synced yet
}

// NewFileSet returns a set of about max files, at least one.
func NewFileSet(max int) *FileSet {
	if max < 1 {
		max = 1
	}
	return &FileSet{max: max}
}

// Stats takes the set's lock for a moment.
func (f *FileSet) Stats() FileStats {
	f.mu.Lock()
	open := len(f.open)
	f.mu.Unlock()
	c := &f.counts
	return FileStats{open, f.max, c.opened.Load(), c.reopened.Load(), c.evicted.Load(), c.unsynced.Load()}
}

// FileStats returns the figures of the Store's open segment files.
func (s *Store) FileStats() FileStats { return s.files.Stats() }

// openFile opens a segment's file.
func (f *folder) openFile(name string, flag int) (vfs.File, error) {
	f.moving.RLock()
	defer f.moving.RUnlock()
	file, err := f.open(name, flag)
	if vfs.NoDescriptors(err) {
		return nil, fmt.Errorf("%w: RLIMIT_NOFILE is %d (ulimit -n, LimitNOFILE= of the service); it is tried again at the next use", err, openFileLimit())
	}
	return file, err
}

// relieved is fsys, which closes files of the set, and of indexes, where it finds no descriptor.
func (f *FileSet) relieved(fsys vfs.FS, indexes *index.Set) vfs.FS {
	return vfs.Relieved(fsys, func() bool { return f.relieve(relievedFiles)+indexes.Relieve(relievedFiles) > 0 })
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
	defer f.mu.Unlock()
	f.open = append(f.open, s)
	s.slot = len(f.open)
	if over := len(f.open) - f.max; over > 0 {
		f.evict(min(over, 2)) // two for one brings it back to its size after all were in use
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
	end := len(f.open) - 1
	moved := f.open[end]
	f.open[s.slot-1], moved.slot = moved, s.slot
	f.open[end] = nil
	f.open, s.slot = f.open[:end], 0
}

// evict closes so many files, or fewer if none can be found. Caller holds mu.
func (f *FileSet) evict(want int) (closed int) {
	for try := range maxFileTries {
		if closed == want || len(f.open) == 0 {
			break
		}
		if try == 0 && len(f.open) > 1 && rand.IntN(stays) > 0 {
			if s := f.open[len(f.open)-2]; s.open.Load() != nil && s.evict(f) { // the newest but the one that asks
				closed++
				continue
			}
		}
		s := f.open[rand.IntN(len(f.open))]
		file := s.open.Load()
		if file == nil || file.used.Swap(false) && try < secondChances || !s.evict(f) {
			continue
		}
		closed++
	}
	return closed
}

// sealed closes the file of a segment that will not be written again if there are too many: a log
// that rolls holds its own lock, so that add could not choose this one, nor one that is being
// recovered. end is where the segment's offsets end. Caller holds Log.mu, or the log is not visible yet.
func (f *FileSet) sealed(s *segment, end Offset) {
	if f == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.open) > f.max && s.pins.Load() == 1 {
		s.closeIdle(f, end)
	}
}

// relieve closes up to n files, however few are open.
func (f *FileSet) relieve(n int) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	closed := 0
	for range n {
		closed += f.evict(1)
	}
	return closed
}

// evict closes the file if nobody uses it. Caller holds f.mu.
func (s *segment) evict(f *FileSet) bool {
	l := s.folder.log
	if s.pins.Load() != 1 || !l.mu.TryLock() {
		return false
	}
	defer l.mu.Unlock()
	// Where an operation was left half-way the name may be another's: such a log keeps what it has open.
	if l.refusal() != nil || !l.lists(s) {
		return false
	}
	return s.closeIdle(f, l.endOf(s))
}

// closeIdle closes the file unless somebody has pinned the segment, whose offsets end at end. Caller holds Log.mu, so
// there is nobody who uses it without a pin, and f.mu. Who pins it from now on either is seen
// here, or sees that there is no open file, and then waits for the handle (segment.file).
func (s *segment) closeIdle(f *FileSet, end Offset) bool {
	if !s.handle.TryLock() {
		return false
	}
	defer s.handle.Unlock()
	file := s.handle.file
	if file == nil || !file.syncing.TryLock() {
		return false
	}
	failed := file.syncing.failed
	file.syncing.Unlock()
	if failed != nil {
		return false
	}
	l := s.folder.log
	unsynced := l.RecoveryPoint() < end
	if unsynced {
		raise(&s.closedAt, int64(end)) // before open: see SyncTargets
	}
	s.open.Store(nil)
	if s.pins.Load() != 1 {
		s.open.Store(file)
		return false
	}
	file.Close()
	s.handle.file, s.handle.evicted = nil, true
	f.remove(s)
	f.counts.evicted.Add(1)
	if unsynced {
		f.counts.unsynced.Add(1)
	}
	return true
}

// wholeSync stands for files that were closed with unsynced bytes: its sync is that of
// their file system.
type wholeSync struct {
	vfs.File // only Sync and Dirty are called
	home     *home
}

// Sync is vfs.File's.
func (w wholeSync) Sync() error { return w.home.folder.fs.SyncFS(w.home.journal.DataDir()) }

// Dirty is vfs.File's: of files that are closed nothing can be written out piece by piece.
func (w wholeSync) Dirty() (int64, error) { return 0, nil }

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

// syncNames syncs the names in the folder, which keeps its own meanwhile: a sync under a name that a deletion
// has just taken away would fail, and take the directory offline.
func (f *folder) syncNames() error {
	f.moving.RLock()
	defer f.moving.RUnlock()
	if f.away.Load() {
		return nil
	}
	return f.fs.SyncDir(f.dir())
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
