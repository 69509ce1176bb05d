package broker

import (
	"math/bits"
	"sync/atomic"
	"time"

	"millrace/wire"
)

// Phases of a request, as Kafka tells them apart where that makes sense here.
const (
	phaseTotal  = iota // from the last of its bytes to the last of the answer's
	phaseQueue         // behind earlier requests of the connection
	phaseLocal         // being worked on
	phaseRemote        // waiting for the disk, for records, for other members
	phaseSend          // the answer, until the system has it
	phases
)

// Times are counted in buckets: the first holds all below 2^(firstBucket+1) µs,
// each further one twice that, the last one all above.
const (
	firstBucket = 4 // 32 µs
	timeBuckets = 21
)

// bucketOf finds the bucket of a time.
func bucketOf(d time.Duration) int {
	us := uint64(max(d, 0)) / 1000
	return min(max(bits.Len64(us)-firstBucket-1, 0), timeBuckets-1)
}

// bucketEnd is the time below which all of the bucket lie.
func bucketEnd(bucket int) time.Duration { return time.Microsecond << (bucket + firstBucket + 1) }

// timeHistogram is one phase of one kind of request.
type timeHistogram struct {
	buckets [timeBuckets]int64
	sum     time.Duration
}

// requestShard is all phases. Of parts that took no time nothing is kept: they
// are what the others leave of the total.
type requestShard [phases]timeHistogram

// requestMeter is all requests of one API and version.
type requestMeter struct {
	shards [meterShards]requestShard // each under its lock
}

// add counts requests that took the same times.
func (s *requestShard) add(e *endedRequests, total time.Duration) {
	s.put(phaseTotal, e.n, total)
	s.put(phaseQueue, e.n, e.queue)
	s.put(phaseLocal, e.n, e.local)
	s.put(phaseRemote, e.n, e.remote)
	s.put(phaseSend, e.n, total-e.queue-e.local-e.remote)
}

func (s *requestShard) put(phase int, n int64, d time.Duration) {
	if d <= 0 && phase != phaseTotal {
		return
	}
	s[phase].buckets[bucketOf(d)] += n
	s[phase].sum += time.Duration(n) * max(d, 0)
}

// times is one phase, summed up over the shards.
type times struct {
	buckets [timeBuckets]uint64
	count   uint64
	sum     time.Duration
}

// read sums all phases up.
func (m *meters) read(r *requestMeter) (all [phases]times) {
	for i := range r.shards {
		m.locks[i].Lock()
		shard := r.shards[i]
		m.locks[i].Unlock()
		for phase := range shard {
			for j, n := range shard[phase].buckets {
				all[phase].buckets[j] += uint64(n)
				all[phase].count += uint64(n)
			}
			all[phase].sum += shard[phase].sum
		}
	}
	total := all[phaseTotal].count
	for phase := phaseTotal + 1; phase < phases; phase++ {
		t := &all[phase]
		t.buckets[0] += total - t.count // those that took no time at all
		t.count = total
	}
	return all
}

// requestMeters finds the meter of an API and version. They are made when first
// used (4 KiB each); wire.APIs bounds how many there can be.
type requestMeters struct {
	versions [maxKeys][]atomic.Pointer[requestMeter] // from the API's Min on
	errors   [maxKeys]atomic.Pointer[errorCounts]
}

// errorCounts is by code, from wire's -1 on; codes nobody knows share the last.
type errorCounts [maxCode + 3]atomic.Int64

// maxCode is the largest code of the protocol; a test compares.
const maxCode = 140

func (r *requestMeters) init() {
	for _, api := range wire.APIs {
		r.versions[api.Key] = make([]atomic.Pointer[requestMeter], api.Max+1)
	}
}

// of finds the meter of a version that is served.
func (r *requestMeters) of(key, version int16) *requestMeter {
	at := &r.versions[key][version]
	m := at.Load()
	if m == nil {
		at.CompareAndSwap(nil, new(requestMeter))
		m = at.Load()
	}
	return m
}

// failed counts an error code in an answer; there may be many in one.
func (r *requestMeters) failed(key, code int16) {
	if code == 0 || key < 0 || key >= maxKeys {
		return
	}
	at := &r.errors[key]
	counts := at.Load()
	if counts == nil {
		at.CompareAndSwap(nil, new(errorCounts))
		counts = at.Load()
	}
	if code < -1 || code > maxCode {
		code = maxCode + 1
	}
	counts[code+1].Add(1)
}
