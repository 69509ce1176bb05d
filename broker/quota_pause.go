package broker

import (
	"log/slog"
	"math"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"millrace/wire"
)

// First versions whose answers tell of the throttling and leave before it; older
// answers wait themselves, since their clients would not.
const (
	produceThrottlesAfter = 6
	fetchThrottlesAfter   = 8
)

// throttle is what quotas ask of a connection, until its next pause.
type throttle struct {
	hold time.Duration // the answers that are buffered wait so long
	mute time.Duration // no request is taken for so long
}

// slow notes that the client is above its quota.
func (c *conn) slow(d time.Duration, told bool) {
	if told {
		c.throttle.mute = max(c.throttle.mute, d)
	} else {
		c.throttle.hold = max(c.throttle.hold, d)
	}
	c.b.limits.throttled.log(c.log, slog.LevelDebug, "slowing a client down to its quota", "client_id", c.rc.header.ClientID, "api", apiName(c.rc.header.Key), "for", d)
}

// beforeHeld sends the answers before one that will be held.
func (c *conn) beforeHeld() error {
	if c.throttle.hold > 0 {
		return nil // they are held already
	}
	return c.flush()
}

// pause does what slow has noted: sends what is buffered, in time, and takes nothing
// for as long as the client owes. It waits on the connection's own goroutine, with no
// lock and, where it can be helped, no memory of the budget.
func (c *conn) pause() error {
	p := c.throttle
	c.throttle = throttle{}
	if err := c.mute(p.hold, c.owes); err != nil {
		return err
	}
	if err := c.flush(); err != nil {
		return err
	}
	if err := c.mute(p.mute-p.hold, c.owes); err != nil {
		return err
	}
	c.rc.arrived = c.b.now() // what comes next is only now taken up
	return nil
}

// mute waits until the time is over, the broker stops, or the client is gone. When
// other quotas are in force, owed says what of the time is left under them.
func (c *conn) mute(d time.Duration, owed func(now time.Time) time.Duration) error {
	table := c.b.quotas.table.Load()
	if d <= 0 || table == nil {
		return nil
	}
	if !c.inHand {
		c.frames.rest()
	}
	deadline := time.Now().Add(d)
	timer := time.NewTimer(min(d, mutePeek))
	defer timer.Stop()
	for {
		select {
		case <-c.b.stopping:
			return nil
		case <-table.replaced:
			if table = c.b.quotas.table.Load(); table == nil {
				return nil
			}
			now := time.Now()
			if sooner := now.Add(owed(now)); sooner.Before(deadline) {
				deadline = sooner
			}
		case <-timer.C:
		}
		left := time.Until(deadline)
		switch {
		case left <= 0:
			return nil
		case c.gone():
			return errQuiet
		}
		timer.Reset(min(left, mutePeek))
	}
}

// owes is how long the client pays for what it used, whoever used it.
func (c *conn) owes(now time.Time) time.Duration {
	return c.b.quotas.client(c.rc.header.ClientID).owed(now)
}

// awaits is the same for connections of its address.
func (c *conn) awaits(now time.Time) time.Duration {
	if l, ok := c.b.quotas.connections(c.ip); ok {
		return l.owed(now)
	}
	return 0
}

// enter lets a new connection wait for its turn, under connection_creation_rate.
func (c *conn) enter() error {
	wait, rate, refused := c.b.quotas.connect(c.ip, time.Now())
	if refused {
		c.b.limits.connections.log(c.log, slog.LevelWarn, "refusing a connection: too many of its address wait already", connectKey, rate, "ip", c.ip)
		return errQuiet
	}
	return c.mute(wait, c.awaits)
}

// timed begins to measure a request's work; zero if nobody asks.
func (q *clientQuota) timed() time.Time {
	if q == nil || q.limits[quotaRequest].bucket == nil {
		return time.Time{}
	}
	return time.Now()
}

// waitingAPI tells the APIs that hold an answer back until others have come,
// which is no work of ours.
func waitingAPI(key int16) bool { return key == wire.KeyJoinGroup || key == wire.KeySyncGroup }

