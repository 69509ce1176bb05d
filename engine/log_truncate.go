package engine

import (
	"math"
	"slices"
)

// TruncateTo removes everything at or above o. If o lies inside a batch, the
// whole batch goes and End becomes its first offset. It is durable when it
// returns. Appends wait meanwhile; readers of the removed range may get short
// reads, as they may not be above the high watermark.
//
// Order, for a crash at any point: the recovery point is lowered on disk; the
// journal is told, durably, to forget what it holds above o; the later segments
// are renamed from the newest down and their folder synced; the file is cut and
// synced. A crash on the way leaves an end somewhere between o and the old one,
// and no journal entry that does not connect to it, which would mean damage
// (recover.go). Nothing that was cut comes back after TruncateTo has returned.
func (l *Log) TruncateTo(o Offset) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.refusal(); err != nil {
		return err
	}
	if o >= l.End() {
		return nil
	}
	if err := l.wake(); err != nil {
		return err
	}
	lowest := Offset(math.MinInt64)
	defer func() { l.noteCut(lowest) }()
	if o < l.Start() || o < (*l.segments.Load())[0].base {
		return l.reset(o)
	}
	cut, err := l.truncationPoint(o)
	if err != nil {
		return err
	}
	if cut.offset < l.Start() {
		return l.reset(l.Start()) // the batch holds Start as well: nothing readable is left (L2)
	}
	lowest = cut.offset
	l.cleaning.cut(cut.offset)
	if err := l.lowerRecoveryPoint(cut.offset); err != nil {
		return err
	}
	l.end.Store(int64(cut.offset)) // nobody may look for what is going
	l.news.cut(cut.offset)
	if err := l.forget(cut.offset, int64(cut.offset)); err != nil {
		return err
	}
	err = l.dropAbove(cut.offset)
	if err == nil {
		err = l.cutActive(cut.pos, cut.offset)
	}
	if err == nil {
		l.ceiling.Store(noLimit)
		err = l.forgetState(cut.offset)
	}
	if err != nil && l.mu.failed == nil {
		// The file still holds what End no longer does: an append would go behind it (L1). Or epochs and producers are still those of
		// before: it would be judged by what was taken back, and the history would not tell of it.
		l.mu.failed = err
	}
	return err
}

// forgetState takes epochs and producers back to o, where the log ends now. Caller holds mu.
func (l *Log) forgetState(o Offset) error {
	if err := l.epochs.TruncateEnd(int64(o)); err != nil {
		return l.storageError("truncate leader epochs", err)
	}
	l.setLatestEpoch()
	if err := l.forgetSnapshots(o); err != nil {
		return err
	}
	return l.reloadProducers(o)
}

// forgetSnapshots removes the producer snapshots above o, durably: one that a loss of power brought back would be taken for the state
// at its offset once the log has grown to there anew. Caller holds mu.
func (l *Log) forgetSnapshots(o Offset) error {
	gone := false
	err := l.dropSnapshots(func(at Offset, _ int) bool {
		gone = gone || at > o
		return at > o
	})
	if err != nil {
		return l.storageError("drop producer snapshots", err)
	}
	if !gone {
		return nil
	}
	return l.syncDir()
}

// cutPoint is a batch boundary.
type cutPoint struct {
	offset Offset
	pos    int64
}

// truncationPoint finds the boundary at or below o. Caller holds mu.
func (l *Log) truncationPoint(o Offset) (cutPoint, error) {
	list := *l.segments.Load()
	s := list[segmentOf(list, o)]
	e, found, err := s.locate(o)
	if isIndexDamage(err) {
		if err = s.rebuild(l.config.Load()); err == nil {
			e, found, err = s.locate(o)
		}
	}
	if err != nil {
		return cutPoint{}, err
	}
	if !found {
		e.base = o // o lies in a gap before the next segment
	}
	end, err := s.endBefore(e.pos, min(o, e.base))
	return cutPoint{end, e.pos}, err
}

// endBefore is the end of the batches below position pos, at most o. After a
// restart a log ends where its last batch does, so a truncation into a gap must
// not leave an End that only memory knows.
func (s *segment) endBefore(pos int64, o Offset) (Offset, error) {
	if pos == 0 {
		return s.base, nil
	}
	before, found, err := s.locate(o - 1)
	if err == nil && found && before.pos < pos {
		return before.last + 1, nil // no gap, as nearly always
	}
	end := s.base
	err = s.walk(0, pos, func(e entry) bool {
		end = e.last + 1
		return true
	})
	return end, err
}

