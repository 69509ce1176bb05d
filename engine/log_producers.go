package engine

import (
	"fmt"

	"millrace/engine/batch"
	"millrace/engine/producers"
)

// reloadProducers makes the producer state as of offset end: from a snapshot,
// and from the headers of all batches behind it. Caller holds mu, or the log
// is not visible yet.
//
// A snapshot knows only each producer's last batch, but a producer may send up
// to five again that were written and never answered. So the newest snapshot
// is used only if there is nothing behind it, as after a clean stop; else the
// one before, so that the walk sees the batches in question.
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
	l.mu.snapshotAt = Offset(from)
	if Offset(from) >= end {
		return nil
	}
	return l.walkProducers(max(Offset(from), 0), end)
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

// walkProducers notes every idempotent batch in [from, end). What lies below
// Start is still looked at, since a producer may send it again, but nothing is
// owed there: damage is passed over.
func (l *Log) walkProducers(from, end Offset) error {
	segments := *l.segments.Load()
	for i, s := range segments {
		last := i == len(segments)-1
		if !last && segments[i+1].base <= from {
			continue
		}
		if err := l.walkSegment(s, from, end); err != nil {
			if !last && segments[i+1].base <= l.Start() {
				continue
			}
			return fmt.Errorf("rebuild producer state: %w", err)
		}
	}
	return nil
}

func (l *Log) walkSegment(s *segment, from, end Offset) error {
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
	return l.noteProducers(&w, from, end)
}

func (l *Log) noteProducers(w *walker, from, end Offset) error {
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
		l.mu.producers.Update(headerInfo(v), int64(e.base), e.maxTs)
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
