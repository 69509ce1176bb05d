package main

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"time"

	"millrace/coord/zk/proto"
)

// client is one session that may have many requests in flight. It is one goroutine's.
type client struct {
	nc     net.Conn
	r      *bufio.Reader
	out    []byte // frames not sent yet
	in     []byte // the newest frame
	xid    int32
	flight []sent // oldest first, from head on
	head   int
	events int // that have come
}

// sent is a request that waits for its answer.
type sent struct {
	xid int32
	op  proto.Op
	at  time.Time
}

// patience is how long nothing may come before a row has failed.
const patience = time.Minute

// dial opens a session.
func dial(addr string) (*client, error) {
	nc, err := net.Dial("tcp", addr)
	if err != nil {
		return nil, err
	}
	c := &client{nc: nc, r: bufio.NewReaderSize(nc, 64<<10)}
	nc.SetDeadline(time.Now().Add(patience))
	c.frame(func(b []byte) []byte {
		return proto.AppendConnect(b, &proto.ConnectRequest{Timeout: 40000, Passwd: make([]byte, proto.PasswdSize), HasReadOnly: true})
	})
	a, err := proto.ConnectResponse{}, c.flush()
	if err == nil {
		err = c.read()
	}
	if err == nil {
		a, err = proto.ParseConnected(c.in)
	}
	if err == nil && a.Timeout <= 0 {
		err = fmt.Errorf("no session was granted")
	}
	if err != nil {
		nc.Close()
		return nil, err
	}
	return c, nil
}

func (c *client) frame(body func([]byte) []byte) {
	at := len(c.out)
	c.out = body(append(c.out, 0, 0, 0, 0))
	binary.BigEndian.PutUint32(c.out[at:], uint32(len(c.out)-at-4))
}

// send puts a request in line; flush sends.
func (c *client) send(q *proto.Request) {
	c.xid++
	c.frame(func(b []byte) []byte { return proto.AppendRequest(b, c.xid, q) })
	if c.head == len(c.flight) {
		c.flight, c.head = c.flight[:0], 0
	}
	c.flight = append(c.flight, sent{c.xid, q.Op, time.Now()})
}

func (c *client) waiting() int { return len(c.flight) - c.head }

func (c *client) flush() error {
	c.nc.SetDeadline(time.Now().Add(patience))
	_, err := c.nc.Write(c.out)
	c.out = c.out[:0]
	return err
}

func (c *client) read() error {
	var size [4]byte
	if _, err := io.ReadFull(c.r, size[:]); err != nil {
		return err
	}
	n := int(binary.BigEndian.Uint32(size[:]))
	if n > 64<<20 {
		return fmt.Errorf("a frame of %d bytes", n)
	}
	if cap(c.in) < n {
		c.in = make([]byte, n)
	}
	c.in = c.in[:n]
	_, err := io.ReadFull(c.r, c.in)
	return err
}

// answer waits for the next answer, which must be to the oldest request and no error, and counts the events before it. The body
// is good until the next read.
func (c *client) answer() (sent, []byte, error) {
	for {
		if err := c.read(); err != nil {
			return sent{}, nil, err
		}
		h, body, err := proto.ParseReply(c.in)
		switch {
		case err != nil:
			return sent{}, nil, err
		case h.Xid == proto.XidNotification:
			c.events++
			continue
		case c.waiting() == 0 || h.Xid != c.flight[c.head].xid:
			return sent{}, nil, fmt.Errorf("an answer to request %d, which is not the oldest", h.Xid)
		}
		q := c.flight[c.head]
		c.head++
		if h.Err != proto.OK {
			return q, nil, fmt.Errorf("%v: %w", q.op, h.Err)
		}
		return q, body, nil
	}
}

// event waits until so many events have come.
func (c *client) event(n int) error {
	for c.events < n {
		if err := c.read(); err != nil {
			return err
		}
		if h, _, err := proto.ParseReply(c.in); err != nil || h.Xid != proto.XidNotification {
			return fmt.Errorf("answer %+v (%v), where an event should be", h, err)
		}
		c.events++
	}
	return nil
}

// do is one request and its answer.
func (c *client) do(q *proto.Request) (proto.Result, error) {
	c.send(q)
	if err := c.flush(); err != nil {
		return proto.Result{}, err
	}
	_, body, err := c.answer()
	if err != nil {
		return proto.Result{}, fmt.Errorf("%s: %w", q.Path, err)
	}
	return proto.ParseResult(q.Op, body)
}

// closeSession ends session and connection.
func (c *client) closeSession() error {
	defer c.nc.Close()
	_, err := c.do(&proto.Request{Op: proto.OpCloseSession})
	return err
}

// stream keeps window requests in flight until next says that there are no more, and shows every answer to took.
func (c *client) stream(window int, next func() *proto.Request, took func(q sent, body []byte) error) error {
	for more := true; more || c.waiting() > 0; {
		for more && c.waiting() < window {
			q := next()
			if more = q != nil; more {
				c.send(q)
			}
		}
		if len(c.out) > 0 {
			if err := c.flush(); err != nil {
				return err
			}
		}
		// Whatever has come is taken before more is sent: requests go out in few writes, as from an asynchronous client.
		for ok := c.waiting() > 0; ok; ok = c.waiting() > 0 && c.r.Buffered() > 0 {
			q, body, err := c.answer()
			if err != nil {
				return err
			}
			if err := took(q, body); err != nil {
				return err
			}
		}
	}
	return nil
}
