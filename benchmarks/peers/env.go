package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"millrace/benchmarks/load"
	"millrace/benchmarks/peers/report"
	"millrace/benchmarks/process"
)

// env is what a section works with.
type env struct {
	options
	ctx context.Context // ends with the section's time
	dir string          // for data; removed at the end
	sec *report.Section
	*built
}

// errNotHad marks a peer that this machine does not have; its message is the reason.
type errNotHad struct{ reason string }

func (e errNotHad) Error() string { return "not had: " + e.reason }

// errNotSo marks what a system does not offer.
type errNotSo struct{ reason string }

func (e errNotSo) Error() string { return "not applicable: " + e.reason }

// why is what a table says of an error.
func why(err error) string {
	var absent errNotHad
	if errors.As(err, &absent) {
		return absent.Error()
	}
	var not errNotSo
	if errors.As(err, &not) {
		return not.Error()
	}
	return "failed: " + strings.Join(strings.Fields(err.Error()), " ")
}

func (e *env) note(format string, args ...any) {
	s := fmt.Sprintf(format, args...)
	fmt.Println("  note:", s)
	e.sec.Notes = append(e.sec.Notes, s)
}

// say prints progress.
func (e *env) say(format string, args ...any) { fmt.Printf("  "+format+"\n", args...) }

// The guard's limits: others may use this much, and are waited for this long.
const (
	busyLimit = 0.15
	busyLook  = 500 * time.Millisecond
	busyWait  = 45 * time.Second
)

// calm waits until nothing else uses the machine; if that does not happen it refuses, unless forced.
func (e *env) calm() error {
	settle() // writing out is the kernel's work, but ours
	until := time.Now().Add(busyWait)
	for {
		if e.force {
			return nil
		}
		b := process.Others(busyLook)
		if b.Share <= busyLimit {
			return nil
		}
		if time.Now().After(until) || e.ctx.Err() != nil {
			return fmt.Errorf("refused to measure: %s", b)
		}
	}
}

// settle lets the disk take what earlier measurements left in the page cache, so that none pays for another.
func settle() {
	if dirtyMB() > 64 {
		unix.Sync()
	}
}

func dirtyMB() int64 {
	f, err := os.Open("/proc/meminfo")
	if err != nil {
		return 0
	}
	defer f.Close()
	for sc := bufio.NewScanner(f); sc.Scan(); {
		if v, ok := strings.CutPrefix(sc.Text(), "Dirty:"); ok {
			kb, _ := strconv.ParseInt(strings.Fields(v)[0], 10, 64)
			return kb >> 10
		}
	}
	return 0
}

// alternate measures every target once in each round, in an order that turns, and keeps the values or the reason why there are none.
func (e *env) alternate(rowName string, targets []*server, measure func(s *server) (report.Values, error)) {
	e.alternateN(rowName, e.rounds, targets, measure)
}

func (e *env) alternateN(rowName string, rounds int, targets []*server, measure func(s *server) (report.Values, error)) {
	row := e.sec.Row(rowName)
	for _, s := range targets {
		if s.err != nil {
			row.Not(s.label, why(s.err))
		}
	}
	if err := e.calm(); err != nil {
		for _, s := range targets {
			row.Not(s.label, why(err))
		}
		e.note("%s: %v", rowName, err)
		return
	}
	broken := map[*server]bool{}
	for round := range rounds {
		for i := range targets {
			s := targets[(i+round)%len(targets)]
			if s.err != nil || broken[s] {
				continue
			}
			if e.ctx.Err() != nil {
				row.Not(s.label, "failed: out of time")
				continue
			}
			settle()
			v, err := measure(s)
			if err != nil {
				broken[s] = true
				row.Not(s.label, why(err))
				if strings.HasPrefix(why(err), "failed") {
					e.note("%s, %s: %v", rowName, s.label, err)
				}
				continue
			}
			row.Add(s.label, v)
		}
	}
	e.say("%s", report.OneLine(row))
}

// server is a system under test, running or the reason why it is not.
type server struct {
	label  string
	dir    string // everything it writes
	start  func(s *server) (*process.Process, string, error)
	stop   time.Duration // how long a clean stop may take
	client client

	proc *process.Process
	addr string
	err  error
	used map[string]bool // topics that were made
}

// folder gives a server its own folder.
func (e *env) folder(s *server) {
	s.dir, s.used = filepath.Join(e.dir, strings.NewReplacer(" ", "-", "=", "-").Replace(s.label)), map[string]bool{}
	if s.err = e.ctx.Err(); s.err == nil {
		s.err = os.MkdirAll(s.dir, 0o755)
	}
}

// up starts the servers; one that does not start keeps the reason.
func (e *env) up(servers ...*server) []*server {
	for _, s := range servers {
		if e.folder(s); s.err == nil {
			e.again(s)
		}
		if s.err != nil {
			e.note("%s: %s", s.label, why(s.err))
		}
	}
	return servers
}

// down ends the servers and removes what they wrote.
func (e *env) down(servers ...*server) {
	for _, s := range servers {
		if s.proc != nil {
			s.proc.Kill()
			s.proc = nil
		}
		os.RemoveAll(s.dir)
	}
}

// again starts a server over what is in its folder.
func (e *env) again(s *server) error {
	if s.err = e.ctx.Err(); s.err == nil {
		s.proc, s.addr, s.err = s.start(s)
	}
	return s.err
}

// topic makes a topic once.
func (e *env) topic(s *server, name string, partitions int) error {
	if s.used[name] {
		return nil
	}
	if err := load.CreateTopic(e.ctx, s.addr, name, partitions, nil); err != nil {
		return err
	}
	s.used[name] = true
	return nil
}

