package engine

import (
	"errors"
	"fmt"

	"millrace/engine/batch"
	"millrace/engine/index"
)

// OffsetForTime finds the first record at or above Start whose timestamp is at
// or above ts (ms). found is false if there is none.
func (l *Log) OffsetForTime(ts int64) (off Offset, recordTs int64, found bool, err error) {
	for i := 0; ; i++ {
		list := *l.segments.Load()
		if i >= len(list) {
			return -1, -1, false, nil
		}
		off, recordTs, found, err = l.timeInSegment(list[i], ts)
		switch {
		case errors.Is(err, index.ErrCorrupt):
			if err := l.repairIndex(list[i], err); err != nil {
				return -1, -1, false, err
			}
			i--
		case errors.Is(err, errGone) || err != nil && l.isGone(list[i]):
			i = -1 // the list has changed
		case found && off >= l.End(): // of a segment that a truncation is taking away
			return -1, -1, false, nil
		case found || err != nil:
			return off, recordTs, found, err
		}
	}
}

var errGone = errors.New("segment is gone")

func (l *Log) timeInSegment(s *segment, ts int64) (Offset, int64, bool, error) {
	if l.closed.Load() {
		return -1, -1, false, ErrClosed
	}
	if !s.pin() {
		return -1, -1, false, errGone
	}
	defer s.unpin()
	if s.size.Load() == 0 {
		return -1, -1, false, nil // it may have no indexes yet
	}
	largest, err := s.largestTimestamp()
	if err != nil || largest < ts {
		return -1, -1, false, err
	}
	start := l.Start()
	pos, err := s.positionForTime(ts, start)
	if err != nil {
		return -1, -1, false, err
	}
	var off, recordTs int64
	var found bool
	var inner error
	err = s.walk(pos, s.size.Load(), func(e entry) bool {
		if e.maxTs < ts || e.last < start {
			return true
		}
		var b []byte
		if b, inner = s.readEntry(e); inner == nil {
			off, recordTs, found, inner = batch.OffsetForTime(b, ts, int64(start))
		}
		return inner == nil && !found
	})
	return Offset(off), recordTs, found, errors.Join(err, inner)
}

// positionForTime is a position at or before the first batch that can answer.
func (s *segment) positionForTime(ts int64, start Offset) (int64, error) {
	entryTs, off, err := s.times.Lookup(ts - 1)
	if err != nil {
		return 0, err
	}
	from := max(Offset(off), start, s.base)
	e, found, err := s.locate(from)
	if err != nil || !found {
		return e.pos, err
	}
	// All batches up to the entry's have timestamps of at most entryTs, if the
	// entry is true: then its batch has just that timestamp.
	if entryTs >= 0 && Offset(off) >= start && (e.last != Offset(off) || e.maxTs != entryTs) {
		return 0, errIndexLies
	}
	return e.pos, nil
}

// readEntry copies one whole entry out of the file.
func (s *segment) readEntry(e entry) ([]byte, error) {
	f, err := s.file()
	if err != nil {
		return nil, err
	}
	b := make([]byte, e.size)
	if err := readFull(f, b, e.pos); err != nil {
		return nil, fmt.Errorf("%s: read at %d: %w", s.path(logSuffix), e.pos, err)
	}
	return b, nil
}

// largestTimestamp is that of all records in the segment, -1 if none has one.
// Of a sealed segment it is the last entry of the time index, read when first asked.
// An empty segment may have no indexes yet. errGone: the segment is none of the log's any more.
func (s *segment) largestTimestamp() (int64, error) {
	if s.tsKnown.Load() || s.size.Load() == 0 {
		return s.maxTs.Load(), nil
	}
	if !s.pin() { // it may have to be walked
		return -1, errGone
	}
	defer s.unpin()
	if err := s.times.Load(); err != nil {
		return -1, err
	}
	ts, off, ok := s.times.Last()
	if !ok && s.size.Load() > 0 {
		// Kafka leaves the index empty for a segment without timestamps; so
		// does a crash. Old and small segments only: walk it once.
		return s.walkLargestTimestamp()
	}
	if ok {
		s.maxTs.Store(ts)
		s.maxTsOff.Store(off)
	}
	s.tsKnown.Store(true)
	return s.maxTs.Load(), nil
}

// walkLargestTimestamp is largestTimestamp from the batches' headers, which are the truth.
func (s *segment) walkLargestTimestamp() (int64, error) {
	ts, off, ok := int64(-1), int64(-1), false
	err := s.walk(0, s.size.Load(), func(e entry) bool {
		if e.maxTs > ts || !ok {
			ts, off, ok = e.maxTs, int64(e.last), true
		}
		return true
	})
	if err != nil {
		return -1, err
	}
	if ok {
		s.maxTs.Store(ts)
		s.maxTsOff.Store(off)
	}
	s.tsKnown.Store(true)
	return s.maxTs.Load(), nil
}

