package engine

import (
	"errors"
	"io/fs"
	"math"
	"path/filepath"
	"sync"

	"millrace/engine/index"
	"millrace/engine/vfs"
)

// unsyncedIndexes are the closed segments whose index files are not synced yet. A roll does
// not wait for them, and no round syncs them: they cost two more syncs and nobody is told
// anything that depends on them. But the recovery point on disk stays below the first of them
// (Log.checkpointPoint): a time index that has lost its last entries cannot be told from a
// whole one, and only what lies above the recovery point is made again after a crash. Who
// writes a checkpoint in its time syncs them first.
type unsyncedIndexes struct {
	syncing sync.Mutex // one at a time; taken before mu

	mu   sync.Mutex
	list []*segment // added to at its end, with Log.mu held; taken from at its beginning
}

func (u *unsyncedIndexes) add(s *segment) {
	u.mu.Lock()
	u.list = append(u.list, s)
	u.mu.Unlock()
}

// some returns those there are now.
func (u *unsyncedIndexes) some() []*segment {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.list
}

// done takes the first n out.
func (u *unsyncedIndexes) done(n int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.list = u.list[n:]; len(u.list) == 0 {
		u.list = nil
	}
}

// bound is the offset below which all closed segments have their indexes on disk.
func (u *unsyncedIndexes) bound() Offset {
	bound := Offset(math.MaxInt64)
	for _, s := range u.some() {
		bound = min(bound, s.base)
	}
	return bound
}

// checkpointPoint is the recovery point as a checkpoint file may tell it (L10).
func (l *Log) checkpointPoint() Offset {
	return max(0, min(l.RecoveryPoint(), l.unindexed.bound()))
}

// syncIndexes syncs what unindexed holds. A sync that fails takes the directory offline, as any
// other: the system takes what was lost for written. After another error it is tried again in its time.
func (l *Log) syncIndexes() error {
	u := &l.unindexed
	if len(u.some()) == 0 {
		return nil
	}
	u.syncing.Lock()
	defer u.syncing.Unlock()
	home := l.home.Load()
	for _, s := range u.some() {
		if err := s.syncIndexes(); err != nil {
			if errors.Is(err, index.ErrSync) && s.folder == home.folder {
				home.poison(l, err)
			}
			return l.storageError("sync indexes", err)
		}
		u.done(1)
	}
	return nil
}

// syncIndexes brings both indexes to the disk. One that is gone needs nothing: it is made again, or
// its segment was taken away.
func (s *segment) syncIndexes() error {
	for _, err := range []error{s.index.Flush(), s.times.Flush()} {
		if err != nil && !errors.Is(err, index.ErrClosed) && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// syncRecoveredIndexes syncs the indexes that recovery has made again: those of the segments above the recovery point.
func (l *Log) syncRecoveredIndexes() error {
	if l.synced.Load() >= l.end.Load() {
		return nil
	}
	list := *l.segments.Load()
	for _, s := range list[segmentOf(list, Offset(l.synced.Load())):] {
		if err := s.syncIndexes(); err != nil {
			return err
		}
	}
	return nil
}

// completeIndexes brings all indexes to the disk before a clean stop of a log that stands alone; a Store
// syncs the file system in the end. Caller holds mu.
func (l *Log) completeIndexes() error {
	if l.mu.dormant {
		return nil
	}
	active := l.mu.active
	return errors.Join(active.addTimeEntry(true), l.syncIndexes(), active.syncIndexes())
}

// indexesSynced tells that the whole file system was synced after the last change of an index.
func (l *Log) indexesSynced() {
	u := &l.unindexed
	u.syncing.Lock()
	defer u.syncing.Unlock()
	u.done(len(u.some()))
}

// indexFS is what the indexes of a folder's segments open their files with: in the folder, whatever its
// name is by now, and never between its old name and the new one. The path that they give is what they
// were told last; only its last part counts.
type indexFS struct {
	vfs.FS
	folder *folder
}

// OpenFile is vfs.FS's.
func (x indexFS) OpenFile(path string, flag int) (vfs.File, error) {
	return x.folder.openFile(filepath.Base(path), flag)
}

// Rename is vfs.FS's, within the folder.
func (x indexFS) Rename(from, to string) error {
	f := x.folder
	f.moving.RLock()
	defer f.moving.RUnlock()
	return f.fs.Rename(f.file(filepath.Base(from)), f.file(filepath.Base(to)))
}
