package store

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"millrace/coord/zk/tree"
	"millrace/engine"
	"millrace/engine/batch"
)

const (
	prefix    = "snapshot."
	tmpSuffix = ".tmp"
)

func (s *Store) fileOf(offset int64) string {
	return filepath.Join(s.o.Dir, fmt.Sprintf("%s%020d", prefix, offset))
}

// recover brings the tree to the state of the last transaction in the log.
func (s *Store) recover() error {
	if err := s.makeDir(); err != nil {
		return err
	}
	offsets, err := s.list()
	if err != nil {
		return err
	}
	gap := &GapError{Dir: s.log.Dir(), Start: s.log.Start(), End: s.log.End(), Snapshot: -1}
	if n := len(offsets); n > 0 && offsets[n-1] > int64(gap.End) {
		gap.Snapshot = offsets[n-1]
		return gap
	}
	from := int64(-1)
	for i := len(offsets) - 1; i >= 0 && s.tree == nil; i-- {
		t, err := s.load(offsets[i])
		var damage *DamageError
		var bad *tree.SnapshotError
		switch {
		case err == nil:
			if s.tree, from = t, offsets[i]; from < int64(gap.Start) {
				gap.Snapshot = from
				return gap
			}
			s.snapshots.kept = append(s.snapshots.kept, offsets[:i+1]...)
		case errors.As(err, &damage), errors.As(err, &bad):
			s.o.Logger.Warn("a snapshot is damaged; an older one is tried", "error", err)
			gap.Damaged = errors.Join(gap.Damaged, err)
		default:
			return err // the disk does not answer: that says nothing about the snapshot
		}
	}
	if s.tree == nil {
		if gap.Start > 0 {
			return gap // never an empty tree
		}
		s.tree, from = tree.New(), 0
	}
	return s.replay(from)
}

func (s *Store) makeDir() error {
	if err := s.o.FS.MkdirAll(s.o.Dir); err != nil {
		return err
	}
	return s.o.FS.SyncDir(filepath.Dir(s.o.Dir))
}

// list returns the offsets of all snapshots, ascending, and removes unfinished ones.
func (s *Store) list() (offsets []int64, _ error) {
	entries, err := s.o.FS.ReadDir(s.o.Dir)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		number, ok := strings.CutPrefix(e.Name, prefix)
		if !ok || e.IsDir {
			continue
		}
		if strings.HasSuffix(number, tmpSuffix) {
			if err := s.o.FS.Remove(filepath.Join(s.o.Dir, e.Name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return nil, err
			}
			continue
		}
		if n, err := strconv.ParseInt(number, 10, 64); err == nil && n >= 0 {
			offsets = append(offsets, n)
		}
	}
	slices.Sort(offsets)
	return offsets, nil
}

func (s *Store) load(offset int64) (*tree.Tree, error) {
	r, err := openFile(s.o.FS, s.fileOf(offset))
	if err != nil {
		return nil, err
	}
	defer r.f.Close()
	if r.offset != offset {
		return nil, r.damage("it is the snapshot before transaction %d", r.offset)
	}
	t, err := tree.LoadSnapshot(r)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", r.f.Name(), err)
	}
	return t, nil
}

// replay applies what the log has from a record on.
func (s *Store) replay(from int64) error {
	var buf []byte
	next, end := from, int64(s.log.End())
	for next < end {
		slice, err := s.log.Read(engine.Offset(next), readBytes, engine.Offset(end), true)
		if err != nil {
			return err
		}
		if n := slice.Size(); cap(buf) < n {
			buf = make([]byte, n)
		}
		b := buf[:slice.Size()]
		err = slice.ReadInto(b)
		slice.Release()
		if err != nil {
			return err
		}
		before := next
		if next, err = s.replayBatches(b, next); err != nil {
			return err
		}
		if next == before {
			return s.corrupt(next, "a transaction", "none")
		}
	}
	s.commit.next = next
	s.commit.txns = int(next - from)
	return nil
}

// replayBatches applies the whole batches at the front of b, from record next on.
func (s *Store) replayBatches(b []byte, next int64) (int64, error) {
	for len(b) > 0 {
		size, err := batch.Split(b)
		if errors.Is(err, batch.ErrShort) {
			break // the read was cut here
		}
		if err != nil {
			return next, err
		}
		if _, err := batch.CheckStored(b[:size]); err != nil {
			return next, fmt.Errorf("%s: transaction %d: %w", s.log.Dir(), next, err)
		}
		for r, err := range batch.Records(b[:size]) {
			switch {
			case err != nil:
				return next, err
			case r.Offset < next:
				continue // the snapshot ends within a batch
			case r.Offset > next:
				return next, s.corrupt(next, fmt.Sprintf("transaction %d", next), fmt.Sprintf("transaction %d", r.Offset))
			}
			x, err := tree.ParseTxn(r.Value)
			if err != nil {
				return next, s.corrupt(next, "a transaction", err.Error())
			}
			// C2: what was acknowledged follows what was before; nothing comes twice.
			if x.Zxid <= s.tree.Zxid() {
				return next, s.corrupt(next, fmt.Sprintf("a zxid above 0x%x", s.tree.Zxid()), fmt.Sprintf("0x%x", x.Zxid))
			}
			s.tree.Apply(&x, nil)
			next++
		}
		b = b[size:]
	}
	return next, nil
}

func (s *Store) corrupt(record int64, want, got string) error {
	return &engine.CorruptError{File: fmt.Sprintf("%s, record %d", s.log.Dir(), record), Want: want, Got: got}
}
