package store

import (
	"math/bits"
	"sync/atomic"
	"time"
)

// syncBuckets are those of Stats.Latency: bucket i holds what took less than 2^i µs and no less than half of it; the last one also what took longer.
const syncBuckets = 25

// Stats counts since Open. What was refused is a transaction too.
type Stats struct {
	Syncs        uint64 // batches of transactions that were stored; each waited for one sync
	Transactions uint64
	Time         time.Duration // of all Syncs
	Latency      [syncBuckets]uint64
}

type stats struct {
	transactions, nanos atomic.Uint64
	latency             [syncBuckets]atomic.Uint64
}

func (s *stats) stored(transactions int, took time.Duration) {
	s.transactions.Add(uint64(transactions))
	s.nanos.Add(uint64(took))
	s.latency[min(bits.Len64(uint64(took.Microseconds())), syncBuckets-1)].Add(1)
}

// Stats may be called by anybody at any time.
func (s *Store) Stats() Stats {
	out := Stats{Transactions: s.stats.transactions.Load(), Time: time.Duration(s.stats.nanos.Load())}
	for i := range out.Latency {
		out.Latency[i] = s.stats.latency[i].Load()
		out.Syncs += out.Latency[i]
	}
	return out
}
