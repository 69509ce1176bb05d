package server

import (
	"bufio"
	"crypto/hmac"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"sync"
	"time"

	"millrace/coord/zk/proto"
	"millrace/coord/zk/tree"
)

// conn is one connection; after the handshake, of one session.
type conn struct {
	s       *Server
	nc      net.Conn
	host    string
	watcher tree.Watcher
	session int64         // set before anything is read for it, under Server.mu
	frameOf []byte        // the reader's, for the next frame; nil: the last one is a write's, which keeps it
	q       proto.Request // the reader's, the newest
	timeout time.Duration // of the session; likewise
	began   time.Time
	meter   meter

	mu      sync.Mutex // the last of all locks
	changed *sync.Cond
	auth    []proto.ID // never changed in place
	out     []byte     // frames to be sent
	pending int        // writes not answered
	ending  bool       // nothing is read any more; what waits is sent
	dead    bool       // nothing is sent any more
	last    last
}

func newConn(s *Server, nc net.Conn, host string, watcher tree.Watcher) *conn {
	c := &conn{s: s, nc: nc, host: host, watcher: watcher, began: time.Now(), auth: []proto.ID{{Scheme: "ip", ID: host}}}
	c.changed = sync.NewCond(&c.mu)
	return c
}

func (c *conn) who() []proto.ID {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.auth
}

// send adds a frame. Who does not read what is sent is cut off at maxOut.
func (c *conn) send(body func([]byte) []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.dead || c.ending {
		return
	}
	c.meter.frameOut()
	c.s.meter.frameOut()
	at := len(c.out)
	c.out = body(append(c.out, 0, 0, 0, 0))
	binary.BigEndian.PutUint32(c.out[at:], uint32(len(c.out)-at-4))
	if len(c.out) > maxOut+c.s.cfg.MaxRequest {
		c.s.cfg.Logger.Warn("a client does not read its events and is cut off", "client", c.nc.RemoteAddr(), "bytes", len(c.out))
		c.kill()
	}
	c.changed.Broadcast()
}

// reply answers what was read at the time begun.
func (c *conn) reply(op proto.Op, begun time.Time, xid int32, zxid int64, res *proto.Result) {
	now := time.Now()
	ms := now.Sub(begun).Milliseconds()
	c.meter.took(ms)
	c.s.meter.took(ms)
	c.send(func(b []byte) []byte {
		c.last = last{op, xid, zxid, now, ms}
		return proto.AppendReply(b, xid, zxid, res)
	})
}

// finish has what waits sent, and then the connection closed.
func (c *conn) finish() {
	c.mu.Lock()
	c.ending = true
	c.mu.Unlock()
	c.changed.Broadcast()
}

func (c *conn) close() {
	c.mu.Lock()
	c.kill()
	c.mu.Unlock()
	c.changed.Broadcast()
}

// kill needs mu.
func (c *conn) kill() {
	c.dead, c.out = true, nil
	c.nc.Close()
}

func (c *conn) answered() {
	c.mu.Lock()
	c.pending--
	c.mu.Unlock()
	c.changed.Broadcast()
}

// wait returns when at most n writes are unanswered and the client has read enough;
// false: the connection has ended.
func (c *conn) wait(n int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for !c.dead && !c.ending && (c.pending > n || len(c.out) > softOut) {
		c.changed.Wait()
	}
	return !c.dead && !c.ending
}

// write sends what is put into out.
func (c *conn) write() {
	defer c.s.running.Done()
	var buf []byte
	for {
		c.mu.Lock()
		for len(c.out) == 0 && !c.dead && !c.ending {
			c.changed.Wait()
		}
		dead, last := c.dead, c.ending && len(c.out) == 0
		buf, c.out = c.out, buf[:0]
		c.mu.Unlock()
		c.changed.Broadcast()
		if dead || last {
			break
		}
		c.nc.SetWriteDeadline(time.Now().Add(writeWait))
		if _, err := c.nc.Write(buf); err != nil {
			break
		}
		if cap(buf) > softOut {
			buf = nil
		}
	}
	c.close()
}

