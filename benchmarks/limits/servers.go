package main

import (
	"context"
	"os"
	"path/filepath"
	"time"

	"millrace/benchmarks/load"
	"millrace/benchmarks/process"
)

// server is one process under test.
type server struct {
	name string // toy, millrace, or what the user called an outside address
	addr string
	pid  int
	proc *process.Process // nil for an outside address
	toy  bool
}

// startServer runs a program that prints "ready … listeners=PLAINTEXT://host:port …" when it serves.
func startServer(name, dir string, toy bool, bin string, args ...string) (*server, error) {
	p, addr, err := process.StartReady(name, dir, bin, args...)
	if err != nil {
		return nil, err
	}
	return &server{name: name, addr: addr, pid: p.PID, proc: p, toy: toy}, nil
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
	if s.proc != nil {
		s.proc.Stop(20 * time.Second)
	}
}

// cpu is the processor time the server has used so far; 0 where its process id is not known.
func (s *server) cpu() time.Duration { return process.CPU(s.pid) }

// createTopic makes a topic with the given partitions; the toy makes its files at first use.
func (s *server) createTopic(name string, partitions int) error {
	if s.toy {
		return nil
	}
	return load.CreateTopic(context.Background(), s.addr, name, partitions, nil)
}

// mkdir makes a folder for a server; what is wrong with it shows when the server starts.
func mkdir(dir string) string {
	_ = os.MkdirAll(dir, 0o755)
	return dir
}
