package store

import (
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"millrace/coord/zk/tree"
	"millrace/engine"
	"millrace/engine/batch"
	"millrace/engine/vfs"
)

// Options says how to open a store. The zero value of each field but Dir is usable.
type Options struct {
	FS     vfs.FS       // of the snapshots; nil: vfs.OS()
	Dir    string       // of the snapshots; made if it is not there
	Logger *slog.Logger // nil: discarded
	Now    func() time.Time

	SnapshotEvery int   // transactions from one snapshot to the next; 0: DefaultSnapshotEvery; < 0: only when asked
	SnapshotBytes int64 // likewise, bytes of transactions; 0: DefaultSnapshotBytes
	Keep          int   // snapshots kept; 0: DefaultKeep
}

// LogConfig is how the log of a store must be configured: nothing is deleted but what
// the store gives up itself, and an append that returns is synced.
func LogConfig() engine.Config {
	c := engine.DefaultConfig()
	c.SegmentBytes, c.Preallocate = 16<<20, true // room for changes also when the disk has filled up
	c.RetentionAge, c.RetentionBytes = -1, -1
	c.SegmentAge = 365 * 24 * time.Hour
	c.Delete, c.Compact = true, false
	c.Durability = engine.Sync
	return c
}

// GapError says that log and snapshots do not make a whole tree together.
type GapError struct {
	Dir        string // of the log
	Start, End engine.Offset
	Snapshot   int64 // where the newest snapshot ends; -1 there is no whole one
	Damaged    error // what is wrong with the newest one that is not whole; nil none
}

func (e *GapError) Error() string {
	s := fmt.Sprintf("%s: transactions [%d, %d) and ", e.Dir, e.Start, e.End)
	if e.Snapshot >= 0 {
		s += fmt.Sprintf("a snapshot that ends at %d", e.Snapshot)
	} else {
		s += "no whole snapshot"
	}
	s += " do not make a tree"
	if e.Damaged != nil {
		s += fmt.Sprintf(" (%v)", e.Damaged)
	}
	return s
}

func (e *GapError) Unwrap() error { return e.Damaged }

// Store is a tree that is kept.
type Store struct {
	log *engine.Log
	o   Options

	mu   sync.RWMutex // guards tree
	tree *tree.Tree

	stats stats

	commit struct { // the one caller of Commit
		builder *batch.Builder
		buf     []byte
		failed  error
		next    int64 // record of the log that comes next: all before it are applied
		txns    int   // since the newest snapshot was begun
		bytes   int64
	}

	snapshots struct {
		sync.Mutex                // the holder takes one
		busy       sync.WaitGroup // one in the background
		running    bool           // guarded by Store.mu
		kept       []int64        // offsets, ascending; guarded by the Mutex
		closed     chan struct{}
	}
}

// Open takes up what log and snapshots hold. The log stays the caller's, who closes it
// after the store, and whose config must be LogConfig.
func Open(log *engine.Log, o Options) (*Store, error) {
	if o.FS == nil {
		o.FS = vfs.OS()
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.SnapshotEvery == 0 {
		o.SnapshotEvery = DefaultSnapshotEvery
	}
	if o.SnapshotBytes == 0 {
		o.SnapshotBytes = DefaultSnapshotBytes
	}
	if o.Keep == 0 {
		o.Keep = DefaultKeep
	}
	if log.Config().Durability != engine.Sync {
		return nil, fmt.Errorf("the log %s is not synced (%v): its transactions could be lost", log.Dir(), log.Config().Durability)
	}
	s := &Store{log: log, o: o}
	s.snapshots.closed = make(chan struct{})
	s.commit.builder = batch.NewBuilder(batch.None, 0)
	if err := s.recover(); err != nil {
		return nil, err
	}
	return s, nil
}

// View lets f read the tree, beside others that do. f must set no watch and keep nothing
// but what tree.Read says may be kept.
func (s *Store) View(f func(*tree.Tree)) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	f(s.tree)
}

// Change is View for what changes watches: f has the tree for itself.
func (s *Store) Change(f func(*tree.Tree)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f(s.tree)
}

var errClosed = errors.New("zookeeper store: closed")

// Close ends a snapshot that is being taken. The log is the caller's to close.
func (s *Store) Close() {
	s.mu.Lock()
	select {
	case <-s.snapshots.closed:
	default:
		close(s.snapshots.closed)
	}
	s.mu.Unlock()
	s.snapshots.busy.Wait()
}

func (s *Store) closed() bool {
	select {
	case <-s.snapshots.closed:
		return true
	default:
		return false
	}
}
