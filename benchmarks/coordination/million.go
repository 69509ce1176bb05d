package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"millrace/benchmarks/peers/report"
	"millrace/benchmarks/process"
	"millrace/coord/zk/proto"
)

const (
	perDir  = 1000
	loaders = 10 // clients
	watches = 100_000
)

func znode(i int) string { return fmt.Sprintf("/load/d%05d/node-%07d", i/perDir, i) }

// measureMillion has one system at a time on the machine.
func measureMillion(o options, s *report.Section) error {
	for _, name := range o.targets {
		one := o
		one.targets = []string{name}
		targets, err := startAll(one)
		if err != nil {
			return err
		}
		if err := targets[0].million(s); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		process.KillAll()
	}
	for _, row := range s.Rows {
		fmt.Println(line(row))
	}
	return nil
}

func (t *target) million(s *report.Section) error {
	n := t.o.znodes
	add := func(row string, v report.Values) { s.Row(row).Add(t.name, v) }
	begun := time.Now()
	if err := t.fill(n); err != nil {
		return err
	}
	took := time.Since(begun).Seconds()
	add(fmt.Sprintf("%d znodes created, 10 clients, 100 in flight each", n), report.Values{report.Seconds: took})
	time.Sleep(5 * time.Second) // a snapshot ends, garbage is collected
	add(fmt.Sprintf("memory with %d znodes, created", n), report.Values{report.RSS: t.memory()})
	if err := t.snapshot(add); err != nil {
		return err
	}
	for range t.o.rounds {
		t.p.Kill()
		begun := time.Now()
		if err := t.start(); err != nil {
			return err
		}
		if err := t.look(n - 1); err != nil {
			return err
		}
		add("restart after SIGKILL until a znode is read", report.Values{report.Seconds: time.Since(begun).Seconds(), report.CPURequest: float64(t.p.CPU().Microseconds())})
		time.Sleep(3 * time.Second)
		add(fmt.Sprintf("memory with %d znodes, restarted", n), report.Values{report.RSS: t.memory()})
	}
	if err := t.whole(n); err != nil {
		return err
	}
	return t.watch(add, min(n, watches))
}

// fill makes folders, then n znodes.
func (t *target) fill(n int) error {
	clients, err := dialAll(t.addr, loaders)
	if err != nil {
		return err
	}
	if _, err := clients[0].do(create("/load", nil)); err != nil {
		return err
	}
	var dir, at atomic.Int64
	err = each(loaders, func(i int) error {
		return clients[i].stream(100, func() *proto.Request {
			if d := dir.Add(1) - 1; d < int64(n/perDir) {
				return create(fmt.Sprintf("/load/d%05d", d), nil)
			}
			return nil
		}, nothing)
	})
	if err != nil {
		return err
	}
	err = each(loaders, func(i int) error {
		return clients[i].stream(100, func() *proto.Request {
			if j := int(at.Add(1) - 1); j < n {
				return create(znode(j), payload(j))
			}
			return nil
		}, nothing)
	})
	return errors.Join(err, closeAll(clients))
}

func (t *target) look(i int) error {
	c, err := dial(t.addr)
	if err != nil {
		return err
	}
	res, err := c.do(&proto.Request{Op: proto.OpGetData, Path: znode(i)})
	if err := isPayload(&res, err, i); err != nil {
		return err
	}
	return c.closeSession()
}

// whole counts the tree and looks at a thousand of its znodes.
func (t *target) whole(n int) error {
	c, err := dial(t.addr)
	if err != nil {
		return err
	}
	res, err := c.do(&proto.Request{Op: proto.OpGetChildrenNum, Path: "/load"})
	if err != nil || int(res.Count) != n+n/perDir {
		return fmt.Errorf("%d znodes are there after the restarts, want %d: %v", res.Count, n+n/perDir, err)
	}
	for i := 0; i < n; i += max(1, n/1000) {
		res, err := c.do(&proto.Request{Op: proto.OpGetData, Path: znode(i)})
		if err := isPayload(&res, err, i); err != nil {
			return err
		}
	}
	return c.closeSession()
}

// stamped is when a set was answered, and how long it took.
type stamped struct{ at, took time.Duration }

