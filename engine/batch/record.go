package batch

import (
	"bytes"
	"slices"
)

// Record is one message. Key and Value alias what they were read from; nil is
// Kafka's null, which an empty non-nil slice is not.
type Record struct {
	Offset    int64
	Timestamp int64 // ms, -1 none
	Key       []byte
	Value     []byte
	Headers   []Header
}

// Clone returns the record in memory of its own.
func (r Record) Clone() Record {
	r.Key, r.Value = bytes.Clone(r.Key), bytes.Clone(r.Value)
	r.Headers = slices.Clone(r.Headers)
	for i := range r.Headers {
		r.Headers[i].Value = bytes.Clone(r.Headers[i].Value)
	}
	return r
}

// Header is a named value beside the record's own; magic 2 only.
type Header struct {
	Key   string
	Value []byte
}
