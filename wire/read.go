package wire

import (
	"encoding/binary"
	"fmt"
)

// MalformedError says which part of a request could not be read. The
// connection that sent it cannot be trusted any further and is closed.
type MalformedError struct {
	Key, Version int16
	Field        string // what was being read
	Position     int    // byte within the frame or body
	Left         int    // bytes that were left there
	Count        int64  // the count that does not fit, if it was one; else 0
}

func (e *MalformedError) Error() string {
	api, ok := Lookup(e.Key)
	name := api.Name
	if !ok {
		name = fmt.Sprintf("api %d", e.Key)
	}
	if e.Count != 0 {
		return fmt.Sprintf("malformed %s v%d request: %s says %d at byte %d, where %d bytes are left", name, e.Version, e.Field, e.Count, e.Position, e.Left)
	}
	return fmt.Sprintf("malformed %s v%d request: %s does not fit at byte %d, where %d bytes are left", name, e.Version, e.Field, e.Position, e.Left)
}

// reader reads big-endian primitives off the front of b. The first failure is
// kept in bad and empties b, so that callers check once, at the end (W1).
type reader struct {
	b        []byte
	total    int  // length of what b was at first, for positions
	flexible bool // compact lengths and tag blocks
	elements int  // array elements seen, at most MaxElements
	tags     int  // unknown tags seen, at most MaxUnknownTags
	bad      *MalformedError
}

func newReader(b []byte, flexible bool) reader {
	return reader{b: b, total: len(b), flexible: flexible}
}

func (r *reader) fail(field string, count int64) {
	if r.bad == nil {
		r.bad = &MalformedError{Field: field, Position: r.total - len(r.b), Left: len(r.b), Count: count}
	}
	r.b = nil
}

// failure completes the error with what was being parsed; nil if all is well.
func (r *reader) failure(key, version int16) error {
	if r.bad == nil {
		return nil
	}
	r.bad.Key, r.bad.Version = key, version
	return r.bad
}

func (r *reader) int8(field string) int8 {
	if len(r.b) < 1 {
		r.fail(field, 0)
		return 0
	}
	v := int8(r.b[0])
	r.b = r.b[1:]
	return v
}

func (r *reader) int16(field string) int16 {
	if len(r.b) < 2 {
		r.fail(field, 0)
		return 0
	}
	v := int16(binary.BigEndian.Uint16(r.b))
	r.b = r.b[2:]
	return v
}

func (r *reader) int32(field string) int32 {
	if len(r.b) < 4 {
		r.fail(field, 0)
		return 0
	}
	v := int32(binary.BigEndian.Uint32(r.b))
	r.b = r.b[4:]
	return v
}

func (r *reader) int64(field string) int64 {
	if len(r.b) < 8 {
		r.fail(field, 0)
		return 0
	}
	v := int64(binary.BigEndian.Uint64(r.b))
	r.b = r.b[8:]
	return v
}

func (r *reader) uuid(field string) (id [16]byte) {
	if len(r.b) < 16 {
		r.fail(field, 0)
		return id
	}
	copy(id[:], r.b)
	r.b = r.b[16:]
	return id
}

// uvarint reads an unsigned varint of at most 32 bits.
func (r *reader) uvarint(field string) uint32 {
	var v uint32
	for i := 0; i < 5; i++ {
		if i >= len(r.b) {
			break
		}
		c := r.b[i]
		if i == 4 && c > 0x0f { // a fifth byte may carry four bits
			break
		}
		v |= uint32(c&0x7f) << (7 * i)
		if c < 0x80 {
			r.b = r.b[i+1:]
			return v
		}
	}
	r.fail(field, 0)
	return 0
}

// take cuts n bytes off the front.
func (r *reader) take(n int64, field string) []byte {
	if n < 0 || n > int64(len(r.b)) {
		r.fail(field, n)
		return nil
	}
	v := r.b[:n:n]
	r.b = r.b[n:]
	return v
}

// nullableBytes reads a length of the request's generation and that many
// bytes, aliasing the frame; nil for null. Strings in classic versions have
// int16 lengths and go through nullableString.
func (r *reader) nullableBytes(field string) []byte {
	n := int64(-1)
	if r.flexible {
		n = int64(r.uvarint(field)) - 1
	} else {
		n = int64(r.int32(field))
	}
	if n == -1 || r.bad != nil {
		return nil
	}
	return r.take(n, field)
}

// nullableString reads a string of the request's generation, aliasing the
// frame; false for null.
func (r *reader) nullableString(field string) (string, bool) {
	if !r.flexible {
		return r.shortString(field)
	}
	n := int64(r.uvarint(field)) - 1
	if n == -1 || r.bad != nil {
		return "", false
	}
	return aliasString(r.take(n, field)), r.bad == nil
}

// shortString is a string with an int16 length, whatever the generation.
func (r *reader) shortString(field string) (string, bool) {
	n := r.int16(field)
	if n == -1 || r.bad != nil {
		return "", false
	}
	return aliasString(r.take(int64(n), field)), r.bad == nil
}

// string reads a string that must not be null.
func (r *reader) string(field string) string {
	s, ok := r.nullableString(field)
	if !ok && r.bad == nil {
		r.fail(field, -1)
	}
	return s
}

// count reads an array's length. Nothing may be allocated before the count is
// known to fit: elements take at least minSize bytes each (W1). null counts -1.
func (r *reader) count(minSize int, field string) int {
	var n int64
	if r.flexible {
		n = int64(r.uvarint(field)) - 1
	} else {
		n = int64(r.int32(field))
	}
	if r.bad != nil {
		return 0
	}
	if n < -1 || n > int64(len(r.b)/minSize) || int64(r.elements)+n > MaxElements {
		r.fail(field, n)
		return 0
	}
	if n > 0 {
		r.elements += int(n)
	}
	return int(n)
}

// array is count for arrays that must not be null.
func (r *reader) array(minSize int, field string) int {
	n := r.count(minSize, field)
	if n < 0 {
		r.fail(field, -1)
		return 0
	}
	return n
}

// skipTags skips a tag block in which we know no field. Nearly all are empty.
func (r *reader) skipTags() {
	if len(r.b) > 0 && r.b[0] == 0 {
		r.b = r.b[1:]
		return
	}
	for range r.eachTag() {
	}
}

// eachTag yields the tagged fields of a block, each with its bytes.
func (r *reader) eachTag() func(yield func(tag uint32, value []byte) bool) {
	return func(yield func(uint32, []byte) bool) {
		n := int64(r.uvarint("tag count"))
		if n == 0 || r.bad != nil {
			return
		}
		if r.tags += int(n); n > int64(len(r.b)/2) || r.tags > MaxUnknownTags {
			r.fail("tag count", n)
			return
		}
		for ; n > 0; n-- {
			tag := r.uvarint("tag")
			value := r.take(int64(r.uvarint("tag size")), "tag value")
			if r.bad != nil || !yield(tag, value) {
				return
			}
		}
	}
}