// read takes requests until the connection ends.
func (c *conn) read() {
	defer c.s.running.Done()
	defer c.s.forget(c)
	r := bufio.NewReaderSize(c.nc, 4096)
	c.nc.SetReadDeadline(time.Now().Add(helloWait))
	if word, err := r.Peek(4); err != nil || c.fourLetters(r, string(word)) || !c.hello(r) {
		c.finish()
		return
	}
	c.nc.SetReadDeadline(time.Time{})
	for c.wait(maxPending) {
		frame, ok := c.frame(r)
		if !ok || !c.request(frame) {
			break
		}
	}
	c.mu.Lock()
	ending := c.ending
	c.mu.Unlock()
	if !ending {
		c.close()
	}
}

// frame reads one, whose bytes the budget has been asked for.
func (c *conn) frame(r *bufio.Reader) ([]byte, bool) {
	var size [4]byte
	if _, err := io.ReadFull(r, size[:]); err != nil {
		return nil, false
	}
	n := int32(binary.BigEndian.Uint32(size[:]))
	if n < 0 || int(n) > c.s.cfg.MaxRequest {
		c.s.cfg.Logger.Warn("request too large", "client", c.nc.RemoteAddr(), "bytes", n, "jute.maxbuffer", c.s.cfg.MaxRequest)
		return nil, false
	}
	if !c.s.budget.take(int64(n)) {
		return nil, false
	}
	if cap(c.frameOf) < int(n) || n > keepFrame {
		c.frameOf = make([]byte, n)
	}
	frame := c.frameOf[:n]
	if n > keepFrame {
		c.frameOf = nil
	}
	whole := r.Buffered() >= int(n)
	if !whole {
		c.nc.SetReadDeadline(time.Now().Add(helloWait)) // bytes of the budget must not wait for ever
	}
	_, err := io.ReadFull(r, frame)
	if !whole {
		c.nc.SetReadDeadline(time.Time{})
	}
	if err != nil {
		c.s.budget.give(int64(n))
		return nil, false
	}
	c.meter.frameIn(len(frame))
	c.s.meter.frameIn(len(frame))
	return frame, true
}

// hello opens or resumes a session.
func (c *conn) hello(r *bufio.Reader) bool {
	frame, ok := c.frame(r)
	if !ok {
		return false
	}
	size := int64(len(frame))
	q, err := proto.ParseConnect(frame)
	var zxid int64
	c.s.store.View(func(t *tree.Tree) { zxid = t.Zxid() })
	if err == nil && q.Session != 0 && !c.knows(q.Session, q.Passwd) {
		// Said also to who has seen more than there is: all that we had may be lost, and told nothing, a client would try for ever.
		gone := proto.ConnectResponse{Passwd: make([]byte, proto.PasswdSize), HasReadOnly: q.HasReadOnly}
		c.send(func(b []byte) []byte { return proto.AppendConnected(b, &gone) })
		c.s.budget.give(size)
		return false
	}
	if err != nil || q.LastZxidSeen > zxid {
		c.s.cfg.Logger.Warn("connection refused", "client", c.nc.RemoteAddr(), "zxid seen", q.LastZxidSeen, "our zxid", zxid, "error", err)
		c.s.budget.give(size)
		return false
	}
	timeout := min(max(time.Duration(q.Timeout)*time.Millisecond, c.s.cfg.MinTimeout), c.s.cfg.MaxTimeout)
	a := proto.ConnectResponse{Timeout: int32(timeout.Milliseconds()), Session: q.Session, HasReadOnly: q.HasReadOnly}
	if q.Session == 0 {
		a.Session = c.s.newSession()
		c.mu.Lock()
		c.pending++
		c.mu.Unlock()
		c.take(a.Session, timeout)
		txn := tree.Txn{Session: a.Session, Req: proto.Request{Op: proto.OpCreateSession, Timeout: a.Timeout}}
		if !c.s.put(&request{c: c, size: size, txn: txn}) || !c.wait(0) {
			return false
		}
	} else {
		defer c.s.budget.give(size)
		c.take(q.Session, timeout)
		c.s.tracker.Add(q.Session, timeout)
	}
	a.Passwd = c.s.passwd(a.Session)
	c.send(func(b []byte) []byte { return proto.AppendConnected(b, &a) })
	return true
}

// knows says whether there is a session and this is its password.
func (c *conn) knows(session int64, passwd []byte) bool {
	return hmac.Equal(passwd, c.s.passwd(session)) && c.s.tracker.Touch(session)
}

// take makes c the session's connection; an older one is closed.
func (c *conn) take(session int64, timeout time.Duration) {
	c.s.mu.Lock()
	c.session, c.timeout = session, timeout
	old := c.s.sessions[session]
	c.s.sessions[session] = c
	c.s.mu.Unlock()
	if old != nil {
		old.close()
	}
}

