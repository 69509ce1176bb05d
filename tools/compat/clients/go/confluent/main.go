// Command confluent drives confluent-kafka-go, that is librdkafka.
package main

import (
	"context"
	"fmt"
	"time"

	"github.com/confluentinc/confluent-kafka-go/v2/kafka"

	"millrace/tools/compat/clients/go/report"
)

func main() {
	_, version := kafka.LibraryVersion()
	report.Version("librdkafka " + version)
	report.Main(report.Acts{"produce": produce, "consume": consume, "limit": limit, "member": member, "admin": admin, "transaction": transaction})
}

func at(topic string) kafka.TopicPartition {
	return kafka.TopicPartition{Topic: &topic, Partition: 0}
}

// send waits for the delivery of one message.
func send(p *kafka.Producer, m *kafka.Message) error {
	done := make(chan kafka.Event, 1)
	if err := p.Produce(m, done); err != nil {
		return err
	}
	return (<-done).(*kafka.Message).TopicPartition.Error
}

func message(topic string, r report.Record) *kafka.Message {
	m := &kafka.Message{TopicPartition: at(topic), Key: r.Key, Value: r.Value, Timestamp: time.UnixMilli(r.Time)}
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
	p, err := kafka.NewProducer(&kafka.ConfigMap{"bootstrap.servers": bootstrap, "compression.type": a.Codec, "enable.idempotence": a.Idempotent, "linger.ms": 5, "acks": "all"})
	if err != nil {
		return err
	}
	defer p.Close()
	for _, r := range records[:a.Single] {
		if err := send(p, message(a.Topic, r)); err != nil {
			return err
		}
	}
	rest := records[a.Single:]
	done := make(chan kafka.Event, len(rest))
	for _, r := range rest {
		if err := p.Produce(message(a.Topic, r), done); err != nil {
			return err
		}
	}
	for range rest {
		if err := (<-done).(*kafka.Message).TopicPartition.Error; err != nil {
			return err
		}
	}
	return nil
}

func consume(ctx context.Context, bootstrap string, a report.Args) error {
	c, err := kafka.NewConsumer(&kafka.ConfigMap{"bootstrap.servers": bootstrap, "group.id": "unused", "enable.auto.commit": false})
	if err != nil {
		return err
	}
	defer c.Close()
	for topic, n := range a.Topics {
		start := at(topic)
		start.Offset = kafka.OffsetBeginning
		if err := c.Assign([]kafka.TopicPartition{start}); err != nil {
			return err
		}
		for range n {
			m, err := c.ReadMessage(30 * time.Second)
			if err != nil {
				return fmt.Errorf("%s: %w", topic, err)
			}
			got(m)
		}
	}
	return nil
}

func got(m *kafka.Message) {
	r := report.Record{Key: m.Key, Value: m.Value, Time: m.Timestamp.UnixMilli()}
	for _, h := range m.Headers {
		r.Headers = append(r.Headers, report.Header{Key: h.Key, Value: h.Value})
	}
	report.Got(*m.TopicPartition.Topic, m.TopicPartition.Partition, int64(m.TopicPartition.Offset), r)
}

func limit(ctx context.Context, bootstrap string, a report.Args) error {
	p, err := kafka.NewProducer(&kafka.ConfigMap{"bootstrap.servers": bootstrap, "message.max.bytes": 4 << 20, "linger.ms": 0})
	if err != nil {
		return err
	}
	defer p.Close()
	report.Must("fits", send(p, message(a.Topic, report.Record{Value: make([]byte, a.Fit), Time: 1})))
	report.Step("over", send(p, message(a.Topic, report.Record{Value: make([]byte, a.Over), Time: 1})))
	return nil
}

func member(ctx context.Context, bootstrap string, a report.Args) error {
	config := kafka.ConfigMap{"bootstrap.servers": bootstrap, "group.id": a.Group, "enable.auto.commit": false, "auto.offset.reset": "earliest", "group.protocol": a.Protocol}
	if a.Protocol == "classic" {
		config["session.timeout.ms"] = 6000
		config["heartbeat.interval.ms"] = 500
	}
	c, err := kafka.NewConsumer(&config)
	if err != nil {
		return err
	}
	if err := c.Subscribe(a.Topic, nil); err != nil {
		return err
	}
	for ctx.Err() == nil {
		switch ev := c.Poll(200).(type) {
		case *kafka.Message:
			if ev.TopicPartition.Error != nil {
				report.Step("note", ev.TopicPartition.Error)
				continue
			}
			got(ev)
			_, err := c.CommitMessage(ev)
			report.Step("note", err, "committed")
		case kafka.Error:
			report.Step("note", ev)
			if ev.IsFatal() {
				return ev
			}
		}
	}
	return c.Close()
}
