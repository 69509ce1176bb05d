// Package zkclient is ZooKeeper's protocol as our command lines need it: one session,
// asked by one goroutine, that sees everything the protocol says (zxids, all kinds of
// nodes, access lists) and does not try again: a lost connection is an error that the user
// sees.
package zkclient

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"time"

	"millrace/coord/zk/proto"
)

const (
	// patience is how long one answer may take.
	patience = 30 * time.Second
	// largest is the most that one answer may have: jute.maxbuffer of generous servers.
	largest = 256 << 20
	// pipelined is how many requests are sent before their answers are read; few enough
	// that they fit the buffers between, or both sides would wait for each other.
	pipelined = 100
	// pipelinedBytes bounds the same, so that a server's own bound is not met.
	pipelinedBytes = 32 << 10
)

// Client is a session.
type Client struct {
	Addr    string // of the server that answered
	Session int64
	Timeout time.Duration
	Zxid    int64 // of the newest answer

	root   string // chroot; "" none
	conn   net.Conn
	r      *bufio.Reader
	xid    int32
	events []proto.WatchEvent
}

// Dial opens a session with the first that answers of "host:port,host:port/chroot".
func Dial(ctx context.Context, connect string, timeout time.Duration) (*Client, error) {
	hosts, root, _ := strings.Cut(connect, "/")
	if root = strings.TrimSuffix(root, "/"); root != "" {
		root = "/" + root
	}
	var errs []error
	for _, host := range strings.Split(hosts, ",") {
		if _, _, err := net.SplitHostPort(host); err != nil {
			host = net.JoinHostPort(host, "2181")
		}
		c, err := dial(ctx, host, timeout)
		if err == nil {
			c.root = root
			return c, nil
		}
		errs = append(errs, fmt.Errorf("%s: %w", host, err))
	}
	return nil, errors.Join(errs...)
}

func dial(ctx context.Context, addr string, timeout time.Duration) (*Client, error) {
	d := net.Dialer{Timeout: patience}
	conn, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	c := &Client{Addr: addr, conn: conn, r: bufio.NewReader(conn)}
	q := proto.ConnectRequest{Timeout: int32(timeout.Milliseconds()), Passwd: make([]byte, proto.PasswdSize), HasReadOnly: true}
	frame, err := c.hello(&q)
	if err != nil {
		conn.Close()
		return nil, err
	}
	c.Session, c.Timeout = frame.Session, time.Duration(frame.Timeout)*time.Millisecond
	return c, nil
}

func (c *Client) hello(q *proto.ConnectRequest) (proto.ConnectResponse, error) {
	if err := c.send(proto.AppendConnect(nil, q)); err != nil {
		return proto.ConnectResponse{}, err
	}
	frame, err := c.frame()
	if err != nil {
		return proto.ConnectResponse{}, err
	}
	a, err := proto.ParseConnected(frame)
	if err == nil && a.Session == 0 {
		err = proto.ErrSessionExpired
	}
	return a, err
}

// Close ends the session, so that its nodes do not wait for the time-out.
func (c *Client) Close() {
	c.conn.SetDeadline(time.Now().Add(time.Second))
	c.send(proto.AppendRequest(nil, c.xid+1, &proto.Request{Op: proto.OpCloseSession}))
	c.r.WriteTo(io.Discard) // until the server has hung up
	c.conn.Close()
}

// Interrupt makes whatever waits for the server give up. It may be called by anybody.
func (c *Client) Interrupt() { c.conn.SetDeadline(time.Unix(1, 0)) }

func (c *Client) send(body []byte) error {
	_, err := c.conn.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(body))), body...))
	return err
}

func (c *Client) frame() ([]byte, error) {
	var size [4]byte
	if _, err := io.ReadFull(c.r, size[:]); err != nil {
		return nil, lost(err)
	}
	n := binary.BigEndian.Uint32(size[:])
	if n > largest {
		return nil, fmt.Errorf("an answer of %d bytes, the limit is %d", n, largest)
	}
	frame := make([]byte, n)
	_, err := io.ReadFull(c.r, frame)
	return frame, lost(err)
}

// lost says what an end of the stream means.
func lost(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("the server closed the connection: %w", err)
	}
	return err
}

// Do asks one thing. A refusal is an error that is a proto.Code.
func (c *Client) Do(q proto.Request) (proto.Result, error) {
	res, err := c.All([]proto.Request{q})
	if err == nil && res[0].Err != proto.OK {
		err = res[0].Err
	}
	if err != nil {
		return proto.Result{}, err
	}
	return res[0], nil
}

