// Command franz drives franz-go.
package main

import (
	"context"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"millrace/tools/compat/clients/go/report"
)

var codecs = map[string]kgo.CompressionCodec{"none": kgo.NoCompression(), "gzip": kgo.GzipCompression(), "snappy": kgo.SnappyCompression(), "lz4": kgo.Lz4Compression(), "zstd": kgo.ZstdCompression()}

func main() {
	report.Main(report.Acts{"produce": produce, "consume": consume, "limit": limit, "member": member, "transaction": transaction})
}

func client(bootstrap string, opts ...kgo.Opt) (*kgo.Client, error) {
	return kgo.NewClient(append([]kgo.Opt{kgo.SeedBrokers(bootstrap), kgo.RecordPartitioner(kgo.ManualPartitioner())}, opts...)...)
}

func record(topic string, r report.Record) *kgo.Record {
	out := &kgo.Record{Topic: topic, Key: r.Key, Value: r.Value, Timestamp: time.UnixMilli(r.Time)}
	for _, h := range r.Headers {
		out.Headers = append(out.Headers, kgo.RecordHeader{Key: h.Key, Value: h.Value})
	}
	return out
}

func produce(ctx context.Context, bootstrap string, a report.Args) error {
	records, err := report.Read(a.File)
	if err != nil {
		return err
	}
	opts := []kgo.Opt{kgo.ProducerBatchCompression(codecs[a.Codec])}
	if !a.Idempotent {
		opts = append(opts, kgo.DisableIdempotentWrite(), kgo.MaxProduceRequestsInflightPerBroker(1))
	}
	cl, err := client(bootstrap, opts...)
	if err != nil {
		return err
	}
	defer cl.Close()
	for _, r := range records[:a.Single] {
		if err := cl.ProduceSync(ctx, record(a.Topic, r)).FirstErr(); err != nil {
			return err
		}
	}
	var rest []*kgo.Record
	for _, r := range records[a.Single:] {
		rest = append(rest, record(a.Topic, r))
	}
	return cl.ProduceSync(ctx, rest...).FirstErr()
}

func consume(ctx context.Context, bootstrap string, a report.Args) error {
	for topic, n := range a.Topics {
		if err := consumeTopic(ctx, bootstrap, topic, n); err != nil {
			return fmt.Errorf("%s: %w", topic, err)
		}
	}
	return nil
}

func consumeTopic(ctx context.Context, bootstrap, topic string, n int) error {
	cl, err := client(bootstrap, kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: {0: kgo.NewOffset().AtStart()}}))
	if err != nil {
		return err
	}
	defer cl.Close()
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	for n > 0 {
		fs := cl.PollFetches(ctx)
		if err := fs.Err(); err != nil {
			return err
		}
		fs.EachRecord(func(r *kgo.Record) { got(r); n-- })
	}
	return nil
}

func got(r *kgo.Record) {
	out := report.Record{Key: r.Key, Value: r.Value, Time: r.Timestamp.UnixMilli()}
	for _, h := range r.Headers {
		out.Headers = append(out.Headers, report.Header{Key: h.Key, Value: h.Value})
	}
	report.Got(r.Topic, r.Partition, r.Offset, out)
}

func limit(ctx context.Context, bootstrap string, a report.Args) error {
	cl, err := client(bootstrap, kgo.ProducerBatchMaxBytes(4<<20), kgo.ProducerBatchCompression(kgo.NoCompression()))
	if err != nil {
		return err
	}
	defer cl.Close()
	report.Must("fits", cl.ProduceSync(ctx, record(a.Topic, report.Record{Value: make([]byte, a.Fit), Time: 1})).FirstErr())
	report.Step("over", cl.ProduceSync(ctx, record(a.Topic, report.Record{Value: make([]byte, a.Over), Time: 1})).FirstErr())
	return nil
}

func member(ctx context.Context, bootstrap string, a report.Args) error {
	opts := []kgo.Opt{kgo.ConsumerGroup(a.Group), kgo.ConsumeTopics(a.Topic), kgo.DisableAutoCommit(), kgo.ConsumeStartOffset(kgo.NewOffset().AtStart()),
		kgo.SessionTimeout(6 * time.Second), kgo.HeartbeatInterval(500 * time.Millisecond)}
	if a.Protocol == "consumer" {
		opts = append(opts, kgo.Balancers(kgo.StickyBalancer()), kgo.ServerSideBalancer())
	}
	cl, err := client(bootstrap, opts...)
	if err != nil {
		return err
	}
	for ctx.Err() == nil {
		fs := cl.PollFetches(ctx)
		for _, err := range fs.Errors() {
			report.Step("note", err.Err)
		}
		fs.EachRecord(got)
		if fs.NumRecords() > 0 {
			report.Step("note", cl.CommitUncommittedOffsets(context.Background()), "committed")
		}
	}
	cl.LeaveGroup()
	cl.Close()
	return nil
}

func transaction(ctx context.Context, bootstrap string, a report.Args) error {
	cl, err := client(bootstrap, kgo.TransactionalID("t1"))
	if err != nil {
		return err
	}
	defer cl.Close()
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	for _, end := range []kgo.TransactionEndTry{kgo.TryCommit, kgo.TryAbort} {
		report.Must("begin", cl.BeginTransaction())
		for _, v := range []string{"1", "2", "3"} {
			if err := cl.ProduceSync(ctx, record(a.Topic, report.Record{Value: []byte(v), Time: 1})).FirstErr(); err != nil {
				return err
			}
		}
		report.Must("end transaction", cl.EndTransaction(ctx, end))
	}
	return nil
}
