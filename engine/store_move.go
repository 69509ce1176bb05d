package engine

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"millrace/engine/checkpoint"
)

// A log moves to another data directory while it serves (KIP-113). Its files are
// copied to <topic>-<partition>.<id>-future there, at a bounded rate, by one of a few
// workers; the copy follows the log until little is missing. Then, with the log's lock
// held, the rest is copied and synced, the folder gets its name, and the log goes on in
// it (store_move_swap.go). Readers are never stopped; appends are for that moment. What
// is on disk after a crash is sorted out by store_move_load.go.
//
// A move ends in one of four ways: the log has moved; another Move replaces it or names
// the directory that the log is in; the log is deleted; or an error of either directory,
// which is logged: the log stays where it is. A stop of the Store interrupts it, and the
// next start begins it again.

const futureSuffix = "-future"

// ErrNoDir is matched by the error of Move for a directory that is not one of the Store's.
var ErrNoDir = errors.New("engine: no such data directory")

// move is one log on its way.
type move struct {
	log     *Log
	to      *dataDir
	copier  *copier
	ended   chan struct{} // closed by cancel
	stopped atomic.Bool   // cancelled; set with Store.mu held
	doomed  bool          // what was copied has, durably, a name that a start removes; guarded by Store.mu
}

// moves are all moves of a Store. Its lock comes after Store.mu.
type moves struct {
	rate  moveRate
	stats struct{ bytes, done, failed atomic.Int64 }

	mu struct {
		sync.Mutex
		active  map[*Log]*move
		queue   []*move // not yet taken by a worker
		workers int
		wanted  map[logKey]*dataDir // for logs that are not there yet
	}
	running sync.WaitGroup // workers
}