// snapshot has ten clients set znodes to what they hold, until a snapshot has been begun and is whole.
func (t *target) snapshot(add func(string, report.Values)) error {
	clients, err := dialAll(t.addr, 10)
	if err != nil {
		return err
	}
	setWhile := func(during func(begun time.Time) error) ([][]stamped, error) {
		var over atomic.Bool
		all := make([][]stamped, len(clients))
		begun := time.Now()
		return all, each(len(clients)+1, func(i int) error {
			if i == len(clients) {
				defer over.Store(true)
				return during(begun)
			}
			j := i
			return clients[i].stream(1, func() *proto.Request {
				if over.Load() {
					return nil
				}
				j = (j + len(clients)) % t.o.znodes
				return set(znode(j), payload(j))
			}, func(q sent, _ []byte) error {
				all[i] = append(all[i], stamped{time.Since(begun), time.Since(q.at)})
				return nil
			})
		})
	}
	// A snapshot that was due already is none of what is measured.
	if _, err := setWhile(func(time.Time) error { time.Sleep(time.Second); return nil }); err != nil {
		return err
	}
	before := t.settled()
	var from, to time.Duration
	all, err := setWhile(func(begun time.Time) (err error) {
		from, to, err = t.await(before, begun)
		return err
	})
	if err != nil {
		return err
	}
	var beside, alone []time.Duration
	for _, list := range all {
		for _, s := range list {
			if s.at >= from && s.at-s.took <= to {
				beside = append(beside, s.took)
			} else if s.at < from {
				alone = append(alone, s.took)
			}
		}
	}
	add("snapshot, while 10 clients set", report.Values{report.Seconds: (to - from).Seconds()})
	for _, part := range []struct {
		row  string
		took []time.Duration
		d    time.Duration
	}{{"set of 10 clients before the snapshot", alone, from}, {"set of 10 clients beside the snapshot", beside, to - from}} {
		if len(part.took) == 0 {
			return fmt.Errorf("no set was answered: %s", part.row)
		}
		v := quantiles(part.took)
		v[report.PerSecond] = float64(len(part.took)) / part.d.Seconds()
		v[report.P999] = float64(part.took[len(part.took)*999/1000].Nanoseconds()) / 1e3
		add(part.row, v)
	}
	return closeAll(clients)
}

// newestSnapshot is the name, without the ending of an unfinished one; names sort by what is in them.
func (t *target) newestSnapshot() (newest string) {
	names, _ := filepath.Glob(filepath.Join(t.snaps, "snapshot.*"))
	for _, name := range names {
		name = strings.TrimSuffix(name, ".tmp")
		if len(name) > len(newest) || len(name) == len(newest) && name > newest {
			newest = name
		}
	}
	return newest
}

// settled waits until no snapshot has been begun for a while, and gives the newest.
func (t *target) settled() string {
	name := t.newestSnapshot()
	for since := time.Now(); time.Since(since) < 3*time.Second; time.Sleep(10 * time.Millisecond) {
		if now := t.newestSnapshot(); now != name {
			name, since = now, time.Now()
		}
	}
	return name
}

// await returns when the next snapshot was begun and when it was whole, since begun. Ours is whole, and synced, when it has its
// name; ZooKeeper writes under the name and does not sync: it is whole when nothing was written for a second.
func (t *target) await(before string, begun time.Time) (from, to time.Duration, _ error) {
	deadline := begun.Add(2 * time.Minute)
	name := before
	for ; name == before; name = t.newestSnapshot() {
		if time.Now().After(deadline) {
			return 0, 0, fmt.Errorf("no snapshot was begun within 2 minutes in %s", t.snaps)
		}
		time.Sleep(2 * time.Millisecond)
	}
	from = time.Since(begun)
	for {
		info, err := os.Stat(name)
		if err == nil && t.name == report.Synced {
			return from, time.Since(begun), nil
		}
		if err == nil && time.Since(info.ModTime()) > time.Second {
			return from, info.ModTime().Sub(begun), nil
		}
		if time.Now().After(deadline) {
			return 0, 0, fmt.Errorf("the snapshot %s was not whole within 2 minutes", name)
		}
		time.Sleep(2 * time.Millisecond)
	}
}

// watch has ten clients watch n znodes, and ten others change them all.
func (t *target) watch(add func(string, report.Values), n int) error {
	watchers, err := dialAll(t.addr, loaders)
	if err != nil {
		return err
	}
	setters, err := dialAll(t.addr, loaders)
	if err != nil {
		return err
	}
	begun := time.Now()
	part := func(i int, q func(j int) *proto.Request) func() *proto.Request {
		return func() *proto.Request {
			if i >= n {
				return nil
			}
			i += loaders
			return q(i - loaders)
		}
	}
	err = each(loaders, func(i int) error {
		return watchers[i].stream(100, part(i, func(j int) *proto.Request {
			return &proto.Request{Op: proto.OpExists, Path: znode(j), Watch: true}
		}), nothing)
	})
	if err != nil {
		return err
	}
	add(fmt.Sprintf("%d watches set", n), report.Values{report.Seconds: time.Since(begun).Seconds()})
	time.Sleep(3 * time.Second)
	add(fmt.Sprintf("memory with %d znodes and %d watches", t.o.znodes, n), report.Values{report.RSS: t.memory()})
	begun = time.Now()
	err = each(2*loaders, func(i int) error {
		if i >= loaders {
			i -= loaders
			return watchers[i].event((n - i + loaders - 1) / loaders)
		}
		return setters[i].stream(100, part(i, func(j int) *proto.Request { return set(znode(j), payload(j)) }), nothing)
	})
	if err != nil {
		return err
	}
	add(fmt.Sprintf("%d watches fired by sets, all events have come", n), report.Values{report.Seconds: time.Since(begun).Seconds()})
	return errors.Join(closeAll(watchers), closeAll(setters))
}