// dropTopics deletes everywhere what was made, so that neither disk nor memory stays full.
func (e *env) dropTopics(servers []*server) {
	for _, s := range servers {
		for name := range s.used {
			if s.err == nil {
				if err := load.DeleteTopic(e.ctx, s.addr, name); err != nil {
					e.note("%s: %v", s.label, err)
				}
			}
			delete(s.used, name)
		}
	}
	for _, s := range servers {
		if s.err == nil && !e.deleted(s) {
			e.note("%s still had files of deleted topics after %s", s.label, deleteWait)
		}
	}
}

// deleteWait bounds the wait for a deleted topic's files to go.
const deleteWait = 20 * time.Second

// deleted waits until the folders of deleted topics, which both brokers give the same ending, are gone.
func (e *env) deleted(s *server) bool {
	for until := time.Now().Add(deleteWait); time.Now().Before(until) && e.ctx.Err() == nil; pause(e.ctx, 20*time.Millisecond) {
		left, err := filepath.Glob(filepath.Join(s.dir, "data", "*-delete"))
		if err == nil && len(left) == 0 {
			return true
		}
	}
	return false
}

// run runs a row's frames on a server for the harness's duration.
func (e *env) run(s *server, r load.Row, frames [][]byte) (load.Result, error) {
	before := s.proc.CPU()
	res, err := load.Run(s.addr, r, frames, e.duration)
	res.CPU = s.proc.CPU() - before
	return res, err
}

// warm runs a row unmeasured, until a broker leads what it has just made.
func (e *env) warm(s *server, r load.Row, frames [][]byte) error {
	until := time.Now().Add(20 * time.Second)
	for {
		_, err := load.Run(s.addr, r, frames, e.duration/5)
		if err == nil || time.Now().After(until) || e.ctx.Err() != nil {
			return err
		}
		pause(e.ctx, 200*time.Millisecond)
	}
}

// warmServers uses every server of Kafka's protocol for a while before anything is measured: a JVM that has just started is several
// times slower than one that has compiled what it runs.
func (e *env) warmServers(servers []*server) {
	for _, s := range servers {
		c, ok := s.client.(kafkaClient)
		if s.err != nil || !ok {
			continue
		}
		n, err := 0, c.ready(e, s)
		for _, r := range []load.Row{{Records: 1, Size: 100, Partitions: 1, Connections: 8, InFlight: 5, Acks: 1}, {Records: 100, Size: 100, Partitions: 1, Connections: 4, InFlight: 5, Acks: 1}} {
			if err == nil {
				_, err = load.Run(s.addr, r, [][]byte{load.ProduceFrame(r, benchTopic)}, 3*e.duration)
			}
		}
		if err == nil {
			if _, n, err = c.full(e, s); err == nil {
				_, err = c.read(e, s, n)
			}
		}
		if err != nil {
			s.err = fmt.Errorf("warming up: %w", err)
			e.note("%s: %v", s.label, s.err)
		}
	}
	e.dropTopics(servers)
}

// values are the figures of a load with prepared frames.
func values(r load.Row, res load.Result) report.Values {
	v := report.Values{report.PerSecond: res.PerSecond, report.MBps: float64(res.Bytes) / res.Elapsed.Seconds() / 1e6,
		report.P50: float64(res.P50), report.P99: float64(res.P99), report.P999: float64(res.P999)}
	if res.Requests > 0 {
		v[report.CPURequest] = float64(res.CPU.Microseconds()) / float64(res.Requests)
		v[report.CPUGB] = res.CPU.Seconds() / (float64(res.Bytes) / 1e9)
		if r.Produce() {
			v[report.CPUMillion] = res.CPU.Seconds() / (float64(res.Requests) * float64(r.RecordsPerRequest()) / 1e6)
		}
	}
	return v
}

// command runs a program to its end or for at most the limit, in the section's time; standard output is returned.
func (e *env) command(limit time.Duration, stdin string, bin string, args ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(e.ctx, limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, bin, args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if stdin != "" {
		f, err := os.Open(stdin)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		cmd.Stdin = f
	}
	var stderr strings.Builder
	cmd.Stderr = &stderr
	cmd.WaitDelay = 5 * time.Second
	out, err := cmd.Output()
	if e.ctx.Err() != nil {
		return out, fmt.Errorf("%s was ended with its section: %w", filepath.Base(bin), e.ctx.Err())
	}
	if ctx.Err() != nil {
		return out, fmt.Errorf("%s did not end within %s", filepath.Base(bin), limit)
	}
	if err != nil {
		return out, fmt.Errorf("%s: %w: %s", filepath.Base(bin), err, process.LastLine([]byte(stderr.String())))
	}
	return out, nil
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// freePort is a port nobody listens on now.
func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}

// answers waits until try succeeds; a process that ends meanwhile is an error, and so is the end of the section's time.
func (e *env) answers(p *process.Process, limit time.Duration, try func() error) error {
	until := time.Now().Add(limit)
	for {
		err := try()
		if err == nil {
			return nil
		}
		select {
		case <-p.Ended():
			return fmt.Errorf("%s ended while starting: %s", p.Name, p.LastWords())
		case <-time.After(5 * time.Millisecond):
		}
		if time.Now().After(until) {
			return fmt.Errorf("%s was not ready within %s: %w", p.Name, limit, err)
		}
		if e.ctx.Err() != nil {
			return fmt.Errorf("%s was not ready in the section's time: %w", p.Name, err)
		}
	}
}
