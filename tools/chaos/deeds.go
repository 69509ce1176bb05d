package main

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"millrace/engine"
	"millrace/engine/batch"
	"millrace/engine/compact"
	"millrace/engine/producers"
)

// deeds are what a user can do, each as often as its weight says.
var deeds = []struct {
	weight int
	do     func(*life, *model, *engine.Log)
}{
	{30, (*life).append},
	{8, (*life).appendRun},
	{10, (*life).produce},
	{3, (*life).produceWrongly},
	{4, (*life).follow},
	{4, (*life).truncate},
	{3, (*life).setStart},
	{1, (*life).reset},
	{3, (*life).setEpoch},
	{5, (*life).clean},
	{5, (*life).retain},
	{3, (*life).sync},
	{3, (*life).configure},
	{2, (*life).checkpoint},
	{4, (*life).move},
	{2, (*life).remove},
	{8, (*life).read},
	{3, (*life).lookUp},
}

const mostLogs = 6

func (l *life) deed() {
	if len(l.logs) == 0 || len(l.logs) < mostLogs && oneIn(l.rng, 20) {
		l.create()
		return
	}
	total := 0
	for _, d := range deeds {
		total += d.weight
	}
	m := l.logs[l.rng.IntN(len(l.logs))]
	n := l.rng.IntN(total)
	for _, d := range deeds {
		if n -= d.weight; n >= 0 {
			continue
		}
		log := l.store.Log(m.topic, m.partition)
		if m.maybe {
			return
		}
		if log == nil {
			failf("%v is not there", m)
		}
		d.do(l, m, log)
		return
	}
}

// hurt takes an error of a deed: without a fault it is a finding, with one the log's state is no longer exact.
func (l *life) hurt(m *model, what string, err error) bool {
	if err == nil {
		return false
	}
	l.note("%s of %v: %v", what, m, err)
	if l.disk == nil || !l.failed && !l.disk.Fired() {
		failf("%s of %v: %v", what, m, err)
	}
	l.failed = true
	m.certain = false
	return true
}

func (l *life) create() {
	taken := map[string]bool{}
	for _, m := range l.logs {
		taken[m.topic] = true
	}
	var topic string
	for i := 0; topic == "" || taken[topic]; i++ {
		topic = fmt.Sprintf("t%d", i)
	}
	l.ids++
	spec := engine.LogSpec{Topic: topic, TopicID: [16]byte{l.ids, 15: 1}, Config: drawConfig(l.rng), New: true}
	var fresh []*model
	for p := range int32(1 + l.rng.IntN(2)) {
		spec.Partitions = append(spec.Partitions, p)
		fresh = append(fresh, newModel(topic, p, spec.TopicID, spec.Config))
	}
	l.logs = append(l.logs, fresh...)
	l.note("create %s of %d: %+v", topic, len(fresh), spec.Config)
	err := l.store.Create(spec)
	for _, m := range fresh {
		if m.maybe = l.hurt(m, "create", err); !m.maybe {
			m.epoch = l.store.Log(topic, m.partition).Epoch()
		}
	}
}

func (l *life) remove(m *model, _ *engine.Log) {
	for _, x := range l.logs {
		if x.topic == m.topic && x.maybe {
			return
		}
	}
	l.note("delete %s", m.topic)
	err := l.store.Delete(m.topic)
	kept := l.logs[:0]
	for _, x := range l.logs {
		if x.topic == m.topic {
			if x.maybe = l.hurt(x, "delete", err); !x.maybe {
				if l.store.Log(x.topic, x.partition) != nil {
					failf("%v is still there after Delete", x)
				}
				continue
			}
		}
		kept = append(kept, x)
	}
	l.logs = kept
}

func (l *life) newRecords(n int) []record {
	list := make([]record, n)
	for i := range list {
		l.serial++
		l.clock = l.clock.Add(time.Duration(l.rng.IntN(2000)) * time.Millisecond)
		list[i] = record{
			key: fmt.Sprintf("k%d", l.rng.IntN(9)), value: fmt.Sprintf("%d%s", l.serial, strings.Repeat("x", l.rng.IntN(90))),
			ts: l.clock.UnixMilli() - int64(l.rng.IntN(5000)),
		}
		if oneIn(l.rng, 6) {
			list[i].null, list[i].value = true, ""
		}
	}
	return list
}

