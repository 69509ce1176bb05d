package main

import (
	"fmt"
	"time"

	"millrace/benchmarks/peers/report"
	"millrace/benchmarks/process"
)

// idleTime is how long a server is left alone before its idle memory is read.
const idleTime = 3 * time.Second

// startRounds is the most rounds of section start: a round of all systems takes more than a minute.
const startRounds = 2

// startUp starts a server over what is in its folder and waits for the first ack; the time counts from the start of the process.
func (e *env) startUp(s *server) (time.Duration, error) {
	if err := e.again(s); err != nil {
		return 0, err
	}
	if err := s.client.first(e, s); err != nil {
		return 0, err
	}
	return time.Since(s.proc.Started), nil
}

// timed measures one kind of start.
func (e *env) timed(row string, s *server) {
	settle()
	took, err := e.startUp(s)
	if err != nil {
		e.sec.Row(row).Not(s.label, why(err))
		e.note("%s, %s: %v", row, s.label, err)
		s.err = err
		return
	}
	e.sec.Row(row).Add(s.label, report.Values{report.Seconds: took.Seconds()})
	e.say("%s: %s %.3f s", row, s.label, took.Seconds())
}

// stopTimed ends a server cleanly and measures it.
func (e *env) stopTimed(row string, s *server) {
	begun := time.Now()
	if err := s.proc.Stop(s.stop); err != nil {
		e.sec.Row(row).Not(s.label, why(err))
		e.note("%s, %s: %v", row, s.label, err)
		return
	}
	took := time.Since(begun).Seconds()
	e.sec.Row(row).Add(s.label, report.Values{report.Seconds: took})
	e.say("%s: %s %.3f s", row, s.label, took)
}

// measureStart looks at starts over an empty folder and over little data, and at memory with nothing to do.
func measureStart(e *env) error {
	e.sec.Method = fmt.Sprintf("One system at a time, at most two rounds. Seconds from the start of the process to the first acknowledged message (Jafka: to the first message that can be read), formatting and fetching not counted; memory %s after that. NATS and RabbitMQ are asked by a client process of their own, which costs some 20 ms.", idleTime)
	for range min(e.rounds, startRounds) {
		for _, s := range []*server{e.millraceSynced(), e.kafka(), e.kafkaTuned(), e.nats(), e.redis(), e.rabbitMQ(), e.jafka()} {
			if e.ctx.Err() != nil {
				return e.ctx.Err()
			}
			if err := e.calm(); err != nil {
				e.sec.Row("empty folder: start to first ack").Not(s.label, why(err))
				continue
			}
			e.startRounds(s)
			e.down(s)
		}
	}
	for _, row := range e.sec.Rows {
		e.say("%s", report.OneLine(row))
	}
	return nil
}

func (e *env) startRounds(s *server) {
	rows := []string{"empty folder: start to first ack", "memory, idle", "clean stop", "start after a clean stop, to first ack", "start after kill -9, to first ack"}
	if e.folder(s); s.err == nil {
		e.timed(rows[0], s)
	}
	if s.err != nil {
		for _, row := range rows {
			e.sec.Row(row).Not(s.label, why(s.err))
		}
		return
	}
	pause(e.ctx, idleTime)
	e.sec.Row(rows[1]).Add(s.label, report.Values{report.RSS: float64(s.proc.RSS()) / 1e6})
	e.stopTimed(rows[2], s)
	if e.timed(rows[3], s); s.err != nil {
		return
	}
	s.proc.Kill()
	e.timed(rows[4], s)
}

// measureRecovery kills a server with much data and looks how soon it works again.
func measureRecovery(e *env) error {
	const parts = 16
	e.sec.Method = fmt.Sprintf("%.1f GB written to %d partitions in batches of 64 × 1 KiB, kill -9 at once, and the seconds from the start of the process to the first acknowledged message. One round. Then 0.1 GB more, kill -9, the files dropped from the guest's page cache, and the same.", e.gb, parts)
	hot, cold := fmt.Sprintf("%.1f GB, kill -9, start to first ack", e.gb), fmt.Sprintf("%.1f GB, kill -9, files dropped from memory, start to first ack", e.gb)
	filled := fmt.Sprintf("writing %.1f GB (4 connections × 1)", e.gb)
	for _, s := range []*server{e.millraceSynced(), e.millracePageCache(), e.kafka()} {
		if err := e.calm(); err != nil {
			e.sec.Row(hot).Not(s.label, why(err))
			continue
		}
		e.up(s)
		if s.err == nil {
			s.err = s.client.first(e, s)
		}
		if s.err == nil {
			begun, before := time.Now(), s.proc.CPU()
			if _, s.err = e.fill(s, "much", parts, e.gb); s.err == nil {
				e.sec.Row(filled).Add(s.label, report.Values{report.MBps: e.gb * 1000 / time.Since(begun).Seconds(), report.CPUGB: (s.proc.CPU() - before).Seconds() / e.gb,
					report.RSS: float64(s.proc.RSS()) / 1e6})
			}
		}
		if s.err == nil {
			s.proc.Kill()
			e.timedAgain(hot, s)
		}
		if s.err == nil {
			_, s.err = e.fill(s, "much", parts, min(0.1, e.gb))
		}
		if s.err == nil {
			s.proc.Kill()
			if s.err = process.DropFromMemory(s.dir); s.err == nil {
				e.timedAgain(cold, s)
			}
		}
		if s.err != nil {
			e.note("%s: %v", s.label, s.err)
			e.sec.Row(hot).Not(s.label, why(s.err))
		}
		e.down(s)
	}
	for _, row := range e.sec.Rows {
		e.say("%s", report.OneLine(row))
	}
	return nil
}

// timedAgain is timed for data that is still being written out: waiting for that is part of what a start after a crash meets.
func (e *env) timedAgain(row string, s *server) {
	took, err := e.startUp(s)
	if err != nil {
		s.err = err
		return
	}
	e.sec.Row(row).Add(s.label, report.Values{report.Seconds: took.Seconds()})
	e.say("%s: %s %.3f s", row, s.label, took.Seconds())
}
