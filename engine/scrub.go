package engine

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"

	"millrace/engine/checkpoint"
	"millrace/engine/vfs"
)

// The scrub reads the closed segments of all logs, one after another and slowly, and holds every batch against its checksum and every index
// against its segment: a disk that forgets is found while there still is another copy, not when somebody needs the record. It changes nothing,
// but for indexes, which are made again. The active segment is not looked at: recovery reads it after a crash, and it will be closed one day.
//
// Reads go past the page cache (O_DIRECT), so they see what the disk has, not what memory remembers of it, and neither fill the cache nor push out what
// consumers are reading. Where a file system has no direct reads the pages are left to the system, which drops what was read once first.
//
// What a checksum does not cover cannot be told: of a batch's header the leader epoch, and a base offset that is wrong within a gap.

// Damage is what the scrub found wrong with a file.
type Damage struct {
	Dir       string // the data directory
	Topic     string
	Partition int32
	File      string // the damaged file
	Position  int64  // of the damage in it
	From, To  Offset // offsets concerned, both inclusive, as far as they can be told
	IndexOnly bool   // an index: no record is lost, and it is made again
	Err       error  // *CorruptError, or what the read failed with
}

// ScrubStats are figures of the scrub since the start, and of now.
type ScrubStats struct {
	Bytes    int64          // read
	Segments int64          // looked at
	Passes   int64          // over all logs
	Indexes  int64          // damaged, and made again
	Damaged  map[string]int // segments that are damaged and still there, by data directory; all directories are in it
}

// SetScrubRate bounds the bytes a second that the scrub reads; 0 stops it. It counts at once.
func (s *Store) SetScrubRate(bytes int64) {
	c := &s.scrub
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mu.rate != max(bytes, 0) {
		c.mu.rate, c.mu.free = max(bytes, 0), time.Time{} // what is owed at the old rate is forgiven
	}
	if c.mu.rate > 0 && !c.mu.running && !c.mu.closed {
		c.mu.running = true
		c.alive.Go(c.run) // ends with the Store, whose Close waits for it
	}
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// ScrubStats returns the figures of the scrub.
func (s *Store) ScrubStats() ScrubStats {
	s.scrub.mu.Lock()
	st := s.scrub.mu.stats
	s.scrub.mu.Unlock()
	st.Damaged = map[string]int{}
	for _, d := range s.dirs {
		st.Damaged[d.path] = 0
	}
	counted := map[string]bool{}
	for _, f := range s.ScrubFindings() {
		if !counted[f.File] {
			counted[f.File] = true
			st.Damaged[f.Dir]++
		}
	}
	return st
}

// ScrubFindings returns what the scrub has found in segments that are still there, by log and position. A segment that retention, compaction,
// truncation or a deletion takes away takes its damage along.
func (s *Store) ScrubFindings() []Damage {
	s.scrub.forget()
	s.scrub.mu.Lock()
	defer s.scrub.mu.Unlock()
	var all []Damage
	for _, d := range s.scrub.mu.known {
		if !d.IndexOnly {
			all = append(all, d)
		}
	}
	slices.SortFunc(all, func(a, b Damage) int {
		if c := (logKey{a.Topic, a.Partition}).compare(logKey{b.Topic, b.Partition}); c != 0 {
			return c
		}
		return int(a.From - b.From)
	})
	return all
}

// scrubPlace is where a damage is.
type scrubPlace struct {
	log     *Log
	segment *segment
	pos     int64
	kind    string // the file's suffix
}

// scrubber is a Store's scrub. Its goroutine is started by the first rate above 0.
type scrubber struct {
	store *Store
	wake  chan struct{} // cap 1: the rate has changed
	alive sync.WaitGroup

	mu struct {
		sync.Mutex
		rate    int64
		running bool
		closed  bool
		free    time.Time // when the rate allows the next read
		known   map[scrubPlace]Damage
		stats   ScrubStats
	}

	every time.Duration // scrubEvery, but in a test

	// The goroutine's own.
	at     scrubPoint
	saved  time.Time // when at was written
	buf    []byte    // for batches
	window []byte    // for reads
	plain  bool      // direct reads do not work here
}

func (c *scrubber) prepare(s *Store) {
	c.store, c.wake, c.every = s, make(chan struct{}, 1), scrubEvery
	c.mu.known = map[scrubPlace]Damage{}
}

// close waits for the goroutine, which s.stop ends.
func (c *scrubber) close() {
	c.mu.Lock()
	c.mu.closed = true
	c.mu.Unlock()
	c.alive.Wait()
}

// scrubPoint is how far a pass has got: the next offset of a log to look at.
type scrubPoint struct {
	key    logKey
	offset Offset
}

var (
	errScrubOff    = errors.New("the scrub is off")
	errScrubGone   = errors.New("the segment is gone")
	errScrubDirect = errors.New("direct reads are refused")
)

// run makes passes until the Store is closed.
func (c *scrubber) run() {
	c.window = vfs.AlignedBuffer(scrubWindow)
	defer func() { vfs.FreeBuffer(c.window) }()
	c.load()
	for {
		begun := time.Now()
		err := c.pass()
		wait := time.Until(begun.Add(c.every))
		switch {
		case errors.Is(err, errStopped):
			c.save()
			return
		case errors.Is(err, errScrubOff):
			wait = c.every // until the rate changes
		case err != nil:
			c.store.log.Warn("the scrub waits", "error", err)
			wait = scrubRetry
		default:
			c.at = scrubPoint{}
			c.mu.Lock()
			c.mu.stats.Passes++
			c.mu.Unlock()
		}
		c.save()
		c.buf = nil
		if !c.rest(wait, errors.Is(err, errScrubOff)) {
			return
		}
	}
}

// rest is false when the Store is closed. A change of the rate ends it if it was waited for.
func (c *scrubber) rest(d time.Duration, forRate bool) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	for {
		select {
		case <-c.store.stop:
			return false
		case <-c.wake:
			if forRate {
				return true
			}
		case <-t.C:
			return true
		}
	}
}

