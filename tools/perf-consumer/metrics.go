package main

import (
	"fmt"
	"io"
	"slices"
	"sync/atomic"

	"github.com/twmb/franz-go/pkg/kgo"
)

// metrics counts what the client did, by franz-go's hooks.
type metrics struct {
	batches, records, uncompressed, compressed atomic.Int64
	fetches, fetchNs, read, failures           atomic.Int64
}

// OnFetchBatchRead implements kgo.HookFetchBatchRead.
func (m *metrics) OnFetchBatchRead(_ kgo.BrokerMetadata, _ string, _ int32, b kgo.FetchBatchMetrics) {
	m.batches.Add(1)
	m.records.Add(int64(b.NumRecords))
	m.uncompressed.Add(int64(b.UncompressedBytes))
	m.compressed.Add(int64(b.CompressedBytes))
}

// fetchKey is the API key of Fetch requests.
const fetchKey = 1

// OnBrokerE2E implements kgo.HookBrokerE2E.
func (m *metrics) OnBrokerE2E(_ kgo.BrokerMetadata, key int16, e kgo.BrokerE2E) {
	m.read.Add(int64(e.BytesRead))
	if e.Err() != nil {
		m.failures.Add(1)
		return
	}
	if key == fetchKey {
		m.fetches.Add(1)
		m.fetchNs.Add(int64(e.DurationE2E()))
	}
}

// values names the counters as Kafka's consumer metrics do, where they mean the same.
func (m *metrics) values() map[string]float64 {
	per := func(sum, n int64) float64 {
		if n == 0 {
			return 0
		}
		return float64(sum) / float64(n)
	}
	fetches := m.fetches.Load()
	return map[string]float64{
		"fetch-total":             float64(fetches),
		"fetch-latency-avg-ms":    per(m.fetchNs.Load(), fetches) / 1e6,
		"fetch-size-avg":          per(m.compressed.Load(), fetches),
		"records-per-request-avg": per(m.records.Load(), fetches),
		"records-consumed-total":  float64(m.records.Load()),
		"batch-total":             float64(m.batches.Load()),
		"compression-rate-avg":    per(m.compressed.Load(), m.uncompressed.Load()),
		"incoming-byte-total":     float64(m.read.Load()),
		"request-failure-total":   float64(m.failures.Load()),
	}
}

func (m *metrics) print(w io.Writer) {
	values := m.values()
	names := make([]string, 0, len(values))
	for name := range values {
		names = append(names, name)
	}
	slices.Sort(names)
	fmt.Fprintf(w, "\n%-60s Value\n", "Metric Name")
	for _, name := range names {
		fmt.Fprintf(w, "%-60s: %.3f\n", "consumer-fetch-manager-metrics:"+name, values[name])
	}
}
