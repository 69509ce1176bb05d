package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"millrace/engine/checkpoint"
	"millrace/engine/index"
	"millrace/engine/vfs"
)

// StoreOptions say where a Store keeps its logs and how it looks after them. Dirs
// must be set; zero means the default elsewhere.
type StoreOptions struct {
	FS        vfs.FS   // default: the operating system's
	IO        vfs.IO   // how files are read and synced; with the operating system's files only; default vfs.IOAuto
	Dirs      []string // log.dirs: one or more data directories
	NotLogs   []string // names of folders in them that are others' although they are named like logs
	BrokerID  int32    // < 0: as the directories say, 0 if they say nothing
	ClusterID string   // "": as the directories say, a new one if they say nothing

	Journal          string // "auto" (default) or "off": then acks wait for syncs of segment files
	JournalDir       string // "" keeps each journal in its data directory; else a folder for all of them, on a device of its own
	JournalThreshold int    // bytes; appends above it skip the journal; 0: the journal's default

	RetentionCheck  time.Duration // default 5 min; < 0 never: the caller uses Retain
	CheckpointEvery time.Duration // default 1 min; < 0 never: the caller uses Checkpoint
	RecoveryThreads int           // a data directory; default 2
	IndexMaps       int           // memory-mapped indexes, all logs together; default 1000
	OpenFiles       int           // segment files open at a time, all logs together (FileSet); default: what RLIMIT_NOFILE leaves
	MoveThreads     int           // logs that are moved between directories at the same time; default one a directory
	MoveRate        int64         // bytes a second that all moves copy together (SetMoveRate); 0: no bound

	Logger    *slog.Logger
	Defaults  Config                    // zero: DefaultConfig()
	ConfigFor func(topic string) Config // settings of a topic found at the start; nil: Defaults
	Now       func() time.Time          // for retention and expiry; default time.Now

	// HighWatermark is asked for each log when replication-offset-checkpoint is
	// written; it must not take locks that an append holds. nil: Log.Safe.
	HighWatermark func(l *Log) Offset

	Cleaner CleanerConfig // zero: DefaultCleaner()
	MinFree int64         // bytes to keep free in each directory (Log.RoomLeft); 0: nobody looks

	// DirOffline is called once for each directory that fails while in use, without locks.
	DirOffline func(dir string, err error)

	ScrubRate int64        // bytes a second that the scrub reads (SetScrubRate); 0: none
	OnDamage  func(Damage) // called once for each damage that the scrub finds, without locks; must not call Close
}

// Store is many logs over several data directories: it finds and recovers them at the
// start, makes, moves and deletes them, and does their background work. One goroutine
// keeps time (retention, checkpoints), one deletes files while there are any, a few
// move logs while any are on their way, CleanerConfig.Threads compact, one scrubs if
// that is on, and each data directory has its journal's.
//
// A directory that fails goes offline alone: its logs refuse appends, the others
// serve on. A log that is damaged is set aside and named by Damaged; its files are
// left as they are.
type Store struct {
	o          StoreOptions
	system     *vfs.System // nil: somebody else's FS
	log        *slog.Logger
	dirs       []*dataDir
	indexes    *index.Set
	files      *FileSet
	background *Background
	brokerID   int32
	clusterID  string
	ids        topicIDs
	moves      moves

	// table is copied at every change, so that look-ups take no lock. Kept
	// complete: a reader sees all logs of a Create or none.
	table atomic.Pointer[map[checkpoint.TopicPartition]*Log]

	mu struct {
		sync.Mutex // Create, Delete, Close: one at a time
		closed     bool
	}

	damaged struct {
		sync.Mutex
		list []DamagedLog
	}

	stop     chan struct{}
	recycled chan struct{} // cap 1: a journal file was recycled or much was written, the recovery points have moved
	unsaved  atomic.Int64  // bytes written since recycled was last told for them
	counts   writeCounts
	cleaner  *cleaner
	scrub    scrubber
	keeper   sync.WaitGroup
}

// DamagedLog is a log that was set aside at the start.
type DamagedLog struct {
	Dir       string // the data directory
	Topic     string
	Partition int32
	Err       error // a *CorruptError names file and position
}

func (o *StoreOptions) fill() error {
	if len(o.Dirs) == 0 {
		return &ConfigError{"log.dirs", "", "at least one directory"}
	}
	o.Dirs = slices.Clone(o.Dirs)
	for i, d := range o.Dirs {
		o.Dirs[i] = filepath.Clean(d)
		if slices.Contains(o.Dirs[:i], o.Dirs[i]) {
			return &ConfigError{"log.dirs", d, "named only once"}
		}
	}
	if o.Journal != "" && o.Journal != "auto" && o.Journal != "off" {
		return &ConfigError{"millrace.commit.journal", o.Journal, "auto or off"}
	}
	if o.FS != nil && o.IO == vfs.IORing {
		return &ConfigError{"millrace.io", o.IO, "auto or pool with files that are not the operating system's"}
	}
	if o.Defaults == (Config{}) {
		o.Defaults = DefaultConfig()
	}
	if err := o.Defaults.Validate(); err != nil {
		return err
	}
	if o.ConfigFor == nil {
		defaults := o.Defaults
		o.ConfigFor = func(string) Config { return defaults }
	}
	if o.HighWatermark == nil {
		o.HighWatermark = (*Log).Safe
	}
	orDefault(&o.Now, time.Now)
	setDefault(&o.RetentionCheck, 5*time.Minute)
	setDefault(&o.CheckpointEvery, time.Minute)
	setDefault(&o.RecoveryThreads, 2)
	setDefault(&o.MoveThreads, len(o.Dirs))
	setDefault(&o.IndexMaps, defaultIndexMaps)
	setDefault(&o.OpenFiles, segmentFiles(openFileLimit()))
	o.IndexMaps = min(o.IndexMaps, indexFiles(openFileLimit())) // each may keep its file open
	if o.Cleaner == (CleanerConfig{}) {
		o.Cleaner = DefaultCleaner()
	}
	o.Logger = orDiscard(o.Logger)
	return o.Cleaner.Validate()
}

