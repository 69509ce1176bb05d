package zookeeper

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"time"

	"millrace/coord/zk/proto"
)

// Note is a watch event and the zxid it came with.
type Note struct {
	Zxid int64
	proto.WatchEvent
}

// Client is one session, one request at a time, that sees every byte of the protocol.
type Client struct {
	Session int64
	Timeout int32
	conn    net.Conn
	xid     int32
	Events  []Note // that came before the newest answer
}

// wait is long: the machine may be busy.
const wait = time.Minute

// Dial opens a session.
func Dial(addr string) (*Client, error) {
	conn, err := net.DialTimeout("tcp", addr, wait)
	if err != nil {
		return nil, err
	}
	c := &Client{conn: conn}
	q := proto.ConnectRequest{Timeout: 40000, Passwd: make([]byte, proto.PasswdSize), HasReadOnly: true}
	frame, err := c.exchange(proto.AppendConnect(nil, &q))
	if err != nil {
		return nil, err
	}
	a, err := proto.ParseConnected(frame)
	c.Session, c.Timeout = a.Session, a.Timeout
	return c, err
}

func (c *Client) exchange(body []byte) ([]byte, error) {
	c.conn.SetDeadline(time.Now().Add(wait))
	if _, err := c.conn.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(body))), body...)); err != nil {
		return nil, err
	}
	return c.frame()
}

func (c *Client) frame() ([]byte, error) {
	var size [4]byte
	if _, err := io.ReadFull(c.conn, size[:]); err != nil {
		return nil, err
	}
	frame := make([]byte, binary.BigEndian.Uint32(size[:]))
	_, err := io.ReadFull(c.conn, frame)
	return frame, err
}

// Do sends a request and returns its answer; the events that came before it are in
// c.Events afterwards.
func (c *Client) Do(q *proto.Request) (proto.Reply, proto.Result, error) {
	c.xid++
	xid := c.xid
	switch q.Op {
	case proto.OpPing:
		xid = proto.XidPing
	case proto.OpAuth:
		xid = proto.XidAuth
	case proto.OpSetWatches, proto.OpSetWatches2:
		xid = proto.XidSetWatches
	}
	c.Events = nil
	frame, err := c.exchange(proto.AppendRequest(nil, xid, q))
	for {
		if err != nil {
			return proto.Reply{}, proto.Result{}, fmt.Errorf("%v: %w", q.Op, err)
		}
		h, body, err := proto.ParseReply(frame)
		switch {
		case err != nil:
			return h, proto.Result{}, err
		case h.Xid == proto.XidNotification:
			e, err := proto.ParseEvent(body)
			if err != nil {
				return h, proto.Result{}, err
			}
			c.Events = append(c.Events, Note{h.Zxid, e})
		case h.Xid != xid:
			return h, proto.Result{}, fmt.Errorf("%v: answer to %d, want %d", q.Op, h.Xid, xid)
		case h.Err != proto.OK:
			return h, proto.Result{Op: q.Op, Err: h.Err}, nil
		default:
			res, err := proto.ParseResult(q.Op, body)
			return h, res, err
		}
		frame, err = c.frame()
		if err != nil {
			return h, proto.Result{}, err
		}
	}
}

// Close ends the connection, not the session.
func (c *Client) Close() { c.conn.Close() }
