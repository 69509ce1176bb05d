package main

import (
	"encoding/json"
	"math"
	"regexp"
	"testing"
	"time"
)

// The lines below were printed by Kafka 4.3.1's own tool.
const (
	kafkaWindow = "99882 records sent, 19976.4 records/sec (1.91 MB/sec), 20.4 ms avg latency, 393.0 ms max latency."
	kafkaTotal  = "200000 records sent, 20000.000000 records/sec (1.91 MB/sec), 12.00 ms avg latency, 393.00 ms max latency, " +
		"4 ms 50th, 48 ms 95th, 203 ms 99th, 219 ms 99.9th."
	kafkaSteady = "50000 steady state records sent, 4993.009786 records/sec (0.48 MB/sec), 3.65 ms avg latency, 13.00 ms max latency, " +
		"4 ms 50th, 6 ms 95th, 7 ms 99th, 9 ms 99.9th."
)

// shape replaces every number by its number of decimals.
func shape(line string) string {
	return regexp.MustCompile(`\d+(\.\d+)?`).ReplaceAllStringFunc(line, func(n string) string {
		if _, err := json.Number(n).Int64(); err == nil {
			return "N"
		}
		return "N." + regexp.MustCompile(`\d`).ReplaceAllString(regexp.MustCompile(`^\d+\.`).ReplaceAllString(n, ""), "d")
	})
}

// Claim: the lines have the shape of Kafka's tool, to the last decimal.
// Method: lines of that tool and ours, with the numbers taken out. The percentiles'
// own names are numbers, too, and stay comparable: 50th is Nth in both.
func TestLinesHaveKafkasShape(t *testing.T) {
	tl := newTally()
	for i := range 1000 {
		tl.add(time.Duration(i)*time.Millisecond, 100)
	}
	for _, c := range []struct{ kafka, ours string }{
		{kafkaWindow, windowLine(tl, 5*time.Second)},
		{kafkaTotal, totalLine(tl, 5*time.Second, "")},
		{kafkaSteady, totalLine(tl, 5*time.Second, " steady state")},
	} {
		if shape(c.kafka) != shape(c.ours) {
			t.Errorf("Kafka %s\nours  %s", shape(c.kafka), shape(c.ours))
		}
	}
}

// Claim: the figures are right: rates by elapsed time, percentiles to three digits,
// average and maximum exact.
// Method: latencies of 1 to 1000 ms, one each.
func TestFiguresAreRight(t *testing.T) {
	tl := newTally()
	for i := 1; i <= 1000; i++ {
		tl.add(time.Duration(i)*time.Millisecond, 1048)
	}
	s := summary(tl, 2*time.Second)
	near := func(name string, got, want, share float64) {
		if math.Abs(got-want) > want*share {
			t.Errorf("%s: got %v, want %v", name, got, want)
		}
	}
	near("records/s", s.RecordsPerSecond, 500, 0)
	near("MB/s", s.MBPerSecond, 1048*1000/2.0/mebi, 0.001)
	near("average", s.LatencyMs.Average, 500.5, 0)
	near("max", s.LatencyMs.Max, 1000, 0)
	near("p50", s.LatencyMs.P50, 500, 0.002)
	near("p95", s.LatencyMs.P95, 950, 0.002)
	near("p99.9", s.LatencyMs.P999, 999, 0.002)
	if s.Records != 1000 || s.Bytes != 1048*1000 {
		t.Errorf("counted %d records, %d bytes", s.Records, s.Bytes)
	}
}

// Claim: nothing sent is 0 everywhere, and prints; so does a latency beyond an hour.
// Method: an empty tally; one value out of range on either side.
func TestEdgesOfATally(t *testing.T) {
	empty := newTally()
	if got := totalLine(empty, 0, ""); shape(got) != shape(kafkaTotal) {
		t.Errorf("empty: %s", got)
	}
	out := newTally()
	out.add(-time.Second, 1) // a clock that was set back
	out.add(48*time.Hour, 1)
	if out.count != 2 || out.most != highest || out.histogram.TotalCount() != 2 {
		t.Errorf("got %+v", out)
	}
}

// Claim: a recorder loses nothing and counts nothing twice, warm-up apart.
// Method: add, take, add, take.
func TestRecorderTakesEachOnce(t *testing.T) {
	r := newRecorder()
	warm, steady := newTally(), newTally()
	r.acknowledged(true, time.Millisecond, 1)
	r.acknowledged(false, time.Millisecond, 2)
	r.take(warm, steady)
	r.acknowledged(false, 3*time.Millisecond, 4)
	r.take(warm, steady)
	r.take(warm, steady)
	if warm.count != 1 || steady.count != 2 || steady.bytes != 6 || steady.most != 3000 || steady.histogram.TotalCount() != 2 {
		t.Errorf("warm %+v, steady %+v", warm, steady)
	}
}