func (l *life) codec() batch.Codec {
	return one(l.rng, batch.None, batch.None, batch.None, batch.LZ4, batch.Snappy, batch.Zstd, batch.Gzip)
}

// request is one Append of a leader.
func request(data []byte) *engine.Append {
	info, err := batch.Check(data, &batch.Rules{})
	if err != nil {
		failf("our own batch: %v", err)
	}
	return &engine.Append{Batch: data, Info: info}
}

func (l *life) append(m *model, log *engine.Log) { l.appends(m, log, 1) }

// appendRun has several batches in line, which one write and one sync may cover.
func (l *life) appendRun(m *model, log *engine.Log) { l.appends(m, log, 2+l.rng.IntN(4)) }

func (l *life) appends(m *model, log *engine.Log, n int) {
	off := l.store.OfflineDirs()[l.store.DirOf(log)]
	epoch := max(log.Epoch(), 0)
	sets, requests := make([][]record, n), make([]*engine.Append, n)
	at := log.End()
	for i := range sets {
		sets[i] = l.newRecords(1 + l.rng.IntN(4))
		requests[i] = request(build(l.codec(), sets[i]))
		for j, r := range sets[i] {
			m.mayBe(at+offset(j), r)
		}
		at += offset(len(sets[i]))
		log.Enqueue(requests[i], epoch)
	}
	l.note("append %d batches to %v at %d", n, m, log.End())
	for i, a := range requests {
		err := log.Write(a)
		if err == nil {
			for j, r := range sets[i] { // a refused one before it has moved it
				m.mayBe(a.Base+offset(j), r)
			}
			err = a.Wait()
		}
		if l.hurt(m, "append", err) {
			continue
		}
		if off != nil {
			failf("L4: %v acknowledged an append although its directory is offline: %v", m, off)
		}
		if m.certain && a.Base != m.end {
			failf("%v gave offset %d to a batch, want %d", m, a.Base, m.end)
		}
		m.acked(a.Base, sets[i])
	}
	m.epoch = log.Epoch()
	m.ends = nil
}

// produce sends the next batch of an idempotent producer, or its last one again.
func (l *life) produce(m *model, log *engine.Log) {
	id := int64(1 + l.rng.IntN(3))
	p := m.writers[id]
	if p == nil {
		p = &producer{}
		m.writers[id] = p
	}
	if p.lastBatch != nil && oneIn(l.rng, 3) {
		l.note("producer %d sends its last batch to %v again", id, m)
		a := request(append([]byte(nil), p.lastBatch...))
		if err := log.Append(a, max(log.Epoch(), 0)); l.hurt(m, "append", err) {
			m.forgetProducers()
		} else if !a.Duplicate || a.Base != p.lastBase {
			failf("%v took a batch of producer %d twice: duplicate %v, base %d, want %d", m, id, a.Duplicate, a.Base, p.lastBase)
		}
		return
	}
	list := l.newRecords(1 + l.rng.IntN(3))
	for i := range list {
		m.mayBe(log.End()+offset(i), list[i])
	}
	l.note("producer %d epoch %d sends %d to %v at %d", id, p.epoch, p.seq, m, log.End())
	a := request(build(l.codec(), list, batch.Producer(id, p.epoch, p.seq)))
	sent := append([]byte(nil), a.Batch...)
	if err := log.Append(a, max(log.Epoch(), 0)); l.hurt(m, "append", err) {
		m.forgetProducers()
		return
	}
	if a.Duplicate || m.certain && a.Base != m.end {
		failf("%v: duplicate %v, base %d, want %d", m, a.Duplicate, a.Base, m.end)
	}
	m.acked(a.Base, list)
	p.seq += int32(len(list))
	p.lastBatch, p.lastBase = sent, a.Base
	m.epoch, m.ends = log.Epoch(), nil
}

