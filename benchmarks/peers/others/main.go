// Command others is a NATS server in a process of its own, and load from the own Go clients of NATS JetStream and RabbitMQ streams.
// It is a module of its own so that Millrace depends on neither. benchmarks/peers builds and runs it:
//
//	others nats-server -dir DIR [-sync]            prints "ready listeners=PLAINTEXT://host:port"
//	others nats|rabbitmq -addr A -op OP [...]      prints one line of JSON
package main

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// client is one connection to a system. Its methods are called by one goroutine; acked is called by others.
type client interface {
	publish(value []byte) error                     // sends; the ack comes to acked with the same value
	read(count int) (n int, bytes int64, err error) // all of the stream from its start
	prepare() error                                 // makes the stream if it is not there
	close()
}

// result is what is printed. Latencies are in µs.
type result struct {
	Count   int64   `json:"count"`
	Bytes   int64   `json:"bytes"`
	Seconds float64 `json:"seconds"`
	P50     int64   `json:"p50"`
	P99     int64   `json:"p99"`
	P999    int64   `json:"p999"`
}

type options struct {
	addr, op, stream         string
	conns, rate, count, size int
	window                   int
	duration, limit          time.Duration
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "others:", err)
		os.Exit(1)
	}
}

func run() error {
	if len(os.Args) < 2 {
		return errors.New("want nats-server, nats or rabbitmq")
	}
	flags := flag.NewFlagSet(os.Args[1], flag.ExitOnError)
	var o options
	flags.StringVar(&o.addr, "addr", "", "host:port")
	flags.StringVar(&o.op, "op", "", "first, one, full, open or read")
	flags.StringVar(&o.stream, "stream", "bench", "name of the stream")
	flags.IntVar(&o.conns, "conns", 1, "connections")
	flags.IntVar(&o.rate, "rate", 1000, "messages/s of op open")
	flags.IntVar(&o.count, "count", 0, "messages of op read")
	flags.IntVar(&o.size, "size", 100, "bytes of a message")
	flags.IntVar(&o.window, "window", 4000, "messages without an ack, op full")
	flags.DurationVar(&o.duration, "duration", time.Second, "how long")
	flags.DurationVar(&o.limit, "limit", time.Minute, "most time for all of it")
	dir := flags.String("dir", "", "folder of nats-server")
	always := flags.Bool("sync", false, "nats-server: SyncAlways")
	flags.Parse(os.Args[2:])
	if os.Args[1] == "nats-server" {
		return serveNATS(*dir, *always)
	}
	time.AfterFunc(o.limit, func() {
		fmt.Fprintf(os.Stderr, "others: not done within %s\n", o.limit)
		os.Exit(1)
	})
	var res result
	var err error
	switch os.Args[1] {
	case "nats":
		res, err = measure(o, dialNATS)
	case "rabbitmq":
		res, err = measure(o, dialRabbitMQ)
	default:
		err = fmt.Errorf("no command %q", os.Args[1])
	}
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(res)
}

// load is the state that all connections share.
type load struct {
	options
	mu    sync.Mutex
	hist  *hdrhistogram.Histogram // guarded by mu
	acked atomic.Int64
	fail  atomic.Pointer[error]
	room  chan struct{} // a token for each message under way
}

// ack takes a message's ack: its value begins with the time it is counted from.
func (l *load) ack(value []byte, err error) {
	if err != nil {
		l.fail.CompareAndSwap(nil, &err)
	}
	if len(value) >= 8 {
		at := int64(binary.BigEndian.Uint64(value))
		l.mu.Lock()
		l.hist.RecordValue(max(1, (time.Now().UnixNano()-at)/1000))
		l.mu.Unlock()
	}
	l.acked.Add(1)
	select {
	case <-l.room:
	default:
	}
}

type dial func(o options, ack func(value []byte, err error)) (client, error)

