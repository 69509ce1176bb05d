package journal

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"millrace/engine/vfs"
)

// Journal is the commit journal of one data directory. All methods may be called from many goroutines, except that Open,
// Replay, Logs, Start and Close follow one another.
type Journal struct {
	// Fixed at Open.
	fs        vfs.FS
	dir       string
	dataDir   string
	off       bool
	fileBytes int64
	maxFiles  int
	threshold int
	piece     int64 // pieceBytes; less in tests
	log       *slog.Logger
	onPoison  func(error)
	onRecycle func()

	// What an earlier life left; from Open to Start.
	old     []oldFile
	entries map[LogID][]Entry

	// Fixed at Start.
	generation [16]byte
	began      int64
	page       []byte // aligned, for kill; passMu
	stop       chan struct{}
	keeperDone chan struct{}
	kick       chan struct{} // capacity 1

	done  atomic.Uint64                 // rounds up to this one are durable; 0 once poisoned, so that Wait looks closer
	cause atomic.Pointer[PoisonedError] // equals failed

	waiterPool *sync.Pool // of *waiter
	toldPool   sync.Pool  // of *[]Owner

	// passMu serialises passes and whatever kills files. It is taken before mu and, unlike mu, held across I/O. A runner takes it
	// only to empty the journal.
	passMu      sync.Mutex
	passTargets []target
	passStates  []*ownerState
	passFiles   []vfs.File

	// The runner's (there is one at a time; it hands over under mu).
	targets []target
	syncing []vfs.File
	blocks  uint64 // number of the last block

	// The keeper's once started.
	doomed    []string
	nextIndex int

	mu           sync.Mutex // lock order: log.mu, then this; no I/O and no waiting under it
	phase        phase
	failed       error // *PoisonedError
	rounds       [2]round
	open         *round
	running      *round // nil: whoever waits runs the open one
	ended        uint64 // number of the last round that ended well
	idle         *sync.Cond
	owners       map[Owner]*ownerState
	files        []*file
	free         []*file
	current      *file
	sealed       []*file   // oldest first
	noFileUntil  time.Time // making one failed: no further try before
	emptying     bool      // the runner, or Close, waits for passMu
	flushArmed   bool
	flushSeen    uint64
	recycledTold uint64
	stats        Stats
}

type phase int

const (
	opened phase = iota
	started
	closed
)

var (
	errStopped = errors.New("stopped")
	errNoSpace = errors.New("too little space for another journal file")
	errStuck   = errors.New("a log lowered its end and did not call Cut")
)

// Open reads what an earlier life left in o.Dir and changes nothing. Blocks that are not whole were never acknowledged and are
// passed over. Errors are those of reading, and a journal that a newer version wrote.
func Open(o Options) (*Journal, error) {
	j := &Journal{
		fs:        o.FS,
		dir:       o.Dir,
		dataDir:   o.DataDir,
		off:       o.Off,
		fileBytes: o.FileBytes,
		maxFiles:  o.Files,
		threshold: o.Threshold,
		piece:     pieceBytes,
		log:       o.Logger,
		onPoison:  o.Poison,
		onRecycle: o.OnRecycle,
	}
	if j.fileBytes <= 0 {
		j.fileBytes = DefaultFileBytes
	}
	j.fileBytes = max(j.fileBytes&^(pageBytes-1), minFileBytes)
	if j.maxFiles <= 0 {
		j.maxFiles = DefaultFiles
	}
	j.maxFiles = max(j.maxFiles, minFiles)
	switch {
	case j.threshold == 0:
		j.threshold = DefaultThreshold
	case j.threshold < 0:
		j.threshold = math.MaxInt
	}
	if j.log == nil {
		j.log = slog.New(slog.DiscardHandler)
	}
	j.idle = sync.NewCond(&j.mu)
	j.waiterPool = newWaiterPool()
	j.toldPool.New = func() any { return new([]Owner) }
	j.owners = map[Owner]*ownerState{}
	j.stop = make(chan struct{})
	j.keeperDone = make(chan struct{})
	j.kick = make(chan struct{}, 1)
	j.rounds[1].number = 1
	j.open = &j.rounds[1]
	if err := j.scan(); err != nil {
		j.closeOld()
		return nil, err
	}
	return j, nil
}

// Start forgets what Open found and begins to take records. Every log of the directory has been recovered and synced before. A crash
// before it returns finds the old records again, or some of the newest of them; replaying those changes nothing (L7).
// After an error the journal can only be closed.
func (j *Journal) Start() error {
	if err := j.start(); err != nil {
		return err
	}
	go j.keeper() // owned by the journal, ended and waited for by Close
	j.wakeKeeper()
	return nil
}

// start is Start without the keeper.
func (j *Journal) start() error {
	if j.phase != opened {
		return errors.New("journal: Start called twice or after Close")
	}
	j.page = vfs.AlignedBuffer(pageBytes)
	defer j.closeOld()
	if err := j.reuseOld(); err != nil {
		return fmt.Errorf("start journal: %w", err)
	}
	if len(j.files) == 0 && !j.off {
		err := j.makeFirst()
		if names := (*failedNamesError)(nil); errors.As(err, &names) {
			return fmt.Errorf("start journal: %w", err)
		}
		if err != nil {
			j.log.Warn("no journal file; rounds sync the logs' files", "dir", j.dir, "err", err)
		}
	}
	rand.Read(j.generation[:]) // never fails
	j.began = time.Now().UnixNano()
	j.rounds[0].init()
	j.rounds[1].init()
	j.mu.Lock()
	j.phase = started
	j.mu.Unlock()
	return nil
}

