package controller

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"millrace/coord/controller"
	"millrace/tools/compat/harness"
	"millrace/tools/compat/zookeeper"
)

// zkServer is one Apache ZooKeeper server.
type zkServer struct {
	addr string
	jars string
	dir  string
	cmd  *exec.Cmd
	log  bytes.Buffer
}

func startZooKeeper(cache, dir string) (*zkServer, error) {
	jars, err := harness.NeedJava(cache, zookeeper.Libs)
	if err != nil {
		return nil, err
	}
	port, err := harness.FreePort()
	if err != nil {
		return nil, err
	}
	z := &zkServer{addr: "127.0.0.1:" + port, jars: jars, dir: dir}
	return z, z.start()
}

// start runs the server over its folder and waits until it gives sessions.
func (z *zkServer) start() error {
	_, port, _ := net.SplitHostPort(z.addr)
	config := filepath.Join(z.dir, "zoo.cfg")
	text := fmt.Sprintf("tickTime=500\ndataDir=%s\nclientPort=%s\nclientPortAddress=127.0.0.1\nadmin.enableServer=false\n", filepath.Join(z.dir, "data"), port)
	if err := os.WriteFile(config, []byte(text), 0o644); err != nil {
		return err
	}
	z.cmd = exec.Command("java", "-Xmx256M", "-XX:TieredStopAtLevel=1", "-Dorg.slf4j.simpleLogger.defaultLogLevel=error", "-cp", filepath.Join(z.jars, "*"),
		"org.apache.zookeeper.server.quorum.QuorumPeerMain", config)
	z.cmd.Stdout, z.cmd.Stderr = &z.log, &z.log
	if err := z.cmd.Start(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	conn, err := controller.Dial(z.addr, 4*time.Second)(ctx, func(zk.Event) {})
	if err != nil {
		z.kill()
		return fmt.Errorf("%w: %s", err, z.log.String())
	}
	conn.Close()
	return nil
}

// kill is kill -9.
func (z *zkServer) kill() {
	_ = z.cmd.Process.Kill()
	_ = z.cmd.Wait()
}

// proxy stands between a client and the server, to part them.
type proxy struct {
	l  net.Listener
	to string

	mu    sync.Mutex
	parts bool
	conns []net.Conn
}

func newProxy(to string) (*proxy, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &proxy{l: l, to: to}
	go p.run() // ends with the listener
	return p, nil
}

func (p *proxy) run() {
	for {
		in, err := p.l.Accept()
		if err != nil {
			return
		}
		out, err := net.Dial("tcp", p.to)
		p.mu.Lock()
		if err != nil || p.parts {
			in.Close()
			if err == nil {
				out.Close()
			}
			p.mu.Unlock()
			continue
		}
		p.conns = append(p.conns, in, out)
		p.mu.Unlock()
		go copyAll(in, out) // both end with either connection
		go copyAll(out, in)
	}
}

func copyAll(to, from net.Conn) {
	_, _ = io.Copy(to, from)
	to.Close()
	from.Close()
}

// part cuts and refuses connections until it is called with false.
func (p *proxy) part(yes bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.parts = yes; yes {
		for _, c := range p.conns {
			c.Close()
		}
		p.conns = nil
	}
}

var quiet = slog.New(slog.DiscardHandler)
