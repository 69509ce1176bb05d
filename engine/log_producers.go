package engine

import (
	"fmt"
	"os"

	"millrace/engine/batch"
	"millrace/engine/producers"
	"millrace/engine/vfs"
)

// reloadProducers makes the producer state as of offset end: from a snapshot,
// and from the headers of all batches behind it. Caller holds mu, or the log
// is not visible yet.
//
// A snapshot knows only each producer's last batch, but a producer may send up
// to five again that were written and never answered. So the newest snapshot
// is used only if there is nothing behind it, as after a clean stop; else the
// one before, so that the walk sees the batches in question; unless the log no
// longer begins below the one before, for then only the newest knows of what is gone.
func (l *Log) reloadProducers(end Offset) error {
	t := l.mu.producers
	t.Reset()
	if err := l.dropSnapshots(func(o Offset, _ int) bool { return o > end }); err != nil {
		return l.storageError("drop producer snapshots", err)
	}
	list, err := producers.Snapshots(l.fs(), l.Dir())
	if err != nil {
		return l.storageError("list producer snapshots", err)
	}
	limit := end
	if n := len(list); n > 1 && Offset(list[n-1]) < end {
		limit = Offset(list[n-2])
	}
	from, err := t.LoadLatest(l.fs(), l.Dir(), int64(limit), l.now())
	if err != nil {
		return l.storageError("load producer snapshot", err)
	}
	if limit < end && max(Offset(from), 0) < (*l.segments.Load())[0].base {
		if from, err = t.LoadLatest(l.fs(), l.Dir(), int64(end), l.now()); err != nil {
			return l.storageError("load producer snapshot", err)
		}
	}
	l.mu.snapshotAt = Offset(from)
	if Offset(from) >= end {
		return nil
	}
	return l.walkProducers(t, max(Offset(from), 0), end)
}

// keepProducers makes sure that the producer state as of o is on disk before the segments below go. The snapshot of the roll need not be:
// it is not synced, nor made again by a start that finds it lost and reads the batches instead. Without it the next start would
// take the last batch of a producer that has been silent since for a new one. What cannot be read or written is no reason to keep what retention
// deletes; a failed sync is one, as any other. Caller holds mu.
func (l *Log) keepProducers(o Offset) error {
	t := producers.New(l.config.Load().ProducerExpiry)
	from, err := t.LoadLatest(l.fs(), l.Dir(), int64(o), l.now())
	if err == nil && Offset(from) < o {
		if err = l.walkProducers(t, max(Offset(from), 0), o); err == nil && t.Len() > 0 {
			err = t.WriteSnapshot(l.fs(), l.Dir(), int64(o))
		}
	}
	if err == nil && t.Len() == 0 {
		return nil // as it is without a snapshot
	}
	var f vfs.File
	if err == nil {
		f, err = l.home.Load().folder.open(producers.SnapshotName(int64(o)), os.O_RDWR)
	}
	if err != nil {
		l.logger.Warn("producer snapshot not written; batches of producers that have sent nothing newer are not known again after a restart",
			"log", l.Dir(), "offset", o, "error", err)
		return nil
	}
	defer f.Close()
	if err := f.Sync(); err != nil {
		l.poison(err)
		return l.poisonError()
	}
	return nil
}

// NewestProducer is the largest producer id that the log knows, -1 if it knows none. A log that nobody has written to since the
// start is taken up for it.
func (l *Log) NewestProducer() (int64, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.wake(); err != nil {
		return -1, err
	}
	newest := int64(-1)
	for _, p := range l.mu.producers.List() {
		newest = max(newest, p.ProducerID)
	}
	return newest, nil
}

// walkProducers notes every idempotent batch in [from, end) in t. What lies below
// Start is still looked at, since a producer may send it again, but nothing is
// owed there: damage is passed over.
func (l *Log) walkProducers(t *producers.Table, from, end Offset) error {
	segments := *l.segments.Load()
	for i, s := range segments {
		last := i == len(segments)-1
		if !last && segments[i+1].base <= from {
			continue
		}
		if s.base >= end {
			break
		}
		if err := l.walkSegment(t, s, from, end); err != nil {
			if !last && segments[i+1].base <= l.Start() {
				continue
			}
			return fmt.Errorf("rebuild producer state: %w", err)
		}
	}
	return nil
}

func (l *Log) walkSegment(t *producers.Table, s *segment, from, end Offset) error {
	pos := int64(0)
	if from > s.base {
		e, _, err := s.locate(from)
		if err != nil && !isIndexDamage(err) {
			return err
		}
		if err == nil {
			pos = e.pos
		}
	}
	f, err := s.file()
	if err != nil {
		return err
	}
	buf := walkBuffers.Get().(*[]byte)
	defer walkBuffers.Put(buf)
	w := walker{file: f, of: s, pos: pos, end: s.size.Load(), buf: *buf}
	return noteProducers(t, &w, from, end)
}

func noteProducers(t *producers.Table, w *walker, from, end Offset) error {
	for w.pos < w.end {
		e, err := w.next()
		if err != nil {
			return err
		}
		if e.base >= end {
			return nil
		}
		if e.magic != 2 || e.last < from {
			continue
		}
		v := batch.View(w.header(e.pos))
		if v.ProducerID() < 0 {
			continue
		}
		t.Update(headerInfo(v), int64(e.base), e.maxTs)
	}
	return nil
}

// headerInfo is the Info of a batch of which only the header is at hand.
func headerInfo(v batch.View) batch.Info {
	return batch.Info{
		Size: v.Size(), BaseOffset: v.BaseOffset(), Count: v.Count(), LastOffsetDelta: v.LastOffsetDelta(),
		BaseTimestamp: v.BaseTimestamp(), MaxTimestamp: v.MaxTimestamp(),
		ProducerID: v.ProducerID(), ProducerEpoch: v.ProducerEpoch(), BaseSequence: v.BaseSequence(),
		Attributes: v.Attributes(), LeaderEpoch: v.LeaderEpoch(), Magic: v.Magic(),
	}
}
