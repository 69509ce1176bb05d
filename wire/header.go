package wire

import (
	"encoding/binary"
	"strings"
	"sync"
	"sync/atomic"
	"unsafe"
)

// Header is a request header, both generations, and what is needed to answer.
type Header struct {
	Key, Version int16
	Correlation  int32
	ClientID     string // owned: safe to keep after the frame is reused
	HasClientID  bool   // false: the client sent null
}

// ParseHeader reads the header of a frame (without its four length bytes) and
// returns the body behind it, which aliases the frame. A key or version that
// is not in the table is no error: the caller checks with Lookup and Serves,
// and must not parse the body. Errors are *MalformedError.
func ParseHeader(frame []byte) (h Header, body []byte, err error) {
	if len(frame) < 8 {
		return h, nil, &MalformedError{Field: "request header", Left: len(frame)}
	}
	h.Key = int16(binary.BigEndian.Uint16(frame))
	h.Version = int16(binary.BigEndian.Uint16(frame[2:]))
	h.Correlation = int32(binary.BigEndian.Uint32(frame[4:]))
	r := reader{b: frame[8:], total: len(frame)}
	// The client id keeps its int16 length in flexible headers too.
	if id, ok := r.shortString("client id"); ok {
		h.ClientID, h.HasClientID = clientIDs.intern(id), true
	}
	if api, ok := Lookup(h.Key); ok && api.Serves(h.Version) && api.Flexible(h.Version) {
		r.skipTags()
	}
	if r.bad != nil {
		return h, nil, r.failure(h.Key, h.Version)
	}
	return h, r.b, nil
}

// AppendRequestHeader appends the header of a request: what a client sends.
// Used by tools and tests; the version must be one of the table.
func AppendRequestHeader(dst []byte, h Header) []byte {
	dst = binary.BigEndian.AppendUint16(dst, uint16(h.Key))
	dst = binary.BigEndian.AppendUint16(dst, uint16(h.Version))
	dst = binary.BigEndian.AppendUint32(dst, uint32(h.Correlation))
	if h.HasClientID {
		dst = appendString(dst, h.ClientID)
	} else {
		dst = append(dst, 0xff, 0xff)
	}
	if api, ok := Lookup(h.Key); ok && api.Flexible(h.Version) {
		dst = append(dst, 0)
	}
	return dst
}

// AppendResponseHeader appends the correlation id and, where the answer is
// flexible, an empty tag block. ApiVersions answers never have one, in any
// version, so that a client which does not know ours can still read them.
func AppendResponseHeader(dst []byte, h Header) []byte {
	dst = binary.BigEndian.AppendUint32(dst, uint32(h.Correlation))
	if h.Key == KeyAPIVersions {
		return dst
	}
	if api, ok := Lookup(h.Key); ok && api.Flexible(h.Version) {
		dst = append(dst, 0)
	}
	return dst
}

// internTable keeps the client ids seen, so that a request does not allocate
// its id anew. Reading takes no lock: the map is replaced, never changed.
type internTable struct {
	known atomic.Pointer[map[string]string]
	mu    sync.Mutex // held to replace known
}

var clientIDs internTable

// intern returns an owned string equal to s, which may alias a frame.
func (t *internTable) intern(s string) string {
	if s == "" {
		return ""
	}
	m := t.known.Load()
	if m != nil {
		if id, ok := (*m)[s]; ok {
			return id
		}
	}
	id := strings.Clone(s)
	if len(s) > maxInternedID || (m != nil && len(*m) >= maxClientIDs) {
		return id
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	next := make(map[string]string, 1)
	if m = t.known.Load(); m != nil {
		if len(*m) >= maxClientIDs {
			return id
		}
		for k, v := range *m {
			next[k] = v
		}
	}
	next[id] = id
	t.known.Store(&next)
	return id
}

// aliasString views bytes as a string. The string is valid as long as the
// bytes are not overwritten: parsed names live as long as their frame.
func aliasString(b []byte) string {
	if len(b) == 0 {
		return ""
	}
	return unsafe.String(&b[0], len(b))
}
