package broker

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kversion"
)

// Claim (F032): a client that speaks no newer requests than an old Kafka's works as it is: it produces 100 records and reads them back,
// by partition and in a group.
// Method: franz-go held to the requests of each release that its groups need (0.9 on; 0.8 had no consumer groups in the broker).
func TestField_F032_VersionRange(t *testing.T) {
	b := startBroker(t, "group.initial.rebalance.delay.ms=0")
	for _, v := range []struct {
		name     string
		versions *kversion.Versions
	}{
		{"0.8.2", kversion.V0_8_2()}, {"0.9.0", kversion.V0_9_0()}, {"0.10.0", kversion.V0_10_0()}, {"0.10.2", kversion.V0_10_2()}, {"0.11.0", kversion.V0_11_0()},
		{"1.0.0", kversion.V1_0_0()}, {"2.0.0", kversion.V2_0_0()}, {"2.8.0", kversion.V2_8_0()}, {"3.9.0", kversion.V3_9_0()}, {"4.3.0", kversion.V4_3_0()},
	} {
		t.Run(v.name, func(t *testing.T) {
			topic := "from-" + v.name
			b.topic(topic, 1)
			options := []kgo.Opt{kgo.SeedBrokers(b.Addr("")), kgo.MaxVersions(v.versions), kgo.DisableIdempotentWrite(), kgo.ProducerBatchCompression(kgo.GzipCompression(), kgo.NoCompression())}
			ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
			defer cancel()
			client := func(more ...kgo.Opt) *kgo.Client {
				cl, err := kgo.NewClient(append(options, more...)...)
				if err != nil {
					t.Fatal(err)
				}
				return cl
			}
			producer := client()
			defer producer.Close()
			for i := range 100 {
				r := &kgo.Record{Topic: topic, Key: []byte("k"), Value: fmt.Appendf(nil, "value %d", i)}
				if err := producer.ProduceSync(ctx, r).FirstErr(); err != nil {
					t.Fatalf("record %d: %v", i, err)
				}
			}
			readers := map[string]*kgo.Client{"by partition": client(kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: {0: kgo.NewOffset().AtStart()}}))}
			if v.name != "0.8.2" {
				readers["in a group"] = client(kgo.ConsumerGroup("g-"+v.name), kgo.ConsumeTopics(topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
			}
			for how, reader := range readers {
				defer reader.Close()
				for next := 0; next < 100; {
					fetches := reader.PollFetches(ctx)
					for _, e := range fetches.Errors() {
						t.Fatalf("reading %s: %v", how, e.Err)
					}
					fetches.EachRecord(func(r *kgo.Record) {
						if want := fmt.Sprintf("value %d", next); string(r.Value) != want || r.Offset != int64(next) || string(r.Key) != "k" {
							t.Errorf("read %s: offset %d %q=%q, want offset %d %q", how, r.Offset, r.Key, r.Value, next, want)
						}
						next++
					})
				}
			}
		})
	}
}