// lowerRecoveryPoint makes sure that a crash after the cut does not take torn
// new bytes for damage in old ones. Caller holds mu.
func (l *Log) lowerRecoveryPoint(to Offset) error {
	if Offset(l.synced.Load()) <= to {
		return nil
	}
	l.ceiling.Store(int64(to)) // until forget
	if err := l.home.Load().checkpoint(l); err != nil {
		return l.storageError("checkpoint before truncation", err)
	}
	return nil
}

// dropAbove gives up the segments that begin above o, newest first. The one that
// begins at o stays, to be emptied. Caller holds mu.
func (l *Log) dropAbove(o Offset) error {
	list := *l.segments.Load()
	keep := len(list)
	for keep > 1 && list[keep-1].base > o {
		keep--
	}
	if keep == len(list) {
		return nil
	}
	l.setSegments(slices.Clone(list[:keep]))
	l.hints.Store(nil)
	if err := l.giveUp(newestFirst(list[keep:])); err != nil {
		return err
	}
	if err := l.syncDir(); err != nil {
		return err
	}
	return l.reactivate(l.mu.active)
}

// reactivate opens a sealed segment's indexes for appending. Caller holds mu.
func (l *Log) reactivate(s *segment) error {
	c := l.config.Load()
	l.age(s, c)
	// Truncating to the end makes a sealed index an active one.
	err := s.index.TruncateTo(math.MaxInt64)
	if err == nil {
		err = s.times.TruncateTo(math.MaxInt64)
	}
	if isIndexDamage(err) {
		err = s.rebuild(c)
	}
	if err != nil {
		return l.storageError("open the last segment's index", err)
	}
	s.countRoom(c)
	return nil
}

// cutActive truncates the active segment at pos, where offset o begins. Caller holds mu.
func (l *Log) cutActive(pos int64, o Offset) error {
	s := l.mu.active
	f, err := s.file()
	if err != nil {
		return l.storageError("truncate", err)
	}
	if err := s.cutIndexes(l.config.Load(), o); err != nil {
		return l.storageError("truncate index", err)
	}
	s.size.Store(pos)
	l.hints.Store(nil)
	if err := f.Truncate(pos); err != nil {
		l.mu.failed = l.storageError("truncate", err)
		return l.mu.failed
	}
	if err := s.noteTimestamps(l.config.Load()); err != nil {
		return l.storageError("truncate", err)
	}
	if err := f.Sync(); err != nil {
		l.poison(err)
		return l.poisonError()
	}
	return nil
}

// cutIndexes drops what the indexes say of offsets at or above o.
func (s *segment) cutIndexes(c *Config, o Offset) error {
	err := s.index.TruncateTo(int64(o))
	if err == nil {
		err = s.times.TruncateTo(int64(o))
	}
	if isIndexDamage(err) {
		return s.rebuild(c)
	}
	s.countRoom(c)
	return err
}

// noteTimestamps learns the largest timestamp and the distance to the last
// index entry anew, from the last time entry on: an offset entry may stand behind
// it without one of its own, when a combined write has met a full time index. Caller holds Log.mu.
func (s *segment) noteTimestamps(c *Config) error {
	ts, off, ok := s.times.Last()
	s.maxTs.Store(-1)
	s.maxTsOff.Store(int64(s.base))
	pos := int64(0)
	if ok {
		s.maxTs.Store(ts)
		s.maxTsOff.Store(off)
		_, at, err := s.index.Lookup(off)
		if err != nil {
			return err
		}
		pos = int64(at)
	}
	_, at, ok := s.index.Last()
	lastEntry := int64(0)
	if ok {
		lastEntry = int64(at)
	}
	s.w.sinceIndex = 0
	size := s.size.Load()
	err := s.walk(min(pos, lastEntry), size, func(e entry) bool {
		if e.maxTs > s.maxTs.Load() {
			s.maxTs.Store(e.maxTs)
			s.maxTsOff.Store(int64(e.last))
		}
		if e.pos >= lastEntry {
			s.w.sinceIndex += int64(e.size)
		}
		return true
	})
	if err != nil {
		return err
	}
	s.tsKnown.Store(true)
	s.w.firstTs = -1
	return s.walk(0, size, func(e entry) bool {
		s.w.firstTs = e.maxTs
		return false
	})
}

