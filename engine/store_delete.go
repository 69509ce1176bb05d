package engine

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"path/filepath"
	"slices"
	"time"

	"millrace/engine/checkpoint"
	"millrace/engine/journal"
)

// ErrNoLog is matched by the error of Delete for a log that is not there.
var ErrNoLog = errors.New("engine: no such log")

// doomed is a folder that is being deleted: of an open log, or of a damaged one.
type doomed struct {
	dir  *dataDir
	key  logKey
	log  *Log // nil: damaged
	path string
	to   string
}

// Delete deletes logs of a topic, with no partitions named all of them. When it
// returns nil they are gone for good: renamed to <name>.<id>-delete, synced, and
// forgotten by the journal. Their files are unlinked in the background after
// DeleteDelay; a Slice that was handed out before stays readable. A log that was set aside as
// damaged can be deleted too. In a directory that is offline nothing can be made durable: such a log is gone for this run,
// and the error says that the next start may find it again.
func (s *Store) Delete(topic string, partitions ...int32) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.closed {
		return ErrClosed
	}
	list, err := s.doom(topic, partitions)
	if err != nil {
		return err
	}
	for _, x := range list {
		if v := s.moveOf(x.log); x.log != nil && v != nil {
			s.cancel(v)
		}
	}
	// From here on nobody finds them.
	s.change(func(table map[checkpoint.TopicPartition]*Log) {
		for _, x := range list {
			delete(table, checkpoint.TopicPartition(x.key))
		}
	})
	var all error
	gone := list[:0]
	for _, x := range list {
		if err := x.rename(); err != nil {
			all = errors.Join(all, err)
			s.restore(x)
			continue
		}
		gone = append(gone, x)
	}
	list = gone
	for _, d := range dirsOf(list) {
		if err := d.forgetDeleted(list); err != nil {
			all = errors.Join(all, err)
			continue // what is known of its logs stays known: they may be back after the next start, and begin where they began
		}
		for _, x := range list {
			if x.dir == d {
				x.end(s)
			}
		}
	}
	return all
}

func (s *Store) doom(topic string, partitions []int32) ([]doomed, error) {
	var list []doomed
	wanted := func(p int32) bool { return len(partitions) == 0 || slices.Contains(partitions, p) }
	for key, l := range *s.table.Load() {
		if key.Topic == topic && wanted(key.Partition) {
			list = append(list, doomed{dir: s.dirOf(l), key: logKey(key), log: l, path: l.Dir()})
		}
	}
	for _, x := range s.Damaged() {
		if x.Topic == topic && wanted(x.Partition) {
			key := logKey{x.Topic, x.Partition}
			list = append(list, doomed{dir: s.dirAt(x.Dir), key: key, path: filepath.Join(x.Dir, folderName(key))})
		}
	}
	for _, p := range partitions {
		if !slices.ContainsFunc(list, func(x doomed) bool { return x.key.Partition == p }) {
			return nil, fmt.Errorf("%w: %s", ErrNoLog, folderName(logKey{topic, p}))
		}
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("%w: topic %s", ErrNoLog, topic)
	}
	slices.SortFunc(list, func(a, b doomed) int { return a.key.compare(b.key) })
	return list, nil
}

func (s *Store) dirOf(l *Log) *dataDir {
	for _, d := range s.dirs {
		if d.holds(l) {
			return d
		}
	}
	panic("engine: a log in the table is in no directory: " + l.Dir())
}

func (s *Store) dirAt(path string) *dataDir {
	for _, d := range s.dirs {
		if d.path == path {
			return d
		}
	}
	panic("engine: no such directory: " + path)
}

func (x *doomed) rename() error {
	x.to = filepath.Join(x.dir.path, deletedName(x.key))
	var err error
	if x.log != nil {
		err = x.log.moveAway(x.to)
	} else if err = x.dir.fs.Rename(x.path, x.to); errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	if err != nil {
		return &StorageError{Op: "delete log", Dir: x.path, Cause: err}
	}
	return nil
}

// restore takes up a log again whose folder could not be renamed.
func (s *Store) restore(x doomed) {
	if x.log != nil {
		s.change(func(table map[checkpoint.TopicPartition]*Log) { table[checkpoint.TopicPartition(x.key)] = x.log })
	}
}

// forgetDeleted makes the renames in one directory durable, then has its journal forget the logs, in one round.
func (d *dataDir) forgetDeleted(list []doomed) error {
	if cause := d.offline(); cause != nil {
		return &StorageError{Op: "delete log for good: it is gone until the next start, which may find it again, for its directory is offline", Dir: d.path, Cause: cause}
	}
	if err := d.fs.SyncDir(d.path); err != nil {
		return d.failedSync("delete log", err)
	}
	var last journal.Ticket
	for _, x := range list {
		if x.dir == d && x.log != nil {
			last = x.log.cutAll()
		}
	}
	return d.journal.Wait(last)
}

// cutAll has the journal forget the log. Nothing is appended any more.
func (l *Log) cutAll() journal.Ticket {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.end.Store(l.start.Load())
	h := l.home.Load()
	return h.journal.Cut(&h.owner, math.MinInt64)
}

func dirsOf(list []doomed) []*dataDir {
	var dirs []*dataDir
	for _, x := range list {
		if !slices.Contains(dirs, x.dir) {
			dirs = append(dirs, x.dir)
		}
	}
	return dirs
}

// end drops what the Store knew of the log and has its files unlinked later.
func (x *doomed) end(s *Store) {
	key := checkpoint.TopicPartition(x.key)
	d := x.dir
	d.mu.Lock()
	delete(d.mu.points, key)
	delete(d.mu.starts, key)
	d.outdated = true
	if d.mu.live[key] == x.log {
		delete(d.mu.live, key)
	}
	d.mu.Unlock()
	d.writing.Lock()
	delete(d.highMarks, key)
	d.writing.Unlock()
	delay := s.o.Defaults.DeleteDelay
	if x.log != nil {
		delay = x.log.Config().DeleteDelay
		x.log.retire()
	}
	s.damaged.Lock()
	s.damaged.list = slices.DeleteFunc(s.damaged.list, func(g DamagedLog) bool {
		return x.log == nil && g.Dir == d.path && g.Topic == x.key.Topic && g.Partition == x.key.Partition
	})
	s.damaged.Unlock()
	s.removeLater(x.to, delay)
}

// retire ends the use of a log that the journal has forgotten. Slices handed out
// earlier stay readable.
func (l *Log) retire() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.mu.flushTimer != nil && l.mu.flushTimer.Stop() {
		l.flushes.Done()
	}
	l.mu.flushTimer = nil
	l.closed.Store(true)
	for _, s := range *l.segments.Load() {
		s.index.Discard()
		s.times.Discard()
		s.letGo() // a reset that failed may have done so
	}
}

// removeLater removes a folder in the background. What is not removed before the
// Store closes is found again at the next start, by its name.
func (s *Store) removeLater(path string, delay time.Duration) {
	s.background.After(delay, "remove "+path, func() error { return s.o.FS.RemoveAll(path) })
}
