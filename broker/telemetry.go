package broker

import (
	"cmp"
	"container/list"
	"crypto/rand"
	"encoding/binary"
	"hash/crc32"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"millrace/coord"
)

// telemetry is what clients push of their own metrics (KIP-714): who they are, what
// they were asked for, and the values, for /metrics.
//
// Reading order: config_client_metrics.go (what a subscription is), telemetry.go,
// telemetry_api.go, telemetry_decode.go, telemetry_series.go.
type telemetry struct {
	maxBytes  int // of a push, compressed and expanded: telemetry.max.bytes
	maxSeries int // of all clients; maxTelemetrySeries, less in tests

	subscriptions atomic.Pointer[telemetrySubscriptions]
	results       [pushResults]atomic.Int64
	leftOut       atomic.Int64
	refused       logLimit

	// decoding is held by the one push that is being decoded. As objects a push may
	// take 60 times telemetry.max.bytes for a moment; this bounds it to one.
	decoding sync.Mutex

	mu struct {
		sync.Mutex
		clients map[[16]byte]*list.Element // of order
		order   list.List                  // of *telemetryClient, the one that was heard of last first
		series  int                        // of all clients
	}
}

const (
	// maxTelemetryClients is how many clients are told apart, as in Kafka. Whoever was
	// not heard of for longest makes room.
	maxTelemetryClients = 16384
	// maxTelemetrySeries bounds the series of all clients, maxClientSeries those of
	// one: about 400 bytes each, at most 3 KB.
	maxTelemetrySeries = 20_000
	maxClientSeries    = 2_000
	// leastTelemetryKeep is how long a client that says nothing is remembered at
	// least; else it is keepIntervals of its push interval.
	leastTelemetryKeep = time.Minute
	keepIntervals      = 3
	// goneKeep is how long the values of a client stay after its connection has
	// ended: long enough for a scrape to see the last ones.
	goneKeep = time.Minute
)

// telemetryClient is one client instance. Under telemetry.mu.
type telemetryClient struct {
	id                [16]byte
	clientID          string // all text here is cut to what a label may have
	software, version string
	address           string
	conn              *conn // the last one; nil once it has ended

	asked        *telemetrySubscriptions // that the next three were made of
	metrics      []string                // prefixes, sorted
	interval     time.Duration
	subscription int32

	lastGet, lastPush time.Time
	lastCode          int16
	terminating       bool
	expires           time.Time

	resource []label // what it says of itself
	series   map[string]*clientSeries
}

// telemetrySubscriptions is all subscriptions, ready to be matched. Never changed.
type telemetrySubscriptions struct {
	configs coord.NamedConfigs
	list    []telemetrySubscription
}

type telemetrySubscription struct {
	metrics  []string
	interval time.Duration
	match    clientMatch
}

func newTelemetry(maxBytes int) *telemetry {
	t := &telemetry{maxBytes: maxBytes, maxSeries: maxTelemetrySeries}
	t.mu.clients = map[[16]byte]*list.Element{}
	t.subscriptions.Store(&telemetrySubscriptions{})
	return t
}

// follow is coordination's subscriber: it makes the subscriptions anew when they
// have changed.
func (t *telemetry) follow(img *coord.Image) {
	configs := img.ClientMetrics()
	if maps.EqualFunc(configs, t.subscriptions.Load().configs, maps.Equal) {
		return
	}
	next := &telemetrySubscriptions{configs: configs}
	for _, overrides := range configs {
		value := func(key string) string { return rowOf(clientMetricsTable, key).value(new(Config), overrides).Value }
		s := telemetrySubscription{metrics: splitList(value("metrics")), interval: asTime(value("interval.ms"))}
		var err error
		if s.match, err = parseMatch(value("match")); err != nil {
			continue // checked when it was set; written by another version it is for nobody
		}
		next.list = append(next.list, s)
	}
	t.subscriptions.Store(next)
}

// of is what a client is asked for by all subscriptions that it matches: all their
// metrics, at the shortest interval.
func (s *telemetrySubscriptions) of(values *[selectors]string) (metrics []string, interval time.Duration) {
	interval = defaultPushInterval * time.Millisecond
	for i := range s.list {
		if sub := &s.list[i]; sub.match.fits(values) {
			metrics = append(metrics, sub.metrics...)
			interval = min(interval, sub.interval)
		}
	}
	if slices.Contains(metrics, allMetrics) {
		return []string{allMetrics}, interval
	}
	slices.Sort(metrics)
	return slices.Compact(metrics), interval
}

// allMetrics asks for every metric.
const allMetrics = "*"

