package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/twmb/franz-go/pkg/kgo"

	"millrace/tools/internal/cli"
	"millrace/tools/internal/output"
)

// appendRecord adds a record as it is to be written to dst.
type appendRecord func(dst []byte, r *kgo.Record) []byte

// writer resolves the flags that say how records are written.
func (o *consumeOptions) writer(given func(string) bool) (appendRecord, error) {
	ways := 0
	for _, way := range []bool{o.format != "", o.asJSON, o.exact, given("delimiter")} {
		if way {
			ways++
		}
	}
	switch {
	case ways > 1:
		return nil, cli.Usagef("--format, --json, --exact and --delimiter exclude each other")
	case o.asJSON:
		return appendJSON, nil
	case o.exact:
		return func(dst []byte, r *kgo.Record) []byte { return append(dst, r.Value...) }, nil
	case o.format != "":
		f, err := kgo.NewRecordFormatter(expandHeaders(o.format))
		if err != nil {
			return nil, cli.Usagef("--format: %w", err)
		}
		return f.AppendRecord, nil
	}
	delimiter, err := cli.Unescape(o.delimiter)
	if err != nil {
		return nil, cli.Usagef("--delimiter: %w", err)
	}
	return func(dst []byte, r *kgo.Record) []byte { return append(append(dst, r.Value...), delimiter...) }, nil
}

// expandHeaders gives a bare %h the meaning name=value for each; franz-go's
// formatter demands that it be spelled out.
func expandHeaders(format string) string {
	var b strings.Builder
	for i := 0; i < len(format); i++ {
		b.WriteByte(format[i])
		if format[i] != '%' || i+1 == len(format) {
			continue
		}
		i++
		b.WriteByte(format[i])
		if format[i] == 'h' && !strings.HasPrefix(format[i+1:], "{") {
			b.WriteString("{%k=%v }")
		}
	}
	return b.String()
}

// jsonRecord is one line of 'millrace consume --json'.
type jsonRecord struct {
	Topic       string       `json:"topic"`
	Partition   int32        `json:"partition"`
	Offset      int64        `json:"offset"`
	Timestamp   int64        `json:"timestamp"` // ms since 1970
	Key         *string      `json:"key"`
	KeyBase64   []byte       `json:"key_base64,omitempty"`
	Value       *string      `json:"value"`
	ValueBase64 []byte       `json:"value_base64,omitempty"`
	Headers     []jsonHeader `json:"headers,omitempty"`
}

type jsonHeader struct {
	Key         string  `json:"key"`
	Value       *string `json:"value"`
	ValueBase64 []byte  `json:"value_base64,omitempty"`
}

func appendJSON(dst []byte, r *kgo.Record) []byte {
	j := jsonRecord{Topic: r.Topic, Partition: r.Partition, Offset: r.Offset, Timestamp: r.Timestamp.UnixMilli()}
	j.Key, j.KeyBase64 = textOrBytes(r.Key)
	j.Value, j.ValueBase64 = textOrBytes(r.Value)
	for _, h := range r.Headers {
		header := jsonHeader{Key: h.Key}
		header.Value, header.ValueBase64 = textOrBytes(h.Value)
		j.Headers = append(j.Headers, header)
	}
	out := bytes.NewBuffer(dst)
	e := json.NewEncoder(out)
	e.SetEscapeHTML(false)
	_ = e.Encode(j) // strings, numbers and bytes always encode
	return out.Bytes()
}

// textOrBytes is text if b is UTF-8, bytes if not, and neither for a null.
func textOrBytes(b []byte) (*string, []byte) {
	switch {
	case b == nil:
		return nil, nil
	case utf8.Valid(b):
		text := string(b)
		return &text, nil
	}
	return nil, b
}

// drain reads spans of a topic and writes their records.
type drain struct {
	client  *kgo.Client
	topic   string
	write   appendRecord
	want    func(*kgo.Record) bool // nil: all
	spans   map[int32]span         // from moves on as records are read
	toEnd   bool
	most    int64 // records; 0 no limit
	timeout time.Duration

	written int64
}

// outBuffer is how much output is gathered before a write. It is also flushed
// whenever nothing more has arrived, so that following looks alive.
const outBuffer = 256 << 10

// lookAround is how often a silent topic lets the time limit be looked at.
const lookAround = 100 * time.Millisecond

func (d *drain) run(ctx context.Context, out, status io.Writer) error {
	w := bufio.NewWriterSize(out, outBuffer)
	var progress *output.Progress
	if !output.IsTerminal(out) && d.toEnd {
		progress = output.StartProgress(status, d.remaining(), false, "read")
	}
	err := d.copy(ctx, w, progress)
	progress.Stop()
	if flushErr := w.Flush(); err == nil {
		err = flushErr
	}
	return err
}

func (d *drain) copy(ctx context.Context, w *bufio.Writer, progress *output.Progress) error {
	total := d.remaining()
	last := time.Now()
	var line []byte
	for !d.finished() {
		polling, cancel := context.WithTimeout(ctx, lookAround)
		fetches := d.client.PollFetches(polling)
		cancel()
		if ctx.Err() != nil {
			return d.interrupted()
		}
		for _, e := range fetches.Errors() {
			if !errors.Is(e.Err, context.DeadlineExceeded) {
				return fmt.Errorf("partition %d: %w", e.Partition, e.Err)
			}
		}
		if !fetches.Empty() {
			last = time.Now()
		}
		for records := fetches.RecordIter(); !records.Done() && !d.enough(); {
			r := records.Next()
			if !d.take(r) {
				continue
			}
			line = d.write(line[:0], r)
			if _, err := w.Write(line); err != nil {
				return err
			}
		}
		if err := w.Flush(); err != nil {
			return err
		}
		progress.Set(total - d.remaining())
		if d.timeout > 0 && time.Since(last) > d.timeout && !d.finished() {
			return d.silent()
		}
	}
	return nil
}

// take moves the partition's position over r and says whether r is to be written.
func (d *drain) take(r *kgo.Record) bool {
	s := d.spans[r.Partition]
	if d.toEnd && r.Offset >= s.end {
		return false // came after reading began
	}
	s.from = r.Offset + 1
	d.spans[r.Partition] = s
	if d.toEnd && s.from >= s.end {
		d.client.PauseFetchPartitions(map[string][]int32{d.topic: {r.Partition}})
	}
	if r.Attrs.IsControl() || d.want != nil && !d.want(r) {
		return false
	}
	d.written++
	return true
}

// remaining is how many offsets are left up to the ends.
func (d *drain) remaining() (n int64) {
	for _, s := range d.spans {
		n += max(0, s.end-s.from)
	}
	return n
}

func (d *drain) enough() bool { return d.most > 0 && d.written >= d.most }

func (d *drain) finished() bool { return d.enough() || d.toEnd && d.remaining() == 0 }

// interrupted is no failure for who follows a topic; it is for who wanted all of it.
func (d *drain) interrupted() error {
	if d.toEnd || d.most > 0 {
		return fmt.Errorf("interrupted after %d records", d.written)
	}
	return nil
}

func (d *drain) silent() error {
	if d.toEnd {
		return cli.Unreachablef("no record came for %v, %d offsets before the end", d.timeout, d.remaining())
	}
	return cli.Unreachablef("no record came for %v; %d were read", d.timeout, d.written)
}
