package engine

import (
	"fmt"

	"millrace/engine/journal"
)

// A log that was stopped cleanly is not read when it is opened (F012): the recovery
// point that the stop wrote is its end, for a stop syncs everything. Opening costs a
// listing of its folder, one stat a segment, and two small files. It stays dormant,
// which readers do not notice, until the first change: only then the last segment
// is looked at, from its last index entry on, and the producers are loaded.
// A thousand partitions that nobody writes to cost a start next to nothing.

// takeAsIs opens a log dormant, if what is known of it fits together. Else it goes
// through recovery like any other.
func (l *Log) takeAsIs(segments []*segment, o *LogOptions) bool {
	if !o.Clean || len(o.Entries) > 0 || len(segments) == 0 {
		return false
	}
	end, start := o.RecoveryPoint, max(o.StartOffset, segments[0].base)
	last := segments[len(segments)-1]
	empty := last.size.Load() == 0
	if start > end || empty != (end == last.base) || end < last.base {
		return false // a point that was not written by the stop of this very log
	}
	l.setSegments(segments)
	l.age(last, l.config.Load())
	l.end.Store(int64(end))
	l.start.Store(int64(start))
	l.synced.Store(int64(end))
	l.durable.Store(int64(end))
	l.mu.dormant = true
	l.mu.snapshotAt = end // the stop wrote it; nothing has changed since
	return true
}

// wake makes a dormant log ready for its first change. Caller holds mu.
func (l *Log) wake() error {
	if !l.mu.dormant {
		return nil
	}
	segments := *l.segments.Load()
	end := l.End()
	r := &recovery{log: l, entries: []journal.Entry{}, point: end, start: l.Start(), clean: true, segments: segments}
	_, err := r.segment(len(segments)-1, true)
	if err == nil && r.end < end {
		s := segments[len(segments)-1]
		err = fmt.Errorf("%s: %w", l.Dir(), &CorruptError{
			File: s.path(logSuffix), Position: s.size.Load(),
			Want: fmt.Sprintf("batches up to offset %d, where the log was stopped", end), Got: fmt.Sprintf("an end at %d", r.end),
		})
	}
	if err == nil {
		// More than the stop knew of can only come from another program. It is whole.
		raise(&l.end, int64(r.end))
		err = l.reloadProducers(l.End())
	}
	if err != nil {
		l.mu.failed = l.storageError("take up the log for appending", err)
		return l.mu.failed
	}
	l.mu.dormant = false
	return nil
}