func (m *clientMatch) fits(values *[selectors]string) bool {
	for i, pattern := range m {
		if pattern != nil && !pattern.MatchString(values[i]) {
			return false
		}
	}
	return true
}

// subscriptionID is Kafka's: the checksum of what is asked for, mixed with the
// client's id.
func subscriptionID(metrics []string, interval time.Duration, id [16]byte) int32 {
	text := "[" + strings.Join(metrics, ", ") + "]" + strconv.FormatInt(interval.Milliseconds(), 10)
	sum := crc32.Checksum([]byte(text), castagnoli)
	hash := binary.BigEndian.Uint64(id[:8]) ^ binary.BigEndian.Uint64(id[8:])
	return int32(sum) ^ int32(hash>>32) ^ int32(hash)
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// newInstanceID is a random UUID (version 4) whose text does not begin with '-'.
func newInstanceID() (id [16]byte) {
	for {
		_, _ = rand.Read(id[:]) // never fails
		id[6], id[8] = id[6]&0x0f|0x40, id[8]&0x3f|0x80
		if coord.IDText(id)[0] != '-' {
			return id
		}
	}
}

// clientLocked finds a client, made if it was not known, with what it is asked for
// now. Who comes back on another connection, or finds other subscriptions, begins
// anew, but keeps its values.
func (t *telemetry) clientLocked(id [16]byte, rc *requestContext, now time.Time) *telemetryClient {
	var c *telemetryClient
	if at := t.mu.clients[id]; at != nil {
		c = at.Value.(*telemetryClient)
		t.mu.order.MoveToFront(at)
	} else {
		for t.mu.order.Len() >= maxTelemetryClients {
			t.forgetLocked(t.mu.order.Back())
		}
		c = &telemetryClient{id: id, series: map[string]*clientSeries{}}
		t.mu.clients[id] = t.mu.order.PushFront(c)
	}
	if subs := t.subscriptions.Load(); c.asked != subs || c.conn == nil {
		host, port, _ := net.SplitHostPort(rc.remote)
		values := [selectors]string{coord.IDText(id), rc.header.ClientID, rc.software.name, rc.software.version, host, port}
		c.asked = subs
		c.metrics, c.interval = subs.of(&values)
		c.subscription = subscriptionID(c.metrics, c.interval, id)
		c.lastGet, c.lastPush, c.lastCode, c.terminating = time.Time{}, time.Time{}, 0, false
		c.clientID, c.software, c.version = cutLabel(rc.header.ClientID), cutLabel(rc.software.name), cutLabel(rc.software.version)
		c.address = cutLabel(host)
	}
	c.conn = rc.conn
	if c.conn != nil {
		c.conn.pushes = id
	}
	c.expires = now.Add(c.keep())
	return c
}

// keep is how long the client, and each value of its, stays without being renewed.
func (c *telemetryClient) keep() time.Duration {
	return max(leastTelemetryKeep, keepIntervals*c.interval)
}

// wants says whether the client was asked for a metric.
func (c *telemetryClient) wants(metric string) bool {
	return slices.ContainsFunc(c.metrics, func(prefix string) bool {
		return prefix == allMetrics || strings.HasPrefix(metric, prefix)
	})
}

// left notes that a connection has ended.
func (t *telemetry) left(conn *conn, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if at := t.mu.clients[conn.pushes]; at != nil {
		if c := at.Value.(*telemetryClient); c.conn == conn {
			c.conn = nil
			if limit := now.Add(goneKeep); limit.Before(c.expires) {
				c.expires = limit
			}
		}
	}
}

func (t *telemetry) forgetLocked(at *list.Element) {
	c := at.Value.(*telemetryClient)
	t.mu.series -= len(c.series)
	delete(t.mu.clients, c.id)
	t.mu.order.Remove(at)
}

// expire forgets clients and values that were not renewed in time.
func (t *telemetry) expire(now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.expireLocked(now)
}

func (t *telemetry) expireLocked(now time.Time) {
	var next *list.Element
	for at := t.mu.order.Front(); at != nil; at = next {
		next = at.Next()
		c := at.Value.(*telemetryClient)
		if !now.Before(c.expires) {
			t.forgetLocked(at)
			continue
		}
		for key, s := range c.series {
			if now.Sub(s.at) >= c.keep() {
				delete(c.series, key)
				t.mu.series--
			}
		}
	}
}

// cutLabel is text for a label, of bounded length. It is a copy: what comes with a
// request lies in the request's memory.
func cutLabel(s string) string {
	if len(s) > maxShownID {
		s = s[:maxShownID]
	}
	return strings.Clone(labelText(s))
}

// label is one label of a series.
type label struct{ name, value string }

func compareLabels(a, b label) int { return cmp.Compare(a.name, b.name) }
