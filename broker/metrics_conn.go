package broker

import (
	"errors"
	"math"
	"time"

	"millrace/replica"
	"millrace/wire"
)

// connMeter is what one connection counts for itself. Only its own goroutine
// touches it. What it has gathered goes to the shared meters when answers are
// flushed: a handful of atomic additions for a burst, however many requests,
// partitions and records were in it. Nothing here allocates in steady state.
type connMeter struct {
	m     *meters
	held  *replica.Manager
	shard int

	arrived time.Duration // clock at which the last bytes came
	mark    time.Duration // clock at which we turned to the request at hand
	made    time.Duration // of the request at hand: its answer was ready; 0: not yet
	waited  time.Duration // of the request at hand: for others

	ended   [maxEnded]endedRequests // answers made and not flushed
	endings int

	topic  *replica.Topic // whose counts the next two are
	meter  *topicMeter
	counts topicCounts
	all    topicCounts // of all topics

	client string
	oldest [maxKeys]int8 // lowest version that client has used here, by API
}

// endedRequests are requests of one kind whose answers were made together.
type endedRequests struct {
	meter                         *requestMeter
	n                             int64
	arrived, queue, local, remote time.Duration
}

const (
	// maxEnded is how many kinds of answers one flush can tell apart; the
	// rest are counted a little earlier, as if they had been sent already.
	maxEnded = 8
	// maxKeys is above every API key we serve; checked by a test.
	maxKeys = 96
)

func (c *connMeter) init(b *Broker, listener string) {
	c.m, c.held = b.meters, b.replicas
	c.shard = c.m.connected(listener)
	c.arrive()
	c.forgetClient("")
}

func (c *connMeter) forgetClient(next string) {
	c.client = next
	for i := range c.oldest {
		c.oldest[i] = math.MaxInt8
	}
}

// arrive notes that bytes have come.
func (c *connMeter) arrive() { c.arriveAt(c.m.clock()) }

func (c *connMeter) arriveAt(at time.Duration) { c.arrived, c.mark = at, at }

// meets notes a request that is served, for A11.
func (c *connMeter) meets(h *wire.Header) {
	if h.ClientID != c.client {
		c.forgetClient(h.ClientID)
	}
	if at := &c.oldest[h.Key]; h.Version < int16(*at) {
		*at = int8(h.Version)
		c.m.clients.saw(h.ClientID, h.Key, h.Version)
	}
}

// waits notes that the request at hand has waited for others since begun.
func (c *connMeter) waits(begun time.Duration) { c.waited += c.m.clock() - begun }

// ready notes that the answer to the request at hand is there and leaves now.
func (c *connMeter) ready() { c.made = c.m.clock() }

// answered ends the request at hand. Produce requests end otherwise.
func (c *connMeter) answered(h *wire.Header) {
	now := c.made
	if now == 0 {
		now = c.m.clock()
	}
	c.end(endedRequests{
		meter: c.m.requests.of(h.Key, h.Version), n: 1,
		arrived: c.arrived, queue: c.mark - c.arrived, local: now - c.mark - c.waited, remote: c.waited,
	})
	c.mark, c.made, c.waited = now, 0, 0
}

// producing stamps a Produce call that was taken up.
func (c *connMeter) producing(call *produceCall) {
	call.arrived, call.began = c.arrived, c.mark
}

// produced ends a burst: written is when its batches were in the logs, waited
// says whether anything had to be waited for then.
func (c *connMeter) produced(calls []*produceCall, written time.Duration, waited bool) {
	now := written
	if waited {
		now = c.m.clock()
	}
	var e endedRequests
	for i, call := range calls {
		h := &call.header
		if i > 0 && h.Version == calls[i-1].header.Version && call.arrived == e.arrived && call.began-call.arrived == e.queue {
			e.n++
			continue
		}
		if i > 0 {
			c.end(e)
		}
		e = endedRequests{
			meter: c.m.requests.of(h.Key, h.Version), n: 1,
			arrived: call.arrived, queue: call.began - call.arrived, local: max(written-call.began, 0), remote: now - written,
		}
	}
	c.end(e)
	c.mark = now
}

