package engine

import (
	"fmt"
	"sync"

	"millrace/engine/batch"
)

// run gathers the batches of one write. It belongs to the holder of Log.mu, who has
// borrowed it: of thousands of logs that are written to in turn, a log's own would be
// in no cache when its turn comes.
type run struct {
	appends []*Append
	batches [][]byte
	bytes   int64
	records int64
	base    Offset // of the first batch
	end     Offset // after the last batch
	noted   bool   // the producers' table remembers what it was before
}

var runs = sync.Pool{New: func() any { return new(run) }}

func (r *run) reset() {
	clear(r.appends) // do not keep callers' memory alive
	clear(r.batches)
	r.appends, r.batches = r.appends[:0], r.batches[:0]
	r.bytes, r.records, r.noted = 0, 0, false
}

// write brings a list of appends into the log: as few file writes as rolls
// allow, normally one. Caller holds mu. Each append gets its own answer.
func (l *Log) write(first *Append) {
	l.mu.run = runs.Get().(*run)
	for a := first; a != nil; a = a.next {
		a.Start = l.Start()
		if err := l.gather(a); err != nil {
			a.Err = err
		}
	}
	l.flush()
	runs.Put(l.mu.run)
	l.mu.run = nil
}

// gather checks one append against the state of the log, stamps it, and adds
// it to the run. Caller holds mu.
func (l *Log) gather(a *Append) error {
	if err := l.refusal(); err != nil {
		return err
	}
	if err := l.wake(); err != nil {
		return err
	}
	c := l.config.Load()
	if h := l.home.Load(); c.Durability == PageCache && h.journal.Failed() != nil { // L4: nobody waits who would be told
		h.poison(l, h.journal.Failed())
		return l.poisonError()
	}
	if int64(len(a.Batch)) > c.SegmentBytes {
		return fmt.Errorf("%w: %d bytes, segment.bytes=%d", ErrTooLarge, len(a.Batch), c.SegmentBytes)
	}
	r := l.mu.run
	base := l.nextOffset()
	epoch := a.epoch
	if a.Follower {
		if Offset(a.Info.BaseOffset) < base { // L1
			return fmt.Errorf("%w: batch at %d, end at %d", ErrOffsetOrder, a.Info.BaseOffset, base)
		}
		base, epoch = Offset(a.Info.BaseOffset), Epoch(a.Info.LeaderEpoch) // a batch that tells none begins none
	} else if epoch == NoEpoch {
		epoch = l.Epoch()
	}
	if err := l.enterEpochOf(a, epoch, base); err != nil {
		return err
	}
	if known, err := l.checkSequence(a); known || err != nil {
		return err
	}
	if c.AppendTime && !a.Follower {
		a.LogAppendTime = l.now().UnixMilli()
		a.Info.MaxTimestamp = a.LogAppendTime
	}
	last := base + Offset(a.Info.LastOffsetDelta)
	if seg := l.mu.active; l.mustRoll(seg, c, seg.size.Load()+r.bytes, int64(len(a.Batch)), last, a.Info.MaxTimestamp) {
		if err := l.flush(); err != nil {
			return err
		}
		// Named after End also when a follower's batch leaves a gap: recovery takes
		// a closed segment that ends below the next one for torn. Only a gap too
		// wide for the segment's indexes gets into the name.
		at := l.End()
		if last-at > maxOffsetSpan {
			at = base
		}
		if err := l.roll(at); err != nil {
			return err
		}
	}
	l.stamp(a, base, epoch)
	a.Base = base
	if len(r.appends) == 0 {
		r.base = base
	}
	if a.Info.ProducerID >= 0 {
		if !r.noted {
			l.mu.producers.Begin()
			r.noted = true
		}
		l.mu.producers.Update(a.Info, int64(base), a.Info.MaxTimestamp)
	}
	r.appends = append(r.appends, a)
	r.batches = append(r.batches, a.Batch)
	r.bytes += int64(len(a.Batch))
	r.records += int64(a.Info.LastOffsetDelta) + 1
	r.end = last + 1
	return nil
}

// nextOffset is End with what the run holds already. Caller holds mu.
func (l *Log) nextOffset() Offset {
	if r := l.mu.run; len(r.appends) > 0 {
		return r.end
	}
	return l.End()
}

func (l *Log) stamp(a *Append, base Offset, epoch Epoch) {
	if a.Follower {
		return // R2: the leader's bytes
	}
	batch.Stamp(a.Batch, int64(base), int32(epoch))
	a.Info.BaseOffset, a.Info.LeaderEpoch = int64(base), int32(epoch)
	if a.LogAppendTime >= 0 {
		batch.StampAppendTime(a.Batch, a.LogAppendTime)
	}
}

