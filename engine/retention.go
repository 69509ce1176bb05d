package engine

import (
	"errors"
	"os"
	"slices"
	"time"
)

// Retain applies the log's retention once and returns how many segments went.
// The Store calls it every RetentionCheck; a log used alone does so itself when
// its owner calls this. Segments are renamed here and unlinked after
// DeleteDelay, in the background.
//
// Never removed: anything at or above the bound told by RetainBelow (Safe until
// told), and the active segment, except that one whose newest record has
// expired is closed first and then goes like any other. By size whole closed
// segments go, the oldest first, while the log stays at or above
// RetentionBytes without them (F020).
func (l *Log) Retain(now time.Time) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.refusal(); err != nil {
		return 0, err
	}
	l.mu.producers.Expire(now)
	c := l.config.Load()
	n, err := l.expiredSegments(c, now)
	if n == 0 || err != nil {
		return 0, err
	}
	list := *l.segments.Load()
	if n == len(list) {
		// The newest record has expired too. The new segment is on disk before
		// the old ones go, so that End never goes back, whatever happens (L5).
		if err := l.roll(l.End()); err != nil {
			return 0, err
		}
		list = *l.segments.Load()
	}
	if err := l.keepProducers(list[n].base); err != nil {
		return 0, err
	}
	if err := l.syncDir(); err != nil {
		return 0, err
	}
	return n, l.dropBelow(list, n)
}

// expiredSegments counts the segments at the front of the log that may go, all
// of them if the active one has expired. Caller holds mu.
func (l *Log) expiredSegments(c *Config, now time.Time) (int, error) {
	list := *l.segments.Load()
	bound := l.Safe()
	if told := Offset(l.retainBelow.Load()); told < bound {
		bound = told
	}
	size, start := l.Size(), l.Start()
	n := 0
	for ; n < len(list); n++ {
		s := list[n]
		isActive := n == len(list)-1
		end := l.End()
		if !isActive {
			end = list[n+1].base
		}
		if end > bound || isActive && s.size.Load() == 0 {
			break
		}
		goes := !isActive && end <= start
		if c.Delete && !goes {
			old, err := l.tooOld(s, c, now)
			if err != nil {
				return n, err
			}
			goes = old || !isActive && c.RetentionBytes >= 0 && size-s.size.Load() >= c.RetentionBytes
		}
		if !goes {
			break
		}
		size -= s.size.Load()
	}
	return n, nil
}

// tooOld tells whether the newest record of a segment has expired. A record
// from the future keeps its segment, and all behind it, for as long (F018):
// that is reported once for each segment.
func (l *Log) tooOld(s *segment, c *Config, now time.Time) (bool, error) {
	if c.RetentionAge < 0 {
		return false, nil
	}
	ts, err := s.largestTimestamp()
	if isIndexDamage(err) {
		if err = s.rebuild(c); err == nil && s != l.mu.active {
			err = errors.Join(s.addTimeEntry(true), s.index.Seal(), s.times.Seal())
		}
		ts = s.maxTs.Load()
	}
	if err != nil {
		return false, err
	}
	newest := time.UnixMilli(ts)
	if ts < 0 { // no record has a time: the file's own
		info, err := l.fs().Stat(s.path(logSuffix))
		if err != nil {
			return false, err
		}
		newest = info.ModTime
	}
	if ahead := newest.Sub(now); ahead > futureSlack && !s.warned {
		s.warned = true
		l.logger.Warn("a record from the future keeps a segment, and all behind it, from being deleted by age; "+
			"set message.timestamp.after.max.ms to refuse such records, retention.bytes to free space all the same",
			"topic", l.topic, "partition", l.partition, "segment", s.name(logSuffix),
			"timestamp", newest.UTC(), "ahead", ahead.Round(time.Second))
	}
	return now.Sub(newest) > c.RetentionAge, nil
}

// dropBelow removes the first n segments of list. Caller holds mu.
func (l *Log) dropBelow(list []*segment, n int) error {
	kept := append([]*segment(nil), list[n:]...)
	l.raiseStart(kept[0].base)
	l.mu.unsaved = true // nobody syncs the names of what goes
	l.setSegments(kept)
	l.logger.Info("segments deleted by retention", "log", l.Dir(), "segments", n, "start", l.Start())
	if err := l.giveUp(list[:n]); err != nil {
		return err
	}
	if err := l.epochs.TruncateStart(l.start.Load()); err != nil {
		return l.storageError("truncate leader epochs", err)
	}
	// The one at the first segment's base stays, also if Start lies above: it stands for what is gone.
	base := kept[0].base
	return l.dropSnapshots(func(o Offset, _ int) bool { return o < base })
}

// giveUp renames the files of segments, in the order given, and has them
// unlinked later. The caller holds mu and has taken them out of the list. Who
// reads one of them goes on; the last to leave closes the file. An error stops
// it half-way, and appends with it: the files no longer are what the list says.
func (l *Log) giveUp(segments []*segment) error {
	err := l.putAway(segments)
	for _, s := range segments {
		s.letGo()
	}
	return err
}

// putAway is giveUp for segments that are still in the list: they stay pinned, for whoever looks into it finds them until it changes.
// It stops when a sync has failed meanwhile, which may have lost the names
// given so far: a later one that stays would leave a hole behind it.
func (l *Log) putAway(segments []*segment) error {
	for _, s := range segments {
		if err := l.poisonError(); err != nil {
			return err
		}
		names, err := s.rename(deletedSuffix)
		if len(names) > 0 {
			l.unlinkLater(names)
		}
		if err != nil {
			l.mu.failed = l.storageError("delete segment", err)
			return l.mu.failed
		}
	}
	return nil
}

func (l *Log) unlinkLater(names []string) {
	where := l.home.Load().folder // theirs, also when the log has moved by then
	l.background.After(l.config.Load().DeleteDelay, "unlink "+names[0], func() error {
		var all error
		for _, n := range names {
			if err := where.fs.Remove(where.file(n)); err != nil && !errors.Is(err, os.ErrNotExist) {
				all = errors.Join(all, err)
			}
		}
		return all
	})
}

func newestFirst(segments []*segment) []*segment {
	list := slices.Clone(segments)
	slices.Reverse(list)
	return list
}
