package engine

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"millrace/engine/index"
	"millrace/engine/vfs"
)

// Suffixes of a segment's files, and of files on their way out.
const (
	logSuffix      = ".log"
	indexSuffix    = ".index"
	timeSuffix     = ".timeindex"
	txnSuffix      = ".txnindex"
	snapshotSuffix = ".snapshot"
	deletedSuffix  = ".deleted" // unlinked after DeleteDelay, or at the next open
	cleanedSuffix  = ".cleaned" // behind the others: compaction writes it; removed at the next open
	swapSuffix     = ".swap"    // behind the others: compaction has written it, and the next open puts it in its place
	againSuffix    = ".again"   // for a moment, in recovery after a failed sync
	cutSuffix      = ".cut"     // taken out by recovery and kept for a person to look at
)

// baseName is a segment's file name without suffix.
func baseName(base Offset) string { return fmt.Sprintf("%020d", int64(base)) }

// folder is where a log's files are; it is shared by the log and its segments,
// since a log that is deleted is renamed while readers still use it.
type folder struct {
	fs     vfs.FS
	log    *Log         // whose segments these are
	files  *FileSet     // bounds their open files; nil: nobody does
	moving sync.RWMutex // held for writing while the folder is renamed
	path   atomic.Pointer[string]
	away   atomic.Bool // it is being deleted, or is gone: its names are owed to nobody
}

func newFolder(fsys vfs.FS, dir string, l *Log, files *FileSet) *folder {
	f := &folder{fs: fsys, log: l, files: files}
	f.path.Store(&dir)
	return f
}

func (f *folder) dir() string                               { return *f.path.Load() }
func (f *folder) file(name string) string                   { return filepath.Join(f.dir(), name) }
func (f *folder) forIndexes() vfs.FS                        { return indexFS{f.fs, f} }
func (f *folder) open(n string, flag int) (vfs.File, error) { return f.fs.OpenFile(f.file(n), flag) }

// segment is one file of a Log and the two sparse indexes that find positions
// in it. It knows bytes and whole batches; policy (when to roll, sync, delete)
// is log_roll.go's and retention.go's.
type segment struct {
	base    Offset // fixed at open
	id      int64  // unique in the process, from 1 (hints)
	folder  *folder
	indexes *index.Set

	index *index.Offset // never nil; what they hold is checked at every use
	times *index.Time

	w struct { // the holder of Log.mu
		sinceIndex int64 // bytes appended since the last index entry
		indexRoom  int   // entries that still fit, so that asking costs nothing
		timeRoom   int
		indexedTs  int64     // timestamp of the last time index entry
		firstTs    int64     // largest timestamp of the first batch; -1 none
		created    time.Time // when this segment was made or opened
		rollAfter  time.Duration
	}

	size atomic.Int64 // L3: all bytes below size are whole, checked batches; stored after the write

	// The largest timestamp of all batches and the last offset of the batch
	// that brought it. Two atomics, not one pair: a reader that catches the
	// new timestamp with the old offset finds an answer that was true a
	// moment before. tsKnown is false until a sealed segment is first asked.
	maxTs    atomic.Int64
	maxTsOff atomic.Int64
	tsKnown  atomic.Bool
	warned   bool // F018 was reported; retention's goroutine only

	left atomic.Bool  // the Log has given up its own pin
	pins atomic.Int32 // 1 for the Log itself plus one per Slice and sync; a pin taken at zero fails; the drop to zero closes file

	handle struct {
		sync.Mutex
		file    *segmentFile // nil until first used, and when it was closed for others (open_files.go)
		evicted bool         // it was
	}
	open atomic.Pointer[segmentFile] // the same, for those who hold a pin or Log.mu
	slot int                         // one above its place in FileSet.open; guarded by that set

	// closedAt is the end of the segment's offsets when its file was last closed with
	// unsynced bytes. Until all below is synced a sync of the file does not do.
	closedAt atomic.Int64
}

// segmentFile is a segment's open file. It remembers whose it is, so that the
// journal's release finds the pin.
type segmentFile struct {
	vfs.File
	segment *segment
	used    atomic.Bool // since the hand of the FileSet last passed

	syncing struct {
		sync.Mutex
		failed error // of the first failed sync
	}
}

// Sync is the file's, one at a time, and never again after a failure. The system
// reports a failed write-back once, and takes the pages for clean from then on.
// If a round and a background pass sync one file side by side, the pass may be
// told of the failure while the round is told that all is well, and acks.
func (f *segmentFile) Sync() error {
	f.syncing.Lock()
	defer f.syncing.Unlock()
	if f.syncing.failed == nil {
		f.syncing.failed = f.File.Sync()
	}
	return f.syncing.failed
}

var segmentIDs atomic.Int64

// BeginSync and EndSync are Sync for a batch (vfs.SyncGuard). Trying only: two batches that waited for each other's files would wait for ever.
func (f *segmentFile) BeginSync() (vfs.File, bool) {
	if !f.syncing.TryLock() {
		return nil, false
	}
	if f.syncing.failed != nil {
		f.syncing.Unlock()
		return nil, false
	}
	return f.File, true
}

