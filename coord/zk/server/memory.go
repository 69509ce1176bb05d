package server

import (
	"runtime/debug"
	"runtime/metrics"
)

const (
	// slackBytes is how much garbage a lean process gathers before it is collected.
	slackBytes = 32 << 20
	// leastGC is the lowest GOGC: collections of a tree of gigabytes come no more often than once in a tenth of it.
	leastGC = 10
)

// lean keeps the process's memory at what the tree takes and a little. A tree is old and large and a request's garbage is young and small: by
// its default Go would let the one grow to the size of the other.
type lean struct {
	gogc int // that is set; 0: the process's own
}

// adjust is called every tick.
func (l *lean) adjust() {
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(sample)
	if sample[0].Value.Kind() != metrics.KindUint64 {
		return
	}
	want := gogcFor(sample[0].Value.Uint64())
	if want == l.gogc {
		return
	}
	first := l.gogc == 0
	l.gogc = want
	debug.SetGCPercent(want)
	if first {
		debug.FreeOSMemory() // what recovery has left
	}
}

// gogcFor is 100 where the heap is small, and less as the slack allows, in steps of a fifth: setting it stops the world for a moment.
func gogcFor(live uint64) int {
	want := 100
	for want > leastGC && uint64(want)*live > 100*slackBytes {
		want = want * 4 / 5
	}
	return max(want, leastGC)
}