func setDefault[T comparable](v *T, d T) {
	var zero T
	if *v == zero {
		*v = d
	}
}

func orDefault(v *func() time.Time, d func() time.Time) {
	if *v == nil {
		*v = d
	}
}

// OpenStore takes hold of the data directories, recovers their logs and returns when
// all of them serve. Errors: a directory is locked by another process
// (vfs.ErrLocked, names the lock), belongs to another broker or cluster
// (*checkpoint.MetaConflict), a bad setting (*ConfigError), or no directory is usable.
// Anything else costs only the directory or the log it happened in.
func OpenStore(ctx context.Context, o StoreOptions) (*Store, error) {
	if err := o.fill(); err != nil {
		return nil, err
	}
	system, err := openSystem(&o)
	if err != nil {
		return nil, err
	}
	s := &Store{
		o:          o,
		system:     system,
		log:        o.Logger,
		indexes:    index.NewSet(o.IndexMaps),
		files:      NewFileSet(o.OpenFiles),
		background: NewBackground(o.Logger),
		stop:       make(chan struct{}),
		recycled:   make(chan struct{}, 1),
	}
	s.o.FS = s.files.relieved(o.FS, s.indexes)
	s.table.Store(&map[checkpoint.TopicPartition]*Log{})
	s.SetMoveRate(cmp.Or(o.MoveRate, math.MaxInt64))
	if err = s.open(ctx); err != nil {
		s.abandon()
		return nil, err
	}
	s.resumeMoves()
	s.keeper.Add(1)
	s.cleaner = newCleaner(s, s.o.Cleaner)
	s.scrub.prepare(s)
	s.SetScrubRate(s.o.ScrubRate)
	go s.keep() // owner: s; ends with Close, which waits for it
	return s, nil
}

func (s *Store) open(ctx context.Context) error {
	for _, path := range s.o.Dirs {
		d := newDataDir(s, path)
		s.dirs = append(s.dirs, d)
		err := d.hold()
		if errors.Is(err, vfs.ErrLocked) {
			return fmt.Errorf("data directory %s is in use: %w", path, err)
		}
		if err != nil {
			d.fail(err)
		}
	}
	if err := s.agree(); err != nil {
		return err
	}
	if err := s.load(ctx); err != nil {
		return err
	}
	var all error
	for _, d := range s.dirs {
		if d.offline() == nil {
			return nil
		}
		all = errors.Join(all, fmt.Errorf("%s: %w", d.path, d.offline()))
	}
	return fmt.Errorf("no data directory is usable: %w", all)
}

// abandon gives back what a failed OpenStore has taken; logs are left as after a crash.
func (s *Store) abandon() {
	s.background.Close()
	for _, d := range s.dirs {
		d.release()
	}
	s.closeSystem()
}

// ClusterID and BrokerID are what the data directories say, all alike.
func (s *Store) ClusterID() string { return s.clusterID }
func (s *Store) BrokerID() int32   { return s.brokerID }

// Log returns the log of a partition, nil if there is none. It takes no lock.
func (s *Store) Log(topic string, partition int32) *Log {
	return (*s.table.Load())[checkpoint.TopicPartition{Topic: topic, Partition: partition}]
}

// Logs returns all logs, by topic and partition.
func (s *Store) Logs() []*Log {
	table := *s.table.Load()
	logs := make([]*Log, 0, len(table))
	for _, l := range table {
		logs = append(logs, l)
	}
	slices.SortFunc(logs, func(a, b *Log) int { return a.key().compare(b.key()) })
	return logs
}

// Damaged returns the logs that were set aside at the start.
func (s *Store) Damaged() []DamagedLog {
	s.damaged.Lock()
	defer s.damaged.Unlock()
	return slices.Clone(s.damaged.list)
}

// OfflineDirs returns the data directories that failed, with the reason.
func (s *Store) OfflineDirs() map[string]error {
	offline := make(map[string]error)
	for _, d := range s.dirs {
		if err := d.offline(); err != nil {
			offline[d.path] = err
		}
	}
	return offline
}

// DirOf returns the data directory of a log, "" if it is not one of s.
func (s *Store) DirOf(l *Log) string {
	for _, d := range s.dirs {
		if d.holds(l) {
			return d.path
		}
	}
	return ""
}

// change publishes a changed copy of the table. Caller holds mu, or is alone.
func (s *Store) change(f func(table map[checkpoint.TopicPartition]*Log)) {
	old := *s.table.Load()
	fresh := make(map[checkpoint.TopicPartition]*Log, len(old)+1)
	for k, l := range old {
		fresh[k] = l
	}
	f(fresh)
	s.table.Store(&fresh)
}

func (s *Store) configOf(topic string) Config {
	c := s.o.ConfigFor(topic)
	if err := c.Validate(); err != nil {
		s.log.Error("bad settings of a topic; the defaults are used", "topic", topic, "error", err)
		return s.o.Defaults
	}
	return c
}
