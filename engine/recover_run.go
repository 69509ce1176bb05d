package engine

import (
	"errors"
	"fmt"

	"millrace/engine/batch"
	"millrace/engine/index"
	"millrace/engine/journal"
)

func isIndexDamage(err error) bool { return errors.Is(err, index.ErrCorrupt) }

// recovery brings one log from what is on disk to a state in which it can be
// used. It runs before the log is visible to anybody, so it takes no locks.
type recovery struct {
	log      *Log
	entries  []journal.Entry
	point    Offset // recovery point
	start    Offset // the log's; epochs that ended below it are forgotten
	clean    bool
	suspect  bool // a sync has failed here (rewriter)
	progress func(done, total int64)

	segments    []*segment
	end         Offset // after the last good batch
	done, total int64
	changed     bool // files were changed: they must be synced
}

// damage is the first place in a segment where no good batch is.
type damage struct {
	finding
	pos    int64
	offset Offset // that the batch there should hold
	mayBe  bool   // it is none if the journal has nothing for it
	err    *CorruptError
}

// run scans from the recovery point to the end, mends or cuts what is torn, and
// replays the journal.
func (r *recovery) run() error {
	first := len(r.segments) - 1
	if !r.clean {
		first = segmentOf(r.segments, r.point)
	}
	if first > 0 && !r.clean && r.segments[first].base == r.point {
		if err := r.timesOfClosed(r.segments[first-1]); err != nil {
			return err
		}
	}
	for _, s := range r.segments[first:] {
		r.total += s.size.Load()
	}
	for i := first; i < len(r.segments); i++ {
		cutHere, err := r.segment(i, i == first)
		if err != nil {
			return err
		}
		if cutHere {
			break
		}
	}
	l := r.log
	l.setSegments(r.segments)
	l.end.Store(int64(r.end))
	l.age(l.mu.active, l.config.Load())
	return r.replay()
}

// segment checks one segment from the recovery point on and fills its indexes.
// cutHere means that the log ends in it now.
func (r *recovery) segment(i int, first bool) (cutHere bool, err error) {
	s := r.segments[i]
	isLast := i == len(r.segments)-1
	from := Offset(0)
	if first {
		from = r.point
		if r.clean {
			from = noLimit
		}
	}
	pos, err := r.begin(s, from)
	if err != nil {
		return false, err
	}
	r.total -= pos // the recovery point lies there: not read
	for {
		d, err := r.scan(s, pos, i)
		if err != nil {
			return false, err
		}
		if d == nil {
			break
		}
		pos = d.pos
		if d.place != lastSegment && d.above && !d.reached {
			n, err := r.mend(s, d, r.segments[i+1].base)
			if err != nil {
				return false, err
			}
			if n > 0 {
				continue // the scan goes over the mended bytes as well
			}
		}
		if d.mayBe {
			r.log.gaps = true
			break
		}
		switch v := decide(d.finding); v {
		case setAside:
			return false, fmt.Errorf("open %s: %w", r.log.Dir(), d.err)
		case cut:
			return true, r.cut(i, d)
		case trim:
			if err := r.shorten(s, d); err != nil {
				return false, err
			}
		default:
			panic(fmt.Sprintf("engine: verdict %v for a damaged batch", v))
		}
	}
	if r.suspect {
		if err := r.writeAgain(s); err != nil {
			return false, err
		}
	}
	if isLast {
		return false, nil
	}
	err = errors.Join(s.addTimeEntry(true), s.index.Seal(), s.times.Seal())
	s.folder.files.sealed(s, r.segments[i+1].base) // there may be any number of segments to go through
	return false, err
}

