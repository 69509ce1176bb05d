package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"net"
	"os"
	"path/filepath"
	"time"

	"millrace/benchmarks/peers/report"
	"millrace/benchmarks/process"
)

// jafka is a broker of Kafka's 0.7 line. Its produce request has no answer, and it syncs after 10,000 messages or 100 ms: to be
// compared with the page cache, and with acks=0 where others answer.
func (e *env) jafka() *server {
	return &server{label: report.Jafka, stop: time.Minute, client: jafkaClient{}, start: func(s *server) (*process.Process, string, error) {
		libs, err := mavenLibs(e.ctx, filepath.Join(e.cache, "lib", "jafka-"+jafkaVersion), "io.jafka:jafka:"+jafkaVersion)
		if err != nil {
			return nil, "", err
		}
		port, err := freePort()
		if err != nil {
			return nil, "", err
		}
		http, err := freePort()
		if err != nil {
			return nil, "", err
		}
		config := filepath.Join(s.dir, "jafka.properties")
		text := fmt.Sprintf("brokerid=0\nhostname=127.0.0.1\nport=%d\nhttp.port=%d\nnum.threads=2\nlog.dir=%s\nlog.flush.interval=10000\nlog.default.flush.interval.ms=100\nlog.default.flush.scheduler.interval.ms=100\ntopic.autocreated=true\nnum.partitions=1\nenable.zookeeper=false\n",
			port, http, filepath.Join(s.dir, "data"))
		if err := os.WriteFile(config, []byte(text), 0o644); err != nil {
			return nil, "", err
		}
		p, _, err := process.Start("jafka", s.dir, nil, "java", "-Xmx512M", "-cp", libs+"/*", "io.jafka.Jafka", config)
		if err != nil {
			return nil, "", err
		}
		addr := fmt.Sprintf("127.0.0.1:%d", port)
		if err := e.answers(p, time.Minute, func() error {
			_, err := jafkaEnd(addr)
			return err
		}); err != nil {
			p.Kill()
			return nil, "", err
		}
		return p, addr, nil
	}}
}

// jafkaClient speaks Kafka 0.7's protocol over raw connections.
type jafkaClient struct{}

// The request types of Kafka 0.7.
const (
	jafkaProduce = 0
	jafkaFetch   = 1
	jafkaOffsets = 4
)

// jafkaBatch is how many messages go in a request.
const jafkaBatch = 200

// jafkaRequest frames a request about partition 0 of the topic.
func jafkaRequest(kind uint16, body []byte) []byte {
	b := binary.BigEndian.AppendUint32(nil, uint32(2+2+len(benchTopic)+4+len(body)))
	b = binary.BigEndian.AppendUint16(b, kind)
	b = binary.BigEndian.AppendUint16(b, uint16(len(benchTopic)))
	b = append(b, benchTopic...)
	b = binary.BigEndian.AppendUint32(b, 0)
	return append(b, body...)
}

// jafkaMessages encodes n messages of 100 B: length, magic 1, no codec, CRC-32 of the value, value.
func jafkaMessages(n int) []byte {
	var b []byte
	for range n {
		v := stamp(time.Now())
		b = binary.BigEndian.AppendUint32(b, uint32(6+len(v)))
		b = append(b, 1, 0)
		b = binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(v))
		b = append(b, v...)
	}
	return b
}

func jafkaProduceFrame(n int) (frame []byte, stored int) {
	set := jafkaMessages(n)
	return jafkaRequest(jafkaProduce, append(binary.BigEndian.AppendUint32(nil, uint32(len(set))), set...)), len(set)
}

// jafkaAsk sends a request and returns its answer behind size and error code.
func jafkaAsk(c net.Conn, frame, buf []byte) ([]byte, error) {
	if _, err := c.Write(frame); err != nil {
		return nil, err
	}
	var head [6]byte
	if _, err := io.ReadFull(c, head[:]); err != nil {
		return nil, err
	}
	if code := int16(binary.BigEndian.Uint16(head[4:])); code != 0 {
		return nil, fmt.Errorf("jafka answered error code %d", code)
	}
	n := int(binary.BigEndian.Uint32(head[:])) - 2
	if n < 0 || n > 64<<20 {
		return nil, fmt.Errorf("jafka: an answer of %d bytes", n)
	}
	if cap(buf) < n {
		buf = make([]byte, n)
	}
	buf = buf[:n]
	_, err := io.ReadFull(c, buf)
	return buf, err
}

