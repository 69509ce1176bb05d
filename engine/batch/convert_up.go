package batch

import (
	"errors"
	"fmt"
)

// UpConvert makes one magic-2 batch, with base offset 0, of a message set as clients
// before 0.11 produce it: any number of messages and wrappers of magic 0 and 1. The
// codec stays (of several, the last one is taken, as Kafka does). Every message's
// CRC-32 is checked, those inside wrappers too. All wrappers together may expand to
// maxExpanded bytes (0 is DefaultMaxExpanded).
//
// Offsets in the set are not looked at: before 0.10 clients sent all kinds, and the
// broker assigns them anyway. What the topic asks of a record is for [Check] to say
// about the result. A refusal is an *Error.
func UpConvert(set []byte, maxExpanded int) ([]byte, error) {
	if maxExpanded <= 0 {
		maxExpanded = DefaultMaxExpanded
	}
	u := upConverter{codec: None, left: maxExpanded, limit: maxExpanded, out: NewBuilder(None, DefaultLevel)}
	s := borrow()
	defer s.giveBack()
	for len(set) > 0 {
		size, err := Split(set)
		if err != nil {
			return nil, u.refuseEntry(err)
		}
		if err := u.entry(s, set[:size]); err != nil {
			return nil, err
		}
		set = set[size:]
	}
	if u.out.Count() == 0 {
		return nil, refuse(InvalidRecord, "a message set without messages")
	}
	u.out.codec = u.codec
	return u.out.Bytes(), nil
}

// upConverter is one call of UpConvert.
type upConverter struct {
	codec       Codec
	left, limit int // bytes that wrappers may still expand to, and altogether
	out         *Builder
}

// entry adds one entry of the set.
func (u *upConverter) entry(s *scratch, b []byte) error {
	m, err := u.read(b)
	if err != nil {
		return err
	}
	if m.appendTime() {
		return refuseRecord(InvalidTimestamp, u.out.Count(), "a producer may not set the timestamp type LogAppendTime")
	}
	if m.codec() == None {
		return u.add(&m)
	}
	set, err := s.expandMessage(&m, u.left)
	switch {
	case errors.Is(err, ErrExpansion):
		return refuseExpanding(err, u.limit)
	case err != nil:
		return u.refuseEntry(err)
	}
	u.left -= len(set)
	u.codec = m.codec()
	_, err = innerSet(set, m.magic, u.inner)
	return u.refuseEntry(err)
}

// inner adds one message of a wrapper.
func (u *upConverter) inner(b []byte) error {
	m, err := u.read(b)
	switch {
	case err != nil:
		return err
	case m.codec() != None:
		return refuseRecord(InvalidRecord, u.out.Count(), "%v", errNested)
	}
	return u.add(&m)
}

func (u *upConverter) add(m *message) error {
	err := u.out.Add(Record{Timestamp: m.timestamp, Key: m.key, Value: m.value})
	if err != nil {
		return refuse(TooLarge, "%v", err)
	}
	return nil
}

// read checks one message and reads it.
func (u *upConverter) read(b []byte) (message, error) {
	if b[atMagic] > 1 {
		return message{}, refuseRecord(InvalidRecord, u.out.Count(), "magic %d in a message set of magic 0 and 1", b[atMagic])
	}
	if want, got := messageSums(b); want != got {
		return message{}, refuseRecord(Corrupt, u.out.Count(), "checksum is %08x; the message says %08x", got, want)
	}
	m, err := parseMessage(b)
	if err != nil {
		return message{}, u.refuseEntry(err)
	}
	return m, nil
}

// refuseEntry turns what reading failed with into a refusal of the message that would
// have been the next; nil stays nil, and a refusal stays what it is.
func (u *upConverter) refuseEntry(err error) error {
	var e *Error
	var c *CorruptError
	switch {
	case err == nil || errors.As(err, &e):
		return err
	case errors.Is(err, ErrShort):
		return refuseRecord(Corrupt, u.out.Count(), "the set ends inside it")
	case errors.As(err, &c):
		return refuseRecord(InvalidRecord, u.out.Count(), "want %s, got %s", c.Want, c.Got)
	}
	return refuseRecord(InvalidRecord, u.out.Count(), "%s", fmt.Sprint(err))
}
