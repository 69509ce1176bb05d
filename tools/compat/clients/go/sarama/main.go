// Command sarama drives sarama at a protocol version.
package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/IBM/sarama"

	"millrace/tools/compat/clients/go/report"
)

func main() {
	report.Main(report.Acts{"produce": produce, "consume": consume, "limit": limit, "member": member, "admin": admin, "transaction": transaction})
}

var codecs = map[string]sarama.CompressionCodec{"none": sarama.CompressionNone, "gzip": sarama.CompressionGZIP, "snappy": sarama.CompressionSnappy, "lz4": sarama.CompressionLZ4, "zstd": sarama.CompressionZSTD}

func config(a report.Args) (*sarama.Config, error) {
	v, err := sarama.ParseKafkaVersion(a.Version)
	c := sarama.NewConfig()
	c.Version = v
	c.ClientID = "compat"
	c.Producer.Return.Successes = true
	c.Producer.RequiredAcks = sarama.WaitForAll
	c.Producer.Partitioner = sarama.NewManualPartitioner
	c.Consumer.Offsets.Initial = sarama.OffsetOldest
	c.Consumer.Offsets.AutoCommit.Enable = false
	c.Consumer.MaxWaitTime = 50 * time.Millisecond // its commits wait behind the fetches of the same connection
	c.Consumer.Group.Session.Timeout = 6 * time.Second
	c.Consumer.Group.Heartbeat.Interval = 500 * time.Millisecond
	return c, err
}

func encoder(b []byte) sarama.Encoder {
	if b == nil {
		return nil
	}
	return sarama.ByteEncoder(b)
}

func message(topic string, r report.Record) *sarama.ProducerMessage {
	m := &sarama.ProducerMessage{Topic: topic, Key: encoder(r.Key), Value: encoder(r.Value), Timestamp: time.UnixMilli(r.Time)}
	for _, h := range r.Headers {
		m.Headers = append(m.Headers, sarama.RecordHeader{Key: []byte(h.Key), Value: h.Value})
	}
	return m
}

func produce(ctx context.Context, bootstrap string, a report.Args) error {
	records, err := report.Read(a.File)
	if err != nil {
		return err
	}
	c, err := config(a)
	if err != nil {
		return err
	}
	c.Producer.Compression = codecs[a.Codec]
	c.Producer.Idempotent = a.Idempotent
	c.Net.MaxOpenRequests = 1
	p, err := sarama.NewSyncProducer([]string{bootstrap}, c)
	if err != nil {
		return err
	}
	defer p.Close()
	for _, r := range records[:a.Single] {
		if _, _, err := p.SendMessage(message(a.Topic, r)); err != nil {
			return err
		}
	}
	var rest []*sarama.ProducerMessage
	for _, r := range records[a.Single:] {
		rest = append(rest, message(a.Topic, r))
	}
	return p.SendMessages(rest)
}

func consume(ctx context.Context, bootstrap string, a report.Args) error {
	cfg, err := config(a)
	if err != nil {
		return err
	}
	c, err := sarama.NewConsumer([]string{bootstrap}, cfg)
	if err != nil {
		return err
	}
	defer c.Close()
	for topic, n := range a.Topics {
		pc, err := c.ConsumePartition(topic, 0, sarama.OffsetOldest)
		if err != nil {
			return err
		}
		for range n {
			select {
			case m := <-pc.Messages():
				got(m)
			case <-time.After(30 * time.Second):
				return fmt.Errorf("%s: no further message within 30 s", topic)
			}
		}
		if err := pc.Close(); err != nil {
			return err
		}
	}
	return nil
}

func got(m *sarama.ConsumerMessage) {
	r := report.Record{Key: m.Key, Value: m.Value, Time: m.Timestamp.UnixMilli()}
	for _, h := range m.Headers {
		r.Headers = append(r.Headers, report.Header{Key: string(h.Key), Value: h.Value})
	}
	report.Got(m.Topic, m.Partition, m.Offset, r)
}

func limit(ctx context.Context, bootstrap string, a report.Args) error {
	c, err := config(a)
	if err != nil {
		return err
	}
	c.Producer.MaxMessageBytes = 4 << 20
	p, err := sarama.NewSyncProducer([]string{bootstrap}, c)
	if err != nil {
		return err
	}
	defer p.Close()
	_, _, err = p.SendMessage(message(a.Topic, report.Record{Value: make([]byte, a.Fit), Time: 1}))
	report.Must("fits", err)
	_, _, err = p.SendMessage(message(a.Topic, report.Record{Value: make([]byte, a.Over), Time: 1}))
	report.Step("over", err)
	return nil
}

// reader commits when it has read all that came.
type reader struct{}

func (reader) Setup(sarama.ConsumerGroupSession) error   { return nil }
func (reader) Cleanup(sarama.ConsumerGroupSession) error { return nil }
func (reader) ConsumeClaim(s sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	for m := range claim.Messages() {
		got(m)
		s.MarkMessage(m, "")
		if len(claim.Messages()) == 0 {
			s.Commit()
		}
	}
	return nil
}

func member(ctx context.Context, bootstrap string, a report.Args) error {
	c, err := config(a)
	if err != nil {
		return err
	}
	g, err := sarama.NewConsumerGroup([]string{bootstrap}, a.Group, c)
	if err != nil {
		return err
	}
	for ctx.Err() == nil {
		if err := g.Consume(ctx, []string{a.Topic}, reader{}); err != nil && !errors.Is(err, context.Canceled) {
			report.Step("note", err)
			time.Sleep(100 * time.Millisecond)
		}
	}
	return g.Close()
}

func transaction(ctx context.Context, bootstrap string, a report.Args) error {
	c, err := config(a)
	if err != nil {
		return err
	}
	c.Producer.Idempotent = true
	c.Producer.Transaction.ID = "t1"
	c.Producer.Transaction.Retry.Max = 3
	c.Net.MaxOpenRequests = 1
	p, err := sarama.NewSyncProducer([]string{bootstrap}, c)
	report.Must("init", err)
	defer p.Close()
	for _, commit := range []bool{true, false} {
		report.Must("begin", p.BeginTxn())
		for _, v := range []string{"1", "2", "3"} {
			if _, _, err := p.SendMessage(message(a.Topic, report.Record{Value: []byte(v), Time: 1})); err != nil {
				return err
			}
		}
		if commit {
			report.Must("commit", p.CommitTxn())
		} else {
			report.Must("abort", p.AbortTxn())
		}
	}
	return nil
}
