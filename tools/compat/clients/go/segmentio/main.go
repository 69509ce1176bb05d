// Command segmentio drives segmentio/kafka-go.
package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/segmentio/kafka-go"

	"millrace/tools/compat/clients/go/report"
)

var codecs = map[string]kafka.Compression{"none": 0, "gzip": kafka.Gzip, "snappy": kafka.Snappy, "lz4": kafka.Lz4, "zstd": kafka.Zstd}

func main() {
	report.Main(report.Acts{"produce": produce, "consume": consume, "limit": limit, "member": member, "admin": admin, "transaction": transaction})
}

func writer(bootstrap, topic string) *kafka.Writer {
	return &kafka.Writer{Addr: kafka.TCP(bootstrap), Topic: topic, Balancer: kafka.BalancerFunc(func(kafka.Message, ...int) int { return 0 }), RequiredAcks: kafka.RequireAll,
		BatchTimeout: 5 * time.Millisecond, BatchBytes: 4 << 20}
}

func message(r report.Record) kafka.Message {
	m := kafka.Message{Key: r.Key, Value: r.Value, Time: time.UnixMilli(r.Time)}
	for _, h := range r.Headers {
		m.Headers = append(m.Headers, kafka.Header{Key: h.Key, Value: h.Value})
	}
	return m
}

func produce(ctx context.Context, bootstrap string, a report.Args) error {
	records, err := report.Read(a.File)
	if err != nil {
		return err
	}
	w := writer(bootstrap, a.Topic)
	w.Compression = codecs[a.Codec]
	w.BatchBytes = 1 << 20
	defer w.Close()
	for _, r := range records[:a.Single] {
		if err := w.WriteMessages(ctx, message(r)); err != nil {
			return err
		}
	}
	var rest []kafka.Message
	for _, r := range records[a.Single:] {
		rest = append(rest, message(r))
	}
	return w.WriteMessages(ctx, rest...)
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
	r := kafka.NewReader(kafka.ReaderConfig{Brokers: []string{bootstrap}, Topic: topic, MaxBytes: 8 << 20, MaxWait: 100 * time.Millisecond})
	defer r.Close()
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	for range n {
		m, err := r.ReadMessage(ctx)
		if err != nil {
			return err
		}
		got(m)
	}
	return nil
}

func got(m kafka.Message) {
	r := report.Record{Key: m.Key, Value: m.Value, Time: m.Time.UnixMilli()}
	for _, h := range m.Headers {
		r.Headers = append(r.Headers, report.Header{Key: h.Key, Value: h.Value})
	}
	report.Got(m.Topic, int32(m.Partition), m.Offset, r)
}

func limit(ctx context.Context, bootstrap string, a report.Args) error {
	w := writer(bootstrap, a.Topic)
	defer w.Close()
	report.Must("fits", w.WriteMessages(ctx, message(report.Record{Value: make([]byte, a.Fit), Time: 1})))
	report.Step("over", w.WriteMessages(ctx, message(report.Record{Value: make([]byte, a.Over), Time: 1})))
	return nil
}

func member(ctx context.Context, bootstrap string, a report.Args) error {
	r := kafka.NewReader(kafka.ReaderConfig{Brokers: []string{bootstrap}, GroupID: a.Group, Topic: a.Topic, StartOffset: kafka.FirstOffset, MaxWait: 100 * time.Millisecond,
		SessionTimeout: 6 * time.Second, HeartbeatInterval: 500 * time.Millisecond, JoinGroupBackoff: 500 * time.Millisecond})
	for ctx.Err() == nil {
		m, err := r.FetchMessage(ctx)
		if errors.Is(err, context.Canceled) {
			break
		}
		if err != nil {
			report.Step("note", err)
			continue
		}
		got(m)
		report.Step("note", r.CommitMessages(context.Background(), m), "committed")
	}
	return r.Close()
}

// transaction: kafka-go has the requests and no producer that uses them.
func transaction(ctx context.Context, bootstrap string, a report.Args) error {
	c := &kafka.Client{Addr: kafka.TCP(bootstrap), Timeout: 10 * time.Second}
	r, err := c.InitProducerID(ctx, &kafka.InitProducerIDRequest{TransactionalID: "t1", TransactionTimeoutMs: 10000})
	if err == nil {
		err = r.Error
	}
	report.Must("init", err)
	return nil
}
