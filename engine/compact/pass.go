package compact

import (
	"encoding/binary"
	"fmt"
	"time"

	"millrace/engine/batch"
)

// Newest is where a live producer's newest batch is. The batch that holds it is kept, if only as a bare header, so that the
// producer's next sequence number can be told from the log alone.
type Newest struct {
	Data  int64 // offset of the producer's newest record; -1 if its newest entry is a marker
	Epoch int16 // of that marker
}

// Options are the settings of one pass.
type Options struct {
	Now             time.Time
	DeleteRetention time.Duration    // how long a null value stays after the pass that first kept it
	Start           int64            // records below it are gone for readers
	End             int64            // records at or above it were not entered into the map and stay
	Aborted         []Aborted        // the aborted transactions of the range
	Producers       map[int64]Newest // the live ones
	LegacyBefore    time.Time        // a null value in a message set goes if its segment was written before this
	Recode          *Recode          // nil: every batch keeps its codec
}

// Stats counts what a pass did.
type Stats struct {
	RecordsIn, RecordsOut int64
	BytesIn, BytesOut     int64
	Null                  int64 // records without a key, which have no place in a compacted log
}

// Pass thins the entries of a range, which are given to it in order. It has one owner.
type Pass struct {
	o     Options
	keys  *Map
	txns  *txns
	still []Aborted
	last  int64
	goes  int64 // earliest horizon of what stayed, ms; 0 none
	Stats Stats
}

// NewPass begins a pass by the keys of a filled map.
func NewPass(keys *Map, o Options) *Pass {
	return &Pass{o: o, keys: keys, txns: newTxns(o.Aborted), last: -1}
}

// KeepLast tells that the batch with this offset stays, if only as a bare header: the last of a segment to be, whose end must not
// go back.
func (p *Pass) KeepLast(offset int64) { p.last = offset }

// NextHorizon is when the first of the null values and markers that stayed may go, in ms since 1970; 0 if none stayed.
func (p *Pass) NextHorizon() int64 { return p.goes }

// StillAborted are the aborted transactions, met since the last call, whose markers stay because readers may hold their records.
func (p *Pass) StillAborted() []Aborted {
	s := p.still
	p.still = nil
	return s
}

// Thin appends to dst what stays of one whole, checked entry, which may be nothing. modified is when its segment was written.
func (p *Pass) Thin(dst, entry []byte, modified time.Time) ([]byte, error) {
	f, err := readHead(entry)
	if err != nil {
		return dst, err
	}
	p.Stats.BytesIn += int64(len(entry))
	gone, mark := p.fate(f)
	now := p.o.Now.UnixMilli()
	t := batch.Thinning{Horizon: p.o.Now.Add(p.o.DeleteRetention).UnixMilli(), Mark: mark, KeepEmpty: p.mustStay(f), Level: p.o.Recode.thinLevel}
	nulls := !modified.Before(p.o.LegacyBefore)
	if f.magic >= 2 {
		nulls = f.horizon < 0 || now < f.horizon
	}
	waits := false // something stays that goes after the horizon
	t.Keep = func(r *batch.Record) bool {
		p.Stats.RecordsIn++
		stays := !gone && (f.control || p.keep(r, nulls))
		waits = waits || stays && (mark || !f.control && r.Value == nil)
		return stays
	}
	before := len(dst)
	dst, kept, err := batch.Thin(dst, entry, &t)
	if err != nil {
		return dst, err
	}
	if dst, err = p.recode(dst, before); err != nil {
		return dst, err
	}
	p.Stats.RecordsOut += int64(kept)
	p.Stats.BytesOut += int64(len(dst) - before)
	if waits {
		p.noteHorizon(dst[before:])
	}
	return dst, nil
}

// noteHorizon remembers the earliest horizon.
func (p *Pass) noteHorizon(out []byte) {
	if len(out) < batch.HeaderSize {
		return
	}
	if v := batch.View(out); v.Magic() >= 2 && v.HasDeleteHorizon() && (p.goes == 0 || v.BaseTimestamp() < p.goes) {
		p.goes = v.BaseTimestamp()
	}
}