// forget tells the journal that everything at or above from is taken back, and
// lowers the rungs once the journal can no longer raise them. End is lowered
// already. Caller holds mu.
func (l *Log) forget(end Offset, from int64) error {
	h := l.home.Load()
	t := promise{h, h.journal.Cut(&h.owner, from)}
	if l.durable.Load() > int64(end) || from == math.MinInt64 {
		l.durable.Store(int64(end))
	}
	if l.synced.Load() > int64(end) {
		l.synced.Store(int64(end))
	}
	if l.vouched.Load() > int64(end) {
		l.vouched.Store(int64(end))
	}
	l.mu.last, l.mu.unflushed = t, 0
	return l.wait(t)
}

// ResetTo removes everything and lets the log begin anew at o, which may lie
// anywhere. Followers do this when their leader no longer has what they would
// need. It is durable when it returns.
func (l *Log) ResetTo(o Offset) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.refusal(); err != nil {
		return err
	}
	return l.reset(o)
}

// reset: caller holds mu. The new start is on disk before any file goes: a
// crash in between opens a log that ends below its start, which is emptied, or
// one that merely starts later than before. A start that is lower than the old
// one comes only when the files are gone for good: until then a loss of power
// may bring them back, and what the old start had removed with them.
func (l *Log) reset(o Offset) error {
	defer l.noteCut(math.MinInt64)
	l.cleaning.cut(0)
	c := l.config.Load()
	old := l.Start()
	l.start.Store(int64(max(o, old)))
	l.ceiling.Store(int64(o))
	if err := l.home.Load().checkpoint(l); err != nil {
		// The disk may have the new start. An append below it would be emptied
		// away at the next opening.
		l.mu.failed = l.storageError("checkpoint before reset", err)
		return l.mu.failed
	}
	l.end.Store(min(l.end.Load(), int64(o)))
	l.news.cut(o)
	if err := l.forget(o, math.MinInt64); err != nil {
		return err
	}
	gone := newestFirst(*l.segments.Load())
	if err := l.putAway(gone); err != nil {
		return err
	}
	if err := l.syncDir(); err != nil {
		return err
	}
	if o < old {
		l.start.Store(int64(o))
		if err := l.home.Load().checkpoint(l); err != nil {
			l.mu.failed = l.storageError("checkpoint the start of a reset", err)
			return l.mu.failed
		}
	}
	fresh, err := createSegment(o, l.home.Load().folder, l.indexes, c)
	if err != nil {
		l.mu.failed = l.storageError("reset", err)
		return l.mu.failed
	}
	l.age(fresh, c)
	l.setSegments([]*segment{fresh})
	for _, s := range gone {
		s.letGo()
	}
	l.hints.Store(nil)
	l.end.Store(int64(o))
	l.durable.Store(int64(o))
	l.ceiling.Store(noLimit)
	l.mu.producers.Reset()
	l.mu.snapshotAt, l.mu.dormant = -1, false
	if err := l.dropSnapshots(func(Offset, int) bool { return true }); err != nil {
		l.mu.failed = l.storageError("drop producer snapshots", err)
		return l.mu.failed
	}
	if err := l.syncDir(); err != nil { // the snapshots too: one that came back would be taken for the state at its offset
		return err
	}
	l.synced.Store(int64(o))
	if err := l.epochs.Clear(); err != nil { // an append of the epoch that the history still ends with would not be noted
		l.mu.failed = l.storageError("clear leader epochs", err)
		return l.mu.failed
	}
	l.epoch.Store(int32(NoEpoch))
	return nil
}

// SetStart raises Start to o, at most to End: what lies below is no longer
// readable, and whole segments below are deleted by the next retention. It is
// durable when it returns.
func (l *Log) SetStart(o Offset) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.refusal(); err != nil {
		return err
	}
	if o > l.End() {
		return &OutOfRangeError{Want: o, Start: l.Start(), End: l.End()}
	}
	if o <= l.Start() && !l.mu.unsaved {
		return nil
	}
	l.raiseStart(o)
	l.mu.unsaved = true
	if err := l.home.Load().checkpoint(l); err != nil {
		return l.storageError("checkpoint the log's start", err)
	}
	l.mu.unsaved = false
	if err := l.epochs.TruncateStart(int64(o)); err != nil {
		return l.storageError("truncate leader epochs", err)
	}
	return nil
}

// raiseStart moves Start up. What lies below it is owed to nobody, so Durable,
// which says what is safe to read, is never below (L2).
func (l *Log) raiseStart(o Offset) {
	raise(&l.durable, int64(o))
	raise(&l.start, int64(o))
	l.news.wake()
}

func (l *Log) setLatestEpoch() {
	e, _, ok := l.epochs.Latest()
	if !ok {
		e = int32(NoEpoch)
	}
	l.epoch.Store(e)
}
