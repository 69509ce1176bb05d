package replica

import (
	"sync"
	"sync/atomic"

	"millrace/engine"
)

// Signal wakes one waiting reader, whichever of its partitions has news. It is
// made once for a connection and used for all its waits.
type Signal struct {
	C chan struct{} // receives when something may have changed
}

// NewSignal makes a Signal.
func NewSignal() *Signal { return &Signal{C: make(chan struct{}, 1)} }

func (s *Signal) wake() {
	select {
	case s.C <- struct{}{}:
	default: // one is pending, which is enough
	}
}

// Drain forgets a pending wake-up, before waiting for new ones.
func (s *Signal) Drain() {
	select {
	case <-s.C:
	default:
	}
}

// Wait is one reader's place in one partition's list. The memory is the
// reader's; it must not move between Await and Cancel.
type Wait struct {
	partition  *Partition
	signal     *Signal
	prev, next *Wait
}

// waiters is a partition's list of readers that wait for the watermark to rise.
// Its length is bounded by connections: each waits once in a partition.
type waiters struct {
	count atomic.Int32 // read without the lock by every append

	mu struct {
		sync.Mutex
		first *Wait
	}
}

// Await puts w in the partition's list. The caller must look at the partition
// once more afterwards: what rose before Await wakes nobody.
func (p *Partition) Await(w *Wait, s *Signal) {
	*w = Wait{partition: p, signal: s}
	l := &p.waiters
	l.mu.Lock()
	if l.mu.first != nil {
		l.mu.first.prev = w
	}
	w.next = l.mu.first
	l.mu.first = w
	l.count.Add(1)
	l.mu.Unlock()
}

// Cancel takes w out again. Afterwards it wakes nobody.
func (w *Wait) Cancel() {
	if w.partition == nil {
		return
	}
	l := &w.partition.waiters
	l.mu.Lock()
	if w.prev != nil {
		w.prev.next = w.next
	} else {
		l.mu.first = w.next
	}
	if w.next != nil {
		w.next.prev = w.prev
	}
	l.count.Add(-1)
	l.mu.Unlock()
	*w = Wait{}
}

// wakeAll is called whenever the watermark has risen and whenever the role has
// changed. Race: a reader counts itself in, then reads the watermark; we are
// called after the watermark was stored. So either it sees the new watermark,
// or we see its count.
func (l *waiters) wakeAll() {
	if l.count.Load() == 0 {
		return
	}
	l.mu.Lock()
	for w := l.mu.first; w != nil; w = w.next {
		w.signal.wake()
	}
	l.mu.Unlock()
}

// durable is the log's observer.
func (p *Partition) durable(engine.Offset) { p.waiters.wakeAll() }