// begin finds where the scan of a segment starts: at the newest index entry at
// or below offset from, if that entry is true, else at the first byte. The
// indexes keep what lies below and become active.
func (r *recovery) begin(s *segment, from Offset) (pos int64, err error) {
	c := r.log.config.Load()
	at, base := int64(0), s.base
	offsets, times := s.index.Load(), s.times.Load()
	err = errors.Join(offsets, times)
	healthy := err != nil && s == r.segments[len(r.segments)-1] && unwritten(offsets) && unwritten(times)
	if err == nil && from > s.base {
		at, base, err = r.trueEntry(s, from)
	}
	if at == 0 || err != nil {
		if err != nil && !isIndexDamage(err) {
			return 0, err
		}
		// F001, F003: whatever is in an index, it costs a scan and nothing else.
		if err != nil && s.size.Load() > 0 && !healthy {
			r.log.logger.Warn("index damaged or missing; making it again from the segment",
				"log", r.log.Dir(), "segment", s.name(logSuffix), "cause", err)
		}
		if err := errors.Join(s.index.Reset(), s.times.Reset()); err != nil {
			return 0, err
		}
		at, base = 0, s.base
	}
	s.countRoom(c)
	s.w.sinceIndex, s.w.firstTs = 0, -1
	if ts, off, ok := s.times.Last(); ok {
		s.maxTs.Store(ts)
		s.maxTsOff.Store(off)
	}
	s.tsKnown.Store(true)
	r.end = base
	if at > 0 {
		err = s.walk(0, s.size.Load(), func(e entry) bool {
			s.w.firstTs = e.maxTs
			return false
		})
		if err != nil {
			return 0, fmt.Errorf("open %s: %w", r.log.Dir(), err)
		}
	}
	return at, nil
}

// unwritten tells of what the load of an index said whether it is whole, or the
// preallocated file of one that was active and had no entry yet.
func unwritten(err error) bool {
	var c *index.CorruptError
	return err == nil || errors.As(err, &c) && c.Unwritten
}

// trueEntry drops the index entries above offset from and returns position and
// base offset of the newest one left, after a look at the batch that it names.
func (r *recovery) trueEntry(s *segment, from Offset) (int64, Offset, error) {
	off, at, err := s.index.Lookup(int64(from))
	if err != nil || at == 0 {
		return 0, 0, err
	}
	told, base := false, Offset(0)
	if int64(at) < s.size.Load() {
		err = s.walk(int64(at), s.size.Load(), func(e entry) bool {
			told, base = e.last == Offset(off), e.base
			return false
		})
	}
	var bad *CorruptError
	if !told && (err == nil || errors.As(err, &bad)) {
		return 0, 0, errIndexLies
	}
	if err != nil {
		return 0, 0, err
	}
	if err := errors.Join(s.index.TruncateTo(off+1), s.times.TruncateTo(off+1)); err != nil {
		return 0, 0, err
	}
	if !r.clean {
		err = r.timesReach(s, int64(at))
	}
	return int64(at), base, err
}

// timesReach (L10) looks whether the time index of a segment tells of all that lies below position at, where the scan
// begins. It is not synced while the segment is active, so a loss of power may have taken its last entries and left
// those of the other index. As a rule an entry of the one comes with one of the other, and there is one header to
// look at; more only if timestamps did not rise.
func (r *recovery) timesReach(s *segment, at int64) error {
	ts, off, ok := s.times.Last()
	pos := int64(0)
	if !ok {
		ts = -1
	} else if e, found, err := s.locate(Offset(off)); err != nil {
		return err
	} else if !found || e.last != Offset(off) {
		return errIndexLies
	} else {
		pos = e.pos
	}
	complete := true
	err := s.walk(pos, at, func(e entry) bool {
		complete = e.maxTs <= ts
		return complete
	})
	var bad *CorruptError
	if errors.As(err, &bad) {
		return nil // below the recovery point: no torn tail, and no reason to read it again; the scrub finds it
	}
	if err == nil && !complete {
		return errIndexLies
	}
	return err
}

