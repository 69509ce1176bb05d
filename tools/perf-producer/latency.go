package main

import (
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Latencies are kept in microseconds from 1 µs to one hour, with three
// significant digits, which takes 200 KB a histogram.
const (
	lowest  = 1
	highest = int64(time.Hour / time.Microsecond)
	digits  = 3
)

// tally is what is known about some of the records that were acknowledged.
type tally struct {
	count, bytes int64
	sum, most    int64 // microseconds
	histogram    *hdrhistogram.Histogram
}

func newTally() *tally { return &tally{histogram: hdrhistogram.New(lowest, highest, digits)} }

func (t *tally) add(latency time.Duration, size int) {
	us := min(max(latency.Microseconds(), lowest), highest)
	t.count++
	t.bytes += int64(size)
	t.sum += us
	t.most = max(t.most, us)
	_ = t.histogram.RecordValue(us) // fails only outside the bounds above
}

func (t *tally) merge(other *tally) {
	t.count += other.count
	t.bytes += other.bytes
	t.sum += other.sum
	t.most = max(t.most, other.most)
	t.histogram.Merge(other.histogram)
}

func (t *tally) reset() {
	h := t.histogram
	h.Reset()
	*t = tally{histogram: h}
}

// averageMs and maxMs are 0 for no records, where Kafka's tool prints NaN.
func (t *tally) averageMs() float64 {
	if t.count == 0 {
		return 0
	}
	return float64(t.sum) / float64(t.count) / 1000
}

func (t *tally) maxMs() float64 { return float64(t.most) / 1000 }

// percentileMs is exact to three digits, and never above the exact maximum.
func (t *tally) percentileMs(p float64) float64 {
	return float64(min(t.histogram.ValueAtPercentile(p), t.most)) / 1000
}

// recorder collects one producer's acknowledgements. The client's promise
// goroutine adds; the reporter takes.
type recorder struct {
	mu     sync.Mutex
	warm   *tally // warm-up records since the last take
	steady *tally // the others
	failed int64
	first  error // the first failure
}

func newRecorder() *recorder { return &recorder{warm: newTally(), steady: newTally()} }

func (r *recorder) acknowledged(warm bool, latency time.Duration, size int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if warm {
		r.warm.add(latency, size)
	} else {
		r.steady.add(latency, size)
	}
}

func (r *recorder) refused(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failed++
	if r.first == nil {
		r.first = err
	}
}

// take moves what was collected into the two tallies.
func (r *recorder) take(warm, steady *tally) {
	r.mu.Lock()
	defer r.mu.Unlock()
	warm.merge(r.warm)
	steady.merge(r.steady)
	r.warm.reset()
	r.steady.reset()
}
