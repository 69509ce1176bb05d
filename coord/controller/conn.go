package controller

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"
)

// Conn is one session with the tree, the only way in which this package reaches it. A Conn that has lost its session never gets another: every call fails.
//
// With watch set, one event comes for that path when what was read has changed; reading again with watch asks for the next one.
type Conn interface {
	Get(path string, watch bool) ([]byte, *zk.Stat, error)
	Children(path string, watch bool) ([]string, error)
	Exists(path string, watch bool) (*zk.Stat, error) // nil: no such node

	// Multi does all of ops (*zk.CreateRequest, SetDataRequest, DeleteRequest, CheckVersionRequest) or none. If an operation was
	// refused, its result has an error and err is nil. If err is not nil, nobody knows whether they were done.
	Multi(ops ...any) ([]zk.MultiResponse, error)

	SessionID() int64
	Close()
}

// Dialer opens a session. events is called, one call at a time and without blocking it for long, for every watch that fires, with
// zk.StateExpired when the session is lost, with zk.StateDisconnected when its connection is, and with zk.StateHasSession when it has another. Calls may come before Dialer returns.
type Dialer func(ctx context.Context, events func(zk.Event)) (Conn, error)

// Dial reaches servers named as in zookeeper.connect, host:port,…/chroot. The session ends when the servers have not heard of us for timeout.
func Dial(connect string, timeout time.Duration) Dialer {
	hosts, root, _ := strings.Cut(connect, "/")
	if root = strings.TrimSuffix(root, "/"); root != "" {
		root = "/" + root
	}
	return dialer(connect, strings.Split(hosts, ","), root, timeout, net.DialTimeout)
}

// DialIn reaches a server in this process through its connect.
func DialIn(connect func() (net.Conn, error), timeout time.Duration) Dialer {
	return dialer("the built-in service", []string{"127.0.0.1:1"}, "", timeout, func(string, string, time.Duration) (net.Conn, error) { return connect() })
}

func dialer(name string, hosts []string, root string, timeout time.Duration, dial zk.Dialer) Dialer {
	return func(ctx context.Context, events func(zk.Event)) (Conn, error) {
		c := &realConn{root: root, events: events, armed: map[watchOf]bool{}, up: make(chan struct{}), made: make(chan struct{})}
		conn, _, err := zk.Connect(hosts, timeout, zk.WithEventCallback(c.event), zk.WithLogInfo(false), zk.WithLogger(silent{}), zk.WithDialer(dial))
		if err != nil {
			return nil, fmt.Errorf("coordination at %s: %w", name, err)
		}
		c.conn = conn
		close(c.made)
		select {
		case <-c.up:
		case <-ctx.Done():
			conn.Close()
			return nil, fmt.Errorf("coordination at %s does not answer: %w", name, context.Cause(ctx))
		}
		if err := c.makeRoot(); err != nil {
			conn.Close()
			return nil, fmt.Errorf("coordination at %s: %w", name, err)
		}
		return c, nil
	}
}

// silent drops what the client library logs: what matters of it comes to us as events and errors.
type silent struct{}

func (silent) Printf(string, ...any) {}

// realConn is a Conn over go-zookeeper. That library opens another session by itself when one is lost; this type shows only the first.
type realConn struct {
	conn   *zk.Conn
	root   string // chroot, "" = none
	events func(zk.Event)
	lost   atomic.Bool
	made   chan struct{} // closed when conn is set

	once    sync.Once
	session int64         // the first session's id; the library's own changes when it opens another
	up      chan struct{} // closed when session is known

	mu    sync.Mutex
	armed map[watchOf]bool // the library keeps one channel for each call, so each watch is asked for once
}

type watchOf struct {
	path string
	kind zk.EventType // data, children or (exists) created
}

