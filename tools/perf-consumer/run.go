package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"millrace/tools/internal/cli"
	"millrace/tools/internal/client"
	"millrace/tools/internal/output"
)

// plan is a run, resolved from the command line.
type plan struct {
	settings   *client.Settings
	topics     []string
	include    *regexp.Regexp // used where topics is empty
	records    int64
	timeout    time.Duration // without a record
	interval   time.Duration
	detailed   bool
	hideHeader bool
	dates      dateFormat
	metrics    bool
	jsonFile   string
}

// pollMost is how many records are taken at a time: enough that taking them costs
// nothing, and never more than are still wanted.
const pollMost = 10_000

// pollWait is how long a poll waits before time and interval are looked at again.
const pollWait = 100 * time.Millisecond

// rebalances adds up the time without an assignment. The client's group
// goroutine writes, the run reads.
type rebalances struct {
	mu    sync.Mutex
	since time.Time // zero while partitions are assigned
	total time.Duration
}

func (r *rebalances) lost() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.since.IsZero() {
		r.since = time.Now()
	}
}

func (r *rebalances) assigned() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.since.IsZero() {
		r.total += time.Since(r.since)
		r.since = time.Time{}
	}
}

func (r *rebalances) spent() time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.since.IsZero() {
		return r.total
	}
	return r.total + time.Since(r.since)
}

// run is one measurement in progress.
type run struct {
	*plan
	client     *kgo.Client
	counted    metrics
	rebalances rebalances
	out        io.Writer
	progress   *output.Progress

	start         time.Time
	total, before tally // before: as it was at the last window
	windowStart   time.Time
	windows       []Summary
}

func (p *plan) run(ctx context.Context, out, status io.Writer) error {
	r := &run{plan: p, out: out, windows: []Summary{}}
	if err := r.open(ctx); err != nil {
		return err
	}
	defer r.client.Close()
	r.header()
	r.progress = output.StartProgress(status, r.records, false, "consumed")
	err := r.consume(ctx)
	end := time.Now()
	r.progress.Stop()

	var late *timeoutError
	if errors.As(err, &late) {
		fmt.Fprintf(out, "WARNING: Exiting before consuming the expected number of records: timeout (%d ms) exceeded. "+
			"You can use the --timeout option to increase the timeout.\n", r.timeout.Milliseconds())
	}
	r.advance(end)
	if !r.detailed {
		fmt.Fprintln(out, totalLine(r.dates, r.start, end, r.total))
	} else {
		r.window(end)
	}
	if r.metrics {
		r.counted.print(out)
	}
	if r.jsonFile != "" {
		if jsonErr := output.JSONFile(r.jsonFile, r.result(late != nil)); jsonErr != nil {
			return jsonErr
		}
	}
	return err
}

func (r *run) open(ctx context.Context) error {
	s := r.settings
	probe, err := s.Connect(ctx, s.Common())
	if err != nil {
		return err
	}
	defer probe.Close()
	if len(r.topics) == 0 {
		if r.topics, err = matching(ctx, probe, r.include); err != nil {
			return err
		}
	} else {
		for _, name := range r.topics {
			if _, err := client.RequireTopic(ctx, probe, name); err != nil {
				return err
			}
		}
	}
	o := append(s.Consumer(), kgo.ConsumeTopics(r.topics...), kgo.WithHooks(&r.counted))
	if s.GroupID != "" {
		o = append(o,
			kgo.OnPartitionsAssigned(func(context.Context, *kgo.Client, map[string][]int32) { r.rebalances.assigned() }),
			kgo.OnPartitionsRevoked(func(context.Context, *kgo.Client, map[string][]int32) { r.rebalances.lost() }),
			kgo.OnPartitionsLost(func(context.Context, *kgo.Client, map[string][]int32) { r.rebalances.lost() }))
		r.rebalances.lost() // until the first assignment
	}
	r.start = time.Now()
	r.windowStart = r.start
	r.client, err = kgo.NewClient(o...)
	return err
}

// matching lists the topics that --include means, without internal ones.
func matching(ctx context.Context, cl *kgo.Client, pattern *regexp.Regexp) ([]string, error) {
	topics, err := kadm.NewClient(cl).ListTopics(ctx)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, name := range topics.Names() {
		if pattern.MatchString(name) {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return nil, cli.NotFoundf("no topic matches %s", pattern)
	}
	return names, nil
}

func (r *run) header() {
	switch {
	case r.hideHeader:
	case r.detailed:
		fmt.Fprintln(r.out, windowHeader)
	default:
		fmt.Fprintln(r.out, totalHeader)
	}
}

// timeoutError says that records stopped coming.
type timeoutError struct{ got, wanted int64 }

func (e *timeoutError) Error() string {
	return fmt.Sprintf("%d of %d records came before the timeout", e.got, e.wanted)
}

func (r *run) consume(ctx context.Context) error {
	last := time.Now()
	for r.total.records < r.records {
		polling, cancel := context.WithTimeout(ctx, pollWait)
		fetches := r.client.PollRecords(polling, int(min(pollMost, r.records-r.total.records)))
		cancel()
		now := time.Now()
		if ctx.Err() != nil {
			return errors.New("interrupted")
		}
		for _, e := range fetches.Errors() {
			if !errors.Is(e.Err, context.DeadlineExceeded) {
				return r.fetchError(e)
			}
		}
		before := r.total.records
		fetches.EachRecord(func(record *kgo.Record) {
			r.total.records++
			r.total.bytes += int64(len(record.Key) + len(record.Value))
		})
		if r.total.records > before {
			last = now
		}
		if r.detailed && now.Sub(r.windowStart) >= r.interval {
			r.advance(now)
			r.window(now)
		}
		r.progress.Set(r.total.records)
		if now.Sub(last) > r.timeout {
			return &cli.Error{Status: cli.ExitUnreachable, Err: &timeoutError{r.total.records, r.records}}
		}
	}
	return nil
}

func (r *run) fetchError(e kgo.FetchError) error {
	if session := (*kgo.ErrGroupSession)(nil); errors.As(e.Err, &session) {
		return fmt.Errorf("group %q: %w; without --group no consumer group is used", r.settings.GroupID, session.Err)
	}
	return fmt.Errorf("topic %q partition %d: %w", e.Topic, e.Partition, e.Err)
}

// advance brings the total's times up to now.
func (r *run) advance(now time.Time) {
	r.total.elapsed = now.Sub(r.start)
	r.total.rebalance = min(r.rebalances.spent(), r.total.elapsed)
}

// window prints and keeps what happened since the last window.
func (r *run) window(now time.Time) {
	w := tally{
		records:   r.total.records - r.before.records,
		bytes:     r.total.bytes - r.before.bytes,
		elapsed:   now.Sub(r.windowStart),
		rebalance: r.total.rebalance - r.before.rebalance,
	}
	r.progress.Aside(func() { fmt.Fprintln(r.out, windowLine(r.dates, now, r.total, w)) })
	r.windows = append(r.windows, summary(w))
	r.before, r.windowStart = r.total, now
}

func (r *run) result(timedOut bool) Result {
	return Result{
		Tool: "perf-consumer", Version: client.Version(), Started: r.start,
		Topics: r.topics, Group: r.settings.GroupID, FetchSize: r.settings.PartitionMaxBytes,
		Wanted: r.records, TimedOut: timedOut,
		Total: summary(r.total), Windows: r.windows, Metrics: r.counted.values(),
	}
}