// request carries out one frame; false: the connection ends.
func (c *conn) request(frame []byte) bool {
	size, begun := int64(len(frame)), time.Now()
	h, body, err := proto.ParseHeader(frame)
	if err != nil {
		c.s.budget.give(size)
		return false
	}
	if !c.s.tracker.Touch(c.session) {
		c.s.budget.give(size)
		return false // expired; its end is on its way
	}
	c.q, err = proto.ParseRequest(h.Op, body)
	defer func() { c.q = proto.Request{} }() // nothing large is kept for a client that rests
	q, code := &c.q, proto.OK
	switch {
	case errors.Is(err, proto.ErrUnimplemented):
		code = proto.ErrUnimplemented
	case err != nil:
		code = proto.ErrMarshalling
	}
	if h.Op.Writes() && h.Op != proto.OpCheck && h.Op != proto.OpDeleteContainer && h.Op != proto.OpCreateSession {
		c.frameOf = nil
		r := requests.Get().(*request)
		r.c, r.xid, r.size, r.begun = c, h.Xid, size, begun
		r.txn = tree.Txn{Session: c.session, Cxid: h.Xid, Rules: c.s.cfg.Rules, Refused: code, Auth: c.who(), Req: *q}
		c.mu.Lock()
		c.pending++
		c.mu.Unlock()
		return c.s.put(r)
	}
	defer c.s.budget.give(size)
	switch {
	case h.Op == proto.OpPing:
		c.s.store.View(func(t *tree.Tree) { c.reply(h.Op, begun, h.Xid, t.Zxid(), &proto.Result{Op: h.Op}) })
		return true
	case h.Op == proto.OpAuth && code == proto.OK:
		return c.prove(h.Xid, begun, q)
	}
	if !c.wait(0) {
		return false
	}
	c.answerRead(h, begun, q, code)
	if code == proto.ErrUnimplemented { // no such operation: ZooKeeper says so and hangs up
		c.finish()
		return false
	}
	return true
}

// prove is the auth request. A client that cannot prove what it says is cut off.
func (c *conn) prove(xid int32, begun time.Time, q *proto.Request) bool {
	who, code := tree.Prove(c.who(), q.Scheme, q.Data, c.s.cfg.SuperDigest)
	c.mu.Lock()
	c.auth = who
	c.mu.Unlock()
	c.reply(proto.OpAuth, begun, xid, 0, &proto.Result{Op: proto.OpAuth, Err: code})
	if code != proto.OK {
		c.s.authFailed.Add(1)
		c.finish()
	}
	return code == proto.OK
}

// answerRead reads the tree and puts the answer in line while it is held.
func (c *conn) answerRead(h proto.Header, begun time.Time, q *proto.Request, code proto.Code) {
	who := tree.Reader{Session: c.session, Watcher: c.watcher, Auth: c.who(), SkipACL: c.s.cfg.Rules&tree.SkipACL != 0}
	read := func(t *tree.Tree) {
		res := proto.Result{Op: h.Op, Err: code}
		var events []tree.Event
		switch {
		case h.Op == proto.OpReconfig:
			res.Err = proto.ErrReconfigDisabled
		case code == proto.OK:
			res, events = t.Read(q, &who, nil)
		}
		for i := range events { // of setWatches: only for this client, and for nobody to filter
			e := &events[i]
			c.send(func(b []byte) []byte {
				return proto.AppendEvent(b, e.Zxid, &proto.WatchEvent{Type: e.Type, State: proto.StateConnected, Path: e.Path})
			})
		}
		c.reply(h.Op, begun, h.Xid, t.Zxid(), &res)
	}
	if tree.Arms(q) {
		c.s.store.Change(read)
	} else {
		c.s.store.View(read)
	}
}

// fourLetters answers a four-letter word, and reports whether it was one.
func (c *conn) fourLetters(r io.Reader, word string) bool {
	answer, ok := words[word]
	if !ok {
		return false
	}
	text := fmt.Sprintf("%s is not executed because it is not in the whitelist.\n", word)
	if slices.Contains(c.s.cfg.Words, "*") || slices.Contains(c.s.cfg.Words, word) {
		text = answer(c.s, r)
	}
	c.mu.Lock()
	c.out = append(c.out, text...)
	c.mu.Unlock()
	return true
}
