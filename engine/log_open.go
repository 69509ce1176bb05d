package engine

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"millrace/engine/checkpoint"
	"millrace/engine/index"
	"millrace/engine/journal"
	"millrace/engine/producers"
	"millrace/engine/vfs"
)

// LogOptions says how to open one log. The zero value of each field is usable:
// the operating system's files, a log that stands alone, DefaultConfig.
type LogOptions struct {
	FS        vfs.FS   // nil: vfs.OS()
	Topic     string   // for messages and checkpoint files; "" takes the folder's name
	Partition int32    // likewise
	TopicID   [16]byte // names the log in the journal
	Config    Config   // the zero Config: DefaultConfig()

	// Journal is the commit journal that the log shares with others. nil: the
	// log stands alone. It then has a journal in its own folder, remembers
	// there how it was stopped, and the fields down to Clean are not looked at.
	// With a Journal nothing may be appended before the Store has synced what
	// recovery changed and started the journal.
	Journal       *journal.Journal
	Entries       []journal.Entry // what the journal holds of this log (Journal.Replay)
	RecoveryPoint Offset          // below this all bytes are known to be synced in their segments
	StartOffset   Offset          // the checkpointed start
	Clean         bool            // the directory was stopped cleanly
	// Checkpoint makes the log's RecoveryPoint and Start durable. The log
	// calls it, holding its own lock, after lowering the one or raising the
	// other and before files change. nil: nothing to do.
	Checkpoint func(*Log) error
	Background *Background                    // deletes files later
	low        *lowSpaceState                 // whether the directory is short of space; nil: nobody looks
	wrote      func(appends int, bytes int64) // told of every write, with the log's lock held; nil: nobody asks

	JournalOff   bool  // standalone: no journal files, rounds sync the segment itself
	JournalBytes int64 // standalone: size of a journal file; 0: 16 MiB

	Logger   *slog.Logger            // nil: discarded
	Now      func() time.Time        // nil: time.Now
	Indexes  *index.Set              // bound on mapped indexes; nil: none
	Files    *FileSet                // bound on open segment files, of all logs that are given it; nil: none
	Progress func(done, total int64) // bytes of this log that recovery has read, and will; nil: not told
}

// OpenLog opens the log in dir, making both if there is none. After an unclean
// stop it first brings the log into order (recover.go); *CorruptError means
// that acknowledged bytes are damaged and nothing was changed that matters.
func OpenLog(dir string, o LogOptions) (*Log, error) {
	if err := o.complete(dir); err != nil {
		return nil, err
	}
	if o.Journal != nil {
		return openLog(dir, &o)
	}
	if o.Files != nil {
		o.FS = o.Files.relieved(o.FS, nil)
	}
	return openStandalone(dir, &o)
}

