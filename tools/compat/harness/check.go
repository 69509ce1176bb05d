// Package harness is what the checks of tools/compat stand on: what a check is, the processes it may start (Millrace, Apache
// Kafka, foreign programs), the packages it needs from the registries, and the table of what came out.
package harness

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"
)

// Check is one claim about a foreign client, tool or framework.
type Check struct {
	Client string        // whose program it is, with its version: the table's heading ("kafkajs 2.2.4")
	Name   string        // what is shown; unique within the client
	Short  bool          // part of the short run of `make test`
	Limit  time.Duration // it is a failure to take longer
	Run    func(e *Env) error

	BuiltIn bool // it says by itself where coordination is: OnZooKeeper leaves it out

	ensemble bool // its Millrace nodes stand on a ZooKeeper
}

// Title is the name a check is chosen by (-only) and printed under.
func (c Check) Title() string { return c.Client + ": " + c.Name }

// Skip is returned by a check that cannot run here, with the reason. With CI set it counts as a failure.
type Skip struct{ Reason string }

func (s Skip) Error() string { return s.Reason }

// NotBuilt is returned by a check that needs what Millrace does not offer yet: the API it lacks and the error the client got.
// A check must only return it after it saw that very error.
type NotBuilt struct {
	API string // such as "transactions (InitProducerId with a transactional id)"
	Got string // the client's own words
}

func (n NotBuilt) Error() string { return "not built: " + n.API + ": " + n.Got }

// Env is what one run of a check works with.
type Env struct {
	Root  string // the repository, absolute
	Bin   string // the folder of our binaries, absolute
	Cache string // kept between runs, absolute
	Dir   string // the check's own folder, removed after a pass
	Short bool
	MB    int // size of the real file that is moved

	ensemble *ensemble // where its Millrace nodes have their coordination; nil: each in itself

	mu    sync.Mutex
	notes []string
	procs []*exec.Cmd
}

// Note adds a line to what the table says about the check.
func (e *Env) Note(format string, args ...any) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.notes = append(e.notes, fmt.Sprintf(format, args...))
}

// Command makes a command in the check's folder and in a process group of its own, which ends with the check.
func (e *Env) Command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(name, args...)
	cmd.Dir = e.Dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.procs = append(e.procs, cmd)
	return cmd
}

// end kills what the check left running.
func (e *Env) end() {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, c := range e.procs {
		if c.Process != nil && c.ProcessState == nil {
			syscall.Kill(-c.Process.Pid, syscall.SIGKILL)
		}
	}
}

// run gives the check a folder; after a failure the folder stays and is named.
func (c Check) run(e *Env) error {
	if err := os.MkdirAll(e.Cache, 0o755); err != nil {
		return err
	}
	dir, err := os.MkdirTemp(e.Cache, "compat-")
	if err != nil {
		return err
	}
	e.Dir = dir
	defer e.end()
	done := make(chan error, 1)
	go func() { done <- c.Run(e) }() // ends with the check; after a time-out its processes are killed
	select {
	case err = <-done:
	case <-time.After(c.Limit):
		err = fmt.Errorf("took longer than %s", c.Limit)
	}
	var s Skip
	var n NotBuilt
	if err != nil && !errors.As(err, &s) && !errors.As(err, &n) {
		return fmt.Errorf("%w (see %s)", err, dir)
	}
	if rerr := os.RemoveAll(dir); err == nil {
		err = rerr
	}
	return err
}
