package broker

import "testing"

// Claim: a class holds what it is asked for, wastes at most a quarter of a large
// frame, and its own size maps back to it.
// Method: all sizes around all class borders.
func TestBufferClassesFit(t *testing.T) {
	for shift := 0; shift < 31; shift++ {
		for _, d := range []int{-1, 0, 1, 1 << max(shift-3, 0)} {
			n := 1<<shift + d
			if n <= 0 {
				continue
			}
			class, size := classOf(n)
			if class < 0 || class >= bufferClasses || size < n {
				t.Fatalf("classOf(%d) = %d of %d bytes", n, class, size)
			}
			if n > maxBuffer && size > n+n/4+1 {
				t.Errorf("classOf(%d) has %d bytes, more than a quarter wasted", n, size)
			}
			if again, same := classOf(size); again != class || same != size {
				t.Errorf("classOf(%d) = (%d, %d), but classOf(%d) = (%d, %d)", n, class, size, size, again, same)
			}
		}
	}
}

// Claim: the pool hands out the buffer given back last, and keeps no more bytes
// than it may.
// Method: give back three of 1 MiB with room for two.
func TestBuffersAreLastInFirstOutAndBounded(t *testing.T) {
	p := &buffers{keep: 2 << 20}
	a, b, c := p.get(1<<20), p.get(1<<20), p.get(1<<20)
	p.put(a)
	p.put(b)
	p.put(c)
	if kept := p.kept.Load(); kept != 2<<20 {
		t.Errorf("kept %d bytes, want %d", kept, 2<<20)
	}
	if got := p.get(1 << 20); &got[0] != &b[0] {
		t.Error("the buffer given back last was not the one handed out")
	}
}

// Claim: buffers that nobody needed between two trims go.
// Method: five given back, two used after a trim.
func TestTrimDropsUnusedBuffers(t *testing.T) {
	p := &buffers{keep: 64 << 20}
	var all [][]byte
	for range 5 {
		all = append(all, p.get(1<<20))
	}
	for _, b := range all {
		p.put(b)
	}
	p.trim() // starts counting
	x, y := p.get(1<<20), p.get(1<<20)
	p.put(x)
	p.put(y)
	p.trim()
	if kept := p.kept.Load(); kept != 2<<20 {
		t.Errorf("kept %d bytes after the trim, want the two in use (%d)", kept, 2<<20)
	}
}
