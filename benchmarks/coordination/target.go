package main

import (
	"flag"
	"fmt"
	"net"
	"net/http"
	_ "net/http/pprof" // for -pprof
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"millrace/benchmarks/peers/report"
	"millrace/benchmarks/process"
	"millrace/coord/zk/server"
	"millrace/coord/zk/store"
	"millrace/engine"
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

func (t *target) startOurs() error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	t.snaps = filepath.Join(t.dir, "snapshots")
	t.p, t.addr, err = process.StartReady(t.name, t.o.dir, self, "serve", "-dir", t.dir, "-pprof", t.o.pprof)
	return err
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

// serve is our server as a process: coord/zk/server over a store in -dir, until SIGTERM.
func serve(args []string) error {
	f := flag.NewFlagSet("serve", flag.ExitOnError)
	dir := f.String("dir", "", "folder of log and snapshots")
	profiles := f.String("pprof", "", "address for profiles")
	f.Parse(args)
	if *profiles != "" {
		go http.ListenAndServe(*profiles, nil) // ends with the process
	}
	log, err := engine.OpenLog(filepath.Join(*dir, "log-0"), engine.LogOptions{Config: store.LogConfig()})
	if err != nil {
		return err
	}
	defer log.Close()
	st, err := store.Open(log, store.Options{Dir: filepath.Join(*dir, "snapshots")})
	if err != nil {
		return err
	}
	defer st.Close()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	s, err := server.Start(server.Config{Listener: l, Store: st, Secret: []byte("benchmark"), MaxPerHost: -1, LeanMemory: true})
	if err != nil {
		return err
	}
	defer s.Close()
	fmt.Printf("ready listeners=PLAINTEXT://%s\n", s.Addr())
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM, os.Interrupt)
	<-stop
	return s.Err()
}
