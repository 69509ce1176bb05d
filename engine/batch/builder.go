package batch

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"
	"slices"
)

// Builder makes a magic-2 batch out of records: for conversion, for our own markers,
// for tools and tests. Records are copied in. It has one owner at a time.
type Builder struct {
	codec Codec
	level int

	records   []byte // encoded, not compressed
	count     int32
	lastDelta int32
	base, max int64 // timestamps, ms
	horizon   bool  // base is the delete horizon
}

// maxBuilt keeps every length inside an int32 with room for what a codec adds to
// bytes it cannot shrink.
const maxBuilt = 1 << 30

// NewBuilder returns an empty Builder. It panics on a codec or level that CheckLevel
// refuses: whoever takes them from a user has asked before.
func NewBuilder(c Codec, level int) *Builder {
	if err := CheckLevel(c, level); err != nil || !c.known() {
		panic(fmt.Sprintf("batch: a builder with codec %v, level %d: %v", c, level, err))
	}
	b := &Builder{codec: c, level: level}
	b.Reset()
	return b
}

// Reset forgets the records and keeps the memory.
func (b *Builder) Reset() {
	*b = Builder{codec: b.codec, level: b.level, records: b.records[:0], lastDelta: -1, base: noTimestamp, max: noTimestamp}
}

// Count is how many records were added.
func (b *Builder) Count() int { return int(b.count) }

// Size is the batch's size in bytes as long as it is not compressed.
func (b *Builder) Size() int { return HeaderSize + len(b.records) }

// Add appends a record behind the last one. r.Offset is not looked at. ErrFull if the
// batch would be too big for its format.
func (b *Builder) Add(r Record) error { return b.AddAt(b.lastDelta+1, r) }

// AddAt is Add with an offset delta of the caller's, above the last one: for batches
// that compaction has thinned.
func (b *Builder) AddAt(delta int32, r Record) error {
	if delta <= b.lastDelta {
		panic(fmt.Sprintf("batch: offset delta %d after %d", delta, b.lastDelta))
	}
	base := b.base
	if b.count == 0 && !b.horizon {
		base = r.Timestamp
	}
	body := 1 + varintSize(r.Timestamp-base) + varintSize(int64(delta)) +
		sizedSize(len(r.Key), r.Key == nil) + sizedSize(len(r.Value), r.Value == nil) + varintSize(int64(len(r.Headers)))
	for _, h := range r.Headers {
		body += sizedSize(len(h.Key), false) + sizedSize(len(h.Value), h.Value == nil)
	}
	if body > maxBuilt-len(b.records)-binary.MaxVarintLen32 {
		return ErrFull
	}
	if b.count == 0 {
		b.base, b.max = base, r.Timestamp
	}
	b.records = appendRecord(b.records, body, r.Timestamp-base, delta, r)
	b.max = max(b.max, r.Timestamp)
	b.lastDelta = delta
	b.count++
	return nil
}

func appendRecord(dst []byte, body int, timestampDelta int64, delta int32, r Record) []byte {
	dst = binary.AppendVarint(dst, int64(body))
	dst = append(dst, 0)
	dst = binary.AppendVarint(dst, timestampDelta)
	dst = binary.AppendVarint(dst, int64(delta))
	dst = appendField(dst, r.Key)
	dst = appendField(dst, r.Value)
	dst = binary.AppendVarint(dst, int64(len(r.Headers)))
	for _, h := range r.Headers {
		dst = binary.AppendVarint(dst, int64(len(h.Key)))
		dst = append(dst, h.Key...)
		dst = appendField(dst, h.Value)
	}
	return dst
}

func appendField(dst, s []byte) []byte {
	if s == nil {
		return binary.AppendVarint(dst, -1)
	}
	return append(binary.AppendVarint(dst, int64(len(s))), s...)
}

// varintSize is the number of bytes AppendVarint takes: 7 bits each, zig-zag.
func varintSize(v int64) int {
	return (bits.Len64(uint64(v)<<1^uint64(v>>63)|1) + 6) / 7
}

