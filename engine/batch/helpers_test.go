package batch

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

var allCodecs = []Codec{None, Gzip, Snappy, LZ4, Zstd}

// now is the tests' clock; the batches they make have times around it.
var now = time.UnixMilli(1_700_000_000_000)

// unhex reads bytes as the tests write them: hexadecimal, spaced freely, with "| remark" to the end of a line.
func unhex(t testing.TB, text string) []byte {
	t.Helper()
	var digits strings.Builder
	for line := range strings.Lines(text) {
		line, _, _ = strings.Cut(line, "|")
		digits.WriteString(strings.Join(strings.Fields(line), ""))
	}
	b, err := hex.DecodeString(digits.String())
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// build makes a batch of records with offset deltas 0..n-1.
func build(c Codec, records []Record, opts ...Option) []byte {
	b := NewBuilder(c, DefaultLevel)
	for _, r := range records {
		if err := b.Add(r); err != nil {
			panic(err)
		}
	}
	return b.Bytes(opts...)
}

// someRecords are n records like a log's lines, so that codecs have something to do.
func someRecords(n, size int) []Record {
	records := make([]Record, n)
	for i := range records {
		value := fmt.Appendf(nil, "%d GET /index.html?session=%x status=200 ", i, i*7919)
		for len(value) < size {
			value = fmt.Appendf(value, "field-%d=%d ", len(value), i*len(value))
		}
		records[i] = Record{
			Offset: int64(i), Timestamp: now.UnixMilli() + int64(i%7),
			Key: fmt.Appendf(nil, "key-%d", i), Value: value[:size],
		}
	}
	return records
}

// collect reads all records of b, in memory of their own.
func collect(b []byte) ([]Record, error) {
	var all []Record
	for r, err := range Records(b) {
		if err != nil {
			return all, err
		}
		r.Key, r.Value = slices.Clone(r.Key), slices.Clone(r.Value)
		r.Headers = slices.Clone(r.Headers)
		for i := range r.Headers {
			r.Headers[i].Value = slices.Clone(r.Headers[i].Value)
		}
		all = append(all, r)
	}
	return all, nil
}

func mustCollect(t testing.TB, b []byte) []Record {
	t.Helper()
	all, err := collect(b)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// requireEqual tells null from empty, and says what differs.
func requireEqual(t interface {
	Helper()
	Fatalf(string, ...any)
}, got, want any) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Fatalf("-want +got:\n%s", cmp.Diff(want, got))
	}
}

func requireReason(t testing.TB, err error, want Reason) *Error {
	t.Helper()
	var e *Error
	if !errors.As(err, &e) {
		t.Fatalf("want a refusal for %v, got %v", want, err)
	}
	if e.Reason != want {
		t.Fatalf("want a refusal for %v, got %v", want, err)
	}
	return e
}

// resum puts the checksum right, so that what lies behind it is reached.
func resum(b []byte) []byte {
	if len(b) >= HeaderSize {
		binary.BigEndian.PutUint32(b[atCRC:], View(b).crc())
	}
	return b
}

// naive is a second reader of magic-2 records, written from the format table with the
// standard library's varints, to hold the first one to account.
func naive(payload []byte, count int, baseTimestamp int64) (records []Record, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("naive reader: %v", r)
		}
	}()
	varint := func() int64 {
		v, n := binary.Varint(payload)
		if n <= 0 {
			panic("bad varint")
		}
		payload = payload[n:]
		return v
	}
	field := func() []byte {
		n := varint()
		if n < 0 {
			return nil
		}
		s := payload[:n:n]
		payload = payload[n:]
		return s
	}
	for range count {
		size := varint()
		rest := len(payload) - int(size)
		payload = payload[1:]
		r := Record{Timestamp: baseTimestamp + varint()}
		r.Offset = varint()
		r.Key, r.Value = field(), field()
		for range varint() {
			r.Headers = append(r.Headers, Header{Key: string(field()), Value: field()})
		}
		if len(payload) != rest {
			return nil, errors.New("naive reader: a record's size is wrong")
		}
		records = append(records, r)
	}
	if len(payload) > 0 {
		return nil, errors.New("naive reader: bytes left")
	}
	return records, nil
}

// anyRecords draws records with offsets 0..n-1, null and empty fields and headers among them.
func anyRecords(t *rapid.T) []Record {
	field := rapid.OneOf(
		rapid.Just([]byte(nil)), rapid.Just([]byte{}),
		rapid.SliceOfN(rapid.Byte(), 1, 20), rapid.Just(make([]byte, 9000)))
	header := rapid.Custom(func(t *rapid.T) Header {
		return Header{Key: rapid.SampledFrom([]string{"", "a", "trace-id", "ümlaut"}).Draw(t, "name"), Value: field.Draw(t, "header")}
	})
	n := rapid.IntRange(1, 40).Draw(t, "count")
	records := make([]Record, n)
	for i := range records {
		records[i] = Record{
			Offset:    int64(i),
			Timestamp: now.UnixMilli() + rapid.Int64Range(-10_000_000, 10_000_000).Draw(t, "ms"),
			Key:       field.Draw(t, "key"),
			Value:     field.Draw(t, "value"),
		}
		if rapid.IntRange(0, 3).Draw(t, "headers?") == 0 {
			records[i].Headers = rapid.SliceOfN(header, 1, 3).Draw(t, "headers")
		}
	}
	return records
}
