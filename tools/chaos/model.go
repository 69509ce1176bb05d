package main

import (
	"fmt"

	"millrace/engine"
	"millrace/engine/batch"
)

type offset = engine.Offset

// record is what a user of a log knows of one of its records.
type record struct {
	key, value string
	null       bool
	ts         int64
	last       offset // of its batch
	safe       bool   // it was promised to survive a loss of power
	mayGo      bool   // compaction may have removed it
}

func (r record) String() string {
	if r.null {
		return fmt.Sprintf("%s=null@%d", r.key, r.ts)
	}
	return fmt.Sprintf("%s=%s@%d", r.key, r.value, r.ts)
}

// producer is an idempotent producer as it sees itself.
type producer struct {
	epoch     int16
	seq       int32 // of the next batch
	lastBatch []byte
	lastBase  offset
}

// model is one log as its user may expect it: what was acknowledged, what may be there besides, and where it begins and ends.
type model struct {
	topic     string
	partition int32
	id        [16]byte
	config    engine.Config

	maybe    bool // whether the log exists is not known: a Create or Delete has failed
	certain  bool // nothing has failed since the last look: all below is exact
	records  map[offset]record
	possible map[offset]map[string]bool // all that was ever tried at an offset and not certainly taken back
	start    offset                     // acknowledged
	mayStart offset                     // asked for, or allowed to retention, at most
	end      offset                     // if certain
	lowEnd   offset                     // the end may be as low as this
	epoch    engine.Epoch
	ends     map[engine.Epoch][2]int64 // what EpochEnd last answered; nil: not to be compared
	writers  map[int64]*producer
}

func newModel(topic string, partition int32, id [16]byte, c engine.Config) *model {
	return &model{
		topic: topic, partition: partition, id: id, config: c, certain: true, epoch: engine.NoEpoch,
		records: map[offset]record{}, possible: map[offset]map[string]bool{}, writers: map[int64]*producer{},
	}
}

func (m *model) String() string { return fmt.Sprintf("%s-%d", m.topic, m.partition) }

func (m *model) mayBe(o offset, r record) {
	if m.possible[o] == nil {
		m.possible[o] = map[string]bool{}
	}
	m.possible[o][r.String()] = true
}

// acked takes up an acknowledged batch. A synced ack covers all that lies below it.
func (m *model) acked(base offset, list []record) {
	for i, r := range list {
		r.last = base + offset(len(list)-1)
		m.mayBe(base+offset(i), r)
		m.records[base+offset(i)] = r
	}
	m.end = max(m.end, base+offset(len(list)))
	if m.config.Durability == engine.Sync {
		m.allSafe()
	}
}

func (m *model) allSafe() {
	for o, r := range m.records {
		r.safe = true
		m.records[o] = r
	}
	m.lowEnd = m.end
}

// safe tells whether all of the log was promised to survive a loss of power.
func (m *model) safe() bool {
	for _, r := range m.records {
		if !r.safe {
			return false
		}
	}
	return true
}

// emptyBelow tells that nothing between the start and o has to be there: compaction may have removed the segments, and the log begins with the next then.
func (m *model) emptyBelow(o offset) bool {
	for at, r := range m.records {
		if at >= m.start && at < o && !r.mayGo {
			return false
		}
	}
	return true
}

// dropFrom takes back what lies at or above o; uncertain says that it may still be there.
func (m *model) dropFrom(o offset, uncertain bool) {
	for at := range m.records {
		if at >= o {
			delete(m.records, at)
		}
	}
	m.lowEnd = min(m.lowEnd, o)
	if uncertain {
		return
	}
	for at := range m.possible {
		if at >= o {
			delete(m.possible, at)
		}
	}
}

// superseded marks what a pass of compaction may remove: records with a newer one of their key, and null values.
func (m *model) superseded() {
	newest := map[string]offset{}
	for o, r := range m.records {
		if at, ok := newest[r.key]; !ok || o > at {
			newest[r.key] = o
		}
	}
	for o, r := range m.records {
		if o < newest[r.key] || r.null {
			r.mayGo = true
			m.records[o] = r
		}
	}
}

// forgetProducers begins anew with all of them: who knows what of theirs is still there.
func (m *model) forgetProducers() {
	for _, p := range m.writers {
		p.forget()
	}
}

func (p *producer) forget() { p.epoch, p.seq, p.lastBatch = p.epoch+1, 0, nil }

// build makes the batch of some records.
func build(codec batch.Codec, list []record, opts ...batch.Option) []byte {
	b := batch.NewBuilder(codec, 0)
	for _, r := range list {
		x := batch.Record{Timestamp: r.ts, Key: []byte(r.key), Value: []byte(r.value)}
		if r.null {
			x.Value = nil
		}
		if err := b.Add(x); err != nil {
			panic(err)
		}
	}
	return b.Bytes(opts...)
}
