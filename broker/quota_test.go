package broker

import (
	"fmt"
	"math"
	"testing"
	"time"

	"millrace/coord"
)

func clientEntity(user, client string) coord.QuotaEntity {
	part := func(name string) coord.QuotaPart {
		switch name {
		case "":
			return coord.QuotaPart{}
		case "*":
			return coord.QuotaPart{Given: true}
		}
		return coord.QuotaPart{Given: true, Name: name}
	}
	return coord.QuotaEntity{User: part(user), Client: part(client)}
}

func quotasOf(windows int64, rates map[coord.QuotaEntity]map[string]float64) *quotas {
	q := newQuotas(QuotaConfig{Windows: windows, WindowSeconds: 1})
	q.adopt(rates)
	return q
}

// Claim: whatever the sizes of requests, the mean rate of a client that always wants
// ten times its quota is the quota, beyond what it had saved up; and it is never held
// back longer than the windows.
// Method: a client that waits as it is told, over an hour of made-up time.
func TestTheMeanRateIsTheQuota(t *testing.T) {
	const rate = 1e6
	for _, size := range []float64{100, 16e3, 1e6, 5e6} {
		q := quotasOf(11, map[coord.QuotaEntity]map[string]float64{clientEntity("", "c"): {"producer_byte_rate": rate}})
		l := q.client("c").limits[quotaProduce]
		start := time.Now()
		now, used := start, 0.0
		for now.Sub(start) < time.Hour && used < 4e9 && (size > 100 || used < 1e8) {
			used += size
			wait := l.charge(size, now)
			if wait > 11*time.Second {
				t.Fatalf("size %v: waits %v", size, wait)
			}
			now = now.Add(wait + time.Duration(size/(10*rate)*1e9))
		}
		if got := (used - rate*10) / now.Sub(start).Seconds(); math.Abs(got-rate) > rate/20 {
			t.Errorf("size %v: %.0f a second, want %.0f", size, got, rate)
		}
	}
}

// Claim: what no wait can collect is forgiven; a rest saves up the windows' credit and
// no more; another rate holds from then on, for what is owed too.
// Method: one bucket, step by step.
func TestDebtAndCreditAreBounded(t *testing.T) {
	q := quotasOf(11, map[coord.QuotaEntity]map[string]float64{clientEntity("", "c"): {"producer_byte_rate": 1000}})
	l := q.client("c").limits[quotaProduce]
	now := time.Now()
	near := func(what string, got, want time.Duration) {
		t.Helper()
		if (got - want).Abs() > 2*time.Millisecond {
			t.Errorf("%s: %v, want %v", what, got, want)
		}
	}
	near("within the credit", l.charge(10_000, now), 0)
	near("above it", l.charge(2000, now), 2*time.Second)
	near("owed by others", l.owed(now), 2*time.Second)
	faster := l
	faster.rate = 2000
	near("at twice the rate", faster.owed(now), time.Second)
	near("far above", l.charge(1e9, now), 11*time.Second)
	now = now.Add(time.Hour)
	near("after a rest", l.charge(11_000, now), time.Second)
	if l.bucket.full(now.Add(10 * time.Second)) {
		t.Error("full too early")
	}
	if !l.bucket.full(now.Add(11*time.Second + quotaGrace + time.Millisecond)) {
		t.Error("never full again")
	}
}

// Claim: the quota of the closest entity counts, in Kafka's order, for each kind by
// itself; who shares it follows from the entity.
// Method: take the closest away, one after the other.
func TestTheClosestQuotaCounts(t *testing.T) {
	order := []struct {
		entity coord.QuotaEntity
		key    bucketKey
	}{
		{clientEntity(anonymous, "c"), bucketKey{0, anonymous, "c"}},
		{clientEntity(anonymous, "*"), bucketKey{0, anonymous, "c"}},
		{clientEntity(anonymous, ""), bucketKey{0, anonymous, ""}},
		{clientEntity("*", "c"), bucketKey{0, anonymous, "c"}},
		{clientEntity("*", "*"), bucketKey{0, anonymous, "c"}},
		{clientEntity("*", ""), bucketKey{0, anonymous, ""}},
		{clientEntity("", "c"), bucketKey{0, "", "c"}},
		{clientEntity("", "*"), bucketKey{0, "", "c"}},
	}
	rates := map[coord.QuotaEntity]map[string]float64{
		clientEntity("other", "c"): {"producer_byte_rate": 99}, clientEntity(anonymous, "d"): {"producer_byte_rate": 98},
	}
	for i, o := range order {
		rates[o.entity] = map[string]float64{"producer_byte_rate": float64(i + 1), "consumer_byte_rate": 50}
	}
	for i, o := range order {
		q := quotasOf(11, rates)
		rate, key := q.table.Load().find(quotaProduce, anonymous, "c")
		if rate != float64(i+1) || key != o.key {
			t.Errorf("%v: %v of %+v", o.entity, rate, key)
		}
		if rate, _ := q.table.Load().find(quotaFetch, anonymous, "c"); rate != 50 {
			t.Errorf("%v: consumer_byte_rate %v", o.entity, rate)
		}
		if l := q.client("c").limits[quotaRequest]; l.bucket != nil || l.charge(1e9, time.Now()) != 0 {
			t.Errorf("%v: a quota out of nowhere: %+v", o.entity, l)
		}
		delete(rates[o.entity], "producer_byte_rate")
	}
	if rate, _ := quotasOf(11, rates).table.Load().find(quotaProduce, anonymous, "c"); rate != 0 {
		t.Errorf("%v is left", rate)
	}
}

