package core

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"millrace/engine/batch"
	"millrace/tools/compat/harness"
	"millrace/wire"
)

// afterEpoch is where the bytes begin that a broker may not change: base offset, length and leader epoch come before.
const afterEpoch = 16

// storedBytesChecks: what lies in the segment is the producer's own bytes, whatever the codec.
func storedBytesChecks() []harness.Check {
	var out []harness.Check
	for _, p := range clients() {
		if p.put == nil {
			continue
		}
		for _, codec := range codecs {
			out = append(out, harness.Check{Client: p.title(), Name: "stored bytes are the producer's" + p.which() + ", " + codec, Short: codec == "lz4" && p.name == "kcat", Limit: 5 * time.Minute,
				Run: func(e *harness.Env) error { return storedBytes(e, p, codec) }})
		}
	}
	return out
}

// storedBytes puts a proxy between producer and broker that keeps what each Produce request carried.
func storedBytes(e *harness.Env, p client, codec string) error {
	file, err := harness.Corpus(e.Cache, 2)
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	defer l.Close()
	m, err := harness.StartMillrace(e, "advertised.listeners=PLAINTEXT://"+l.Addr().String())
	if err != nil {
		return err
	}
	defer m.Kill()
	tap := &tap{to: m.Addr}
	go tap.serve(l) // ends when the listener closes
	if err := harness.CreateTopic(m.Addr, "file", 1); err != nil {
		return err
	}
	if err := p.put(e, l.Addr().String(), "file", file, codec); err != nil {
		return err
	}
	if err := m.Stop(); err != nil {
		return err
	}
	return tap.compare(filepath.Join(e.Dir, "data", "file-0"), codec)
}

// tap is a proxy that copies bytes both ways and keeps the batches of Produce requests.
type tap struct {
	to string

	mu   sync.Mutex
	sent [][]byte
	err  error
}

func (t *tap) serve(l net.Listener) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		go t.pass(c) // ends with the connection
	}
}

func (t *tap) pass(c net.Conn) {
	defer c.Close()
	s, err := net.Dial("tcp", t.to)
	if err != nil {
		return
	}
	defer s.Close()
	go func() { io.Copy(c, s); c.Close() }() // ends when either side closes
	for {
		head := make([]byte, 4)
		if _, err := io.ReadFull(c, head); err != nil {
			return
		}
		frame := make([]byte, binary.BigEndian.Uint32(head))
		if _, err := io.ReadFull(c, frame); err != nil {
			return
		}
		t.keep(frame)
		if _, err := s.Write(append(head, frame...)); err != nil {
			return
		}
	}
}

func (t *tap) keep(frame []byte) {
	h, body, err := wire.ParseHeader(frame)
	if err != nil || h.Key != 0 {
		return
	}
	var req wire.ProduceRequest
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := req.Parse(bytes.Clone(body), h.Version); err != nil {
		t.err = errors.Join(t.err, err)
		return
	}
	for _, topic := range req.Topics {
		for _, p := range topic.Partitions {
			t.sent = append(t.sent, p.Records)
		}
	}
}

// compare walks the segments and demands the sent batches in order, equal from the checksum's side of the header on.
func (t *tap) compare(dir, codec string) error {
	logs, err := filepath.Glob(filepath.Join(dir, "*.log"))
	if err != nil {
		return err
	}
	slices.Sort(logs)
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.err != nil {
		return t.err
	}
	i, withCodec := 0, 0
	for _, name := range logs {
		b, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		for len(b) > 0 {
			n, err := batch.Split(b)
			if err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			if i >= len(t.sent) {
				return fmt.Errorf("%s holds more batches than the %d that were sent", name, len(t.sent))
			}
			if !bytes.Equal(b[afterEpoch:n], t.sent[i][afterEpoch:]) {
				return fmt.Errorf("batch %d of %s differs from what was sent", i, name)
			}
			if batch.View(b[:n]).Codec().String() == codec {
				withCodec++
			}
			b = b[n:]
			i++
		}
	}
	if i != len(t.sent) || i == 0 {
		return fmt.Errorf("%d batches were sent, %d are stored", len(t.sent), i)
	}
	if withCodec == 0 {
		return fmt.Errorf("none of %d stored batches has codec %s", i, codec)
	}
	return nil
}
