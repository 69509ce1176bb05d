package main

import (
	"fmt"
	"net"
	"strconv"
	"time"

	"github.com/rabbitmq/rabbitmq-stream-go-client/pkg/amqp"
	"github.com/rabbitmq/rabbitmq-stream-go-client/pkg/stream"
)

type rabbitClient struct {
	env      *stream.Environment
	producer *stream.Producer // nil until the first publish
	stream   string
	ack      func([]byte, error)
}

func dialRabbitMQ(o options, ack func([]byte, error)) (client, error) {
	host, word, err := net.SplitHostPort(o.addr)
	if err != nil {
		return nil, err
	}
	port, err := strconv.Atoi(word)
	if err != nil {
		return nil, err
	}
	// The client's own socket buffers of 8 KiB are below one loopback packet, and reading then waits for timers: 4 MiB instead.
	env, err := stream.NewEnvironment(stream.NewEnvironmentOptions().SetHost(host).SetPort(port).SetReadBuffer(4 << 20).SetWriteBuffer(4 << 20).
		SetAddressResolver(stream.AddressResolver{Host: host, Port: port}))
	if err != nil {
		return nil, err
	}
	return &rabbitClient{env: env, stream: o.stream, ack: ack}, nil
}

func (r *rabbitClient) prepare() error {
	there, err := r.env.StreamExists(r.stream)
	if err != nil || there {
		return err
	}
	return r.env.DeclareStream(r.stream, stream.NewStreamOptions().SetMaxLengthBytes(stream.ByteCapacity{}.GB(8)))
}

func (r *rabbitClient) publish(value []byte) error {
	if r.producer == nil {
		p, err := r.env.NewProducer(r.stream, stream.NewProducerOptions())
		if err != nil {
			return err
		}
		confirms := p.NotifyPublishConfirmation()
		go func() { // ends when the producer is closed
			for batch := range confirms {
				for _, c := range batch {
					err := c.GetError()
					if err == nil && !c.IsConfirmed() {
						err = fmt.Errorf("a message was not confirmed, code %d", c.GetErrorCode())
					}
					r.ack(c.GetMessage().GetData()[0], err)
				}
			}
		}()
		r.producer = p
	}
	return r.producer.Send(amqp.NewMessage(value))
}

func (r *rabbitClient) read(count int) (got int, bytes int64, err error) {
	done := make(chan struct{})
	c, err := r.env.NewConsumer(r.stream, func(_ stream.ConsumerContext, m *amqp.Message) { // one at a time
		if got < count {
			got++
			bytes += int64(len(m.GetData()))
			if got == count {
				close(done)
			}
		}
	}, stream.NewConsumerOptions().SetOffset(stream.OffsetSpecification{}.First()))
	if err != nil {
		return 0, 0, err
	}
	select {
	case <-done:
		return count, bytes, c.Close()
	case <-time.After(20 * time.Second):
		return 0, 0, fmt.Errorf("%d messages did not come within 20 s", count)
	}
}

func (r *rabbitClient) close() {
	if r.producer != nil {
		r.producer.Close()
	}
	r.env.Close()
}
