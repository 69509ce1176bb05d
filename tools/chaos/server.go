package main

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// serverBinary is the program of the part kill.
var serverBinary string

// server is a `millrace serve` process that can be killed and started again at the same address.
type server struct {
	address   string
	args      []string
	openFiles int // that the process may have open; 0: as many as this one
	said      *tail
	cmd       *exec.Cmd
}

func newServer(overrides []string) (*server, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	defer l.Close()
	s := &server{address: l.Addr().String(), said: &tail{}, args: []string{"serve"}}
	s.override("listeners=PLAINTEXT://"+s.address, "admin.listener=")
	s.override(overrides...)
	return s, nil
}

// override changes settings from the next start on.
func (s *server) override(settings ...string) {
	for _, o := range settings {
		s.args = append(s.args, "--override", o)
	}
}

// start returns when clients are accepted.
func (s *server) start() {
	s.cmd = exec.Command(serverBinary, s.args...)
	if s.openFiles > 0 { // the shell becomes the server
		limited := append([]string{"-c", fmt.Sprintf(`ulimit -n %d && exec "$0" "$@"`, s.openFiles), serverBinary}, s.args...)
		s.cmd = exec.Command("sh", limited...)
	}
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	s.cmd.Stderr = s.said
	out, err := s.cmd.StdoutPipe()
	if err == nil {
		err = s.cmd.Start()
	}
	if err != nil {
		failf("start of %s: %v", serverBinary, err)
	}
	ready := make(chan bool, 1)
	go func() { // ends with the process
		for lines := bufio.NewScanner(out); lines.Scan(); {
			if strings.HasPrefix(lines.Text(), "ready ") {
				ready <- true
			}
		}
		close(ready)
	}()
	select {
	case ok := <-ready:
		if !ok {
			failf("the server ended while it started")
		}
	case <-time.After(time.Minute):
		failf("the server is not ready after a minute")
	}
}

// end sends a signal and waits for the end. Whoever ends by itself before, or not cleanly on SIGTERM, is a finding.
func (s *server) end(signal os.Signal) {
	if s.cmd == nil {
		return
	}
	err := s.cmd.Process.Signal(signal)
	werr := s.cmd.Wait()
	s.cmd = nil
	if err != nil {
		failf("the server had ended by itself: %v", werr)
	}
	if signal == syscall.SIGTERM && werr != nil {
		failf("the server's clean stop: %v", werr)
	}
}

// close kills what is left.
func (s *server) close() {
	if s.cmd != nil {
		_ = s.cmd.Process.Kill()
		_ = s.cmd.Wait()
	}
}

func (s *server) String() string { return fmt.Sprintf("the server's last lines:\n%s", s.said) }
