package zookeeper

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"millrace/tools/compat/harness"
)

// line is the way to a server, which can be cut.
type line struct {
	sync.Mutex
	conn net.Conn
	down bool
}

func (l *line) dial(network, addr string, timeout time.Duration) (net.Conn, error) {
	l.Lock()
	defer l.Unlock()
	if l.down {
		return nil, errors.New("the line is down")
	}
	conn, err := net.DialTimeout(network, addr, timeout)
	l.conn = conn
	return conn, err
}

// cut ends the connection; down keeps the next from being made.
func (l *line) cut(down bool) {
	l.Lock()
	defer l.Unlock()
	if l.down = down; l.conn != nil {
		l.conn.Close()
	}
}

type quietLog struct{}

func (quietLog) Printf(string, ...any) {}

// goClient is a session of go-zookeeper and what it was told of the session's states.
func goClient(addr string, timeout time.Duration, l *line) (*zk.Conn, <-chan zk.Event, error) {
	c, events, err := zk.Connect([]string{addr}, timeout, zk.WithLogInfo(false), zk.WithLogger(quietLog{}), zk.WithDialer(l.dial))
	if err != nil {
		return nil, nil, err
	}
	return c, events, until(events, func(e zk.Event) bool { return e.State == zk.StateHasSession })
}

// until waits for an event.
func until(events <-chan zk.Event, want func(zk.Event) bool) error {
	limit := time.After(time.Minute)
	for {
		select {
		case e := <-events:
			if want(e) {
				return nil
			}
		case <-limit:
			return errors.New("an event did not come within a minute")
		}
	}
}

var open = zk.WorldACL(zk.PermAll)

// goZookeeper does with go-zookeeper what our controller and most services in Go do. Its own tests start the servers they need, so they are not run.
func goZookeeper(e *harness.Env, s *target) error {
	l := &line{}
	c, events, err := goClient(s.addr, 4*time.Second, l)
	if err != nil {
		return err
	}
	defer c.Close()
	other, _, err := goClient(s.addr, 20*time.Second, &line{})
	if err != nil {
		return err
	}
	defer other.Close()
	for _, part := range []struct {
		name string
		do   func() error
	}{
		{"nodes", func() error { return goNodes(c) }},
		{"multi", func() error { return goMulti(c) }},
		{"auth", func() error { return goAuth(c, other) }},
		{"reconnect", func() error { return goReconnect(c, other, events, l) }},
		{"expiry", func() error { return goExpiry(c, other, events, l) }},
	} {
		if err := part.do(); err != nil {
			return fmt.Errorf("%s: %w", part.name, err)
		}
	}
	return nil
}

func goNodes(c *zk.Conn) error {
	if _, err := c.Create("/go", []byte("1"), 0, open); err != nil {
		return err
	}
	for want := range 3 {
		got, err := c.Create("/go/s-", nil, zk.FlagSequence, open)
		if err != nil || got != fmt.Sprintf("/go/s-%010d", want) {
			return fmt.Errorf("sequential: %q, %w", got, err)
		}
	}
	names, stat, err := c.Children("/go")
	if slices.Sort(names); err != nil || len(names) < 3 || stat.NumChildren != int32(len(names)) {
		return fmt.Errorf("children: %v, %w", names, err)
	}
	if stat, err = c.Set("/go", []byte("2"), 0); err != nil || stat.Version != 1 {
		return fmt.Errorf("set: %+v, %w", stat, err)
	}
	if _, err := c.Set("/go", nil, 0); !errors.Is(err, zk.ErrBadVersion) {
		return fmt.Errorf("set of an old version: %w", err)
	}
	if err := c.Delete("/go", -1); !errors.Is(err, zk.ErrNotEmpty) {
		return fmt.Errorf("delete of a node with children: %w", err)
	}
	_, err = c.Sync("/go")
	return err
}

