package group

import (
	"container/heap"
	"time"
)

// timer is one alarm. It lies in its owner and never moves.
type timer struct {
	fire func(now time.Time) // set once; called when the alarm is due, with the timer off

	at    time.Time // its place in the heap
	until time.Time // when it is really due: at or after at
	index int       // place in the heap plus one; 0: off
}

// timers is the one structure for all alarms of all groups: a heap by time.
//
// A heartbeat only puts its member's alarm off. That must cost next to nothing
// with thousands of members, so the heap is left as it is and only `until`
// changes; an alarm that comes to the top before it is due goes back in. So
// each member costs the heap one step in a session time-out, however often it
// beats.
type timers struct{ heap timerHeap }

// set makes t due at the given time, whether it was on or not.
func (ts *timers) set(t *timer, at time.Time) {
	t.until = at
	switch {
	case t.index == 0:
		t.at = at
		heap.Push(&ts.heap, t)
	case at.Before(t.at):
		t.at = at
		heap.Fix(&ts.heap, t.index-1)
	}
}

// stop turns t off.
func (ts *timers) stop(t *timer) {
	if t.index != 0 {
		heap.Remove(&ts.heap, t.index-1)
	}
}

// due is the earliest time at which an alarm may go off.
func (ts *timers) due() (time.Time, bool) {
	if len(ts.heap) == 0 {
		return time.Time{}, false
	}
	return ts.heap[0].at, true
}

// advance lets everything go off that is due. Alarms that are set meanwhile for
// a time that has come go off too.
func (ts *timers) advance(now time.Time) {
	for len(ts.heap) > 0 {
		t := ts.heap[0]
		switch {
		case t.at.After(now):
			return
		case t.until.After(now):
			t.at = t.until
			heap.Fix(&ts.heap, 0)
		default:
			heap.Pop(&ts.heap)
			t.fire(now)
		}
	}
}

type timerHeap []*timer

func (h timerHeap) Len() int           { return len(h) }
func (h timerHeap) Less(i, j int) bool { return h[i].at.Before(h[j].at) }
func (h timerHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i+1, j+1
}

func (h *timerHeap) Push(x any) {
	t := x.(*timer)
	*h = append(*h, t)
	t.index = len(*h)
}

func (h *timerHeap) Pop() any {
	old := *h
	t := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	t.index = 0
	return t
}
