package batch

import (
	"encoding/binary"
	"errors"
	"math"
	"time"
)

// Check decides whether b, which must be exactly one magic-2 batch, may be stored
// under the rules r, so that no consumer ever meets a batch it cannot read (D12). It
// reads in place and keeps nothing. An uncompressed batch costs no allocation; a
// compressed one is expanded, within r.MaxExpanded, into a pooled buffer.
//
// It may write to b in one case, as Kafka does: if a producer's maxTimestamp is not the
// largest of its records' times (some clients never set it), that field and the checksum
// are put right, because retention and time look-ups believe it.
//
// A refusal is an *Error. The order of checks is Kafka's, so that the same batch gets the same code.
func Check(b []byte, r *Rules) (Info, error) {
	c := checker{Rules: r, v: View(b)}
	if err := c.batch(); err != nil {
		return Info{}, err
	}
	info := c.v.info()
	if r.Level == HeaderOnly {
		if err := c.headerTimes(); err != nil {
			return Info{}, err
		}
		return info, nil
	}
	if err := c.payload(); err != nil {
		return Info{}, err
	}
	if c.ownsTimes() && c.newest != info.MaxTimestamp {
		stampMaxTimestamp(b, c.newest)
		info.MaxTimestamp = c.newest
	}
	return info, nil
}

// checker is one call of Check.
type checker struct {
	*Rules
	v               View
	earliest, limit int64 // the bounds for timestamps, inclusive, ms
	newest          int64 // largest timestamp seen
	faults          *faultList
}

// faultList collects records that are whole but against the topic's rules: those are
// all named at once, while a broken record ends the walk.
type faultList struct {
	records   []RecordError
	count     int
	timestamp bool
}

// batch checks everything outside the records.
func (c *checker) batch() error {
	v := c.v
	if err := c.shape(); err != nil {
		return err
	}
	if base := v.BaseOffset(); base != 0 && !c.FromFollowerOrDisk {
		return refuse(InvalidRecord, "base offset is %d; a producer must send 0", base)
	}
	if c.MaxSize > 0 && len(v) > c.MaxSize {
		return refuse(TooLarge, "the batch has %d bytes; max.message.bytes allows %d", len(v), c.MaxSize)
	}
	if want, got := v.CRC(), v.crc(); want != got {
		return refuse(Corrupt, "checksum is %08x; the batch says %08x", got, want)
	}
	if codec := v.Codec(); !codec.known() {
		return refuse(UnsupportedCodec, "%v", codec)
	}
	if c.FromFollowerOrDisk {
		return c.storedHeader()
	}
	return c.producerHeader()
}

// shape makes the header safe to read.
func (c *checker) shape() error {
	v := c.v
	if len(v) < splitHeader {
		return refuse(Corrupt, "%d bytes are no batch", len(v))
	}
	if magic := v.Magic(); magic != 2 {
		return refuse(InvalidRecord, "magic is %d, want 2", magic)
	}
	if len(v) < HeaderSize {
		return refuse(Corrupt, "%d bytes are less than a header", len(v))
	}
	switch size := v.Size(); {
	case size < HeaderSize || size > len(v):
		return refuse(Corrupt, "its length field means %d bytes; %d are here", size, len(v))
	case size < len(v):
		return refuse(InvalidRecord, "%d bytes follow the batch; exactly one is allowed", len(v)-size)
	}
	return nil
}

func (c *checker) producerHeader() error {
	v := c.v
	count, delta := v.Count(), v.LastOffsetDelta()
	switch {
	case count <= 0:
		return refuse(InvalidRecord, "it has %d records", count)
	case int64(delta)+1 != int64(count):
		return refuse(InvalidRecord, "last offset delta is %d, with %d records", delta, count)
	case v.IsControl() && !c.AllowControl:
		return refuse(InvalidRecord, "a producer may not send a control batch")
	case v.IsControl() && count != 1:
		return refuse(InvalidRecord, "a control batch has one record, not %d", count)
	case v.HasDeleteHorizon():
		return refuse(InvalidRecord, "the delete horizon is the broker's to set")
	}
	if v.ProducerID() < 0 {
		if v.IsTransactional() {
			return refuse(InvalidRecord, "transactional, but without a producer id")
		}
	} else if !v.IsControl() {
		if v.BaseSequence() < 0 {
			return refuse(InvalidRecord, "producer id %d with base sequence %d", v.ProducerID(), v.BaseSequence())
		}
		if v.ProducerEpoch() < 0 {
			return refuse(InvalidRecord, "producer id %d with epoch %d", v.ProducerID(), v.ProducerEpoch())
		}
	}
	if v.AppendTime() {
		return refuse(InvalidTimestamp, "a producer may not set the timestamp type LogAppendTime")
	}
	return nil
}

func (c *checker) storedHeader() error {
	count, delta := c.v.Count(), c.v.LastOffsetDelta()
	if base := c.v.BaseOffset(); base < 0 || base > math.MaxInt64-math.MaxInt32 {
		return refuse(InvalidRecord, "base offset is %d", base)
	}
	if delta < 0 || count < 0 || int64(count) > int64(delta)+1 {
		return refuse(InvalidRecord, "last offset delta is %d, with %d records", delta, count)
	}
	return nil
}

