package engine

import (
	"errors"
	"fmt"
	"log/slog"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"millrace/engine/checkpoint"
	"millrace/engine/index"
	"millrace/engine/journal"
	"millrace/engine/producers"
	"millrace/engine/vfs"
)

// Offset is the logical number of a record in its log.
type Offset int64

// Epoch is a leader's term of office in a partition.
type Epoch int32

// NoEpoch stamps an append with whatever epoch the log is in.
const NoEpoch Epoch = -1

// Log is one append-only sequence of record batches, kept in Kafka's files.
// See the package comment for what it promises and who may call what at once.
type Log struct {
	home       atomic.Pointer[home] // changed by a move, with mu held
	topic      string
	partition  int32
	logger     *slog.Logger
	now        func() time.Time
	indexes    *index.Set
	background *Background
	wrote      func(int, int64) // never nil
	standalone *standalone      // nil in a Store

	config   atomic.Pointer[Config]
	segments atomic.Pointer[[]*segment] // ascending, never empty, never changed in place; the last one is active
	hints    atomic.Pointer[hints]

	// The offset ladder, low to high. The engine owns three rungs; the high
	// watermark is replica's and only told to us as a read limit.
	//
	//	Start ......... first offset a reader may ask for
	//	Durable ....... below this, bytes have survived a sync
	//	End ........... next offset to be assigned
	//
	// L2: Start <= Durable <= End. Each rung only rises, except that truncation
	// lowers End (and Durable with it) and nothing else. `synced` is a rung
	// within Durable: below it, the bytes are synced in their own segment and
	// do not need the journal any more. It is the recovery point.
	start, synced, durable, end atomic.Int64
	// vouched is what page-cache mode had acknowledged when the log was switched to sync: readers have seen it, so Safe is not below. A
	// truncation lowers it with Durable.
	vouched atomic.Int64
	// A truncation lowers the recovery point on disk before it cuts anything,
	// while the journal may still raise synced: this holds it down meanwhile.
	ceiling atomic.Int64

	epoch       atomic.Int32
	epochs      *checkpoint.Epochs
	retainBelow atomic.Int64
	observer    atomic.Pointer[func(Offset)]
	news        news // what readers wait for
	counts      appendCounts
	closed      atomic.Bool

	queue queue

	mu struct {
		sync.Mutex // the holder appends, rolls, truncates; see the package comment
		producers  *producers.Table
		active     *segment    // the last of segments: an append need not look at the list
		run        *run        // what the next write will hold; nil between writes
		last       promise     // of the newest write
		rolled     promise     // of the newest roll: the closed segment is synced
		failed     error       // a failed write could not be taken back: no more appends
		replaying  bool        // recovery appends from the journal
		dormant    bool        // opened after a clean stop and not changed yet (dormant.go)
		unsaved    bool        // Start has risen in memory, and it is not known to be on disk
		unflushed  int64       // records since the last sync (flush.messages)
		flushTimer *time.Timer // flush.ms; nil when not armed
		snapshotAt Offset      // newest producer snapshot written
		copier     *copier     // follows the log to another directory; nil when it stays
	}
	flushes sync.WaitGroup // running flush.ms timers

	cleaning  cleaning
	unindexed unsyncedIndexes
	gaps      bool // recovery has let gaps pass that only a compacted log may have (gapBefore)
}

// Start is the first offset a reader may ask for.
func (l *Log) Start() Offset { return Offset(l.start.Load()) }

// Durable is the offset below which everything has survived a sync.
func (l *Log) Durable() Offset {
	// Truncation lowers End first and Durable a moment later, when the journal
	// can no longer raise it.
	durable := l.durable.Load()
	return Offset(min(durable, l.end.Load()))
}

// End is the next offset to be assigned.
func (l *Log) End() Offset { return Offset(l.end.Load()) }

// Safe is the offset below which everything is as safe as this log's durability
// promises: Durable when synced, End in page-cache mode; a switch from page-cache
// to sync does not lower it. Who shows readers nothing above it never has them see
// an offset that is given out again (L5).
func (l *Log) Safe() Offset {
	if l.config.Load().Durability == PageCache {
		return l.End()
	}
	return max(l.Durable(), Offset(min(l.vouched.Load(), l.end.Load())))
}

// RecoveryPoint is the offset below which all bytes are synced in their
// segments: where the next recovery has to begin.
func (l *Log) RecoveryPoint() Offset {
	synced := l.synced.Load()
	return Offset(min(synced, l.end.Load(), l.ceiling.Load()))
}

// Epoch is the newest leader epoch that the log has seen; NoEpoch if none.
func (l *Log) Epoch() Epoch { return Epoch(l.epoch.Load()) }

// ID names the log in the commit journal.
func (l *Log) ID() journal.LogID { return l.home.Load().owner.id }

// Dir is the log's folder.
func (l *Log) Dir() string { return l.home.Load().folder.dir() }

// Topic is the topic's name.
func (l *Log) Topic() string { return l.topic }

// Partition is the number of the partition.
func (l *Log) Partition() int32 { return l.partition }

// Size is the number of bytes in all segments.
func (l *Log) Size() int64 {
	var n int64
	for _, s := range *l.segments.Load() {
		n += s.size.Load()
	}
	return n
}

// Config returns the present settings.
func (l *Log) Config() Config { return *l.config.Load() }

