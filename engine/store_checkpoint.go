package engine

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"time"

	"millrace/engine/checkpoint"
	"millrace/engine/journal"
)

// Checkpoint writes the checkpoint files of all directories: up to where each log is
// synced in its segments, where it starts, and its high watermark. It first syncs
// what page-cache logs have not. The Store does so every CheckpointEvery.
func (s *Store) Checkpoint() error {
	var all error
	for _, d := range s.dirs {
		if d.offline() != nil {
			continue
		}
		if err := d.fullCheckpoint(); err != nil {
			all = errors.Join(all, fmt.Errorf("%s: %w", d.path, err))
		}
	}
	return all
}

func (d *dataDir) fullCheckpoint() error {
	if err := d.syncPageCache(); err != nil {
		return err
	}
	var all error
	for _, l := range d.logs() {
		all = errors.Join(all, l.snapshot(), l.writeIndexes(), l.syncIndexes())
	}
	return errors.Join(all, d.checkpoint(), d.writeHighMarks())
}

// syncPageCache syncs the logs that promise no sync, so that their recovery points
// move as well. All are asked for before the one wait: they share a round.
func (d *dataDir) syncPageCache() error {
	var last journal.Ticket
	for _, l := range d.logs() {
		if l.Config().Durability != PageCache || l.RecoveryPoint() >= l.End() {
			continue
		}
		if t, ok := l.askSync(d.journal); ok {
			last = t
		}
	}
	return d.journal.Wait(last)
}

// askSync makes the log's files part of the next round of j. ok is false if the log
// has moved to another journal meanwhile, or is closed.
func (l *Log) askSync(j *journal.Journal) (_ journal.Ticket, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	h := l.home.Load()
	if l.closed.Load() || h.journal != j {
		return journal.Ticket{}, false
	}
	l.mu.unflushed = 0
	return h.addSync().round, true
}

// writeIndexes hands index entries that are only in memory to the operating system:
// a recovery that knows the recovery point also has the entry near it.
func (l *Log) writeIndexes() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.refusal() != nil || l.mu.dormant {
		return nil
	}
	s := l.mu.active
	return errors.Join(s.index.Write(), s.times.Write())
}

func (d *dataDir) logs() []*Log {
	d.mu.Lock()
	defer d.mu.Unlock()
	list := make([]*Log, 0, len(d.mu.live))
	for _, l := range d.mu.live {
		list = append(list, l)
	}
	return list
}

func (d *dataDir) holds(l *Log) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.mu.live[checkpoint.TopicPartition(l.key())] == l
}

// checkpointFor is what a log calls before it takes something back or moves its
// start. The log's lock is held; only the log's atomics are read here.
func (d *dataDir) checkpointFor(l *Log) error {
	d.mu.Lock()
	d.mu.live[checkpoint.TopicPartition(l.key())] = l // it may be just opening
	d.mu.Unlock()
	return d.checkpoint()
}

// checkpoint writes recovery points and starts. Many that ask at once (all partitions
// of a broker that truncate) share a write: who finds that one began after
// his own question takes its result.
func (d *dataDir) checkpoint() error {
	mine := d.asked.Add(1)
	d.writing.Lock()
	defer d.writing.Unlock()
	if d.done.Load() >= mine {
		return d.lastErr
	}
	covers := d.asked.Load()
	points, starts := d.collect()
	d.lastErr = errors.Join(d.write(checkpoint.RecoveryPoints, points), d.write(checkpoint.LogStarts, starts), d.writeCleaned())
	d.done.Store(covers)
	return d.lastErr
}

// collect puts what the open logs know over what was read for those that are not open.
func (d *dataDir) collect() (points, starts checkpoint.Offsets) {
	d.mu.Lock()
	defer d.mu.Unlock()
	points, starts = maps.Clone(d.mu.points), maps.Clone(d.mu.starts)
	for key, l := range d.mu.live {
		points[key] = int64(l.checkpointPoint())
		delete(starts, key)
		// Also where a segment begins just there: the segments below it may come back with a loss of power, for nobody syncs the folder after a
		// deletion, and then nothing else says where the log begins (L5). So it is with 0 while a reset takes all segments away.
		if start := l.Start(); start > 0 || start != (*l.segments.Load())[0].base || l.ceiling.Load() != noLimit {
			starts[key] = int64(start)
		}
	}
	return points, starts
}