// pass looks at all closed segments from where the last one was broken off. Logs that are made meanwhile are the next pass's.
func (c *scrubber) pass() error {
	for _, l := range c.store.Logs() {
		if l.key().compare(c.at.key) < 0 {
			continue
		}
		if l.key() != c.at.key {
			c.at = scrubPoint{key: l.key()}
		}
		if err := c.oneLog(l); err != nil {
			return err
		}
	}
	c.forget()
	return nil
}

func (c *scrubber) oneLog(l *Log) error {
	for {
		if err := c.pay(0); err != nil {
			return err
		}
		list := *l.segments.Load()
		i := slices.IndexFunc(list, func(s *segment) bool { return s.base >= c.at.offset })
		if i < 0 || i >= len(list)-1 || l.closed.Load() || c.offline(l) {
			return nil
		}
		err := c.oneSegment(l, list[i])
		if errors.Is(err, errScrubDirect) {
			c.plain = true
			continue
		}
		if err != nil && !errors.Is(err, errScrubGone) {
			return err
		}
		c.at.offset = list[i].base + 1
		if time.Since(c.saved) > scrubSaveEvery {
			c.save()
		}
	}
}

func (c *scrubber) offline(l *Log) bool {
	for _, d := range c.store.dirs {
		if d.holds(l) {
			return d.offline() != nil
		}
	}
	return true
}

// oneSegment looks at a segment and reports what is wrong with it.
func (c *scrubber) oneSegment(l *Log, s *segment) error {
	x, err := c.begin(l, s)
	if x == nil || err != nil {
		return err
	}
	if x.file != nil {
		defer x.file.Close()
		err := x.readIndexes()
		if err == nil {
			err = x.verify()
		}
		if err != nil {
			return err
		}
	}
	c.mu.Lock()
	c.mu.stats.Segments++
	c.mu.Unlock()
	if len(x.found) == 0 || !x.confirm() {
		return nil
	}
	for _, d := range x.found {
		c.report(x, d)
	}
	if d := x.found[0]; d.IndexOnly {
		if err := l.repairIndex(s, d.Err); err != nil {
			c.store.log.Error("an index could not be made again; the next look-up tries once more", "file", d.File, "error", err)
			return nil
		}
		c.mu.Lock()
		c.mu.stats.Indexes++
		maps.DeleteFunc(c.mu.known, func(p scrubPlace, _ Damage) bool { return p.segment == s }) // were it damaged again, that would be news
		c.mu.Unlock()
	}
	return nil
}

