// Package payload reads records out of a file or stream: the bytes between
// delimiters, exactly as they stand. No character set is assumed.
package payload

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
)

// bufferBytes is how much is read ahead: large enough that a 200 MB file of
// short lines costs few reads, small enough to stay in the L2 cache.
const bufferBytes = 256 << 10

// TooLongError says that a record is longer than the reader's limit. Reading
// cannot go on after it.
type TooLongError struct {
	Record int64 // counted from 1, as people count lines
	Limit  int   // bytes
}

func (e *TooLongError) Error() string {
	return fmt.Sprintf("record %d is longer than the limit of %d bytes", e.Record, e.Limit)
}

// Reader cuts a stream at each delimiter. "a\n\nb" with delimiter "\n" gives
// "a", "", "b"; a delimiter at the very end ends the last record and does not
// begin an empty one. With an empty delimiter the whole stream is one record.
type Reader struct {
	in    *bufio.Reader
	delim []byte
	limit int
	keep  bool

	record int64
	bytes  int64
	long   []byte // a record that spans buffers is gathered here
}

// Options shape a Reader.
type Options struct {
	Delimiter string // the bytes between records
	Limit     int    // longest record in bytes, without its delimiter; 0 is no limit
	Keep      bool   // the delimiter stays part of the record, so joining all records gives the stream back
}

// NewReader reads records from r.
func NewReader(r io.Reader, o Options) *Reader {
	return &Reader{in: bufio.NewReaderSize(r, bufferBytes), delim: []byte(o.Delimiter), limit: o.Limit, keep: o.Keep}
}

// Next returns the next record, valid until the next call. io.EOF comes after
// the last record, never with one; *TooLongError names the record that is too long.
func (r *Reader) Next() ([]byte, error) {
	piece, err := r.piece()
	if err == nil && r.ends(piece) { // the usual case: a whole record inside the buffer
		return r.finish(piece)
	}
	r.long = append(r.long[:0], piece...)
	for {
		switch {
		case err == nil && r.ends(r.long):
			return r.finish(r.long)
		case errors.Is(err, io.EOF) && len(r.long) == 0:
			return nil, io.EOF
		case errors.Is(err, io.EOF):
			return r.finish(r.long)
		case err != nil && !errors.Is(err, bufio.ErrBufferFull):
			return nil, err
		case r.limit > 0 && len(r.long) > r.limit+len(r.delim):
			return nil, &TooLongError{r.record + 1, r.limit}
		}
		piece, err = r.piece()
		r.long = append(r.long, piece...)
	}
}

// piece reads up to the next byte that could end a record.
func (r *Reader) piece() ([]byte, error) {
	if len(r.delim) > 0 {
		return r.in.ReadSlice(r.delim[len(r.delim)-1])
	}
	whole, err := r.in.Peek(1)
	if err != nil {
		return nil, err
	}
	whole, _ = r.in.Peek(r.in.Buffered())
	n, _ := r.in.Discard(len(whole))
	return whole[:n], nil
}

func (r *Reader) ends(b []byte) bool { return len(r.delim) > 0 && bytes.HasSuffix(b, r.delim) }

func (r *Reader) finish(b []byte) ([]byte, error) {
	r.record++
	r.bytes += int64(len(b))
	value := b
	if r.ends(b) {
		value = b[:len(b)-len(r.delim)]
	}
	if r.limit > 0 && len(value) > r.limit {
		return nil, &TooLongError{r.record, r.limit}
	}
	if r.keep {
		return b, nil
	}
	return value, nil
}

// Record is how many records Next has returned so far.
func (r *Reader) Record() int64 { return r.record }

// Bytes is how many bytes of the stream those records took, delimiters included.
func (r *Reader) Bytes() int64 { return r.bytes }
