package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// millrace is one broker process.
type millrace struct {
	cmd  *exec.Cmd
	addr string
	dir  string
	args []string
}

// startMillrace serves from dir/data with the overrides; listeners default to a free port.
func startMillrace(e *env, overrides ...string) (*millrace, error) {
	m := &millrace{dir: e.dir, args: []string{"serve"}}
	base := []string{"listeners=PLAINTEXT://127.0.0.1:0", "admin.listener=127.0.0.1:0", "log.dirs=" + filepath.Join(e.dir, "data")}
	for _, o := range append(base, overrides...) {
		m.args = append(m.args, "--override", o)
	}
	return m, m.start(filepath.Join(e.bin, "millrace"))
}

func (m *millrace) start(bin string) error {
	log, err := os.OpenFile(filepath.Join(m.dir, "broker.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer log.Close()
	m.cmd = exec.Command(bin, m.args...)
	m.cmd.Stderr = log
	m.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
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
			m.kill()
			return fmt.Errorf("the broker did not get ready, see %s", log.Name())
		}
		m.addr, _, _ = strings.Cut(rest, " ")
		return nil
	case <-time.After(60 * time.Second):
		m.kill()
		return errors.New("no ready line within 60 s")
	}
}

func (m *millrace) kill() {
	m.cmd.Process.Kill()
	m.cmd.Wait()
}

// stop ends the broker cleanly; anything but exit status 0 within 10 s is an error.
func (m *millrace) stop() error {
	m.cmd.Process.Signal(syscall.SIGTERM)
	done := make(chan error, 1)
	go func() { done <- m.cmd.Wait() }() // ends with the process
	select {
	case err := <-done:
		if err != nil {
			return fmt.Errorf("the broker's clean stop: %w", err)
		}
		return nil
	case <-time.After(10 * time.Second):
		m.cmd.Process.Kill()
		<-done
		return errors.New("the broker did not stop within 10 s of SIGTERM")
	}
}

// tool runs a program to its end, with standard input and output from and to files where named.
func tool(dir, stdin, stdout, bin string, args ...string) error {
	cmd := exec.Command(bin, args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
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
		return fmt.Errorf("%s %s: %w: %s", filepath.Base(bin), strings.Join(args, " "), err, lastLine(stderr.Bytes()))
	}
	return nil
}