// Move begins to move a log to another data directory and returns. Moving it to where
// it is ends a move that is under way; another directory replaces it. A log that does not exist
// (ErrNoLog) is made in that directory when it is created.
// Errors besides: ErrNoDir; ErrStorage for a directory or a log that is out of use.
func (s *Store) Move(topic string, partition int32, dir string) error {
	dir = filepath.Clean(dir)
	i := slices.IndexFunc(s.dirs, func(d *dataDir) bool { return d.path == dir })
	if i < 0 {
		return fmt.Errorf("%w: %s", ErrNoDir, dir)
	}
	to, key := s.dirs[i], logKey{topic, partition}
	if err := to.offline(); err != nil {
		return &StorageError{Op: "move " + folderName(key), Dir: dir, Cause: err}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.closed {
		return ErrClosed
	}
	l := s.Log(topic, partition)
	if l == nil {
		for _, x := range s.Damaged() {
			if x.Topic == topic && x.Partition == partition {
				return &StorageError{Op: "move " + folderName(key), Dir: x.Dir, Cause: x.Err}
			}
		}
		s.want(key, to)
		return fmt.Errorf("%w: %s", ErrNoLog, folderName(key))
	}
	now := s.moveOf(l)
	if now != nil && now.to == to {
		return nil
	}
	if now != nil {
		s.cancel(now)
		s.log.Info("move ended by another request", "log", l.Dir(), "to", now.to.path)
	}
	from := s.dirOf(l)
	if from == to {
		return nil
	}
	if err := from.offline(); err != nil {
		return &StorageError{Op: "move " + folderName(key), Dir: from.path, Cause: err}
	}
	return s.beginMove(l, to)
}

// want remembers where a log is to be made. Caller holds mu.
func (s *Store) want(key logKey, d *dataDir) {
	m := &s.moves.mu
	m.Lock()
	defer m.Unlock()
	if m.wanted == nil {
		m.wanted = make(map[logKey]*dataDir)
	}
	if len(m.wanted) < maxWantedDirs {
		m.wanted[key] = d
	}
}

// wantedDir is where a log that is being made was asked for, nil if nowhere or if that
// directory is out of use. It is asked once.
func (s *Store) wantedDir(key logKey) *dataDir {
	m := &s.moves.mu
	m.Lock()
	defer m.Unlock()
	d := m.wanted[key]
	delete(m.wanted, key)
	if d == nil || d.offline() != nil {
		return nil
	}
	return d
}

func (s *Store) moveOf(l *Log) *move {
	m := &s.moves.mu
	m.Lock()
	defer m.Unlock()
	return m.active[l]
}

// beginMove makes the folder, so that a start after a crash knows of the move, and
// hands it to the workers. Caller holds mu.
func (s *Store) beginMove(l *Log, to *dataDir) error {
	path := filepath.Join(to.path, futureName(l.key()))
	err := to.fs.MkdirAll(path)
	if err == nil {
		err = checkpoint.WriteTopicID(to.fs, path, l.ID().Topic, false)
	}
	if err == nil {
		err = to.fs.SyncDir(to.path)
	}
	if err != nil {
		s.removeLater(path, 0)
		return &StorageError{Op: "move " + folderName(l.key()), Dir: to.path, Cause: err}
	}
	v := &move{log: l, to: to, copier: newCopier(l, newFolder(to.fs, path, l, s.files)), ended: make(chan struct{})}
	l.mu.Lock()
	l.mu.copier = v.copier
	l.mu.Unlock()
	s.log.Info("log is being moved", "log", l.Dir(), "to", to.path, "bytes", l.Size())
	m := &s.moves.mu
	m.Lock()
	defer m.Unlock()
	if m.active == nil {
		m.active = make(map[*Log]*move)
	}
	m.active[l] = v
	m.queue = append(m.queue, v)
	if m.workers < s.o.MoveThreads {
		m.workers++
		// Owner: s; ends when no move is left or the Store closes, which waits for it.
		s.moves.running.Go(s.runMoves)
	}
	return nil
}

// cancel ends a move for good: its folder has another name, durably, when it returns. Caller holds mu.
func (s *Store) cancel(v *move) {
	v.stopped.Store(true)
	close(v.ended)
	v.log.mu.Lock()
	v.log.mu.copier = nil
	v.log.mu.Unlock()
	s.dropMove(v)
	s.doomCopy(v)
}

func (s *Store) dropMove(v *move) {
	m := &s.moves.mu
	m.Lock()
	defer m.Unlock()
	if m.active[v.log] == v {
		delete(m.active, v.log)
	}
}

// doomCopy gives the folder of a move a name that a start removes. The worker that may
// still be at it removes it when it lets go; if the name is not on disk, not even then,
// for the folder may have had the log's (L8).
func (s *Store) doomCopy(v *move) {
	away := filepath.Join(v.to.path, deletedName(v.log.key()))
	err := v.copier.folder.rename(away)
	if err == nil {
		v.copier.folder.path.Store(&away)
		err = v.to.fs.SyncDir(v.to.path)
	}
	v.doomed = err == nil
	if err != nil {
		s.log.Warn("the copy of a log that stays where it is could not be put away; the next start finds it", "folder", v.copier.folder.dir(), "error", err)
	}
	v.to.forget(v.log)
}

// forget drops what the directory's checkpoints say of a log that is not in it. The
// caller holds Store.mu.
func (d *dataDir) forget(l *Log) {
	key := checkpoint.TopicPartition(l.key())
	d.outdated = true
	d.mu.Lock()
	if d.mu.live[key] == l {
		delete(d.mu.live, key)
	}
	if d.mu.live[key] == nil {
		delete(d.mu.points, key)
		delete(d.mu.starts, key)
	}
	d.mu.Unlock()
	d.writing.Lock()
	delete(d.highMarks, key)
	d.writing.Unlock()
}

// futureName is Kafka's name for the folder of a log on its way in; the topic is cut
// so that it stays a legal file name.
func futureName(k logKey) string {
	return strings.TrimSuffix(deletedName(k), deleteSuffix) + futureSuffix
}

// runMoves is a worker.
func (s *Store) runMoves() {
	for {
		m := &s.moves.mu
		m.Lock()
		if len(m.queue) == 0 {
			m.workers--
			m.Unlock()
			return
		}
		v := m.queue[0]
		m.queue = m.queue[1:]
		m.Unlock()
		s.endMove(v, s.runMove(v))
	}
}

// errMoveStopped: cancelled, or the Store closes.
var errMoveStopped = errors.New("engine: move stopped")

// runMove copies until the log has moved or cannot.
func (s *Store) runMove(v *move) error {
	for tries := 0; ; {
		if err := s.mayMove(v); err != nil {
			return err
		}
		n, more, err := v.copier.step(moveChunk)
		s.moves.stats.bytes.Add(n)
		if err != nil {
			return err
		}
		if !s.moves.rate.pay(n, v.ended, s.stop) {
			return errMoveStopped
		}
		// A log that is written faster than it is copied is never caught up with; the
		// longer it takes, the more may be left for the end.
		if more && v.copier.lag() > moveRest {
			continue
		}
		if err := s.prepareSwap(v); err != nil {
			return err
		}
		if done, err := s.swap(v, moveRest<<min(tries, moveRestDoublings)); done || err != nil {
			return err
		}
		tries++
	}
}

func (s *Store) mayMove(v *move) error {
	select {
	case <-v.ended:
		return errMoveStopped
	case <-s.stop:
		return errMoveStopped
	default:
	}
	if err := v.to.offline(); err != nil {
		return fmt.Errorf("%s: %w", v.to.path, err)
	}
	if v.log.closed.Load() {
		return ErrClosed
	}
	return v.log.poisonError()
}

// endMove is what follows a move, whatever became of it.
func (s *Store) endMove(v *move, err error) {
	var lost *failedSyncError
	if errors.As(err, &lost) && !v.stopped.Load() {
		v.to.journal.Fail(lost.error) // L4; it takes the directory offline
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		v.copier.close()
	}
	switch {
	case err == nil: // swap has counted it
	case v.stopped.Load():
	case errors.Is(err, errMoveStopped): // the next start begins it again
	default:
		s.moves.stats.failed.Add(1)
		s.log.Error("log was not moved; it stays where it is", "log", v.log.Dir(), "to", v.to.path, "error", err)
		s.cancel(v)
	}
	if v.doomed {
		s.removeLater(v.copier.folder.dir(), 0)
	}
	s.dropMove(v)
}

// MoveInfo is a move that is under way.
type MoveInfo struct {
	Log   *Log
	Dir   string // the data directory that it goes to
	Bytes int64  // copied
	End   Offset // after the last batch copied
}

// Moves returns what is on its way, by topic and partition.
func (s *Store) Moves() []MoveInfo {
	m := &s.moves.mu
	m.Lock()
	defer m.Unlock()
	list := make([]MoveInfo, 0, len(m.active))
	for l, v := range m.active {
		list = append(list, MoveInfo{l, v.to.path, v.copier.bytes.Load(), Offset(v.copier.end.Load())})
	}
	slices.SortFunc(list, func(a, b MoveInfo) int { return a.Log.key().compare(b.Log.key()) })
	return list
}

// MoveStats are counters since the start.
type MoveStats struct {
	Bytes  int64 // copied
	Done   int64 // logs that have moved
	Failed int64 // moves that an error ended
}

// MoveStats returns the present figures.
func (s *Store) MoveStats() MoveStats {
	c := &s.moves.stats
	return MoveStats{c.bytes.Load(), c.done.Load(), c.failed.Load()}
}

// SetMoveRate bounds what all moves copy together, in bytes a second; 0 halts them.
func (s *Store) SetMoveRate(bytes int64) { s.moves.rate.set(bytes) }
