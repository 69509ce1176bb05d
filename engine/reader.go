package engine

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"millrace/engine/batch"
)

// Reader reads a log onwards from an offset, whole batches at a time, and waits at
// the end for more. It shows what is as safe as the log's durability says (Safe),
// and nothing that a crash could take back and replace.
//
// It follows the log through rolls, retention, compaction and moves, and any number may read
// one log; waiting costs no processor. A Reader has one owner, holds no file, and need not be closed.
type Reader struct {
	log  *Log
	next Offset
	seen *cutNote // all cuts up to this one are known
	most int      // bytes of the next read
	buf  []byte
}

// NewReader returns a Reader that begins with the batch that holds offset from,
// or with the next one if compaction has left a gap there.
func (l *Log) NewReader(from Offset) *Reader {
	return &Reader{log: l, next: from, seen: l.news.latest(), most: minReadBytes}
}

// Offset is where the next batch is looked for.
func (r *Reader) Offset() Offset { return r.next }

// Next returns one or more whole batches whose checksums are right, and waits for
// them at the end of the log. The first may begin below the offset asked for; one that compaction has emptied has
// no records. batch.Records reads what is in them, and a Follower Append stores
// them elsewhere, offsets and all. The bytes are valid until the next call.
//
// Errors: ctx's; ErrClosed; *CorruptError; *OutOfRangeError, which says where the
// reader was (Want) and what the log has. If Want < Start, retention or SetStart
// has overtaken the reader, which has missed records. If Want > End, a truncation has taken
// back, from End on, records that were read; the log may have grown again since. The reader is of no more use then: who
// wants to go on begins a new one at Start or End.
func (r *Reader) Next(ctx context.Context) ([]byte, error) {
	for {
		data, err := r.read()
		if data != nil || err != nil {
			return data, err
		}
		changed := r.log.news.changed()
		if data, err = r.read(); data != nil || err != nil {
			return data, err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// read returns what there is to read now; nil if the reader is at the end.
func (r *Reader) read() ([]byte, error) {
	l := r.log
	for {
		if err := r.follow(); err != nil {
			return nil, err
		}
		limit := l.Safe()
		if r.next >= limit && r.next >= l.Start() && r.next <= l.End() {
			if l.closed.Load() {
				return nil, ErrClosed
			}
			return nil, nil
		}
		s, err := l.Read(r.next, r.most, limit, true)
		var file string
		var pos int64
		if err == nil {
			file, pos, err = r.copy(s)
		}
		if r.seen.next.Load() != nil {
			continue // cut meanwhile: the bytes, or the error, may be of files that changed under us
		}
		if err != nil {
			return nil, err
		}
		if len(r.buf) == 0 { // a gap up to the limit
			r.next = limit
			continue
		}
		r.most = min(2*r.most, maxReadBytes)
		return r.accept(file, pos)
	}
}

// follow takes note of cuts.
func (r *Reader) follow() error {
	for n := r.seen.next.Load(); n != nil; n = n.next.Load() {
		if n.at < r.next {
			return &OutOfRangeError{Want: r.next, Start: r.log.Start(), End: n.at}
		}
		r.seen = n
	}
	return nil
}

// copy takes the bytes of s and releases it, and tells where they were.
func (r *Reader) copy(s *Slice) (file string, pos int64, err error) {
	defer s.Release()
	if cap(r.buf) < s.Size() {
		r.buf = make([]byte, s.Size())
	}
	r.buf = r.buf[:s.Size()]
	if s.Size() == 0 {
		return "", 0, nil
	}
	return s.segment.path(logSuffix), s.pos, s.ReadInto(r.buf)
}

// accept checks the batches in buf and moves on behind those that are whole; what
// is wrong with the next one, cut off or damaged, shows when it is the first.
func (r *Reader) accept(file string, pos int64) ([]byte, error) {
	at := 0
	for at < len(r.buf) {
		size, err := batch.Split(r.buf[at:])
		var info batch.Info
		if err == nil {
			info, err = batch.CheckStored(r.buf[at : at+size])
		}
		if err == nil && Offset(info.LastOffset()) < r.next {
			err = &CorruptError{Want: fmt.Sprintf("a batch that reaches offset %d", r.next), Got: fmt.Sprintf("one that ends with %d", info.LastOffset())}
		}
		if err != nil && at > 0 {
			break
		}
		if err != nil {
			return nil, damagedAt(err, file, pos+int64(at))
		}
		r.next = Offset(info.LastOffset()) + 1
		at += size
	}
	return r.buf[:at], nil
}

// damagedAt says where a stored batch could not be read.
func damagedAt(err error, file string, pos int64) error {
	var c *CorruptError
	if errors.As(err, &c) {
		return &CorruptError{File: file, Position: pos, Want: c.Want, Got: c.Got}
	}
	return fmt.Errorf("%s at %d: %w", file, pos, err)
}

// Tail iterates over the records from offset from on, and waits for more at the
// end, until ctx ends or the loop is left. Key, value and headers are valid until
// the next step. It ends with the error of Reader.Next, ctx's too. Markers of transactions are left out.
func (l *Log) Tail(ctx context.Context, from Offset) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		r := l.NewReader(from)
		for {
			data, err := r.Next(ctx)
			if err != nil {
				yield(Record{}, err)
				return
			}
			if !eachRecord(data, from, noLimit, yield) {
				return
			}
		}
	}
}

// Records iterates over the records in [from, to), or to where readers end (Safe)
// when it begins, if that is lower. Else it is as Tail.
func (l *Log) Records(from, to Offset) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		r := l.NewReader(from)
		for to := min(to, l.Safe()); r.next < to; {
			data, err := r.read()
			if err != nil {
				yield(Record{}, err)
				return
			}
			if data == nil || !eachRecord(data, from, to, yield) {
				return
			}
		}
	}
}

// ErrNoRecord: the offset is within the log, and compaction has removed its record.
var ErrNoRecord = errors.New("engine: no record at this offset any more")

// Get returns the record at offset o, in memory of its own. Errors: ErrOutOfRange
// outside of [Start, Safe), ErrNoRecord, and Reader.Next's.
func (l *Log) Get(o Offset) (Record, error) {
	if start, end := l.Start(), l.Safe(); o < start || o >= end {
		return Record{}, &OutOfRangeError{Want: o, Start: start, End: end}
	}
	for r, err := range l.Records(o, o+1) {
		return r.Clone(), err
	}
	return Record{}, fmt.Errorf("offset %d: %w", o, ErrNoRecord)
}

// eachRecord yields the records of whole batches in [from, to). It is false when the loop is over.
func eachRecord(data []byte, from, to Offset, yield func(Record, error) bool) bool {
	for len(data) > 0 {
		size, err := batch.Split(data)
		if err != nil {
			yield(Record{}, err)
			return false
		}
		b := data[:size]
		data = data[size:]
		if b[atMagic] == 2 && batch.View(b).IsControl() {
			continue
		}
		for r, err := range batch.Records(b) {
			if err == nil && (Offset(r.Offset) < from || Offset(r.Offset) >= to) {
				continue
			}
			if !yield(r, err) || err != nil {
				return false
			}
		}
	}
	return true
}
