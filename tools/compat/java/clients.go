package java

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"millrace/tools/compat/harness"
)

// clientChecks run self-checking programs on the Java clients (src/clients) of both lines.
func clientChecks() []harness.Check {
	var out []harness.Check
	for _, l := range []harness.Libs{harness.Kafka43, harness.Kafka39} {
		client := "Java client " + strings.TrimPrefix(l.Name, "kafka-")
		program := func(mode string) func(e *harness.Env) error {
			return func(e *harness.Env) error { return selfChecking(e, l, mode) }
		}
		out = append(out,
			harness.Check{Client: client, Name: "idempotent producer, each codec, keys, headers, nulls, sizes, timestamps", Limit: 4 * time.Minute, Run: program("values")},
			harness.Check{Client: client, Name: "admin client", Limit: 4 * time.Minute, Run: program("admin")},
			harness.Check{Client: client, Name: "a killed member's partitions are taken over: each assignor, static, both protocols", Limit: 6 * time.Minute, Run: func(e *harness.Env) error { return takeover(e, l) }},
			harness.Check{Client: client, Name: "acked records and committed offsets survive kill -9 of the broker", Limit: 4 * time.Minute, Run: func(e *harness.Env) error { return kept(e, l) }},
			harness.Check{Client: client, Name: "transactions", Limit: 2 * time.Minute, Run: func(e *harness.Env) error { return transactions(e, l) }},
		)
	}
	return out
}

// program is a running Java program that prints lines.
type program struct {
	cmd   *exec.Cmd
	in    io.WriteCloser
	log   string // file of its standard error
	ended chan error

	mu    sync.Mutex
	lines []string
}

// startProgram runs a class of a part of src, in the check's folder.
func startProgram(e *harness.Env, l harness.Libs, part, name string, args ...string) (*program, error) {
	libs, classes, err := compiled(e, l, part)
	if err != nil {
		return nil, err
	}
	cmd, err := e.Java(libs, "256M", []string{classes}, args...)
	if err != nil {
		return nil, err
	}
	p := &program{cmd: cmd, log: filepath.Join(e.Dir, name+".err"), ended: make(chan error, 1)}
	log, err := os.Create(p.log)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	cmd.Stderr = log
	if p.in, err = cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	go func() { // ends with the process
		for sc := bufio.NewScanner(out); sc.Scan(); {
			p.mu.Lock()
			p.lines = append(p.lines, sc.Text())
			p.mu.Unlock()
		}
		p.ended <- cmd.Wait()
	}()
	return p, nil
}

// said is what it has printed so far.
func (p *program) said() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.lines[:len(p.lines):len(p.lines)]
}

// wait waits for its good end, with "done" as the last line.
func (p *program) wait(limit time.Duration) error {
	var err error
	select {
	case err = <-p.ended:
	case <-time.After(limit):
		p.kill()
		return fmt.Errorf("it did not end within %s, see %s", limit, p.log)
	}
	lines := p.said()
	if err == nil && len(lines) > 0 && lines[len(lines)-1] == "done" {
		return nil
	}
	text, rerr := os.ReadFile(p.log)
	if rerr != nil {
		return rerr
	}
	return fmt.Errorf("%v: %s", err, thrown(string(text)))
}

func (p *program) kill() { p.cmd.Process.Kill() }

// thrown picks what a Java program died of from its standard error.
func thrown(text string) string {
	found := ""
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "Exception in thread") || strings.HasPrefix(line, "Caused by: ") {
			found += strings.TrimSpace(line) + " "
		}
	}
	if found == "" {
		return harness.LastLine([]byte(text))
	}
	return found
}

// selfChecking runs a mode of src/clients to its end.
func selfChecking(e *harness.Env, l harness.Libs, mode string) error {
	m, err := harness.StartMillrace(e, "group.initial.rebalance.delay.ms=0")
	if err != nil {
		return err
	}
	defer m.Kill()
	p, err := startProgram(e, l, "clients", mode, "Clients", mode, m.Addr)
	if err != nil {
		return err
	}
	if err := p.wait(3 * time.Minute); err != nil {
		return err
	}
	var did []string
	for _, line := range p.said() {
		if what, ok := strings.CutPrefix(line, "ok "); ok {
			did = append(did, what)
		}
	}
	e.Note("%s", strings.Join(did, "; "))
	return m.Stop()
}

// transactions runs the transactional producer; without the requests it needs that is named.
func transactions(e *harness.Env, l harness.Libs) error {
	err := selfChecking(e, l, "transactions")
	if err != nil && strings.Contains(err.Error(), "transactions are not built yet") {
		return harness.NotBuilt{API: "transactions", Got: err.Error()}
	}
	return err
}

