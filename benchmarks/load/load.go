// Package load sends prepared Kafka frames over raw connections and measures the answers. It is the client of benchmarks/limits
// and benchmarks/peers: one that costs next to nothing itself.
package load

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Row is one kind of load: the same prepared frames go to every server.
type Row struct {
	Records     int // records in a batch
	Size        int // bytes of a record's value
	Partitions  int // partitions in one request
	Connections int
	InFlight    int
	Acks        int16
	Rate        int    // requests/s for an open loop; 0 = as fast as answers come
	Fetch       int    // bytes asked of each partition; 0 = a produce row
	Body        []byte // comes after each frame, so that thousands of frames for as many partitions need not each hold a batch: the client's own memory stays small
	Spread      bool   // connections begin at frames far apart, so that no two are at the same one soon after each other
}

// Produce says whether the row's requests are produce requests; otherwise they are fetches.
func (r Row) Produce() bool { return r.Fetch == 0 }

// RecordsPerRequest is how many records one produce request carries.
func (r Row) RecordsPerRequest() int { return r.Records * r.Partitions }

// Result is what one load measured.
type Result struct {
	Requests  int64         `json:"requests"`
	Bytes     int64         `json:"bytes"` // of payload: request frames for produce, answers for fetch
	Elapsed   time.Duration `json:"elapsed"`
	CPU       time.Duration `json:"cpu"`              // of the server
	Kernel    time.Duration `json:"kernel,omitempty"` // of CPU, what was spent in the kernel
	P50, P99  int64         // µs
	P999      int64
	PerSecond float64 `json:"per_second"`
}

// Run sends the frames over r.Connections for the given time and measures answers.
func Run(addr string, r Row, frames [][]byte, d time.Duration) (Result, error) {
	conns := make([]net.Conn, r.Connections)
	for i := range conns {
		c, err := net.DialTimeout("tcp", addr, 10*time.Second)
		if err != nil {
			return Result{}, err
		}
		defer c.Close()
		c.SetDeadline(time.Now().Add(d + 60*time.Second))
		conns[i] = c
	}
	hists := make([]*hdrhistogram.Histogram, len(conns))
	counts, bytes, errs := make([]int64, len(conns)), make([]int64, len(conns)), make([]error, len(conns))
	start := time.Now()
	var wg sync.WaitGroup
	for i, c := range conns {
		hists[i] = hdrhistogram.New(1, 120_000_000, 3)
		wg.Go(func() { // ends when the time is over and the last answer is in
			w := worker{conn: c, row: r, frames: frames, hist: hists[i], start: start, until: start.Add(d)}
			if r.Rate > 0 {
				w.every = time.Duration(float64(time.Second) * float64(len(conns)) / float64(r.Rate))
				w.first = time.Duration(i) * w.every / time.Duration(len(conns))
				errs[i] = w.open()
			} else {
				w.turn = i
				if r.Spread {
					w.turn = i * len(frames) / len(conns)
				}
				errs[i] = w.closed()
			}
			counts[i], bytes[i] = w.count, w.bytes
		})
	}
	wg.Wait()
	elapsed := time.Since(start)
	if err := errors.Join(errs...); err != nil {
		return Result{}, err
	}
	all := hdrhistogram.New(1, 120_000_000, 3)
	res := Result{Elapsed: elapsed}
	for i := range conns {
		all.Merge(hists[i])
		res.Requests += counts[i]
		res.Bytes += bytes[i]
	}
	res.PerSecond = float64(res.Requests) / elapsed.Seconds()
	res.P50, res.P99, res.P999 = all.ValueAtQuantile(50), all.ValueAtQuantile(99), all.ValueAtQuantile(99.9)
	return res, nil
}

type worker struct {
	conn         net.Conn
	row          Row
	frames       [][]byte
	hist         *hdrhistogram.Histogram
	start, until time.Time
	every, first time.Duration // open loop
	turn         int           // which frame is next

	count, bytes int64
	out          []byte
	in           []byte
	have         int
}

