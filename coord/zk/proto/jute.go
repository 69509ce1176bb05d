package proto

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// ErrShort says that the bytes end before what they should hold does.
var ErrShort = errors.New("zookeeper protocol: the bytes end too early")

// reader takes jute values off the front of b. The first thing that does not fit sets
// err; everything after that is zero.
type reader struct {
	b   []byte
	err error
}

func (r *reader) fail(err error) {
	if r.err == nil {
		r.err = err
	}
	r.b = nil
}

func (r *reader) take(n int) []byte {
	if n > len(r.b) {
		r.fail(ErrShort)
		return nil
	}
	p := r.b[:n:n]
	r.b = r.b[n:]
	return p
}

func (r *reader) int32() int32 {
	if p := r.take(4); p != nil {
		return int32(binary.BigEndian.Uint32(p))
	}
	return 0
}

func (r *reader) int64() int64 {
	if p := r.take(8); p != nil {
		return int64(binary.BigEndian.Uint64(p))
	}
	return 0
}

func (r *reader) bool() bool {
	p := r.take(1)
	return p != nil && p[0] != 0
}

// buffer returns bytes that alias the input; nil stands for null.
func (r *reader) buffer() []byte {
	n := r.int32()
	if r.err != nil || n == -1 {
		return nil
	}
	if n < 0 {
		r.fail(fmt.Errorf("zookeeper protocol: a buffer of %d bytes", n))
		return nil
	}
	p := r.take(int(n))
	if p == nil && r.err == nil {
		p = []byte{}
	}
	return p
}

// string copies; null reads as the empty string, which is no path and no name.
func (r *reader) string() string { return string(r.buffer()) }

// count reads a vector's length, of elements that take at least min bytes each, and
// refuses one that cannot be in what is left (W1). -1, null, reads as 0.
func (r *reader) count(min int) int {
	n := r.int32()
	if r.err != nil || n == -1 {
		return 0
	}
	if n < 0 || int64(n)*int64(min) > int64(len(r.b)) {
		r.fail(fmt.Errorf("zookeeper protocol: a vector of %d elements in %d bytes", n, len(r.b)))
		return 0
	}
	return int(n)
}

func (r *reader) strings() []string {
	n := r.count(4)
	if n == 0 {
		return nil
	}
	list := make([]string, 0, n)
	for ; n > 0 && r.err == nil; n-- {
		list = append(list, r.string())
	}
	return list
}

func (r *reader) acl() []ACL {
	n := r.count(12) // perms and two string lengths
	if n == 0 {
		return nil
	}
	list := make([]ACL, 0, n)
	for ; n > 0 && r.err == nil; n-- {
		list = append(list, ACL{Perms: r.int32(), ID: ID{r.string(), r.string()}})
	}
	return list
}

func (r *reader) stat() (s Stat) {
	s.Czxid, s.Mzxid, s.Ctime, s.Mtime = r.int64(), r.int64(), r.int64(), r.int64()
	s.Version, s.Cversion, s.Aversion = r.int32(), r.int32(), r.int32()
	s.EphemeralOwner, s.DataLength, s.NumChildren, s.Pzxid = r.int64(), r.int32(), r.int32(), r.int64()
	return s
}

// end is the reader's error, or that something is left over.
func (r *reader) end(what fmt.Stringer) error {
	if r.err != nil {
		return fmt.Errorf("%v: %w", what, r.err)
	}
	if len(r.b) > 0 {
		return fmt.Errorf("zookeeper protocol: %v: %d bytes too many", what, len(r.b))
	}
	return nil
}

func appendInt32(b []byte, v int32) []byte { return binary.BigEndian.AppendUint32(b, uint32(v)) }
func appendInt64(b []byte, v int64) []byte { return binary.BigEndian.AppendUint64(b, uint64(v)) }

func appendBool(b []byte, v bool) []byte {
	if v {
		return append(b, 1)
	}
	return append(b, 0)
}

func appendBuffer(b, p []byte) []byte {
	if p == nil {
		return appendInt32(b, -1)
	}
	return append(appendInt32(b, int32(len(p))), p...)
}

func appendString(b []byte, s string) []byte {
	return append(appendInt32(b, int32(len(s))), s...)
}

func appendStrings(b []byte, list []string) []byte {
	b = appendInt32(b, int32(len(list)))
	for _, s := range list {
		b = appendString(b, s)
	}
	return b
}

func appendACL(b []byte, list []ACL) []byte {
	b = appendInt32(b, int32(len(list)))
	for _, a := range list {
		b = appendString(appendString(appendInt32(b, a.Perms), a.ID.Scheme), a.ID.ID)
	}
	return b
}

func appendStat(b []byte, s *Stat) []byte {
	b = appendInt64(appendInt64(appendInt64(appendInt64(b, s.Czxid), s.Mzxid), s.Ctime), s.Mtime)
	b = appendInt32(appendInt32(appendInt32(b, s.Version), s.Cversion), s.Aversion)
	b = appendInt64(b, s.EphemeralOwner)
	return appendInt64(appendInt32(appendInt32(b, s.DataLength), s.NumChildren), s.Pzxid)
}