// event is called by the library's own goroutine.
func (c *realConn) event(e zk.Event) {
	<-c.made // the library calls from another goroutine, at times before Connect has returned
	if e.Type == zk.EventSession {
		switch e.State {
		case zk.StateHasSession:
			again := true
			c.once.Do(func() {
				c.session = c.conn.SessionID()
				close(c.up)
				again = false
			})
			if again { // another connection; what happened between the two, the library may miss (it reads its last zxid beside answers that raise it)
				c.events(zk.Event{Type: zk.EventSession, State: zk.StateHasSession})
			}
		case zk.StateDisconnected:
			c.events(zk.Event{Type: zk.EventSession, State: zk.StateDisconnected})
		case zk.StateExpired, zk.StateAuthFailed:
			c.lost.Store(true)
			c.events(zk.Event{Type: zk.EventSession, State: zk.StateExpired})
		}
		return
	}
	if e.Type == zk.EventNotWatching {
		return // the session is lost, which is told above
	}
	e.Path = c.inside(e.Path)
	c.mu.Lock()
	switch e.Type {
	case zk.EventNodeDeleted:
		delete(c.armed, watchOf{e.Path, zk.EventNodeDataChanged})
		delete(c.armed, watchOf{e.Path, zk.EventNodeChildrenChanged})
		delete(c.armed, watchOf{e.Path, zk.EventNodeCreated})
	case zk.EventNodeChildrenChanged:
		delete(c.armed, watchOf{e.Path, zk.EventNodeChildrenChanged})
	default:
		delete(c.armed, watchOf{e.Path, zk.EventNodeDataChanged})
		delete(c.armed, watchOf{e.Path, zk.EventNodeCreated})
	}
	c.mu.Unlock()
	c.events(e)
}

func (c *realConn) inside(path string) string {
	if path = strings.TrimPrefix(path, c.root); path == "" {
		return "/"
	}
	return path
}

// arm says whether a watch is to be asked for now.
func (c *realConn) arm(path string, kind zk.EventType) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	w := watchOf{path, kind}
	if c.armed[w] {
		return false
	}
	c.armed[w] = true
	return true
}

func (c *realConn) disarm(path string, kind zk.EventType) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.armed, watchOf{path, kind})
}

var errLost = zk.ErrSessionExpired

func (c *realConn) Get(path string, watch bool) (data []byte, stat *zk.Stat, err error) {
	if c.lost.Load() {
		return nil, nil, errLost
	}
	if watch && c.arm(path, zk.EventNodeDataChanged) {
		if data, stat, _, err = c.conn.GetW(c.root + path); err != nil {
			c.disarm(path, zk.EventNodeDataChanged)
		}
		return data, stat, err
	}
	return c.conn.Get(c.root + path)
}

func (c *realConn) Children(path string, watch bool) (names []string, err error) {
	if c.lost.Load() {
		return nil, errLost
	}
	if watch && c.arm(path, zk.EventNodeChildrenChanged) {
		if names, _, _, err = c.conn.ChildrenW(c.root + path); err != nil {
			c.disarm(path, zk.EventNodeChildrenChanged)
		}
		return names, err
	}
	names, _, err = c.conn.Children(c.root + path)
	return names, err
}

func (c *realConn) Exists(path string, watch bool) (stat *zk.Stat, err error) {
	if c.lost.Load() {
		return nil, errLost
	}
	var there bool
	if watch && c.arm(path, zk.EventNodeCreated) {
		if there, stat, _, err = c.conn.ExistsW(c.root + path); err != nil {
			c.disarm(path, zk.EventNodeCreated)
		}
	} else {
		there, stat, err = c.conn.Exists(c.root + path)
	}
	if !there {
		stat = nil
	}
	return stat, err
}

func (c *realConn) Multi(ops ...any) ([]zk.MultiResponse, error) {
	if c.lost.Load() {
		return nil, errLost
	}
	if c.root != "" {
		ops = c.outside(ops)
	}
	results, err := c.conn.Multi(ops...)
	if err == nil && len(results) != len(ops) {
		return nil, fmt.Errorf("%d operations have %d results", len(ops), len(results))
	}
	return results, err
}

// outside puts the root before the operations' paths.
func (c *realConn) outside(ops []any) []any {
	out := make([]any, len(ops))
	for i, op := range ops {
		switch op := op.(type) {
		case *zk.CreateRequest:
			moved := *op
			moved.Path, out[i] = c.root+op.Path, &moved
		case *zk.SetDataRequest:
			moved := *op
			moved.Path, out[i] = c.root+op.Path, &moved
		case *zk.DeleteRequest:
			moved := *op
			moved.Path, out[i] = c.root+op.Path, &moved
		case *zk.CheckVersionRequest:
			moved := *op
			moved.Path, out[i] = c.root+op.Path, &moved
		default:
			out[i] = op
		}
	}
	return out
}

// makeRoot makes the nodes of the chroot, as Kafka does.
func (c *realConn) makeRoot() error {
	for i := 1; i <= len(c.root); i++ {
		if i < len(c.root) && c.root[i] != '/' {
			continue
		}
		if _, err := c.conn.Create(c.root[:i], nil, 0, world); err != nil && !errors.Is(err, zk.ErrNodeExists) {
			return err
		}
	}
	return nil
}

func (c *realConn) SessionID() int64 { return c.session }

func (c *realConn) Close() {
	c.lost.Store(true)
	c.conn.Close()
}