// closed keeps inFlight requests under way: as many new ones go out in one write as answers came in with one read.
func (w *worker) closed() error {
	sent := make([]time.Time, 0, w.row.InFlight)
	if err := w.send(w.row.InFlight); err != nil {
		return err
	}
	for range w.row.InFlight {
		sent = append(sent, time.Now())
	}
	for len(sent) > 0 {
		n, err := w.answers(len(sent))
		if err != nil {
			return err
		}
		now := time.Now()
		for _, t := range sent[:n] {
			w.hist.RecordValue(now.Sub(t).Microseconds())
		}
		w.count += int64(n)
		sent = sent[:copy(sent, sent[n:])]
		if now.After(w.until) {
			continue
		}
		if err := w.send(n); err != nil {
			return err
		}
		for range n {
			sent = append(sent, now)
		}
	}
	return nil
}

// open sends at fixed times whatever the answers do, and measures from the intended time.
func (w *worker) open() error {
	total := int(w.until.Sub(w.start) / w.every)
	failed := make(chan error, 1)
	go func() { // ends after the last request is sent; the reader below waits for as many answers
		for i := range total {
			time.Sleep(time.Until(w.start.Add(w.first + time.Duration(i)*w.every)))
			if _, err := w.conn.Write(w.frames[0]); err != nil {
				failed <- err
				w.conn.Close()
				return
			}
			w.bytes += int64(len(w.frames[0]))
		}
		failed <- nil
	}()
	for got := 0; got < total; {
		n, err := w.answers(total - got)
		if err != nil {
			return err
		}
		now := time.Now()
		for i := range n {
			w.hist.RecordValue(now.Sub(w.start.Add(w.first + time.Duration(got+i)*w.every)).Microseconds())
		}
		got += n
	}
	w.count = int64(total)
	return <-failed
}

func (w *worker) send(n int) error {
	if n == 1 && len(w.row.Body) == 0 {
		f := w.next()
		_, err := w.conn.Write(f)
		return err
	}
	w.out = w.out[:0]
	for range n {
		w.out = append(w.out, w.next()...)
		w.out = append(w.out, w.row.Body...)
	}
	_, err := w.conn.Write(w.out)
	return err
}

func (w *worker) next() []byte {
	f := w.frames[w.turn%len(w.frames)]
	w.turn++
	if w.row.Produce() {
		w.bytes += int64(len(f) + len(w.row.Body))
	}
	return f
}

// answers reads until at least one whole answer is in and checks each.
func (w *worker) answers(most int) (int, error) {
	if w.in == nil {
		w.in = make([]byte, 256<<10)
	}
	for {
		n, err := w.conn.Read(w.in[w.have:])
		if err != nil {
			if errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return 0, fmt.Errorf("reading an answer: %w", err)
		}
		w.have += n
		used, got := 0, 0
		for w.have-used >= 4 {
			size := 4 + int(binary.BigEndian.Uint32(w.in[used:]))
			if w.have-used < size {
				if size > len(w.in) {
					w.in = append(make([]byte, 0, size), w.in[:w.have]...)[:size]
				}
				break
			}
			if err := w.check(w.in[used : used+size]); err != nil {
				return got, err
			}
			used += size
			got++
		}
		w.have = copy(w.in, w.in[used:w.have])
		if got > 0 {
			return min(got, most), nil
		}
	}
}

// check looks at the first partition's error code, and for fetch at the size.
func (w *worker) check(b []byte) error {
	at := 4 + 4 + 4
	if !w.row.Produce() {
		at += 4 + 2 + 4 // throttle time, error and session come first
		w.bytes += int64(len(b))
		if len(b) < w.row.Fetch/2*w.row.Partitions {
			return fmt.Errorf("fetch answer of %d bytes, want about %d from each of %d partitions", len(b), w.row.Fetch, w.row.Partitions)
		}
	}
	at += 2 + int(binary.BigEndian.Uint16(b[at:])) + 4 + 4
	if code := int16(binary.BigEndian.Uint16(b[at:])); code != 0 {
		return fmt.Errorf("the server answered error code %d", code)
	}
	return nil
}
