package batch

import "fmt"

// fault is why a record cannot be read. The walk returns a number and not an error so
// that its loop allocates nothing; words are found when they are needed.
type fault uint8

const (
	whole fault = iota
	faultMissing
	faultLength
	faultTimestamp
	faultOffset
	faultKey
	faultValue
	faultHeaderCount
	faultHeaderKey
	faultHeaderValue
	faultRest
)

var faultTexts = [...]string{
	whole:            "whole",
	faultMissing:     "the payload ends before it starts",
	faultLength:      "its length is malformed, too small, or runs past the end of the payload",
	faultTimestamp:   "its timestamp delta is malformed",
	faultOffset:      "its offset delta is malformed",
	faultKey:         "its key's length is malformed, below -1, or runs past its end",
	faultValue:       "its value's length is malformed, below -1, or runs past its end",
	faultHeaderCount: "its header count is malformed, negative, or more than fits",
	faultHeaderKey:   "a header key's length is malformed, negative, or runs past its end",
	faultHeaderValue: "a header value's length is malformed, below -1, or runs past its end",
	faultRest:        "bytes are left between its last field and its end",
}

func (f fault) String() string { return faultTexts[f] }

// minRecord is the smallest body: attributes, time, offset, no key, no value, no headers.
const minRecord = 6

// frame is one magic-2 record, found but not copied: positions in the payload.
type frame struct {
	timestampDelta int64
	offsetDelta    int32
	keyAt, keySize int // size -1 is null
	valueAt        int
	valueSize      int
	headersAt      int // the first header
	headers        int // how many
	end            int // where the next record starts
}

// parse reads the record at position p of b. It is the one reader of records: what
// Check lets in, Records can read, because both come through here.
func (r *frame) parse(b []byte, p int) fault {
	if p >= len(b) {
		return faultMissing
	}
	size, p := varint32(b, p)
	if p < 0 || int(size) < minRecord || int(size) > len(b)-p {
		return faultLength
	}
	b = b[:p+int(size)]
	r.end = len(b)
	p++ // attributes: no bit has a meaning; Kafka ignores them too

	// One byte is the usual case: producers send what they have within 64 ms.
	if u := b[p]; u < 0x80 {
		r.timestampDelta = int64(u>>1) ^ -int64(u&1)
		p++
	} else if r.timestampDelta, p = varint64(b, p); p < 0 {
		return faultTimestamp
	}
	if r.offsetDelta, p = varint32(b, p); p < 0 {
		return faultOffset
	}
	size, p = varint32(b, p)
	if p < 0 || size < -1 || int(size) > len(b)-p {
		return faultKey
	}
	r.keyAt, r.keySize = p, int(size)
	p += max(int(size), 0)

	size, p = varint32(b, p)
	if p < 0 || size < -1 || int(size) > len(b)-p {
		return faultValue
	}
	r.valueAt, r.valueSize = p, int(size)
	p += max(int(size), 0)

	if p == len(b)-1 && b[p] == 0 {
		r.headers = 0
		return whole
	}
	return r.parseHeaders(b, p)
}

func (r *frame) parseHeaders(b []byte, p int) fault {
	const minHeader = 2 // two lengths
	count, p := varint32(b, p)
	if p < 0 || count < 0 || int(count) > (len(b)-p)/minHeader {
		return faultHeaderCount
	}
	r.headersAt, r.headers = p, int(count)
	for range count {
		var size int32
		size, p = varint32(b, p)
		if p < 0 || size < 0 || int(size) > len(b)-p {
			return faultHeaderKey
		}
		p += int(size)
		size, p = varint32(b, p)
		if p < 0 || size < -1 || int(size) > len(b)-p {
			return faultHeaderValue
		}
		p += max(int(size), 0)
	}
	if p != len(b) {
		return faultRest
	}
	return whole
}

// varint32 reads a zig-zag number of at most 5 bytes. next is -1 if there is none, or
// it has more than 32 bits: readers of other languages would see different numbers.
func varint32(b []byte, p int) (v int32, next int) {
	// Lengths and deltas below 8192 take one or two bytes.
	if p+1 < len(b) {
		u := uint32(b[p])
		if u < 0x80 {
			return int32(u>>1) ^ -int32(u&1), p + 1
		}
		if c := uint32(b[p+1]); c < 0x80 {
			u = u&0x7f | c<<7
			return int32(u>>1) ^ -int32(u&1), p + 2
		}
	}
	return longVarint32(b, p)
}

func longVarint32(b []byte, p int) (v int32, next int) {
	var u uint32
	for shift := uint(0); p < len(b) && shift < 35; shift += 7 {
		c := b[p]
		p++
		if shift == 28 && c > 0x0f {
			return 0, -1
		}
		u |= uint32(c&0x7f) << shift
		if c < 0x80 {
			return int32(u>>1) ^ -int32(u&1), p
		}
	}
	return 0, -1
}

// varint64 is the same for at most 10 bytes and 64 bits.
func varint64(b []byte, p int) (v int64, next int) {
	var u uint64
	for shift := uint(0); p < len(b) && shift < 70; shift += 7 {
		c := b[p]
		p++
		if shift == 63 && c > 0x01 {
			return 0, -1
		}
		u |= uint64(c&0x7f) << shift
		if c < 0x80 {
			return int64(u>>1) ^ -int64(u&1), p
		}
	}
	return 0, -1
}

func badRecord(index int, f fault) *Error {
	return refuseRecord(InvalidRecord, index, "%v", f)
}

func badStoredRecord(index int, f fault) *CorruptError {
	return corrupt(fmt.Sprintf("a whole record %d", index), "%v", f)
}
