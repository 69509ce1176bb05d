package journal

import "sync"

// How rounds are run. Nobody but those who wait runs them, so that no wake-up lies between a waiter and the write:
//
//   - Whoever comes with a ticket of the open round and finds none running runs it: the open round becomes the running
//     one, the other of the two is opened, and the runner writes and syncs without journal.mu.
//   - Who finds one running parks in the round of its ticket.
//   - When a round has ended, its runner wakes all who parked in it, and one (the token) of those parked in the open round,
//     which then runs it. The rest of them stay asleep until that round ends: no herd.
//
// No wake-up is lost: one parks only while a round is running, and the end of every round sends the token if anybody is parked
// in the open one. While the token is on its way a newcomer may run the round in its place (it is already awake, which
// saves 25-40 µs). The token's holder then finds its round ended, or running, in which case it parks again, in the running round.

// waiter is one parked Wait.
type waiter struct {
	next    *waiter
	verdict verdict       // set before the signal
	signal  chan struct{} // capacity 1; one signal for each time parked
}

type verdict int

const (
	ended  verdict = iota // the round is durable
	failed                // the journal is poisoned
	token                 // look again: the round may be yours to run
)

func (w *waiter) wake(v verdict) {
	w.verdict = v
	w.signal <- struct{}{}
}

// waiterList is a queue of parked waiters.
type waiterList struct{ first, last *waiter }

func (l *waiterList) push(w *waiter) {
	w.next = nil
	if l.first == nil {
		l.first = w
	} else {
		l.last.next = w
	}
	l.last = w
}

func (l *waiterList) pop() *waiter {
	w := l.first
	if w != nil {
		l.first = w.next
	}
	return w
}

// take empties the list and returns what was in it.
func (l *waiterList) take() waiterList {
	all := *l
	*l = waiterList{}
	return all
}

// wakeAll empties a list that no one else can reach.
func (l *waiterList) wakeAll(v verdict) {
	for w := l.pop(); w != nil; w = l.pop() {
		w.wake(v)
	}
}

// newWaiterPool: each journal has its own, since a channel made inside a testing/synctest bubble may not leave it.
func newWaiterPool() *sync.Pool {
	return &sync.Pool{New: func() any { return &waiter{signal: make(chan struct{}, 1)} }}
}

// Wait returns nil once everything added under t is durable. The caller may find itself running the round. After the first failed write
// or sync every Wait, also one for a round that ended before, returns the same *PoisonedError (L4). The zero Ticket is always durable.
func (j *Journal) Wait(t Ticket) error {
	if t.round <= j.done.Load() {
		return nil
	}
	return j.wait(t)
}

func (j *Journal) wait(t Ticket) error {
	j.mu.Lock()
	counted := false
	for {
		if err := j.refusal(); err != nil {
			j.mu.Unlock()
			return err
		}
		if t.round <= j.ended {
			j.mu.Unlock()
			return nil
		}
		r := j.open
		if j.running != nil && j.running.number == t.round {
			r = j.running
		}
		if r.number != t.round {
			j.mu.Unlock()
			panic("journal: a ticket of another journal")
		}
		if !counted {
			counted = true
			r.waiters++
		}
		if j.running == nil {
			return j.run() // unlocks
		}
		w := j.waiterPool.Get().(*waiter)
		r.waiting.push(w)
		j.mu.Unlock()
		<-w.signal
		v := w.verdict
		j.waiterPool.Put(w)
		switch v {
		case ended:
			return nil
		case failed:
			return j.cause.Load()
		}
		j.mu.Lock()
	}
}

// refusal says why no round is run. j.mu is held.
func (j *Journal) refusal() error {
	switch {
	case j.failed != nil:
		return j.failed
	case j.phase == opened:
		return ErrNotStarted
	case j.phase == closed:
		return ErrClosed
	}
	return nil
}

// Done reports, without waiting, whether everything added under t is durable.
func (j *Journal) Done(t Ticket) bool { return t.round <= j.done.Load() }
