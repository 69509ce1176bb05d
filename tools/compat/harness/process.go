package harness

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// Millrace is one broker process.
type Millrace struct {
	Addr        string   // host:port of its listener
	Coordinator string   // host:port/chroot where ZooKeeper's clients find its coordination
	Args        []string // what it was started with

	env *Env
	cmd *exec.Cmd
}

// StartMillrace serves from data in the check's folder with the overrides; listeners default to free ports, coordination to
// what the check has been given.
func StartMillrace(e *Env, overrides ...string) (*Millrace, error) {
	m := &Millrace{env: e, Args: []string{"serve"}}
	all := append([]string{"listeners=PLAINTEXT://127.0.0.1:0", "admin.listener=127.0.0.1:0", "millrace.coordinator.listener=127.0.0.1:0", "log.dirs=" + filepath.Join(e.Dir, "data")}, overrides...)
	if e.ensemble != nil && last(all, "zookeeper.connect") == "" {
		connect, err := e.ensemble.connect(last(all, "log.dirs"))
		if err != nil {
			return nil, err
		}
		// A node that was killed waits at its next start until its last session has ended.
		all = append([]string{"zookeeper.connect=" + connect, "zookeeper.session.timeout.ms=6000"}, all...)
	}
	for _, o := range all {
		m.Args = append(m.Args, "--override", o)
	}
	return m, m.Start()
}

// Serve runs 'millrace serve' with these arguments and nothing else, in the check's folder.
func Serve(e *Env, args ...string) (*Millrace, error) {
	m := &Millrace{env: e, Args: append([]string{"serve"}, args...)}
	return m, m.Start()
}

// last is the value of a key, which the last of several decides.
func last(overrides []string, key string) string {
	for _, o := range slices.Backward(overrides) {
		if k, v, _ := strings.Cut(o, "="); k == key {
			return v
		}
	}
	return ""
}

// Start runs the process with Args and waits for its ready line.
func (m *Millrace) Start() error {
	log, err := os.OpenFile(filepath.Join(m.env.Dir, "broker.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer log.Close()
	m.cmd = m.env.Command(filepath.Join(m.env.Bin, "millrace"), m.Args...)
	m.cmd.Stderr = log
	out, err := m.cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := m.cmd.Start(); err != nil {
		return err
	}
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
			m.Kill()
			return fmt.Errorf("the broker did not get ready, see %s", log.Name())
		}
		m.Addr, _, _ = strings.Cut(rest, " ")
		_, rest, _ = strings.Cut(rest, " coordinator=")
		m.Coordinator, _, _ = strings.Cut(rest, " ")
		if want := last(m.Args, "zookeeper.connect"); want != "" && m.Coordinator != want {
			m.Kill()
			return fmt.Errorf("the broker's coordination is %s, want %s", m.Coordinator, want)
		}
		return nil
	case <-time.After(60 * time.Second):
		m.Kill()
		return errors.New("no ready line within 60 s")
	}
}

// KeepAddress makes a later Start come back on the port it has now.
func (m *Millrace) KeepAddress() {
	for i, a := range m.Args {
		if strings.HasPrefix(a, "listeners=") {
			m.Args[i] = "listeners=PLAINTEXT://" + m.Addr
		}
	}
}

// Kill is kill -9.
func (m *Millrace) Kill() {
	m.cmd.Process.Kill()
	m.cmd.Wait()
}

// Stop ends the broker cleanly; anything but exit status 0 within 10 s is an error.
func (m *Millrace) Stop() error {
	if err := stop(m.cmd, 10*time.Second); err != nil {
		return fmt.Errorf("the broker's clean stop: %w", err)
	}
	return nil
}

// stop sends SIGTERM and waits for the end.
func stop(cmd *exec.Cmd, limit time.Duration) error {
	cmd.Process.Signal(syscall.SIGTERM)
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }() // ends with the process
	select {
	case err := <-done:
		return err
	case <-time.After(limit):
		cmd.Process.Kill()
		<-done
		return fmt.Errorf("it did not stop within %s of SIGTERM", limit)
	}
}

// Tool runs a program to its end, with standard input and output from and to files where named.
func (e *Env) Tool(stdin, stdout, bin string, args ...string) error {
	cmd := e.Command(bin, args...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if stdin != "" {
		f, err := os.Open(stdin)
		if err != nil {
			return err
		}
		defer f.Close()
		cmd.Stdin = f
	}
	if stdout != "" {
		f, err := os.Create(stdout)
		if err != nil {
			return err
		}
		defer f.Close()
		cmd.Stdout = f
	}
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s %s: %w: %s", filepath.Base(bin), strings.Join(args, " "), err, LastLine(stderr.Bytes()))
	}
	return nil
}

// Output runs a command to its end and returns what it printed on standard output; an error carries the last line of standard
// error. A limit of 0 means the check's own.
func Output(cmd *exec.Cmd, stdin string, limit time.Duration) (string, error) {
	var stdout, stderr bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(stdin), &stdout, &stderr
	if err := cmd.Start(); err != nil {
		return "", err
	}
	if limit > 0 {
		timer := time.AfterFunc(limit, func() { syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) })
		defer timer.Stop()
	}
	err := cmd.Wait()
	if err != nil {
		err = fmt.Errorf("%s: %w: %s", strings.Join(cmd.Args, " "), err, LastLine(stderr.Bytes()))
	}
	return stdout.String(), err
}

// Within calls try until it gives nil, at most for limit; then its last error comes back.
func Within(limit time.Duration, try func() error) error {
	end := time.Now().Add(limit)
	for {
		err := try()
		if err == nil {
			return nil
		}
		if time.Now().After(end) {
			return fmt.Errorf("after %s: %w", limit, err)
		}
		time.Sleep(100 * time.Millisecond)
	}
}
