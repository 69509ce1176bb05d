package server

import (
	"io"
	"net"
	"os"
	"sync"
	"time"
)

// pipeBytes is how much of a direction of a pipe waits to be read: some hundred requests, or answers.
const pipeBytes = 64 << 10

// newPipe is a connection within the process: net.Pipe, but that what is written waits in a buffer, so that writer and reader do not take turns for every
// few bytes, and that a deadline which does not pass costs nothing.
func newPipe() (a, b net.Conn) {
	there, back := newStream(), newStream()
	return &pipeConn{back, there}, &pipeConn{there, back}
}

// stream is one direction.
type stream struct {
	mu      sync.Mutex
	changed *sync.Cond
	buf     []byte // what waits is behind head
	head    int
	closed  bool // by the writer: what is there can still be read
	broken  bool // by the reader
	readBy  deadline
	writeBy deadline
}

func newStream() *stream {
	s := &stream{}
	s.changed = sync.NewCond(&s.mu)
	return s
}

// deadline wakes its stream when somebody waits longer than it allows.
type deadline struct {
	at    time.Time // zero: none
	timer *time.Timer
}

func (d *deadline) passed() bool { return !d.at.IsZero() && !time.Now().Before(d.at) }

// wait sleeps until something has changed, or the deadline is over. A wake-up that comes too late for anybody does no harm. The caller holds mu.
func (s *stream) wait(d *deadline) {
	if !d.at.IsZero() {
		if d.timer == nil {
			d.timer = time.AfterFunc(time.Until(d.at), s.wake)
		} else {
			d.timer.Reset(time.Until(d.at))
		}
	}
	s.changed.Wait()
}

// wake is under mu, or it could come between a look at the deadline and the sleep.
func (s *stream) wake() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.changed.Broadcast()
}

func (s *stream) set(d *deadline, at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	d.at = at
	s.changed.Broadcast() // whoever waits looks at it
}

func (s *stream) read(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		switch {
		case s.broken:
			return 0, io.ErrClosedPipe
		case s.readBy.passed():
			return 0, os.ErrDeadlineExceeded
		case s.head < len(s.buf) || len(p) == 0:
			n := copy(p, s.buf[s.head:])
			if s.head += n; s.head == len(s.buf) {
				s.buf, s.head = s.buf[:0], 0
				s.changed.Broadcast() // there is room
			}
			return n, nil
		case s.closed:
			return 0, io.EOF
		}
		s.wait(&s.readBy)
	}
}

func (s *stream) write(p []byte) (n int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		switch {
		case s.closed || s.broken:
			return n, io.ErrClosedPipe
		case s.writeBy.passed():
			return n, os.ErrDeadlineExceeded
		case len(p) == 0:
			return n, nil
		case len(s.buf) < pipeBytes:
			k := min(len(p), pipeBytes-len(s.buf))
			s.buf = append(s.buf, p[:k]...)
			p, n = p[k:], n+k
			s.changed.Broadcast()
			continue
		}
		s.wait(&s.writeBy)
	}
}

// end closes a stream from one side.
func (s *stream) end(reader bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	s.broken = s.broken || reader
	for _, d := range []*deadline{&s.readBy, &s.writeBy} {
		if d.timer != nil {
			d.timer.Stop()
		}
	}
	s.changed.Broadcast()
}

// pipeConn is one end.
type pipeConn struct{ in, out *stream }

func (c *pipeConn) Read(p []byte) (int, error)  { return c.in.read(p) }
func (c *pipeConn) Write(p []byte) (int, error) { return c.out.write(p) }

func (c *pipeConn) Close() error {
	c.in.end(true)
	c.out.end(false)
	return nil
}

func (c *pipeConn) SetReadDeadline(t time.Time) error {
	c.in.set(&c.in.readBy, t)
	return nil
}

func (c *pipeConn) SetWriteDeadline(t time.Time) error {
	c.out.set(&c.out.writeBy, t)
	return nil
}

func (c *pipeConn) SetDeadline(t time.Time) error {
	c.SetReadDeadline(t)
	return c.SetWriteDeadline(t)
}

type pipeAddr struct{}

func (pipeAddr) Network() string { return "pipe" }
func (pipeAddr) String() string  { return "pipe" }

func (c *pipeConn) LocalAddr() net.Addr  { return pipeAddr{} }
func (c *pipeConn) RemoteAddr() net.Addr { return pipeAddr{} }