func sizedSize(n int, null bool) int {
	if null {
		return 1
	}
	return varintSize(int64(n)) + n
}

// Option sets a field of the header that Bytes would leave at "none".
type Option func(*head)

type head struct {
	base      int64
	epoch     int32
	attrs     int16
	lastDelta int32
	max       int64
	id        int64
	idEpoch   int16
	sequence  int32
}

// Producer makes the batch an idempotent producer's.
func Producer(id int64, epoch int16, sequence int32) Option {
	return func(h *head) { h.id, h.idEpoch, h.sequence = id, epoch, sequence }
}

// Base gives the batch a base offset and leader epoch other than 0 and -1.
func Base(offset int64, leaderEpoch int32) Option {
	return func(h *head) { h.base, h.epoch = offset, leaderEpoch }
}

// LastDelta makes the batch end behind its last record, as compaction may.
func LastDelta(d int32) Option { return func(h *head) { h.lastDelta = d } }

// Transactional marks the batch as part of a transaction.
func Transactional() Option { return func(h *head) { h.attrs |= attrTransactional } }

// Control marks the batch as a marker's.
func Control() Option { return func(h *head) { h.attrs |= attrControl } }

// setHorizon makes ms the batch's delete horizon, which the records' times are then relative to. Before the first Add.
func (b *Builder) setHorizon(ms int64) { b.base, b.horizon = ms, true }

func deleteHorizon() Option { return func(h *head) { h.attrs |= attrDeleteHorizon } }

// AppendTime gives the batch the timestamp type LogAppendTime and the time ms.
func AppendTime(ms int64) Option {
	return func(h *head) { h.attrs |= attrAppendTime; h.max = ms }
}

// Bytes returns the batch, in memory of its own. The Builder keeps its records.
func (b *Builder) Bytes(opts ...Option) []byte {
	out, _ := b.Build(make([]byte, 0, HeaderSize+len(b.records)), opts...)
	return out
}

// Build is Bytes into the memory of dst, from its beginning, as far as that suffices. What is
// built needs no Check of its records: the Info is what Check would say.
func (b *Builder) Build(dst []byte, opts ...Option) ([]byte, Info) {
	h := head{epoch: -1, id: -1, idEpoch: -1, sequence: -1, lastDelta: max(b.lastDelta, 0), max: b.max}
	h.attrs = int16(b.codec)
	for _, set := range opts {
		set(&h)
	}
	out := slices.Grow(dst[:0], HeaderSize)[:HeaderSize]
	Stamp(out, h.base, h.epoch)
	out[atMagic] = 2
	binary.BigEndian.PutUint16(out[atAttributes:], uint16(h.attrs))
	binary.BigEndian.PutUint32(out[atLastOffsetDelta:], uint32(h.lastDelta))
	binary.BigEndian.PutUint64(out[atBaseTimestamp:], uint64(b.base))
	binary.BigEndian.PutUint64(out[atMaxTimestamp:], uint64(h.max))
	binary.BigEndian.PutUint64(out[atProducerID:], uint64(h.id))
	binary.BigEndian.PutUint16(out[atProducerEpoch:], uint16(h.idEpoch))
	binary.BigEndian.PutUint32(out[atBaseSequence:], uint32(h.sequence))
	binary.BigEndian.PutUint32(out[atCount:], uint32(b.count))
	out, err := Compress(b.codec, b.level, out, b.records)
	if err != nil || len(out) > math.MaxInt32 {
		panic(fmt.Sprintf("batch: NewBuilder let in what cannot be built: %d bytes, %v", len(out), err))
	}
	out = seal(out)
	return out, View(out).info()
}

// seal fills in length and checksum.
func seal(b []byte) []byte {
	binary.BigEndian.PutUint32(b[atLength:], uint32(len(b)-LogOverhead))
	binary.BigEndian.PutUint32(b[atCRC:], View(b).crc())
	return b
}
