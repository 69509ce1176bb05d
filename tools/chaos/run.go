package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// mostFindings ends a run: what comes after so many is the same again.
const mostFindings = 20

// run is the parent: it starts children until the time is over, and adds up.
type run struct {
	out        io.Writer
	seed       uint64
	parts      []string
	length     time.Duration
	workers    int
	raceBinary string
	keep       string

	stop chan struct{} // closed by a signal, the end of the time or too many findings
	once sync.Once

	mu       sync.Mutex
	rng      *rand.Rand
	totals   map[string]*counts
	findings int
}

// run returns the exit status: 0 without a finding.
func (r *run) run() int {
	begun := time.Now()
	r.stop, r.rng, r.totals = make(chan struct{}), rand.New(rand.NewPCG(r.seed, 0)), map[string]*counts{}
	fmt.Fprintf(r.out, "chaos: seed %d, %v, parts %s (SEED=%d repeats the run)\n", r.seed, r.length, strings.Join(r.parts, " "), r.seed)
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() { // ends with this process
		select {
		case <-signals:
		case <-time.After(r.length):
		}
		r.end()
	}()
	var workers sync.WaitGroup
	for range r.workers {
		workers.Go(func() { // ends when stop is closed
			for !r.over() {
				r.child(r.draw())
			}
		})
	}
	workers.Wait()
	var all counts
	for _, name := range partNames() {
		if c := r.totals[name]; c != nil {
			fmt.Fprintf(r.out, "%-9s %v\n", name, *c)
			all.add(*c)
		}
	}
	fmt.Fprintf(r.out, "chaos: seed %d, %v: %v; %d findings\n", r.seed, time.Since(begun).Round(time.Second), all, r.findings)
	if r.findings > 0 {
		return 1
	}
	return 0
}

func (r *run) end() { r.once.Do(func() { close(r.stop) }) }

func (r *run) over() bool {
	select {
	case <-r.stop:
		return true
	default:
		return false
	}
}

// draw chooses the next part, by weight, and the seed of its first episode.
func (r *run) draw() (*part, uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	total := 0
	for _, name := range r.parts {
		total += partOf(name).weight
	}
	n := r.rng.IntN(total)
	for _, name := range r.parts {
		p := partOf(name)
		if n -= p.weight; n < 0 {
			return p, r.rng.Uint64() >> 16
		}
	}
	panic("chaos: no part was drawn")
}

// child runs one child to its end.
func (r *run) child(p *part, seed uint64) {
	program := os.Args[0]
	if p.name == "together" && r.raceBinary != "" {
		program = r.raceBinary
	}
	cmd := exec.Command(program, "-child", "-part", p.name, "-seed", strconv.FormatUint(seed, 10), "-for", p.slice.String(), "-millrace", serverBinary)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL} // a ^C is the parent's to pass on
	said, w := io.Pipe()
	cmd.Stdout, cmd.Stderr = w, w
	in, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		fmt.Fprintln(r.out, "chaos: no child:", err)
		r.finding(p, seed, err.Error())
		r.end()
		return
	}
	ended := make(chan struct{})
	go func() { // ends with the child
		select {
		case <-r.stop:
			in.Close() // it stops after the step it is at
		case <-ended:
		}
	}()
	var status error
	go func() { // ends with the child
		status = cmd.Wait()
		w.Close()
	}()
	seed, text := r.listen(p, seed, said)
	close(ended)
	if status != nil { // written before the pipe was closed
		r.finding(p, seed, text+"\n"+status.Error())
	}
}

// listen takes what a child says: its counts, the seed of its last episode, and the rest.
func (r *run) listen(p *part, seed uint64, said io.Reader) (last uint64, text string) {
	var rest strings.Builder
	var c counts
	lines := bufio.NewReader(said)
	for {
		line, err := lines.ReadString('\n')
		if n, ok := strings.CutPrefix(line, sayEpisode); ok {
			seed, _ = strconv.ParseUint(strings.TrimSpace(n), 10, 64)
		} else if j, ok := strings.CutPrefix(line, sayCounts); ok {
			_ = json.Unmarshal([]byte(j), &c)
		} else {
			rest.WriteString(line)
		}
		if err != nil {
			break
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.totals[p.name] == nil {
		r.totals[p.name] = &counts{}
	}
	r.totals[p.name].add(c)
	return seed, rest.String()
}

// finding tells of one, with what repeats it, and keeps all that was said.
func (r *run) finding(p *part, seed uint64, text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.findings++
	name := filepath.Join(r.keep, fmt.Sprintf("%s-%d.txt", p.name, seed))
	if err := os.MkdirAll(r.keep, 0o755); err != nil {
		fmt.Fprintln(r.out, err)
	} else if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		fmt.Fprintln(r.out, err)
	}
	const shown = 6
	head := strings.SplitN(strings.TrimSpace(text), "\n", shown+1)
	fmt.Fprintf(r.out, "FINDING part %s seed %d (make chaos ONLY=%s SEED=%d ONCE=1 repeats it; all of it in %s):\n  %s\n",
		p.name, seed, p.name, seed, name, strings.Join(head[:min(shown, len(head))], "\n  "))
	if r.findings >= mostFindings {
		r.end()
	}
}
