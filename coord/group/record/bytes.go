package record

import (
	"encoding/binary"
	"fmt"
)

// writer appends the primitive types of Kafka's flexible versions.
type writer struct{ b []byte }

// value begins a value of the next-generation protocol.
func value() *writer { return &writer{binary.BigEndian.AppendUint16(nil, uint16(consumerValue))} }

func (w *writer) int32(v int32) { w.b = binary.BigEndian.AppendUint32(w.b, uint32(v)) }
func (w *writer) int64(v int64) { w.b = binary.BigEndian.AppendUint64(w.b, uint64(v)) }
func (w *writer) length(n int)  { w.b = binary.AppendUvarint(w.b, uint64(n+1)) }
func (w *writer) int32s(v []int32) {
	w.length(len(v))
	for _, n := range v {
		w.int32(n)
	}
}

// text is a nullable compact string.
func (w *writer) text(s *string) {
	if s == nil {
		w.b = append(w.b, 0)
		return
	}
	w.length(len(*s))
	w.b = append(w.b, *s...)
}

func (w *writer) texts(list []string) {
	w.length(len(list))
	for i := range list {
		w.text(&list[i])
	}
}

// tags is a block of tagged fields, numbered from 0.
func (w *writer) tags(fields ...[]byte) {
	w.b = binary.AppendUvarint(w.b, uint64(len(fields)))
	for i, f := range fields {
		w.b = binary.AppendUvarint(w.b, uint64(i))
		w.b = binary.AppendUvarint(w.b, uint64(len(f)))
		w.b = append(w.b, f...)
	}
}

func (w *writer) partitions(list []Partitions) {
	w.length(len(list))
	for i := range list {
		p := &list[i]
		w.b = append(w.b, p.Topic[:]...)
		w.int32s(p.Partitions)
		if p.Epochs == nil {
			w.tags()
			continue
		}
		var t writer
		t.int32s(p.Epochs)
		w.tags(t.b)
	}
}

// keyOf is a key: its version and strings of the old kind.
func keyOf(version int16, parts ...string) []byte {
	b := binary.BigEndian.AppendUint16(nil, uint16(version))
	for _, s := range parts {
		b = binary.BigEndian.AppendUint16(b, uint16(len(s)))
		b = append(b, s...)
	}
	return b
}

// reader is the way back. Once bad, it reads zeros. It never takes more memory
// than a small multiple of the bytes that are there.
type reader struct {
	b   []byte
	bad bool
}

// open checks a value's version.
func open(what string, b []byte) (*reader, error) {
	if err := readable(what, b, consumerValue); err != nil {
		return &reader{bad: true}, err
	}
	return &reader{b: b[2:]}, nil
}

// end says whether all went well. Bytes that follow are from the future.
func (r *reader) end(what string, err error) error {
	if err == nil && r.bad {
		return fmt.Errorf("value of a %s: it is cut off", what)
	}
	return err
}

func (r *reader) take(n int) []byte {
	if r.bad || n < 0 || n > len(r.b) {
		r.bad = true
		return nil
	}
	out := r.b[:n]
	r.b = r.b[n:]
	return out
}

func (r *reader) byte() byte {
	if b := r.take(1); b != nil {
		return b[0]
	}
	return 0
}

func (r *reader) int32() int32 {
	if b := r.take(4); b != nil {
		return int32(binary.BigEndian.Uint32(b))
	}
	return 0
}

func (r *reader) int64() int64 {
	if b := r.take(8); b != nil {
		return int64(binary.BigEndian.Uint64(b))
	}
	return 0
}

func (r *reader) uvarint() uint64 {
	v, n := binary.Uvarint(r.b)
	if n <= 0 {
		r.bad = true
		return 0
	}
	r.b = r.b[n:]
	return v
}

// length of what has at least min bytes for each; -1: null.
func (r *reader) length(min int) int {
	v := r.uvarint()
	if v > uint64(len(r.b)/min)+1 {
		r.bad = true
	}
	if r.bad {
		return 0
	}
	return int(v) - 1
}

func (r *reader) text() *string {
	n := r.length(1)
	if n < 0 {
		return nil
	}
	s := string(r.take(n))
	return &s
}

// bytes is a compact array of bytes, copied.
func (r *reader) bytes() []byte {
	n := r.length(1)
	if n < 0 {
		return nil
	}
	return append([]byte{}, r.take(n)...)
}

func (r *reader) texts() (out []string) {
	for range max(r.length(1), 0) {
		out = append(out, text(r.text()))
	}
	return out
}

func (r *reader) int32s() (out []int32) {
	for range max(r.length(4), 0) {
		out = append(out, r.int32())
	}
	return out
}

func (r *reader) string16() string {
	b := r.take(2)
	if b == nil {
		return ""
	}
	return string(r.take(int(binary.BigEndian.Uint16(b))))
}

// tags walks a block of tagged fields.
func (r *reader) tags(f func(tag uint64, r *reader)) {
	for n := r.uvarint(); n > 0 && !r.bad; n-- {
		tag := r.uvarint()
		size := r.uvarint()
		if size > uint64(len(r.b)) {
			r.bad = true
			return
		}
		field := reader{b: r.take(int(size))}
		if f != nil {
			f(tag, &field)
			r.bad = r.bad || field.bad
		}
	}
}

func (r *reader) partitions() (out []Partitions) {
	const least = 16 + 1 + 1 // id, length, tags
	for range max(r.length(least), 0) {
		var p Partitions
		copy(p.Topic[:], r.take(16))
		p.Partitions = r.int32s()
		r.tags(func(tag uint64, r *reader) {
			if tag == 0 {
				p.Epochs = r.int32s()
			}
		})
		out = append(out, p)
	}
	return out
}