// MaxTimestamp returns the offset of the first record that has the largest
// timestamp of the log, and that timestamp (ms). (-1, -1) for an empty log and
// one without timestamps.
func (l *Log) MaxTimestamp() (Offset, int64, error) {
	for {
		off, ts, err := l.maxTimestamp()
		if !errors.Is(err, errGone) {
			return off, ts, err
		}
	}
}

func (l *Log) maxTimestamp() (Offset, int64, error) {
	if l.closed.Load() {
		return -1, -1, ErrClosed
	}
	var best *segment
	bestTs := int64(-1)
	for _, s := range *l.segments.Load() {
		ts, err := s.largestTimestamp()
		if errors.Is(err, index.ErrCorrupt) {
			if err = l.repairIndex(s, err); err == nil {
				ts, err = s.largestTimestamp()
			}
		}
		if err != nil {
			if l.isGone(s) {
				err = errGone
			}
			return -1, -1, err
		}
		if ts > bestTs {
			best, bestTs = s, ts
		}
	}
	if best == nil {
		return -1, -1, nil
	}
	if !best.pin() {
		return -1, -1, errGone
	}
	defer best.unpin()
	e, found, err := best.locate(Offset(best.maxTsOff.Load()))
	if err != nil && l.isGone(best) {
		return -1, -1, errGone
	}
	if errors.Is(err, index.ErrCorrupt) {
		if err := l.repairIndex(best, err); err != nil {
			return -1, -1, err
		}
		return -1, -1, errGone
	}
	if err != nil {
		return -1, -1, err
	}
	if !found { // a truncation that failed half-way has taken the batch
		return l.searchMaxTimestamp()
	}
	b, err := best.readEntry(e)
	if err != nil {
		return -1, -1, err
	}
	off, ts, err := batch.MaxTimestampOffset(b)
	if err == nil && ts < 0 {
		return l.searchMaxTimestamp()
	}
	return Offset(off), ts, err
}

// searchMaxTimestamp is MaxTimestamp from the records themselves: compaction keeps the last batch of a segment also when nothing is left in
// it, and what its header says is then true of no record.
func (l *Log) searchMaxTimestamp() (Offset, int64, error) {
	bestOff, bestTs := int64(-1), int64(-1)
	start := l.Start()
	for _, s := range *l.segments.Load() {
		if !s.pin() {
			return -1, -1, errGone
		}
		var inner error
		err := s.walk(0, s.size.Load(), func(e entry) bool {
			if e.maxTs <= bestTs || e.last < start {
				return true
			}
			var b []byte
			if b, inner = s.readEntry(e); inner != nil {
				return false
			}
			var off, ts int64
			if off, ts, inner = batch.MaxTimestampOffset(b); inner == nil && ts > bestTs {
				bestOff, bestTs = off, ts
			}
			return inner == nil
		})
		s.unpin()
		if err = errors.Join(err, inner); err != nil {
			if l.isGone(s) {
				err = errGone
			}
			return -1, -1, err
		}
	}
	return Offset(bestOff), bestTs, nil
}

// repairIndex makes both indexes of a segment anew from the segment. Whatever
// was in them, no record is lost by it. The reader that met the damage waits.
func (l *Log) repairIndex(s *segment, cause error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.isGone(s) || l.closed.Load() {
		return nil
	}
	var damaged *index.CorruptError
	if errors.As(cause, &damaged) && damaged.File != s.index.Path() && damaged.File != s.times.Path() {
		return nil // it was looked for under the name that its folder had before
	}
	l.logger.Warn("index damaged; making it again from the segment",
		"log", l.Dir(), "segment", s.name(logSuffix), "cause", cause)
	c := l.config.Load()
	isActive := s == l.mu.active
	if err := s.rebuild(c); err != nil {
		return fmt.Errorf("rebuild index of %s: %w", s.path(logSuffix), err)
	}
	if isActive {
		return nil
	}
	return errors.Join(s.addTimeEntry(true), s.index.Seal(), s.times.Seal(), s.syncIndexes())
}

// rebuild fills both indexes from the headers of all batches. Caller holds Log.mu.
func (s *segment) rebuild(c *Config) error {
	if err := errors.Join(s.index.Reset(), s.times.Reset()); err != nil {
		return err
	}
	s.countRoom(c)
	s.w.sinceIndex, s.w.firstTs = 0, -1
	s.maxTs.Store(-1)
	s.maxTsOff.Store(int64(s.base))
	var inner error
	err := s.walk(0, s.size.Load(), func(e entry) bool {
		inner = s.noteBatch(e.pos, e.size, e.last, e.maxTs, c.IndexInterval)
		return inner == nil
	})
	s.tsKnown.Store(true)
	return errors.Join(err, inner)
}
