package broker

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"millrace/replica"
)

// Metrics are gathered in two ways. What can be read off when somebody asks
// (logs, groups, connections, the journal) costs nothing before: a collector
// walks it at each scrape (metrics_collect*.go). What has to be counted as it
// happens is counted by each connection for itself, in plain fields, and added
// to the meters below once for each burst of requests (metrics_conn.go).
//
// Reading order: metrics_table.go (every metric), metrics.go, metrics_conn.go,
// metrics_requests.go, metrics_collect.go.

// meters are the broker's shared counters.
type meters struct {
	begun    time.Time // clock readings are the time since then
	ownTime  bool      // Config.Now is not the system's
	requests requestMeters
	clients  oldestVersions

	locks  [meterShards]meterLock
	totals [meterShards]topicCounts
	topics struct {
		sync.Map   // *replica.Topic → *topicMeter
		sync.Mutex // held to add one, and to prune
		count      int
	}

	opened  sync.Map // name of a listener → *atomic.Int64: connections made
	closed  [closeReasons]atomic.Int64
	refused logLimit
	nextOne atomic.Uint32 // connection, to spread them over the shards
}

// meterShards is over how many copies the connections spread their counting, so
// that cores do not fight for one cache line. A power of two.
const meterShards = 4

// usedShards is how many of them there is any use for.
var usedShards = min(meterShards, 1<<(bitsOf(runtime.GOMAXPROCS(0)-1)))

func bitsOf(n int) (bits int) {
	for ; n > 0; n >>= 1 {
		bits++
	}
	return bits
}

// meterLock guards one shard of everything. One lock for a burst costs a
// third of the atomic additions that it spares.
type meterLock struct {
	sync.Mutex
	_ [56]byte // a cache line of its own
}

// topicCounts is what is counted of a topic: one cache line.
type topicCounts struct {
	bytesIn, messagesIn, produces, failedProduces int64
	bytesOut, fetches, failedFetches              int64
	_                                             int64
}

// topicMeter is one topic's counters. A topic that is made anew has a new one.
type topicMeter struct{ shards [meterShards]topicCounts } // each under its lock

func (c *topicCounts) add(n *topicCounts) {
	c.bytesIn += n.bytesIn
	c.messagesIn += n.messagesIn
	c.produces += n.produces
	c.failedProduces += n.failedProduces
	c.bytesOut += n.bytesOut
	c.fetches += n.fetches
	c.failedFetches += n.failedFetches
}

// sum adds the shards up.
func (m *meters) sum(shards *[meterShards]topicCounts) (c topicCounts) {
	for i := range shards {
		m.locks[i].Lock()
		c.add(&shards[i])
		m.locks[i].Unlock()
	}
	return c
}

func newMeters(ownTime bool) *meters {
	m := &meters{begun: time.Now(), ownTime: ownTime}
	m.requests.init()
	return m
}

// clock is the time since the start. It moves on whatever Config.Now says.
func (m *meters) clock() time.Duration { return time.Since(m.begun) }

// clockAt is the clock at a time that Config.Now has just told.
func (m *meters) clockAt(t time.Time) time.Duration {
	if m.ownTime {
		return m.clock()
	}
	return t.Sub(m.begun) // no further look at the system's clock
}

// topic finds a topic's meter, made if it was not there.
func (m *meters) topic(t *replica.Topic, held *replica.Manager) *topicMeter {
	if found, ok := m.topics.Load(t); ok {
		return found.(*topicMeter)
	}
	m.topics.Lock()
	defer m.topics.Unlock()
	found, loaded := m.topics.LoadOrStore(t, new(topicMeter))
	if !loaded {
		if m.topics.count++; m.topics.count > 2*len(held.Topics())+pruneAbove {
			m.pruneLocked(held)
		}
	}
	return found.(*topicMeter)
}

// pruneAbove is how many meters of deleted topics are kept until they are
// looked for without a scrape: 256 bytes each.
const pruneAbove = 64

// prune forgets the meters of topics that are gone.
func (m *meters) prune(held *replica.Manager) {
	m.topics.Lock()
	defer m.topics.Unlock()
	m.pruneLocked(held)
}

func (m *meters) pruneLocked(held *replica.Manager) {
	live := held.Topics()
	m.topics.count = 0
	m.topics.Range(func(key, _ any) bool {
		t := key.(*replica.Topic)
		if live[t.Name] != t {
			m.topics.Delete(t)
		} else {
			m.topics.count++
		}
		return true
	})
}

// connected counts a connection and tells its shard.
func (m *meters) connected(listener string) int {
	n, ok := m.opened.Load(listener)
	if !ok {
		n, _ = m.opened.LoadOrStore(listener, new(atomic.Int64))
	}
	n.(*atomic.Int64).Add(1)
	return int(m.nextOne.Add(1)) & (usedShards - 1)
}
