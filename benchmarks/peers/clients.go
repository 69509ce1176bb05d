package main

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"millrace/benchmarks/load"
	"millrace/benchmarks/peers/report"
	"millrace/benchmarks/process"
)

// client is how a kind of system is loaded with messages of 100 B, all on one stream.
type client interface {
	first(e *env, s *server) error                                // tries until one message is acknowledged
	one(e *env, s *server, conns int) (report.Values, error)      // message by message on each connection
	full(e *env, s *server) (report.Values, int, error)           // as fast as one client goes; how many it put
	open(e *env, s *server, perSecond int) (report.Values, error) // at a fixed rate, whatever the acks do
	read(e *env, s *server, count int) (report.Values, error)     // from the start
}

const benchTopic = "bench"

// firstLimit bounds the wait for the first ack after a start.
const firstLimit = 3 * time.Minute

// kafkaClient speaks Kafka's protocol: prepared frames where each message waits for its ack, franz-go elsewhere.
type kafkaClient struct{}

func (kafkaClient) first(e *env, s *server) error {
	r := load.Row{Records: 1, Size: 100, Partitions: 1, Connections: 1, InFlight: 1, Acks: -1}
	frame := load.ProduceFrame(r, benchTopic)
	return e.answers(s.proc, firstLimit, func() error {
		err := load.Fill(s.addr, r, frame, 1)
		if err != nil && !s.used[benchTopic] {
			return e.topic(s, benchTopic, 1)
		}
		return err
	})
}

func (c kafkaClient) ready(e *env, s *server) error {
	if err := e.topic(s, benchTopic, 1); err != nil {
		return err
	}
	return e.leads(s, benchTopic, 1)
}

func (c kafkaClient) one(e *env, s *server, conns int) (report.Values, error) {
	if err := c.ready(e, s); err != nil {
		return nil, err
	}
	r := load.Row{Records: 1, Size: 100, Partitions: 1, Connections: conns, InFlight: 1, Acks: 1}
	res, err := e.run(s, r, [][]byte{load.ProduceFrame(r, benchTopic)})
	return values(r, res), err
}

func (c kafkaClient) full(e *env, s *server) (report.Values, int, error) {
	if err := c.ready(e, s); err != nil {
		return nil, 0, err
	}
	// The default window of 10,000 records holds franz-go back; librdkafka's is 100,000.
	k, err := kgo.NewClient(kgo.SeedBrokers(s.addr), kgo.DefaultProduceTopic(benchTopic), kgo.MaxBufferedRecords(100_000))
	if err != nil {
		return nil, 0, err
	}
	defer k.Close()
	ctx, cancel := context.WithTimeout(e.ctx, e.duration+time.Minute)
	defer cancel()
	var failed atomic.Pointer[error]
	done := func(_ *kgo.Record, err error) {
		if err != nil {
			failed.CompareAndSwap(nil, &err)
		}
	}
	value := make([]byte, 100)
	before, begun, n := s.proc.CPU(), time.Now(), 0
	for until := begun.Add(e.duration); time.Now().Before(until); {
		for range 100 {
			k.Produce(ctx, &kgo.Record{Value: value}, done)
		}
		n += 100
	}
	if err := k.Flush(ctx); err != nil {
		return nil, 0, err
	}
	if err := failed.Load(); err != nil {
		return nil, 0, *err
	}
	return rateOf(s, n, 100*n, time.Since(begun), before), n, nil
}

func (c kafkaClient) open(e *env, s *server, perSecond int) (report.Values, error) {
	if err := c.ready(e, s); err != nil {
		return nil, err
	}
	k, err := kgo.NewClient(kgo.SeedBrokers(s.addr), kgo.DefaultProduceTopic(benchTopic), kgo.ProducerLinger(0), kgo.MaxBufferedRecords(1_000_000))
	if err != nil {
		return nil, err
	}
	defer k.Close()
	ctx, cancel := context.WithTimeout(e.ctx, e.duration+time.Minute)
	defer cancel()
	if err := k.ProduceSync(ctx, &kgo.Record{Value: make([]byte, 100)}).FirstErr(); err != nil { // connects
		return nil, err
	}
	var mu sync.Mutex
	hist, failed := hdrhistogram.New(1, 120_000_000, 3), error(nil)
	total := max(10, int(float64(perSecond)*e.duration.Seconds()))
	before, start := s.proc.CPU(), time.Now()
	for i := range total {
		at := start.Add(time.Duration(i) * time.Second / time.Duration(perSecond))
		if d := time.Until(at); d > 0 {
			time.Sleep(d)
		}
		k.Produce(ctx, &kgo.Record{Value: make([]byte, 100)}, func(_ *kgo.Record, err error) {
			mu.Lock()
			defer mu.Unlock()
			hist.RecordValue(max(1, time.Since(at).Microseconds()))
			if err != nil {
				failed = err
			}
		})
	}
	if err := k.Flush(ctx); err != nil {
		return nil, err
	}
	v := rateOf(s, total, 100*total, time.Since(start), before)
	mu.Lock()
	defer mu.Unlock()
	return withLatency(v, hist), failed
}

