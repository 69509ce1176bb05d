package store

import (
	"errors"
	"io/fs"
	"path/filepath"
	"time"

	"millrace/engine"
)

// maybeSnapshot starts a snapshot if one is due and none is being taken.
func (s *Store) maybeSnapshot() {
	c := &s.commit
	if s.o.SnapshotEvery < 0 || c.txns < s.o.SnapshotEvery && c.bytes < s.o.SnapshotBytes {
		return
	}
	s.mu.Lock()
	if s.snapshots.running || s.closed() {
		s.mu.Unlock()
		return
	}
	s.snapshots.running = true
	s.snapshots.busy.Add(1)
	s.mu.Unlock()
	// One that fails is tried again when as much has come once more.
	c.txns, c.bytes = 0, 0
	at := c.next
	// Begun here, where no commit can come between: the tree is that before record at.
	take := s.begin(at)
	go func() { // ends when the snapshot is written, or with Close
		defer s.snapshots.busy.Done()
		if err := take(); err != nil && !errors.Is(err, errClosed) {
			s.o.Logger.Error("cannot take a snapshot; the log grows until one succeeds", "dir", s.o.Dir, "error", err)
		}
		s.mu.Lock()
		s.snapshots.running = false
		s.mu.Unlock()
	}()
}

// Snapshot takes one now and returns when it is on disk. It may not run at the same time
// as Commit, and waits for one that is being taken.
func (s *Store) Snapshot() error {
	s.snapshots.busy.Wait()
	s.commit.txns, s.commit.bytes = 0, 0
	return s.begin(s.commit.next)()
}

// begin fixes what the snapshot holds; the function it returns writes it.
func (s *Store) begin(offset int64) func() error {
	s.snapshots.Lock()
	s.mu.Lock()
	snap := s.tree.BeginSnapshot()
	s.mu.Unlock()
	return func() error {
		defer s.snapshots.Unlock()
		defer func() {
			s.mu.Lock()
			snap.Abandon()
			s.mu.Unlock()
		}()
		err := s.write(offset, func(buf []byte) ([]byte, bool) {
			s.mu.Lock()
			defer s.mu.Unlock()
			return snap.Step(stepBytes, buf)
		})
		if err != nil {
			return err
		}
		return s.prune(offset)
	}
}

// write makes the snapshot's file, which has its name only when all of it is synced.
func (s *Store) write(offset int64, step func(buf []byte) ([]byte, bool)) (err error) {
	name := s.fileOf(offset)
	w, err := createFile(s.o.FS, name+tmpSuffix, offset)
	if w != nil {
		defer func() {
			err = errors.Join(err, w.f.Close())
			if err != nil {
				s.o.FS.Remove(name + tmpSuffix) // the next start does it otherwise
			}
		}()
	}
	if err != nil {
		return err
	}
	var buf []byte
	for done := false; !done; {
		if s.closed() {
			return errClosed
		}
		// There are two buffers: the tree fills the one while the other is written.
		begun := time.Now()
		buf, done = step(buf)
		took := time.Since(begun)
		if err := w.write(buf); err != nil {
			return err
		}
		time.Sleep(took)
	}
	if err := w.finish(); err != nil {
		return err
	}
	if err := s.o.FS.Rename(name+tmpSuffix, name); err != nil {
		return err
	}
	return s.o.FS.SyncDir(s.o.Dir)
}

// prune removes snapshots that are too many and the log's prefix that none needs. The
// log goes last: should this be cut short, too much is left, never too little.
func (s *Store) prune(newest int64) error {
	kept := s.snapshots.kept
	if n := len(kept); n == 0 || kept[n-1] != newest {
		kept = append(kept, newest)
	}
	entries, err := s.list()
	if err != nil {
		return err
	}
	if drop := len(kept) - s.o.Keep; drop > 0 {
		kept = kept[drop:]
	}
	for _, offset := range entries {
		if offset < kept[0] {
			if err := s.o.FS.Remove(filepath.Clean(s.fileOf(offset))); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
	}
	if err := s.o.FS.SyncDir(s.o.Dir); err != nil {
		return err
	}
	s.snapshots.kept = kept
	if len(kept) < s.o.Keep {
		return nil // fewer than are wanted: the beginning of the log stands in for them
	}
	if err := s.log.SetStart(engine.Offset(kept[0])); err != nil {
		return err
	}
	_, err = s.log.Retain(s.o.Now())
	return err
}
