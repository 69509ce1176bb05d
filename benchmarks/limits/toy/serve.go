package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"net"
	"sort"

	"golang.org/x/sys/unix"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

var be = binary.BigEndian

const (
	bufferSize      = 4 << 20  // holds the largest frame that the load generator sends, and what follows it
	sendfileAtLeast = 64 << 10 // smaller fetch answers are read and written together with their header
)

func stamp(b []byte, base int64) {
	be.PutUint64(b, uint64(base))
	be.PutUint32(b[12:], 0)
}

// serve answers every whole frame at hand before it waits for the disk or reads again.
func (s *server) serve(c *net.TCPConn) error {
	in := make([]byte, 64<<10)
	var out, scratch []byte
	have := 0
	var wait wanted
	for {
		n, err := c.Read(in[have:])
		if err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		have += n
		used := 0
		for have-used >= 4 {
			size := int(be.Uint32(in[used:]))
			if size > bufferSize-4 {
				return fmt.Errorf("frame of %d bytes, limit %d", size, bufferSize-4)
			}
			if have-used < 4+size {
				if used == 0 && len(in) < 4+size {
					in = append(make([]byte, 0, bufferSize), in[:have]...)[:bufferSize]
				}
				break
			}
			frame := in[used+4 : used+4+size]
			used += 4 + size
			if be.Uint16(frame) == 1 {
				if out, err = s.flush(c, out, &wait); err != nil {
					return err
				}
				if scratch, err = s.fetch(c, frame, scratch); err != nil {
					return err
				}
				continue
			}
			if out, err = s.produce(frame, out, &wait); err != nil {
				return err
			}
		}
		if out, err = s.flush(c, out, &wait); err != nil {
			return err
		}
		have = copy(in, in[used:have])
	}
}

// flush waits until everything behind the answers is as durable as the mode says, then sends them in one write.
func (s *server) flush(c *net.TCPConn, out []byte, w *wanted) ([]byte, error) {
	if len(out) == 0 {
		return out, nil
	}
	if s.sync != nil {
		if err := s.sync.wait(w); err != nil {
			return out, err
		}
	}
	_, err := c.Write(out)
	return out[:0], err
}

// body skips the request header (v1) and returns correlation id and body.
func body(frame []byte) (corr uint32, b []byte) {
	id := int(int16(be.Uint16(frame[8:])))
	return be.Uint32(frame[4:]), frame[10+max(id, 0):]
}

// produce takes a Produce v7 request of one topic and appends its answer to out.
func (s *server) produce(frame, out []byte, w *wanted) ([]byte, error) {
	corr, b := body(frame)
	b = b[2+2+4+4:] // transactional id (null), acks, time-out, topic count (1)
	nl := int(be.Uint16(b))
	name := b[2 : 2+nl]
	b = b[2+nl:]
	parts := int(be.Uint32(b))
	b = b[4:]
	at := len(out)
	out = append(out, 0, 0, 0, 0)
	out = be.AppendUint32(out, corr)
	out = be.AppendUint32(out, 1)
	out = be.AppendUint16(out, uint16(nl))
	out = append(out, name...)
	out = be.AppendUint32(out, uint32(parts))
	for range parts {
		index, size := int32(be.Uint32(b)), int(be.Uint32(b[4:]))
		rec := b[8 : 8+size]
		b = b[8+size:]
		base := int64(0)
		if s.mode != "echo" {
			if got, want := crc32.Checksum(rec[21:], castagnoli), be.Uint32(rec[17:]); got != want {
				return nil, fmt.Errorf("batch checksum %08x, want %08x", got, want)
			}
			p, err := s.part(name, index)
			if err != nil {
				return nil, err
			}
			if base, err = p.append(rec, int64(be.Uint32(rec[57:]))); err != nil {
				return nil, err
			}
			if s.sync != nil {
				s.sync.add(w, p, rec)
			}
		}
		out = be.AppendUint32(out, uint32(index))
		out = be.AppendUint16(out, 0)
		out = be.AppendUint64(out, uint64(base))
		out = be.AppendUint64(out, ^uint64(0)) // log append time: none
		out = be.AppendUint64(out, 0)          // log start offset
	}
	out = be.AppendUint32(out, 0) // throttle
	be.PutUint32(out[at:], uint32(len(out)-at-4))
	return out, nil
}

