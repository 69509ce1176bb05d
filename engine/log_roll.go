package engine

import (
	"errors"
	"math/rand/v2"
	"os"
	"time"

	"millrace/engine/producers"
)

// mustRoll tells whether a batch of that size, last offset and largest
// timestamp needs a new segment. used is what the active one will hold before
// it. The conditions are Kafka's (storage-formats, section 6).
func (l *Log) mustRoll(s *segment, c *Config, used, size int64, last Offset, maxTs int64) bool {
	if used == 0 {
		// A batch that starts beyond the span of an empty segment (a follower
		// after a long gap) still needs one that is named after it.
		return last-s.base > maxOffsetSpan
	}
	if used > c.SegmentBytes-size || s.indexFull() || last-s.base > maxOffsetSpan {
		return true
	}
	first := s.w.firstTs
	if first < 0 && s.size.Load() > 0 {
		return l.now().Sub(s.w.created) > s.w.rollAfter
	}
	if first < 0 {
		return false // the first batch of this segment is in this very run
	}
	return maxTs-first > s.w.rollAfter.Milliseconds()
}

// age gives a new or reopened active segment its time to live.
func (l *Log) age(s *segment, c *Config) {
	s.w.created = l.now()
	s.w.rollAfter = c.SegmentAge
	if c.Compact {
		s.w.rollAfter = min(s.w.rollAfter, c.CompactWithin) // an active segment is not compacted
	}
	if c.SegmentJitter > 0 {
		s.w.rollAfter -= time.Duration(rand.Int64N(int64(min(c.SegmentJitter, s.w.rollAfter))))
	}
}

// roll closes the active segment and begins a new one at base. Caller holds mu,
// with an empty run. On error the old segment goes on being the active one.
//
// In sync mode three things keep recovery simple: the new segment's name is
// synced before anything is added to the journal for it; the closed segment's
// bytes are part of the next round, so that an ack of anything behind it means
// that it is whole on disk; and the one closed before it has been synced by
// then, so that a crash can tear the last two segments and no others.
func (l *Log) roll(base Offset) error {
	if err := l.wake(); err != nil {
		return err
	}
	c := l.config.Load()
	old := l.mu.active
	synced := c.Durability == Sync && !l.mu.replaying
	if synced {
		if err := l.wait(l.mu.rolled); err != nil {
			return err
		}
		if h := l.home.Load(); h.loose {
			if err := l.wait(h.addSync()); err != nil {
				return err
			}
			if err := l.tighten(); err != nil {
				return err
			}
		}
	} else if !l.mu.replaying {
		if err := l.loosen(); err != nil {
			return err
		}
	}
	if l.mu.replaying {
		if err := l.syncClosing(old); err != nil {
			return err
		}
	}
	fresh, err := createSegment(base, l.home.Load().folder, l.indexes, c)
	if err != nil {
		return l.rollFailed(err, synced)
	}
	if synced {
		if err := l.syncDir(); err != nil {
			fresh.abandon()
			return err
		}
	}
	l.age(fresh, c)
	if err := old.seal(c.Preallocate); err != nil {
		l.logger.Warn("index of a closed segment not finished; it is made again when needed",
			"log", l.Dir(), "segment", old.name(indexSuffix), "error", err)
	}
	if !l.mu.replaying { // there is no producer state before recovery is over
		if err := l.writeSnapshot(base); err != nil {
			l.logger.Warn("producer snapshot not written; the next recovery reads more", "log", l.Dir(), "error", err)
		}
	}
	l.unindexed.add(old)
	l.addSegment(fresh)
	old.folder.files.sealed(old, l.End())
	if synced {
		l.mu.rolled = l.home.Load().addSync()
	} else {
		l.home.Load().names.made.Add(1)
	}
	return nil
}

// rollFailed sees to it that appends may go on in the old segment, beyond where the new one would have begun. A start that finds the
// new one, empty, takes what lies beyond for torn: so it is gone, on disk, before anything there is acknowledged; or there are no appends.
func (l *Log) rollFailed(err error, synced bool) error {
	cause := l.storageError("roll", err)
	if undone := (*undoneError)(nil); errors.As(err, &undone) {
		if undone.left != nil {
			l.mu.failed = cause
		} else if synced {
			cause = errors.Join(cause, l.syncDir())
		}
	}
	return cause
}

// syncClosing syncs the segment that a roll of recovery closes, before the next one has a name. Its torn tail may have been cut a moment
// ago: were only the name on disk when the power goes again, the tail would be back, at the end of a segment that lies below the
// recovery point and that no start looks at any more (L3). The appends' own cuts are synced at once (writeAt, cutActive).
func (l *Log) syncClosing(s *segment) error {
	f, err := s.file()
	if err != nil {
		return l.storageError("roll", err)
	}
	if err := f.Sync(); err != nil {
		l.poison(err)
		return l.poisonError()
	}
	return nil
}

// syncDir syncs the names in the log's folder. A failure is a failed sync (L4).
func (l *Log) syncDir() error {
	if err := l.fs().SyncDir(l.Dir()); err != nil {
		l.poison(err)
		return l.poisonError()
	}
	return nil
}

// addSegment publishes the list with one more segment. Caller holds mu.
func (l *Log) addSegment(s *segment) {
	old := *l.segments.Load()
	l.setSegments(append(old[:len(old):len(old)], s))
}

// writeSnapshot saves the producer state as of offset at. Kafka keeps one for
// each segment's base and the newest; so do we, and drop the others. Caller holds mu.
func (l *Log) writeSnapshot(at Offset) error {
	if at == l.mu.snapshotAt {
		return nil
	}
	if err := l.mu.producers.WriteSnapshot(l.fs(), l.Dir(), int64(at)); err != nil {
		return err
	}
	l.mu.snapshotAt = at
	return l.dropSnapshots(func(o Offset, newer int) bool {
		return o < at && newer >= keepSnapshots && !l.isBase(o)
	})
}

// dropSnapshots removes the snapshots that doomed names, told how many newer
// ones there are. Caller holds mu.
func (l *Log) dropSnapshots(doomed func(o Offset, newer int) bool) error {
	list, err := producers.Snapshots(l.fs(), l.Dir())
	if err != nil {
		return err
	}
	for i, o := range list {
		if !doomed(Offset(o), len(list)-1-i) {
			continue
		}
		err := l.fs().Remove(l.file(producers.SnapshotName(o)))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return nil
}

// isBase tells whether a segment begins at o. Caller holds mu.
func (l *Log) isBase(o Offset) bool {
	for _, s := range *l.segments.Load() {
		if s.base == o {
			return true
		}
	}
	return false
}