func (o *LogOptions) complete(dir string) error {
	if o.FS == nil {
		o.FS = vfs.OS()
	}
	if o.Topic == "" {
		o.Topic = filepath.Base(dir)
	}
	if o.Config == (Config{}) {
		o.Config = DefaultConfig()
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	o.Logger = orDiscard(o.Logger)
	return o.Config.Validate()
}

// openLog opens a log whose journal is o.Journal.
func openLog(dir string, o *LogOptions) (*Log, error) {
	l := &Log{
		topic: o.Topic, partition: o.Partition,
		logger: o.Logger, now: o.Now, indexes: o.Indexes, background: o.Background,
	}
	if l.background == nil {
		l.background = NewBackground(o.Logger)
	}
	if l.wrote = o.wrote; l.wrote == nil {
		l.wrote = func(int, int64) {}
	}
	home := newHome(l, newFolder(o.FS, dir, l, o.Files), o.Journal, journal.LogID{Topic: o.TopicID, Partition: o.Partition}, o.Checkpoint)
	home.low = o.low
	l.home.Store(home)
	l.config.Store(shared(o.Config))
	l.retainBelow.Store(noLimit)
	l.ceiling.Store(noLimit)
	l.epoch.Store(int32(NoEpoch))
	l.mu.producers = producers.New(o.Config.ProducerExpiry)
	l.mu.snapshotAt = -1
	epochs, err := checkpoint.OpenEpochs(o.FS, dir)
	if err != nil {
		o.Logger.Warn("leader epoch history unreadable; it is made again from the batches", "log", dir, "error", err)
	}
	l.epochs = epochs
	l.setLatestEpoch()
	l.mu.Lock() // recovery uses files without pins, which nobody may close for others
	err = l.recover(o)
	l.mu.Unlock()
	if err != nil {
		l.discard()
		return nil, err
	}
	return l, nil
}

// recover takes up what is in the folder.
func (l *Log) recover(o *LogOptions) error {
	r := &recovery{
		log: l, entries: o.Entries, point: o.RecoveryPoint, clean: o.Clean, progress: o.Progress,
	}
	_, err := l.fs().Stat(l.file(suspectName))
	r.suspect = err == nil && !o.Clean
	if !o.Clean { // the stop has removed it
		_, err = l.fs().Stat(l.file(looseName))
		l.home.Load().loose = err == nil
	}
	if r.segments, err = l.takeUp(); err != nil {
		return fmt.Errorf("open %s: %w", l.Dir(), err)
	}
	if l.takeAsIs(r.segments, o) {
		return nil
	}
	start := o.StartOffset
	if len(r.segments) == 0 {
		err = r.startEmpty(start)
		if err == nil {
			err = r.replay() // a first segment whose name was never synced
		}
	} else {
		start = max(start, r.segments[0].base)
		r.start = start
		err = r.run()
	}
	if err == nil && l.End() < start {
		l.logger.Warn("log ends below its start; it begins anew there", "log", l.Dir(), "end", l.End(), "start", start)
		if err = r.takeAway(); err == nil {
			err = r.startEmpty(start)
		}
	}
	if err != nil {
		return err
	}
	l.start.Store(int64(start))
	synced := int64(min(o.RecoveryPoint, l.End()))
	if o.Clean && !r.changed {
		synced = l.end.Load()
	} else if r.changed {
		synced = min(synced, int64((*l.segments.Load())[0].base))
	}
	l.synced.Store(synced)
	l.durable.Store(max(synced, l.start.Load()))
	return l.recoverState()
}

// recoverState brings the epoch history and the producers to the log's end.
func (l *Log) recoverState() error {
	// An epoch that has begun at End and has no batch yet is as true as before.
	err := l.epochs.TruncateEnd(l.end.Load() + 1)
	if err == nil {
		err = l.epochs.TruncateStart(l.start.Load())
	}
	if err == nil {
		err = l.epochs.Flush()
	}
	if err != nil {
		return fmt.Errorf("open %s: %w", l.Dir(), err)
	}
	l.setLatestEpoch()
	return l.reloadProducers(l.End())
}

// takeUp lists the segments and removes what an earlier life left half-done.
func (l *Log) takeUp() ([]*segment, error) {
	fsys := l.fs()
	names, err := fsys.ReadDir(l.Dir())
	if errors.Is(err, fs.ErrNotExist) {
		err = makeDir(fsys, l.Dir())
	}
	if err == nil {
		names, err = l.finishSwap(names)
	}
	if err != nil {
		return nil, err
	}
	var segments []*segment
	have := map[Offset]bool{}
	for _, n := range names {
		if whole, ok := strings.CutSuffix(n.Name, againSuffix); ok { // a crash in writeAgain
			if err := fsys.Rename(l.file(n.Name), l.file(whole)); err != nil {
				return nil, err
			}
			n.Name = whole
		}
		if base, kind, ok := parseName(n.Name); ok && kind == logSuffix {
			s, err := loadSegment(base, l.home.Load().folder, l.indexes, l.config.Load())
			if err != nil {
				return nil, err
			}
			segments = append(segments, s)
			have[base] = true
		}
	}
	for _, n := range names {
		base, kind, ok := parseName(n.Name)
		orphan := ok && !have[base] && (kind == indexSuffix || kind == timeSuffix || kind == txnSuffix)
		if strings.HasSuffix(n.Name, deletedSuffix) {
			l.unlinkLater([]string{n.Name})
		}
		if orphan {
			if err := fsys.Remove(l.file(n.Name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return nil, err
			}
		}
	}
	return segments, nil // ReadDir is sorted and the names have a fixed width
}

// makeDir makes a directory, and those above it, durably.
func makeDir(fsys vfs.FS, dir string) error {
	if _, err := fsys.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	parent := filepath.Dir(dir)
	if parent != dir {
		if err := makeDir(fsys, parent); err != nil {
			return err
		}
	}
	if err := fsys.MkdirAll(dir); err != nil {
		return err
	}
	err := fsys.SyncDir(parent)
	if err != nil {
		// Not left for the next one: the system takes its name for written now, and a sync would say that all is well (L4).
		_ = fsys.Remove(dir)
	}
	return err
}

// parseName splits the name of a segment's file.
func parseName(name string) (base Offset, suffix string, ok bool) {
	digits, kind, found := strings.Cut(name, ".")
	if !found || len(digits) != 20 {
		return 0, "", false
	}
	n, err := strconv.ParseInt(digits, 10, 64)
	return Offset(n), "." + kind, err == nil
}

// recovered ends recovery: what it changed is on disk, and appends may come as
// soon as the journal is started. synced tells that the caller has synced the
// whole file system since; else the log's own files are synced here.
func (l *Log) recovered(synced bool) error {
	if !synced && l.synced.Load() < l.end.Load() {
		owner := &l.home.Load().owner
		files := owner.SyncTargets()
		defer owner.ReleaseTargets(files)
		if err := vfs.SyncMany(l.fs(), l.Dir(), files); err != nil {
			return fmt.Errorf("sync %s after recovery: %w", l.Dir(), err)
		}
	}
	if !synced {
		if err := l.syncRecoveredIndexes(); err != nil {
			return fmt.Errorf("sync %s after recovery: %w", l.Dir(), err)
		}
		if err := l.fs().SyncDir(l.Dir()); err != nil {
			return fmt.Errorf("sync %s after recovery: %w", l.Dir(), err)
		}
	}
	l.indexesSynced()
	l.synced.Store(l.end.Load())
	l.durable.Store(l.end.Load())
	if err := l.fs().Remove(l.file(suspectName)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove %s: %w", suspectName, err)
	}
	return l.tighten()
}

// discard closes what a failed opening has opened.
func (l *Log) discard() {
	l.closed.Store(true)
	if list := l.segments.Load(); list != nil {
		for _, s := range *list {
			s.index.Close()
			s.times.Close()
			s.letGo()
		}
	}
}

// moveAway renames the log's folder, for deletion. Nothing is appended any more; reads
// go on until Close. The lock is held throughout: who finds no index under the old name
// looks again under the new one (repairIndex), and a roll that would sync the folder under
// its old name, and take the directory offline, comes before or after.
func (l *Log) moveAway(dir string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	f := l.home.Load().folder
	if err := f.rename(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	l.mu.failed = ErrClosed
	f.path.Store(&dir)
	f.away.Store(true)
	l.epochs.SetDir(dir)
	for _, s := range *l.segments.Load() {
		s.index.SetPath(s.path(indexSuffix))
		s.times.SetPath(s.path(timeSuffix))
	}
	return nil
}
