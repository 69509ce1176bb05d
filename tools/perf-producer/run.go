package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"millrace/tools/internal/cli"
	"millrace/tools/internal/client"
	"millrace/tools/internal/output"
)

// plan is a run, resolved from the command line.
type plan struct {
	settings   *client.Settings
	topics     []string
	records    int64   // < 0: until the payload ends
	throughput float64 // records per second; < 0 no limit
	warmup     int64
	producers  int
	interval   time.Duration
	metrics    bool
	jsonFile   string
	payload    func(producer int) source
}

// producer is one client and what it has been told.
type producer struct {
	run      *run
	client   *kgo.Client
	recorder *recorder
	source   source
	free     sync.Pool // of *sent
}

// sent is a record on its way. It travels as the record's context, which comes
// back with it: no closure and no map entry is made for a record.
type sent struct {
	context.Context
	record   kgo.Record
	producer *producer
	start    time.Time // intended
	warm     bool
}

// run is the state that producers and reporter share.
type run struct {
	*plan
	grace   context.Context // ends graceLimit after the run was interrupted
	begun   time.Time
	next    atomic.Int64 // index of the next record; also decides its intended start
	done    atomic.Int64 // acknowledged or failed
	counted metrics
	members []*producer

	steady     chan struct{} // closed when the first record after the warm-up is sent
	steadyTime time.Time     // valid once steady is closed
}

// graceLimit is how long an interrupted run waits for what is on its way.
const graceLimit = 5 * time.Second

func (p *plan) run(ctx context.Context, out, status io.Writer) error {
	grace, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(graceLimit, cancel) })()
	r := &run{plan: p, grace: grace, steady: make(chan struct{})}
	if err := r.open(ctx); err != nil {
		return err
	}
	defer r.close()
	if p.warmup > 0 {
		fmt.Fprintf(out, "Warmup first %d records. Steady state results will print after the complete test summary.\n", p.warmup)
	}

	r.begun = time.Now()
	report := newReporter(r, out, status)
	finished := make(chan error, 1)
	go func() { finished <- r.send(ctx) }() // ends with the last acknowledgement, or with grace; the reporter waits for it
	sendErr := report.until(finished)
	result := report.finish()

	if p.metrics {
		r.counted.print(out)
	}
	if p.jsonFile != "" {
		if err := output.JSONFile(p.jsonFile, result); err != nil {
			return err
		}
	}
	return r.verdict(ctx, sendErr, result)
}

// verdict is an error if anything that was asked for did not happen.
func (r *run) verdict(ctx context.Context, sendErr error, result Result) error {
	_, first := r.failures()
	switch {
	case sendErr != nil:
		return sendErr
	case ctx.Err() != nil:
		return fmt.Errorf("interrupted: %d records acknowledged, %d failed", result.Total.Records, result.Failed)
	case result.Failed > 0:
		return &cli.Error{Status: failureStatus(first), Err: fmt.Errorf("%d records failed; the first: %w", result.Failed, first)}
	}
	return nil
}

// failures counts the refused records of all producers and gives the first error.
func (r *run) failures() (n int64, first error) {
	for _, p := range r.members {
		p.recorder.mu.Lock()
		n += p.recorder.failed
		if first == nil {
			first = p.recorder.first
		}
		p.recorder.mu.Unlock()
	}
	return n, first
}

func failureStatus(first error) int {
	if s := cli.Status(first); s != cli.ExitOK {
		return s
	}
	return cli.ExitFailure
}

func (r *run) open(ctx context.Context) error {
	o, err := r.settings.Producer()
	if err != nil {
		return cli.Usagef("%w", err)
	}
	o = append(o, kgo.AllowAutoTopicCreation(), kgo.WithHooks(&r.counted)) // Kafka's tool lets the broker make the topic, too
	for n := range r.producers {
		cl, err := r.settings.Connect(ctx, o)
		if err != nil {
			r.close()
			return err
		}
		p := &producer{run: r, client: cl, recorder: newRecorder(), source: r.payload(n)}
		p.free.New = func() any { // the value is never nil: an empty line is an empty record, not a null
			return &sent{Context: context.Background(), producer: p, record: kgo.Record{Value: []byte{}}}
		}
		r.members = append(r.members, p)
	}
	return nil
}

func (r *run) close() {
	for _, p := range r.members {
		p.client.Close()
	}
}

// send runs every producer to its end and waits for all acknowledgements.
func (r *run) send(ctx context.Context) error {
	errs := make([]error, len(r.members))
	var wait sync.WaitGroup
	for n, p := range r.members {
		wait.Go(func() { errs[n] = p.produce(ctx) })
	}
	wait.Wait()
	return errors.Join(errs...)
}

func (p *producer) produce(ctx context.Context) error {
	var failed error
	for ctx.Err() == nil {
		i := p.run.next.Add(1) - 1
		if p.run.records >= 0 && i >= p.run.records {
			break
		}
		s := p.free.Get().(*sent)
		value, err := p.source.append(s.record.Value[:0], i)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			failed = err
			break
		}
		if s.start, err = p.run.await(ctx, i); err != nil {
			break
		}
		p.submit(s, value, i)
	}
	_ = p.client.Flush(p.run.grace) // fails only at the end of grace; what is open then has failed by itself
	return failed
}

// await waits for the intended start of record i and returns it. Without a limit
// the intended start is now, before the send may block on a full buffer.
func (r *run) await(ctx context.Context, i int64) (time.Time, error) {
	now := time.Now()
	if r.throughput < 0 {
		return now, nil
	}
	start := r.begun.Add(time.Duration(float64(i) / r.throughput * float64(time.Second)))
	ahead := start.Sub(now)
	if ahead <= 0 {
		return start, nil // late: send at once, and count the lateness
	}
	if ahead < 100*time.Millisecond {
		time.Sleep(ahead)
		return start, nil
	}
	select {
	case <-time.After(ahead):
		return start, nil
	case <-ctx.Done():
		return start, ctx.Err()
	}
}

func (p *producer) submit(s *sent, value []byte, i int64) {
	r := p.run
	s.warm = i < r.warmup
	if i == r.warmup && r.warmup > 0 {
		r.steadyTime = s.start
		close(r.steady)
	}
	s.record = kgo.Record{
		Topic:     r.topics[i%int64(len(r.topics))],
		Partition: max(r.settings.Partition, 0),
		Value:     value,
		Context:   s,
	}
	p.client.Produce(r.grace, &s.record, acknowledged)
}

// acknowledged is the promise of every record. It runs on the client's own
// goroutine, one record after the other.
func acknowledged(record *kgo.Record, err error) {
	s := record.Context.(*sent)
	p := s.producer
	if err != nil {
		p.recorder.refused(err)
	} else {
		p.recorder.acknowledged(s.warm, time.Since(s.start), len(record.Value))
	}
	p.run.done.Add(1)
	p.free.Put(s)
}