func measure(o options, d dial) (result, error) {
	l := &load{options: o, hist: hdrhistogram.New(1, 120_000_000, 3), room: make(chan struct{}, max(1, o.window))}
	if o.op == "first" {
		return l.first(d)
	}
	c, err := d(o, l.ack)
	if err != nil {
		return result{}, err
	}
	defer c.close()
	if err := c.prepare(); err != nil {
		return result{}, err
	}
	begun := time.Now()
	var bytes int64
	switch o.op {
	case "one":
		err = l.one(d)
	case "full":
		err = l.full(c)
	case "open":
		err = l.open(c)
	case "read":
		var n int
		n, bytes, err = c.read(o.count)
		l.acked.Store(int64(n))
	default:
		err = fmt.Errorf("no op %q", o.op)
	}
	if f := l.fail.Load(); f != nil {
		err = errors.Join(err, *f)
	}
	if bytes == 0 {
		bytes = l.acked.Load() * int64(o.size)
	}
	l.mu.Lock() // after an error acks may still come
	defer l.mu.Unlock()
	return result{Count: l.acked.Load(), Bytes: bytes, Seconds: time.Since(begun).Seconds(), P50: l.hist.ValueAtQuantile(50),
		P99: l.hist.ValueAtQuantile(99), P999: l.hist.ValueAtQuantile(99.9)}, err
}

// first tries until one message is acknowledged.
func (l *load) first(d dial) (result, error) {
	begun := time.Now()
	for {
		c, err := d(l.options, l.ack)
		if err == nil {
			if err = c.prepare(); err == nil {
				if err = c.publish(l.value(time.Now())); err == nil {
					err = l.wait(1, 5*time.Second)
				}
			}
			c.close()
		}
		if err == nil {
			return result{Count: 1, Seconds: time.Since(begun).Seconds()}, nil
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// one sends message by message on each of its connections, the next when the last is acknowledged.
func (l *load) one(d dial) error {
	errs := make([]error, l.conns)
	var wg sync.WaitGroup
	for i := range l.conns {
		acked := make(chan error, 1)
		c, err := d(l.options, func(v []byte, err error) {
			l.ack(v, err)
			acked <- err
		})
		if err != nil {
			return err
		}
		defer c.close()
		wg.Go(func() { // ends when the time is over
			for until := time.Now().Add(l.duration); time.Now().Before(until) && errs[i] == nil; {
				if errs[i] = c.publish(l.value(time.Now())); errs[i] == nil {
					select {
					case errs[i] = <-acked:
					case <-time.After(10 * time.Second):
						errs[i] = errors.New("no ack within 10 s")
					}
				}
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// full sends as fast as acks come, with a window of messages under way.
func (l *load) full(c client) error {
	sent := int64(0)
	for until := time.Now().Add(l.duration); time.Now().Before(until); sent++ {
		select {
		case l.room <- struct{}{}:
		case <-time.After(10 * time.Second):
			return errors.New("no ack within 10 s")
		}
		if err := c.publish(l.value(time.Now())); err != nil {
			return err
		}
	}
	return l.wait(sent, 30*time.Second)
}

// open sends at a fixed rate whatever the acks do; latencies count from the intended time.
func (l *load) open(c client) error {
	total := int64(float64(l.rate) * l.duration.Seconds())
	start := time.Now()
	for i := range total {
		at := start.Add(time.Duration(i) * time.Second / time.Duration(l.rate))
		if d := time.Until(at); d > 0 {
			time.Sleep(d)
		}
		if err := c.publish(l.value(at)); err != nil {
			return err
		}
	}
	return l.wait(total, 30*time.Second)
}

func (l *load) wait(n int64, limit time.Duration) error {
	for until := time.Now().Add(limit); l.acked.Load() < n; time.Sleep(200 * time.Microsecond) {
		if f := l.fail.Load(); f != nil {
			return *f
		}
		if time.Now().After(until) {
			return fmt.Errorf("%d of %d messages were acknowledged", l.acked.Load(), n)
		}
	}
	return nil
}

func (l *load) value(at time.Time) []byte {
	v := make([]byte, l.size)
	binary.BigEndian.PutUint64(v, uint64(at.UnixNano()))
	return v
}
