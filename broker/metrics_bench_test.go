package broker

import (
	"fmt"
	"testing"

	"millrace/wire"
)

// meteredBursts are what a connection's meter does for n Produce requests that
// share a burst, and for one Fetch.
func meteredBursts(t testing.TB, n int) (produce, fetch func()) {
	b := startBroker(t)
	b.topic("t", 1)
	var m connMeter
	m.init(b.Broker, "PLAINTEXT")
	part := &producePart{partition: b.replicas.Topic("t").Partition(0)}
	part.append.Batch, part.append.Info.Count = make([]byte, 170), 1
	var calls []*produceCall
	for range n {
		calls = append(calls, &produceCall{header: wire.Header{Key: wire.KeyProduce, Version: 9, ClientID: "c"}})
	}
	h := wire.Header{Key: wire.KeyFetch, Version: 12, ClientID: "c"}
	item := &fetchItem{partition: part.partition}
	result := &wire.FetchPartitionResult{Bytes: part.append.Batch}
	produce = func() {
		m.arrive()
		for _, call := range calls {
			m.meets(&call.header)
			m.producing(call)
			m.appended(part)
		}
		m.produced(calls, m.m.clock(), false)
		m.flush()
	}
	fetch = func() {
		m.arrive()
		m.meets(&h)
		m.fetched(item, result, false)
		m.ready()
		m.answered(&h)
		m.flush()
	}
	return produce, fetch
}

// BenchmarkMeter is what metrics add to a request: compare with BenchmarkProduce.
func BenchmarkMeter(b *testing.B) {
	for _, n := range []int{1, 5} {
		b.Run(fmt.Sprint("produce/inflight=", n), func(b *testing.B) {
			burst, _ := meteredBursts(b, n)
			b.ReportAllocs()
			for b.Loop() {
				burst()
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/request")
		})
	}
	b.Run("fetch", func(b *testing.B) {
		_, fetch := meteredBursts(b, 1)
		for b.Loop() {
			fetch()
		}
	})
}

// BenchmarkScrape gathers the metrics of many partitions, all the way to the
// text. Run with -benchtime 5x.
func BenchmarkScrape(b *testing.B) {
	for _, n := range []int32{100, 10_000} {
		b.Run(fmt.Sprint("partitions=", n), func(b *testing.B) {
			tb := startBroker(b, withAdmin)
			for i := range n / 100 {
				tb.topic(fmt.Sprint("topic-", i), 100)
			}
			bytes := 0
			b.ReportAllocs()
			b.ResetTimer()
			for range b.N {
				_, body := tb.get("/metrics")
				bytes = len(body)
			}
			b.ReportMetric(float64(bytes), "B/scrape")
		})
	}
}
