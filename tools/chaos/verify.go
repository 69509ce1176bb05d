package main

import (
	"errors"
	"math"
	"slices"

	"millrace/engine"
	"millrace/engine/batch"
)

// seen is a record as it was read.
type seen struct {
	offset
	record
}

// readAll reads [from, end) in pieces of at most most bytes and sees to it that batches and records ascend (L1) and are whole (L3).
func readAll(log *engine.Log, from, end offset, most int) ([]seen, error) {
	var all []seen
	last := offset(-1) // of the batch before
	for at := from; at < end; {
		s, err := log.Read(at, most, end, true)
		if err != nil {
			return all, err
		}
		data := make([]byte, s.Size())
		err = s.ReadInto(data)
		s.Release()
		if err != nil || len(data) == 0 {
			return all, err
		}
		before := at
		for len(data) > 0 {
			n, err := batch.Split(data)
			if errors.Is(err, batch.ErrShort) {
				break
			}
			if err != nil {
				return all, err
			}
			info, err := batch.CheckStored(data[:n])
			if err != nil {
				return all, err
			}
			if offset(info.BaseOffset) <= last && offset(info.LastOffset()) >= at {
				failf("L1: a batch at %d follows one that ends at %d", info.BaseOffset, last)
			}
			last = offset(info.LastOffset())
			for r, err := range batch.Records(data[:n]) {
				if err != nil {
					return all, err
				}
				if offset(r.Offset) >= at && offset(r.Offset) < end {
					all = append(all, seen{offset(r.Offset), record{key: string(r.Key), value: string(r.Value), null: r.Value == nil, ts: r.Timestamp, last: last}})
				}
			}
			at = max(at, last+1)
			data = data[n:]
		}
		if at == before {
			failf("reading makes no progress at %d", at)
		}
	}
	return all, nil
}

// read looks at a part of the log.
func (l *life) read(m *model, log *engine.Log) {
	start, end := log.Start(), log.End()
	if end < start { // a reset that has failed half-way; the log takes nothing any more
		if m.certain {
			failf("L2: %v is [%d, %d)", m, start, end)
		}
		return
	}
	from := start + offset(l.rng.Int64N(int64(end-start)+1))
	got, err := readAll(log, from, end, one(l.rng, 1, 100, 700, 1<<20))
	l.note("read %v from %d of [%d, %d): %d records", m, from, start, end, len(got))
	if l.hurt(m, "read", err) {
		return
	}
	l.compare(m, from, end, got, false)
	if _, err := log.Read(end+1, 100, end, true); !errors.Is(err, engine.ErrOutOfRange) {
		l.hurt(m, "read behind the end", errors.Join(err, errors.New("not refused as out of range")))
	}
}

// lookUp asks by time and holds the answers against what is read.
func (l *life) lookUp(m *model, log *engine.Log) {
	got, err := readAll(log, log.Start(), log.End(), 1<<20)
	if l.hurt(m, "read", err) {
		return
	}
	ts := l.clock.UnixMilli() - int64(l.rng.IntN(200_000))
	if len(got) > 0 && oneIn(l.rng, 2) {
		ts = got[l.rng.IntN(len(got))].ts + int64(l.rng.IntN(3)-1)
	}
	off, _, found, err := log.OffsetForTime(ts)
	l.note("look up %d in %v: %d, %v", ts, m, off, found)
	if l.hurt(m, "look-up", err) {
		return
	}
	i := slices.IndexFunc(got, func(s seen) bool { return s.ts >= ts })
	right := found == (i >= 0) && (!found || off == got[i].offset)
	if !right {
		failf("look-up of %d in %v: %d, %v, want the record at index %d of %d", ts, m, off, found, i, len(got))
	}
	newest := int64(math.MinInt64)
	for _, s := range got {
		newest = max(newest, s.ts)
	}
	_, ts, err = log.MaxTimestamp()
	if !l.hurt(m, "largest timestamp", err) && len(got) > 0 && ts != newest && !(ts > newest && (log.Start() > 0 || !m.certain)) { // that of the segment, as Kafka tells it; of one that a failed truncation has left too
		failf("the largest timestamp of %v is %d, want %d", m, ts, newest)
	}
}