// write replaces a checkpoint file if it would say something new. Caller holds writing.
func (d *dataDir) write(name string, o checkpoint.Offsets) error {
	content := string(o.Encode())
	if d.written[name] == content {
		return nil
	}
	err := checkpoint.WriteFile(d.fs, filepath.Join(d.path, name), []byte(content))
	delete(d.written, name)
	if err == nil {
		d.written[name] = content
	}
	return err
}

// writeHighMarks writes replication-offset-checkpoint.
func (d *dataDir) writeHighMarks() error {
	marks := make(map[*Log]int64)
	for _, l := range d.logs() {
		marks[l] = int64(d.store.o.HighWatermark(l))
	}
	d.writing.Lock()
	defer d.writing.Unlock()
	for l, mark := range marks {
		if d.holds(l) && mark >= 0 {
			d.highMarks[checkpoint.TopicPartition(l.key())] = mark
		}
	}
	return d.write(checkpoint.HighWatermarks, d.highMarks)
}

// HighWatermark is what replication-offset-checkpoint said of a log when the Store was
// opened, or when it was last written: where a leader that starts may begin. ok is
// false if it says nothing.
func (s *Store) HighWatermark(l *Log) (mark Offset, ok bool) {
	for _, d := range s.dirs {
		if d.holds(l) {
			d.writing.Lock()
			mark, ok := d.highMarks[checkpoint.TopicPartition(l.key())]
			d.writing.Unlock()
			return Offset(mark), ok
		}
	}
	return 0, false
}

// noteRecycled is the journals' hook: recovery points have moved. Never blocks.
func (s *Store) noteRecycled() {
	select {
	case s.recycled <- struct{}{}:
	default:
	}
}

// wrote is the logs' hook. Batches too large for the journal move recovery points
// without ever recycling a file of it; without this a start after a crash would read
// all that was written since the last CheckpointEvery.
func (s *Store) wrote(appends int, bytes int64) {
	s.counts.writes.Add(1)
	s.counts.appends.Add(int64(appends))
	if s.unsaved.Add(bytes) >= checkpointBytes {
		s.unsaved.Store(0)
		s.noteRecycled()
	}
}

// keep does the Store's regular work. One goroutine: retention and checkpoints of one
// Store never run side by side.
func (s *Store) keep() {
	defer s.keeper.Done()
	retention, stopRetention := ticks(s.o.RetentionCheck)
	defer stopRetention()
	checkpoints, stopCheckpoints := ticks(s.o.CheckpointEvery)
	defer stopCheckpoints()
	space := (<-chan time.Time)(nil)
	if s.o.MinFree > 0 {
		ticker := time.NewTicker(spaceEvery)
		defer ticker.Stop()
		space = ticker.C
		s.lookAtSpace()
	}
	for {
		var err error
		select {
		case <-s.stop:
			return
		case <-retention:
			err = s.Retain()
		case <-space:
			s.lookAtSpace()
		case <-checkpoints:
			err = s.Checkpoint()
		case <-s.recycled:
			err = s.checkpointPoints()
			if !s.pause(recyclePause) {
				return
			}
		}
		if err != nil {
			s.log.Error("background work failed; it is tried again in its time", "error", err)
		}
	}
}

// ticks is a ticker, or one that never ticks.
func ticks(every time.Duration) (<-chan time.Time, func()) {
	if every <= 0 {
		return nil, func() {}
	}
	t := time.NewTicker(every)
	return t.C, t.Stop
}

// pause is false if the Store was closed meanwhile.
func (s *Store) pause(d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-s.stop:
		return false
	case <-t.C:
		return true
	}
}

func (s *Store) checkpointPoints() error {
	var all error
	for _, d := range s.dirs {
		if d.offline() != nil {
			continue
		}
		for _, l := range d.logs() {
			all = errors.Join(all, l.syncIndexes())
		}
		all = errors.Join(all, d.checkpoint())
	}
	return all
}

// Retain applies retention to every log, and forgets producers that were idle for
// their expiry time. The Store does so every RetentionCheck.
func (s *Store) Retain() error {
	var all error
	for _, l := range s.Logs() {
		select {
		case <-s.stop:
			return all
		default:
		}
		if _, err := l.Retain(s.o.Now()); err != nil && !errors.Is(err, ErrClosed) && !errors.Is(err, ErrPoisoned) {
			all = errors.Join(all, fmt.Errorf("retention of %s: %w", l.Dir(), err))
		}
	}
	return all
}
