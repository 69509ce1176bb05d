package clients

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"millrace/tools/compat/harness"
)

// args are what an act is told; see go/report.
type args struct {
	Topic      string         `json:"topic"`
	Group      string         `json:"group"`
	Codec      string         `json:"codec"`
	File       string         `json:"file"`
	Single     int            `json:"single"`
	Idempotent bool           `json:"idempotent"`
	Topics     map[string]int `json:"topics"`
	Fit        int            `json:"fit"`
	Over       int            `json:"over"`
	Protocol   string         `json:"protocol"`
	Version    string         `json:"version"`
}

var preparing sync.Mutex

// once runs f the first time a key is asked for and keeps what it gave.
var prepared = map[string]func() (string, error){}

func once(key string, f func() (string, error)) (string, error) {
	preparing.Lock()
	g, ok := prepared[key]
	if !ok {
		g = sync.OnceValues(f)
		prepared[key] = g
	}
	preparing.Unlock()
	return g()
}

// goProgram builds a command of the module below go, which has the foreign clients in its own go.mod.
func goProgram(e *harness.Env, name string) ([]string, error) {
	bin, err := once("go "+name, func() (string, error) {
		if name == "confluent" {
			if _, err := exec.LookPath("gcc"); err != nil {
				return "", harness.Skip{Reason: "gcc is not installed, which links librdkafka"}
			}
		}
		bin := filepath.Join(e.Cache, "clients", name)
		cmd := exec.Command("go", "build", "-C", filepath.Join(e.Root, "tools", "compat", "clients", "go"), "-o", bin, "./"+name)
		if out, err := cmd.CombinedOutput(); err != nil {
			return "", fmt.Errorf("go build %s: %w: %s", name, err, harness.LastLine(out))
		}
		return bin, nil
	})
	if err != nil {
		return nil, err
	}
	if name == "kcat" {
		_, err = harness.NeedKcat()
	}
	return []string{bin}, err
}

func pythonProgram(e *harness.Env, script string) ([]string, error) {
	py, err := harness.NeedPython(e.Cache)
	return []string{py, "-B", filepath.Join(e.Root, "tools", "compat", "clients", "python", script)}, err
}

// nodeProgram installs the packages below the cache and copies the scripts beside them: that is where Node looks for modules.
func nodeProgram(e *harness.Env, script string) ([]string, error) {
	dir, err := once("node", func() (string, error) {
		if _, err := exec.LookPath("npm"); err != nil {
			return "", harness.Skip{Reason: "npm is not installed"}
		}
		dir, from := filepath.Join(e.Cache, "node"), filepath.Join(e.Root, "tools", "compat", "clients", "node")
		had, _ := os.ReadFile(filepath.Join(dir, "installed"))
		want, err := os.ReadFile(filepath.Join(from, "package.json"))
		if err != nil {
			return "", err
		}
		if string(had) == string(want) {
			return dir, nil
		}
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return "", err
		}
		if err := os.WriteFile(filepath.Join(dir, "package.json"), want, 0o644); err != nil {
			return "", err
		}
		if out, err := exec.Command("npm", "install", "--prefix", dir, "--no-audit", "--no-fund", "--no-package-lock").CombinedOutput(); err != nil {
			return "", harness.Skip{Reason: fmt.Sprintf("npm install: %v: %s", err, harness.LastLine(out))}
		}
		return dir, os.WriteFile(filepath.Join(dir, "installed"), want, 0o644)
	})
	if err != nil {
		return nil, err
	}
	for _, name := range []string{"report.js", script} {
		b, err := os.ReadFile(filepath.Join(e.Root, "tools", "compat", "clients", "node", name))
		if err != nil {
			return nil, err
		}
		if err := os.WriteFile(filepath.Join(e.Dir, name), b, 0o644); err != nil {
			return nil, err
		}
	}
	link := filepath.Join(e.Dir, "node_modules")
	if err := os.Symlink(filepath.Join(dir, "node_modules"), link); err != nil && !os.IsExist(err) {
		return nil, err
	}
	return []string{"node", "--no-warnings", filepath.Join(e.Dir, script)}, nil
}

// command makes the client's program with an act.
func (c client) command(e *harness.Env, act, addr string, a args) (*exec.Cmd, error) {
	program, err := c.program(e)
	if err != nil {
		return nil, err
	}
	a.Version = c.version
	b, err := json.Marshal(a)
	if err != nil {
		return nil, err
	}
	return e.Command(program[0], append(program[1:], act, addr, string(b))...), nil
}

// run has the client do an act to its end; an error names the step that failed, with the client's words.
func (c client) run(e *harness.Env, act, addr string, a args) ([]line, error) {
	cmd, err := c.command(e, act, addr, a)
	if err != nil {
		return nil, err
	}
	out, err := harness.Output(cmd, "", time.Minute)
	var lines []line
	for text := range strings.Lines(out) {
		l, perr := parseLine(text)
		if perr != nil {
			return lines, perr
		}
		lines = append(lines, l)
	}
	if err == nil {
		return lines, nil
	}
	if n := len(lines); n > 0 && !lines[n-1].OK {
		return lines, fmt.Errorf("%s: step %q: %s", act, lines[n-1].Step, lines[n-1].Detail)
	}
	return lines, fmt.Errorf("%s: %w", act, err)
}

func parseLine(text string) (line, error) {
	var l line
	if err := json.Unmarshal([]byte(text), &l); err != nil {
		return l, fmt.Errorf("the program printed %.80q: %w", text, err)
	}
	return l, nil
}

// process is a group member that runs until it is ended.
type process struct {
	cmd  *exec.Cmd
	done chan struct{}

	mu    sync.Mutex
	lines []line
	err   error
}

func (c client) start(e *harness.Env, act, addr string, a args) (*process, error) {
	cmd, err := c.command(e, act, addr, a)
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	stderr, err := os.OpenFile(filepath.Join(e.Dir, act+".err"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	defer stderr.Close()
	cmd.Stderr = stderr
	p := &process{cmd: cmd, done: make(chan struct{})}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	go p.read(bufio.NewScanner(out)) // ends with the process
	return p, nil
}

func (p *process) read(sc *bufio.Scanner) {
	defer close(p.done)
	sc.Buffer(nil, 1<<20)
	for sc.Scan() {
		l, err := parseLine(sc.Text())
		p.mu.Lock()
		p.lines = append(p.lines, l)
		if err != nil {
			p.err = err
		}
		p.mu.Unlock()
	}
	p.cmd.Wait()
}

// got are the records the member has read so far.
func (p *process) got() []line {
	p.mu.Lock()
	defer p.mu.Unlock()
	var out []line
	for _, l := range p.lines {
		if l.Step == "got" {
			out = append(out, l)
		}
	}
	return out
}

// complaint is the last error that the member told of, for messages.
func (p *process) complaint() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := len(p.lines) - 1; i >= 0; i-- {
		if !p.lines[i].OK {
			return p.lines[i].Detail
		}
	}
	return "no complaint"
}

// kill is kill -9 of the member and what it started.
func (p *process) kill() {
	syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL)
	<-p.done
}

// stop asks the member to leave, and demands that it does.
func (p *process) stop() error {
	p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.done:
	case <-time.After(20 * time.Second):
		p.kill()
		return fmt.Errorf("the member did not end within 20 s of SIGTERM; it last said: %s", p.complaint())
	}
	if p.err != nil {
		return p.err
	}
	if code := p.cmd.ProcessState.ExitCode(); code != 0 {
		return fmt.Errorf("the member ended with status %d; it last said: %s", code, p.complaint())
	}
	return nil
}