func (c *connMeter) end(e endedRequests) {
	if c.endings == maxEnded {
		c.flush()
	}
	c.ended[c.endings] = e
	c.endings++
}

// flush adds all to the shared meters; what was answered has been sent by now.
func (c *connMeter) flush() {
	if c.endings == 0 && c.counts == (topicCounts{}) && c.all == (topicCounts{}) {
		return
	}
	var now time.Duration
	if c.endings > 0 {
		now = c.m.clock()
	}
	lock := &c.m.locks[c.shard]
	lock.Lock()
	defer lock.Unlock()
	for i := range c.ended[:c.endings] {
		e := &c.ended[i]
		e.meter.shards[c.shard].add(e, now-e.arrived)
	}
	c.endings = 0
	c.flushTopicLocked()
	c.m.totals[c.shard].add(&c.all)
	c.all = topicCounts{}
}

// of turns to a topic's counts. Requests name the partitions of a topic
// together, so this is seldom another one than before.
func (c *connMeter) of(t *replica.Topic) *topicCounts {
	if t != c.topic {
		c.flushTopic()
		c.topic, c.meter = t, c.m.topic(t, c.held)
	}
	return &c.counts
}

func (c *connMeter) flushTopic() {
	if c.counts != (topicCounts{}) {
		c.m.locks[c.shard].Lock()
		c.flushTopicLocked()
		c.m.locks[c.shard].Unlock()
	}
}

func (c *connMeter) flushTopicLocked() {
	if c.meter == nil {
		return
	}
	c.meter.shards[c.shard].add(&c.counts)
	c.all.add(&c.counts)
	c.counts = topicCounts{}
}

// appended counts one partition of a Produce request that is in its log.
func (c *connMeter) appended(p *producePart) {
	n := c.of(p.partition.Topic)
	n.produces++
	if !p.append.Duplicate {
		n.bytesIn += int64(len(p.append.Batch))
		n.messagesIn += int64(p.append.Info.Count)
	}
}

// refusedProduce counts one that was refused; t is nil if there is no such topic.
func (c *connMeter) refusedProduce(t *replica.Topic, code int16) {
	c.m.requests.failed(wire.KeyProduce, code)
	n := &c.all
	if t != nil {
		n = c.of(t)
	}
	n.produces++
	n.failedProduces++
}

// fetched counts one partition of the answer to a Fetch.
func (c *connMeter) fetched(item *fetchItem, r *wire.FetchPartitionResult, follower bool) {
	n := &c.all
	if item.partition != nil {
		n = c.of(item.partition.Topic)
	}
	n.fetches++
	switch {
	case r.Code != 0:
		n.failedFetches++
		c.m.requests.failed(wire.KeyFetch, r.Code)
	case follower: // other counters' business
	case r.Payload != nil:
		n.bytesOut += int64(r.Payload.Size())
	default:
		n.bytesOut += int64(len(r.Bytes))
	}
}

// Why a connection was closed by us.
const (
	closedGarbage = iota
	closedMalformed
	closedUnsupported
	closedPanicked
	closeReasons
)

var closeReasonNames = [closeReasons]string{"garbage", "malformed", "unsupported_version", "panic"}

// ended counts the end of a connection, if it was for a reason of ours.
func (m *meters) ended(err error) {
	var (
		size        *sizeError
		malformed   *badRequestError
		unsupported *unsupportedError
	)
	switch {
	case errors.As(err, &size):
		m.closed[closedGarbage].Add(1)
	case errors.As(err, &malformed):
		m.closed[closedMalformed].Add(1)
	case errors.As(err, &unsupported):
		m.closed[closedUnsupported].Add(1)
	case errors.Is(err, errPanicked):
		m.closed[closedPanicked].Add(1)
	}
}
