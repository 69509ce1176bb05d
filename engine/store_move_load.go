package engine

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"millrace/engine/checkpoint"
	"millrace/engine/vfs"
)

// moveNumberName counts a log's moves, so that of two folders of one log the newer is
// known. A log that never moved has none. Kafka passes over it.
const moveNumberName = ".millrace-moves"

func readMoveNumber(fsys vfs.FS, dir string) (int64, error) {
	path := filepath.Join(dir, moveNumberName)
	b, err := checkpoint.ReadFile(fsys, path)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64)
	if err != nil || n < 0 {
		return 0, &checkpoint.FormatError{File: path, Line: 1, Value: string(b), Want: "a number of moves"}
	}
	return n, nil
}

func writeMoveNumber(fsys vfs.FS, dir string, n int64) error {
	return checkpoint.WriteFile(fsys, filepath.Join(dir, moveNumberName), strconv.AppendInt(nil, n, 10))
}

// chooseMoved removes from what was found in all directories the folders that a log has
// moved away from (L8): of two with the same topic id the one with the higher number
// stays. Two that were not made by a move are left to the caller.
func (s *Store) chooseMoved(byDir [][]found) {
	newest := make(map[logKey]found)
	for i := range byDir {
		for _, f := range byDir[i] {
			other, twice := newest[f.key]
			if !twice {
				newest[f.key] = f
				continue
			}
			stays, goes, ok := s.newerOf(other, f)
			if !ok {
				continue
			}
			newest[f.key] = stays
			s.putAway(stays, goes)
			for j, d := range s.dirs {
				if d == goes.dir {
					byDir[j] = slices.DeleteFunc(slices.Clone(byDir[j]), func(x found) bool { return x.path == goes.path })
				}
			}
		}
	}
}

func (s *Store) newerOf(a, b found) (stays, goes found, ok bool) {
	idA, hasA, err := checkpoint.ReadTopicID(a.dir.fs, a.path)
	idB, hasB, errB := checkpoint.ReadTopicID(b.dir.fs, b.path)
	numberA, errC := readMoveNumber(a.dir.fs, a.path)
	numberB, errD := readMoveNumber(b.dir.fs, b.path)
	if err = errors.Join(err, errB, errC, errD); err != nil {
		s.log.Error("a log is in two folders, and which is the newer could not be read", "folder", a.path, "other", b.path, "error", err)
		return a, b, false
	}
	if hasA && hasB && idA != idB || numberA == numberB {
		return a, b, false
	}
	if numberA > numberB {
		return a, b, true
	}
	return b, a, true
}

// putAway gives a folder the name of a deleted one, durably, so that it does not come back
// when the other is deleted. It comes after the other's name is on disk: the last life may have ended before it had synced that.
func (s *Store) putAway(stays, f found) {
	if err := stays.dir.fs.SyncDir(stays.dir.path); err != nil {
		stays.dir.fail(fmt.Errorf("sync the name of a log that has moved: %w", err))
		return
	}
	away := filepath.Join(f.dir.path, deletedName(f.key))
	err := f.dir.fs.Rename(f.path, away)
	if err == nil {
		err = f.dir.fs.SyncDir(f.dir.path)
	}
	if err != nil {
		f.dir.fail(fmt.Errorf("put away a folder that its log has moved from: %w", err))
		return
	}
	s.removeLater(away, 0)
	s.log.Info("folder that its log has moved from is removed", "folder", f.path)
	delete(f.dir.mu.points, checkpoint.TopicPartition(f.key))
	delete(f.dir.mu.starts, checkpoint.TopicPartition(f.key))
	delete(f.dir.highMarks, checkpoint.TopicPartition(f.key))
}

// resumeMoves begins anew what the last life was moving. Of a copy that was begun only
// the wish is kept. It comes once all logs are there.
func (s *Store) resumeMoves() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, d := range s.dirs {
		for _, path := range d.futures {
			if d.offline() == nil {
				s.resumeMove(d, path)
			}
		}
		d.futures = nil
	}
}

func (s *Store) resumeMove(d *dataDir, path string) {
	l := s.logOfFuture(d, path)
	switch {
	case l == nil: // offline, damaged, deleted by another program: who knows what else there is of it
		s.log.Warn("folder is left alone: the log that it is a copy of is not here", "folder", path)
		return
	case s.dirOf(l) == d, s.moveOf(l) != nil:
		s.log.Info("copy of a log that is not moved there any more is removed", "folder", path)
	case s.dirOf(l).offline() != nil:
		s.log.Warn("folder is left alone: the directory of its log is offline", "folder", path)
		return
	default:
		if err := s.beginMove(l, d); err != nil { // before the old copy goes: its name is the wish
			s.log.Error("move not resumed", "log", l.Dir(), "to", d.path, "error", err)
			return
		}
	}
	s.removeLater(path, 0)
}

// logOfFuture finds the log that a folder is a copy of: by topic id, since a long name
// is cut; by name where a crash came before the id.
func (s *Store) logOfFuture(d *dataDir, path string) *Log {
	name := strings.TrimSuffix(filepath.Base(path), futureSuffix)
	name = name[:max(0, strings.LastIndexByte(name, '.'))]
	dash := strings.LastIndexByte(name, '-')
	number, err := strconv.ParseInt(name[dash+1:], 10, 32)
	id, ok, errID := checkpoint.ReadTopicID(d.fs, path)
	if err != nil || errID != nil {
		return nil
	}
	if !ok {
		key, _ := parseFolder(name)
		return s.Log(key.Topic, key.Partition)
	}
	for _, l := range *s.table.Load() {
		if l.partition == int32(number) && l.ID().Topic == id {
			return l
		}
	}
	return nil
}
