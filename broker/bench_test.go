package broker

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"

	"millrace/engine/batch"
)

// BenchmarkProduce sends prepared requests over loopback, some in flight, and
// reads whole answers: what it measures beside the broker is two system calls a
// round.
func BenchmarkProduce(b *testing.B) {
	for _, durability := range []string{"page-cache", "sync"} {
		for _, size := range []int{170, 16 << 10, 1 << 20} {
			for _, inFlight := range []int{1, 5} {
				b.Run(fmt.Sprintf("durability=%s/size=%d/inflight=%d", durability, size, inFlight), func(b *testing.B) {
					benchmarkProduce(b, durability, size, inFlight)
				})
			}
		}
	}
}

func benchmarkProduce(b *testing.B, durability string, size, inFlight int) {
	tb := startBroker(b, "message.max.bytes=2000000")
	tb.topic("t", 1, "millrace.durability="+durability)
	c := tb.dial()
	records := values(batch.None, strings.Repeat("x", size-100))
	frames := bytes.Repeat(c.frame(tb.produceTo(9, 1, "t", 0, records), 9), inFlight)
	tb.produce(c, 9, "t", 0, records)
	c.write(frames[:len(frames)/inFlight])
	_, rest := c.read()
	answers := make([]byte, inFlight*(len(rest)+8))
	b.SetBytes(int64(size))
	b.ReportAllocs()
	b.ResetTimer()
	for i := 0; i < b.N; i += inFlight {
		if _, err := c.nc.Write(frames); err != nil {
			b.Fatal(err)
		}
		if _, err := io.ReadFull(c.nc, answers); err != nil {
			b.Fatal(err)
		}
	}
	b.StopTimer()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "requests/s")
}

// BenchmarkFetch reads one partition's range again and again.
func BenchmarkFetch(b *testing.B) {
	for _, size := range []int{4 << 10, 64 << 10, 1 << 20} {
		for _, threshold := range []string{"65536", "2147483647"} {
			b.Run(fmt.Sprintf("size=%d/threshold=%s", size, threshold), func(b *testing.B) {
				tb := startBroker(b, "message.max.bytes=2000000", "millrace.sendfile.threshold="+threshold)
				tb.topic("t", 1)
				tb.mustProduce("t", 0, sized(size))
				c := tb.dial()
				frame := c.frame(tb.fetchOf(12, want{topic: "t"}), 12)
				c.write(frame)
				_, rest := c.read()
				answer := make([]byte, len(rest)+8)
				b.SetBytes(int64(size))
				b.ReportAllocs()
				for b.Loop() {
					if _, err := c.nc.Write(frame); err != nil {
						b.Fatal(err)
					}
					if _, err := io.ReadFull(c.nc, answer); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
