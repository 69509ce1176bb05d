package main

import (
	"io"
	"sync/atomic"

	"github.com/twmb/franz-go/pkg/kgo"

	"millrace/tools/internal/output"
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
	fetches := m.fetches.Load()
	return map[string]float64{
		"fetch-total":             float64(fetches),
		"fetch-latency-avg-ms":    output.Per(m.fetchNs.Load(), fetches) / 1e6,
		"fetch-size-avg":          output.Per(m.compressed.Load(), fetches),
		"records-per-request-avg": output.Per(m.records.Load(), fetches),
		"records-consumed-total":  float64(m.records.Load()),
		"batch-total":             float64(m.batches.Load()),
		"compression-rate-avg":    output.Per(m.compressed.Load(), m.uncompressed.Load()),
		"incoming-byte-total":     float64(m.read.Load()),
		"request-failure-total":   float64(m.failures.Load()),
	}
}

func (m *metrics) print(w io.Writer) {
	output.Metrics(w, "consumer-fetch-manager-metrics", 60, m.values())
}
