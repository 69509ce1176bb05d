package engine

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"path/filepath"

	"millrace/engine/checkpoint"
)

// The last step of a move. For a crash at any point (L8):
//
//  1. The copy is made whole and synced, with a move number one above the log's. So are
//     start and recovery point in the new directory's checkpoints.
//  2. The copy's folder gets the log's name, and the new directory is synced.
//  3. The log goes on there. From here on it takes appends.
//  4. The old folder gets a name that a start removes, and the old journal forgets the log.
//
// Up to 2 a start finds the log and an unfinished copy. Between 2 and 4 it finds the log
// twice, and takes the one with the higher number (store_move_load.go). That one is
// whole, and the other has nothing more: nothing is appended between 1 and 3. Should 2
// fail, nobody knows what the disk will show: then the old folder gets a number above
// both, durably, before it takes an append, or takes none any more.

// prepareSwap does what can be done before the log is halted.
func (s *Store) prepareSwap(v *move) error {
	c := v.copier
	if err := c.sync(); err != nil {
		return err
	}
	if err := c.copyRest(); err != nil {
		return err
	}
	number, err := readMoveNumber(c.folder.fs, v.log.Dir())
	if err != nil {
		return err
	}
	if err := writeMoveNumber(c.folder.fs, c.folder.dir(), number+1); err != nil {
		return err
	}
	if err := v.checkpoint(); err != nil {
		return err
	}
	d := v.to
	mark := int64(s.o.HighWatermark(v.log))
	d.writing.Lock()
	defer d.writing.Unlock()
	if mark < 0 {
		return nil
	}
	d.highMarks[checkpoint.TopicPartition(v.log.key())] = mark
	return d.write(checkpoint.HighWatermarks, d.highMarks)
}

// checkpoint has the new directory's checkpoints tell of the log, if they do not yet.
func (v *move) checkpoint() error {
	key, d, l := checkpoint.TopicPartition(v.log.key()), v.to, v.log
	point, start := v.copier.end.Load(), int64(l.Start())
	if start <= int64((*l.segments.Load())[0].base) {
		start = 0
	}
	d.mu.Lock()
	_, there := d.mu.points[key]
	told := there && d.mu.starts[key] == start
	if !told || point < d.mu.points[key] { // a point that is too low costs a start some reading
		told, d.mu.points[key] = false, point
	}
	delete(d.mu.starts, key)
	if start > 0 {
		d.mu.starts[key] = start
	}
	d.mu.Unlock()
	if told {
		return nil
	}
	return d.checkpoint()
}

// swap lets the log go on in the copy, unless more than allowed bytes are left to copy.
func (s *Store) swap(v *move, allowed int64) (done bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := v.log
	if v.stopped.Load() || s.mu.closed {
		return false, errMoveStopped
	}
	from := s.dirOf(l)
	l.mu.Lock()
	old := l.home.Load()
	if err := l.refusal(); err != nil {
		l.mu.Unlock()
		return false, err
	}
	if v.copier.lag() > allowed || v.copier.cut.Load() != noLimit {
		l.mu.Unlock()
		return false, nil
	}
	if err := v.settle(s); err != nil {
		l.mu.Unlock()
		return false, err
	}
	if err := v.rename(); err != nil {
		fenced := l.fence()
		l.mu.Unlock()
		return false, errors.Join(err, fenced)
	}
	forgotten := l.moveIn(v)
	v.to.adopt(l)
	from.forget(l)
	s.moves.stats.done.Add(1)
	s.dropMove(v) // from here on a new Move may begin, and the copy is the log
	l.mu.Unlock()
	l.notify()
	s.leave(from, old, v, forgotten)
	return true, nil
}

// settle makes the copy whole, for good: caller holds Store.mu and Log.mu.
func (v *move) settle(s *Store) error {
	l, c := v.log, v.copier
	if err := l.wake(); err != nil {
		return err
	}
	if l.synced.Load() < l.end.Load() {
		if err := l.wait(l.home.Load().addSync()); err != nil {
			return err
		}
	}
	for {
		n, err := c.advance(math.MaxInt64)
		s.moves.stats.bytes.Add(n)
		if err != nil {
			return err
		}
		if n == 0 {
			break
		}
	}
	if err := c.sync(); err != nil {
		return err
	}
	if err := c.copyRest(); err != nil {
		return err
	}
	if err := c.sync(); err != nil { // the names of what copyRest brought
		return err
	}
	if end := c.end.Load(); end != l.end.Load() || c.lag() != 0 {
		return &CorruptError{File: l.Dir(), Position: c.bytes.Load(), // L8
			Want: fmt.Sprintf("a copy of %d bytes up to offset %d", l.Size(), l.end.Load()), Got: fmt.Sprintf("%d bytes up to %d", c.bytes.Load(), end)}
	}
	return v.checkpoint()
}