// keep tells whether a record stays; nulls, whether one with a null value may.
func (p *Pass) keep(r *batch.Record, nulls bool) bool {
	switch {
	case r.Offset < p.o.Start:
		return false
	case r.Offset >= p.o.End:
		return true
	case r.Key == nil:
		p.Stats.Null++
		return false
	}
	newest, ok := p.keys.Newest(r.Key)
	if ok && r.Offset < newest {
		return false
	}
	return r.Value != nil || nulls
}

// fate tells whether all records of an entry go, and whether a marker gets the horizon after which it goes.
func (p *Pass) fate(f head) (gone, mark bool) {
	switch {
	case f.magic < 2 || !f.transactional && !f.control:
		return false, false
	case !f.control:
		return p.txns.data(f.producer, f.last), false
	case !f.marker:
		return false, false
	}
	empty, still := p.txns.marker(f.producer, f.last, f.commit)
	if still != nil {
		p.still = append(p.still, *still)
	}
	return empty && f.horizon >= 0 && f.horizon <= p.o.Now.UnixMilli(), empty
}

// mustStay tells whether an entry stays although it may be empty.
func (p *Pass) mustStay(f head) bool {
	if f.base <= p.last && p.last <= f.last {
		return true
	}
	n, live := p.o.Producers[f.producer]
	if !live || f.producer < 0 {
		return false
	}
	if n.Data >= 0 {
		return f.last == n.Data
	}
	return f.control && f.epoch == n.Epoch
}

// fill enters the keys of an entry's records at or above from; false: m is full.
func (m *Map) fill(entry []byte, from int64) (bool, error) {
	for r, err := range batch.Records(entry) {
		if err != nil {
			return false, err
		}
		if r.Offset < from || r.Key == nil {
			continue
		}
		if !m.Put(r.Key, r.Offset) {
			return false, nil
		}
	}
	return true, nil
}

// Filler enters the keys of a range into a map: of records only, and of those that were not aborted.
type Filler struct {
	keys *Map
	from int64
	txns *txns
}

// NewFiller enters what lies at or above from.
func NewFiller(keys *Map, from int64, aborted []Aborted) *Filler {
	return &Filler{keys: keys, from: from, txns: newTxns(aborted)}
}

// Add enters one whole, checked entry. False: the map is full, and what is at or above its End is left to the next pass.
func (f *Filler) Add(entry []byte) (bool, error) {
	h, err := readHead(entry)
	if err != nil {
		return false, err
	}
	ok := true
	switch {
	case h.control:
		if h.marker {
			f.txns.marker(h.producer, h.last, h.commit)
		}
	case h.transactional && f.txns.data(h.producer, h.last):
	case h.last >= f.from:
		ok, err = f.keys.fill(entry, f.from)
	}
	if ok && err == nil && h.last+1 > f.from {
		f.keys.end = max(f.keys.end, h.last+1)
	}
	return ok, err
}

// head is what the rules look at in an entry's header.
type head struct {
	magic         int8
	base, last    int64
	producer      int64
	epoch         int16
	transactional bool
	control       bool
	marker        bool // a control batch that ends a transaction
	commit        bool
	horizon       int64 // ms; -1 none
}

// Control record types (the key's second int16).
const (
	controlAbort  = 0
	controlCommit = 1
)

func readHead(entry []byte) (head, error) {
	info, err := batch.CheckStored(entry)
	if err != nil {
		return head{}, err
	}
	h := head{magic: info.Magic, base: info.BaseOffset, last: info.LastOffset(), producer: -1, horizon: -1}
	if info.Magic < 2 {
		return h, nil
	}
	v := batch.View(entry)
	h.producer, h.epoch = v.ProducerID(), v.ProducerEpoch()
	h.transactional, h.control = v.IsTransactional(), v.IsControl()
	if v.HasDeleteHorizon() {
		h.horizon = v.BaseTimestamp()
	}
	if !h.control {
		return h, nil
	}
	for r, err := range batch.Records(entry) {
		if err != nil {
			return h, err
		}
		if len(r.Key) < 4 {
			return h, fmt.Errorf("control record at offset %d has a key of %d bytes, at least 4 are due", r.Offset, len(r.Key))
		}
		kind := binary.BigEndian.Uint16(r.Key[2:])
		h.marker, h.commit = kind == controlAbort || kind == controlCommit, kind == controlCommit
		break
	}
	return h, nil
}
