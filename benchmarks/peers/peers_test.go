package main

import (
	"bufio"
	"strings"
	"testing"

	"millrace/benchmarks/peers/report"
)

// Claim: every row that a goal names is measured under that very name, so that no goal is silently left out.
func TestGoalsFindTheirRows(t *testing.T) {
	file := func(rows []frameRow, targets ...string) *report.Section {
		s := &report.Section{}
		for _, r := range rows {
			for _, target := range targets {
				s.Row(r.name).Add(target, report.Values{report.PerSecond: 1, report.P99: 1, report.MBps: 1, report.CPURequest: 1, report.CPUGB: 1})
			}
		}
		return s
	}
	check := func(section string, s *report.Section, theirs string, rows int) {
		set := map[string]bool{}
		for _, v := range report.Verdicts(section, s) {
			if v.Theirs == theirs && !v.Unset {
				set[v.Row] = true
			}
		}
		if len(set) != rows {
			t.Errorf("section %s has goals for %d of its %d rows against %s", section, len(set), rows, theirs)
		}
	}
	all := append(produceRows(), fetchRows()...)
	check("limits", file(all, report.Synced, report.PageCache, report.Kafka), report.Kafka, len(all))
	check("durable", file(produceRows(), report.Synced, report.KafkaFlush), report.KafkaFlush, len(produceRows()))
	tools := &report.Section{}
	for _, target := range []string{report.Synced, report.Kafka} {
		tools.Row(clientRows()[0].name).Add(target, report.Values{report.CPUMillion: 1})
	}
	check("tools", tools, report.Kafka, 1)
}

// Claim: the causes that are kept can be read.
func TestCausesCanBeRead(t *testing.T) {
	if err := report.CheckCauses(causes); err != nil {
		t.Error(err)
	}
}

// Claim: the rate is read from the last summary of a producer test, and from the named column of a consumer test.
func TestToolOutputIsRead(t *testing.T) {
	produced := "90 records sent, 18.0 records/sec (0.00 MB/sec), 1.0 ms avg latency, 2.0 ms max latency.\n" +
		"400000 records sent, 381000.5 records/sec (36.33 MB/sec), 12.30 ms avg latency, 200.00 ms max latency, 1 ms 50th, 5 ms 95th, 9 ms 99th, 10 ms 99.9th.\n"
	if v, err := producedPerSecond(produced); v != 381000.5 || err != nil {
		t.Errorf("%v, %v", v, err)
	}
	consumed := "start.time, end.time, data.consumed.in.MB, MB.sec, data.consumed.in.nMsg, nMsg.sec, rebalance.time.ms, fetch.time.ms, fetch.MB.sec, fetch.nMsg.sec\n" +
		"2026-11-29 12:00:00:000, 2026-11-29 12:00:01:000, 95.3674, 95.3674, 1000000, 1000000.0000, 300, 700, 136.2392, 1428571.4286\n"
	if v, err := consumedPerSecond(consumed); v != 1e6 || err != nil {
		t.Errorf("%v, %v", v, err)
	}
	for _, bad := range []string{"", "WARN nothing\n", "start.time, nMsg.sec\n"} {
		if _, err := consumedPerSecond(bad); err == nil {
			t.Errorf("%q was read as figures of a consumer", bad)
		}
		if _, err := producedPerSecond(bad); err == nil {
			t.Errorf("%q was read as figures of a producer", bad)
		}
	}
}

// Claim: Redis's answers are read whole, errors are errors, and an XREAD's entries are counted with the last id.
func TestRedisAnswers(t *testing.T) {
	r := bufio.NewReader(strings.NewReader("+PONG\r\n$3\r\n1-0\r\n*1\r\n*2\r\n$5\r\nbench\r\n*2\r\n*2\r\n$3\r\n1-0\r\n*2\r\n$1\r\nv\r\n$1\r\nx\r\n*2\r\n$3\r\n2-7\r\n*2\r\n$1\r\nv\r\n$2\r\n\r\n\r\n*-1\r\n-ERR no\r\n?\r\n"))
	for _, want := range []string{"PONG", "1-0"} {
		if v, err := reply(r); v != want || err != nil {
			t.Errorf("%v, %v, want %s", v, err, want)
		}
	}
	v, err := reply(r)
	if n, last := entries(v); n != 2 || last != "2-7" || err != nil {
		t.Errorf("%d entries, last %q, %v", n, last, err)
	}
	if v, err := reply(r); v != nil || err != nil {
		t.Errorf("nil was read as %v, %v", v, err)
	}
	if n, _ := entries(nil); n != 0 {
		t.Errorf("an empty XREAD has %d entries", n)
	}
	for range 2 {
		if _, err := reply(r); err == nil {
			t.Error("an error answer was taken as an answer")
		}
	}
}

// Claim: only whole messages of a Jafka fetch count.
func TestJafkaCountsWholeMessages(t *testing.T) {
	set := jafkaMessages(3)
	if n, bytes := countJafka(set); n != 3 || bytes != len(set) {
		t.Errorf("%d messages, %d bytes of %d", n, bytes, len(set))
	}
	if n, bytes := countJafka(set[:len(set)-1]); n != 2 || bytes != len(set)/3*2 {
		t.Errorf("%d messages, %d bytes of a torn set", n, bytes)
	}
}
