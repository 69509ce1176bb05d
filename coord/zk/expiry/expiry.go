// Package expiry says when sessions have expired, in the time that the service has lived
// through. It has no clock: whoever has one calls Advance every tick.
//
// Wall clocks are not looked at, so setting one expires nobody. Nor does a pause of the
// whole process (a stopped machine, a stalled disk, a debugger): in it clients may have
// sent what nobody could read, so however long it was, it counts as LongestStep. After a
// restart every session is added anew and has its whole time-out.
package expiry

import (
	"fmt"
	"sync"
	"time"
)

// LongestStep is how many ticks pass at most between two calls of Advance. Two, because
// a call may come nearly a tick late on a busy machine without anything being wrong.
const LongestStep = 2

// Tracker keeps the deadlines of sessions, rounded up to ticks as ZooKeeper does. Adding
// and touching cost one look-up; a tick costs what it expires, and what was touched
// since it was last looked at. All methods may be called at the same time.
type Tracker struct {
	tick time.Duration

	mu       sync.Mutex
	sessions map[int64]*session
	due      map[int64][]*session // by tick; each session is in one
	now      int64                // ticks lived through
	part     time.Duration        // of the next
	last     time.Duration        // of the caller's clock
	started  bool
}

type session struct {
	id       int64
	timeout  time.Duration
	deadline int64 // tick; due may still have it under an earlier one
	gone     bool
}

// New returns a tracker without sessions. tick is above 0.
func New(tick time.Duration) *Tracker {
	if tick <= 0 {
		panic(fmt.Sprintf("expiry: a tick of %v", tick))
	}
	return &Tracker{tick: tick, sessions: map[int64]*session{}, due: map[int64][]*session{}}
}

// deadlineOf is the tick after which a session that is heard of now has expired: its
// time-out from the end of the tick that is running, so never too early.
func (t *Tracker) deadlineOf(timeout time.Duration) int64 {
	return t.now + 1 + int64((timeout+t.tick-1)/t.tick)
}

// Add begins to track a session, or gives one that is tracked another time-out; either
// way it was heard of now.
func (t *Tracker) Add(id int64, timeout time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if old := t.sessions[id]; old != nil {
		old.gone = true // its place in due goes when its tick comes
	}
	s := &session{id: id, timeout: timeout, deadline: t.deadlineOf(timeout)}
	t.sessions[id] = s
	t.due[s.deadline] = append(t.due[s.deadline], s)
}

// Touch tells that a session was heard of. False: it is not tracked, or has expired.
func (t *Tracker) Touch(id int64) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.sessions[id]
	if s == nil {
		return false
	}
	s.deadline = t.deadlineOf(s.timeout)
	return true
}

// Remove ends the tracking of a session that was closed.
func (t *Tracker) Remove(id int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if s := t.sessions[id]; s != nil {
		s.gone = true
		delete(t.sessions, id)
	}
}

// Len is how many sessions are tracked.
func (t *Tracker) Len() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.sessions)
}

// Advance takes the caller's monotonic time, from any zero, and returns the sessions that
// have expired by it; they are not tracked any more. The first call only begins the time.
func (t *Tracker) Advance(clock time.Duration) (expired []int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	step := clock - t.last
	if !t.started || step < 0 {
		step = 0
	}
	t.last, t.started = clock, true
	t.part += min(step, LongestStep*t.tick)
	for ; t.part >= t.tick; t.part -= t.tick {
		t.now++
		expired = t.expire(expired)
	}
	return expired
}

// expire looks at what is due by now: some of it was touched and is due later.
func (t *Tracker) expire(expired []int64) []int64 {
	list := t.due[t.now]
	delete(t.due, t.now)
	for _, s := range list {
		switch {
		case s.gone:
		case s.deadline > t.now:
			t.due[s.deadline] = append(t.due[s.deadline], s)
		default:
			s.gone = true
			delete(t.sessions, s.id)
			expired = append(expired, s.id)
		}
	}
	return expired
}
