package batch

import (
	"fmt"
	"testing"
	"time"
)

// BenchmarkCheck shows what D12's check costs. Bytes are those of the records, expanded:
// what a producer meant to send. Records are of 100 bytes, like a log's lines.
func BenchmarkCheck(b *testing.B) {
	for _, codec := range allCodecs {
		for _, level := range []struct {
			name  string
			level Level
		}{{"full", Full}, {"header", HeaderOnly}} {
			for _, n := range []int{1, 10, 100, 1000} {
				b.Run(fmt.Sprintf("codec=%v/level=%s/records=%d", codec, level.name, n), func(b *testing.B) {
					records := someRecords(n, 100)
					plain := len(build(None, records))
					data := build(codec, records)
					rules := Rules{Level: level.level, Now: now, BeforeMax: -1, AfterMax: time.Hour, MaxSize: 1 << 20}
					b.SetBytes(int64(plain))
					b.ReportAllocs()
					b.ReportMetric(float64(len(data)), "stored-bytes")
					for b.Loop() {
						if _, err := Check(data, &rules); err != nil {
							b.Fatal(err)
						}
					}
				})
			}
		}
	}
}

// BenchmarkRecords shows what reading costs: compaction, look-ups by time, tools.
func BenchmarkRecords(b *testing.B) {
	for _, codec := range allCodecs {
		b.Run(fmt.Sprintf("codec=%v/records=1000", codec), func(b *testing.B) {
			records := someRecords(1000, 100)
			data := build(codec, records)
			b.SetBytes(int64(len(build(None, records))))
			b.ReportAllocs()
			for b.Loop() {
				for _, err := range Records(data) {
					if err != nil {
						b.Fatal(err)
					}
				}
			}
		})
	}
}

// BenchmarkConvert shows what old clients cost, a batch of 1000 records each time.
func BenchmarkConvert(b *testing.B) {
	for _, codec := range []Codec{None, Snappy} {
		records := someRecords(1000, 100)
		data := build(codec, records)
		set, err := DownConvert(nil, data, 1, 0)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(fmt.Sprintf("way=down/codec=%v", codec), func(b *testing.B) {
			b.SetBytes(int64(len(data)))
			b.ReportAllocs()
			for b.Loop() {
				if set, err = DownConvert(set[:0], data, 1, 0); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(fmt.Sprintf("way=up/codec=%v", codec), func(b *testing.B) {
			b.SetBytes(int64(len(set)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := UpConvert(set, 0); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
