package main

import (
	"fmt"
	"io"
	"time"

	"millrace/tools/internal/client"
	"millrace/tools/internal/output"
)

// progressEvery is how often the live line is fed.
const progressEvery = 200 * time.Millisecond

// reporter prints a run's lines. It has no goroutine of its own: until runs on
// the caller's.
type reporter struct {
	run      *run
	out      io.Writer
	progress *output.Progress

	total, steady, warmWindow, window *tally
	windowBegun                       time.Time
	inSteady                          bool
	windows                           []Summary
	ended                             time.Time
}

func newReporter(r *run, out, status io.Writer) *reporter {
	return &reporter{
		run: r, out: out,
		progress: output.StartProgress(status, r.records, false, "sent"),
		total:    newTally(), steady: newTally(), warmWindow: newTally(), window: newTally(),
		windowBegun: r.begun,
		windows:     []Summary{},
	}
}

// until prints a line every interval, until the run is finished.
func (p *reporter) until(finished <-chan error) error {
	ticks := time.NewTicker(p.run.interval)
	defer ticks.Stop()
	alive := time.NewTicker(progressEvery)
	defer alive.Stop()
	steady := p.run.steady
	for {
		select {
		case err := <-finished:
			p.ended = time.Now()
			p.progress.Stop()
			return err
		case <-steady:
			// As in Kafka's tool the windows begin anew with the steady state.
			steady = nil
			p.inSteady = true
			p.collect()
			p.startWindow(p.run.steadyTime)
			ticks.Reset(p.run.interval)
			p.progress.Aside(func() { fmt.Fprintln(p.out, "In steady state.") })
		case now := <-ticks.C:
			p.collect()
			p.printWindow(now)
		case <-alive.C:
			p.progress.Set(p.run.done.Load())
		}
	}
}

// collect takes what the producers have since the last time.
func (p *reporter) collect() {
	warm, rest := newTally(), newTally()
	for _, member := range p.run.members {
		member.recorder.take(warm, rest)
	}
	p.total.merge(warm)
	p.total.merge(rest)
	p.steady.merge(rest)
	p.warmWindow.merge(warm)
	p.window.merge(rest)
}

func (p *reporter) startWindow(at time.Time) {
	p.warmWindow.reset()
	p.window.reset()
	p.windowBegun = at
}

func (p *reporter) printWindow(now time.Time) {
	shown := p.window
	if p.run.warmup > 0 && !p.inSteady {
		shown = p.warmWindow
	}
	elapsed := now.Sub(p.windowBegun)
	p.progress.Aside(func() { fmt.Fprintln(p.out, windowLine(shown, elapsed)) })
	p.windows = append(p.windows, summary(shown, elapsed))
	p.startWindow(now)
}

// finish prints the last lines and returns the whole as a document.
func (p *reporter) finish() Result {
	p.collect()
	r := p.run
	elapsed := p.ended.Sub(r.begun)
	fmt.Fprintln(p.out, totalLine(p.total, elapsed, ""))
	result := Result{
		Tool: "perf-producer", Version: client.Version(), Started: r.begun,
		Topics: r.topics, Producers: r.producers, Throughput: r.throughput,
		Acks: r.settings.Acks.String(), Compression: r.settings.Compression,
		BatchSize: r.settings.BatchSize, LingerMs: r.settings.Linger.Seconds() * 1000,
		Total: summary(p.total, elapsed), Windows: p.windows, Metrics: r.counted.values(),
	}
	if p.inSteady {
		since := p.ended.Sub(r.steadyTime)
		fmt.Fprintln(p.out, totalLine(p.steady, since, " steady state"))
		s := summary(p.steady, since)
		result.Steady = &s
	}
	var first error
	if result.Failed, first = r.failures(); first != nil {
		result.FirstError = first.Error()
	}
	return result
}
