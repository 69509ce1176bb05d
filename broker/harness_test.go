package broker

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"millrace/engine/batch"
	"millrace/wire"
)

// testBroker is a broker in this process over a directory of the test's.
type testBroker struct {
	*Broker
	t   testing.TB
	log *logLines
}

// logLines keeps what a broker logs.
type logLines struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logLines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logLines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// count is how many lines hold the text.
func (l *logLines) count(text string) int {
	n := 0
	for _, line := range strings.Split(l.String(), "\n") {
		if strings.Contains(line, text) {
			n++
		}
	}
	return n
}

// startBroker starts a broker with these overrides ("key=value") and stops it
// when the test ends.
func startBroker(t testing.TB, overrides ...string) *testBroker {
	t.Helper()
	return startBrokerIn(t, t.TempDir(), overrides...)
}

func startBrokerIn(t testing.TB, dir string, overrides ...string) *testBroker {
	t.Helper()
	config, _, err := LoadConfig("", append([]string{"listeners=PLAINTEXT://127.0.0.1:0", "admin.listener=", "millrace.coordinator.listener=", "log.dirs=" + dir}, overrides...))
	if err != nil {
		t.Fatal(err)
	}
	lines := &logLines{}
	config.Logger = slog.New(slog.NewTextHandler(lines, &slog.HandlerOptions{Level: slog.LevelDebug}))
	b, err := Start(context.Background(), config)
	if err != nil {
		t.Fatal(err)
	}
	tb := &testBroker{Broker: b, t: t, log: lines}
	t.Cleanup(func() {
		tb.halt()
		if t.Failed() {
			t.Log(lines.String())
		}
	})
	return tb
}

func (b *testBroker) halt() {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := b.Stop(ctx); err != nil {
		b.t.Errorf("stop: %v", err)
	}
}

// topic makes a topic; config is "key=value" pairs.
func (b *testBroker) topic(name string, partitions int32, config ...string) {
	b.t.Helper()
	req := kmsg.NewPtrCreateTopicsRequest()
	req.TimeoutMillis = 5000
	topic := kmsg.NewCreateTopicsRequestTopic()
	topic.Topic, topic.NumPartitions, topic.ReplicationFactor = name, partitions, 1
	for _, pair := range config {
		key, value, _ := strings.Cut(pair, "=")
		c := kmsg.NewCreateTopicsRequestTopicConfig()
		c.Name, c.Value = key, &value
		topic.Configs = append(topic.Configs, c)
	}
	req.Topics = append(req.Topics, topic)
	resp := b.dial().ask(req, 5).(*kmsg.CreateTopicsResponse)
	if code := resp.Topics[0].ErrorCode; code != 0 {
		b.t.Fatalf("creating %s: %s", name, wire.ErrorName(code))
	}
}

func (b *testBroker) delete(name string) {
	b.t.Helper()
	req := kmsg.NewPtrDeleteTopicsRequest()
	req.TopicNames, req.TimeoutMillis = []string{name}, 5000
	resp := b.dial().ask(req, 3).(*kmsg.DeleteTopicsResponse)
	if code := resp.Topics[0].ErrorCode; code != 0 {
		b.t.Fatalf("deleting %s: %s", name, wire.ErrorName(code))
	}
}

// client is a raw connection: it sends what a test made and reads frames.
type client struct {
	t    testing.TB
	nc   net.Conn
	next int32
}

func (b *testBroker) dial() *client { return b.dialTo("") }

func (b *testBroker) dialTo(listener string) *client {
	b.t.Helper()
	nc, err := net.Dial("tcp", b.Addr(listener))
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { nc.Close() })
	return &client{t: b.t, nc: nc}
}

// frame encodes a whole request frame.
func (c *client) frame(req kmsg.Request, version int16) []byte {
	req.SetVersion(version)
	return c.frameOf(req.Key(), version, req.AppendTo(nil))
}

func (c *client) frameOf(key, version int16, body []byte) []byte {
	c.next++
	dst, mark := wire.BeginFrame(nil)
	dst = wire.AppendRequestHeader(dst, wire.Header{Key: key, Version: version, Correlation: c.next, ClientID: "test", HasClientID: true})
	return wire.EndFrame(append(dst, body...), mark)
}

func (c *client) write(frames ...[]byte) {
	c.t.Helper()
	if _, err := c.nc.Write(bytes.Join(frames, nil)); err != nil {
		c.t.Fatal(err)
	}
}

// read returns the next answer: its correlation and what comes after it.
func (c *client) read() (correlation int32, rest []byte) {
	c.t.Helper()
	correlation, rest, err := c.tryRead(10 * time.Second)
	if err != nil {
		c.t.Fatalf("reading an answer: %v", err)
	}
	return correlation, rest
}

func (c *client) tryRead(patience time.Duration) (correlation int32, rest []byte, err error) {
	_ = c.nc.SetReadDeadline(time.Now().Add(patience))
	var head [4]byte
	if _, err := io.ReadFull(c.nc, head[:]); err != nil {
		return 0, nil, err
	}
	frame := make([]byte, binary.BigEndian.Uint32(head[:]))
	if _, err := io.ReadFull(c.nc, frame); err != nil {
		return 0, nil, err
	}
	return int32(binary.BigEndian.Uint32(frame)), frame[4:], nil
}