// rename gives the copy the log's name, durably. After an error it may have it or not.
func (v *move) rename() error {
	final := filepath.Join(v.to.path, folderName(v.log.key()))
	fsys := v.to.fs
	if _, err := fsys.Stat(final); !errors.Is(err, fs.ErrNotExist) {
		return errors.Join(fmt.Errorf("%w: there is a folder %s that is no log of this store", ErrExists, final), err)
	}
	if err := v.copier.folder.rename(final); err != nil {
		return err
	}
	if err := fsys.SyncDir(v.to.path); err != nil {
		return &failedSyncError{err}
	}
	return nil
}

// fence makes sure that no start prefers a copy that may have the log's name (L8).
// Caller holds mu.
func (l *Log) fence() error {
	number, err := readMoveNumber(l.fs(), l.Dir())
	if err == nil {
		err = writeMoveNumber(l.fs(), l.Dir(), number+2)
	}
	if err == nil {
		return nil
	}
	l.mu.failed = l.storageError("take back a move", err)
	return l.mu.failed
}

// moveIn makes the copy the log. It returns the round of the old journal that forgets
// the log. Caller holds mu.
func (l *Log) moveIn(v *move) promise {
	old, c := l.home.Load(), v.copier
	last := l.mu.active
	list := make([]*segment, len(c.parts))
	for i, p := range c.parts {
		p.close()
		p.to.index.SetPath(p.to.path(indexSuffix))
		p.to.times.SetPath(p.to.path(timeSuffix))
		p.to.tsKnown.Store(true)
		p.to.warned = p.from.warned
		list[i] = p.to
	}
	active := list[len(list)-1]
	active.w.created, active.w.rollAfter = last.w.created, last.w.rollAfter
	gone := *l.segments.Load()
	l.setSegments(list)
	fresh := newHome(l, c.folder, v.to.journal, old.owner.id, v.to.checkpointFor)
	fresh.low = &v.to.low
	l.home.Store(fresh)
	l.epochs.SetDir(c.folder.dir())
	l.indexesSynced()              // the copier has, of every closed part
	raise(&l.synced, l.end.Load()) // settle has synced it, here and there
	raise(&l.durable, l.end.Load())
	l.mu.last, l.mu.rolled, l.mu.unflushed, l.mu.copier = promise{}, promise{}, 0, nil
	old.owner.left.Store(true)
	forgotten := promise{old, old.journal.Cut(&old.owner, math.MinInt64)}
	for _, s := range gone { // who reads one of them goes on
		s.index.Discard()
		s.times.Discard()
		s.letGo()
	}
	return forgotten
}

// leave puts the old folder away. What fails here is made good by the next start; but
// the directory cannot be moved to before its journal has forgotten the log.
func (s *Store) leave(from *dataDir, old *home, v *move, forgotten promise) {
	l := v.log
	was := old.folder.dir()
	away := filepath.Join(from.path, deletedName(l.key()))
	err := old.folder.rename(away)
	if err == nil {
		if err = from.fs.SyncDir(from.path); err != nil {
			from.journal.Fail(err)
		}
	}
	if err == nil { // not before the name is on disk: under the old one a start would find it emptied
		s.removeLater(away, l.Config().DeleteDelay)
	}
	if err == nil {
		err = old.journal.Wait(forgotten.round)
	}
	if err != nil {
		s.log.Error("the folder that a log has moved from could not be put away; the next start does it", "folder", was, "error", err)
	} else if err := from.checkpoint(); err != nil {
		s.log.Warn("checkpoint not written after a move", "dir", from.path, "error", err)
	}
	s.log.Info("log has moved", "from", was, "to", l.Dir(), "bytes", l.Size(), "end", l.End())
}
