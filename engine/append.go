package engine

import (
	"sync"

	"millrace/engine/batch"
)

// Append is one batch on its way into a log. The caller owns it and may use it
// again and again, which costs no allocation. The fields below Follower are
// answers, valid once Write has returned.
type Append struct {
	Batch    []byte     // one whole batch, stamped in place; must stay as it is until Write has returned
	Info     batch.Info // what batch.Check (a leader) or batch.CheckStored (a follower) said of it
	Follower bool       // keep the offsets and the epoch that the batch carries

	Base          Offset // of the first record
	LogAppendTime int64  // ms; -1 if the topic keeps the producers' times
	Start         Offset // the log's start
	Duplicate     bool   // the log had the batch already: Base is where
	Err           error

	log    *Log
	epoch  Epoch
	ticket promise
	wait   bool // ticket counts (sync, or flush.messages is due)

	// Guarded by queue.mu of log.
	next   *Append
	state  appendState
	parked bool
	wake   chan struct{} // cap 1, made once
}

type appendState int8

const (
	idle appendState = iota
	queued
	holding // its owner was handed the log and must run the queue
	written
)

// queue is what waits for a log. Whoever finds the log free takes the queue and
// writes it with one call; the others wait, and are handed the log in turn, so
// that nobody works for others for ever (D4).
type queue struct {
	mu          sync.Mutex
	first, last *Append
	busy        bool // somebody runs the queue
}

// Append is Enqueue, Write and Wait in one: it returns when the batch is as
// safe as the log's durability says.
func (l *Log) Append(a *Append, epoch Epoch) error {
	l.Enqueue(a, epoch)
	if err := l.Write(a); err != nil {
		return err
	}
	return a.Wait()
}

// Enqueue puts a in line and never blocks. From here on others may write it, so
// Write must be called for every append that was enqueued. epoch is the
// leader's; it is not looked at for a Follower append.
func (l *Log) Enqueue(a *Append, epoch Epoch) {
	a.log, a.epoch, a.next = l, epoch, nil
	a.Err, a.Duplicate, a.LogAppendTime, a.wait = nil, false, -1, false
	a.ticket = promise{}
	q := &l.queue
	q.mu.Lock()
	a.state = queued
	if q.last == nil {
		q.first = a
	} else {
		q.last.next = a
	}
	q.last = a
	q.mu.Unlock()
}

// Write returns when a is in the segment file, or refused: its Err. If the log
// is free it writes everything queued, stamped, with one pwritev; else it waits
// until somebody else has done so. An append that is refused does not fail the
// others of its write.
func (l *Log) Write(a *Append) error {
	q := &l.queue
	q.mu.Lock()
	for a.state != written {
		if a.state == idle {
			q.mu.Unlock()
			panic("engine: Write of an Append that was not enqueued")
		}
		if a.state == holding || !q.busy {
			q.busy = true
			a.state = queued
			l.serve(a) // returns with q.mu held and a written
			break
		}
		if a.wake == nil {
			a.wake = make(chan struct{}, 1)
		}
		a.parked = true
		q.mu.Unlock()
		<-a.wake
		q.mu.Lock()
	}
	a.state = idle
	q.mu.Unlock()
	return a.Err
}

// serve runs the queue until own is written, then hands the log to the first
// owner that waits. Called and returning with queue.mu held.
func (l *Log) serve(own *Append) {
	q := &l.queue
	for own.state != written {
		first := q.take()
		q.mu.Unlock()

		l.mu.Lock()
		before := l.end.Load()
		l.write(first)
		rose := l.end.Load() > before
		l.mu.Unlock()
		if rose && l.config.Load().Durability == PageCache {
			l.notify()
		}

		q.mu.Lock()
		for a := first; a != nil; {
			next := a.next
			a.next, a.state = nil, written
			a.unpark()
			a = next
		}
	}
	for a := q.first; a != nil; a = a.next {
		if a.parked {
			a.state = holding
			a.unpark()
			return // busy stays: the log is that owner's now
		}
	}
	// What is queued now has owners that have not come to Write yet: the first
	// of them finds the log free.
	q.busy = false
}

// take removes one bounded run from the front of the queue.
func (q *queue) take() *Append {
	first, last := q.first, q.first
	bytes, n := len(first.Batch), 1
	for last.next != nil && n < maxRunAppends && bytes+len(last.next.Batch) <= maxRunBytes {
		last = last.next
		bytes += len(last.Batch)
		n++
	}
	q.first = last.next
	if q.first == nil {
		q.last = nil
	}
	last.next = nil
	return first
}

func (a *Append) unpark() {
	if a.parked {
		a.parked = false
		a.wake <- struct{}{} // never blocks: one parking, one token
	}
}

// Waits reports whether Wait would have to wait. To be asked after Write.
func (a *Append) Waits() bool {
	return a.Err == nil && a.wait && !a.ticket.kept()
}

// Wait returns when a is as safe as the log's durability says: in sync mode
// when a round of the journal that holds it has ended, in page-cache mode at
// once. The caller may run that round itself.
func (a *Append) Wait() error {
	if a.Err != nil || !a.wait {
		return a.Err
	}
	a.Err = a.log.wait(a.ticket)
	return a.Err
}
