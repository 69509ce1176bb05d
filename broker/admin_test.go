package broker

import (
	"context"
	"encoding/binary"
	"io"
	"log/slog"
	"net"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"millrace/wire"
)

// adminBroker starts a broker with these settings over dir ("" for a new one).
func adminBroker(t *testing.T, dir string, settings ...string) *Broker {
	t.Helper()
	if dir == "" {
		dir = t.TempDir()
	}
	config := DefaultConfig()
	config.Logger = slog.New(slog.DiscardHandler)
	set := append([]string{"log.dirs", dir, "listeners", "PLAINTEXT://127.0.0.1:0", "admin.listener", ""}, settings...)
	for i := 0; i < len(set); i += 2 {
		if err := config.Set(set[i], set[i+1]); err != nil {
			t.Fatal(err)
		}
	}
	b, err := Start(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stopAdmin(t, b) })
	return b
}

func stopAdmin(t *testing.T, b *Broker) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := b.Stop(ctx); err != nil {
		t.Error(err)
	}
}

// adminClient speaks to one listener, one request at a time, in exactly the
// version that a test wants.
type adminClient struct {
	t    *testing.T
	conn net.Conn
	last int32
}

func dialAdmin(t *testing.T, b *Broker, listener string) *adminClient {
	t.Helper()
	conn, err := net.Dial("tcp", b.Addr(listener))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return &adminClient{t: t, conn: conn}
}

// ask sends a request in the version it has set and decodes the answer.
func ask[R kmsg.Response](c *adminClient, req kmsg.Request) R {
	c.t.Helper()
	return c.raw(req.Key(), req.GetVersion(), req.AppendTo(nil)).(R)
}

// raw sends a body as it stands.
func (c *adminClient) raw(key, version int16, body []byte) kmsg.Response {
	c.t.Helper()
	c.last++
	h := wire.Header{Key: key, Version: version, Correlation: c.last, ClientID: "admin-test", HasClientID: true}
	frame, mark := wire.BeginFrame(nil)
	frame = wire.EndFrame(append(wire.AppendRequestHeader(frame, h), body...), mark)
	_ = c.conn.SetDeadline(time.Now().Add(10 * time.Second))
	if _, err := c.conn.Write(frame); err != nil {
		c.t.Fatal(err)
	}
	var size [4]byte
	if _, err := io.ReadFull(c.conn, size[:]); err != nil {
		c.t.Fatalf("api %d v%d: %v", key, version, err)
	}
	answer := make([]byte, binary.BigEndian.Uint32(size[:]))
	if _, err := io.ReadFull(c.conn, answer); err != nil {
		c.t.Fatal(err)
	}
	head := len(wire.AppendResponseHeader(nil, h))
	if got := int32(binary.BigEndian.Uint32(answer)); got != c.last {
		c.t.Fatalf("answer %d to request %d", got, c.last)
	}
	resp := kmsg.ResponseForKey(key)
	resp.SetVersion(version)
	if err := resp.ReadFrom(answer[head:]); err != nil {
		c.t.Fatalf("api %d v%d: %v", key, version, err)
	}
	return resp
}

// createTopic makes a topic and returns its answer.
func (c *adminClient) createTopic(name string, partitions int32, config ...string) kmsg.CreateTopicsResponseTopic {
	c.t.Helper()
	req := kmsg.NewPtrCreateTopicsRequest()
	req.Version = 7
	topic := kmsg.NewCreateTopicsRequestTopic()
	topic.Topic, topic.NumPartitions, topic.ReplicationFactor = name, partitions, 1
	for i := 0; i < len(config); i += 2 {
		topic.Configs = append(topic.Configs, kmsg.CreateTopicsRequestTopicConfig{Name: config[i], Value: &config[i+1]})
	}
	req.Topics = append(req.Topics, topic)
	return ask[*kmsg.CreateTopicsResponse](c, req).Topics[0]
}

// textOf reads a nullable string.
func textOf(s *string) string {
	if s == nil {
		return "(null)"
	}
	return *s
}
