package engine

import (
	"cmp"
	"errors"
	"maps"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"millrace/engine/checkpoint"
	"millrace/engine/compact"
)

// CleanerConfig says how a Store compacts the logs that have cleanup.policy=compact. Kafka's key of each field is named beside it.
type CleanerConfig struct {
	Threads        int           // log.cleaner.threads; 0: nothing is compacted
	Memory         int64         // log.cleaner.dedupe.buffer.size: bytes for the keys of all threads together; taken only during a pass
	BytesPerSecond float64       // log.cleaner.io.max.bytes.per.second: read and written, all threads together; <= 0: no limit
	Backoff        time.Duration // log.cleaner.backoff.ms: how often a look is taken when nothing is due
}

// DefaultCleaner is Kafka's default.
func DefaultCleaner() CleanerConfig {
	return CleanerConfig{Threads: 1, Memory: 128 << 20, Backoff: 15 * time.Second}
}

// Validate returns a *ConfigError for the first setting out of its range.
func (c *CleanerConfig) Validate() error {
	switch {
	case c.Threads < 0:
		return &ConfigError{"log.cleaner.threads", c.Threads, "at least 0"}
	case c.Memory < 1<<20:
		return &ConfigError{"log.cleaner.dedupe.buffer.size", c.Memory, "at least 1048576"}
	case c.Backoff < 0:
		return &ConfigError{"log.cleaner.backoff.ms", c.Backoff.Milliseconds(), "at least 0"}
	}
	return nil
}

// CleanerStats are figures of a Store's compaction since its start, and of now.
type CleanerStats struct {
	Passes       int64
	BytesRead    int64 // of segments that were thinned
	BytesWritten int64
	RecordsRead  int64
	RecordsKept  int64
	Running      int     // threads that live
	Missing      int     // threads that should live and do not
	Uncleanable  int     // logs whose last pass failed; they are tried again later
	MaxDirty     float64 // largest dirty ratio at the last look
	LastPass     time.Duration
}

// minCleanBackoff keeps a Backoff of 0 from burning a processor.
const minCleanBackoff = 100 * time.Millisecond

// cleanRetry is how long a log whose pass failed is left alone, so that it does not keep the others waiting.
const cleanRetry = 10 * time.Minute

// cleaner compacts the logs of a Store. A log that cannot be cleaned is reported, left alone for a while, and stops no other.
type cleaner struct {
	store *Store
	wake  chan struct{} // cap 1: settings have changed
	alive sync.WaitGroup

	mu struct {
		sync.Mutex
		config  CleanerConfig
		running int
		busy    map[*Log]bool
		failed  map[*Log]time.Time // until when they are left alone
		stats   CleanerStats
		free    time.Time // when the limit on bytes allows the next ones
	}
	closed atomic.Bool
}

func newCleaner(s *Store, c CleanerConfig) *cleaner {
	cl := &cleaner{store: s, wake: make(chan struct{}, 1)}
	cl.mu.config, cl.mu.busy, cl.mu.failed = c, map[*Log]bool{}, map[*Log]time.Time{}
	cl.grow()
	return cl
}

// SetCleaner changes how the Store compacts, at once.
func (s *Store) SetCleaner(c CleanerConfig) error {
	if err := c.Validate(); err != nil {
		return err
	}
	s.cleaner.mu.Lock()
	s.cleaner.mu.config = c
	s.cleaner.mu.Unlock()
	s.cleaner.grow()
	select {
	case s.cleaner.wake <- struct{}{}:
	default:
	}
	return nil
}

// CleanerStats returns the figures of compaction.
func (s *Store) CleanerStats() CleanerStats {
	s.cleaner.mu.Lock()
	defer s.cleaner.mu.Unlock()
	st := s.cleaner.mu.stats
	st.Running, st.Uncleanable = s.cleaner.mu.running, len(s.cleaner.mu.failed)
	st.Missing = max(0, s.cleaner.mu.config.Threads-st.Running)
	return st
}

// grow starts the threads that are missing. Those too many end by themselves.
func (c *cleaner) grow() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for ; c.mu.running < c.mu.config.Threads && !c.closed.Load(); c.mu.running++ {
		c.alive.Go(c.run) // ends with the Store, or when the number of threads is lowered
	}
}