func goMulti(c *zk.Conn) error {
	_, err := c.Multi(&zk.CreateRequest{Path: "/go/m", Acl: open}, &zk.SetDataRequest{Path: "/go/m", Data: []byte("x"), Version: 0}, &zk.CheckVersionRequest{Path: "/go/m", Version: 1})
	if err != nil {
		return err
	}
	res, err := c.Multi(&zk.DeleteRequest{Path: "/go/m", Version: 1}, &zk.CheckVersionRequest{Path: "/go", Version: 99})
	if err == nil && (len(res) != 2 || !errors.Is(res[1].Error, zk.ErrBadVersion)) || err != nil && !errors.Is(err, zk.ErrBadVersion) {
		return fmt.Errorf("a multi that fails: %+v, %w", res, err)
	}
	if there, _, err := c.Exists("/go/m"); err != nil || !there {
		return fmt.Errorf("a failed multi has done something: %v, %w", there, err)
	}
	return nil
}

func goAuth(c, other *zk.Conn) error {
	if err := c.AddAuth("digest", []byte("user:pw")); err != nil {
		return err
	}
	if _, err := c.Create("/go/mine", []byte("x"), 0, zk.DigestACL(zk.PermAll, "user", "pw")); err != nil {
		return err
	}
	if _, _, err := other.Get("/go/mine"); !errors.Is(err, zk.ErrNoAuth) {
		return fmt.Errorf("a stranger reads: %w", err)
	}
	acl, _, err := c.GetACL("/go/mine")
	if err != nil || len(acl) != 1 || !strings.HasPrefix(acl[0].ID, "user:") {
		return fmt.Errorf("ACL: %v, %w", acl, err)
	}
	_, _, err = c.Get("/go/mine")
	return err
}

// goReconnect cuts the connection: session, ephemeral node, identities and watches must be there behind the next.
func goReconnect(c, other *zk.Conn, events <-chan zk.Event, l *line) error {
	if _, err := c.Create("/go/eph", nil, zk.FlagEphemeral, open); err != nil {
		return err
	}
	_, _, data, err := c.GetW("/go")
	if err != nil {
		return err
	}
	_, _, made, err := c.ExistsW("/go/later")
	if err != nil {
		return err
	}
	session := c.SessionID()
	l.cut(true)
	if _, err := other.Create("/go/later", nil, 0, open); err != nil { // while nobody could be told
		return err
	}
	l.cut(false)
	if err := until(events, func(e zk.Event) bool { return e.State == zk.StateHasSession }); err != nil {
		return err
	}
	if c.SessionID() != session {
		return fmt.Errorf("another session: 0x%x, was 0x%x", c.SessionID(), session)
	}
	if err := until(made, func(e zk.Event) bool { return e.Type == zk.EventNodeCreated }); err != nil {
		return fmt.Errorf("what happened meanwhile: %w", err)
	}
	if _, err := other.Set("/go", []byte("3"), -1); err != nil {
		return err
	}
	if err := until(data, func(e zk.Event) bool { return e.Type == zk.EventNodeDataChanged }); err != nil {
		return fmt.Errorf("what happened afterwards: %w", err)
	}
	if there, _, err := other.Exists("/go/eph"); err != nil || !there {
		return fmt.Errorf("the ephemeral node is gone: %w", err)
	}
	_, _, err = c.Get("/go/mine") // needs the identity
	return err
}

// goExpiry keeps the client away for longer than its time-out.
func goExpiry(c, other *zk.Conn, events <-chan zk.Event, l *line) error {
	there, _, gone, err := other.ExistsW("/go/eph")
	if err != nil || !there {
		return fmt.Errorf("the ephemeral node: %v, %w", there, err)
	}
	l.cut(true)
	if err := until(gone, func(e zk.Event) bool { return e.Type == zk.EventNodeDeleted }); err != nil {
		return fmt.Errorf("the ephemeral node stays: %w", err)
	}
	l.cut(false)
	return until(events, func(e zk.Event) bool { return e.State == zk.StateExpired })
}