// reuseOld kills every file, oldest first (see recycle), and keeps those that are of use. It also kills those in which nothing was found: if
// the sync of a kill had failed in an earlier life, the page cache may show a head that the disk does not have, and behind
// it lies a chain that was older than all others; hence the order.
func (j *Journal) reuseOld() error {
	for i := range j.old {
		old := &j.old[i]
		f, err := openForRounds(j.fs, old.name, old.size)
		if err != nil {
			return err
		}
		j.files = append(j.files, f)
		if old.size >= pageBytes {
			if err := f.kill(j.page); err != nil {
				return err
			}
		}
		// Its making may have been interrupted: size and name must be durable before a round relies on them.
		if err := errors.Join(f.io.Sync(), f.renew(j.fs)); err != nil {
			return err
		}
	}
	if len(j.files) > 0 {
		if err := j.fs.SyncDir(j.dir); err != nil {
			return err
		}
	}
	keep := j.files[:0]
	for _, f := range j.files {
		if j.off || f.size < min(firstFileBytes, j.fileBytes) || len(keep) == j.maxFiles {
			j.doomed = append(j.doomed, f.name)
			f.io.Close()
			continue
		}
		keep = append(keep, f)
	}
	j.files = keep
	j.free = append(j.free, keep...)
	return nil
}

// makeFirst makes the first file, a small one, while the caller waits.
func (j *Journal) makeFirst() error {
	if err := j.fs.MkdirAll(j.dir); err != nil {
		return err
	}
	// All the way up: an earlier life may have made some of them and not come to syncing them. Once there is a file, that is done.
	for dir, up := j.dir, filepath.Dir(j.dir); up != dir; dir, up = up, filepath.Dir(up) {
		if err := j.fs.SyncDir(up); err != nil && !errors.Is(err, fs.ErrPermission) { // not ours, so not made by us
			return &failedNamesError{err}
		}
	}
	f, err := j.makeFile(min(firstFileBytes, j.fileBytes), nil)
	if err != nil {
		return err
	}
	j.files = append(j.files, f)
	j.free = append(j.free, f)
	return nil
}

func (j *Journal) closeOld() {
	for i := range j.old {
		j.old[i].file.Close()
	}
	j.old, j.entries = nil, nil
}

// DataDir is the folder whose file system the owners' files are on (Options.DataDir).
func (j *Journal) DataDir() string { return j.dataDir }

// Fail tells the journal that a sync failed which was not the journal's: one that a log did itself, of a file or of a directory. From then on
// it is as if a round had failed (L4). In particular Close then leaves the records in place, which may be the only copy.
func (j *Journal) Fail(cause error) { j.poison(cause) }

// Failed is what the journal was poisoned by, nil while it works (L4).
func (j *Journal) Failed() error {
	if e := j.cause.Load(); e != nil {
		return e
	}
	return nil
}

// poison makes every Wait, now and later, fail (L4).
func (j *Journal) poison(cause error) {
	e := &PoisonedError{Dir: j.dataDir, Cause: cause}
	j.mu.Lock()
	if j.failed != nil {
		j.mu.Unlock()
		return
	}
	j.failed = e
	j.cause.Store(e)
	j.done.Store(0)
	parked := [2]waiterList{j.rounds[0].waiting.take(), j.rounds[1].waiting.take()}
	j.mu.Unlock()
	j.log.Error("a write or sync failed: nothing in this data directory is acknowledged until it is opened again",
		"dir", j.dataDir, "err", cause)
	for i := range parked {
		parked[i].wakeAll(failed)
	}
	if j.onPoison != nil {
		j.onPoison(e)
	}
}

// Close ends the journal: what was added is made durable, every owner's files are synced, and the files say that there is nothing to replay, so
// that the directory is plain Kafka's. The owners are not closed yet; nobody adds any more. A poisoned journal is
// only closed, and the error is returned.
func (j *Journal) Close() error {
	j.mu.Lock()
	switch j.phase {
	case closed:
		j.mu.Unlock()
		return nil
	case opened:
		j.phase = closed
		j.mu.Unlock()
		j.closeOld()
		j.closeFiles()
		return nil
	}
	for j.running != nil || !j.open.empty() && j.failed == nil {
		if j.running != nil {
			j.idle.Wait()
			continue
		}
		_ = j.run() // unlocks; a failure is kept
		j.mu.Lock()
	}
	j.phase = closed
	j.mu.Unlock()

	close(j.stop)
	<-j.keeperDone
	var err error
	if failure := j.cause.Load(); failure != nil {
		err = failure
	} else if err = j.syncAll(); err == nil {
		if failure := j.emptyJournal(); failure != nil {
			j.poison(failure)
			err = j.cause.Load()
		}
	}
	j.rounds[0].free()
	j.rounds[1].free()
	j.closeFiles()
	return err
}

func (j *Journal) closeFiles() {
	for _, f := range j.files {
		f.io.Close()
	}
	if j.page != nil {
		vfs.FreeBuffer(j.page)
		j.page = nil
	}
}