func (f *segmentFile) EndSync(err error) error {
	defer f.syncing.Unlock()
	f.syncing.failed = err
	return err
}

// WriteOut is the file's; a failure is that of a sync.
func (f *segmentFile) WriteOut(off, n int64, wait bool) error {
	f.syncing.Lock()
	defer f.syncing.Unlock()
	if f.syncing.failed == nil {
		f.syncing.failed = f.File.WriteOut(off, n, wait)
	}
	return f.syncing.failed
}

func newSegment(base Offset, f *folder, ix *index.Set) *segment {
	s := &segment{base: base, id: segmentIDs.Add(1), folder: f, indexes: ix}
	s.pins.Store(1)
	s.maxTs.Store(-1)
	s.maxTsOff.Store(int64(base))
	s.w.firstTs, s.w.indexedTs = -1, -1
	return s
}

func (s *segment) name(suffix string) string { return baseName(s.base) + suffix }
func (s *segment) path(suffix string) string { return s.folder.file(s.name(suffix)) }

// createSegment makes an empty active segment. On error nothing is left behind.
func createSegment(base Offset, f *folder, ix *index.Set, c *Config) (*segment, error) {
	s := newSegment(base, f, ix)
	file, err := f.openFile(s.name(logSuffix), os.O_RDWR|os.O_CREATE|os.O_EXCL)
	if err != nil {
		return nil, fmt.Errorf("create segment: %w", err)
	}
	s.setFile(file)
	if c.Preallocate {
		if err := file.Preallocate(0, c.SegmentBytes); err != nil && !errors.Is(err, vfs.ErrUnsupported) {
			return nil, s.undone(fmt.Errorf("preallocate segment: %w", err))
		}
	}
	// What a crash may have left under these names belongs to no segment.
	f.fs.Remove(s.path(indexSuffix))
	f.fs.Remove(s.path(timeSuffix))
	if err := s.openIndexes(c, true); err != nil {
		return nil, s.undone(fmt.Errorf("create index: %w", err))
	}
	s.tsKnown.Store(true)
	return s, nil
}

// undoneError is a creation that failed half-way and was taken back, which the disk need not know yet.
type undoneError struct {
	error
	left error // nil, or why the segment's file is still there
}

func (e *undoneError) Unwrap() error { return e.error }

func (s *segment) undone(err error) error { return &undoneError{err, s.abandon()} }

// abandon undoes a creation that failed half-way. The error is that of removing the segment's file; indexes without one are no harm.
func (s *segment) abandon() (err error) {
	if s.index != nil {
		s.index.Discard()
	}
	if s.times != nil {
		s.times.Discard()
	}
	s.letGo()
	err = s.folder.fs.Remove(s.path(logSuffix))
	for _, suffix := range []string{indexSuffix, timeSuffix} {
		s.folder.fs.Remove(s.path(suffix))
	}
	return err
}

// loadSegment takes up an existing segment; nothing but its size is read.
func loadSegment(base Offset, f *folder, ix *index.Set, c *Config) (*segment, error) {
	s := newSegment(base, f, ix)
	info, err := f.fs.Stat(s.path(logSuffix))
	if err != nil {
		return nil, err
	}
	s.size.Store(info.Size)
	s.index = ix.DeferOffset(f.forIndexes(), s.path(indexSuffix), int64(base), c.IndexBytes, false)
	s.times = ix.DeferTime(f.forIndexes(), s.path(timeSuffix), int64(base), c.IndexBytes, false)
	return s, nil
}

// openIndexes opens both indexes for appending. Damaged ones are emptied and
// reported as index.ErrCorrupt: the caller fills them again.
func (s *segment) openIndexes(c *Config, active bool) error {
	fsys := s.folder.forIndexes()
	s.index = s.indexes.DeferOffset(fsys, s.path(indexSuffix), int64(s.base), c.IndexBytes, active)
	s.times = s.indexes.DeferTime(fsys, s.path(timeSuffix), int64(s.base), c.IndexBytes, active)
	if err := errors.Join(s.index.Load(), s.times.Load()); err != nil {
		return err
	}
	s.countRoom(c)
	return nil
}

// countRoom learns how many index entries still fit. Kafka keeps one time
// entry spare for the one that is written at the roll.
func (s *segment) countRoom(c *Config) {
	// The files keep the size that the setting had when they were opened: a larger one holds from the next segment on.
	s.w.indexRoom = min(c.IndexBytes/offsetEntryBytes, s.index.Limit()) - s.index.Entries()
	s.w.timeRoom = min(c.IndexBytes/timeEntryBytes, s.times.Limit()) - 1 - s.times.Entries()
	s.w.indexedTs = -1
	if ts, _, ok := s.times.Last(); ok {
		s.w.indexedTs = ts
	}
}

