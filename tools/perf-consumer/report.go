package main

import (
	"fmt"
	"time"
)

const mebi = 1024 * 1024 // Kafka's tools print "MB" and mean this

// The two heads of Kafka's tool, without and with --show-detailed-stats.
const (
	totalHeader = "start.time, end.time, data.consumed.in.MB, MB.sec, data.consumed.in.nMsg, nMsg.sec, " +
		"rebalance.time.ms, fetch.time.ms, fetch.MB.sec, fetch.nMsg.sec"
	windowHeader = "time, threadId, data.consumed.in.MB, MB.sec, data.consumed.in.nMsg, nMsg.sec, " +
		"rebalance.time.ms, fetch.time.ms, fetch.MB.sec, fetch.nMsg.sec"
)

// tally is what was consumed in a span of time.
type tally struct {
	records, bytes int64
	elapsed        time.Duration
	rebalance      time.Duration // the part of elapsed that went by without an assignment
}

func (t tally) fetching() time.Duration { return t.elapsed - t.rebalance }

// per divides by a time of at least a millisecond: a short run must not print Inf.
func per(n float64, d time.Duration) float64 { return n / max(d, time.Millisecond).Seconds() }

func totalLine(f dateFormat, start, end time.Time, t tally) string {
	mb := float64(t.bytes) / mebi
	return fmt.Sprintf("%s, %s, %.4f, %.4f, %d, %.4f, %d, %d, %.4f, %.4f",
		f.format(start), f.format(end),
		mb, per(mb, t.elapsed), t.records, per(float64(t.records), t.elapsed),
		t.rebalance.Milliseconds(), t.fetching().Milliseconds(),
		per(mb, t.fetching()), per(float64(t.records), t.fetching()))
}

// windowLine shows what was consumed so far and the rates of the last window,
// as Kafka's tool does. The thread is always 0, there as here.
func windowLine(f dateFormat, now time.Time, total, window tally) string {
	mb := float64(window.bytes) / mebi
	return fmt.Sprintf("%s, %d, %.4f, %.4f, %d, %.4f, %d, %d, %.4f, %.4f",
		f.format(now), 0,
		float64(total.bytes)/mebi, per(mb, window.elapsed), total.records, per(float64(window.records), window.elapsed),
		window.rebalance.Milliseconds(), window.fetching().Milliseconds(),
		per(mb, window.fetching()), per(float64(window.records), window.fetching()))
}

// Summary is a tally as --json writes it.
type Summary struct {
	Records               int64   `json:"records"`
	Bytes                 int64   `json:"bytes"`
	Seconds               float64 `json:"seconds"`
	RebalanceSeconds      float64 `json:"rebalance_seconds"`
	RecordsPerSecond      float64 `json:"records_per_second"`
	MBPerSecond           float64 `json:"mb_per_second"` // of 1,048,576 bytes, as printed
	FetchRecordsPerSecond float64 `json:"fetch_records_per_second"`
	FetchMBPerSecond      float64 `json:"fetch_mb_per_second"`
}

func summary(t tally) Summary {
	mb := float64(t.bytes) / mebi
	return Summary{
		Records: t.records, Bytes: t.bytes, Seconds: t.elapsed.Seconds(), RebalanceSeconds: t.rebalance.Seconds(),
		RecordsPerSecond: per(float64(t.records), t.elapsed), MBPerSecond: per(mb, t.elapsed),
		FetchRecordsPerSecond: per(float64(t.records), t.fetching()), FetchMBPerSecond: per(mb, t.fetching()),
	}
}

// Result is the document that --json writes.
type Result struct {
	Tool      string             `json:"tool"`
	Version   string             `json:"version"`
	Started   time.Time          `json:"started"`
	Topics    []string           `json:"topics"`
	Group     string             `json:"group,omitempty"`
	FetchSize int                `json:"fetch_size"`
	Wanted    int64              `json:"wanted"` // records
	TimedOut  bool               `json:"timed_out"`
	Total     Summary            `json:"total"`
	Windows   []Summary          `json:"windows"`
	Metrics   map[string]float64 `json:"metrics"`
}
