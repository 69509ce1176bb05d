package core

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"millrace/tools/compat/harness"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// valueChecks: keys, headers, nulls, empty values, timestamps and sizes up to the limit come back as they went in.
func valueChecks() []harness.Check {
	return []harness.Check{{Client: "franz-go", Name: "keys, headers, nulls, sizes, timestamps with each codec", Short: true, Limit: 2 * time.Minute, Run: values}}
}

func values(e *harness.Env) error {
	m, err := harness.StartMillrace(e)
	if err != nil {
		return err
	}
	defer m.Kill()
	const limit = 1_048_588 // max.message.bytes by default: the whole batch with its header
	for _, c := range []struct {
		name  string
		codec kgo.CompressionCodec
	}{{"none", kgo.NoCompression()}, {"gzip", kgo.GzipCompression()}, {"snappy", kgo.SnappyCompression()}, {"lz4", kgo.Lz4Compression()}, {"zstd", kgo.ZstdCompression()}} {
		topic := "values-" + c.name
		if err := harness.CreateTopic(m.Addr, topic, 1); err != nil {
			return err
		}
		at := time.UnixMilli(1_700_000_000_123)
		sent := []*kgo.Record{
			{Value: nil, Key: []byte("tombstone")},
			{Value: []byte{}, Key: []byte{}},
			{Value: []byte("x"), Timestamp: at},
			{Value: []byte("with headers"), Headers: []kgo.RecordHeader{{Key: "a", Value: []byte("1")}, {Key: "a", Value: nil}, {Key: "", Value: []byte{}}}},
			{Key: []byte(strings.Repeat("k", 3000)), Value: []byte("long key")},
			{Value: bytes.Repeat([]byte{0, 255, 10, 13}, 200_000)},
			{Value: make([]byte, limit-100)},
		}
		if err := produceAll(m.Addr, topic, c.codec, sent); err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
		i := 0
		if err := harness.ReadAll(m.Addr, topic, 0, func(r *kgo.Record) error {
			if i >= len(sent) {
				return errors.New("more records than were sent")
			}
			i++
			return sameRecord(sent[i-1], r)
		}); err != nil {
			return fmt.Errorf("%s: record %d: %w", c.name, i-1, err)
		}
		if i != len(sent) {
			return fmt.Errorf("%s: %d records came back, want %d", c.name, i, len(sent))
		}
	}
	return m.Stop()
}

// produceAll sends each record as a batch of its own, in order.
func produceAll(addr, topic string, codec kgo.CompressionCodec, records []*kgo.Record) error {
	cl, err := kgo.NewClient(kgo.SeedBrokers(addr), kgo.ProducerBatchCompression(codec), kgo.ProducerBatchMaxBytes(2<<20))
	if err != nil {
		return err
	}
	defer cl.Close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for _, r := range records {
		r.Topic, r.Partition = topic, 0
		if err := cl.ProduceSync(ctx, r).FirstErr(); err != nil {
			return err
		}
	}
	return nil
}

func sameRecord(want, got *kgo.Record) error {
	switch {
	case !bytes.Equal(want.Key, got.Key) || (want.Key == nil) != (got.Key == nil):
		return fmt.Errorf("key %.40q, want %.40q", got.Key, want.Key)
	case !bytes.Equal(want.Value, got.Value) || (want.Value == nil) != (got.Value == nil):
		return fmt.Errorf("value of %d bytes (null %v), want %d (null %v)", len(got.Value), got.Value == nil, len(want.Value), want.Value == nil)
	case want.Timestamp.UnixMilli() != got.Timestamp.UnixMilli():
		return fmt.Errorf("timestamp %v, want %v", got.Timestamp, want.Timestamp)
	case len(want.Headers) != len(got.Headers):
		return fmt.Errorf("%d headers, want %d", len(got.Headers), len(want.Headers))
	}
	for i, h := range want.Headers {
		g := got.Headers[i]
		if h.Key != g.Key || !bytes.Equal(h.Value, g.Value) || (h.Value == nil) != (g.Value == nil) {
			return fmt.Errorf("header %d is %v, want %v", i, g, h)
		}
	}
	return nil
}
