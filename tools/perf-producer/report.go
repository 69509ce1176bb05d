package main

import (
	"fmt"
	"time"
)

const mebi = 1024 * 1024 // Kafka's tools print "MB/sec" and mean this

// windowLine is the line that Kafka's tool prints every reporting interval.
func windowLine(t *tally, elapsed time.Duration) string {
	perSecond, mbPerSecond := rates(t, elapsed)
	return fmt.Sprintf("%d records sent, %.1f records/sec (%.2f MB/sec), %.1f ms avg latency, %.1f ms max latency.",
		t.count, perSecond, mbPerSecond, t.averageMs(), t.maxMs())
}

// totalLine is the line that Kafka's tool ends with; kind is "" or " steady state".
func totalLine(t *tally, elapsed time.Duration, kind string) string {
	perSecond, mbPerSecond := rates(t, elapsed)
	return fmt.Sprintf("%d%s records sent, %f records/sec (%.2f MB/sec), %.2f ms avg latency, %.2f ms max latency, "+
		"%.0f ms 50th, %.0f ms 95th, %.0f ms 99th, %.0f ms 99.9th.",
		t.count, kind, perSecond, mbPerSecond, t.averageMs(), t.maxMs(),
		t.percentileMs(50), t.percentileMs(95), t.percentileMs(99), t.percentileMs(99.9))
}

func rates(t *tally, elapsed time.Duration) (recordsPerSecond, mbPerSecond float64) {
	seconds := max(elapsed.Seconds(), 1e-9)
	return float64(t.count) / seconds, float64(t.bytes) / seconds / mebi
}

// Summary is a tally as --json writes it.
type Summary struct {
	Records          int64   `json:"records"`
	Bytes            int64   `json:"bytes"`
	Seconds          float64 `json:"seconds"`
	RecordsPerSecond float64 `json:"records_per_second"`
	MBPerSecond      float64 `json:"mb_per_second"` // of 1,048,576 bytes, as printed
	LatencyMs        Latency `json:"latency_ms"`
}

// Latency holds milliseconds, exact to three digits.
type Latency struct {
	Average float64 `json:"avg"`
	Max     float64 `json:"max"`
	P50     float64 `json:"p50"`
	P95     float64 `json:"p95"`
	P99     float64 `json:"p99"`
	P999    float64 `json:"p99_9"`
	P9999   float64 `json:"p99_99"`
}

func summary(t *tally, elapsed time.Duration) Summary {
	perSecond, mbPerSecond := rates(t, elapsed)
	return Summary{
		Records: t.count, Bytes: t.bytes, Seconds: elapsed.Seconds(),
		RecordsPerSecond: perSecond, MBPerSecond: mbPerSecond,
		LatencyMs: Latency{
			Average: t.averageMs(), Max: t.maxMs(),
			P50: t.percentileMs(50), P95: t.percentileMs(95), P99: t.percentileMs(99),
			P999: t.percentileMs(99.9), P9999: t.percentileMs(99.99),
		},
	}
}

// Result is the document that --json writes.
type Result struct {
	Tool        string             `json:"tool"`
	Version     string             `json:"version"`
	Started     time.Time          `json:"started"`
	Topics      []string           `json:"topics"`
	Producers   int                `json:"producers"`
	Throughput  float64            `json:"throughput"` // asked for; -1 is no limit
	Acks        string             `json:"acks"`
	Compression string             `json:"compression"`
	BatchSize   int                `json:"batch_size"`
	LingerMs    float64            `json:"linger_ms"`
	Failed      int64              `json:"failed"`
	FirstError  string             `json:"first_error,omitempty"`
	Total       Summary            `json:"total"`
	Steady      *Summary           `json:"steady,omitempty"` // without the warm-up records
	Windows     []Summary          `json:"windows"`
	Metrics     map[string]float64 `json:"metrics"`
}