func jafkaDial(addr string, limit time.Duration) (net.Conn, error) {
	c, err := net.DialTimeout("tcp", addr, 5*time.Second)
	if err == nil {
		c.SetDeadline(time.Now().Add(limit))
	}
	return c, err
}

// jafkaEnd is the position (offsets are positions in 0.7) behind the last message that can be read.
func jafkaEnd(addr string) (int64, error) {
	c, err := jafkaDial(addr, 10*time.Second)
	if err != nil {
		return 0, err
	}
	defer c.Close()
	body := binary.BigEndian.AppendUint64(nil, ^uint64(0)) // -1: the newest
	body = binary.BigEndian.AppendUint32(body, 1)
	b, err := jafkaAsk(c, jafkaRequest(jafkaOffsets, body), nil)
	if err != nil {
		return 0, err
	}
	if len(b) >= 4 && binary.BigEndian.Uint32(b) == 0 {
		return 0, nil // the topic is made by the first message
	}
	if len(b) < 12 {
		return 0, errors.New("jafka answered no offset")
	}
	return int64(binary.BigEndian.Uint64(b[4:])), nil
}

func jafkaWait(addr string, end int64) error {
	for until := time.Now().Add(time.Minute); ; time.Sleep(2 * time.Millisecond) {
		at, err := jafkaEnd(addr)
		if err != nil || at >= end {
			return err
		}
		if time.Now().After(until) {
			return fmt.Errorf("jafka shows %d of %d bytes after a minute", at, end)
		}
	}
}

// first waits until a message can be read: there is no ack.
func (jafkaClient) first(e *env, s *server) error {
	begin, err := jafkaEnd(s.addr)
	if err != nil {
		return err
	}
	c, err := jafkaDial(s.addr, time.Minute)
	if err != nil {
		return err
	}
	defer c.Close()
	frame, stored := jafkaProduceFrame(1)
	if _, err := c.Write(frame); err != nil {
		return err
	}
	return jafkaWait(s.addr, begin+int64(stored))
}

var errNoAnswer = errNotSo{"its produce request has no answer"}

func (jafkaClient) one(*env, *server, int) (report.Values, error) { return nil, errNoAnswer }

func (jafkaClient) open(*env, *server, int) (report.Values, error) { return nil, errNoAnswer }

func (jafkaClient) full(*env, *server) (report.Values, int, error) { return nil, 0, errNoAnswer }

// noAcks sends batches over one connection; the time ends when the last message can be read.
func (jafkaClient) noAcks(e *env, s *server) (report.Values, int, error) {
	end, err := jafkaEnd(s.addr)
	if err != nil {
		return nil, 0, err
	}
	c, err := jafkaDial(s.addr, e.duration+time.Minute)
	if err != nil {
		return nil, 0, err
	}
	defer c.Close()
	frame, stored := jafkaProduceFrame(jafkaBatch)
	before, begun, n := s.proc.CPU(), time.Now(), 0
	for until := begun.Add(e.duration); time.Now().Before(until); n += jafkaBatch {
		if _, err := c.Write(frame); err != nil {
			return nil, 0, err
		}
		end += int64(stored)
	}
	if err := jafkaWait(s.addr, end); err != nil {
		return nil, 0, err
	}
	return rateOf(s, n, 100*n, time.Since(begun), before), n, nil
}

func (jafkaClient) read(e *env, s *server, count int) (report.Values, error) {
	c, err := jafkaDial(s.addr, time.Minute)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	var buf []byte
	before, begun, at, got := s.proc.CPU(), time.Now(), uint64(0), 0
	for got < count {
		body := binary.BigEndian.AppendUint64(nil, at)
		body = binary.BigEndian.AppendUint32(body, 1<<20)
		if buf, err = jafkaAsk(c, jafkaRequest(jafkaFetch, body), buf); err != nil {
			return nil, err
		}
		n, bytes := countJafka(buf)
		if n == 0 {
			return nil, fmt.Errorf("jafka: the log ended after %d of %d messages", got, count)
		}
		got, at = got+n, at+uint64(bytes)
	}
	return rateOf(s, got, 100*got, time.Since(begun), before), nil
}

// countJafka counts the whole messages of a fetch and their bytes.
func countJafka(b []byte) (n, bytes int) {
	for len(b) >= 4 {
		size := 4 + int(binary.BigEndian.Uint32(b))
		if size > len(b) {
			break
		}
		n, bytes, b = n+1, bytes+size, b[size:]
	}
	return n, bytes
}
