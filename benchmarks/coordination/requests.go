package main

import (
	"bytes"
	"fmt"
	"time"

	"millrace/benchmarks/peers/report"
	"millrace/coord/zk/proto"
)

// payload is the data of operation i, 100 bytes.
func payload(i int) []byte { return fmt.Appendf(make([]byte, 0, 100), "%0100d", i) }

// worker is one client in one measurement of a row. What it has done is told by done alone, so it can be read back.
type worker struct {
	*client
	dir  string // its own
	made int    // requests made
	done int    // answered
	sets int    // answered sets of its own znode
	next int    // the number of the newest set
}

// row is a kind of load.
type row struct {
	name    string
	request func(w *worker) *proto.Request
	check   func(w *worker, op proto.Op, body []byte) error
	verify  func(w *worker) error // reads back
	per     int                   // requests of an operation; 0: 1
}

// node is the znode that a worker has for its own, with the data of number 0.
func (w *worker) node() string { return w.dir + "/node" }

const children = 10 // of every worker's "list"

func (w *worker) prepare() error {
	paths := []string{w.dir, w.node(), w.dir + "/list", w.dir + "/made"}
	for i := range children {
		paths = append(paths, fmt.Sprintf("%s/list/child-%d", w.dir, i), fmt.Sprintf("%s/part-%d", w.dir, i))
	}
	i := 0
	return w.stream(len(paths), func() *proto.Request {
		if i == len(paths) {
			return nil
		}
		i++
		return create(paths[i-1], payload(0))
	}, nothing)
}

func nothing(sent, []byte) error { return nil }

func create(path string, data []byte) *proto.Request {
	return &proto.Request{Op: proto.OpCreate, Path: path, Data: data, ACL: proto.OpenACL}
}

func set(path string, data []byte) *proto.Request {
	return &proto.Request{Op: proto.OpSetData, Path: path, Data: data, Version: -1}
}

func (w *worker) set() *proto.Request {
	w.next++
	return set(w.node(), payload(w.next))
}

func (w *worker) get() *proto.Request { return &proto.Request{Op: proto.OpGetData, Path: w.node()} }

func isPayload(res *proto.Result, err error, i int) error {
	if err == nil && !bytes.Equal(res.Data, payload(i)) {
		err = fmt.Errorf("read back %q, want %q", res.Data, payload(i))
	}
	return err
}

// checkNode is of gets and sets of the own znode.
func checkNode(w *worker, op proto.Op, body []byte) error {
	res, err := proto.ParseResult(op, body)
	switch {
	case err != nil:
		return err
	case op == proto.OpGetData && (res.Stat.Version != int32(w.sets) || len(res.Data) != 100):
		return fmt.Errorf("read %d bytes of version %d, after %d sets", len(res.Data), res.Stat.Version, w.sets)
	case op == proto.OpSetData:
		w.sets++
		if res.Stat.Version != int32(w.sets) {
			return fmt.Errorf("set %d made version %d", w.sets, res.Stat.Version)
		}
	}
	return nil
}

func verifyNode(w *worker) error {
	res, err := w.do(w.get())
	if err := isPayload(&res, err, w.next); err != nil {
		return err
	}
	return checkVersion(res, w.sets)
}

func checkVersion(res proto.Result, sets int) error {
	if res.Stat.Version != int32(sets) {
		return fmt.Errorf("version %d after %d sets", res.Stat.Version, sets)
	}
	return nil
}

// verifyMade counts what a worker has created and looks at some.
func verifyMade(w *worker) error {
	res, err := w.do(&proto.Request{Op: proto.OpExists, Path: w.dir + "/made"})
	if err != nil {
		return err
	}
	if int(res.Stat.NumChildren) != w.done {
		return fmt.Errorf("%d znodes are there, %d creates were answered", res.Stat.NumChildren, w.done)
	}
	for i := 1; i <= w.done; i += 1 + w.done/10 {
		res, err := w.do(&proto.Request{Op: proto.OpGetData, Path: fmt.Sprintf("%s/made/n%09d", w.dir, i)})
		if err := isPayload(&res, err, i); err != nil {
			return err
		}
	}
	return nil
}

func (w *worker) multi() *proto.Request {
	w.next++
	q := &proto.Request{Op: proto.OpMulti}
	for i := range children {
		q.Ops = append(q.Ops, *set(fmt.Sprintf("%s/part-%d", w.dir, i), payload(w.next)))
	}
	return q
}

