package engine

import (
	"sync/atomic"

	"millrace/engine/journal"
)

// Metrics is what a monitor asks a log for, say at each scrape: sizes and rungs of
// this moment, and counters since the log was opened.
type Metrics struct {
	Stats           // now: segments, bytes, pins, start and end
	Durable  Offset // now: below it everything has survived a sync; End-Durable records have not
	Readable Offset // now: where readers end (Log.Safe); what a reader has not read of it is its lag

	Writes   int64 // writes to segment files; Batches/Writes went into one on average (D4)
	Batches  int64 // appended
	Records  int64 // appended, counted by their offsets
	Appended int64 // bytes, as stored

	// Journal has the rounds that synced acks wait for: how many, how long they took, as sums and
	// as a histogram. Logs of one Store directory share their journal, and these figures with it.
	Journal journal.Stats
}

// Metrics returns the present figures. It holds no lock that appends hold for
// longer than a moment; the figures may be a write apart.
func (l *Log) Metrics() Metrics {
	w := &l.counts
	return Metrics{
		Stats: l.Stats(), Durable: l.Durable(), Readable: l.Safe(),
		Writes: w.writes.Load(), Batches: w.batches.Load(), Records: w.records.Load(), Appended: w.bytes.Load(),
		Journal: l.home.Load().journal.Stats(),
	}
}

// appendCounts counts what went into a log.
type appendCounts struct {
	writes, batches, records, bytes atomic.Int64
}

// note counts one write. Caller holds Log.mu.
func (w *appendCounts) note(r *run) {
	w.writes.Add(1)
	w.batches.Add(int64(len(r.appends)))
	w.records.Add(r.records)
	w.bytes.Add(r.bytes)
}