// kept kills the broker under a producer and a group's member three times.
func kept(e *harness.Env, l harness.Libs) error {
	m, err := harness.StartMillrace(e, "group.initial.rebalance.delay.ms=0")
	if err != nil {
		return err
	}
	defer func() { m.Kill() }()
	m.KeepAddress()
	p, err := startProgram(e, l, "clients", "kept", "Clients", "kept", m.Addr)
	if err != nil {
		return err
	}
	at := 0
	further := func() error { // a thousand records more are committed
		want := at + 1000
		return harness.Within(time.Minute, func() error {
			lines := p.said()
			if len(lines) > 0 {
				at, _ = strconv.Atoi(strings.TrimPrefix(lines[len(lines)-1], "ok at "))
			}
			select {
			case err := <-p.ended:
				p.ended <- err
				return p.wait(time.Second)
			default:
			}
			if at < want {
				return fmt.Errorf("%d records are committed, want %d", at, want)
			}
			return nil
		})
	}
	for range 3 {
		if err := further(); err != nil {
			return err
		}
		m.Kill()
		if err := m.Start(); err != nil {
			return fmt.Errorf("restart after kill -9: %w", err)
		}
	}
	if err := further(); err != nil {
		return err
	}
	if err := p.in.Close(); err != nil {
		return err
	}
	if err := p.wait(time.Minute); err != nil {
		return err
	}
	lines := p.said()
	e.Note("3 kills; %s acked records, each there once and in order", strings.TrimPrefix(lines[len(lines)-2], "ok kept "))
	return m.Stop()
}

// takeoverGroups are the groups of src/clients/Takeover.java.
var takeoverGroups = []string{"range", "roundrobin", "sticky", "cooperative", "static", "new-uniform", "new-range", "new-static"}

// takeover has two processes with a member of every group each; one is killed.
func takeover(e *harness.Env, l harness.Libs) error {
	m, err := harness.StartMillrace(e, "group.initial.rebalance.delay.ms=0", "group.consumer.session.timeout.ms=6000", "group.consumer.heartbeat.interval.ms=1000", "group.consumer.min.session.timeout.ms=6000",
		"group.consumer.min.heartbeat.interval.ms=1000")
	if err != nil {
		return err
	}
	defer m.Kill()
	if err := harness.CreateTopic(m.Addr, "shared", 6); err != nil {
		return err
	}
	one, err := startProgram(e, l, "clients", "one", "Clients", "member", m.Addr, "one")
	if err != nil {
		return err
	}
	other, err := startProgram(e, l, "clients", "other", "Clients", "member", m.Addr, "other")
	if err != nil {
		return err
	}
	written := 0
	write := func() error { // 600 records to each partition
		written += 3600
		return putNumbers(m.Addr, "shared", 6, written-3600, written)
	}
	if err := write(); err != nil {
		return err
	}
	holding := func(limit time.Duration, ones, others int) error {
		return harness.Within(limit, func() error {
			a, b := holdings(one), holdings(other)
			for _, g := range takeoverGroups {
				if ones >= 0 && a[g] != ones || b[g] != others {
					return fmt.Errorf("group %s: the members have %d and %d partitions, want %d and %d", g, a[g], b[g], ones, others)
				}
			}
			return errors.Join(failures(one), failures(other))
		})
	}
	if err := holding(90*time.Second, 3, 3); err != nil {
		return err
	}
	if err := comesBack(other, "static"); err != nil {
		return err
	}
	if err := write(); err != nil {
		return err
	}
	one.kill()
	if err := write(); err != nil {
		return err
	}
	if err := holding(90*time.Second, -1, 6); err != nil {
		return fmt.Errorf("after the kill: %w", err)
	}
	if err := write(); err != nil {
		return err
	}
	if err := harness.Within(time.Minute, func() error {
		for _, g := range takeoverGroups {
			if missing := unread(g, written, one, other); missing > 0 {
				return fmt.Errorf("group %s: %d of %d records were not read", g, missing, written)
			}
		}
		return nil
	}); err != nil {
		return err
	}
	if err := other.in.Close(); err != nil {
		return err
	}
	if err := other.wait(time.Minute); err != nil {
		return err
	}
	e.Note("%d groups (%s), 6 partitions 3 and 3, then one process killed and 6; each of %d records was read", len(takeoverGroups), strings.Join(takeoverGroups, ", "), written)
	return m.Stop()
}

// comesBack closes and starts a static member again: no new generation.
func comesBack(p *program, group string) error {
	if _, err := fmt.Fprintf(p.in, "again %s\n", group); err != nil {
		return err
	}
	return harness.Within(time.Minute, func() error {
		for _, line := range p.said() {
			if words := strings.Fields(line); words[0] == "generation" && words[1] == group {
				if words[2] != words[3] {
					return fmt.Errorf("group %s went from generation %s to %s when its static member came back", group, words[2], words[3])
				}
				return nil
			}
		}
		return fmt.Errorf("the static member of %s is not back", group)
	})
}

// holdings is how many partitions a process's members have, by group.
func holdings(p *program) map[string]int {
	has := map[string]int{}
	for _, line := range p.said() {
		if words := strings.Fields(line); words[0] == "has" {
			has[words[1]], _ = strconv.Atoi(words[2])
		}
	}
	return has
}

// failures is what a process's members died of.
func failures(p *program) error {
	for _, line := range p.said() {
		if strings.HasPrefix(line, "failed ") {
			return errors.New(line)
		}
	}
	return nil
}

// unread counts the numbers below n that no member of the group has read.
func unread(group string, n int, all ...*program) int {
	seen := map[string]bool{}
	for _, p := range all {
		for _, line := range p.said() {
			if v, ok := strings.CutPrefix(line, "read "+group+" "); ok {
				seen[v] = true
			}
		}
	}
	missing := 0
	for i := range n {
		if !seen[strconv.Itoa(i)] {
			missing++
		}
	}
	return missing
}
