package engine

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"

	"millrace/engine/checkpoint"
	"millrace/engine/journal"
	"millrace/engine/vfs"
)

// A name in a data directory that is not Kafka's; Kafka passes over plain files.
//
// journalPlaceName holds the folder of the journal if that is not the data
// directory itself. Written before the journal there takes its first record: who
// changes millrace.commit.journal.dir after a crash still gets everything back.
const journalPlaceName = "millrace-journal-location"

// dataDir is one data directory of a Store: its lock, marker, journal, checkpoints,
// and whether it still works.
type dataDir struct {
	store *Store
	path  string
	fs    vfs.FS

	lock     io.Closer
	listed   bool             // its logs are known
	outdated bool             // the checkpoint files tell of logs that are gone; guarded by Store.mu
	futures  []string         // folders of copies that the last life had begun (store_move_load.go)
	clean    bool             // it was stopped cleanly; the marker is gone by now
	place    string           // folder of the journal
	journal  *journal.Journal // nil if the directory was offline from the start
	former   *journal.Journal // the journal of the last life, if it lies elsewhere; nil once forgotten

	failed atomic.Pointer[dirFailure] // offline

	writing     sync.Mutex // one checkpoint writer at a time; taken before mu
	asked, done atomic.Int64
	lastErr     error              // guarded by writing
	written     map[string]string  // guarded by writing: file name to what it holds
	highMarks   checkpoint.Offsets // as read at the start; guarded by writing

	mu struct {
		sync.Mutex
		live            map[checkpoint.TopicPartition]*Log // open, or about to be
		points          checkpoint.Offsets                 // recovery points as read, for those not open
		starts          checkpoint.Offsets
		dirty, horizons checkpoint.Offsets // of compaction, as read
		aside           bool               // a log was set aside
	}

	low lowSpaceState
}

type dirFailure struct{ err error }

func newDataDir(s *Store, path string) *dataDir {
	d := &dataDir{store: s, path: path, fs: s.o.FS, written: make(map[string]string)}
	d.mu.live = make(map[checkpoint.TopicPartition]*Log)
	d.mu.points, d.mu.starts = checkpoint.Offsets{}, checkpoint.Offsets{}
	d.highMarks = checkpoint.Offsets{}
	d.place = d.path
	if base := s.o.JournalDir; base != "" {
		// One folder a data directory: the name a person can read, and enough of a hash to tell two apart.
		sum := sha256.Sum256([]byte(path))
		d.place = filepath.Join(base, filepath.Base(path)+"-"+hex.EncodeToString(sum[:4]))
	}
	return d
}

// fail takes the directory offline, once. Its logs refuse appends through their journal; reads go on.
func (d *dataDir) fail(err error) {
	if !d.failed.CompareAndSwap(nil, &dirFailure{err}) {
		return
	}
	if d.journal != nil {
		d.journal.Fail(err) // L4: also when what failed was not the journal's
	}
	d.suspect(err)
	d.store.log.Error("data directory is offline; the others serve on", "dir", d.path, "error", err)
	if f := d.store.o.DirOffline; f != nil {
		f(d.path, err)
	}
}

// suspect has every log note that has bytes which are not known to be synced (L4): not only those that somebody waits for. A sync of many files may have
// failed over any of them, and the system takes what it could not write for written: the next life would vouch for it.
func (d *dataDir) suspect(cause error) {
	for _, l := range d.logs() {
		if h := l.home.Load(); h.journal == d.journal && l.RecoveryPoint() < l.End() {
			h.poison(l, cause)
		}
	}
}

func (d *dataDir) offline() error {
	if f := d.failed.Load(); f != nil {
		return f.err
	}
	return nil
}

// hold makes the directory if need be and takes its lock.
func (d *dataDir) hold() error {
	if err := makeDir(d.fs, d.path); err != nil {
		return err
	}
	lock, err := d.fs.Lock(filepath.Join(d.path, lockName))
	if err != nil {
		return err
	}
	d.lock = lock
	return nil
}

// release gives back what is held: the journal before the logs, for a log that is
// discarded no longer tells the journal what to sync.
func (d *dataDir) release() {
	if d.journal != nil {
		d.journal.Close()
	}
	for _, l := range d.logs() {
		if !l.closed.Load() {
			l.discard()
		}
	}
	if d.former != nil {
		d.former.Close()
	}
	if d.lock != nil {
		d.lock.Close()
		d.lock = nil
	}
}

// agree reads meta.properties of all directories, compares, and writes it where it is
// missing. A directory whose file cannot be read goes offline: it may be another's.
func (s *Store) agree() error {
	metas := make(map[string]checkpoint.Meta)
	for _, d := range s.dirs {
		if d.offline() != nil {
			continue
		}
		m, ok, err := checkpoint.ReadMeta(d.fs, d.path)
		if err != nil {
			d.fail(err)
		} else if ok {
			metas[d.path] = m
		}
	}
	id, cluster, err := checkpoint.Agree(metas, s.o.Dirs, s.o.BrokerID, s.o.ClusterID)
	if err != nil {
		return err
	}
	if id < 0 {
		id = 0
	}
	if cluster == "" {
		cluster = checkpoint.FormatID(newID())
	}
	s.brokerID, s.clusterID = id, cluster
	for _, d := range s.dirs {
		if d.offline() != nil {
			continue
		}
		m, ok := metas[d.path]
		if ok && m.BrokerID == id && m.ClusterID == cluster {
			continue // nothing is written without need: the disk may be full (F014)
		}
		m.BrokerID, m.ClusterID = id, cluster
		if err := m.Write(d.fs, d.path, s.o.Now()); err != nil {
			d.fail(err)
		}
	}
	return nil
}

