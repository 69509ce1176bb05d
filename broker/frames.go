package broker

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync/atomic"

	"millrace/wire"
)

// frames cuts a connection's bytes into request frames. Frames that fit in the
// connection's buffer lie there and are used in place; a larger one gets memory
// of its own, bit by bit as it arrives. Nothing it handed out may be used after
// the next call of fill.
type frames struct {
	source source
	pool   *buffers
	mem    *budget
	stop   <-chan struct{}
	max    int // bytes of a frame

	buf     []byte // nil while idle
	r, w    int    // buf[r:w] is not yet handed out
	size    int    // of the buffer to take next: follows what comes
	charged int64  // reserved for buf; nothing for a base buffer

	big struct {
		buf     []byte // nil: none
		n       int    // bytes arrived
		need    int    // bytes of the frame with its length
		given   bool   // it was handed out
		charged int64
	}
	trust int // largest frame seen, at most maxTrust

	now     bool         // a fill may not wait for memory
	held    atomic.Int64 // big.charged, for the sweeper
	waiting atomic.Bool  // for memory, so not to blame for being slow

	// The methods as values, made once: making one costs an allocation.
	fns struct {
		room, bigRoom func() []byte
		idle, none    func()
	}
}

// source reads once into whatever target returns when there is something to
// read, and calls idle each time there is not.
type source interface {
	readInto(target func() []byte, idle func()) (int, error)
}

func newFrames(s source, pool *buffers, mem *budget, stop <-chan struct{}, limit int) *frames {
	f := &frames{source: s, pool: pool, mem: mem, stop: stop, max: limit, size: baseBuffer}
	f.fns.room, f.fns.bigRoom = f.room, f.bigRoom
	f.fns.idle, f.fns.none = f.idle, func() {}
	return f
}

// errStopped says that the broker stops and the frame will not be read.
var errStopped = errors.New("stopping")

// sizeError is a frame length that cannot be meant.
type sizeError struct {
	size, max int
	garbage   string // what the bytes look like instead (F129)
}

func (e *sizeError) Error() string {
	if e.size > e.max {
		return fmt.Sprintf("a frame of %d bytes is above socket.request.max.bytes=%d: %s", e.size, e.max, e.garbage)
	}
	return e.garbage
}

// next hands out the next whole frame, without its length; nil if there is none
// yet.
func (f *frames) next() ([]byte, error) {
	if b := &f.big; b.buf != nil {
		if b.given || b.n < b.need {
			return nil, nil
		}
		b.given = true // fill gives the memory back
		f.trust = max(f.trust, min(b.need, maxTrust))
		return b.buf[4:b.need], nil
	}
	need, err := f.need()
	if err != nil || need == 0 || f.w-f.r < need {
		return nil, err
	}
	frame := f.buf[f.r+4 : f.r+need]
	f.r += need
	return frame, nil
}

// need is how many bytes the frame at r takes, length included; 0 if not even
// the length is there.
func (f *frames) need() (int, error) {
	if f.w-f.r < 4 {
		return 0, nil
	}
	head := f.buf[f.r : f.r+4]
	size := int32(binary.BigEndian.Uint32(head))
	if size <= 0 || int(size) > f.max {
		return 0, &sizeError{size: int(size), max: f.max, garbage: wire.DescribeGarbage(f.buf[f.r:f.w])}
	}
	return 4 + int(size), nil
}

// partial reports whether a frame has begun to arrive.
func (f *frames) partial() bool { return f.w > f.r || f.big.buf != nil && !f.big.given }

// fill makes progress towards a whole frame: it reads once, and waits until
// something comes. All frames handed out before are void.
func (f *frames) fill() error {
	if f.big.buf != nil && f.big.given {
		f.endBig()
	}
	if f.big.buf != nil {
		return f.fillBig()
	}
	need, err := f.need()
	if err != nil || need > 0 && f.w-f.r >= need {
		return err // one came behind a large frame
	}
	// A frame too large for the buffer gets memory of its own at once if the
	// connection has sent such frames before; else only when enough has come.
	if need > maxBuffer && (need <= f.trust || f.w-f.r >= maxBuffer/2) {
		if err := f.beginBig(need); err != nil {
			return err
		}
		return f.fillBig()
	}
	if err := f.makeRoom(need); err != nil {
		return err
	}
	fresh := f.w == f.r
	n, err := f.source.readInto(f.fns.room, f.fns.idle)
	f.w += n
	switch {
	case f.w == len(f.buf) && n > 0:
		f.size = min(2*f.size, maxBuffer) // it was full: more might have come
	case fresh && n < f.size/8:
		f.size = max(f.size/2, baseBuffer)
	}
	return eof(n, err)
}

func eof(n int, err error) error {
	if n == 0 && err == nil {
		return io.EOF
	}
	return err
}