// All asks many things, several at a time; refusals are in the results.
func (c *Client) All(list []proto.Request) ([]proto.Result, error) {
	out := make([]proto.Result, 0, len(list))
	for len(list) > 0 {
		var b []byte
		n := 0
		first := c.xid + 1
		for n < len(list) && n < pipelined && (n == 0 || len(b) < pipelinedBytes) {
			q := c.below(list[n])
			at := len(b)
			b = proto.AppendRequest(append(b, 0, 0, 0, 0), c.xidOf(q.Op), &q)
			binary.BigEndian.PutUint32(b[at:], uint32(len(b)-at-4))
			n++
		}
		c.conn.SetDeadline(time.Now().Add(patience))
		if _, err := c.conn.Write(b); err != nil {
			return nil, err
		}
		for i := range n {
			res, err := c.answer(list[i].Op, first+int32(i))
			if err != nil {
				return nil, fmt.Errorf("%v: %w", list[i].Op, err)
			}
			out = append(out, res)
		}
		list = list[n:]
	}
	return out, nil
}

func (c *Client) xidOf(op proto.Op) int32 {
	c.xid++
	switch op {
	case proto.OpAuth:
		return proto.XidAuth
	case proto.OpPing:
		return proto.XidPing
	}
	return c.xid
}

// answer reads up to the next answer, which must be that to xid.
func (c *Client) answer(op proto.Op, xid int32) (proto.Result, error) {
	for {
		frame, err := c.frame()
		if err != nil {
			return proto.Result{}, err
		}
		h, body, err := proto.ParseReply(frame)
		switch {
		case err != nil:
			return proto.Result{}, err
		case h.Xid == proto.XidNotification:
			if err := c.note(h.Zxid, body); err != nil {
				return proto.Result{}, err
			}
			continue
		case h.Xid == proto.XidPing && op != proto.OpPing:
			continue
		case h.Xid != xid && h.Xid != proto.XidAuth && h.Xid != proto.XidPing:
			return proto.Result{}, fmt.Errorf("an answer to request %d, want %d", h.Xid, xid)
		}
		if h.Zxid > 0 {
			c.Zxid = h.Zxid
		}
		if h.Err != proto.OK {
			return proto.Result{Op: op, Err: h.Err}, nil
		}
		res, err := proto.ParseResult(op, body)
		res.Path = c.above(res.Path)
		return res, err
	}
}

func (c *Client) note(zxid int64, body []byte) error {
	e, err := proto.ParseEvent(body)
	if zxid > 0 {
		c.Zxid = zxid
	}
	e.Path = c.above(e.Path)
	c.events = append(c.events, e)
	return err
}

// Next waits for a watch event, and keeps the session alive meanwhile.
func (c *Client) Next(ctx context.Context) (proto.WatchEvent, error) {
	stop := context.AfterFunc(ctx, c.Interrupt)
	defer stop()
	for len(c.events) == 0 {
		c.conn.SetDeadline(time.Now().Add(c.Timeout / 3))
		if ctx.Err() != nil {
			return proto.WatchEvent{}, ctx.Err()
		}
		_, err := c.r.Peek(4)
		switch {
		case ctx.Err() != nil:
			return proto.WatchEvent{}, ctx.Err()
		case errors.Is(err, os.ErrDeadlineExceeded):
			if _, err := c.Do(proto.Request{Op: proto.OpPing}); err != nil {
				return proto.WatchEvent{}, err
			}
			continue
		case err != nil:
			return proto.WatchEvent{}, lost(err)
		}
		frame, err := c.frame()
		if err != nil {
			return proto.WatchEvent{}, err
		}
		h, body, err := proto.ParseReply(frame)
		if err == nil && h.Xid == proto.XidNotification {
			err = c.note(h.Zxid, body)
		}
		if err != nil {
			return proto.WatchEvent{}, err
		}
	}
	e := c.events[0]
	c.events = c.events[1:]
	return e, nil
}

// below puts a request under the chroot.
func (c *Client) below(q proto.Request) proto.Request {
	if c.root == "" {
		return q
	}
	if strings.HasPrefix(q.Path, "/") {
		q.Path = c.root + strings.TrimSuffix(q.Path, "/")
	}
	ops := q.Ops
	q.Ops = nil
	for _, o := range ops {
		q.Ops = append(q.Ops, c.below(o))
	}
	return q
}

// above takes the chroot away again.
func (c *Client) above(path string) string {
	if below, ok := strings.CutPrefix(path, c.root); ok && c.root != "" {
		if below == "" {
			return "/"
		}
		return below
	}
	return path
}