// timesOfClosed looks at the indexes of the segment that ends at the recovery point: it may have been the active one when
// the point was written, and closed since, and then its last entries are as little synced as those of the segments above (L10).
func (r *recovery) timesOfClosed(s *segment) error {
	c := r.log.config.Load()
	err := errors.Join(s.index.Load(), s.times.Load())
	if err == nil {
		err = r.timesReach(s, s.size.Load())
	}
	var bad *CorruptError
	if err == nil || errors.As(err, &bad) {
		return nil // what is bad here lies below the recovery point: the scrub finds it, and readers
	}
	if !isIndexDamage(err) {
		return err
	}
	r.log.logger.Warn("index damaged or missing; making it again from the segment",
		"log", r.log.Dir(), "segment", s.name(logSuffix), "cause", err)
	r.changed = true
	if err = s.rebuild(c); errors.As(err, &bad) {
		err = nil
	}
	return errors.Join(err, s.addTimeEntry(true), s.index.Seal(), s.times.Seal())
}

// cut ends the log at d in segment i. Later segments are kept under another
// name, for a person to look at; empty ones are not worth it.
func (r *recovery) cut(i int, d *damage) error {
	l, s := r.log, r.segments[i]
	lost := s.size.Load() - d.pos
	if i == len(r.segments)-1 {
		l.logger.Info("torn tail cut", "log", l.Dir(), "segment", s.name(logSuffix),
			"position", d.pos, "bytes", lost, "end", r.end, "found", d.err.Got)
	} else {
		l.logger.Error("log cut in a closed segment; what lay behind it was never acknowledged and is kept as *"+cutSuffix,
			"log", l.Dir(), "segment", s.name(logSuffix), "position", d.pos, "bytes", lost,
			"end", r.end, "segments", len(r.segments)-1-i, "want", d.err.Want, "found", d.err.Got)
	}
	// Newest first, so that a crash in the middle leaves no gap.
	for j := len(r.segments) - 1; j > i; j-- {
		later := r.segments[j]
		if later.size.Load() == 0 {
			later.abandon()
			continue
		}
		if _, err := later.rename(cutSuffix); err != nil {
			return fmt.Errorf("keep segment as %s: %w", cutSuffix, err)
		}
		later.letGo()
	}
	if i < len(r.segments)-1 {
		if err := l.fs().SyncDir(l.Dir()); err != nil {
			return err
		}
	}
	r.segments = r.segments[:i+1]
	return r.shorten(s, d)
}

// shorten ends a segment's file where the damage begins.
func (r *recovery) shorten(s *segment, d *damage) error {
	r.changed = true
	f, err := s.file()
	if err != nil {
		return err
	}
	if err := f.Truncate(d.pos); err != nil {
		return fmt.Errorf("cut torn tail: %w", err)
	}
	s.size.Store(d.pos)
	return nil
}

// writeAgain makes the system write a file's size and name again: a cut whose
// sync has failed may be one that only memory knows of (see rewriter).
func (r *recovery) writeAgain(s *segment) error {
	r.changed = true
	f, err := s.file()
	if err != nil {
		return err
	}
	size := s.size.Load()
	if err := f.Truncate(size + 1); err != nil {
		return err
	}
	if err := f.Truncate(size); err != nil {
		return err
	}
	// The name too: the sync that failed may have been the folder's.
	name := s.path(logSuffix)
	if err := r.log.fs().Rename(name, name+againSuffix); err != nil {
		return err
	}
	return r.log.fs().Rename(name+againSuffix, name)
}

// mend writes the batches that the journal has for the hole at d, and returns
// how many bytes. They are the bytes that were there, so they fit exactly.
func (r *recovery) mend(s *segment, d *damage, next Offset) (int64, error) {
	for i := len(r.entries) - 1; i >= 0; i-- {
		e := &r.entries[i]
		if Offset(e.Base) > d.offset || Offset(e.End) <= d.offset {
			continue
		}
		batches, err := r.read(e, d.offset)
		if err != nil {
			return 0, err
		}
		f, err := s.file()
		if err != nil {
			return 0, err
		}
		pos := d.pos
		for _, b := range batches {
			if Offset(b.info.LastOffset()) >= next {
				break
			}
			if _, err := f.WriteAt(b.bytes, pos); err != nil {
				return 0, fmt.Errorf("mend segment: %w", err)
			}
			pos += int64(len(b.bytes))
		}
		if pos > d.pos {
			r.changed = true
			s.size.Store(max(s.size.Load(), pos))
			r.log.logger.Info("torn segment mended from the journal", "log", r.log.Dir(),
				"segment", s.name(logSuffix), "position", d.pos, "bytes", pos-d.pos)
		}
		return pos - d.pos, nil
	}
	return 0, nil
}

