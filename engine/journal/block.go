package journal

import (
	"encoding/binary"
	"hash/crc32"
	"math"
)

// A block is one round as it stands in a file: a header, then records, padded with zeros to whole pages. All numbers are
// little-endian.
//
//	header (64)                               record (48, then the data, padded with zeros to 8)
//	 0  8  magic "MRJRND01"                    0 16  topic id
//	 8  4  CRC-32C of [12, 64+length)         16  4  partition
//	12  4  length of the records, bytes       20  4  leader epoch
//	16 16  generation                         24  8  base: the log's end before these batches; of a cut: from
//	32  8  number of the block                32  8  end: the log's end after them
//	40  8  when the generation began, Unix ns 40  4  length of the data
//	48  4  count of records                   44  1  kind: 1 batches, 2 cut
//	52 12  zero                               45  3  zero
const (
	headerBytes = 64
	recordBytes = 48

	magic = "MRJRND01"

	kindBatches = 1
	kindCut     = 2
)

// emptyHead is what the first page of a file begins with once nothing in it may be replayed.
const emptyHead = "MRJEMPTY millrace commit journal file; nothing in it is to be replayed\n"

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// blockHeader is a header without magic and checksum.
type blockHeader struct {
	length     int
	generation [16]byte
	number     uint64
	began      int64
	count      int
}

// seal fills in the header of block, whose records are in place, and its checksum.
func (h *blockHeader) seal(block []byte) {
	copy(block, magic)
	le := binary.LittleEndian
	le.PutUint32(block[12:], uint32(h.length))
	copy(block[16:32], h.generation[:])
	le.PutUint64(block[32:], h.number)
	le.PutUint64(block[40:], uint64(h.began))
	le.PutUint32(block[48:], uint32(h.count))
	clear(block[52:headerBytes])
	le.PutUint32(block[8:], crc32.Checksum(block[12:headerBytes+h.length], castagnoli))
}

// parseHeader reads what stands in b (at least headerBytes) as a header. ok says only that it looks like one and claims a
// length that a block may have; verified says the rest.
func parseHeader(b []byte) (h blockHeader, ok bool) {
	if string(b[:8]) != magic {
		return h, false
	}
	le := binary.LittleEndian
	length := le.Uint32(b[12:])
	if length > maxReadableBytes-headerBytes {
		return h, false
	}
	h.length = int(length)
	h.generation = [16]byte(b[16:32])
	h.number = le.Uint64(b[32:])
	h.began = int64(le.Uint64(b[40:]))
	h.count = int(le.Uint32(b[48:]))
	return h, true
}

// verified reports whether the checksum of a whole block holds.
func (h *blockHeader) verified(block []byte) bool {
	return binary.LittleEndian.Uint32(block[8:]) == crc32.Checksum(block[12:headerBytes+h.length], castagnoli)
}

// record is a record's header.
type record struct {
	id        LogID
	epoch     int32
	base, end int64
	size      int
	kind      byte
}

// put writes the record's header to b, which has recordBytes.
func (r *record) put(b []byte) {
	_ = b[recordBytes-1]
	copy(b, r.id.Topic[:])
	le := binary.LittleEndian
	le.PutUint32(b[16:], uint32(r.id.Partition))
	le.PutUint32(b[20:], uint32(r.epoch))
	le.PutUint64(b[24:], uint64(r.base))
	le.PutUint64(b[32:], uint64(r.end))
	le.PutUint32(b[40:], uint32(r.size))
	le.PutUint32(b[44:], uint32(r.kind))
}

// parseRecord reads a record's header from the front of b. ok is false if it and its data do not fit in b.
func parseRecord(b []byte) (r record, ok bool) {
	if len(b) < recordBytes {
		return r, false
	}
	le := binary.LittleEndian
	r.id.Topic = [16]byte(b[:16])
	r.id.Partition = int32(le.Uint32(b[16:]))
	r.epoch = int32(le.Uint32(b[20:]))
	r.base = int64(le.Uint64(b[24:]))
	r.end = int64(le.Uint64(b[32:]))
	size := le.Uint32(b[40:])
	r.kind = b[44]
	if size > math.MaxInt32 || int(size) > len(b)-recordBytes {
		return r, false
	}
	r.size = int(size)
	return r, true
}

func padTo(n, unit int) int { return (n + unit - 1) &^ (unit - 1) }