// SetConfig changes the settings. Those about segments hold from the next
// segment on. From page-cache to sync: what was appended before is synced in the
// background at once, and in any case by the round of the next append, so an ack
// never covers an unsynced gap; it stays readable meanwhile.
func (l *Log) SetConfig(c Config) {
	l.mu.Lock()
	defer l.mu.Unlock()
	synced := l.config.Load().Durability == PageCache && c.Durability == Sync
	if synced {
		raise(&l.vouched, l.end.Load()) // before anyone may ask by the new rule
	}
	l.config.Store(shared(c))
	l.mu.producers.SetExpiry(c.ProducerExpiry)
	if synced && !l.closed.Load() {
		l.mu.last = l.home.Load().addSync()
		l.flushSoon()
	}
}

// OnDurable registers the one observer of progress. f is called without locks
// whenever Durable (in page-cache mode: End) has risen, from the goroutine that
// made it rise; it must not block. Calls may overlap and come late, so f should
// keep the largest value that it was told.
func (l *Log) OnDurable(f func(safe Offset)) { l.observer.Store(&f) }

func (l *Log) notify() {
	l.news.wake()
	if f := l.observer.Load(); f != nil {
		(*f)(l.Safe())
	}
}

// RetainBelow tells that nothing at or above o may be removed by retention:
// the high watermark. Before the first call it is Safe.
func (l *Log) RetainBelow(o Offset) { l.retainBelow.Store(int64(o)) }

// SetEpoch begins a new leader epoch at End. Lower or equal epochs are refused
// or ignored.
func (l *Log) SetEpoch(e Epoch) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.refusal(); err != nil {
		return err
	}
	return l.enterEpoch(e, l.End())
}

// enterEpoch notes that epoch e begins at offset o. That it has begun is known already as a rule; but if it came with an append that failed,
// it may have been noted at an offset above. Caller holds mu.
func (l *Log) enterEpoch(e Epoch, o Offset) error {
	switch now := l.Epoch(); {
	case e < now:
		return fmt.Errorf("%w: %d, the log is in %d", ErrStaleEpoch, e, now)
	case e == now && (e == NoEpoch || !l.epochs.Above(int64(o))):
		return nil
	}
	if err := l.epochs.Assign(int32(e), int64(o)); err != nil {
		return l.storageError("note leader epoch", err)
	}
	l.epoch.Store(int32(e))
	return nil
}

// EpochEnd answers where epoch e ended: the largest epoch at or below e that
// the log knows, and the offset at which the next one began (or End). It
// returns (-1, -1) if the log knows of none.
func (l *Log) EpochEnd(e Epoch) (Epoch, Offset) {
	logEnd := l.end.Load()
	epoch, end := l.epochs.EndOf(int32(e), logEnd)
	return Epoch(epoch), Offset(min(end, logEnd)) // the next one may have come with an append that failed (enterEpoch)
}

// Sync returns when everything below End is in synced segment bytes or in the
// journal, in either durability mode.
func (l *Log) Sync() error {
	l.mu.Lock()
	if l.synced.Load() >= l.end.Load() {
		l.mu.Unlock()
		return l.poisonError()
	}
	t := l.home.Load().addSync()
	l.mu.unflushed = 0
	l.mu.Unlock()
	return l.wait(t)
}

// refusal says why the log takes no appends now. Caller holds mu.
func (l *Log) refusal() error {
	if l.closed.Load() {
		return ErrClosed
	}
	if err := l.poisonError(); err != nil {
		return err
	}
	return l.mu.failed
}

// failure is what has failed half-way and keeps the log from appends until it is opened again, or nil.
func (l *Log) failure() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.mu.failed
}

func (l *Log) storageError(op string, err error) error {
	return &StorageError{Op: op, Dir: l.Dir(), Cause: err}
}

// setSegments publishes another list, which is never changed in place; its last segment is the one that is written to. Caller holds mu, or the log is
// not visible yet.
func (l *Log) setSegments(list []*segment) {
	l.mu.active = list[len(list)-1]
	l.segments.Store(&list)
}

// file is the path of a file of the log.
func (l *Log) file(name string) string { return l.home.Load().folder.file(name) }

func (l *Log) fs() vfs.FS { return l.home.Load().folder.fs }

// Close syncs the log, writes what makes the next start cheap, and ends its
// use. Appends that are queued get ErrClosed; slices stay readable until they
// are released. A poisoned log is closed without claiming anything.
func (l *Log) Close() error {
	if l.closed.Swap(true) {
		return nil
	}
	l.news.wake()
	err := l.Sync()
	l.mu.Lock()
	if l.mu.flushTimer != nil && l.mu.flushTimer.Stop() {
		l.flushes.Done()
	}
	l.mu.flushTimer = nil
	l.mu.Unlock()
	l.flushes.Wait()

	l.mu.Lock()
	if err == nil && l.mu.failed == nil { // else the producers may be anybody's
		err = errors.Join(l.writeSnapshot(l.End()), l.epochs.Flush())
	}
	if err == nil {
		err = l.tighten()
	}
	if err == nil && l.standalone != nil {
		err = l.completeIndexes()
	}
	list := *l.segments.Load()
	for i, s := range list {
		err = errors.Join(err, s.close(i == len(list)-1 && !l.mu.dormant))
	}
	l.mu.Unlock()
	if l.standalone != nil {
		err = errors.Join(err, l.standalone.close(l, err == nil))
	}
	return err
}

// snapshot writes the producer state at End, so that the next recovery reads
// only what came after it. The Store calls it at each checkpoint.
func (l *Log) snapshot() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.refusal(); err != nil {
		return nil // nothing to save it for
	}
	return l.writeSnapshot(l.End())
}

const noLimit = math.MaxInt64