// verifyAll looks at every log after a restart.
func (l *life) verifyAll(powerCut bool) {
	kept := l.logs[:0]
	for _, m := range l.logs {
		log := l.store.Log(m.topic, m.partition)
		if log == nil && m.maybe {
			continue
		}
		if log == nil {
			failf("%v is gone", m)
		}
		if log.ID().Topic != m.id {
			failf("%v has the id %x, want %x", m, log.ID().Topic, m.id)
		}
		m.maybe = false
		kept = append(kept, m)
		l.verify(m, log, powerCut)
		l.adopt(m, log, powerCut)
	}
	if got := len(l.store.Logs()); got != len(kept) {
		failf("%d logs, want %d", got, len(kept))
	}
	l.logs = kept
}

// verify holds the whole of a log against its model.
func (l *life) verify(m *model, log *engine.Log, powerCut bool) {
	start, end := log.Start(), log.End()
	if start > log.Durable() && m.certain || log.Durable() > end {
		failf("L2: %v has start %d, durable %d, end %d", m, start, log.Durable(), end)
	}
	if start < m.start || start > m.mayStart && !m.emptyBelow(start) {
		failf("%v starts at %d, want [%d, %d]", m, start, m.start, m.mayStart)
	}
	if m.certain && !powerCut && end != m.end {
		failf("%v ends at %d, want %d", m, end, m.end)
	}
	got, err := readAll(log, start, end, one(l.rng, 100, 700, 1<<20))
	if l.hurt(m, "read", err) {
		return
	}
	l.compare(m, start, end, got, powerCut)
}

// compare holds what was read of [from, to), the end of the log, against the model: nothing that was not there, everything that was
// acknowledged and may not have gone, and of every key the newest state.
func (l *life) compare(m *model, from, to offset, got []seen, powerCut bool) {
	have := map[offset]bool{}
	for _, s := range got {
		if !m.possible[s.offset][s.String()] {
			failf("%v holds %v at %d, which was never written there or was taken back", m, s.record, s.offset)
		}
		have[s.offset] = true
	}
	gone := map[string]offset{} // newest null value that compaction has removed
	for o, r := range m.records {
		if o < from || have[o] {
			continue
		}
		switch {
		case powerCut && !r.safe && (o >= to || m.config.Compact): // a compacted log may have gaps, so recovery takes none for a torn tail
		case !m.certain && m.config.Compact && o < m.mayStart: // a start that was refused by the disk holds in memory, and a pass goes by it
		case !r.mayGo:
			failf("%v: the acknowledged record %v at %d is gone; the log was read in [%d, %d): %d", m, r, o, from, to, offsetsOf(got))
		case r.null:
			gone[r.key] = max(gone[r.key], o+1)
		}
	}
	for _, s := range got {
		if s.offset < gone[s.key]-1 {
			failf("%v: %v at %d is back; the null value at %d that deleted it is gone", m, s.record, s.offset, gone[s.key]-1)
		}
	}
}

// adopt makes what was found after a restart the new truth.
func (l *life) adopt(m *model, log *engine.Log, powerCut bool) {
	exact := m.certain && (!powerCut || m.config.Durability == engine.Sync && m.safe())
	if exact && log.Epoch() != m.epoch {
		failf("%v is at epoch %d, want %d", m, log.Epoch(), m.epoch)
	}
	ends := map[engine.Epoch][2]int64{}
	for e := engine.Epoch(-1); e <= log.Epoch()+1; e++ {
		a, b := log.EpochEnd(e)
		ends[e] = [2]int64{int64(a), int64(b)}
		if was, ok := m.ends[e]; ok && exact && was != ends[e] {
			failf("%v: epoch %d ended in %v and ends in %v after the restart", m, e, was, ends[e])
		}
	}
	m.ends = ends
	for _, p := range m.writers {
		if !exact {
			p.forget()
		}
	}
	got, err := readAll(log, log.Start(), log.End(), 1<<20)
	if err != nil {
		failf("read %v: %v", m, err)
	}
	old := m.records
	m.records, m.possible = map[offset]record{}, map[offset]map[string]bool{}
	for o, r := range old {
		if o >= log.Start() && o < log.End() && r.mayGo && (r.safe || !powerCut) {
			m.records[o] = r // gone or not, the state of its key is what it says
		}
	}
	for _, s := range got {
		s.record.safe, s.record.mayGo = true, old[s.offset].mayGo
		m.records[s.offset] = s.record
		m.mayBe(s.offset, s.record)
	}
	m.certain = true
	m.start, m.mayStart, m.end, m.epoch = log.Start(), log.Start(), log.End(), log.Epoch()
}

func offsetsOf(got []seen) []offset {
	list := make([]offset, len(got))
	for i, s := range got {
		list[i] = s.offset
	}
	return list
}
