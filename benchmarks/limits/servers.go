package main

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// server is one process under test.
type server struct {
	name string // toy, millrace, or what the user called an outside address
	addr string
	pid  int
	cmd  *exec.Cmd // nil for an outside address
	dir  string
	toy  bool
}

// startServer runs a program that prints "ready … listeners=PLAINTEXT://host:port …" when it serves.
func startServer(name, dir string, toy bool, bin string, args ...string) (*server, error) {
	logFile, err := os.Create(filepath.Join(dir, name+".log"))
	if err != nil {
		return nil, err
	}
	defer logFile.Close()
	cmd := exec.Command(bin, args...)
	cmd.Stderr = logFile
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	s := &server{name: name, pid: cmd.Process.Pid, cmd: cmd, dir: dir, toy: toy}
	ready := make(chan string, 1)
	go func() { // ends with the process's output
		for sc := bufio.NewScanner(out); sc.Scan(); {
			if strings.HasPrefix(sc.Text(), "ready ") {
				ready <- sc.Text()
			}
		}
		close(ready)
	}()
	select {
	case line := <-ready:
		_, rest, ok := strings.Cut(line, "listeners=PLAINTEXT://")
		if !ok {
			s.stop()
			return nil, fmt.Errorf("%s did not get ready; its log is %s", name, logFile.Name())
		}
		s.addr, _, _ = strings.Cut(rest, " ")
		s.addr, _, _ = strings.Cut(s.addr, ",")
		return s, nil
	case <-time.After(60 * time.Second):
		s.stop()
		return nil, fmt.Errorf("%s printed no ready line within 60 s; its log is %s", name, logFile.Name())
	}
}

func startToy(dir, bin, mode string) (*server, error) {
	m := map[string]string{echo: "echo", pageCache: "page-cache", synced: "journal", syncFiles: "files"}[mode]
	return startServer("toy", dir, true, bin, "-dir", filepath.Join(dir, "toy"), "-mode", m)
}

// startMillrace serves with the durability of mode; echo rows are compared with page-cache produce.
func startMillrace(dir, bin, mode string, overrides ...string) (*server, error) {
	durability, journal := "sync", "auto"
	switch mode {
	case pageCache, echo:
		durability = "page-cache"
	case syncFiles:
		journal = "off"
	}
	args := []string{"serve"}
	for _, o := range append([]string{"listeners=PLAINTEXT://127.0.0.1:0", "admin.listener=127.0.0.1:0", "log.dirs=" + filepath.Join(dir, "millrace"),
		"millrace.durability=" + durability, "millrace.commit.journal=" + journal}, overrides...) {
		args = append(args, "--override", o)
	}
	return startServer("millrace", dir, false, bin, args...)
}

func (s *server) stop() {
	if s.cmd == nil {
		return
	}
	s.cmd.Process.Signal(syscall.SIGTERM)
	done := make(chan struct{})
	go func() { s.cmd.Wait(); close(done) }() // ends with the process
	select {
	case <-done:
	case <-time.After(20 * time.Second):
		s.cmd.Process.Kill()
		<-done
	}
}

// cpu is the processor time the server has used so far; 0 where its process id is not known.
func (s *server) cpu() time.Duration {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", s.pid))
	if err != nil {
		return 0
	}
	f := strings.Fields(string(b[strings.LastIndexByte(string(b), ')')+1:]))
	user, _ := strconv.ParseInt(f[11], 10, 64)
	sys, _ := strconv.ParseInt(f[12], 10, 64)
	return time.Duration(user+sys) * 10 * time.Millisecond // USER_HZ is 100 on Linux
}

// rss is the server's resident memory in bytes.
func rss(pid int) int64 {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(b)) {
		if v, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			kb, _ := strconv.ParseInt(strings.Fields(v)[0], 10, 64)
			return kb << 10
		}
	}
	return 0
}

// createTopic makes a topic with the given partitions; the toy makes its files at first use.
func (s *server) createTopic(name string, partitions int) error {
	if s.toy {
		return nil
	}
	req := kmsg.NewPtrCreateTopicsRequest()
	req.SetVersion(4)
	req.TimeoutMillis = 30_000
	t := kmsg.NewCreateTopicsRequestTopic()
	t.Topic, t.NumPartitions, t.ReplicationFactor = name, int32(partitions), 1
	req.Topics = append(req.Topics, t)
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	var last error
	for ctx.Err() == nil {
		body, err := roundTrip(ctx, s.addr, frame(req))
		if err == nil {
			resp := kmsg.NewPtrCreateTopicsResponse()
			resp.SetVersion(4)
			if err = resp.ReadFrom(body); err == nil {
				switch code := resp.Topics[0].ErrorCode; code {
				case 0, 36:
					return nil
				default:
					err = fmt.Errorf("creating topic %s: error code %d", name, code)
				}
			}
		}
		last = err
		time.Sleep(200 * time.Millisecond)
	}
	return last
}

// roundTrip sends one frame and returns the answer's body (response header v0 taken off).
func roundTrip(ctx context.Context, addr string, f []byte) ([]byte, error) {
	var d net.Dialer
	c, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(30 * time.Second))
	if _, err := c.Write(f); err != nil {
		return nil, err
	}
	var head [4]byte
	if _, err := io.ReadFull(c, head[:]); err != nil {
		return nil, err
	}
	b := make([]byte, binary.BigEndian.Uint32(head[:]))
	if _, err := io.ReadFull(c, b); err != nil {
		return nil, err
	}
	if len(b) < 4 {
		return nil, errors.New("an answer without a header")
	}
	return b[4:], nil
}
