package main

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"millrace/benchmarks/peers/report"
	"millrace/benchmarks/process"
	"millrace/tools/compat/harness"
	"millrace/tools/compat/zookeeper"
)

// target is a system under test.
type target struct {
	name  string
	dir   string // its data
	snaps string // where its snapshots are
	addr  string
	p     *process.Process
	o     options
}

// startAll starts every system that was asked for, with no data, and warms it up.
func startAll(o options) ([]*target, error) {
	var all []*target
	for _, name := range o.targets {
		t := &target{name: name, dir: filepath.Join(o.dir, name), o: o}
		if err := os.MkdirAll(t.dir, 0o755); err != nil {
			return nil, err
		}
		if err := t.start(); err != nil {
			return nil, err
		}
		all = append(all, t)
	}
	return all, nil
}

// start returns when the server has opened a session.
func (t *target) start() error {
	var err error
	switch t.name {
	case report.Synced:
		err = t.startOurs()
	case report.ZooKeeper:
		err = t.startZooKeeper()
	default:
		err = fmt.Errorf("-targets: there is no %q", t.name)
	}
	if err != nil {
		return err
	}
	for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(2 * time.Millisecond) {
		c, err := dial(t.addr)
		if err == nil {
			return c.closeSession()
		}
		select {
		case <-t.p.Ended():
			return fmt.Errorf("%s ended; its log says: %s", t.name, t.p.LastWords())
		default:
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%s opens no session: %w; its log says: %s", t.name, err, t.p.LastWords())
		}
	}
}

// startOurs runs what a user runs: `millrace coordinator`, but for the limit on connections from one address.
func (t *target) startOurs() error {
	t.snaps = filepath.Join(t.dir, "snapshots")
	args := []string{"coordinator", "--log-level", "warn", "--override", "dataDir=" + t.dir, "--override", "clientPort=0", "--override", "maxClientCnxns=0"}
	if t.o.pprof != "" {
		args = append(args, "--pprof", t.o.pprof)
	}
	p, ready, err := process.Start(t.name, t.o.dir, nil, t.o.millrace, args...)
	if err != nil {
		return err
	}
	t.p = p
	select {
	case line := <-ready:
		_, rest, _ := strings.Cut(line, "coordinator=")
		t.addr, _, _ = strings.Cut(rest, " ")
	case <-time.After(2 * time.Minute):
	}
	if t.addr == "" {
		return fmt.Errorf("%s did not get ready; its log ends: %s", t.name, p.LastWords())
	}
	return nil
}

func (t *target) startZooKeeper() error {
	jars, err := harness.NeedJava(t.o.cache, zookeeper.Libs)
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	t.addr, t.snaps = l.Addr().String(), filepath.Join(t.dir, "version-2")
	_, port, _ := net.SplitHostPort(t.addr)
	l.Close()
	t.p, _, err = process.Start(t.name, t.o.dir, nil, "java", "-Xmx1000m", "-Dorg.slf4j.simpleLogger.defaultLogLevel=error", "-Dzookeeper.admin.enableServer=false",
		"-cp", filepath.Join(jars, "*"), "org.apache.zookeeper.server.ZooKeeperServerMain", port, t.dir, "2000", "0") // tickTime, maxClientCnxns
	return err
}

func javaVersion() string {
	out, err := exec.Command("java", "-version").CombinedOutput()
	if err != nil {
		return "no java"
	}
	first, _, _ := strings.Cut(string(out), "\n")
	return first
}