// produceWrongly leaves a gap, or comes with a former epoch: both are refused and change nothing.
func (l *life) produceWrongly(m *model, log *engine.Log) {
	for id, p := range m.writers {
		if len(m.writers) > 1 && oneIn(l.rng, 2) || p.lastBatch == nil || !m.certain {
			continue
		}
		epoch, seq, want := p.epoch, p.seq+7, producers.OutOfOrder
		if p.epoch > 0 && oneIn(l.rng, 2) {
			epoch, seq, want = p.epoch-1, p.seq, producers.FencedEpoch
		}
		end := log.End()
		l.note("producer %d epoch %d sends %d to %v, which must be refused", id, epoch, seq, m)
		err := log.Append(request(build(batch.None, l.newRecords(1), batch.Producer(id, epoch, seq))), max(log.Epoch(), 0))
		var refused *producers.SequenceError
		if !errors.As(err, &refused) || refused.Kind != want {
			if l.hurt(m, "append", err) {
				return
			}
			failf("%v took sequence %d epoch %d of producer %d, which is at %d epoch %d", m, seq, epoch, id, p.seq, p.epoch)
		}
		if log.End() != end {
			failf("%v: a refused batch moved the end", m)
		}
		return
	}
}

// follow appends as a follower does: the offsets are the leader's, with a gap.
func (l *life) follow(m *model, log *engine.Log) {
	list := l.newRecords(1 + l.rng.IntN(3))
	base := log.End() + offset(l.rng.IntN(4))
	data := build(l.codec(), list)
	batch.Stamp(data, int64(base), int32(max(log.Epoch(), 0)+engine.Epoch(l.rng.IntN(2))))
	info, err := batch.CheckStored(data)
	if err != nil {
		failf("our own batch: %v", err)
	}
	for i, r := range list {
		m.mayBe(base+offset(i), r)
	}
	l.note("follow %v at %d", m, base)
	if l.hurt(m, "follow", log.Append(&engine.Append{Batch: data, Info: info, Follower: true}, engine.NoEpoch)) {
		return
	}
	m.acked(base, list)
	m.epoch, m.ends = log.Epoch(), nil
}

func (l *life) truncate(m *model, log *engine.Log) {
	o := max(0, log.End()-offset(l.rng.IntN(12)))
	if oneIn(l.rng, 10) {
		o = offset(l.rng.IntN(int(log.End()) + 1))
	}
	start, end := log.Start(), log.End()
	l.note("truncate %v, [%d, %d), to %d", m, start, end, o)
	m.ends = nil
	if o >= end {
		if l.hurt(m, "truncate", log.TruncateTo(o)) || !m.certain {
			return
		}
		if log.End() != end {
			failf("truncation to %d of %v moved the end %d to %d", o, m, end, log.End())
		}
		return
	}
	m.forgetProducers()
	kept := offset(0) // whole batches below o stay
	for at, r := range m.records {
		if at >= start && r.last < o && !r.mayGo {
			kept = max(kept, r.last+1)
		}
	}
	if err := log.TruncateTo(o); l.hurt(m, "truncate", err) {
		m.dropFrom(min(o, kept), true)
		m.start, m.mayStart = min(m.start, o), max(m.mayStart, o)
		return
	}
	// Where nothing has to be below o, the log may have begun above it already, and begins anew at o then.
	if m.certain && (log.End() > max(o, log.Start()) || log.End() < kept && log.Start() < kept || log.Start() > start && kept > 0) {
		failf("truncation of %v, [%d, %d), to %d left [%d, %d); what lies below %d should stay", m, start, end, o, log.Start(), log.End(), kept)
	}
	m.dropFrom(log.End(), false)
	m.end, m.start = log.End(), min(m.start, log.Start())
	m.mayStart = max(m.start, min(m.mayStart, m.end))
	m.epoch = log.Epoch()
}

func (l *life) setStart(m *model, log *engine.Log) {
	o := min(log.End(), log.Start()+offset(l.rng.IntN(15)))
	l.note("start of %v to %d", m, o)
	m.mayStart = max(m.mayStart, o)
	if l.hurt(m, "setStart", log.SetStart(o)) {
		return
	}
	m.start = max(m.start, o)
	m.ends = nil
}

