// Package process starts the servers under test, ends them for sure, and reads what they used: processor time, memory, and who
// else is on the machine.
package process

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Process is one started program with whatever it starts itself: they share a process group and end together.
type Process struct {
	Name    string
	PID     int
	Started time.Time
	Log     string        // file of what it prints, but for lines that begin with "ready "
	done    chan struct{} // closed when the process has ended
}

var all struct {
	mu      sync.Mutex
	running map[*Process]bool
	over    bool // nothing may start any more
}

// Start runs a program until it ends by itself, is stopped, or this process ends. Lines of its standard output that begin with
// "ready " go to the returned channel, which is closed with the output.
func Start(name, dir string, env []string, bin string, args ...string) (*Process, <-chan string, error) {
	logFile, err := os.OpenFile(filepath.Join(dir, name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, nil, err
	}
	cmd := exec.Command(bin, args...)
	cmd.Env = append(os.Environ(), env...)
	cmd.Stderr = logFile
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	out, err := cmd.StdoutPipe()
	if err != nil {
		logFile.Close()
		return nil, nil, err
	}
	all.mu.Lock()
	defer all.mu.Unlock()
	if all.over {
		logFile.Close()
		return nil, nil, fmt.Errorf("%s is not started: the program ends", name)
	}
	begun := time.Now()
	if err := cmd.Start(); err != nil {
		logFile.Close()
		return nil, nil, err
	}
	p := &Process{Name: name, Started: begun, PID: cmd.Process.Pid, Log: logFile.Name(), done: make(chan struct{})}
	if all.running == nil {
		all.running = map[*Process]bool{}
	}
	all.running[p] = true
	ready := make(chan string, 1)
	go func() { // ends with the process
		defer logFile.Close()
		sc := bufio.NewScanner(out)
		for sc.Scan() {
			if !strings.HasPrefix(sc.Text(), "ready ") {
				fmt.Fprintln(logFile, sc.Text())
				continue
			}
			select {
			case ready <- sc.Text():
			default:
			}
		}
		close(ready)
		io.Copy(io.Discard, out) // a line too long for the scanner must not block the process
		cmd.Wait()
		all.mu.Lock()
		delete(all.running, p)
		all.mu.Unlock()
		close(p.done)
	}()
	return p, ready, nil
}

// StartReady is Start for a program that prints "ready … listeners=PLAINTEXT://host:port …" when it serves; it returns the address.
func StartReady(name, dir string, bin string, args ...string) (*Process, string, error) {
	p, ready, err := Start(name, dir, nil, bin, args...)
	if err != nil {
		return nil, "", err
	}
	select {
	case line := <-ready:
		_, rest, ok := strings.Cut(line, "listeners=PLAINTEXT://")
		if !ok {
			p.Kill()
			return nil, "", fmt.Errorf("%s did not get ready; its log ends: %s", name, p.LastWords())
		}
		addr, _, _ := strings.Cut(rest, " ")
		addr, _, _ = strings.Cut(addr, ",")
		return p, addr, nil
	case <-time.After(120 * time.Second):
		p.Kill()
		return nil, "", fmt.Errorf("%s printed no ready line within 120 s; its log ends: %s", name, p.LastWords())
	}
}

// Ended is closed when the process is gone.
func (p *Process) Ended() <-chan struct{} { return p.done }

// Stop ends the process with SIGTERM; one that is still there after the limit is killed, and that is an error.
func (p *Process) Stop(limit time.Duration) error {
	syscall.Kill(p.PID, syscall.SIGTERM)
	select {
	case <-p.done:
		syscall.Kill(-p.PID, syscall.SIGKILL) // what it may have left behind
		return nil
	case <-time.After(limit):
		p.Kill()
		return fmt.Errorf("%s did not end within %s of SIGTERM and was killed", p.Name, limit)
	}
}

// Kill ends the process and all that it started at once, as a crash does, and waits for it. One whose output is still held open by
// something that left the group is given up after a while.
func (p *Process) Kill() {
	syscall.Kill(-p.PID, syscall.SIGKILL)
	select {
	case <-p.done:
	case <-time.After(15 * time.Second):
	}
}

// Shutdown ends every process that still runs, and lets none start after it.
func Shutdown() {
	all.mu.Lock()
	all.over = true
	all.mu.Unlock()
	KillAll()
}

// KillAll ends every process that still runs.
func KillAll() {
	all.mu.Lock()
	var running []*Process
	for p := range all.running {
		running = append(running, p)
	}
	all.mu.Unlock()
	for _, p := range running {
		p.Kill()
	}
}

// LastWords is the last line of the log that is not empty.
func (p *Process) LastWords() string {
	b, err := os.ReadFile(p.Log)
	if err != nil {
		return err.Error()
	}
	return LastLine(b)
}

// LastLine is the last line of a program's output that is not empty.
func LastLine(b []byte) string {
	lines := strings.Split(strings.TrimSpace(string(b)), "\n")
	return strings.TrimSpace(lines[len(lines)-1])
}

// CPU is the processor time used so far by the process and its group's other members; 0 if they are gone.
func (p *Process) CPU() time.Duration {
	var sum time.Duration
	for _, s := range snapshot() {
		if s.group == p.PID || s.pid == p.PID {
			sum += time.Duration(s.ticks) * tick
		}
	}
	return sum
}

// RSS is the resident memory in bytes of the process and its group's other members.
func (p *Process) RSS() int64 {
	var sum int64
	for _, s := range snapshot() {
		if s.group == p.PID || s.pid == p.PID {
			sum += statusKB(s.pid, "VmRSS:") << 10
		}
	}
	return sum
}

// CPU is the processor time that one process has used; 0 where it is not known.
func CPU(pid int) time.Duration {
	s, ok := readStat(pid)
	if !ok {
		return 0
	}
	return time.Duration(s.ticks) * tick
}

// Times is the processor time that one process has used, outside and in the kernel; 0 where it is not known.
func Times(pid int) (user, kernel time.Duration) {
	s, ok := readStat(pid)
	if !ok {
		return 0, 0
	}
	return time.Duration(s.ticks-s.system) * tick, time.Duration(s.system) * tick
}

// RSS is a process's resident memory in bytes.
func RSS(pid int) int64 { return statusKB(pid, "VmRSS:") << 10 }

// tick is the unit of /proc's times: USER_HZ is 100 on Linux.
const tick = 10 * time.Millisecond

func statusKB(pid int, key string) int64 {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(b)) {
		if v, ok := strings.CutPrefix(line, key); ok {
			kb, _ := strconv.ParseInt(strings.Fields(v)[0], 10, 64)
			return kb
		}
	}
	return 0
}

// Held is how many descriptors, memory maps and threads a process has.
func Held(pid int) (descriptors, maps, threads int) {
	files, _ := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/maps", pid))
	tasks, _ := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	return len(files), bytes.Count(b, []byte{'\n'}), len(tasks)
}