func (c kafkaClient) read(e *env, s *server, count int) (report.Values, error) {
	k, err := kgo.NewClient(kgo.SeedBrokers(s.addr), kgo.ConsumeTopics(benchTopic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		return nil, err
	}
	defer k.Close()
	ctx, cancel := context.WithTimeout(e.ctx, time.Minute)
	defer cancel()
	before, begun, got, bytes := s.proc.CPU(), time.Now(), 0, 0
	for got < count {
		f := k.PollFetches(ctx)
		if err := f.Err(); err != nil {
			return nil, fmt.Errorf("after %d of %d records: %w", got, count, err)
		}
		f.EachRecord(func(r *kgo.Record) {
			got++
			bytes += len(r.Value)
		})
	}
	return rateOf(s, got, bytes, time.Since(begun), before), nil
}

// noAcks sends batches without asking for answers over one raw connection; the time ends when the last can be read.
func (c kafkaClient) noAcks(e *env, s *server) (report.Values, int, error) {
	if err := c.ready(e, s); err != nil {
		return nil, 0, err
	}
	end, err := latestOffset(e.ctx, s.addr, benchTopic)
	if err != nil {
		return nil, 0, err
	}
	conn, err := net.DialTimeout("tcp", s.addr, 5*time.Second)
	if err != nil {
		return nil, 0, err
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(e.duration + time.Minute))
	frame := load.ProduceFrame(load.Row{Records: jafkaBatch, Size: 100, Partitions: 1, Acks: 0}, benchTopic)
	before, begun, n := s.proc.CPU(), time.Now(), 0
	for until := begun.Add(e.duration); time.Now().Before(until); n += jafkaBatch {
		if _, err := conn.Write(frame); err != nil {
			return nil, 0, err
		}
	}
	for end += int64(n); ; time.Sleep(2 * time.Millisecond) {
		at, err := latestOffset(e.ctx, s.addr, benchTopic)
		if err != nil {
			return nil, 0, err
		}
		if at >= end {
			return rateOf(s, n, 100*n, time.Since(begun), before), n, nil
		}
		if time.Since(begun) > e.duration+time.Minute {
			return nil, 0, fmt.Errorf("the log ends at %d of %d a minute after the last batch", at, end)
		}
	}
}

// latestOffset is the offset behind the last record that can be read in partition 0.
func latestOffset(ctx context.Context, addr, topic string) (int64, error) {
	req, resp := kmsg.NewPtrListOffsetsRequest(), kmsg.NewPtrListOffsetsResponse()
	req.SetVersion(1)
	resp.SetVersion(1)
	req.ReplicaID = -1
	t := kmsg.NewListOffsetsRequestTopic()
	t.Topic = topic
	p := kmsg.NewListOffsetsRequestTopicPartition()
	p.Timestamp = -1
	t.Partitions = append(t.Partitions, p)
	req.Topics = append(req.Topics, t)
	if err := load.Ask(ctx, addr, req, resp); err != nil {
		return 0, err
	}
	if len(resp.Topics) != 1 || len(resp.Topics[0].Partitions) != 1 {
		return 0, errors.New("no answer about the topic's offsets")
	}
	if code := resp.Topics[0].Partitions[0].ErrorCode; code != 0 {
		return 0, fmt.Errorf("asking for the latest offset of %s: error code %d", topic, code)
	}
	return resp.Topics[0].Partitions[0].Offset, nil
}

// rateOf is the figure of n messages moved in the time.
func rateOf(s *server, n, bytes int, took, before time.Duration) report.Values {
	v := report.Values{report.PerSecond: float64(n) / took.Seconds(), report.MBps: float64(bytes) / took.Seconds() / 1e6}
	if n > 0 && bytes > 0 {
		used := (s.proc.CPU() - before).Seconds()
		v[report.CPUMillion], v[report.CPUGB] = used/(float64(n)/1e6), used/(float64(bytes)/1e9)
	}
	return v
}

func withLatency(v report.Values, h *hdrhistogram.Histogram) report.Values {
	v[report.P50], v[report.P99], v[report.P999] = float64(h.ValueAtQuantile(50)), float64(h.ValueAtQuantile(99)), float64(h.ValueAtQuantile(99.9))
	return v
}

// others builds the program that holds the NATS server and the Go clients of NATS and RabbitMQ, once in a run.
func (e *env) others() (string, error) {
	e.once.Do(func() {
		bin := filepath.Join(e.cache, "lib", "others")
		ctx, cancel := context.WithTimeout(e.ctx, 5*time.Minute)
		defer cancel()
		if err := os.MkdirAll(filepath.Dir(bin), 0o755); err != nil {
			e.onceErr = err
			return
		}
		cmd := exec.CommandContext(ctx, "go", "build", "-o", bin, ".")
		cmd.Dir = filepath.Join("benchmarks", "peers", "others")
		if out, err := cmd.CombinedOutput(); err != nil {
			e.onceErr = errNotHad{fmt.Sprintf("building benchmarks/peers/others: %v: %s", err, process.LastLine(out))}
			return
		}
		e.oncePath = bin
	})
	return e.oncePath, e.onceErr
}

// built is shared by all sections of a run.
type built struct {
	once     sync.Once
	oncePath string
	onceErr  error
}

// otherClient runs the program of benchmarks/peers/others against NATS or RabbitMQ.
type otherClient struct{ kind string }

// otherResult is what that program prints.
type otherResult struct {
	Count, Bytes   int
	Seconds        float64
	P50, P99, P999 float64
}

func (c otherClient) do(e *env, s *server, op string, args ...string) (report.Values, int, error) {
	bin, err := e.others()
	if err != nil {
		return nil, 0, err
	}
	before := s.proc.CPU()
	out, err := e.command(firstLimit+10*time.Second, "", bin, append([]string{c.kind, "-addr", s.addr, "-op", op, "-stream", benchTopic, "-duration", e.duration.String(),
		"-limit", "90s"}, args...)...)
	if err != nil {
		return nil, 0, err
	}
	var r otherResult
	if err := json.Unmarshal(out, &r); err != nil {
		return nil, 0, err
	}
	v := rateOf(s, r.Count, r.Bytes, time.Duration(r.Seconds*float64(time.Second)), before)
	if r.P50 > 0 {
		v[report.P50], v[report.P99], v[report.P999] = r.P50, r.P99, r.P999
	}
	return v, r.Count, nil
}

func (c otherClient) first(e *env, s *server) error {
	_, _, err := c.do(e, s, "first")
	return err
}

func (c otherClient) one(e *env, s *server, conns int) (report.Values, error) {
	v, _, err := c.do(e, s, "one", "-conns", strconv.Itoa(conns))
	return v, err
}

func (c otherClient) full(e *env, s *server) (report.Values, int, error) {
	v, n, err := c.do(e, s, "full")
	if err == nil { // the latency of a full window says nothing
		delete(v, report.P50)
		delete(v, report.P99)
		delete(v, report.P999)
	}
	return v, n, err
}

func (c otherClient) open(e *env, s *server, perSecond int) (report.Values, error) {
	v, _, err := c.do(e, s, "open", "-rate", strconv.Itoa(perSecond))
	return v, err
}

func (c otherClient) read(e *env, s *server, count int) (report.Values, error) {
	v, _, err := c.do(e, s, "read", "-count", strconv.Itoa(count))
	return v, err
}

func (e *env) nats() *server { return e.natsServer(report.NATS) }

func (e *env) natsSynced() *server { return e.natsServer(report.NATSSynced, "-sync") }

func (e *env) natsServer(label string, args ...string) *server {
	return &server{label: label, stop: time.Minute, client: otherClient{"nats"}, start: func(s *server) (*process.Process, string, error) {
		bin, err := e.others()
		if err != nil {
			return nil, "", err
		}
		return process.StartReady(strings.NewReplacer(" ", "-", "=", "-").Replace(label), s.dir, bin, append([]string{"nats-server", "-dir", filepath.Join(s.dir, "data")}, args...)...)
	}}
}

// stamp is a message of 100 B that begins with a time.
func stamp(at time.Time) []byte {
	v := make([]byte, 100)
	binary.BigEndian.PutUint64(v, uint64(at.UnixNano()))
	return v
}
