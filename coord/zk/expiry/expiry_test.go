package expiry

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

const tick = 100 * time.Millisecond

// Claim: a session expires when it was not heard of for its time-out, never before, and
// at most two ticks after; nothing that was removed or touched in time does.
func TestSessionsExpireInTime(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tracker := New(tick)
		clock := time.Duration(rapid.Int64Range(0, 1e9).Draw(t, "zero"))
		tracker.Advance(clock)
		heard, timeouts := map[int64]time.Duration{}, map[int64]time.Duration{}
		id := func(t *rapid.T) int64 { return rapid.Int64Range(1, 5).Draw(t, "id") }
		t.Repeat(map[string]func(*rapid.T){
			"add": func(t *rapid.T) {
				id := id(t)
				heard[id], timeouts[id] = clock, time.Duration(rapid.IntRange(1, 1000).Draw(t, "ms"))*time.Millisecond
				tracker.Add(id, timeouts[id])
			},
			"touch": func(t *rapid.T) {
				id := id(t)
				_, tracked := heard[id]
				if got := tracker.Touch(id); got != tracked {
					t.Fatalf("touch of %d: %v, want %v", id, got, tracked)
				}
				if tracked {
					heard[id] = clock
				}
			},
			"remove": func(t *rapid.T) {
				id := id(t)
				tracker.Remove(id)
				delete(heard, id)
			},
			"advance": func(t *rapid.T) {
				clock += time.Duration(rapid.Int64Range(0, int64(LongestStep*tick)).Draw(t, "step"))
				for _, id := range tracker.Advance(clock) {
					at, ok := heard[id]
					if !ok || clock-at < timeouts[id] {
						t.Fatalf("%d expired %v after it was heard of (%v), its time-out is %v", id, clock-at, ok, timeouts[id])
					}
					delete(heard, id)
				}
			},
			"": func(t *rapid.T) {
				if tracker.Len() != len(heard) {
					t.Fatalf("%d are tracked, want %d", tracker.Len(), len(heard))
				}
				for id, at := range heard {
					if late := clock - at - timeouts[id]; late > 2*tick {
						t.Fatalf("%d should have expired %v ago", id, late)
					}
				}
			},
		})
	})
}

// Claim: neither a clock that jumps, forward or back, nor an hour in which the process
// stood still expires sessions; those that stay silent afterwards do expire.
func TestJumpsExpireNobody(t *testing.T) {
	tracker := New(tick)
	for id := range int64(1000) {
		tracker.Add(id, time.Second)
	}
	clock := time.Hour
	for _, jump := range []time.Duration{0, time.Hour, -30 * time.Minute, 24 * time.Hour} {
		clock += jump
		if expired := tracker.Advance(clock); len(expired) > 0 {
			t.Fatalf("a jump of %v expired %d sessions", jump, len(expired))
		}
		for id := range int64(500) {
			tracker.Touch(id)
		}
	}
	var expired []int64
	for range 14 {
		clock += tick
		for id := range int64(500) {
			tracker.Touch(id)
		}
		expired = append(expired, tracker.Advance(clock)...)
	}
	if slices.Sort(expired); len(expired) != 500 || expired[0] != 500 {
		t.Fatalf("%d expired, the first is %v; want the 500 silent ones", len(expired), expired[:min(1, len(expired))])
	}
}

// Claim: sessions that come and go leave nothing behind.
func TestNothingIsLeftBehind(t *testing.T) {
	tracker := New(tick)
	clock := time.Duration(0)
	tracker.Advance(clock)
	for i := range int64(10_000) {
		tracker.Add(i%7, time.Second)
		tracker.Touch(i % 7)
		if i%3 == 0 {
			tracker.Remove(i % 7)
		}
		if i%100 == 0 {
			clock += tick
			tracker.Advance(clock)
		}
	}
	for range 30 {
		clock += tick
		tracker.Advance(clock)
	}
	if len(tracker.due) != 0 || tracker.Len() != 0 {
		t.Fatalf("%d ticks and %d sessions are left", len(tracker.due), tracker.Len())
	}
}

func BenchmarkTouch(b *testing.B) {
	tracker := New(tick)
	for id := range int64(100_000) {
		tracker.Add(id, time.Minute)
	}
	b.ReportAllocs()
	for i := int64(0); b.Loop(); i++ {
		tracker.Touch(i % 100_000)
	}
}