// Claim: client ids without number take bounded memory, and whoever is above its quota
// stays known through that.
// Method: three times as many as are told apart.
func TestManyClientsTakeBoundedMemory(t *testing.T) {
	q := quotasOf(11, map[coord.QuotaEntity]map[string]float64{clientEntity("", "*"): {"producer_byte_rate": 1}})
	l := q.client("heavy").limits[quotaProduce]
	l.charge(1e6, time.Now())
	for i := range 3 * maxQuotaClients {
		l := q.client(fmt.Sprint(i)).limits[quotaProduce]
		l.charge(1, time.Now())
	}
	if n := len(q.mu.buckets); n > maxQuotaClients+int(clientKinds) {
		t.Errorf("%d buckets", n)
	}
	if n := len(q.table.Load().clients); n > maxQuotaClients {
		t.Errorf("%d clients", n)
	}
	if l := q.client("heavy").limits[quotaProduce]; l.owed(time.Now()) < 5*time.Second {
		t.Error("the debt is forgotten")
	}
	q.mu.Lock()
	q.sweepLocked(time.Now().Add(time.Minute))
	q.mu.Unlock()
	if n := len(q.mu.buckets); n != 0 {
		t.Errorf("%d buckets of clients that rest", n)
	}
}

// Claim: without quotas a request pays no allocation and no lock.
// Method: count; and hold the lock meanwhile.
func TestNoQuotaCostsNothing(t *testing.T) {
	q := newQuotas(QuotaConfig{Windows: 11, WindowSeconds: 1})
	q.mu.Lock()
	defer q.mu.Unlock()
	if n := testing.AllocsPerRun(100, func() {
		if q.client("c") != nil || !q.client("c").timed().IsZero() {
			t.Error("a quota")
		}
		if _, rate, _ := q.connect("127.0.0.1", time.Time{}); rate != 0 {
			t.Error("a quota")
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// Claim: addresses are told apart whatever their form; each has its own turn; too many
// at once are refused, and those do not lengthen the wait of the others.
// Method: made-up connections at one moment.
func TestConnectionsOfAnAddressTakeTurns(t *testing.T) {
	ip := func(name string) coord.QuotaEntity {
		return coord.QuotaEntity{IP: coord.QuotaPart{Given: true, Name: name}}
	}
	q := quotasOf(3, map[coord.QuotaEntity]map[string]float64{ip("10.0.0.1"): {connectKey: 2}, ip(""): {connectKey: 100}})
	now := time.Now()
	var waits []time.Duration
	refused := 0
	for range 20 {
		wait, rate, no := q.connect("::ffff:10.0.0.1", now)
		if no {
			refused++
			continue
		}
		if rate != 2 {
			t.Fatalf("rate %v", rate)
		}
		waits = append(waits, wait)
	}
	// Two seconds of credit, then one each half second, up to three seconds.
	want := []time.Duration{0, 0, 0, 0, 500, 1000, 1500, 2000, 2500, 3000}
	if len(waits) != len(want) || refused != 10 {
		t.Fatalf("%v, %d refused", waits, refused)
	}
	for i := range want {
		if (waits[i] - want[i]*time.Millisecond).Abs() > time.Millisecond {
			t.Errorf("connection %d waits %v, want %v ms", i, waits[i], int64(want[i]))
		}
	}
	if wait, rate, no := q.connect("10.0.0.2", now); wait != 0 || rate != 100 || no {
		t.Errorf("another address: %v at %v, refused %v", wait, rate, no)
	}
}