// enterEpochOf begins the append's epoch if it is new. A leader's may not be
// old; a follower's may (messages of the old formats carry none).
func (l *Log) enterEpochOf(a *Append, epoch Epoch, base Offset) error {
	now := l.Epoch()
	if !a.Follower || epoch >= now {
		return l.enterEpoch(epoch, base)
	}
	if l.mu.replaying || !l.epochs.Above(int64(base)) { // replay brings back what lies below the newest epoch
		return nil
	}
	if err := l.epochs.TruncateEnd(int64(base) + 1); err != nil {
		return l.storageError("take back the leader epoch of a failed append", err)
	}
	l.setLatestEpoch()
	if epoch > l.Epoch() {
		return l.enterEpoch(epoch, base)
	}
	return nil
}

// checkSequence judges the batch of an idempotent producer. known means that
// the log has it already, and a has the answer.
func (l *Log) checkSequence(a *Append) (known bool, err error) {
	if a.Follower || a.Info.ProducerID < 0 {
		return false, nil
	}
	seen, err := l.mu.producers.Check(a.Info)
	if err != nil || seen == nil {
		return false, err
	}
	// The original may sit in this very run. It must be written before anybody
	// is told that the log has it.
	if err := l.flush(); err != nil {
		return false, err
	}
	a.Duplicate, a.Base = true, Offset(seen.Base)
	if l.config.Load().AppendTime {
		a.LogAppendTime = seen.Timestamp
	}
	// The newest ticket covers the original, whichever write that was.
	a.ticket, a.wait = l.mu.last, l.config.Load().Durability == Sync
	return true, nil
}

// flush writes the run with one call and makes it visible. If that fails, the
// segment and the producer state are as before, and all appends of the run get
// the error. Caller holds mu.
func (l *Log) flush() error {
	r := l.mu.run
	if len(r.appends) == 0 {
		return nil
	}
	defer r.reset()
	seg := l.mu.active
	pos := seg.size.Load()
	if err := l.writeAt(seg, pos); err != nil {
		if r.noted {
			l.mu.producers.Rollback()
		}
		for _, a := range r.appends {
			a.Err = err
		}
		return err
	}
	if r.noted {
		l.mu.producers.Commit()
	}
	l.publish(seg, pos)
	return nil
}

func (l *Log) writeAt(seg *segment, pos int64) error {
	r := l.mu.run
	f, err := seg.file()
	if err != nil {
		return l.storageError("append", err)
	}
	if len(r.batches) == 1 {
		_, err = f.WriteAt(r.batches[0], pos)
	} else {
		_, err = f.WriteVAt(r.batches, pos)
	}
	if err == nil {
		return nil
	}
	// Part of it may be there (a full disk). Nobody reads beyond size, but a
	// recovery would: cut it off. If that fails too, a later append would
	// bury the piece in the middle of the file, so there may be none.
	if cut := f.Truncate(pos); cut != nil {
		l.mu.failed = l.storageError("take back a failed append", cut)
		l.logger.Error("log takes no more appends: a failed write could not be taken back",
			"log", l.Dir(), "segment", seg.name(logSuffix), "write", err, "truncate", cut)
		return l.storageError("append", err)
	}
	// The cut must be on disk before the segment can be closed: all that End
	// counts may be synced already, so nothing else would sync this file again,
	// and a power cut would leave the piece at the end of a closed segment.
	if failed := f.Sync(); failed != nil {
		l.poison(failed)
	}
	return l.storageError("append", err)
}

// publish moves the rungs up over bytes that are in the file, and gives the
// journal its copy, in log order since mu is held.
func (l *Log) publish(seg *segment, pos int64) {
	r := l.mu.run
	c := l.config.Load()
	at := pos
	var indexErr error
	for _, a := range r.appends {
		i := &a.Info
		last := a.Base + Offset(i.LastOffsetDelta)
		if err := seg.noteBatch(at, len(a.Batch), last, i.MaxTimestamp, c.IndexInterval); err != nil {
			indexErr = err
		}
		at += int64(len(a.Batch))
	}
	seg.size.Store(at)
	if indexErr != nil {
		// No data is lost: look-ups walk further, and a roll or the next start
		// writes what can be written.
		l.logger.Warn("index entry not written", "log", l.Dir(), "segment", seg.name(indexSuffix), "error", indexErr)
	}
	if h := l.hints.Load(); h != nil {
		h.put(r.end, seg, at)
	}
	before := l.end.Swap(int64(r.end))
	if before > int64(r.base) {
		panic(fmt.Sprintf("engine: L1 broken in %s: append at %d, end was %d", l.Dir(), r.base, before))
	}
	if l.mu.replaying {
		return
	}
	wait := true
	if c.Durability == Sync {
		h := l.home.Load()
		l.mu.last = promise{h, h.journal.Add(&h.owner, l.epoch.Load(), before, int64(r.end), r.batches)}
	} else {
		wait = l.flushDue(c, r.records)
	}
	l.wrote(len(r.appends), r.bytes)
	l.counts.note(r)
	for _, a := range r.appends {
		a.ticket, a.wait = l.mu.last, wait
	}
}

// boundaries returns the hints, made when they are first asked for: a log that nobody
// reads has none, and its appends need not touch them.
func (l *Log) boundaries() *hints {
	h := l.hints.Load()
	for h == nil {
		l.hints.CompareAndSwap(nil, new(hints))
		h = l.hints.Load()
	}
	return h
}
