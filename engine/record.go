package engine

import (
	"errors"
	"fmt"
	"sync"

	"millrace/engine/batch"
)

// Record is one message: a key, a value, headers, and a time in ms. A nil key or
// value is Kafka's null, which an empty one is not; in a compacted log a null
// value deletes the key.
type Record = batch.Record

// Header is a named value beside a record's own.
type Header = batch.Header

// ErrNoKey refuses a record without a key in a log that is compacted.
var ErrNoKey = errors.New("engine: a record of a compacted log needs a key")

// NewAppend makes one batch of records, copied and compressed by codec, ready for
// Append, or for Enqueue, Write and Wait, with NoEpoch unless the log is replicated. A batch is stored, or lost, or
// truncated as a whole. A Timestamp of 0 becomes the present time, -1 stays
// "none"; Offset is not looked at.
//
// Errors: ErrNoKey; ErrTooLarge for more than a batch can hold; a codec that does
// not exist; no records.
func (l *Log) NewAppend(codec batch.Codec, records ...Record) (*Append, error) {
	if _, err := batch.ParseCodec(codec.String()); err != nil {
		return nil, fmt.Errorf("append records: %w", err)
	}
	b := batch.NewBuilder(codec, batch.DefaultLevel)
	if err := l.addRecords(b, records); err != nil {
		return nil, err
	}
	a := new(Append)
	a.Batch, a.Info = b.Build(nil)
	return a, nil
}

// AppendRecords appends records as one batch, not compressed, and returns the
// offset of the first when they are as safe as the log's durability says. The
// others follow it without a gap. What many goroutines append at the same time
// shares writes and syncs. Records are as NewAppend takes them; errors are its
// and Append's, and after one none of the records was acknowledged.
func (l *Log) AppendRecords(records ...Record) (Offset, error) {
	p := recordAppends.Get().(*recordAppend)
	defer p.giveBack()
	p.builder.Reset()
	if err := l.addRecords(p.builder, records); err != nil {
		return 0, err
	}
	p.Batch, p.Info = p.builder.Build(p.Batch)
	if err := l.Append(&p.Append, NoEpoch); err != nil {
		return 0, err
	}
	return p.Base, nil
}

func (l *Log) addRecords(b *batch.Builder, records []Record) error {
	if len(records) == 0 {
		return errors.New("engine: an append of no records")
	}
	needKey := l.config.Load().Compact
	var now int64
	for i, r := range records {
		if needKey && r.Key == nil {
			return fmt.Errorf("record %d of %d: %w", i, len(records), ErrNoKey)
		}
		if r.Timestamp == 0 {
			if now == 0 {
				now = l.now().UnixMilli()
			}
			r.Timestamp = now
		}
		if err := b.Add(r); err != nil {
			return fmt.Errorf("%w: record %d of %d: %w", ErrTooLarge, i, len(records), err)
		}
	}
	return nil
}

// recordAppend is the memory of one AppendRecords.
type recordAppend struct {
	Append
	builder *batch.Builder
}

var recordAppends = sync.Pool{New: func() any {
	return &recordAppend{builder: batch.NewBuilder(batch.None, batch.DefaultLevel)}
}}

// giveBack keeps small buffers only, so that one large append does not cost memory for ever.
func (p *recordAppend) giveBack() {
	if cap(p.Batch) <= maxKeptAppend {
		p.log, p.ticket = nil, promise{} // do not keep a log alive
		recordAppends.Put(p)
	}
}
