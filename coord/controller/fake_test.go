package controller

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"
)

// tree is a ZooKeeper in memory, as far as this package uses one, with faults.
type tree struct {
	mu       sync.Mutex
	nodes    map[string]*fakeNode
	zxid     int64
	sessions int64
	conns    map[int64]*fakeConn
	away     bool     // no session can be had, no call answered
	trace    []string // changes, as the real dump has them
}

type fakeNode struct {
	data []byte
	stat zk.Stat
	next int // of sequential children
}

func newTree() *tree {
	return &tree{nodes: map[string]*fakeNode{"/": {}}, conns: map[int64]*fakeConn{}}
}

// fault says what happens at the n-th call of a session's life (reads count too).
type fault struct {
	at   int
	kind string // "before", "after": the answer is lost; "expire"; "kill before", "kill after": from then on nothing works
}

type fakeConn struct {
	t      *tree
	id     int64
	events func(zk.Event)
	plan   *plan
	data   map[string]bool // watches
	kids   map[string]bool
	over   bool
}

// plan is the fault of one process, counted over all of its sessions.
type plan struct {
	mu    sync.Mutex
	fault fault
	n     int
	fired bool
	dead  bool
}

// dialer opens sessions for one process.
func (t *tree) dialer(p *plan) Dialer {
	if p == nil {
		p = &plan{fault: fault{at: -1}}
	}
	return func(ctx context.Context, events func(zk.Event)) (Conn, error) {
		t.mu.Lock()
		defer t.mu.Unlock()
		p.mu.Lock()
		defer p.mu.Unlock()
		if t.away || p.dead {
			return nil, errors.New("no server answers")
		}
		t.sessions++
		c := &fakeConn{t: t, id: t.sessions, events: events, plan: p, data: map[string]bool{}, kids: map[string]bool{}}
		t.conns[c.id] = c
		return c, nil
	}
}

// call wraps every call of a session with its faults. do runs under the tree's lock and returns what fires.
func (c *fakeConn) call(do func() ([]func(), error)) error {
	c.t.mu.Lock()
	c.plan.mu.Lock()
	n := c.plan.n
	c.plan.n++
	hit := n == c.plan.fault.at
	if hit {
		c.plan.fired = true
	}
	kind := ""
	if hit {
		kind = c.plan.fault.kind
	}
	if strings.HasPrefix(kind, "kill") {
		c.plan.dead = true
	}
	dead := c.plan.dead && kind != "kill after"
	c.plan.mu.Unlock()
	var fire []func()
	var err error
	switch {
	case dead || c.t.away || kind == "before":
		err = zk.ErrConnectionClosed
	case c.over:
		err = zk.ErrSessionExpired
	case kind == "expire":
		fire = c.t.expire(c.id)
		err = zk.ErrSessionExpired
	default:
		fire, err = do()
		if kind == "after" || kind == "kill after" {
			err = zk.ErrConnectionClosed
		}
	}
	c.t.mu.Unlock()
	for _, f := range fire {
		f()
	}
	return err
}

// expire ends a session: its ephemeral nodes go. Caller holds mu.
func (t *tree) expire(id int64) (fire []func()) {
	c := t.conns[id]
	if c == nil || c.over {
		return nil
	}
	c.over = true
	delete(t.conns, id)
	for _, p := range slices.Sorted(maps.Keys(t.nodes)) {
		if t.nodes[p].stat.EphemeralOwner == id {
			t.zxid++
			fire = append(fire, t.remove(p)...)
		}
	}
	events := c.events
	return append(fire, func() { events(zk.Event{Type: zk.EventSession, State: zk.StateExpired}) })
}

// Expire ends all sessions.
func (t *tree) expireAll() {
	t.mu.Lock()
	var fire []func()
	for _, id := range slices.Sorted(maps.Keys(t.conns)) {
		fire = append(fire, t.expire(id)...)
	}
	t.mu.Unlock()
	for _, f := range fire {
		f()
	}
}

func (c *fakeConn) SessionID() int64 { return c.id }

func (c *fakeConn) Close() {
	c.t.mu.Lock()
	c.plan.mu.Lock()
	dead := c.plan.dead
	c.plan.mu.Unlock()
	var fire []func()
	if !dead { // a killed process closes nothing
		fire = c.t.expire(c.id)
	}
	c.t.mu.Unlock()
	for _, f := range fire {
		f()
	}
}

func (c *fakeConn) Get(p string, watch bool) (data []byte, stat *zk.Stat, err error) {
	err = c.call(func() ([]func(), error) {
		n := c.t.nodes[p]
		if n == nil {
			return nil, zk.ErrNoNode
		}
		if watch {
			c.data[p] = true
		}
		s := n.stat
		data, stat = n.data, &s
		return nil, nil
	})
	if err != nil {
		return nil, nil, err
	}
	return data, stat, nil
}

func (c *fakeConn) Exists(p string, watch bool) (stat *zk.Stat, err error) {
	err = c.call(func() ([]func(), error) {
		if watch {
			c.data[p] = true
		}
		if n := c.t.nodes[p]; n != nil {
			s := n.stat
			stat = &s
		}
		return nil, nil
	})
	if err != nil {
		return nil, err
	}
	return stat, nil
}

func (c *fakeConn) Children(p string, watch bool) (names []string, err error) {
	err = c.call(func() ([]func(), error) {
		if c.t.nodes[p] == nil {
			return nil, zk.ErrNoNode
		}
		if watch {
			c.kids[p] = true
		}
		names = c.t.children(p)
		return nil, nil
	})
	if err != nil {
		return nil, err
	}
	return names, nil
}