// room is where the next read goes. It is asked for only when there is something
// to read, so that an idle connection holds no buffer.
func (f *frames) room() []byte {
	if f.buf == nil {
		f.take(f.size)
	}
	return f.buf[f.w:]
}

// take gets an empty buffer of size bytes, or a base buffer if the budget has
// no more. Base buffers are free: max.connections bounds them.
func (f *frames) take(size int) {
	size = max(size, baseBuffer)
	if size > baseBuffer {
		if f.mem.try(int64(size), true) {
			f.charged = int64(size)
		} else {
			size = baseBuffer
		}
	}
	f.buf = f.pool.get(size)
	f.r, f.w = 0, 0
}

// idle is called when there is nothing to read: an empty buffer goes back.
func (f *frames) idle() {
	if f.buf != nil && f.w == f.r {
		f.drop()
	}
}

func (f *frames) drop() {
	f.pool.put(f.buf)
	f.mem.release(f.charged)
	f.buf, f.r, f.w, f.charged = nil, 0, 0, 0
}

// makeRoom makes sure that the frame at r (need bytes; 0: unknown) can be read
// on with: moves it to the front, or into a buffer twice as large. The buffer
// grows only as bytes arrive.
func (f *frames) makeRoom(need int) error {
	f.size = max(f.size, baseBuffer)
	switch {
	case f.buf == nil:
		return nil
	case f.r == f.w && len(f.buf) >= f.size:
		f.r, f.w = 0, 0
		return nil
	case f.r == f.w:
		f.drop()
		return nil
	case f.r > 0:
		f.w = copy(f.buf, f.buf[f.r:f.w])
		f.r = 0
	}
	if f.w < len(f.buf) && (need <= len(f.buf) || f.w*2 < len(f.buf)) {
		return nil
	}
	size := len(f.buf) * 2
	if !f.reserve(size, true) {
		return errStopped
	}
	old, charged := f.buf, f.charged
	f.buf = f.pool.get(size)
	f.w = copy(f.buf, old[:f.w])
	f.charged, f.size = int64(size), size
	f.pool.put(old)
	f.mem.release(charged)
	return nil
}

// beginBig moves the begun frame at r into memory of its own.
func (f *frames) beginBig(need int) error {
	have := f.w - f.r
	if err := f.growBig(need, have); err != nil {
		return err
	}
	f.big.n = copy(f.big.buf, f.buf[f.r:f.w])
	f.big.need, f.big.given = need, false
	f.r, f.w = 0, 0
	f.drop()
	return nil
}

// endBig gives a large frame's memory back; what came behind it moves on.
func (f *frames) endBig() {
	b := &f.big
	if tail := b.buf[b.need:b.n]; len(tail) > 0 {
		f.take(baseBuffer)
		f.w = copy(f.buf, tail)
	}
	f.dropBig()
}

func (f *frames) dropBig() {
	f.pool.put(f.big.buf)
	f.mem.release(f.big.charged)
	f.big.buf, f.big.n, f.big.need, f.big.given, f.big.charged = nil, 0, 0, false, 0
	f.held.Store(0)
}

// close gives everything back. Nothing that was handed out may be in use.
func (f *frames) close() {
	if f.big.buf != nil {
		f.dropBig()
	}
	if f.buf != nil {
		f.drop()
	}
}

// rest gives back what can be before a long pause. All frames handed out before are
// void.
func (f *frames) rest() {
	if f.big.buf != nil && f.big.given {
		f.endBig()
	}
	f.idle()
}

func (f *frames) reserve(n int, small bool) bool {
	if f.mem.try(int64(n), small) {
		return true
	}
	if f.now {
		return false
	}
	f.waiting.Store(true)
	defer f.waiting.Store(false)
	return f.mem.reserve(int64(n), small, f.stop)
}

// growBig replaces big.buf by a larger one: what the connection is trusted with
// or a multiple of what it has sent, and never more than the frame.
func (f *frames) growBig(need, have int) error {
	size := max(firstStage, stageFactor*have)
	if need <= f.trust {
		size = need
	}
	_, size = classOf(min(size, need) + readTail)
	if !f.reserve(size, false) {
		return errStopped
	}
	old, charged := f.big.buf, f.big.charged
	f.big.buf = f.pool.get(size)
	f.big.charged = int64(size)
	f.held.Store(f.big.charged)
	if old != nil {
		copy(f.big.buf, old[:f.big.n])
		f.pool.put(old)
		f.mem.release(charged)
	}
	return nil
}

func (f *frames) fillBig() error {
	b := &f.big
	if b.n == len(b.buf) {
		if err := f.growBig(b.need, b.n); err != nil {
			return err
		}
	}
	n, err := f.source.readInto(f.fns.bigRoom, f.fns.none)
	b.n += n
	return eof(n, err)
}

func (f *frames) bigRoom() []byte {
	b := &f.big
	return b.buf[b.n:min(len(b.buf), b.need+readTail)]
}
