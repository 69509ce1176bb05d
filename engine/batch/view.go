package batch

import "encoding/binary"

// Sizes in bytes.
const (
	HeaderSize  = 61 // a magic-2 batch before its first record
	LogOverhead = 12 // offset and length, in front of every entry of any magic
)

// Where the fields of a magic-2 batch stand.
const (
	atBaseOffset      = 0
	atLength          = 8
	atLeaderEpoch     = 12
	atMagic           = 16 // the same place in all three formats
	atCRC             = 17
	atAttributes      = 21 // the checksum covers everything from here
	atLastOffsetDelta = 23
	atBaseTimestamp   = 27
	atMaxTimestamp    = 35
	atProducerID      = 43
	atProducerEpoch   = 51
	atBaseSequence    = 53
	atCount           = 57
)

// Attribute bits of a magic-2 batch. Messages use the first two.
const (
	attrCodec         = 0x07
	attrAppendTime    = 0x08
	attrTransactional = 0x10
	attrControl       = 0x20
	attrDeleteHorizon = 0x40
)

const noTimestamp = -1 // what a magic-0 message and an empty batch have

// View is one whole magic-2 batch, read in place. Its methods trust the length:
// use them on what [Check] or [CheckStored] accepted, or on at least HeaderSize bytes.
type View []byte

// BaseOffset is the offset of the first record, as it was when the batch was
// written; compaction may have removed that record since.
func (v View) BaseOffset() int64 { return int64(binary.BigEndian.Uint64(v[atBaseOffset:])) }

// Size is the whole batch in bytes, header included, as its length field says.
func (v View) Size() int {
	return LogOverhead + int(int32(binary.BigEndian.Uint32(v[atLength:])))
}

// LeaderEpoch is the epoch of the leader that took the batch; -1 is unknown.
func (v View) LeaderEpoch() int32 { return int32(binary.BigEndian.Uint32(v[atLeaderEpoch:])) }

// Magic is the format's version: 2 for what View can read.
func (v View) Magic() int8 { return int8(v[atMagic]) }

// CRC is the stored CRC-32C of everything from the attributes on.
func (v View) CRC() uint32 { return binary.BigEndian.Uint32(v[atCRC:]) }

// Attributes are the raw bits: codec, timestamp type, transactional, control, horizon.
func (v View) Attributes() int16 { return int16(binary.BigEndian.Uint16(v[atAttributes:])) }

// Codec is what the records are compressed with.
func (v View) Codec() Codec { return Codec(v[atAttributes+1] & attrCodec) }

// AppendTime reports the timestamp type LogAppendTime: every record then has MaxTimestamp.
func (v View) AppendTime() bool { return v[atAttributes+1]&attrAppendTime != 0 }

// IsTransactional reports whether the batch belongs to a transaction.
func (v View) IsTransactional() bool { return v[atAttributes+1]&attrTransactional != 0 }

// IsControl reports a batch that carries a marker and not a user's records.
func (v View) IsControl() bool { return v[atAttributes+1]&attrControl != 0 }

// HasDeleteHorizon reports that BaseTimestamp is the time, in ms, after which
// compaction may drop the batch's tombstones.
func (v View) HasDeleteHorizon() bool { return v[atAttributes+1]&attrDeleteHorizon != 0 }

// LastOffsetDelta is LastOffset - BaseOffset.
func (v View) LastOffsetDelta() int32 {
	return int32(binary.BigEndian.Uint32(v[atLastOffsetDelta:]))
}

// LastOffset is the last offset (inclusive) the batch occupies.
func (v View) LastOffset() int64 { return v.BaseOffset() + int64(v.LastOffsetDelta()) }

// BaseTimestamp, in ms, is what the records' timestamps are relative to.
func (v View) BaseTimestamp() int64 { return int64(binary.BigEndian.Uint64(v[atBaseTimestamp:])) }

// MaxTimestamp, in ms, is the largest timestamp of a record, or the append time.
func (v View) MaxTimestamp() int64 { return int64(binary.BigEndian.Uint64(v[atMaxTimestamp:])) }

// ProducerID is -1 for a producer that is not idempotent.
func (v View) ProducerID() int64 { return int64(binary.BigEndian.Uint64(v[atProducerID:])) }

// ProducerEpoch is -1 for none.
func (v View) ProducerEpoch() int16 { return int16(binary.BigEndian.Uint16(v[atProducerEpoch:])) }

// BaseSequence is the sequence of the first record; -1 for none.
func (v View) BaseSequence() int32 { return int32(binary.BigEndian.Uint32(v[atBaseSequence:])) }

// Count is how many records the batch says it has; 0 is legal after compaction.
func (v View) Count() int32 { return int32(binary.BigEndian.Uint32(v[atCount:])) }

// Payload is the records: one after the other, or one compressed block.
func (v View) Payload() []byte { return v[HeaderSize:] }

// emptied reports that compaction has taken all records: no payload, whatever the codec says.
func (v View) emptied() bool { return len(v) == HeaderSize && v.Count() == 0 }

// crc computes what CRC should return.
func (v View) crc() uint32 { return checksum(v[atAttributes:]) }

// info copies the header out.
func (v View) info() Info {
	return Info{
		Size:            len(v),
		BaseOffset:      v.BaseOffset(),
		Count:           v.Count(),
		LastOffsetDelta: v.LastOffsetDelta(),
		BaseTimestamp:   v.BaseTimestamp(),
		MaxTimestamp:    v.MaxTimestamp(),
		ProducerID:      v.ProducerID(),
		ProducerEpoch:   v.ProducerEpoch(),
		BaseSequence:    v.BaseSequence(),
		Attributes:      v.Attributes(),
		LeaderEpoch:     v.LeaderEpoch(),
		Magic:           v.Magic(),
	}
}