func (c *cleaner) close() {
	c.closed.Store(true)
	c.alive.Wait()
}

func (c *cleaner) run() {
	for {
		c.mu.Lock()
		if c.closed.Load() || c.mu.running > c.mu.config.Threads {
			c.mu.running--
			c.mu.Unlock()
			return
		}
		backoff := max(c.mu.config.Backoff, minCleanBackoff)
		c.mu.Unlock()
		if l, dirt := c.pick(); l != nil {
			c.clean(l, dirt)
			continue
		}
		if !c.rest(backoff) {
			c.mu.Lock()
			c.mu.running--
			c.mu.Unlock()
			return
		}
	}
}

// rest is false when the Store is closed.
func (c *cleaner) rest(d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-c.store.stop:
		return false
	case <-c.wake:
	case <-t.C:
	}
	return true
}

// pick takes the log that needs a pass most, if any does: first what is overdue, then the dirtiest.
func (c *cleaner) pick() (*Log, Dirt) {
	now := c.store.o.Now()
	table := *c.store.table.Load()
	c.forgetFailed(table)
	var best *Log
	var bestDirt Dirt
	var bestOverdue bool
	most := 0.0
	for _, l := range table {
		config := l.config.Load()
		if !config.Compact || !c.mayClean(l, now) {
			continue
		}
		d, err := l.Dirt(now)
		if err != nil {
			c.note(l, err)
			continue
		}
		most = max(most, d.Ratio())
		overdue := d.Expired || d.Dirty > 0 && now.Sub(d.Oldest) > config.CompactWithin
		if !overdue && (d.Dirty == 0 || d.Ratio() <= config.DirtyRatio && config.DirtyRatio > 0) {
			continue
		}
		if best == nil || overdue && !bestOverdue || overdue == bestOverdue && cmp.Compare(d.Ratio(), bestDirt.Ratio()) > 0 {
			best, bestDirt, bestOverdue = l, d, overdue
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mu.stats.MaxDirty = most
	if best == nil || c.mu.busy[best] {
		return nil, Dirt{}
	}
	c.mu.busy[best] = true
	return best, bestDirt
}

// forgetFailed drops what is noted of logs that are gone, or are not compacted any more.
func (c *cleaner) forgetFailed(table map[checkpoint.TopicPartition]*Log) {
	c.mu.Lock()
	defer c.mu.Unlock()
	maps.DeleteFunc(c.mu.failed, func(l *Log, _ time.Time) bool {
		return table[checkpoint.TopicPartition(l.key())] != l || !l.config.Load().Compact
	})
}

func (c *cleaner) mayClean(l *Log, now time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mu.busy[l] || l.closed.Load() {
		return false
	}
	until, failed := c.mu.failed[l]
	if failed && now.Before(until) {
		return false
	}
	delete(c.mu.failed, l)
	return true
}

// clean runs passes over one log until the map has held all of it.
func (c *cleaner) clean(l *Log, d Dirt) {
	defer func() {
		c.mu.Lock()
		delete(c.mu.busy, l)
		c.mu.Unlock()
	}()
	c.mu.Lock()
	share := c.mu.config.Memory / int64(max(c.mu.config.Threads, 1))
	c.mu.Unlock()
	// A key takes 24 bytes of the map, and seldom less in the log.
	keys := compact.NewMap(min(share, max(d.Dirty, 64<<10)))
	for !c.closed.Load() {
		begun := time.Now()
		r, err := l.Clean(Cleaning{Keys: keys, Now: c.store.o.Now(), Throttle: c.throttle})
		if err != nil {
			c.note(l, err)
			return
		}
		c.count(r, time.Since(begun))
		if err := c.store.writeFirstDirty(l); err != nil {
			c.store.log.Warn("cleaner checkpoint not written; the next start looks at more", "log", l.Dir(), "error", err)
		}
		if r.RecordsIn > 0 {
			c.store.log.Debug("log compacted", "log", l.Dir(), "from", r.From, "to", r.To, "records", r.RecordsIn, "kept", r.RecordsOut,
				"bytes", r.BytesIn, "left", r.BytesOut, "took", time.Since(begun).Round(time.Millisecond).String())
		}
		if r.Whole || r.NothingDirty {
			return
		}
	}
}

func (c *cleaner) count(r CleanResult, took time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	st := &c.mu.stats
	st.Passes++
	st.BytesRead, st.BytesWritten = st.BytesRead+r.BytesIn, st.BytesWritten+r.BytesOut
	st.RecordsRead, st.RecordsKept = st.RecordsRead+r.RecordsIn, st.RecordsKept+r.RecordsOut
	st.LastPass = took
}

// note deals with a pass that did not end well.
func (c *cleaner) note(l *Log, err error) {
	switch {
	case errors.Is(err, errCut), errors.Is(err, ErrCleaning), errors.Is(err, ErrClosed), errors.Is(err, errStopped):
		return // another time, or never
	}
	c.mu.Lock()
	c.mu.failed[l] = c.store.o.Now().Add(cleanRetry)
	c.mu.Unlock()
	if !errors.Is(err, ErrPoisoned) { // that was said when it happened
		c.store.log.Error("log cannot be compacted; it is tried again in a while, the others go on", "topic", l.Topic(), "partition", l.Partition(),
			"again", cleanRetry.String(), "error", err)
	}
}

// errStopped ends a pass when the Store is closed.
var errStopped = errors.New("the store is being closed")

// throttle keeps to the limit on bytes, and ends a pass when the Store is closed.
func (c *cleaner) throttle(bytes int) error {
	if c.closed.Load() {
		return errStopped
	}
	c.mu.Lock()
	rate := c.mu.config.BytesPerSecond
	var wait time.Duration
	if rate > 0 && rate < 1e15 {
		now := time.Now()
		if c.mu.free.Before(now) {
			c.mu.free = now
		}
		wait = c.mu.free.Sub(now)
		c.mu.free = c.mu.free.Add(time.Duration(float64(bytes) / rate * float64(time.Second)))
	}
	c.mu.Unlock()
	if wait > time.Millisecond {
		t := time.NewTimer(wait)
		defer t.Stop()
		select {
		case <-c.store.stop:
			return errStopped
		case <-t.C:
		}
	}
	return nil
}

// writeFirstDirty writes the cleaner checkpoint of the log's directory.
func (s *Store) writeFirstDirty(l *Log) error {
	for _, d := range s.dirs {
		if d.holds(l) && d.offline() == nil {
			d.writing.Lock()
			defer d.writing.Unlock()
			return d.writeCleaned()
		}
	}
	return nil
}

// writeCleaned writes how far each compacted log was cleaned, and when its next null value goes. Caller holds writing.
func (d *dataDir) writeCleaned() error {
	o, horizons := checkpoint.Offsets{}, checkpoint.Offsets{}
	for _, l := range d.logs() {
		if first := l.FirstDirty(); first > 0 {
			key := checkpoint.TopicPartition(l.key())
			o[key], horizons[key] = int64(first), l.cleaning.horizon.Load()
		}
	}
	if len(o) == 0 && d.written[checkpoint.CleanerOffsets] == "" {
		if _, err := d.fs.Stat(filepath.Join(d.path, checkpoint.CleanerOffsets)); err != nil {
			return nil // nothing was ever compacted here
		}
	}
	return errors.Join(d.write(checkpoint.CleanHorizons, horizons), d.write(checkpoint.CleanerOffsets, o))
}

// resumeCleaning tells a log how far an earlier life has cleaned it. One that another program has cleaned may hold null values of
// which nobody noted when they go: a pass is due.
func (d *dataDir) resumeCleaning(l *Log) {
	key := checkpoint.TopicPartition(l.key())
	d.mu.Lock()
	first, horizon := d.mu.dirty[key], int64(1)
	if at, ok := d.mu.horizons[key]; ok {
		horizon = at
	}
	d.mu.Unlock()
	l.SetFirstDirty(Offset(first))
	if first > 0 {
		l.cleaning.horizon.Store(horizon)
	}
}