// ask sends a request and decodes its answer.
func (c *client) ask(req kmsg.Request, version int16) kmsg.Response {
	c.t.Helper()
	c.write(c.frame(req, version))
	return c.answer(req, version)
}

// answer reads the answer to the request that was sent last.
func (c *client) answer(req kmsg.Request, version int16) kmsg.Response {
	c.t.Helper()
	correlation, rest := c.read()
	if correlation != c.next {
		c.t.Fatalf("answer to request %d, want %d", correlation, c.next)
	}
	return c.decode(req, version, rest)
}

func (c *client) decode(req kmsg.Request, version int16, rest []byte) kmsg.Response {
	c.t.Helper()
	if api, _ := wire.Lookup(req.Key()); api.Flexible(version) && req.Key() != wire.KeyAPIVersions {
		rest = rest[1:] // the header's empty tag block
	}
	resp := req.ResponseKind()
	resp.SetVersion(version)
	if err := resp.ReadFrom(rest); err != nil {
		c.t.Fatalf("decoding the answer to %s v%d: %v", kmsg.NameForKey(req.Key()), version, err)
	}
	return resp
}

// values builds a batch of records with these values, stamped now.
func values(codec batch.Codec, vs ...string) []byte {
	b := batch.NewBuilder(codec, 0)
	for _, v := range vs {
		if err := b.Add(batch.Record{Timestamp: time.Now().UnixMilli(), Value: []byte(v)}); err != nil {
			panic(err)
		}
	}
	return bytes.Clone(b.Bytes())
}

// sized builds an uncompressed batch of one record that has exactly n bytes.
func sized(n int) []byte {
	for v := max(n-100, 0); v < n; v++ {
		if b := values(batch.None, strings.Repeat("x", v)); len(b) == n {
			return b
		}
	}
	panic(fmt.Sprintf("no batch has %d bytes", n))
}

// produceTo makes a Produce request for one partition; topic ids are looked up
// for v13.
func (b *testBroker) produceTo(version int16, acks int16, topic string, partition int32, records []byte) *kmsg.ProduceRequest {
	req := kmsg.NewPtrProduceRequest()
	req.Acks, req.TimeoutMillis = acks, 5000
	t := kmsg.NewProduceRequestTopic()
	t.Topic = topic
	if version >= 13 {
		t.TopicID = b.replicas.Topic(topic).ID
	}
	p := kmsg.NewProduceRequestTopicPartition()
	p.Partition, p.Records = partition, records
	t.Partitions = append(t.Partitions, p)
	req.Topics = append(req.Topics, t)
	return req
}

// produce sends one batch and returns the partition's answer.
func (b *testBroker) produce(c *client, version int16, topic string, partition int32, records []byte) kmsg.ProduceResponseTopicPartition {
	b.t.Helper()
	resp := c.ask(b.produceTo(version, -1, topic, partition, records), version).(*kmsg.ProduceResponse)
	return resp.Topics[0].Partitions[0]
}

// mustProduce is produce that has to succeed.
func (b *testBroker) mustProduce(topic string, partition int32, records []byte) int64 {
	b.t.Helper()
	p := b.produce(b.dial(), 9, topic, partition, records)
	if p.ErrorCode != 0 {
		b.t.Fatalf("produce: %s", wire.ErrorName(p.ErrorCode))
	}
	return p.BaseOffset
}

// want is one partition in a Fetch request.
type want struct {
	topic     string
	partition int32
	offset    int64
	max       int32
}

func (b *testBroker) fetchOf(version int16, wants ...want) *kmsg.FetchRequest {
	req := kmsg.NewPtrFetchRequest()
	req.ReplicaID, req.MaxWaitMillis, req.MinBytes, req.MaxBytes = -1, 0, 1, 50<<20
	req.SessionEpoch = -1
	for _, w := range wants {
		if n := len(req.Topics); n == 0 || req.Topics[n-1].Topic != w.topic {
			t := kmsg.NewFetchRequestTopic()
			t.Topic = w.topic
			if topic := b.replicas.Topic(w.topic); topic != nil {
				t.TopicID = topic.ID
			}
			req.Topics = append(req.Topics, t)
		}
		p := kmsg.NewFetchRequestTopicPartition()
		p.Partition, p.FetchOffset, p.PartitionMaxBytes, p.CurrentLeaderEpoch = w.partition, w.offset, w.max, -1
		if w.max == 0 {
			p.PartitionMaxBytes = 1 << 20
		}
		t := &req.Topics[len(req.Topics)-1]
		t.Partitions = append(t.Partitions, p)
	}
	return req
}

func (c *client) fetch(req *kmsg.FetchRequest, version int16) *kmsg.FetchResponse {
	c.t.Helper()
	return c.ask(req, version).(*kmsg.FetchResponse)
}

// end is a partition's end offset as a client sees it.
func (b *testBroker) end(topic string, partition int32) int64 {
	return int64(b.replicas.Topic(topic).Partition(partition).HighWatermark())
}
