package engine

import (
	"errors"
	"io"
	"path/filepath"

	"millrace/engine/checkpoint"
	"millrace/engine/journal"
)

// lockName is Kafka's name for it, one level lower.
const lockName = ".lock"

// standalone is what a Store otherwise does for a log: the lock, the journal,
// the checkpoints and the mark of a clean stop, all in the log's own folder.
// The files are Kafka's; it ignores them there.
type standalone struct {
	lock io.Closer
	key  checkpoint.TopicPartition
}

// openStandalone opens a log with everything of its own. The order is F010's:
// the mark of a clean stop is gone before the log is looked at.
func openStandalone(dir string, o *LogOptions) (_ *Log, err error) {
	fsys := o.FS
	if err := makeDir(fsys, dir); err != nil {
		return nil, err
	}
	// Again: an earlier try may have made it and failed to sync.
	if err := fsys.SyncDir(filepath.Dir(dir)); err != nil {
		return nil, err
	}
	s := &standalone{key: checkpoint.TopicPartition{Topic: o.Topic, Partition: o.Partition}}
	if s.lock, err = fsys.Lock(filepath.Join(dir, lockName)); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			s.lock.Close()
		}
	}()
	if o.Clean, err = checkpoint.TakeClean(fsys, dir); err != nil {
		return nil, err
	}
	o.RecoveryPoint = s.read(o, dir, checkpoint.RecoveryPoints)
	o.StartOffset = s.read(o, dir, checkpoint.LogStarts)
	o.Checkpoint = s.write
	if o.JournalBytes == 0 {
		o.JournalBytes = standaloneJournalBytes
	}
	var l *Log
	o.Journal, err = journal.Open(journal.Options{
		FS: fsys, Dir: dir, DataDir: dir, Off: o.JournalOff, Logger: o.Logger,
		FileBytes: o.JournalBytes, Files: standaloneJournalFiles,
		Poison: func(cause error) { l.poison(cause) },
	})
	if err != nil {
		return nil, err
	}
	o.Entries = o.Journal.Replay(journal.LogID{Topic: o.TopicID, Partition: o.Partition})
	if l, err = openLog(dir, o); err != nil {
		return nil, errors.Join(err, o.Journal.Close())
	}
	l.standalone = s
	if err = l.recovered(false); err == nil {
		err = s.write(l)
	}
	if err == nil {
		err = o.Journal.Start()
	}
	if err != nil {
		l.discard()
		return nil, errors.Join(err, o.Journal.Close())
	}
	return l, nil
}

// read returns the log's line of a checkpoint file; an unreadable one is as
// good as none: the recovery only takes longer.
func (s *standalone) read(o *LogOptions, dir, name string) Offset {
	offsets, err := checkpoint.ReadOffsets(o.FS, filepath.Join(dir, name))
	if err != nil {
		o.Logger.Warn("checkpoint unreadable", "file", filepath.Join(dir, name), "error", err)
	}
	return Offset(offsets[s.key])
}

// write brings recovery point and start to the disk.
func (s *standalone) write(l *Log) error {
	start := checkpoint.Offsets{s.key: int64(l.Start())}
	if err := start.Write(l.fs(), l.file(checkpoint.LogStarts)); err != nil {
		return err
	}
	if err := l.syncIndexes(); err != nil {
		return err
	}
	point := checkpoint.Offsets{s.key: int64(l.checkpointPoint())}
	return point.Write(l.fs(), l.file(checkpoint.RecoveryPoints))
}

// close ends what openStandalone began. clean says that everything is synced
// and closed in order, so that the next start need not look.
func (s *standalone) close(l *Log, clean bool) error {
	err := l.home.Load().journal.Close()
	if err == nil && clean && l.poisonError() == nil && l.mu.failed == nil {
		if err = s.write(l); err == nil {
			err = checkpoint.MarkClean(l.fs(), l.Dir(), -1)
		}
	}
	l.background.Close()
	return errors.Join(err, s.lock.Close())
}
