package batch

import (
	"errors"
	"fmt"
	"iter"
)

// Records iterates over the records of b: one or more whole entries of any magic, one
// after the other, compressed or not. Keys, values and headers alias b or memory that is
// reused: they are valid until the next step. An error ends the iteration: ErrShort
// if b ends inside an entry (the tail of a fetch), a *CorruptError for bytes that
// cannot be read. Checksums are CheckStored's business.
func Records(b []byte) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		s := borrowUnbounded()
		defer s.giveBack()
		var r Record
		stopped := false
		for len(b) > 0 && !stopped {
			size, err := Split(b)
			if err == nil {
				err = s.visit(b[:size], &r, func() bool {
					stopped = !yield(r, nil)
					return !stopped
				})
			}
			if err != nil {
				yield(Record{}, err)
				return
			}
			b = b[size:]
		}
	}
}

// visit calls each for every record of one entry, with r set, until each says no.
func (s *scratch) visit(b []byte, r *Record, each func() bool) error {
	if b[atMagic] < 2 {
		return s.visitMessage(b, r, each)
	}
	v := View(b)
	payload := v.Payload()
	if codec := v.Codec(); codec != None && !v.emptied() {
		var err error
		if payload, err = s.expand(codec, payload, maxStoredExpanded, lz4Descriptor); err != nil {
			return unreadable(err)
		}
	}
	return s.visitBatch(v, payload, r, each)
}

func (s *scratch) visitBatch(v View, payload []byte, r *Record, each func() bool) error {
	var (
		f    frame
		p    int
		base = v.BaseOffset()
		time = v.BaseTimestamp()
	)
	for i := range int(v.Count()) {
		if bad := f.parse(payload, p); bad != whole {
			return badStoredRecord(i, bad)
		}
		p = f.end
		r.Offset = base + int64(f.offsetDelta)
		r.Timestamp = time + f.timestampDelta
		if v.AppendTime() {
			r.Timestamp = v.MaxTimestamp()
		}
		r.Key = nullable(payload, f.keyAt, f.keySize)
		r.Value = nullable(payload, f.valueAt, f.valueSize)
		r.Headers = s.readHeaders(payload, &f)
		if !each() {
			return nil
		}
	}
	if p != len(payload) {
		return corrupt(fmt.Sprintf("%d records", v.Count()), "%d bytes behind them", len(payload)-p)
	}
	return nil
}

// nullable cuts a field out of b; its capacity ends with it, so that appending to it cannot reach the next.
func nullable(b []byte, at, size int) []byte {
	if size < 0 {
		return nil
	}
	return b[at : at+size : at+size]
}

// readHeaders reads what parse has checked.
func (s *scratch) readHeaders(b []byte, f *frame) []Header {
	if f.headers == 0 {
		return nil
	}
	s.headers = s.headers[:0]
	p := f.headersAt
	for range f.headers {
		var size int32
		var h Header
		size, p = varint32(b, p)
		h.Key = string(b[p : p+int(size)])
		p += int(size)
		size, p = varint32(b, p)
		h.Value = nullable(b, p, int(size))
		p += max(int(size), 0)
		s.headers = append(s.headers, h)
	}
	return s.headers
}

// visitMessage is visit for magic 0 and 1.
func (s *scratch) visitMessage(b []byte, r *Record, each func() bool) error {
	m, err := parseMessage(b)
	if err != nil {
		return err
	}
	if m.codec() == None {
		*r = Record{Offset: m.offset, Timestamp: m.timestamp, Key: m.key, Value: m.value}
		each()
		return nil
	}
	set, err := s.expandMessage(&m, maxStoredExpanded)
	if err != nil {
		return unreadable(err)
	}
	last, err := innerSet(set, m.magic, nil)
	if err != nil {
		return unreadable(err)
	}
	shift := offsetShift(&m, last)
	_, err = innerSet(set, m.magic, func(entry []byte) error {
		inner, err := parseMessage(entry)
		if err != nil {
			return err
		}
		if inner.codec() != None {
			return errNested
		}
		*r = Record{Offset: inner.offset + shift, Timestamp: inner.timestamp, Key: inner.key, Value: inner.value}
		if m.appendTime() {
			r.Timestamp = m.timestamp
		}
		if !each() {
			return errStop
		}
		return nil
	})
	if errors.Is(err, errStop) {
		return nil
	}
	return unreadable(err)
}

var (
	errNested = errors.New("a compressed message inside a compressed message")
	errStop   = errors.New("stop") // never leaves this file
	errNull   = errors.New("a compressed message with a null value")
)

// expandMessage expands a wrapper's value into s.out.
func (s *scratch) expandMessage(m *message, limit int) ([]byte, error) {
	if c := m.codec(); c == Zstd || !c.known() {
		return nil, refuse(UnsupportedCodec, "%v in a message of magic %d", c, m.magic)
	}
	if m.value == nil {
		return nil, errNull
	}
	return s.expand(m.codec(), m.value, limit, lz4Ignored)
}

// offsetShift is what turns inner offsets into absolute ones. Magic 0 has absolute
// ones. Magic 1 counts from 0, and the wrapper has the last one's offset; but old
// librdkafka left 0 in the wrapper, which then means that the set starts at 0.
func offsetShift(wrapper *message, lastInner int64) int64 {
	if wrapper.magic == 0 || wrapper.offset == 0 {
		return 0
	}
	return wrapper.offset - lastInner
}

// unreadable makes a *CorruptError of whatever a stored payload failed with; an error
// that is one already, or names a codec, stays.
func unreadable(err error) error {
	var c *CorruptError
	var e *Error
	if err == nil || errors.As(err, &c) || errors.As(err, &e) {
		return err
	}
	if errors.Is(err, ErrShort) {
		return corrupt("whole messages inside the compressed one", "a cut one")
	}
	return corrupt("a compressed payload that can be read", "%v", err)
}
