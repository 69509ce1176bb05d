package broker

import (
	"math"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"millrace/coord"
)

// Client quotas. What a client uses is taken from a bucket that fills at the rate of its
// quota; who overdraws gets its answer, with the time that the debt takes to be paid,
// and its connection takes no request for so long (quota_pause.go). So nothing is
// refused, nothing already accepted waits, and the mean rate is the quota's, whatever
// the sizes of requests.
//
// Where no quota is set, all this costs a request one atomic load.

// quotaKind is what a quota bounds.
type quotaKind int8

const (
	quotaProduce quotaKind = iota
	quotaFetch
	quotaRequest // seconds of work per second, in hundredths
	clientKinds  // those above are of users and client ids

	quotaConnect = clientKinds // of addresses
)

// clientKeys are the keys of the quotas that are enforced for users and client ids.
var clientKeys = [clientKinds]string{"producer_byte_rate", "consumer_byte_rate", "request_percentage"}

const connectKey = "connection_creation_rate"

// anonymous is the user of a connection that nobody has authenticated.
const anonymous = "ANONYMOUS"

// quotas knows what each client may use, and what it has used.
type quotas struct {
	windows quotaWindows // fixed at the start
	table   atomic.Pointer[quotaTable]

	mu struct {
		sync.Mutex // also guards every table's clients
		buckets    map[bucketKey]*bucket
		swept      time.Time
	}
}

// quotaWindows is what quota.window.num and quota.window.size.seconds come to.
type quotaWindows struct {
	credit time.Duration // what a client that rests may save up, at its quota's rate
	most   time.Duration // the longest that a client is held back at once
	one    time.Duration // the same for the quota of request time
}

// quotaTable is one state of the quotas, nil if there are none. Never changed once it
// is published, clients excepted.
type quotaTable struct {
	rates    map[coord.QuotaEntity]map[string]float64
	any      [clientKinds]bool       // whether anybody has a quota of the kind
	byIP     map[netip.Addr]float64  // connections per second
	otherIP  float64                 // the same for all other addresses; 0: no quota
	replaced chan struct{}           // closed when another table is in force
	clients  map[string]*clientQuota // what has been looked up, by client id
}

// clientQuota is what one client id may use.
type clientQuota struct {
	limits [clientKinds]limit
}

// limit is a quota and the bucket that it fills; without a bucket there is no quota.
type limit struct {
	rate   float64 // units per second
	bucket *bucket
	credit time.Duration
	most   time.Duration
}

// bucketKey names those who share a bucket: one user's client, all of a user, or one
// client id of whatever user, as the quota says that was found. For quotaConnect user
// is the address. Without any name: those for whom there was no room.
type bucketKey struct {
	kind         quotaKind
	user, client string
}

// bucket is what was used above the quota so far, in the quota's unit; below zero it
// is credit.
type bucket struct {
	mu     sync.Mutex
	debt   float64
	at     time.Time // debt is of this moment; zero: nothing was used yet
	filled time.Time // from then on it is full, which says no more than a new one; and no request has it in hand
}

func newQuotas(c QuotaConfig) *quotas {
	size := durationOf(c.WindowSeconds, time.Second)
	times := func(n int64) time.Duration { return durationOf(n, size) }
	q := &quotas{windows: quotaWindows{
		credit: min(times(max(c.Windows-1, 1)), maxCredit),
		most:   min(times(c.Windows), maxMute),
		one:    min(size, maxMute),
	}}
	q.mu.buckets = map[bucketKey]*bucket{}
	return q
}

