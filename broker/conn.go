package broker

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"runtime/debug"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"millrace/replica"
	"millrace/wire"
)

// conn is one client's connection. One goroutine owns it: it takes every whole
// frame at hand, answers them in order (W3), sends the answers in one write, and
// only then waits for more. So nothing here is locked; what other goroutines
// (the sweeper, a stop) may look at is atomic.
//
// Produce requests that lie in the buffer together are answered together: all
// are queued, all written, then waited for once (see produce.go).
type conn struct {
	b        *Broker
	nc       net.Conn
	raw      syscall.RawConn // nil: not a socket of the system
	listener string
	remote   string
	ip       string
	log      *slog.Logger

	frames *frames
	writer *wire.Writer
	rc     requestContext
	broken error // why the connection must be closed after the answers so far

	produce produceBurst
	fetch   fetchCall
	signal  *replica.Signal
	meter   connMeter

	pushes   [16]byte      // client instance id of the last telemetry request; zero: none
	throttle throttle      // asked for by quotas
	inHand   bool          // a frame is being answered, so its memory must stay
	waited   time.Duration // of the Fetch at hand, for records

	state    atomic.Int32 // connIdle, connBusy, connClosing
	writing  atomic.Bool  // a write is going on
	received atomic.Int64 // bytes
	sweep    sweepState   // the sweeper's own

	read struct { // one readInto
		target func() []byte
		idle   func()
		n      int
		err    error
		now    bool                  // do not wait: errNothing if there is nothing
		try    func(fd uintptr) bool // tryRead as a value, made once
	}
}

// States of a connection. Only an idle one (no request outstanding) may be
// closed by others; whoever moves the state from idle decides.
const (
	connIdle int32 = iota
	connBusy
	connClosing
)

var (
	errPanicked = errors.New("a handler panicked")
	errQuiet    = errors.New("closed as the protocol asks") // already logged, or nothing to log
	errNothing  = errors.New("nothing has come")            // of a read that does not wait
)

func newConn(b *Broker, nc net.Conn, listener string) *conn {
	c := &conn{b: b, nc: nc, listener: listener, remote: nc.RemoteAddr().String(), ip: hostOf(nc.RemoteAddr())}
	c.log = b.log.With("client", c.remote, "listener", listener)
	if tcp, ok := nc.(*net.TCPConn); ok {
		c.raw, _ = tcp.SyscallConn()
		c.setOptions(tcp)
	}
	c.frames = newFrames(c, b.buffers, b.budget, b.stopping, int(b.config.Socket.RequestMax))
	c.writer = wire.NewWriter(nc)
	c.signal = replica.NewSignal()
	c.read.try = c.tryRead
	c.rc = requestContext{listener: listener, remote: c.remote, ctx: b.ctx, log: c.log, conn: c}
	c.meter.init(b, listener)
	c.state.Store(connBusy)
	return c
}

// setOptions sets what an operator asked for; failures only cost speed.
func (c *conn) setOptions(tcp *net.TCPConn) {
	_ = tcp.SetNoDelay(true) // answers leave whole, waiting for more helps nobody
	if n := c.b.config.Socket.SendBuffer; n > 0 {
		_ = tcp.SetWriteBuffer(n)
	}
	if n := c.b.config.Socket.ReceiveBuffer; n > 0 {
		_ = tcp.SetReadBuffer(n)
	}
}

func hostOf(a net.Addr) string {
	host, _, err := net.SplitHostPort(a.String())
	if err != nil {
		return a.String()
	}
	return host
}

// serve runs the connection to its end.
func (c *conn) serve() {
	err := c.enter()
	if err == nil {
		err = c.loop()
	}
	if c.settle() {
		c.frames.close()
	}
	c.meter.flush()
	c.b.meters.ended(err)
	if c.pushes != ([16]byte{}) {
		c.b.telemetry.left(c, c.b.now())
	}
	if err != nil {
		c.explain(err)
	}
	_ = c.nc.Close()
}

// settle makes sure that no log has a batch of ours in its queue, before the
// memory that the batch lies in is used again. If even that panics, the memory
// is left alone.
func (c *conn) settle() (ok bool) {
	defer func() { ok = recover() == nil }()
	c.produce.write()
	c.produce.drop()
	return true
}