var rows = []row{
	{name: "create", request: func(w *worker) *proto.Request {
		return create(fmt.Sprintf("%s/made/n%09d", w.dir, w.made), payload(w.made))
	}, check: func(*worker, proto.Op, []byte) error { return nil }, verify: verifyMade},
	{name: "set", request: (*worker).set, check: checkNode, verify: verifyNode},
	{name: "get", request: (*worker).get, check: checkNode, verify: verifyNode},
	{name: "exists", request: func(w *worker) *proto.Request { return &proto.Request{Op: proto.OpExists, Path: w.node()} },
		check: func(w *worker, op proto.Op, body []byte) error {
			if res, err := proto.ParseResult(op, body); err != nil || res.Stat.DataLength != 100 {
				return fmt.Errorf("exists: %+v, %v", res.Stat, err)
			}
			return nil
		}, verify: verifyNode},
	{name: "getChildren of 10", request: func(w *worker) *proto.Request {
		return &proto.Request{Op: proto.OpGetChildren, Path: w.dir + "/list"}
	}, check: func(w *worker, op proto.Op, body []byte) error {
		if res, err := proto.ParseResult(op, body); err != nil || len(res.Children) != children {
			return fmt.Errorf("getChildren: %q, %v", res.Children, err)
		}
		return nil
	}, verify: verifyNode},
	{name: "multi of 10 sets", request: (*worker).multi, check: func(w *worker, op proto.Op, body []byte) error {
		if res, err := proto.ParseResult(op, body); err != nil || len(res.Results) != children || res.Results[children-1].Err != proto.OK {
			return fmt.Errorf("multi: %+v, %v", res.Results, err)
		}
		return nil
	}, verify: func(w *worker) error {
		res, err := w.do(&proto.Request{Op: proto.OpGetData, Path: fmt.Sprintf("%s/part-%d", w.dir, children-1)})
		if err := isPayload(&res, err, w.next); err != nil {
			return err
		}
		return checkVersion(res, w.done)
	}},
	{name: "80 % get, 20 % set", request: func(w *worker) *proto.Request {
		if w.made%5 == 0 {
			return w.set()
		}
		return w.get()
	}, check: checkNode, verify: verifyNode},
	// A get that sets a watch, a set that fires it, the event.
	{name: "watch set and fired", per: 2, request: func(w *worker) *proto.Request {
		if w.made%2 == 0 {
			return w.set()
		}
		q := w.get()
		q.Watch = true
		return q
	}, check: checkNode, verify: func(w *worker) error {
		if w.events != w.sets {
			return fmt.Errorf("%d events of %d changes that were watched", w.events, w.sets)
		}
		return verifyNode(w)
	}},
}

// load is a row at a number of clients.
type load struct {
	row
	clients, window int
}

func (l load) name() string {
	if l.window > 1 {
		return fmt.Sprintf("%s, %d clients, %d in flight each", l.row.name, l.clients, l.window)
	}
	return fmt.Sprintf("%s, %s", l.row.name, plural(l.clients, "client"))
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func loads(o options) (all []load) {
	for _, r := range rows {
		if !o.rows.MatchString(r.name) {
			continue
		}
		for _, n := range o.clients {
			all = append(all, load{r, n, 1})
		}
	}
	for _, r := range rows[:3] {
		if o.rows.MatchString(r.name) {
			all = append(all, load{r, 10, 100})
		}
	}
	return all
}

func measureRequests(o options, s *report.Section) error {
	targets, err := startAll(o)
	if err != nil {
		return err
	}
	for _, t := range targets {
		c, err := dial(t.addr)
		if err != nil {
			return err
		}
		if _, err := c.do(create("/bench", nil)); err != nil {
			return err
		}
		if err := c.closeSession(); err != nil {
			return err
		}
		for i, name := range []int{0, 1, 6} { // what the JVM is to compile first: create, set, both
			if _, err := (load{rows[name], 10, 10}).run(t, fmt.Sprintf("/bench/warm-%d", i), o.warmUp/3); err != nil {
				return err
			}
		}
	}
	for n, l := range loads(o) {
		row := s.Row(l.name())
		for round := range o.rounds {
			for i := range targets {
				t := targets[(i+round)%len(targets)]
				v, err := l.run(t, fmt.Sprintf("/bench/%d-%d", n, round), o.duration)
				if err != nil {
					return fmt.Errorf("%s: %w", l.name(), err)
				}
				row.Add(t.name, v)
			}
		}
		fmt.Println(line(row))
	}
	return nil
}

// run measures l once, below a path of its own, and reads back what it has written.
func (l load) run(t *target, path string, length time.Duration) (report.Values, error) {
	clients, err := dialAll(t.addr, l.clients)
	if err != nil {
		return nil, err
	}
	if _, err := clients[0].do(create(path, nil)); err != nil {
		return nil, err
	}
	workers := make([]*worker, l.clients)
	err = each(l.clients, func(i int) error {
		workers[i] = &worker{client: clients[i], dir: fmt.Sprintf("%s/c%d", path, i)}
		return workers[i].prepare()
	})
	if err != nil {
		return nil, err
	}
	m, err := t.measure(l.clients, length, func(i int, until time.Time) ([]time.Duration, error) { return l.work(workers[i], until) })
	if err != nil {
		return nil, err
	}
	for _, w := range workers {
		if err := l.verify(w); err != nil {
			return nil, fmt.Errorf("%s: %s: %w", t.name, w.dir, err)
		}
	}
	return m.values(), closeAll(clients)
}

// work is one client's part.
func (l load) work(w *worker, until time.Time) (took []time.Duration, err error) {
	per := max(1, l.per)
	var begun time.Time // of the operation
	err = w.stream(l.window, func() *proto.Request {
		if w.made > 0 && w.made%per == 0 && !time.Now().Before(until) {
			return nil
		}
		w.made++
		return l.request(w)
	}, func(q sent, body []byte) error {
		if w.done%per == 0 {
			begun = q.at
		}
		if w.done++; w.done%per == 0 {
			took = append(took, time.Since(begun))
		}
		return l.check(w, q.op, body)
	})
	return took, err
}
