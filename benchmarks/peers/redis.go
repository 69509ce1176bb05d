package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"millrace/benchmarks/peers/report"
	"millrace/benchmarks/process"
)

func (e *env) redis() *server { return e.redisServer(report.Redis, "everysec") }

func (e *env) redisSynced() *server { return e.redisServer(report.RedisSynced, "always") }

func (e *env) redisServer(label, appendfsync string) *server {
	return &server{label: label, stop: time.Minute, client: redisClient{}, start: func(s *server) (*process.Process, string, error) {
		bin, err := debian(e.ctx, "redis-server", "redis-server")
		if err != nil {
			return nil, "", err
		}
		port, err := freePort()
		if err != nil {
			return nil, "", err
		}
		p, _, err := process.Start(strings.ReplaceAll(label, " ", "-"), s.dir, nil, bin, "--port", strconv.Itoa(port), "--bind", "127.0.0.1", "--dir", s.dir,
			"--appendonly", "yes", "--appendfsync", appendfsync, "--save", "", "--daemonize", "no", "--logfile", "server.log")
		if err != nil {
			return nil, "", err
		}
		addr := fmt.Sprintf("127.0.0.1:%d", port)
		if err := e.answers(p, time.Minute, func() error { return redisAsk(addr, "PING") }); err != nil {
			p.Kill()
			return nil, "", err
		}
		return p, addr, nil
	}}
}

var aptUpdate sync.Once

