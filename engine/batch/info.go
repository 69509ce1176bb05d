package batch

import "math"

// Info is what the rest of the engine needs to know about one entry; it holds no
// reference to the bytes.
type Info struct {
	Size            int   // bytes, header included
	BaseOffset      int64 // of a magic 0 or 1 wrapper: its last offset, the only one known without expanding it
	Count           int32 // records; CountUnknown for a magic 0 or 1 wrapper
	LastOffsetDelta int32
	BaseTimestamp   int64 // ms, -1 none
	MaxTimestamp    int64 // ms, -1 none
	ProducerID      int64 // -1 none
	ProducerEpoch   int16 // -1 none
	BaseSequence    int32 // -1 none
	Attributes      int16
	LeaderEpoch     int32 // -1 unknown
	Magic           int8
}

// CountUnknown is the Count of a wrapper that was not expanded.
const CountUnknown = -1

// LastOffset is the last offset (inclusive) the entry occupies, in every format.
func (i Info) LastOffset() int64 { return i.BaseOffset + int64(i.LastOffsetDelta) }

// Codec is what the records are compressed with.
func (i Info) Codec() Codec { return Codec(i.Attributes & attrCodec) }

// IsTransactional reports whether the batch belongs to a transaction.
func (i Info) IsTransactional() bool { return i.Magic >= 2 && i.Attributes&attrTransactional != 0 }

// IsControl reports a batch that carries a marker and not a user's records.
func (i Info) IsControl() bool { return i.Magic >= 2 && i.Attributes&attrControl != 0 }

// AppendTime reports the timestamp type LogAppendTime.
func (i Info) AppendTime() bool { return i.Magic >= 1 && i.Attributes&attrAppendTime != 0 }

// HasProducer reports whether the batch comes from an idempotent producer.
func (i Info) HasProducer() bool { return i.ProducerID >= 0 }

// LastSequence is the sequence of the last record. Sequences wrap from 2^31-1 to 0.
// -1 if the batch has none.
func (i Info) LastSequence() int32 {
	if i.BaseSequence < 0 {
		return -1
	}
	return int32((int64(i.BaseSequence) + int64(i.LastOffsetDelta)) & math.MaxInt32)
}
