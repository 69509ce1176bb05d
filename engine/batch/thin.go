package batch

import "math"

// Thinning says what compaction leaves of a batch (KIP-354, KIP-534; Kafka's MemoryRecords.filterTo).
type Thinning struct {
	// Keep is asked once for each record, in order; the record is valid until it returns.
	Keep func(r *Record) bool
	// Horizon, in ms, is put on a batch of magic 2 that has none and keeps a record with a null value: from then on
	// the record may go. Negative: none is put.
	Horizon int64
	// Mark puts the horizon on the batch although it keeps no null value: a marker whose transaction is empty.
	Mark bool
	// KeepEmpty keeps the bare header of a batch that loses all its records.
	KeepEmpty bool
	// Level is asked for the level at which a batch of a codec is compressed again; nil: DefaultLevel.
	Level func(Codec) int
}

// builder makes what is made anew.
func (t *Thinning) builder(c Codec) *Builder {
	if t.Level == nil {
		return NewBuilder(c, DefaultLevel)
	}
	return NewBuilder(c, t.Level(c))
}

// Thin appends to dst what compaction leaves of b, one whole and checked entry of any magic, and returns how many records that
// is. An entry that keeps all of its records and needs no horizon stays byte for byte. What is made anew keeps offsets, leader
// epoch, producer, timestamp type and codec; an old message set becomes a batch of magic 2. A *CorruptError names records
// that cannot be read.
func Thin(dst, b []byte, t *Thinning) (out []byte, kept int, err error) {
	if size, err := Split(b); err != nil || size != len(b) {
		return dst, 0, corrupt("one whole entry", "%d bytes (%v)", len(b), err)
	}
	s := borrowUnbounded()
	defer s.giveBack()
	if b[atMagic] < 2 {
		return s.thinMessage(dst, b, t)
	}
	v := View(b)
	if v.emptied() {
		if t.KeepEmpty {
			dst = append(dst, b...)
		}
		return dst, 0, nil
	}
	payload := v.Payload()
	if codec := v.Codec(); codec != None {
		if payload, err = s.expand(codec, payload, maxStoredExpanded, lz4Descriptor); err != nil {
			return dst, 0, unreadable(err)
		}
	}
	visit := func(each func(r *Record) bool) error {
		var r Record
		return s.visitBatch(v, payload, &r, func() bool { return each(&r) })
	}
	c, err := choose(visit, int(v.Count()), t)
	if err != nil {
		return dst, 0, err
	}
	horizon := t.Horizon >= 0 && !v.HasDeleteHorizon() && c.kept > 0 && (c.nulls || t.Mark)
	switch {
	case c.kept == int(v.Count()) && !horizon:
		return append(dst, b...), c.kept, nil
	case c.kept == 0 && t.KeepEmpty:
		return appendEmpty(dst, v), 0, nil
	case c.kept == 0:
		return dst, 0, nil
	}
	builder := t.builder(v.Codec())
	opts := []Option{Base(v.BaseOffset(), v.LeaderEpoch()), LastDelta(v.LastOffsetDelta()), Producer(v.ProducerID(), v.ProducerEpoch(), v.BaseSequence())}
	if v.HasDeleteHorizon() || horizon {
		at := t.Horizon
		if v.HasDeleteHorizon() {
			at = v.BaseTimestamp()
		}
		builder.setHorizon(at)
		opts = append(opts, deleteHorizon())
	}
	if v.IsTransactional() {
		opts = append(opts, Transactional())
	}
	if v.IsControl() {
		opts = append(opts, Control())
	}
	if v.AppendTime() {
		opts = append(opts, AppendTime(v.MaxTimestamp()))
	}
	if err := c.build(visit, builder, v.BaseOffset()); err != nil {
		return dst, 0, err
	}
	return append(dst, builder.Bytes(opts...)...), c.kept, nil
}

// thinMessage is Thin for magic 0 and 1.
func (s *scratch) thinMessage(dst, b []byte, t *Thinning) ([]byte, int, error) {
	m, err := parseMessage(b)
	if err != nil {
		return dst, 0, err
	}
	visit := func(each func(r *Record) bool) error {
		var r Record
		return s.visitMessage(b, &r, func() bool { return each(&r) })
	}
	c, err := choose(visit, 1, t)
	if err != nil {
		return dst, 0, err
	}
	first, last := c.first, max(c.last, m.offset)
	switch {
	case c.kept == len(c.keep):
		return append(dst, b...), c.kept, nil
	case c.kept == 0 && !t.KeepEmpty:
		return dst, 0, nil
	case last-first > math.MaxInt32:
		return dst, 0, corrupt("offsets within one message set", "%d to %d", first, last)
	}
	opts := []Option{Base(first, -1), LastDelta(int32(last - first))}
	if m.appendTime() {
		opts = append(opts, AppendTime(m.timestamp))
	}
	builder := t.builder(m.codec())
	if c.kept == 0 {
		return append(dst, NewBuilder(None, 0).Bytes(opts...)...), 0, nil
	}
	if err := c.build(visit, builder, first); err != nil {
		return dst, 0, err
	}
	return append(dst, builder.Bytes(opts...)...), c.kept, nil
}

// choice is which records of an entry stay.
type choice struct {
	keep        []bool
	kept        int
	nulls       bool  // one of those that stay has a null value
	first, last int64 // offsets of all
}

func choose(visit func(func(*Record) bool) error, count int, t *Thinning) (choice, error) {
	c := choice{keep: make([]bool, 0, count)}
	err := visit(func(r *Record) bool {
		if len(c.keep) == 0 {
			c.first = r.Offset
		}
		c.last = r.Offset
		stays := t.Keep(r)
		c.keep = append(c.keep, stays)
		if stays {
			c.kept++
			c.nulls = c.nulls || r.Value == nil
		}
		return true
	})
	return c, err
}

// build adds what stays to b.
func (c *choice) build(visit func(func(*Record) bool) error, b *Builder, base int64) error {
	i := 0
	var full error
	err := visit(func(r *Record) bool {
		if c.keep[i] {
			full = b.AddAt(int32(r.Offset-base), *r)
		}
		i++
		return full == nil
	})
	if err == nil {
		err = full
	}
	return err
}

// appendEmpty appends the header of v without its records.
func appendEmpty(dst []byte, v View) []byte {
	h := append([]byte(nil), v[:HeaderSize]...)
	h[atAttributes+1] &^= attrCodec | attrDeleteHorizon
	clear(h[atCount:HeaderSize])
	copy(h[atBaseTimestamp:atMaxTimestamp], h[atMaxTimestamp:atProducerID])
	return append(dst, seal(h)...)
}