// adopt puts quotas in force. What clients owe stays owed, at the new rate.
func (q *quotas) adopt(rates map[coord.QuotaEntity]map[string]float64) {
	next := &quotaTable{rates: rates, byIP: map[netip.Addr]float64{}, replaced: make(chan struct{}), clients: map[string]*clientQuota{}}
	for entity, values := range rates {
		for kind, key := range clientKeys {
			if _, ok := values[key]; ok {
				next.any[kind] = true
			}
		}
		rate, ok := values[connectKey]
		switch addr, err := netip.ParseAddr(entity.IP.Name); {
		case !ok || !entity.IP.Given:
		case entity.IP.Name == "":
			next.otherIP = rate
		case err == nil:
			next.byIP[addr.Unmap()] = rate
		}
	}
	if len(rates) == 0 {
		next = nil
	}
	before := q.table.Swap(next)
	if before != nil {
		close(before.replaced)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.sweepLocked(time.Now())
}

// client finds what a client id may use; nil if nothing bounds it. The result is for
// one request.
func (q *quotas) client(id string) *clientQuota {
	t := q.table.Load()
	if t == nil || t.any == [clientKinds]bool{} {
		return nil
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if c, ok := t.clients[id]; ok {
		return c
	}
	c, keep := q.lookUpLocked(t, id)
	if len(t.clients) >= maxQuotaClients {
		clear(t.clients) // the buckets stay
	}
	if keep {
		t.clients[id] = c
	}
	return c
}

func (q *quotas) lookUpLocked(t *quotaTable, id string) (c *clientQuota, keep bool) {
	keep = true
	for kind := range clientKinds {
		rate, key := t.find(kind, anonymous, id)
		if rate == 0 {
			continue
		}
		if c == nil {
			c = new(clientQuota)
		}
		l := limit{credit: q.windows.credit, most: q.windows.most, rate: rate}
		if kind == quotaRequest {
			l.rate, l.most = rate/100, q.windows.one // heartbeats must not stay away for long
		}
		own := false
		l.bucket, own = q.bucketLocked(key)
		keep = keep && own
		c.limits[kind] = l
	}
	return c, keep
}

// find is the quota of the closest entity that has one of this kind, in the order of
// Kafka's documentation, and who shares it; 0 if there is none.
func (t *quotaTable) find(kind quotaKind, user, client string) (float64, bucketKey) {
	if !t.any[kind] {
		return 0, bucketKey{}
	}
	named := func(name string) coord.QuotaPart { return coord.QuotaPart{Given: true, Name: name} }
	none, rest := coord.QuotaPart{}, coord.QuotaPart{Given: true}
	both := bucketKey{kind, user, client}
	for _, level := range [...]struct {
		user, client coord.QuotaPart
		key          bucketKey
	}{
		{named(user), named(client), both},
		{named(user), rest, both},
		{named(user), none, bucketKey{kind, user, ""}},
		{rest, named(client), both},
		{rest, rest, both},
		{rest, none, bucketKey{kind, user, ""}},
		{none, named(client), bucketKey{kind, "", client}},
		{none, rest, bucketKey{kind, "", client}},
	} {
		if rate, ok := t.rates[coord.QuotaEntity{User: level.user, Client: level.client}][clientKeys[kind]]; ok {
			return rate, level.key
		}
	}
	return 0, bucketKey{}
}

// bucketLocked finds or makes a bucket. Client ids are the clients' to choose: where
// there are too many at once, the late ones share a bucket (own is false).
func (q *quotas) bucketLocked(key bucketKey) (b *bucket, own bool) {
	if b := q.mu.buckets[key]; b != nil {
		return b, true
	}
	own = true
	if len(q.mu.buckets) >= maxQuotaClients {
		if now := time.Now(); now.Sub(q.mu.swept) >= quotaSweep {
			q.sweepLocked(now)
		}
		if len(q.mu.buckets) >= maxQuotaClients {
			key, own = bucketKey{kind: key.kind}, false
			if b := q.mu.buckets[key]; b != nil {
				return b, false
			}
		}
	}
	b = &bucket{filled: time.Now().Add(quotaGrace)}
	q.mu.buckets[key] = b
	return b, own
}

// sweepLocked forgets the full buckets, and with them who uses which.
func (q *quotas) sweepLocked(now time.Time) {
	q.mu.swept = now
	for key, b := range q.mu.buckets {
		if b.full(now) {
			delete(q.mu.buckets, key)
		}
	}
	if t := q.table.Load(); t != nil {
		clear(t.clients)
	}
}

// connect takes up a connection from an address: how long it has to wait until it is
// served, or that too many wait already. rate is the quota; 0: there is none.
func (q *quotas) connect(ip string, now time.Time) (wait time.Duration, rate float64, refused bool) {
	l, ok := q.connections(ip)
	if !ok {
		return 0, 0, false
	}
	if owed := l.owed(now); owed > 0 && owed+time.Duration(float64(time.Second)/l.rate) > l.most {
		return 0, l.rate, true
	}
	return l.charge(1, now), l.rate, false
}

// connections finds how many connections an address may make; false: there is no quota.
func (q *quotas) connections(ip string) (l limit, ok bool) {
	t := q.table.Load()
	if t == nil {
		return l, false
	}
	l = limit{rate: t.otherIP, credit: q.windows.credit, most: q.windows.most}
	if addr, err := netip.ParseAddr(ip); err == nil {
		if own, ok := t.byIP[addr.WithZone("").Unmap()]; ok {
			l.rate = own
		}
	}
	if l.rate == 0 {
		return l, false
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	l.bucket, _ = q.bucketLocked(bucketKey{quotaConnect, ip, ""})
	return l, true
}

// owed is the longest that the client owes under its quotas of these kinds, or of all.
func (q *clientQuota) owed(now time.Time, kinds ...quotaKind) (d time.Duration) {
	if q == nil {
		return 0
	}
	for kind := range clientKinds {
		if len(kinds) == 0 || slices.Contains(kinds, kind) {
			d = max(d, q.limits[kind].owed(now))
		}
	}
	return d
}

// charge takes n units and returns how long it takes until they are paid for.
func (l *limit) charge(n float64, now time.Time) time.Duration {
	b := l.bucket
	if b == nil {
		return 0
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.settle(l, now)
	// What cannot be collected in the longest time that a client is held back is
	// forgiven: else one huge request would keep it away for hours.
	b.debt = min(b.debt+n, l.rate*l.most.Seconds())
	b.filled = b.at.Add(secondsOf(b.debt/l.rate) + l.credit + quotaGrace)
	return secondsOf(b.debt / l.rate)
}

// owed is how long it takes until what was used is paid for; 0 if it is.
func (l *limit) owed(now time.Time) time.Duration {
	b := l.bucket
	if b == nil {
		return 0
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.settle(l, now)
	return secondsOf(b.debt / l.rate)
}

// room is how many units a client that rested may use at once.
func (l *limit) room() float64 {
	if l.bucket == nil {
		return math.Inf(1)
	}
	return l.rate * l.credit.Seconds()
}

// settle brings the bucket to now. A rate that has changed since holds from the last
// use on.
func (b *bucket) settle(l *limit, now time.Time) {
	lowest := -l.rate * l.credit.Seconds()
	switch {
	case b.at.IsZero():
		b.debt, b.at = lowest, now
	case now.After(b.at): // callers took their time before the lock
		b.debt -= l.rate * now.Sub(b.at).Seconds()
		b.at = now
	}
	b.debt = min(max(b.debt, lowest), l.rate*l.most.Seconds())
}

func (b *bucket) full(now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return !now.Before(b.filled)
}

// secondsOf is a debt's time; none for a credit.
func secondsOf(s float64) time.Duration {
	return time.Duration(max(s, 0) * float64(time.Second))
}
