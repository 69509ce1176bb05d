package load

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// topicExists is the protocol's TOPIC_ALREADY_EXISTS.
const topicExists = 36

// CreateTopic makes a topic with one replica; one that exists already is fine. It tries for up to a minute.
func CreateTopic(ctx context.Context, addr, name string, partitions int, configs map[string]string) error {
	req := kmsg.NewPtrCreateTopicsRequest()
	req.SetVersion(4)
	req.TimeoutMillis = 30_000
	t := kmsg.NewCreateTopicsRequestTopic()
	t.Topic, t.NumPartitions, t.ReplicationFactor = name, int32(partitions), 1
	for k, v := range configs {
		c := kmsg.NewCreateTopicsRequestTopicConfig()
		c.Name, c.Value = k, &v
		t.Configs = append(t.Configs, c)
	}
	req.Topics = append(req.Topics, t)
	ctx, cancel := context.WithTimeout(ctx, 60*time.Second)
	defer cancel()
	var last error
	for ctx.Err() == nil {
		resp := kmsg.NewPtrCreateTopicsResponse()
		resp.SetVersion(4)
		last = Ask(ctx, addr, req, resp)
		if last == nil {
			if code := resp.Topics[0].ErrorCode; code != 0 && code != topicExists {
				last = fmt.Errorf("creating topic %s: error code %d", name, code)
			} else {
				return nil
			}
		}
		pause(ctx, 20*time.Millisecond)
	}
	return errors.Join(last, ctx.Err())
}

// DeleteTopic removes a topic.
func DeleteTopic(ctx context.Context, addr, name string) error {
	req := kmsg.NewPtrDeleteTopicsRequest()
	req.SetVersion(1)
	req.TimeoutMillis = 30_000
	req.TopicNames = []string{name}
	resp := kmsg.NewPtrDeleteTopicsResponse()
	resp.SetVersion(1)
	if err := Ask(ctx, addr, req, resp); err != nil {
		return err
	}
	if code := resp.Topics[0].ErrorCode; code != 0 {
		return fmt.Errorf("deleting topic %s: error code %d", name, code)
	}
	return nil
}

// Ask sends one request and reads its answer, which must have a header of version 0 (no tags).
func Ask(ctx context.Context, addr string, req kmsg.Request, resp kmsg.Response) error {
	body, err := RoundTrip(ctx, addr, Frame(req))
	if err != nil {
		return err
	}
	return resp.ReadFrom(body)
}

// RoundTrip sends one frame and returns the answer's body (response header v0 taken off).
func RoundTrip(ctx context.Context, addr string, f []byte) ([]byte, error) {
	var d net.Dialer
	c, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	defer context.AfterFunc(ctx, func() { c.Close() })()
	c.SetDeadline(time.Now().Add(120 * time.Second))
	if _, err := c.Write(f); err != nil {
		return nil, err
	}
	var head [4]byte
	if _, err := io.ReadFull(c, head[:]); err != nil {
		return nil, err
	}
	b := make([]byte, binary.BigEndian.Uint32(head[:]))
	if _, err := io.ReadFull(c, b); err != nil {
		return nil, err
	}
	if len(b) < 4 {
		return nil, errors.New("an answer without a header")
	}
	return b[4:], nil
}

// Fill sends the frame n times over one connection, one after the other.
func Fill(addr string, r Row, frame []byte, n int) error {
	c, err := net.DialTimeout("tcp", addr, 10*time.Second)
	if err != nil {
		return err
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(5 * time.Minute))
	w := worker{conn: c, row: r, frames: [][]byte{frame}}
	for range n {
		if err := w.send(1); err != nil {
			return err
		}
		if _, err := w.answers(1); err != nil {
			return err
		}
	}
	return nil
}

// PrepareFetch fills the topic with what the fetch row reads and returns the row's frames. The topic must exist.
func PrepareFetch(addr string, r Row, topic string) ([][]byte, error) {
	fill := r
	fill.Fetch, fill.Connections, fill.InFlight, fill.Acks = 0, 1, 1, 1
	f := ProduceFrame(fill, topic)
	batches := max(64, (96<<20)/len(f)) // per partition
	if err := Fill(addr, fill, f, batches); err != nil {
		return nil, err
	}
	frames := FetchFrames(r, topic, batches, len(Batch(r.Records, r.Size)))
	if len(frames) == 0 {
		return nil, errors.New("no fetch frame fits what was stored")
	}
	return frames, nil
}

// pause waits for d or the end of ctx.
func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
