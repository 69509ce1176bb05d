package server

import (
	"runtime/debug"
	"runtime/metrics"
)

const (
	// slackBytes is how much garbage may gather beside a tree, whatever its size.
	slackBytes = 32 << 20
	// leastGC is the lowest GOGC: collections of a tree of gigabytes come no more often than once in a tenth of it.
	leastGC = 10
	// defaultGC is Go's own; where it is another, somebody has chosen it.
	defaultGC = 100
)

// lean keeps the process's memory at what the tree takes and a little. A tree is old and large and a request's garbage is young and small: by
// its default Go would let the one grow to the size of the other. Only the tree is taken out of that rule: what else lives in the process allows as
// much garbage as ever. So a broker with a tree of some MiB is left as it is, and so is a process whose GOGC somebody has chosen.
type lean struct {
	gogc int // that is set; 0: not looked yet
	off  bool
}

// adjust is called every tick, with what the tree takes.
func (l *lean) adjust(tree int64) {
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}, {Name: "/gc/gogc:percent"}}
	metrics.Read(sample)
	if l.off || sample[0].Value.Kind() != metrics.KindUint64 || sample[1].Value.Kind() != metrics.KindUint64 {
		return
	}
	if l.gogc == 0 {
		l.gogc, l.off = defaultGC, sample[1].Value.Uint64() != defaultGC
	}
	want := gogcFor(sample[0].Value.Uint64(), uint64(tree))
	if want == l.gogc || l.off {
		return
	}
	first := l.gogc == defaultGC
	l.gogc = want
	debug.SetGCPercent(want)
	if first {
		debug.FreeOSMemory() // what recovery has left
	}
}

// gogcFor allows garbage as large as what lives beside the tree and the slack. Steps of a fifth: setting it stops the world for a moment.
func gogcFor(live, tree uint64) int {
	allowed := slackBytes + live - min(tree, live)
	want := uint64(defaultGC)
	for want > leastGC && want*live > 100*allowed {
		want = want * 4 / 5
	}
	return int(max(want, leastGC))
}