func (c *conn) loop() error {
	for {
		if err := c.answerAll(); err != nil {
			return err
		}
		if c.b.isStopping() && !c.frames.partial() {
			return errQuiet
		}
		if err := c.fill(); err != nil {
			return err
		}
		c.rc.arrived = c.b.now()
		c.meter.arriveAt(c.b.meters.clockAt(c.rc.arrived))
	}
}

// answerAll answers all whole frames at hand. Answers made before something
// went wrong are sent nevertheless.
func (c *conn) answerAll() (err error) {
	defer func() {
		if p := recover(); p != nil {
			// Only this connection is lost. Locks are not held across handlers.
			c.log.Error("a request handler panicked; closing the connection", "api", apiName(c.rc.header.Key), "version", c.rc.header.Version,
				"client_id", c.rc.header.ClientID, "panic", p, "stack", string(debug.Stack()))
			err = errPanicked
		}
	}()
	for {
		frame, err := c.frames.next()
		if err != nil {
			return c.lastWords(err)
		}
		if frame == nil {
			more, err := c.moreProduce()
			if err != nil {
				return c.lastWords(err)
			}
			if !more {
				break
			}
			continue
		}
		c.inHand = true
		err = c.answer(frame)
		if c.inHand = false; err == nil && c.throttle != (throttle{}) {
			err = c.pause()
		}
		if err != nil {
			return c.lastWords(err)
		}
	}
	if err := c.finishProduce(); err != nil {
		return c.lastWords(err)
	}
	return c.flush()
}

// lastWords sends the answers of the requests before the one that failed.
func (c *conn) lastWords(err error) error {
	if !errors.Is(err, errQuiet) || c.produce.len() > 0 {
		if e := c.finishProduce(); e != nil {
			err = e
		}
	}
	_ = c.flush()
	return err
}

// answer handles one frame. Produce requests are only queued.
func (c *conn) answer(frame []byte) error {
	header, body, err := wire.ParseHeader(frame)
	c.rc.header, c.rc.size = header, 4+len(frame)
	if err != nil {
		return &badRequestError{err}
	}
	api, known := wire.Lookup(header.Key)
	served := known && api.Serves(header.Version)
	if served {
		c.meter.meets(&c.rc.header)
	}
	if header.Key == wire.KeyProduce && served {
		return c.queueProduce(body)
	}
	if err := c.finishProduce(); err != nil {
		return err
	}
	switch {
	case header.Key == wire.KeyAPIVersions:
		c.answerAPIVersions(body)
	case !served:
		return &unsupportedError{header: header, known: known, api: api}
	case header.Key == wire.KeyFetch:
		err = c.answerFetch(body)
	default:
		err = c.answerPlain(body)
	}
	if served && err == nil {
		c.meter.answered(&c.rc.header)
	}
	return err
}

// answerPlain handles every API that goes through kmsg.
func (c *conn) answerPlain(body []byte) error {
	h := handlerOf(c.rc.header.Key)
	if h == nil {
		panic("W2: an API is in wire.APIs and nothing serves it: " + apiName(c.rc.header.Key))
	}
	request, err := wire.DecodeRequest(c.rc.header, body)
	if err != nil {
		return &badRequestError{err}
	}
	quota := c.b.quotas.client(c.rc.header.ClientID)
	began := quota.timed()
	response := h(c.b, &c.rc, request)
	if response == nil {
		return errQuiet
	}
	if quota != nil {
		if err := c.chargePlain(quota, began, response); err != nil {
			return err
		}
	}
	c.answeredWith(response)
	c.writer.Respond(c.rc.header, response)
	return nil
}

func (c *conn) flush() error {
	defer c.meter.flush()
	if c.writer.Buffered() == 0 {
		return c.writer.Err()
	}
	c.writing.Store(true)
	defer c.writing.Store(false)
	return c.writer.Flush()
}

// fill waits for bytes. While it does, and nothing is owed to the client, the
// connection is idle and may be closed from outside.
func (c *conn) fill() error {
	c.state.CompareAndSwap(connBusy, connIdle)
	if c.b.isStopping() && !c.frames.partial() {
		return errQuiet // the stop came before we were idle, so nobody wakes us
	}
	err := c.frames.fill()
	if !c.state.CompareAndSwap(connIdle, connBusy) {
		return errQuiet
	}
	return err
}

