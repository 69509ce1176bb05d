package coordinator

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"millrace/coord/group"
	"millrace/wire"
)

// shard is one partition of __consumer_offsets and the groups in it.
type shard struct {
	s         *Service
	partition int32
	log       Log
	due       atomic.Int64 // next alarm, as time since s.begun; 0: none

	mu struct {
		sync.Mutex
		state  shardState
		groups *group.Groups // nil until loaded
		calls  map[group.Call]*Call
		last   group.Call
		queue  []*writing // in the order in which the log has them
	}
}

type shardState int8

const (
	loading shardState = iota
	active
	failed   // cannot be read; a restart may help
	resigned // no longer ours
)

// code is what requests are told in a state; 0 when they are served.
func (st shardState) code() int16 {
	switch st {
	case loading:
		return wire.ErrCoordinatorLoadInProgress
	case failed:
		return wire.ErrCoordinatorNotAvailable
	case resigned:
		return wire.ErrNotCoordinator
	}
	return wire.ErrNone
}

// writing is a write that has not been reported to the state machine.
type writing struct {
	id      uint64
	pending Pending
	ended   bool // shard.mu; code is set
	code    int16
}

// Call is a request that is answered later.
type Call struct {
	// Done is closed when Response may be asked.
	Done chan struct{}

	shard    *shard
	id       group.Call
	group    string
	response kmsg.Response
	refuse   func(code int16) kmsg.Response
}

// Response is the answer; only after Done.
func (c *Call) Response() kmsg.Response { return c.response }

// Abandon tells that nobody waits for the answer any more.
func (c *Call) Abandon() {
	if c.shard == nil {
		return
	}
	writes, _ := c.shard.step(func(now time.Time, g *group.Groups) { g.Abandon(now, c.group, c.id) })
	c.shard.s.behind.add(c.shard, writes)
}

func (c *Call) answer(r kmsg.Response) {
	c.response = r
	close(c.Done)
}

func newShard(s *Service, partition int32, log Log) *shard {
	sh := &shard{s: s, partition: partition, log: log}
	sh.mu.calls = map[group.Call]*Call{}
	return sh
}

// step takes one step of the state machine. The caller must see the writes
// through. The code says why nothing was done, 0 if it was.
func (sh *shard) step(f func(now time.Time, g *group.Groups)) (writes []*writing, code int16) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if code := sh.mu.state.code(); code != wire.ErrNone {
		return nil, code
	}
	now := sh.s.o.Now()
	f(now, sh.mu.groups)
	return sh.collect(now), wire.ErrNone
}

// begin takes a step that answers one request, perhaps later, and sees through
// what it writes.
func (sh *shard) begin(id string, refuse func(code int16) kmsg.Response, f func(now time.Time, g *group.Groups, c group.Call)) *Call {
	c := &Call{Done: make(chan struct{}), shard: sh, group: id, refuse: refuse}
	if sh == nil {
		c.answer(refuse(wire.ErrNotCoordinator))
		return c
	}
	writes, code := sh.step(func(now time.Time, g *group.Groups) {
		sh.mu.last++
		c.id = sh.mu.last
		sh.mu.calls[c.id] = c
		f(now, g, c.id)
	})
	if code != wire.ErrNone {
		c.shard = nil
		c.answer(refuse(code))
		return c
	}
	sh.seeThrough(writes)
	return c
}

// collect hands out what a step has led to: answers to their calls, writes to
// the log. Called with sh.mu held.
func (sh *shard) collect(now time.Time) (writes []*writing) {
	out := sh.mu.groups.Take()
	for _, a := range out.Answers {
		c := sh.mu.calls[a.Call]
		delete(sh.mu.calls, a.Call)
		c.answer(a.Response)
	}
	for _, w := range out.Writes {
		b, info, err := batchOf(sh.s.o.Codec, now, w.Records)
		p := &writing{id: w.ID, pending: lost{err}}
		if err == nil {
			p.pending = sh.log.Append(b, info)
		}
		sh.mu.queue = append(sh.mu.queue, p)
		writes = append(writes, p)
	}
	at := int64(0)
	if due, ok := sh.mu.groups.Due(); ok {
		at = max(int64(due.Sub(sh.s.begun)), 1)
	}
	sh.due.Store(at)
	sh.s.mind(at)
	return writes
}

// lost is a write that never came to the log.
type lost struct{ err error }

func (l lost) Wait() error { return l.err }

// seeThrough makes writes durable and tells the state machine, and goes on with
// what that leads to. Without the mutex: a slow disk must not keep heartbeats
// waiting.
func (sh *shard) seeThrough(writes []*writing) {
	for len(writes) > 0 {
		w := writes[0]
		writes = writes[1:]
		code := wire.ErrNone
		if err := w.pending.Wait(); err != nil {
			code = sh.s.o.Code(err)
			sh.s.o.Logger.Error("a group's state could not be written", "partition", sh.partition, "error", err)
		}
		writes = append(writes, sh.wrote(w, code)...)
	}
}

// wrote notes the end of a write. The state machine hears of ends in the order
// of the writes: whoever ends the first one reports for those behind it that
// have ended already.
func (sh *shard) wrote(w *writing, code int16) (more []*writing) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	w.ended, w.code = true, code
	if sh.mu.state != active {
		return nil
	}
	for len(sh.mu.queue) > 0 && sh.mu.queue[0].ended {
		first := sh.mu.queue[0]
		sh.mu.queue[0] = nil
		sh.mu.queue = sh.mu.queue[1:]
		now := sh.s.o.Now()
		sh.mu.groups.Written(now, first.id, first.code)
		more = append(more, sh.collect(now)...)
	}
	return more
}

// resign ends the shard: everybody who waits is told to look elsewhere.
func (sh *shard) resign() {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	sh.mu.state = resigned
	for id, c := range sh.mu.calls {
		delete(sh.mu.calls, id)
		c.answer(c.refuse(wire.ErrNotCoordinator))
	}
	sh.mu.groups, sh.mu.queue = nil, nil
	sh.due.Store(0)
}