// report tells of a damage that was not told of before.
func (c *scrubber) report(x *scrub, d Damage) {
	at := scrubPlace{x.log, x.segment, d.Position, filepath.Ext(d.File)}
	c.mu.Lock()
	_, told := c.mu.known[at]
	c.mu.known[at] = d
	c.mu.Unlock()
	if told {
		return
	}
	args := []any{"topic", d.Topic, "partition", d.Partition, "file", d.File, "position", d.Position, "offsets", fmt.Sprintf("%d to %d", d.From, d.To), "error", d.Err}
	if d.IndexOnly {
		c.store.log.Warn("an index is damaged; no record is lost, it is made again", args...)
	} else {
		c.store.log.Error("a closed segment is damaged: these records cannot be read, all else is served",
			append(args, "do", fmt.Sprintf("millrace dump-log check %s says what is lost; with the broker stopped, millrace dump-log repair keeps all whole batches; or bring the file back from a copy", filepath.Dir(d.File)))...)
	}
	if f := c.store.o.OnDamage; f != nil {
		f(d)
	}
}

// forget drops what is known of segments that are gone.
func (c *scrubber) forget() {
	table := *c.store.table.Load()
	c.mu.Lock()
	defer c.mu.Unlock()
	maps.DeleteFunc(c.mu.known, func(p scrubPlace, _ Damage) bool {
		return table[checkpoint.TopicPartition(p.log.key())] != p.log || p.log.isGone(p.segment)
	})
}

// pay waits until the rate allows another read, of n bytes.
func (c *scrubber) pay(n int) error {
	for {
		select {
		case <-c.store.stop:
			return errStopped
		default:
		}
		c.mu.Lock()
		now, rate := time.Now(), c.mu.rate
		wait := c.mu.free.Sub(now)
		if rate > 0 && wait <= 0 {
			c.mu.free = now.Add(time.Duration(float64(n) / float64(rate) * float64(time.Second)))
			c.mu.stats.Bytes += int64(n)
		}
		c.mu.Unlock()
		if rate == 0 {
			return errScrubOff
		}
		if wait <= 0 {
			return nil
		}
		t := time.NewTimer(wait)
		select {
		case <-c.store.stop:
		case <-c.wake:
		case <-t.C:
		}
		t.Stop()
	}
}

// scrubCheckpoint tells, in the first data directory that works, up to where a pass got: one line of topic, partition and offset, none
// between two passes. Without it a pass begins at the beginning.
const scrubCheckpoint = "millrace-scrub-checkpoint"

func (c *scrubber) home() *dataDir {
	i := slices.IndexFunc(c.store.dirs, func(d *dataDir) bool { return d.offline() == nil })
	if i < 0 {
		return nil
	}
	return c.store.dirs[i]
}

func (c *scrubber) load() {
	c.saved = time.Now()
	d := c.home()
	if d == nil {
		return
	}
	o, err := checkpoint.ReadOffsets(d.fs, filepath.Join(d.path, scrubCheckpoint))
	if err != nil {
		c.store.log.Warn("checkpoint of the scrub is damaged; it begins anew", "error", err)
		return
	}
	for key, offset := range o {
		c.at = scrubPoint{logKey(key), Offset(offset)}
	}
}

func (c *scrubber) save() {
	c.saved = time.Now()
	d := c.home()
	if d == nil {
		return
	}
	o := checkpoint.Offsets{}
	if c.at != (scrubPoint{}) {
		o[checkpoint.TopicPartition(c.at.key)] = int64(c.at.offset)
	}
	d.writing.Lock()
	defer d.writing.Unlock()
	if len(o) == 0 && d.written[scrubCheckpoint] == "" {
		if _, err := d.fs.Stat(filepath.Join(d.path, scrubCheckpoint)); err != nil {
			return // no pass was ever broken off here
		}
	}
	if err := d.write(scrubCheckpoint, o); err != nil {
		c.store.log.Warn("checkpoint of the scrub not written; the next start begins a pass anew", "error", err)
	}
}

// outOfFiles says nothing of the file that could not be opened.
func outOfFiles(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)
}