// debian finds a program or installs the package that has it.
func debian(ctx context.Context, pkg, program string) (string, error) {
	if p, err := exec.LookPath(program); err == nil {
		return p, nil
	}
	if !isRoot() {
		return "", errNotHad{program + " is not installed, and installing it takes root"}
	}
	if _, err := exec.LookPath("apt-get"); err != nil {
		return "", errNotHad{program + " is not installed, and there is no apt-get to install it with"}
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	apt := func(args ...string) error {
		cmd := exec.CommandContext(ctx, "apt-get", args...)
		// RUNLEVEL=1 keeps the package from starting its service.
		cmd.Env = append(cmd.Environ(), "DEBIAN_FRONTEND=noninteractive", "RUNLEVEL=1")
		if out, err := cmd.CombinedOutput(); err != nil {
			return errNotHad{fmt.Sprintf("apt-get %s: %v: %s", strings.Join(args, " "), err, process.LastLine(out))}
		}
		return nil
	}
	aptUpdate.Do(func() { apt("update") })
	fmt.Println("  installing", pkg)
	if err := apt("install", "-y", "--no-install-recommends", pkg); err != nil {
		return "", err
	}
	return exec.LookPath(program)
}

// redisClient sends prepared XADD commands over raw connections.
type redisClient struct{}

// command encodes one command of Redis's protocol.
func command(words ...string) []byte {
	b := fmt.Appendf(nil, "*%d\r\n", len(words))
	for _, w := range words {
		b = fmt.Appendf(b, "$%d\r\n%s\r\n", len(w), w)
	}
	return b
}

// reply reads one answer: a string, an integer as string, nil, or a slice of answers. An error answer is an error.
func reply(r *bufio.Reader) (any, error) {
	line, err := r.ReadString('\n')
	if err != nil {
		return nil, err
	}
	line = strings.TrimRight(line, "\r\n")
	if line == "" {
		return nil, errors.New("redis: an empty answer")
	}
	switch line[0] {
	case '+', ':':
		return line[1:], nil
	case '-':
		return nil, errors.New("redis: " + line[1:])
	}
	n, err := strconv.Atoi(line[1:])
	if err != nil || n > 512<<20 {
		return nil, fmt.Errorf("redis: an answer that begins %q", line)
	}
	if n < 0 {
		return nil, nil
	}
	if line[0] == '$' {
		b := make([]byte, n+2)
		_, err := io.ReadFull(r, b)
		return string(b[:n]), err
	}
	if line[0] != '*' {
		return nil, fmt.Errorf("redis: an answer that begins %q", line)
	}
	list := make([]any, n)
	for i := range list {
		if list[i], err = reply(r); err != nil {
			return nil, err
		}
	}
	return list, nil
}

func redisAsk(addr string, words ...string) error {
	c, err := net.DialTimeout("tcp", addr, 5*time.Second)
	if err != nil {
		return err
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(30 * time.Second))
	if _, err := c.Write(command(words...)); err != nil {
		return err
	}
	_, err = reply(bufio.NewReader(c))
	return err
}

func xadd() []byte { return command("XADD", benchTopic, "*", "v", string(stamp(time.Now()))) }

func (redisClient) first(e *env, s *server) error {
	return e.answers(s.proc, firstLimit, func() error { return redisAsk(s.addr, "XADD", benchTopic, "*", "v", "x") })
}

// closed keeps conns × flight commands under way: a connection's next ones go out when all of its last are answered.
func (redisClient) closed(e *env, s *server, conns, flight int) (report.Values, int, error) {
	var out []byte
	for range flight {
		out = append(out, xadd()...)
	}
	hists, counts, errs := make([]*hdrhistogram.Histogram, conns), make([]int, conns), make([]error, conns)
	before, begun := s.proc.CPU(), time.Now()
	until := begun.Add(e.duration)
	var wg sync.WaitGroup
	for i := range conns {
		hists[i] = hdrhistogram.New(1, 120_000_000, 3)
		wg.Go(func() { // ends when the time is over
			c, err := net.DialTimeout("tcp", s.addr, 5*time.Second)
			if err != nil {
				errs[i] = err
				return
			}
			defer c.Close()
			c.SetDeadline(until.Add(time.Minute))
			r := bufio.NewReaderSize(c, 64<<10)
			for time.Now().Before(until) {
				at := time.Now()
				if _, errs[i] = c.Write(out); errs[i] != nil {
					return
				}
				for range flight {
					if _, errs[i] = reply(r); errs[i] != nil {
						return
					}
				}
				hists[i].RecordValue(max(1, time.Since(at).Microseconds()))
				counts[i] += flight
			}
		})
	}
	wg.Wait()
	took, n := time.Since(begun), 0
	all := hdrhistogram.New(1, 120_000_000, 3)
	for i := range conns {
		n += counts[i]
		all.Merge(hists[i])
	}
	v := rateOf(s, n, 100*n, took, before)
	if flight == 1 {
		withLatency(v, all)
	}
	return v, n, errors.Join(errs...)
}

func (c redisClient) one(e *env, s *server, conns int) (report.Values, error) {
	v, _, err := c.closed(e, s, conns, 1)
	return v, err
}

func (c redisClient) full(e *env, s *server) (report.Values, int, error) {
	return c.closed(e, s, 8, 100)
}

func (redisClient) open(e *env, s *server, perSecond int) (report.Values, error) {
	c, err := net.DialTimeout("tcp", s.addr, 5*time.Second)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	total := max(10, int(float64(perSecond)*e.duration.Seconds()))
	c.SetDeadline(time.Now().Add(e.duration + time.Minute))
	before, start, frame := s.proc.CPU(), time.Now(), xadd()
	when := func(i int) time.Time { return start.Add(time.Duration(i) * time.Second / time.Duration(perSecond)) }
	sent := make(chan error, 1)
	go func() { // ends after the last command or with the connection
		for i := range total {
			if d := time.Until(when(i)); d > 0 {
				time.Sleep(d)
			}
			if _, err := c.Write(frame); err != nil {
				sent <- err
				return
			}
		}
		sent <- nil
	}()
	hist, r := hdrhistogram.New(1, 120_000_000, 3), bufio.NewReaderSize(c, 64<<10)
	for i := range total {
		if _, err := reply(r); err != nil {
			return nil, err
		}
		hist.RecordValue(max(1, time.Since(when(i)).Microseconds()))
	}
	return withLatency(rateOf(s, total, 100*total, time.Since(start), before), hist), <-sent
}

func (redisClient) read(e *env, s *server, count int) (report.Values, error) {
	c, err := net.DialTimeout("tcp", s.addr, 5*time.Second)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(time.Minute))
	r := bufio.NewReaderSize(c, 256<<10)
	before, begun, last, got := s.proc.CPU(), time.Now(), "0", 0
	for got < count {
		if _, err := c.Write(command("XREAD", "COUNT", "1000", "STREAMS", benchTopic, last)); err != nil {
			return nil, err
		}
		answer, err := reply(r)
		if err != nil {
			return nil, err
		}
		n, id := entries(answer)
		if n == 0 {
			return nil, fmt.Errorf("redis: the stream ended after %d of %d messages", got, count)
		}
		got, last = got+n, id
	}
	return rateOf(s, got, 100*got, time.Since(begun), before), nil
}

// entries is how many entries an XREAD of one stream brought, and the last one's id.
func entries(answer any) (n int, last string) {
	streams, _ := answer.([]any)
	if len(streams) != 1 {
		return 0, ""
	}
	pair, _ := streams[0].([]any)
	if len(pair) != 2 {
		return 0, ""
	}
	list, _ := pair[1].([]any)
	if len(list) == 0 {
		return 0, ""
	}
	entry, _ := list[len(list)-1].([]any)
	if len(entry) != 2 {
		return 0, ""
	}
	last, _ = entry[0].(string)
	return len(list), last
}
