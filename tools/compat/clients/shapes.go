package clients

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"

	"github.com/twmb/franz-go/pkg/kgo"
)

// record is what is sent: a line of the file that a produce act reads.
type record struct {
	Key     []byte   `json:"k"`
	Value   []byte   `json:"v"`
	Headers []header `json:"h"`
	Time    int64    `json:"t"` // ms
}

type header struct {
	Key   string `json:"k"`
	Value []byte `json:"v"`
}

// single is how many of shapes' records are sent one by one.
const single = 11

// shapes are records of every shape: nulls, empty keys and values, headers, sizes from 1 byte to 900 kB, each with a timestamp.
// The first are sent one by one, the others at once.
func shapes() []record {
	noise := rand.NewChaCha8([32]byte{5})
	random := make([]byte, 800_000)
	noise.Read(random)
	out := []record{
		{Key: []byte("tombstone")},
		{Key: []byte("empty"), Value: []byte{}},
		{Key: []byte{}, Value: []byte("empty key")},
		{Value: []byte("x")},
		{Value: []byte("headers"), Headers: []header{{"a", []byte("1")}, {"b", []byte{}}, {"c", []byte("three")}}},
		{Value: []byte("null header"), Headers: []header{{"n", nil}}},
		{Value: []byte("twice"), Headers: []header{{"a", []byte("1")}, {"a", []byte("2")}}},
		{Key: bytes.Repeat([]byte("k"), 3000), Value: []byte("long key")},
		{Key: []byte("bytes"), Value: allBytes()},
		{Key: []byte("random"), Value: random},
		{Key: []byte("large"), Value: bytes.Repeat([]byte("0123456789abcdef"), 900_000/16)},
	}
	for i, n := range slices.Concat([]int{1, 2, 63, 64, 65, 127, 128, 8191, 8192, 16384, 65535}, make([]int, 189)) {
		if n == 0 {
			n = 1 + i*7%300
		}
		line := fmt.Appendf(nil, "line %d: ", i)
		for len(line) < n {
			line = append(line, 'a'+byte(len(line)*i%26))
		}
		r := record{Value: line[:n]}
		if i%3 > 0 {
			r.Key = fmt.Appendf(nil, "key %d", i)
		}
		if i%40 == 39 {
			r.Headers = []header{{"line", fmt.Append(nil, i)}}
		}
		out = append(out, r)
	}
	for i := range out {
		out[i].Time = 1_700_000_000_123 + int64(i)
	}
	return out
}

func allBytes() []byte {
	b := make([]byte, 256)
	for i := range b {
		b[i] = byte(i)
	}
	return b
}

// writeRecords makes a produce act's file.
func writeRecords(path string, records []record) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	for _, r := range records {
		if err := enc.Encode(r); err != nil {
			return err
		}
	}
	return os.WriteFile(path, b.Bytes(), 0o644)
}

// show is a value as a program's lines carry it: null, base64, or the digest of what is long.
func show(b []byte) *string {
	if b == nil {
		return nil
	}
	s := base64.StdEncoding.EncodeToString(b)
	if len(b) > 64 {
		sum := sha256.Sum256(b)
		s = fmt.Sprintf("sha256:%s:%d", hex.EncodeToString(sum[:]), len(b))
	}
	return &s
}

// line is what a program told of a step; with step "got", of a record.
type line struct {
	Step    string       `json:"step"`
	OK      bool         `json:"ok"`
	Detail  string       `json:"detail"`
	Topic   string       `json:"topic"`
	Part    int32        `json:"p"`
	Offset  int64        `json:"o"`
	Key     *string      `json:"k"`
	Value   *string      `json:"v"`
	Headers [][2]*string `json:"h"`
	Time    int64        `json:"t"`
}

func shown(r record) line {
	l := line{Step: "got", Key: show(r.Key), Value: show(r.Value), Time: r.Time}
	for _, h := range r.Headers {
		l.Headers = append(l.Headers, [2]*string{&h.Key, show(h.Value)})
	}
	return l
}

func fromKgo(r *kgo.Record) record {
	out := record{Key: r.Key, Value: r.Value, Time: r.Timestamp.UnixMilli()}
	for _, h := range r.Headers {
		out.Headers = append(out.Headers, header{h.Key, h.Value})
	}
	return out
}

func text(s *string) string {
	if s == nil {
		return "null"
	}
	return fmt.Sprintf("%.60q", *s)
}

func (l line) String() string {
	s := fmt.Sprintf("key %s, value %s, headers", text(l.Key), text(l.Value))
	for _, h := range l.Headers {
		s += " " + text(h[0]) + "=" + text(h[1])
	}
	return fmt.Sprintf("%s, time %d", s, l.Time)
}

// firstDifference compares what was read with what was sent.
func firstDifference(sent, got []line) error {
	for i := range min(len(sent), len(got)) {
		if s, g := sent[i].String(), got[i].String(); s != g {
			return fmt.Errorf("record %d: got %s; want %s", i, g, s)
		}
	}
	if len(sent) != len(got) {
		return fmt.Errorf("%d records were sent, %d read", len(sent), len(got))
	}
	return nil
}
