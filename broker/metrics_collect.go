package broker

import (
	"runtime/debug"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"millrace/wire"
)

// collector walks the broker at each scrape. It is what client_golang calls
// unchecked: which series there are is not known before.
type collector struct {
	b     *Broker
	ready func() bool

	lagSeries int // groups' partitions told one by one

	one sync.Mutex // scrape at a time: they share what lagTimes keeps
	lag lagTimes
}

// Describe tells nothing: unchecked.
func (c *collector) Describe(chan<- *prometheus.Desc) {}

// Collect sends everything. Before the broker serves there is only its state.
func (c *collector) Collect(out chan<- prometheus.Metric) {
	c.one.Lock()
	defer c.one.Unlock()
	begun := time.Now()
	s := series{out}
	s.build()
	switch {
	case !c.ready():
		s.value(metricState, 1)
		return // the logs may be opened this moment
	case c.b.isStopping():
		s.value(metricState, 6)
		return // they are being closed
	}
	s.value(metricState, 3)
	s.topics(c.b)
	s.requests(c.b.meters)
	s.clients(c.b)
	s.telemetry(c.b.telemetry, c.b.now())
	s.connections(c.b)
	s.partitions(c.b)
	s.logs(c.b.store)
	s.journals(c.b.store)
	s.controller(c.b)
	s.coordination(c.b)
	c.groups(s)
	s.value(metricScraping, time.Since(begun).Seconds())
}

// series is where a scrape goes.
type series struct{ out chan<- prometheus.Metric }

func (s series) value(m *metric, v float64, labels ...string) {
	s.out <- prometheus.MustNewConstMetric(m.desc, m.kind.value(), v, labels...)
}

func (s series) count(m *metric, v int64, labels ...string) { s.value(m, float64(v), labels...) }

func (k metricKind) value() prometheus.ValueType {
	if k == counter {
		return prometheus.CounterValue
	}
	return prometheus.GaugeValue
}

var buildLabels = sync.OnceValue(func() [3]string {
	l := [3]string{"unknown", "unknown", "unknown"}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return l
	}
	l[2] = info.GoVersion
	if info.Main.Version != "" {
		l[0] = info.Main.Version
	}
	for _, setting := range info.Settings {
		if setting.Key == "vcs.revision" {
			l[1] = setting.Value
		}
	}
	return l
})

func (s series) build() {
	l := buildLabels()
	s.value(metricBuild, 1, l[:]...)
}

func (s series) topics(b *Broker) {
	b.meters.prune(b.replicas)
	rows := [...]struct {
		m *metric
		n func(c *topicCounts) int64
	}{
		{metricMessagesIn, func(c *topicCounts) int64 { return c.messagesIn }},
		{metricBytesIn, func(c *topicCounts) int64 { return c.bytesIn }},
		{metricBytesOut, func(c *topicCounts) int64 { return c.bytesOut }},
		{metricProduces, func(c *topicCounts) int64 { return c.produces }},
		{metricFetches, func(c *topicCounts) int64 { return c.fetches }},
		{metricFailedProduces, func(c *topicCounts) int64 { return c.failedProduces }},
		{metricFailedFetches, func(c *topicCounts) int64 { return c.failedFetches }},
	}
	all := b.meters.sum(&b.meters.totals)
	for _, r := range rows {
		s.out <- prometheus.MustNewConstMetric(r.m.total, prometheus.CounterValue, float64(r.n(&all)))
	}
	for name, t := range b.replicas.Topics() {
		found, ok := b.meters.topics.Load(t)
		if !ok {
			continue // no traffic yet
		}
		counts := b.meters.sum(&found.(*topicMeter).shards)
		for _, r := range rows {
			s.count(r.m, r.n(&counts), name)
		}
	}
}

func (s series) requests(all *meters) {
	r := &all.requests
	for _, api := range wire.APIs {
		for version := range r.versions[api.Key] {
			m := r.versions[api.Key][version].Load()
			if m == nil {
				continue
			}
			text := strconv.Itoa(version)
			took := all.read(m)
			s.value(metricRequests, float64(took[phaseTotal].count), api.Name, text)
			for phase, metric := range metricTimes {
				s.times(metric, &took[phase], phase == phaseTotal, api.Name, text)
			}
		}
		counts := r.errors[api.Key].Load()
		if counts == nil {
			continue
		}
		for i := range counts {
			n := counts[i].Load()
			if n == 0 {
				continue
			}
			name := "OTHER"
			if i <= maxCode+1 {
				name = wire.ErrorName(int16(i - 1))
			}
			s.count(metricErrors, n, api.Name, name)
		}
	}
}

// times sends a histogram of milliseconds. The phases have half as many
// buckets as the total.
func (s series) times(m *metric, t *times, fine bool, labels ...string) {
	cumulative := make(map[float64]uint64, timeBuckets)
	n := uint64(0)
	for i := range timeBuckets - 1 { // the last one is +Inf
		if n += t.buckets[i]; fine || i%2 == 0 {
			cumulative[milliseconds(bucketEnd(i))] = n
		}
	}
	s.out <- prometheus.MustNewConstHistogram(m.desc, t.count, milliseconds(t.sum), cumulative, labels...)
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

func (s series) clients(b *Broker) {
	all, evicted := b.meters.clients.list()
	for _, c := range all {
		s.value(metricOldest, float64(c.version), c.client, apiName(c.key))
	}
	s.count(metricOldestMissed, evicted)
	s.count(metricMemory, b.budget.used.Load())
	s.count(metricMemoryLimit, b.budget.limit)
	s.count(metricMemoryWait, int64(b.budget.waiting.Load()))
	sessions, partitions := b.sessions.size()
	s.count(metricSessions, int64(sessions))
	s.count(metricSessionParts, int64(partitions))
}

// size is how many sessions there are, and how many partitions they have.
func (s *fetchSessions) size() (sessions, partitions int) {
	s.mu.Lock()
	all := make([]*fetchSession, 0, len(s.byID))
	for _, session := range s.byID {
		all = append(all, session)
	}
	s.mu.Unlock()
	for _, session := range all {
		session.mu.Lock()
		partitions += len(session.partitions)
		session.mu.Unlock()
	}
	return len(all), partitions
}

func (s series) connections(b *Broker) {
	open := map[string]int64{}
	for _, l := range b.listeners {
		open[l.name] = 0
	}
	b.conns.mu.Lock()
	for c := range b.conns.open {
		open[c.listener]++
	}
	b.conns.mu.Unlock()
	for name, n := range open {
		s.count(metricConnections, n, name)
		made := int64(0)
		if v, ok := b.meters.opened.Load(name); ok {
			made = v.(interface{ Load() int64 }).Load()
		}
		s.count(metricConnected, made, name)
	}
	for reason, name := range closeReasonNames {
		s.count(metricClosed, b.meters.closed[reason].Load(), name)
	}
}