// fetch answers a Fetch v11 request of one topic, without a session.
func (s *server) fetch(c *net.TCPConn, frame, scratch []byte) ([]byte, error) {
	corr, b := body(frame)
	b = b[4+4+4+4+1+4+4+4:] // replica, max wait, min bytes, max bytes, isolation, session id and epoch, topic count (1)
	nl := int(be.Uint16(b))
	name := b[2 : 2+nl]
	b = b[2+nl:]
	parts := int(be.Uint32(b))
	b = b[4:]
	out := append(scratch[:0], 0, 0, 0, 0)
	out = be.AppendUint32(out, corr)
	out = be.AppendUint32(out, 0) // throttle
	out = be.AppendUint16(out, 0) // error
	out = be.AppendUint32(out, 0) // session
	out = be.AppendUint32(out, 1)
	out = be.AppendUint16(out, uint16(nl))
	out = append(out, name...)
	out = be.AppendUint32(out, uint32(parts))
	for i := range parts {
		index, from, limit := int32(be.Uint32(b)), int64(be.Uint64(b[8:])), int(be.Uint32(b[24:]))
		b = b[28:]
		p, err := s.part(name, index)
		if err != nil {
			return out, err
		}
		p.mu.Lock()
		if err := p.open(0); err != nil {
			p.mu.Unlock()
			return out, err
		}
		k := sort.Search(len(p.starts), func(i int) bool { return p.starts[i] > from }) - 1
		pos, n, end := p.at[k], min(int64(limit), p.size-p.at[k]), p.next
		p.mu.Unlock()
		out = be.AppendUint32(out, uint32(index))
		out = be.AppendUint16(out, 0)
		out = be.AppendUint64(out, uint64(end))
		out = be.AppendUint64(out, uint64(end))
		out = be.AppendUint64(out, 0)          // log start
		out = be.AppendUint32(out, ^uint32(0)) // aborted: null
		out = be.AppendUint32(out, ^uint32(0)) // preferred replica: none
		out = be.AppendUint32(out, uint32(n))
		if n < sendfileAtLeast || i != parts-1 {
			at := len(out)
			out = append(out, make([]byte, n)...)
			if _, err := unix.Pread(p.fd, out[at:], pos); err != nil {
				return out, err
			}
			continue
		}
		be.PutUint32(out, uint32(len(out)-4+int(n)))
		if err := sendHeader(c, out); err != nil {
			return out, err
		}
		return out, sendRange(c, p.fd, pos, n)
	}
	be.PutUint32(out, uint32(len(out)-4))
	_, err := c.Write(out)
	return out, err
}

func sendHeader(c *net.TCPConn, b []byte) error {
	return raw(c, func(fd int) (bool, error) {
		n, err := unix.SendmsgN(fd, b, nil, nil, unix.MSG_MORE)
		if err == nil {
			b = b[n:]
		}
		return len(b) == 0, err
	})
}

func sendRange(c *net.TCPConn, from int, pos, n int64) error {
	return raw(c, func(fd int) (bool, error) {
		m, err := unix.Sendfile(fd, from, &pos, int(n))
		if m > 0 {
			n -= int64(m)
		}
		return n == 0, err
	})
}

// raw repeats step until it is done; a full socket buffer parks the goroutine.
func raw(c *net.TCPConn, step func(fd int) (bool, error)) error {
	rc, err := c.SyscallConn()
	if err != nil {
		return err
	}
	var serr error
	err = rc.Write(func(fd uintptr) bool {
		for {
			done, e := step(int(fd))
			switch {
			case done:
				return true
			case e == unix.EAGAIN:
				return false
			case e != nil && e != unix.EINTR:
				serr = e
				return true
			}
		}
	})
	if err != nil {
		return err
	}
	return serr
}
