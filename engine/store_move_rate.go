package engine

import (
	"math"
	"sync"
	"time"
)

// moveRate spreads copying over time. It is paid afterwards, so the first chunk of all
// comes at once.
type moveRate struct {
	mu      sync.Mutex
	bytes   int64 // a second
	free    time.Time
	changed chan struct{} // closed by set
}

func (r *moveRate) set(bytes int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.changed != nil && bytes == r.bytes {
		return
	}
	r.bytes, r.free = bytes, time.Time{}
	if r.changed != nil {
		close(r.changed)
	}
	r.changed = make(chan struct{})
}

// pay waits until n bytes are within the rate; false says that one of the two came to
// its end before. A change of the rate forgives what is owed.
func (r *moveRate) pay(n int64, ended, stop <-chan struct{}) bool {
	r.mu.Lock()
	now := time.Now()
	if r.free.Before(now) {
		r.free = now
	}
	wait := time.Duration(math.MaxInt64)
	if r.bytes > 0 {
		r.free = r.free.Add(time.Duration(min(float64(n)/float64(r.bytes)*float64(time.Second), float64(maxMoveWait))))
		wait = r.free.Sub(now)
	}
	halted, changed := r.bytes == 0, r.changed
	r.mu.Unlock()
	if wait < leastMoveWait { // saved up for the next
		return true
	}
	if halted && n == 0 {
		return true // caught up: the last step is not copying
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-changed:
		return true
	case <-ended:
		return false
	case <-stop:
		return false
	}
}
