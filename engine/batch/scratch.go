package batch

import "sync"

// scratch is the memory of one call that expands a payload. Nothing in it survives
// the call.
type scratch struct {
	out     []byte   // an expanded payload
	set     []byte   // a message set being built (convert_down.go)
	headers []Header // of the record at hand
	slot    bool     // holds one of the slots
}

var (
	scratches = sync.Pool{New: func() any { return new(scratch) }}
	slots     = make(chan struct{}, maxExpanding)
)

// borrow waits for a slot and returns scratch memory. No caller may borrow twice, nor
// run foreign code before giveBack: that is what keeps the slots free of deadlock.
func borrow() *scratch {
	slots <- struct{}{}
	s := scratches.Get().(*scratch)
	s.slot = true
	return s
}

// borrowUnbounded is for iterators, which run the caller's code while they hold the
// scratch and so may not hold a slot.
func borrowUnbounded() *scratch { return scratches.Get().(*scratch) }

func (s *scratch) giveBack() {
	slot := s.slot
	s.slot = false
	if cap(s.out) > maxPooledScratch {
		s.out = nil
	}
	if cap(s.set) > maxPooledScratch {
		s.set = nil
	}
	clear(s.headers[:cap(s.headers)]) // they alias a caller's bytes
	scratches.Put(s)
	if slot {
		<-slots
	}
}

// expand fills s.out with what payload expands to.
func (s *scratch) expand(c Codec, payload []byte, limit int, sum lz4Sum) ([]byte, error) {
	out, err := expand(c, s.out, payload, limit, sum)
	s.out = out[:0]
	return out, err
}

// grow returns b with room for n more bytes, doubling so that the copies stay linear.
func grow(b []byte, n int) []byte {
	if cap(b)-len(b) >= n {
		return b
	}
	bigger := make([]byte, len(b), max(minScratch, 2*cap(b), len(b)+n))
	copy(bigger, b)
	return bigger
}
