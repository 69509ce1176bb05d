package broker

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Claim: a real client makes topics on first use, produces idempotently with
// every codec, and reads back everything in order.
// Method: franz-go against one broker.
func TestFranzGoProducesAndConsumes(t *testing.T) {
	b := startBroker(t)
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	const n = 2000
	for name, codec := range map[string]kgo.CompressionCodec{
		"none": kgo.NoCompression(), "gzip": kgo.GzipCompression(), "snappy": kgo.SnappyCompression(), "lz4": kgo.Lz4Compression(), "zstd": kgo.ZstdCompression(),
	} {
		topic := "kgo-" + name
		producer, err := kgo.NewClient(kgo.SeedBrokers(b.Addr("")), kgo.ProducerBatchCompression(codec), kgo.AllowAutoTopicCreation(), kgo.DefaultProduceTopic(topic))
		if err != nil {
			t.Fatal(err)
		}
		for i := range n {
			producer.Produce(ctx, kgo.StringRecord(fmt.Sprintf("record %d of %s", i, name)), func(_ *kgo.Record, err error) {
				if err != nil {
					t.Errorf("%s: %v", name, err)
				}
			})
		}
		if err := producer.Flush(ctx); err != nil {
			t.Fatal(err)
		}
		producer.Close()

		consumer, err := kgo.NewClient(kgo.SeedBrokers(b.Addr("")), kgo.ConsumeTopics(topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
		if err != nil {
			t.Fatal(err)
		}
		for got := 0; got < n; {
			fetches := consumer.PollFetches(ctx)
			if err := fetches.Err(); err != nil {
				t.Fatalf("%s: after %d records: %v", name, got, err)
			}
			fetches.EachRecord(func(r *kgo.Record) {
				if want := fmt.Sprintf("record %d of %s", got, name); string(r.Value) != want || r.Offset != int64(got) {
					t.Fatalf("%s: %q at %d, want %q at %d", name, r.Value, r.Offset, want, got)
				}
				got++
			})
		}
		consumer.Close()
	}
}