// prepare does what comes before the first log is opened: the marker of a clean stop
// is noted and removed, durably (F010), and journal and checkpoints are read.
func (d *dataDir) prepare() error {
	_, err := d.fs.Stat(filepath.Join(d.path, checkpoint.CleanName))
	d.clean = err == nil
	if err := d.openJournal(); err != nil {
		return err
	}
	if err := d.forgetStale(); err != nil {
		return err
	}
	if d.clean, err = checkpoint.TakeClean(d.fs, d.path); err != nil {
		return err
	}
	read := func(name string) checkpoint.Offsets {
		o, err := checkpoint.ReadOffsets(d.fs, filepath.Join(d.path, name))
		if err != nil {
			// What it said is a shortcut only; without it more is read.
			d.store.log.Error("checkpoint is damaged; what it does not say is found out from the logs", "error", err)
			d.clean = false
			return o
		}
		d.written[name] = string(o.Encode())
		return o
	}
	d.mu.points = read(checkpoint.RecoveryPoints)
	d.mu.starts = read(checkpoint.LogStarts)
	d.mu.dirty, d.mu.horizons = read(checkpoint.CleanerOffsets), read(checkpoint.CleanHorizons)
	d.highMarks = read(checkpoint.HighWatermarks)
	return nil
}

// openJournal reads the journal where the last life had it, and, if the setting has
// changed since, the one where it is to be.
func (d *dataDir) openJournal() error {
	o := journal.Options{
		FS:        d.fs,
		Dir:       d.place,
		DataDir:   d.path,
		Off:       d.store.o.Journal == "off",
		Threshold: d.store.o.JournalThreshold,
		Logger:    d.store.log,
		Poison:    d.fail,
		OnRecycle: d.store.noteRecycled,
	}
	var err error
	if d.journal, err = journal.Open(o); err != nil {
		return err
	}
	before, err := d.formerPlace()
	if err != nil || before == d.place {
		return err
	}
	if _, err := d.fs.Stat(before); err != nil {
		if d.clean { // it was empty then
			return nil
		}
		return fmt.Errorf("the journal of the last run was in %s, which is not there; what was acknowledged last may be in it: %w", before, err)
	}
	o.Dir, o.Off, o.Poison, o.OnRecycle = before, true, nil, nil
	if d.former, err = journal.Open(o); err != nil {
		return fmt.Errorf("read the journal of the last run in %s: %w", before, err)
	}
	return nil
}

// forgetStale empties a journal that holds something although the directory was
// stopped cleanly. Our own stop leaves it empty (L7), so the marker is another
// program's, that used the directory after a crash of ours: what it did with the logs
// holds. It comes before the marker goes, or a crash in between would bring it back.
func (d *dataDir) forgetStale() error {
	if !d.clean {
		return nil
	}
	stale := 0
	for _, j := range []*journal.Journal{d.former, d.journal} {
		if j != nil {
			stale += len(j.Logs())
		}
	}
	if stale == 0 {
		return nil
	}
	d.store.log.Error("the journal is older than the last clean stop, which was another program's; it is not replayed",
		"dir", d.path, "journal", d.place, "logs", stale)
	for _, j := range []*journal.Journal{d.former, d.journal} {
		if j == nil {
			continue
		}
		if err := errors.Join(j.Start(), j.Close()); err != nil {
			return fmt.Errorf("empty a stale journal: %w", err)
		}
	}
	d.former, d.journal = nil, nil
	return d.openJournal()
}

func (d *dataDir) formerPlace() (string, error) {
	b, err := checkpoint.ReadFile(d.fs, filepath.Join(d.path, journalPlaceName))
	if errors.Is(err, fs.ErrNotExist) {
		return d.path, nil
	}
	if err != nil {
		return "", err
	}
	return cmp.Or(strings.TrimSpace(string(b)), d.path), nil
}

// replay returns what the last life's journal holds of a log.
func (d *dataDir) replay(id journal.LogID) []journal.Entry {
	if d.former != nil {
		if entries := d.former.Replay(id); len(entries) > 0 {
			return entries
		}
	}
	return d.journal.Replay(id)
}

// begin lets the journal take records. Every log is recovered. unsynced tells that
// recovery wrote something, or that bytes of the last life may not be synced yet.
//
// The former journal is forgotten only after that sync, and the new place is on disk
// before anything is appended: at every moment the file names the one journal that
// holds anything.
func (d *dataDir) begin(unsynced bool) error {
	rescued, err := d.rescue()
	if err != nil {
		return err
	}
	if unsynced || rescued {
		if err := d.fs.SyncFS(d.path); err != nil {
			return err
		}
	}
	if d.former != nil {
		if err := errors.Join(d.former.Start(), d.former.Close()); err != nil {
			return fmt.Errorf("empty the former journal: %w", err)
		}
		d.former = nil
	}
	name := filepath.Join(d.path, journalPlaceName)
	if d.place != d.path {
		if err := makeDir(d.fs, d.place); err != nil {
			return err
		}
		if err := checkpoint.WriteFile(d.fs, name, []byte(d.place+"\n")); err != nil {
			return err
		}
	}
	if err := d.journal.Start(); err != nil {
		return err
	}
	if d.place == d.path {
		err := d.fs.Remove(name)
		if err == nil {
			err = d.fs.SyncDir(d.path)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}
