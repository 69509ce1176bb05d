//go:build linux && (amd64 || arm64)

package ring

import (
	"runtime"
	"sync"
)

// Bounds.
const (
	// MaxRings is how many batches go through io_uring at the same time, and how many descriptors a Ring may hold. Further ones are carried out by
	// plain calls.
	MaxRings = 16

	// queueEntries is the size of a submission queue; a batch with more operations goes in several steps.
	queueEntries = 64
)

// Ring carries out batches through io_uring. It has up to MaxRings queue pairs, made as they are needed, each one descriptor and two mappings.
type Ring struct {
	plain *Pool

	mu     sync.Mutex
	free   []*queue // last used first
	made   int      // open pairs, free or in use
	closed bool
	idle   sync.Cond // a pair came back; for Close
}

// NewRing finds out whether the kernel lets us use io_uring, by doing so. The error says why not: ENOSYS, a kernel without it; EPERM, forbidden by a
// seccomp filter or by kernel.io_uring_disabled; an operation that this kernel does not have.
func NewRing() (*Ring, error) {
	q, err := setUp(queueEntries)
	if err != nil {
		return nil, err
	}
	if err := q.probe(); err != nil {
		q.close()
		return nil, err
	}
	r := &Ring{plain: NewPool(), free: []*queue{q}, made: 1}
	r.idle.L = &r.mu
	return r, nil
}

func (r *Ring) String() string { return "ring" }

// Do implements Backend.
func (r *Ring) Do(ops []Op) { r.run(ops, (*queue).wait) }

// Park implements Backend.
func (r *Ring) Park(ops []Op) { r.run(ops, (*queue).park) }

func (r *Ring) run(ops []Op, wait func(q *queue, ops []Op)) {
	q := r.take()
	if q == nil {
		r.plain.Do(ops)
		return
	}
	for rest := ops; len(rest) > 0; {
		n := min(len(rest), queueEntries)
		wait(q, rest[:n])
		rest = rest[n:]
	}
	runtime.KeepAlive(ops)
	r.give(q)
}

// take returns a queue pair for one batch; nil: use plain calls.
func (r *Ring) take() *queue {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return nil
	}
	if n := len(r.free) - 1; n >= 0 {
		q := r.free[n]
		r.free = r.free[:n]
		return q
	}
	if r.made == MaxRings {
		return nil
	}
	q, err := setUp(queueEntries)
	if err != nil { // out of descriptors or memory; later perhaps
		return nil
	}
	r.made++
	return q
}

func (r *Ring) give(q *queue) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if q.broken || r.closed {
		q.close()
		r.made--
	} else {
		r.free = append(r.free, q)
	}
	r.idle.Broadcast()
}

// Close implements Backend.
func (r *Ring) Close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	for _, q := range r.free {
		q.close()
		r.made--
	}
	r.free = nil
	for r.made > 0 {
		r.idle.Wait()
	}
}

// Rings is how many descriptors r holds now.
func (r *Ring) Rings() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.made
}