// fillNow is fill without waiting, neither for bytes nor for memory.
func (c *conn) fillNow() (more bool, err error) {
	c.read.now, c.frames.now = true, true
	err = c.frames.fill()
	c.read.now, c.frames.now = false, false
	if err == errNothing || err == errStopped {
		return false, nil
	}
	c.meter.arrive()
	return err == nil, err
}

// readInto is one read of the socket. Unlike net.Conn.Read it needs no buffer
// while there is nothing to read.
func (c *conn) readInto(target func() []byte, idle func()) (int, error) {
	if c.raw == nil {
		n, err := c.nc.Read(target())
		c.received.Add(int64(n))
		return n, err
	}
	c.read.target, c.read.idle = target, idle
	c.read.n, c.read.err = 0, nil
	if err := c.raw.Read(c.read.try); err != nil {
		return 0, err
	}
	c.received.Add(int64(c.read.n))
	return c.read.n, c.read.err
}

func (c *conn) tryRead(fd uintptr) bool {
	for {
		n, err := unix.Read(int(fd), c.read.target())
		switch {
		case err == unix.EINTR:
		case err == unix.EAGAIN && c.read.now:
			c.read.err = errNothing
			return true
		case err == unix.EAGAIN:
			c.read.idle()
			return false // the runtime calls again when there is something
		case err != nil:
			c.read.err = err
			return true
		default:
			c.read.n = n
			return true
		}
	}
}

// interrupt ends a wait for bytes, from outside.
func (c *conn) interrupt() { _ = c.nc.SetReadDeadline(time.Unix(1, 0)) }

// gone reports that the client closed its side, without taking anything from
// the socket. Waiting fetches ask it: nobody reads meanwhile.
func (c *conn) gone() bool {
	if c.raw == nil {
		return false
	}
	gone := false
	err := c.raw.Control(func(fd uintptr) {
		var b [1]byte
		n, _, err := unix.Recvfrom(int(fd), b[:], unix.MSG_PEEK|unix.MSG_DONTWAIT)
		gone = err == nil && n == 0 || err != nil && err != unix.EAGAIN && err != unix.EINTR
	})
	return gone || err != nil
}

// unsupportedError closes a connection that asks for what we do not serve: the
// protocol has no answer for it.
type unsupportedError struct {
	header wire.Header
	known  bool
	api    wire.API
}

func (e *unsupportedError) Error() string {
	if !e.known {
		return fmt.Sprintf("unknown API %d", e.header.Key)
	}
	return fmt.Sprintf("version %d of %s is not served, only %d to %d", e.header.Version, e.api.Name, e.api.Min, e.api.Max)
}

// badRequestError closes a connection whose request cannot be decoded.
type badRequestError struct{ cause error }

func (e *badRequestError) Error() string { return e.cause.Error() }
func (e *badRequestError) Unwrap() error { return e.cause }

// explain writes the one line that says why a connection was closed, if the
// client did not simply go.
func (c *conn) explain(err error) {
	var (
		size        *sizeError
		malformed   *badRequestError
		unsupported *unsupportedError
	)
	b, h := c.b, c.rc.header
	switch {
	case errors.As(err, &size):
		b.limits.garbage.log(c.log, slog.LevelWarn, "closing a connection: "+size.Error())
	case errors.As(err, &malformed):
		b.limits.garbage.log(c.log, slog.LevelWarn, "closing a connection: "+malformed.Error(), "api", apiName(h.Key), "version", h.Version, "client_id", h.ClientID)
	case errors.As(err, &unsupported):
		u := unsupported.header
		b.limits.unsupported.log(c.log, slog.LevelWarn, "closing a connection: "+unsupported.Error(), "api", apiName(u.Key), "version", u.Version, "client_id", u.ClientID)
	case errors.Is(err, errQuiet), errors.Is(err, errPanicked), errors.Is(err, errStopped), errors.Is(err, io.EOF):
	default:
		c.log.Debug("connection lost", "error", err)
	}
}

func apiName(key int16) string {
	if api, ok := wire.Lookup(key); ok {
		return api.Name
	}
	return fmt.Sprintf("key %d", key)
}
