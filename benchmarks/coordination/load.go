package main

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"millrace/benchmarks/peers/report"
)

// dialAll opens n sessions, one after the other.
func dialAll(addr string, n int) ([]*client, error) {
	var all []*client
	for range n {
		c, err := dial(addr)
		if err != nil {
			return nil, errors.Join(err, closeAll(all))
		}
		all = append(all, c)
	}
	return all, nil
}

func closeAll(all []*client) error {
	return each(len(all), func(i int) error { return all[i].closeSession() })
}

// each runs f for every number below n at once and waits for all.
func each(n int, f func(i int) error) error {
	errs := make([]error, n)
	var running sync.WaitGroup
	for i := range n {
		running.Go(func() { errs[i] = f(i) }) // ends with f, which patience bounds
	}
	running.Wait()
	return errors.Join(errs...)
}

// measured is what a load came to.
type measured struct {
	took    []time.Duration // of every request
	elapsed time.Duration
	cpu     time.Duration // of the server
}

// measure has every client work until the time is over, and each at least once; work returns how long each of its operations took.
func (t *target) measure(clients int, length time.Duration, work func(i int, until time.Time) ([]time.Duration, error)) (measured, error) {
	took := make([][]time.Duration, clients)
	cpu, begun := t.p.CPU(), time.Now()
	err := each(clients, func(i int) (err error) {
		took[i], err = work(i, begun.Add(length))
		return err
	})
	m := measured{took: slices.Concat(took...), elapsed: time.Since(begun), cpu: t.p.CPU() - cpu}
	if err == nil && len(m.took) == 0 {
		err = errors.New("no request was answered")
	}
	if err != nil {
		return m, fmt.Errorf("%s: %w", t.name, err)
	}
	return m, nil
}

func (m *measured) values() report.Values {
	v := quantiles(m.took)
	v[report.PerSecond] = float64(len(m.took)) / m.elapsed.Seconds()
	v[report.CPURequest] = float64(m.cpu.Microseconds()) / float64(len(m.took))
	return v
}

func quantiles(took []time.Duration) report.Values {
	slices.Sort(took)
	at := func(q int) float64 { return float64(took[len(took)*q/1000].Nanoseconds()) / 1e3 }
	return report.Values{report.P50: at(500), report.P99: at(990)}
}

const mb = 1e6

func (t *target) memory() float64 { return float64(t.p.RSS()) / mb }