func (t *tree) children(p string) (names []string) {
	prefix := strings.TrimSuffix(p, "/") + "/"
	for other := range t.nodes {
		if name, ok := strings.CutPrefix(other, prefix); ok && name != "" && !strings.Contains(name, "/") {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

func (c *fakeConn) Multi(ops ...any) (results []zk.MultiResponse, err error) {
	err = c.call(func() ([]func(), error) {
		before, zxid := c.t.copy(), c.t.zxid
		traced := len(c.t.trace)
		c.t.zxid++
		var fire []func()
		results = make([]zk.MultiResponse, len(ops))
		for i, op := range ops {
			more, r := c.t.apply(c, op)
			fire = append(fire, more...)
			if results[i] = r; r.Error != nil {
				c.t.nodes, c.t.zxid, c.t.trace = before, zxid, c.t.trace[:traced]
				for j := range results {
					if j != i {
						results[j] = zk.MultiResponse{}
					}
					if j > i {
						results[j].Error = zk.ErrUnknown
					}
				}
				return nil, nil
			}
		}
		return fire, nil
	})
	if err != nil {
		return nil, err
	}
	return results, nil
}

// copy is for taking a multi back. Nodes are replaced, never changed.
func (t *tree) copy() map[string]*fakeNode { return maps.Clone(t.nodes) }

func (t *tree) apply(c *fakeConn, op any) ([]func(), zk.MultiResponse) {
	no := func(err error) ([]func(), zk.MultiResponse) { return nil, zk.MultiResponse{Error: err} }
	switch op := op.(type) {
	case *zk.CreateRequest:
		p := op.Path
		parent := t.nodes[path.Dir(p)]
		if parent == nil {
			return no(zk.ErrNoNode)
		}
		if op.Flags&zk.FlagSequence != 0 {
			p += fmt.Sprintf("%010d", parent.next)
		}
		if t.nodes[p] != nil {
			return no(zk.ErrNodeExists)
		}
		up := *parent
		up.next++
		t.nodes[path.Dir(p)] = &up
		n := &fakeNode{data: op.Data, stat: zk.Stat{Czxid: t.zxid, Mzxid: t.zxid, Ctime: time.Now().UnixMilli()}}
		kind := ""
		if op.Flags&zk.FlagEphemeral != 0 {
			n.stat.EphemeralOwner, kind = c.id, " ephemeral"
		}
		t.nodes[p] = n
		t.trace = append(t.trace, fmt.Sprintf("Created %s%s = %s", p, kind, text(op.Data)))
		return append(t.fire(p, zk.EventNodeCreated, true), t.fire(path.Dir(p), zk.EventNodeChildrenChanged, false)...), zk.MultiResponse{String: p}
	case *zk.SetDataRequest:
		n := t.nodes[op.Path]
		if n == nil {
			return no(zk.ErrNoNode)
		}
		if op.Version != -1 && op.Version != n.stat.Version {
			return no(zk.ErrBadVersion)
		}
		next := *n
		next.data = op.Data
		next.stat.Version++
		next.stat.Mzxid = t.zxid
		t.nodes[op.Path] = &next
		t.trace = append(t.trace, fmt.Sprintf("DataChanged %s v%d = %s", op.Path, next.stat.Version, text(op.Data)))
		s := next.stat
		return t.fire(op.Path, zk.EventNodeDataChanged, true), zk.MultiResponse{Stat: &s}
	case *zk.DeleteRequest:
		n := t.nodes[op.Path]
		switch {
		case n == nil:
			return no(zk.ErrNoNode)
		case op.Version != -1 && op.Version != n.stat.Version:
			return no(zk.ErrBadVersion)
		case len(t.children(op.Path)) > 0:
			return no(zk.ErrNotEmpty)
		}
		return t.remove(op.Path), zk.MultiResponse{}
	case *zk.CheckVersionRequest:
		n := t.nodes[op.Path]
		if n == nil {
			return no(zk.ErrNoNode)
		}
		if op.Version != -1 && op.Version != n.stat.Version {
			return no(zk.ErrBadVersion)
		}
		return nil, zk.MultiResponse{}
	}
	return no(zk.ErrAPIError)
}

func (t *tree) remove(p string) []func() {
	delete(t.nodes, p)
	t.trace = append(t.trace, "Deleted "+p)
	fire := t.fire(p, zk.EventNodeDeleted, true)
	fire = append(fire, t.fire(p, zk.EventNodeDeleted, false)...)
	return append(fire, t.fire(path.Dir(p), zk.EventNodeChildrenChanged, false)...)
}

// fire takes the watches of a path.
func (t *tree) fire(p string, kind zk.EventType, data bool) (out []func()) {
	for _, c := range t.conns {
		watches := c.kids
		if data {
			watches = c.data
		}
		if watches[p] {
			delete(watches, p)
			events := c.events
			out = append(out, func() { events(zk.Event{Type: kind, State: zk.StateHasSession, Path: p}) })
		}
	}
	return out
}

func text(data []byte) string {
	if data == nil {
		return "null"
	}
	return string(data)
}

// act does operations as a tool would.
func (t *tree) act(ops ...any) error {
	conn, err := t.dialer(nil)(context.Background(), func(zk.Event) {})
	if err != nil {
		return err
	}
	defer conn.Close()
	_, err = multi(conn, ops...)
	return err
}

// read is a node's data; "" if there is none.
func (t *tree) read(p string) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if n := t.nodes[p]; n != nil {
		return text(n.data)
	}
	return ""
}

func (t *tree) paths() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Sorted(maps.Keys(t.nodes))
}
