package main

import (
	"io"
	"sync/atomic"

	"github.com/twmb/franz-go/pkg/kgo"

	"millrace/tools/internal/output"
)

// metrics counts what the clients did, by franz-go's hooks. One serves all producers.
type metrics struct {
	batches, records, uncompressed, compressed atomic.Int64
	requests, requestNs, written, read         atomic.Int64
	connects, failures                         atomic.Int64
}

// OnProduceBatchWritten implements kgo.HookProduceBatchWritten.
func (m *metrics) OnProduceBatchWritten(_ kgo.BrokerMetadata, _ string, _ int32, b kgo.ProduceBatchMetrics) {
	m.batches.Add(1)
	m.records.Add(int64(b.NumRecords))
	m.uncompressed.Add(int64(b.UncompressedBytes))
	m.compressed.Add(int64(b.CompressedBytes))
}

// produceKey is the API key of Produce requests.
const produceKey = 0

// OnBrokerE2E implements kgo.HookBrokerE2E.
func (m *metrics) OnBrokerE2E(_ kgo.BrokerMetadata, key int16, e kgo.BrokerE2E) {
	m.written.Add(int64(e.BytesWritten))
	m.read.Add(int64(e.BytesRead))
	if e.Err() != nil {
		m.failures.Add(1)
		return
	}
	if key == produceKey {
		m.requests.Add(1)
		m.requestNs.Add(int64(e.DurationE2E()))
	}
}

// values names the counters as Kafka's producer metrics do, where they mean the same.
func (m *metrics) values() map[string]float64 {
	batches, requests := m.batches.Load(), m.requests.Load()
	return map[string]float64{
		"record-send-total":      float64(m.records.Load()),
		"batch-total":            float64(batches),
		"batch-size-avg":         output.Per(m.compressed.Load(), batches),
		"records-per-batch-avg":  output.Per(m.records.Load(), batches),
		"compression-rate-avg":   output.Per(m.compressed.Load(), m.uncompressed.Load()),
		"produce-request-total":  float64(requests),
		"request-latency-avg-ms": output.Per(m.requestNs.Load(), requests) / 1e6,
		"outgoing-byte-total":    float64(m.written.Load()),
		"incoming-byte-total":    float64(m.read.Load()),
		"request-failure-total":  float64(m.failures.Load()),
	}
}

func (m *metrics) print(w io.Writer) { output.Metrics(w, "producer-metrics", 40, m.values()) }