// chargePlain charges the time that a request took, before its answer is written.
func (c *conn) chargePlain(q *clientQuota, began time.Time, response kmsg.Response) error {
	if began.IsZero() || waitingAPI(c.rc.header.Key) {
		return nil
	}
	now := time.Now()
	d := q.limits[quotaRequest].charge(now.Sub(began).Seconds(), now)
	if d == 0 {
		return nil
	}
	told := false
	if t, ok := response.(kmsg.ThrottleResponse); ok {
		response.(kmsg.SetThrottleResponse).SetThrottle(throttleMs(d))
		_, told = t.Throttle()
	}
	var err error
	if !told {
		err = c.beforeHeld()
	}
	c.slow(d, told)
	return err
}

// chargeProduce charges a request, before its answer is written.
func (c *conn) chargeProduce(call *produceCall) error {
	now := time.Now()
	d := call.quota.limits[quotaProduce].charge(float64(call.size), now)
	if call.request.Acks != 0 {
		d = max(d, call.quota.limits[quotaRequest].charge(call.worked.Seconds(), now))
	}
	if d == 0 {
		return nil
	}
	call.response.ThrottleMs = throttleMs(d)
	told := call.header.Version >= produceThrottlesAfter || call.request.Acks == 0
	var err error
	if !told {
		err = c.beforeHeld()
	}
	c.slow(d, told)
	return err
}

// fetchHeld looks whether the client owes for what other connections, or versions that
// are not told, have used. Then it gets an empty answer, or is held. done: it was answered.
func (c *conn) fetchHeld(q *clientQuota, session *fetchSession) (done bool, err error) {
	f := &c.fetch
	now := time.Now()
	d := q.owed(now, quotaFetch, quotaRequest)
	if d == 0 {
		return false, nil
	}
	f.response.ThrottleMs = throttleMs(d)
	if c.rc.header.Version < fetchThrottlesAfter {
		if err := c.flush(); err != nil {
			return false, err
		}
		return false, c.mute(d, c.owes)
	}
	if session != nil {
		f.response.SessionID = session.id
	}
	c.slow(d, true)
	return true, c.sendFetch()
}

// boundFetch lets no answer take more than a client that rested may have at once.
func (q *clientQuota) boundFetch(l *fetchLimits) {
	if room := q.limits[quotaFetch].room(); room < float64(l.total) {
		l.total = int(max(room, 1))
		l.min = min(l.min, l.total)
	}
}

// sendCharged charges an answer to Fetch and sends it.
func (c *conn) sendCharged(q *clientQuota, began time.Time) error {
	f := &c.fetch
	records := 0
	for i := range f.response.Topics {
		for j := range f.response.Topics[i].Partitions {
			if p := &f.response.Topics[i].Partitions[j]; p.Payload != nil {
				records += p.Payload.Size()
			} else {
				records += len(p.Bytes)
			}
		}
	}
	now := time.Now()
	d := q.limits[quotaFetch].charge(float64(records), now)
	if !began.IsZero() {
		d = max(d, q.limits[quotaRequest].charge((now.Sub(began)-c.waited).Seconds(), now))
	}
	// An older client is held when it asks again.
	if d > 0 && c.rc.header.Version >= fetchThrottlesAfter {
		f.response.ThrottleMs = throttleMs(d)
		c.slow(d, true)
	}
	before := c.writer.Sent() + int64(c.writer.Buffered())
	err := c.sendFetch()
	// The rest of the frame, of which nobody knew the size.
	rest := c.writer.Sent() + int64(c.writer.Buffered()) - before - int64(records)
	q.limits[quotaFetch].charge(float64(max(rest, 0)), now)
	return err
}

// throttleMs is a time as answers have it: never less than what is waited.
func throttleMs(d time.Duration) int32 {
	return int32(min(int64((d+time.Millisecond-1)/time.Millisecond), math.MaxInt32))
}
