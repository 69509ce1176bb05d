package main

import (
	"fmt"
	"time"

	"millrace/benchmarks/peers/report"
	"millrace/coord/zk/proto"
)

// storm is how many sessions are opened at once.
const storm = 1000

func measureSessions(o options, s *report.Section) error {
	targets, err := startAll(o)
	if err != nil {
		return err
	}
	for _, t := range targets {
		if _, err := t.openAndClose(10, o.warmUp/2); err != nil {
			return err
		}
	}
	for _, n := range o.clients {
		row := s.Row("session opened and closed, " + plural(n, "client"))
		for round := range o.rounds {
			for i := range targets {
				t := targets[(i+round)%len(targets)]
				m, err := t.openAndClose(n, o.duration)
				if err != nil {
					return err
				}
				row.Add(t.name, m.values())
			}
		}
		fmt.Println(line(row))
	}
	row := s.Row(fmt.Sprintf("%d sessions opened at once, each has read", storm))
	for round := range o.rounds {
		for i := range targets {
			t := targets[(i+round)%len(targets)]
			v, err := t.storm()
			if err != nil {
				return fmt.Errorf("%s: %w", t.name, err)
			}
			row.Add(t.name, v)
		}
	}
	fmt.Println(line(row))
	return nil
}

func (t *target) openAndClose(clients int, length time.Duration) (measured, error) {
	return t.measure(clients, length, func(_ int, until time.Time) (took []time.Duration, _ error) {
		for begun := time.Now(); len(took) == 0 || begun.Before(until); begun = time.Now() {
			c, err := dial(t.addr)
			if err == nil {
				err = c.closeSession()
			}
			if err != nil {
				return took, err
			}
			took = append(took, time.Since(begun))
		}
		return took, nil
	})
}

// storm measures until every session has answered a read; memory is that with all of them there.
func (t *target) storm() (report.Values, error) {
	clients, took := make([]*client, storm), make([]time.Duration, storm)
	cpu, begun := t.p.CPU(), time.Now()
	err := each(storm, func(i int) (err error) {
		if clients[i], err = dial(t.addr); err == nil {
			_, err = clients[i].do(&proto.Request{Op: proto.OpExists, Path: "/zookeeper"})
		}
		took[i] = time.Since(begun)
		return err
	})
	if err != nil {
		return nil, err
	}
	v := quantiles(took)
	v[report.Seconds] = took[storm-1].Seconds()
	v[report.CPURequest] = float64((t.p.CPU() - cpu).Microseconds()) / storm
	v[report.RSS] = t.memory()
	return v, closeAll(clients)
}
