package broker

import (
	"sync"
	"sync/atomic"
	"time"
)

// budget bounds the memory of all requests that have not been answered (D7).
// Bytes are reserved before they are read and given back after the answer.
//
// Frames that fit in a connection's own buffer may use all of it, larger frames
// only three quarters, so that requests of ordinary size go on while large ones
// queue. Who does not fit waits in order. Since frames grow in stages, everybody
// may hold some and wait for more; so whoever has waited for budgetPatience may
// take what it needs although it is not there, as long as nobody else has: the
// bound is the limit plus one frame.
type budget struct {
	limit int64

	used    atomic.Int64
	waiting atomic.Int32 // len of both queues, read without the lock

	mu struct {
		sync.Mutex
		small, large []*reservation
	}
}

type reservation struct {
	bytes   int64
	granted bool
	ready   chan struct{}
}

func newBudget(limit int64) *budget { return &budget{limit: limit} }

func (b *budget) share(small bool) int64 {
	if small {
		return b.limit
	}
	return b.limit - b.limit/smallShare
}

// try reserves n bytes if they are there and nobody waits for them.
func (b *budget) try(n int64, small bool) bool {
	if b.waiting.Load() > 0 {
		return false
	}
	return b.take(n, b.share(small))
}

func (b *budget) take(n, limit int64) bool {
	for {
		used := b.used.Load()
		if used+n > limit {
			return false
		}
		if b.used.CompareAndSwap(used, used+n) {
			return true
		}
	}
}

// reserve waits for n bytes; false if stop closed first.
func (b *budget) reserve(n int64, small bool, stop <-chan struct{}) bool {
	if b.try(n, small) {
		return true
	}
	r := b.enqueue(n, small)
	patience := time.NewTicker(budgetPatience)
	defer patience.Stop()
	for {
		select {
		case <-r.ready:
			return true
		case <-patience.C:
			b.overdraw(r, small)
		case <-stop:
			b.leave(r, small)
			return false
		}
	}
}

func (b *budget) enqueue(n int64, small bool) *reservation {
	r := &reservation{bytes: n, ready: make(chan struct{})}
	b.mu.Lock()
	defer b.mu.Unlock()
	q := b.queue(small)
	*q = append(*q, r)
	b.waiting.Add(1)
	b.grantLocked() // a release may have come before we were counted
	return r
}

func (b *budget) queue(small bool) *[]*reservation {
	if small {
		return &b.mu.small
	}
	return &b.mu.large
}

// release gives n bytes back.
func (b *budget) release(n int64) {
	if n == 0 {
		return
	}
	b.used.Add(-n)
	if b.waiting.Load() > 0 {
		b.mu.Lock()
		b.grantLocked()
		b.mu.Unlock()
	}
}

func (b *budget) grantLocked() {
	for _, small := range []bool{true, false} {
		q := b.queue(small)
		for len(*q) > 0 && b.take((*q)[0].bytes, b.share(small)) {
			b.popLocked(q)
		}
	}
}

func (b *budget) popLocked(q *[]*reservation) {
	r := (*q)[0]
	*q = (*q)[1:]
	b.waiting.Add(-1)
	r.granted = true
	close(r.ready)
}

// overdraw grants r if it is first in its queue and nobody has overdrawn.
func (b *budget) overdraw(r *reservation, small bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	q := b.queue(small)
	if r.granted || (*q)[0] != r || b.used.Load() > b.limit {
		return
	}
	b.used.Add(r.bytes)
	b.popLocked(q)
}

// leave takes r out of its queue, or gives back what it was granted just now.
func (b *budget) leave(r *reservation, small bool) {
	b.mu.Lock()
	if r.granted {
		b.mu.Unlock()
		b.release(r.bytes)
		return
	}
	q := b.queue(small)
	for i, other := range *q {
		if other == r {
			*q = append((*q)[:i:i], (*q)[i+1:]...)
			b.waiting.Add(-1)
			break
		}
	}
	b.grantLocked()
	b.mu.Unlock()
}
