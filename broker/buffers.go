package broker

import (
	"math/bits"
	"sync"
	"sync/atomic"
)

// buffers is the pool of read buffers: for each size class a list, last in
// first out, so that the buffer handed out is the one still in the CPU's cache.
// A fresh make for each frame would halve throughput (LIMITS: 0.35–0.5× at
// 1 MiB). What is kept is bounded by keep bytes in all.
type buffers struct {
	keep    int64 // bytes
	kept    atomic.Int64
	classes [bufferClasses]bufferClass
}

type bufferClass struct {
	mu   sync.Mutex
	free [][]byte
	low  int // least length of free since the last trim: that many were not needed
}

// Classes are powers of two from baseBuffer to maxBuffer and from there on four
// to a doubling, so that a large frame wastes at most a quarter.
const (
	baseShift     = 12 // 4 KiB
	maxShift      = 17 // 128 KiB
	smallClasses  = maxShift - baseShift + 1
	bufferClasses = smallClasses + 4*(31-maxShift)
)

const (
	_ = uint(baseBuffer-1<<baseShift) + uint(1<<baseShift-baseBuffer) // equal
	_ = uint(maxBuffer-1<<maxShift) + uint(1<<maxShift-maxBuffer)
)

// classOf is the smallest class that holds n bytes, and its size.
func classOf(n int) (class, size int) {
	if n <= baseBuffer {
		return 0, baseBuffer
	}
	top := bits.Len(uint(n-1)) - 1 // 2^top < n <= 2^(top+1)
	if top < maxShift {
		return top + 1 - baseShift, 1 << (top + 1)
	}
	quarter := (n - 1) >> (top - 2) & 3 // n is in this quarter above 2^top
	return smallClasses + 4*(top-maxShift) + quarter, 1<<top + (quarter+1)<<(top-2)
}

// get returns a buffer of at least n bytes; its length is its class's size.
func (p *buffers) get(n int) []byte {
	class, size := classOf(n)
	c := &p.classes[class]
	c.mu.Lock()
	if last := len(c.free) - 1; last >= 0 {
		b := c.free[last]
		c.free[last] = nil
		c.free = c.free[:last]
		c.low = min(c.low, last)
		c.mu.Unlock()
		p.account(-int64(size))
		return b
	}
	c.mu.Unlock()
	return make([]byte, size)
}

// put takes back a buffer that came from get. Nothing may point into it any more.
func (p *buffers) put(b []byte) {
	class, size := classOf(len(b))
	if size != len(b) || !p.account(int64(size)) {
		return
	}
	c := &p.classes[class]
	c.mu.Lock()
	c.free = append(c.free, b)
	c.mu.Unlock()
}

// account adds to what is kept; false, and nothing added, if that were too much.
func (p *buffers) account(n int64) bool {
	if p.kept.Add(n) > p.keep && n > 0 {
		p.kept.Add(-n)
		return false
	}
	return true
}

// trim drops, of each class, the buffers that nobody needed since the last trim.
func (p *buffers) trim() {
	for i := range p.classes {
		c := &p.classes[i]
		c.mu.Lock()
		idle := min(c.low, len(c.free))
		var freed int64
		for _, b := range c.free[:idle] {
			freed += int64(len(b))
		}
		kept := copy(c.free, c.free[idle:])
		clear(c.free[kept:])
		c.free = c.free[:kept]
		c.low = kept
		c.mu.Unlock()
		p.account(-freed)
	}
}