func (l *life) reset(m *model, log *engine.Log) {
	o := max(0, log.End()+offset(l.rng.IntN(20)-8))
	l.note("reset %v, [%d, %d), to %d", m, log.Start(), log.End(), o)
	m.forgetProducers()
	m.ends = nil
	clear(m.records)
	m.lowEnd = 0
	m.start, m.mayStart = min(m.start, o), max(m.mayStart, o)
	if l.hurt(m, "reset", log.ResetTo(o)) {
		return
	}
	clear(m.possible)
	m.start, m.mayStart, m.end, m.lowEnd, m.epoch = o, o, o, o, log.Epoch()
}

func (l *life) setEpoch(m *model, log *engine.Log) {
	e := max(log.Epoch(), -1) + 1 + engine.Epoch(l.rng.IntN(2))
	l.note("epoch of %v to %d", m, e)
	m.ends = nil
	if l.hurt(m, "setEpoch", log.SetEpoch(e)) {
		return
	}
	if log.Epoch() != e {
		failf("epoch of %v is %d, want %d", m, log.Epoch(), e)
	}
	m.epoch = e
}

func (l *life) clean(m *model, log *engine.Log) {
	if !m.config.Compact {
		return
	}
	l.note("clean %v", m)
	m.superseded()
	moving := len(l.store.Moves()) > 0 // one that a crash cut off and the start took up
	_, err := log.Clean(engine.Cleaning{Keys: compact.NewMap(one[int64](l.rng, 4<<10, 64<<10)), Now: l.clock})
	if !moving || !overtaken(err) {
		l.hurt(m, "clean", err)
	}
	l.verify(m, log, false)
}

func (l *life) retain(m *model, log *engine.Log) {
	if oneIn(l.rng, 8) {
		l.clock = l.clock.Add(time.Duration(l.rng.IntN(90)) * time.Minute)
	}
	before, start := log.Size(), log.Start()
	l.note("retain %v, [%d, %d), %d bytes", m, start, log.End(), before)
	m.mayStart = max(m.mayStart, log.Safe())
	n, err := log.Retain(l.clock)
	if l.hurt(m, "retain", err) {
		return
	}
	c := m.config
	if m.certain && (!c.Delete && log.Start() != start || log.Start() > m.mayStart || n == 0 && log.Start() != start ||
		c.RetentionAge < 0 && c.RetentionBytes < 0 && log.Start() != start) {
		failf("retention of %v moved the start from %d to %d, %d segments", m, start, log.Start(), n)
	}
	if c.RetentionAge < 0 && c.RetentionBytes >= 0 && log.Start() != start && log.Size() < c.RetentionBytes && m.certain {
		failf("retention by size left %d of %d bytes of %v", log.Size(), before, m)
	}
	if m.certain { // a start that was refused by the disk is there in memory
		m.start = max(m.start, log.Start())
	}
	m.ends = nil
}

func (l *life) sync(m *model, log *engine.Log) {
	l.note("sync %v", m)
	if !l.hurt(m, "sync", log.Sync()) {
		m.allSafe()
	}
}

// configure changes the settings of the log's topic while it is open.
func (l *life) configure(m *model, _ *engine.Log) {
	c := drawConfig(l.rng)
	l.note("configure %s: %+v", m.topic, c)
	for _, x := range l.logs {
		if x.topic == m.topic {
			x.config = c
			if log := l.store.Log(x.topic, x.partition); log != nil {
				shown := log.Safe()
				if log.SetConfig(c); log.Safe() < shown {
					failf("L5: readers of %v ended at %d and end at %d with other settings", x, shown, log.Safe())
				}
			}
		}
	}
}

func (l *life) checkpoint(m *model, _ *engine.Log) {
	l.note("checkpoint")
	l.hurt(m, "checkpoint", l.store.Checkpoint())
}

// move takes the log to another directory, and waits for it.
func (l *life) move(m *model, log *engine.Log) {
	to := l.dirs[l.rng.IntN(len(l.dirs))]
	l.note("move %v from %s to %s", m, l.store.DirOf(log), to)
	if l.hurt(m, "move", l.store.Move(m.topic, m.partition, to)) {
		return
	}
	for begun := time.Now(); len(l.store.Moves()) > 0; time.Sleep(50 * time.Microsecond) {
		if time.Since(begun) > 30*time.Second {
			failf("a move of %v to %s does not end", m, to)
		}
	}
	if l.store.DirOf(log) != to {
		l.hurt(m, "move", errors.New("it did not move"))
	}
}