// pin keeps the file open and usable until unpin. It fails when the segment
// was given up and its last reader has gone: look for another one.
func (s *segment) pin() bool {
	for {
		n := s.pins.Load()
		if n == 0 {
			return false
		}
		if s.pins.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

func (s *segment) unpin() {
	switch n := s.pins.Add(-1); {
	case n == 0:
		s.closeFile()
	case n < 0:
		panic(fmt.Sprintf("engine: segment %d released once too often (pins %d)", s.base, n))
	}
}

// letGo gives up the Log's own pin, once.
func (s *segment) letGo() {
	if !s.left.Swap(true) {
		s.unpin()
	}
}

// file opens the segment's file at its first use, so that a start with many
// sealed segments opens none of them. The caller holds a pin or Log.mu, as long as
// it uses the file: without either it may be closed for another (FileSet).
func (s *segment) file() (*segmentFile, error) {
	if f := s.open.Load(); f != nil {
		if !f.used.Load() {
			f.used.Store(true)
		}
		return f, nil
	}
	s.handle.Lock()
	defer s.handle.Unlock()
	if s.handle.file == nil {
		f, err := s.folder.openFile(s.name(logSuffix), os.O_RDWR)
		if err != nil {
			return nil, fmt.Errorf("open segment: %w", err)
		}
		s.adopt(f)
	}
	return s.handle.file, nil
}

func (s *segment) setFile(f vfs.File) {
	s.handle.Lock()
	s.adopt(f)
	s.handle.Unlock()
}

func (s *segment) adopt(f vfs.File) {
	s.handle.file = &segmentFile{File: f, segment: s}
	s.handle.file.used.Store(true)
	s.open.Store(s.handle.file)
	s.folder.files.add(s)
}

// noteBatch brings timestamps and indexes up to date with a batch that begins
// at pos. The holder of Log.mu calls it for every batch, in order, as Kafka
// does: the entry is due *before* the batch that crosses the interval.
func (s *segment) noteBatch(pos int64, size int, last Offset, maxTs int64, interval int) error {
	if s.w.firstTs < 0 && pos == 0 {
		s.w.firstTs = maxTs
	}
	if maxTs > s.maxTs.Load() {
		s.maxTs.Store(maxTs)
		s.maxTsOff.Store(int64(last))
	}
	var err error
	if s.w.sinceIndex > int64(interval) {
		err = s.addEntry(last, pos)
		s.w.sinceIndex = 0
	}
	s.w.sinceIndex += int64(size)
	return err
}

func (s *segment) addEntry(last Offset, pos int64) error {
	// A full index is met only when one combined write brings several entries;
	// a missing entry only makes look-ups walk further.
	// An offset beyond an entry's 32 bits is met only in ready-made files (F005).
	if s.w.indexRoom <= 0 || last-s.base > maxOffsetSpan {
		return nil
	}
	if err := s.index.Append(int64(last), int32(pos)); err != nil {
		return err
	}
	s.w.indexRoom--
	if err := s.addTimeEntry(false); err != nil {
		return err
	}
	if s.index.Mapped() { // its entries outlive the process: without those of the other a recovery would make both again (timesReach)
		return s.times.Write()
	}
	return nil
}

// addTimeEntry enters the largest timestamp so far; atRoll may use the spare entry.
func (s *segment) addTimeEntry(atRoll bool) error {
	ts, off := s.maxTs.Load(), s.maxTsOff.Load()
	if off-int64(s.base) > maxOffsetSpan || ts <= s.w.indexedTs || ts < 0 || s.w.timeRoom <= 0 && !atRoll {
		return nil
	}
	if err := s.times.Append(ts, off); err != nil {
		return err
	}
	s.w.timeRoom--
	s.w.indexedTs = ts
	return nil
}

// indexFull tells that the next entry would not fit.
func (s *segment) indexFull() bool { return s.w.indexRoom <= 0 || s.w.timeRoom <= 0 }

// seal ends appending: the last time entry, and both indexes cut to what they
// hold. Errors cost no data, for an index can be made again.
func (s *segment) seal(preallocated bool) error {
	err := s.addTimeEntry(true)
	if preallocated {
		if f, ferr := s.file(); ferr == nil {
			err = errors.Join(err, f.Truncate(s.size.Load())) // gives back what was reserved
		}
	}
	return errors.Join(err, s.index.Seal(), s.times.Seal())
}

// close ends the log's own use of the segment. Readers that hold a pin go on.
func (s *segment) close(active bool) error {
	var err error
	if active {
		err = s.addTimeEntry(true)
	}
	err = errors.Join(err, s.index.Close(), s.times.Close())
	s.letGo()
	return err
}

// markDeleted gives the segment's files their last name. The caller has taken
// it out of the log's list. The file is opened first if somebody reads from
// the segment: no new descriptor can be had under the old name. It returns
// the new names, to be unlinked later.
func (s *segment) rename(suffix string) ([]string, error) {
	s.index.Discard()
	s.times.Discard()
	var names []string
	for _, kind := range []string{logSuffix, indexSuffix, timeSuffix, txnSuffix} {
		from := s.path(kind)
		err := s.folder.fs.Rename(from, from+suffix)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return names, err
		}
		names = append(names, s.name(kind)+suffix)
	}
	return names, nil
}