type storedBatch struct {
	bytes []byte
	info  batch.Info
}

// read returns the batches of a journal entry at or above from, each checked.
func (r *recovery) read(e *journal.Entry, from Offset) ([]storedBatch, error) {
	data := make([]byte, e.Size)
	if err := e.Read(data); err != nil {
		return nil, fmt.Errorf("read journal entry: %w", err)
	}
	var list []storedBatch
	for at := 0; at < len(data); {
		n, err := batch.Split(data[at:])
		if err != nil {
			return nil, fmt.Errorf("journal entry [%d, %d) of %s: %w", e.Base, e.End, r.log.Dir(), err)
		}
		b := data[at : at+n]
		info, err := batch.CheckStored(b)
		if err != nil {
			return nil, fmt.Errorf("journal entry [%d, %d) of %s: %w", e.Base, e.End, r.log.Dir(), err)
		}
		if Offset(info.BaseOffset) >= from {
			list = append(list, storedBatch{b, info})
		}
		at += n
	}
	return list, nil
}

// proven tells that something between offset o and the end of the journal's
// entries is in neither log nor journal.
func (r *recovery) proven(o Offset) bool {
	for i := range r.entries {
		e := &r.entries[i]
		if Offset(e.Base) > o {
			return true
		}
		o = max(o, Offset(e.End))
	}
	return false
}

// replay appends what the journal holds above the end of the log (L6). Doing
// it again after a crash finds the batches in place and does nothing (L7).
func (r *recovery) replay() error {
	l := r.log
	l.mu.replaying = true
	defer func() { l.mu.replaying = false }()
	bytes := 0
	for i := range r.entries {
		e := &r.entries[i]
		end := l.End()
		if Offset(e.End) <= end {
			continue
		}
		if Offset(e.Base) > end {
			if Offset(r.entries[len(r.entries)-1].End) <= r.start {
				return nil // a crash while takeAway was at it: what is missing lies below the start, and is owed to nobody
			}
			s := l.mu.active
			return fmt.Errorf("open %s: %w", l.Dir(), &CorruptError{
				File: s.path(logSuffix), Position: s.size.Load(),
				Want: fmt.Sprintf("batches [%d, %d), which were acknowledged: the journal goes on behind them", end, e.Base),
				Got:  "the end of the log",
			})
		}
		list, err := r.read(e, end)
		if err != nil {
			return err
		}
		for j := range list {
			a := &Append{Batch: list[j].bytes, Info: list[j].info, Follower: true}
			a.epoch = Epoch(a.Info.LeaderEpoch)
			l.write(a)
			if a.Err != nil {
				return fmt.Errorf("replay journal: %w", a.Err)
			}
			bytes += len(a.Batch)
		}
		r.changed = true
	}
	if bytes > 0 {
		l.logger.Info("journal replayed", "log", l.Dir(), "bytes", bytes, "end", l.End())
	}
	return nil
}

// takeAway renames every segment, for a log whose start lies beyond its end.
func (r *recovery) takeAway() error {
	for _, s := range newestFirst(r.segments) {
		names, err := s.rename(deletedSuffix)
		s.letGo()
		if err != nil {
			return err
		}
		r.log.unlinkLater(names)
	}
	r.segments = nil
	return r.log.fs().SyncDir(r.log.Dir())
}

// startEmpty gives a log without segments its first one.
func (r *recovery) startEmpty(at Offset) error {
	l := r.log
	c := l.config.Load()
	s, err := createSegment(at, l.home.Load().folder, l.indexes, c)
	if err != nil {
		return err
	}
	l.age(s, c)
	r.segments, r.end, r.changed = []*segment{s}, at, true
	l.setSegments(r.segments)
	l.end.Store(int64(at))
	return nil
}