// ownsTimes reports whether the records' own timestamps count.
func (c *checker) ownsTimes() bool { return !c.AppendTime && !c.FromFollowerOrDisk }

// setBounds turns the rules for timestamps into two numbers.
func (c *checker) setBounds() {
	c.earliest, c.limit = math.MinInt64, math.MaxInt64
	if !c.ownsTimes() || c.Now.IsZero() {
		return
	}
	now := c.Now.UnixMilli()
	if c.BeforeMax >= 0 {
		c.earliest = now - int64(c.BeforeMax/time.Millisecond)
	}
	if c.AfterMax >= 0 {
		c.limit = now + int64(c.AfterMax/time.Millisecond)
	}
}

// headerTimes holds the newest record's time to the bounds when records are not read.
func (c *checker) headerTimes() error {
	c.setBounds()
	if ts := c.v.MaxTimestamp(); ts != noTimestamp && (ts < c.earliest || ts > c.limit) {
		return refuse(InvalidTimestamp, "max timestamp %d is outside %d..%d", ts, c.earliest, c.limit)
	}
	return nil
}

// payload checks the records, expanded if need be.
func (c *checker) payload() error {
	c.setBounds()
	codec := c.v.Codec()
	if codec == None || c.v.emptied() {
		return c.records(c.v.Payload())
	}
	limit := c.MaxExpanded
	if limit <= 0 {
		limit = DefaultMaxExpanded
	}
	s := borrow()
	defer s.giveBack()
	out, err := s.expand(codec, c.v.Payload(), limit, lz4Descriptor)
	if err != nil {
		return refuseExpanding(err, limit)
	}
	return c.records(out)
}

// refuseExpanding: a client that gets TooLarge may split its batch and succeed.
func refuseExpanding(err error, limit int) error {
	if errors.Is(err, ErrExpansion) {
		return refuse(TooLarge, "the compressed payload expands to more than %d bytes", limit)
	}
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	return refuse(InvalidRecord, "the compressed payload cannot be read: %v", err)
}

// records walks the payload. This loop is the broker's only cost per record.
func (c *checker) records(b []byte) error {
	var (
		r        frame
		p        int
		previous = int32(-1)
		base     = c.v.BaseTimestamp()
		count    = int(c.v.Count())
		strict   = !c.FromFollowerOrDisk
	)
	c.newest = math.MinInt64
	for i := range count {
		if f := r.parse(b, p); f != whole {
			return badRecord(i, f)
		}
		p = r.end
		if strict && r.offsetDelta != previous+1 || r.offsetDelta <= previous {
			return refuseRecord(InvalidRecord, i, "its offset delta is %d, after %d", r.offsetDelta, previous)
		}
		previous = r.offsetDelta
		ts := base + r.timestampDelta
		c.newest = max(c.newest, ts)
		if r.keySize < 0 && c.RequireKeys {
			c.note(i, r.keySize, ts)
		} else if (ts < c.earliest || ts > c.limit) && ts != noTimestamp {
			c.note(i, r.keySize, ts)
		}
	}
	switch {
	case p != len(b):
		return refuse(InvalidRecord, "%d bytes follow the last of %d records", len(b)-p, count)
	case previous > c.v.LastOffsetDelta():
		return refuse(InvalidRecord, "last offset delta is %d; the last record has %d", c.v.LastOffsetDelta(), previous)
	case c.v.IsControl() && count > 0 && !c.controlKey(b):
		return refuseRecord(InvalidRecord, 0, "a control record's key needs version and type")
	}
	return c.refusal()
}

// controlKey reports whether the first record's key can hold a marker's version and type.
func (c *checker) controlKey(b []byte) bool {
	var r frame
	return r.parse(b, 0) == whole && r.keySize >= 4 && int16(binary.BigEndian.Uint16(b[r.keyAt:])) >= 0
}

// note remembers a record that is against the topic's rules.
func (c *checker) note(index, keySize int, ts int64) {
	if c.faults == nil {
		c.faults = new(faultList)
	}
	l := c.faults
	l.count++
	noKey := keySize < 0 && c.RequireKeys
	l.timestamp = l.timestamp || !noKey
	if len(l.records) == maxRecordErrors {
		return
	}
	e := refuseRecord(InvalidRecord, index, "a compacted topic needs a key")
	if !noKey {
		e = refuseRecord(InvalidTimestamp, index, "timestamp %d is outside %d..%d", ts, c.earliest, c.limit)
	}
	l.records = append(l.records, e.Records...)
}

// refusal is the answer for all records noted: one bad time makes it InvalidTimestamp.
func (c *checker) refusal() error {
	if c.faults == nil {
		return nil
	}
	reason := InvalidRecord
	if c.faults.timestamp {
		reason = InvalidTimestamp
	}
	e := refuse(reason, "%d of %d records were refused", c.faults.count, c.v.Count())
	e.Records = c.faults.records
	return e
}
