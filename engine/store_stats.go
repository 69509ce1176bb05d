package engine

import (
	"sync/atomic"

	"millrace/engine/journal"
)

// writeCounts counts what the logs of a Store wrote since its start. Both move
// with every write, and so does Store.unsaved beside them: one cache line.
type writeCounts struct {
	writes, appends atomic.Int64
}

// WriteStats says how far appends combine (D4): Appends/Writes of them went
// into one write on average.
type WriteStats struct {
	Writes  int64 // writes to segment files
	Appends int64 // batches in them
}

// WriteStats are counters since the start, of all logs, also those deleted since.
func (s *Store) WriteStats() WriteStats {
	return WriteStats{Writes: s.counts.writes.Load(), Appends: s.counts.appends.Load()}
}

// JournalStats are the figures of one data directory's commit journal.
type JournalStats struct {
	Dir string // the data directory
	journal.Stats
}

// JournalStats returns the figures of each data directory that has a journal, in
// the order of StoreOptions.Dirs.
func (s *Store) JournalStats() []JournalStats {
	var all []JournalStats
	for _, d := range s.dirs {
		if d.journal != nil {
			all = append(all, JournalStats{d.path, d.journal.Stats()})
		}
	}
	return all
}
