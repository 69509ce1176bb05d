package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

func serveNATS(dir string, always bool) error {
	s, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, JetStream: true, StoreDir: dir, SyncAlways: always, NoSigs: true, NoLog: true})
	if err != nil {
		return err
	}
	s.Start()
	if !s.ReadyForConnections(60 * time.Second) {
		return errors.New("the NATS server was not ready within 60 s")
	}
	fmt.Printf("ready listeners=PLAINTEXT://%s\n", s.Addr())
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM, os.Interrupt)
	<-stop
	s.Shutdown()
	s.WaitForShutdown()
	return nil
}

type natsClient struct {
	conn   *nats.Conn
	js     jetstream.JetStream
	stream string
}

func dialNATS(o options, ack func([]byte, error)) (client, error) {
	c, err := nats.Connect("nats://" + o.addr)
	if err != nil {
		return nil, err
	}
	js, err := jetstream.New(c, jetstream.WithPublishAsyncMaxPending(1_000_000),
		jetstream.WithPublishAsyncAckHandler(func(_ jetstream.JetStream, m *nats.Msg, _ *jetstream.PubAck) { ack(m.Data, nil) }),
		jetstream.WithPublishAsyncErrHandler(func(_ jetstream.JetStream, m *nats.Msg, err error) { ack(m.Data, err) }))
	if err != nil {
		c.Close()
		return nil, err
	}
	return &natsClient{conn: c, js: js, stream: o.stream}, nil
}

func (n *natsClient) prepare() error {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	_, err := n.js.CreateOrUpdateStream(ctx, jetstream.StreamConfig{Name: n.stream, Subjects: []string{n.stream}, Storage: jetstream.FileStorage})
	return err
}

func (n *natsClient) publish(value []byte) error {
	_, err := n.js.PublishAsync(n.stream, value)
	return err
}

func (n *natsClient) read(count int) (got int, bytes int64, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	c, err := n.js.OrderedConsumer(ctx, n.stream, jetstream.OrderedConsumerConfig{DeliverPolicy: jetstream.DeliverAllPolicy})
	if err != nil {
		return 0, 0, err
	}
	done := make(chan struct{})
	cc, err := c.Consume(func(m jetstream.Msg) { // on the client's own goroutine, one at a time
		if got < count {
			got++
			bytes += int64(len(m.Data()))
			if got == count {
				close(done)
			}
		}
	})
	if err != nil {
		return 0, 0, err
	}
	defer cc.Stop()
	select {
	case <-done:
		return got, bytes, nil
	case <-ctx.Done():
		return 0, 0, fmt.Errorf("%d messages did not come within a minute", count)
	}
}

func (n *natsClient) close() { n.conn.Close() }
