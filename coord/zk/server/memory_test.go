package server

import (
	"runtime/debug"
	"testing"
)

func TestSlackIsBounded(t *testing.T) {
	const mib = 1 << 20
	for _, c := range []struct {
		live, tree uint64
		gogc       int
	}{
		{0, 0, 100}, {slackBytes, slackBytes, 100}, {slackBytes + 1, slackBytes + 1, 80}, {10 * slackBytes, 10 * slackBytes, 10}, {1 << 50, 1 << 50, leastGC},
		{500 * mib, 4 * mib, 100}, {500 * mib, 0, 100}, // a broker's own
		{500 * mib, 250 * mib, 51},
		{100 * mib, 200 * mib, 32}, // a tree that has grown since the last collection
	} {
		got := gogcFor(c.live, c.tree)
		if got != c.gogc {
			t.Errorf("%d bytes live, %d of them the tree's: GOGC %d, want %d", c.live, c.tree, got, c.gogc)
		}
		if allowed := slackBytes + c.live - min(c.tree, c.live); got > leastGC && uint64(got)*c.live > 100*allowed {
			t.Errorf("%d bytes live, %d of them the tree's: GOGC %d leaves more than %d", c.live, c.tree, got, allowed)
		}
	}
}

// Claim: a small tree changes nothing, a large one does, and a GOGC that somebody has chosen stays.
func TestCollectorIsLeftAlone(t *testing.T) {
	gogc := func() int { // reads
		now := debug.SetGCPercent(defaultGC)
		debug.SetGCPercent(now)
		return now
	}
	defer debug.SetGCPercent(debug.SetGCPercent(defaultGC))
	held := make([]byte, 8*slackBytes)
	debug.FreeOSMemory() // it is live now
	var small, large, chosen lean
	if small.adjust(1 << 20); gogc() != defaultGC {
		t.Errorf("beside a tree of 1 MiB: GOGC %d", gogc())
	}
	debug.SetGCPercent(defaultGC)
	if large.adjust(int64(len(held))); gogc() >= 50 {
		t.Errorf("beside a tree of 256 MiB: GOGC %d", gogc())
	}
	debug.SetGCPercent(defaultGC + 50)
	if chosen.adjust(int64(len(held))); gogc() != defaultGC+50 {
		t.Errorf("GOGC was chosen and is %d", gogc())
	}
	held[0] = 1
}
