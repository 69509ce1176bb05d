package main

import (
	"fmt"
	"time"

	"millrace/benchmarks/load"
	"millrace/benchmarks/peers/report"
)

// partitionsInTopic is how many partitions one topic has when there are to be many.
const partitionsInTopic = 500

// measurePartitions makes many partitions, and starts again over them.
func measurePartitions(e *env) error {
	e.sec.Method = fmt.Sprintf("Topics of %d partitions made one after the other until every partition has a leader; one record of 100 B in each partition of every topic; clean stop, start, kill -9, start; seconds from the start of the process to the first acknowledged message. One round. At most %d open files are allowed here.", partitionsInTopic, openFiles())
	for _, count := range e.partitions {
		for _, s := range []*server{e.millraceSynced(), e.kafka()} {
			name := func(what string) string { return fmt.Sprintf("%d partitions: %s", count, what) }
			if err := e.calm(); err != nil {
				e.sec.Row(name("create")).Not(s.label, why(err))
				continue
			}
			if err := e.manyPartitions(s, count, name); err != nil {
				for _, what := range []string{"create", "memory after creating", "clean stop", "start to first ack", "start after kill -9 to first ack", "memory after that"} {
					row := e.sec.Row(name(what))
					if _, _, _, ok := row.Median(s.label, report.Seconds); !ok {
						if _, _, _, ok := row.Median(s.label, report.RSS); !ok {
							row.Not(s.label, why(err))
						}
					}
				}
				e.note("%d partitions, %s: %v", count, s.label, err)
			}
			e.down(s)
		}
	}
	for _, row := range e.sec.Rows {
		e.say("%s", report.OneLine(row))
	}
	return nil
}

func (e *env) manyPartitions(s *server, count int, name func(string) string) error {
	e.up(s)
	if s.err == nil {
		s.err = s.client.first(e, s)
	}
	if s.err != nil {
		return s.err
	}
	begun := time.Now()
	var topics []string
	for made := 0; made < count; made += partitionsInTopic {
		n := min(partitionsInTopic, count-made)
		topic := fmt.Sprintf("many-%d", made/partitionsInTopic)
		if err := e.topic(s, topic, n); err != nil {
			return fmt.Errorf("after %d partitions: %w", made, err)
		}
		topics = append(topics, topic)
	}
	for i, topic := range topics {
		if err := e.leads(s, topic, min(partitionsInTopic, count-i*partitionsInTopic)); err != nil {
			return err
		}
	}
	e.sec.Row(name("create")).Add(s.label, report.Values{report.Seconds: time.Since(begun).Seconds()})
	for i, topic := range topics {
		r := load.Row{Records: 1, Size: 100, Partitions: min(partitionsInTopic, count-i*partitionsInTopic), Connections: 1, InFlight: 1, Acks: 1}
		if err := load.Fill(s.addr, r, load.ProduceFrame(r, topic), 1); err != nil {
			return fmt.Errorf("writing to topic %d of %d: %w", i+1, len(topics), err)
		}
	}
	memory := func(what string) {
		e.sec.Row(name(what)).Add(s.label, report.Values{report.RSS: float64(s.proc.RSS()) / 1e6})
	}
	memory("memory after creating")
	e.stopTimed(name("clean stop"), s)
	if e.timed(name("start to first ack"), s); s.err != nil {
		return s.err
	}
	s.proc.Kill()
	if e.timed(name("start after kill -9 to first ack"), s); s.err != nil {
		return s.err
	}
	memory("memory after that")
	return nil
}
