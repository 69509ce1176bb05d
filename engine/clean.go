package engine

import (
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"millrace/engine/batch"
	"millrace/engine/compact"
)

// Cleaning is how one pass of compaction over a log is done.
type Cleaning struct {
	Keys     *compact.Map // cleared and filled; its size bounds what one pass looks at
	Now      time.Time
	Throttle func(bytes int) error // told of bytes read and written; may sleep, and end the pass by an error; nil: no limit
}

// CleanResult is what a pass did.
type CleanResult struct {
	compact.Stats
	From, To     Offset // the dirty range whose keys were looked at
	SegmentsIn   int    // that were rewritten
	SegmentsOut  int
	Whole        bool      // the map held all keys: nothing cleanable is left dirty
	NothingDirty bool      // there was nothing to do
	NextHorizon  time.Time // when null values that stayed may go; zero: none stayed
}

// errCut says that the log was truncated, or moved, under a pass, which begins anew another time.
var errCut = errors.New("the log was cut or moved while it was cleaned")

// ErrCleaning says that another pass is at work on the log.
var ErrCleaning = errors.New("the log is being cleaned already")

// cleaning is what a log knows of its compaction.
type cleaning struct {
	sync.Mutex              // held during a pass
	first      atomic.Int64 // offset below which all keys were looked at
	horizon    atomic.Int64 // ms: when the first null value that the last pass kept may go; 0 none, or not known
	cuts       int          // truncations so far; Log.mu
}

// cut notes a truncation. Caller holds Log.mu.
func (c *cleaning) cut(o Offset) {
	c.cuts++
	c.first.Store(min(c.first.Load(), int64(o)))
}

// Dirt is how much of a log compaction has not looked at.
type Dirt struct {
	Clean, Dirty int64     // bytes of closed segments below and above the point up to which it was cleaned
	Oldest       time.Time // time of the oldest dirty segment's newest record; zero if none is dirty
	Expired      bool      // null values have passed their horizon: a pass is due without new records
}

// Ratio is the dirty share of what could be cleaned, 0 to 1.
func (d Dirt) Ratio() float64 {
	if d.Dirty == 0 {
		return 0
	}
	return float64(d.Dirty) / float64(d.Clean+d.Dirty)
}

// Dirt measures the log for the cleaner. A log without cleanup.policy=compact has none.
func (l *Log) Dirt(now time.Time) (Dirt, error) {
	var d Dirt
	if !l.config.Load().Compact {
		return d, nil
	}
	list, upper, err := l.cleanable(now)
	if err != nil {
		return d, err
	}
	first := l.firstDirty()
	for i, s := range list {
		if s.base >= upper {
			break
		}
		end := upper
		if i+1 < len(list) {
			end = list[i+1].base
		}
		if end <= first {
			d.Clean += s.size.Load()
			continue
		}
		if d.Dirty == 0 {
			newest, err := s.newestTime()
			if err != nil {
				return d, err
			}
			d.Oldest = newest
		}
		d.Dirty += s.size.Load()
	}
	if at := l.cleaning.horizon.Load(); d.Clean > 0 && at > 0 {
		d.Expired = at <= now.UnixMilli()
	}
	return d, nil
}

// firstDirty is where the part begins that no pass has looked at.
func (l *Log) firstDirty() Offset { return max(Offset(l.cleaning.first.Load()), l.Start()) }

// FirstDirty is the offset below which compaction has looked at everything (cleaner-offset-checkpoint).
func (l *Log) FirstDirty() Offset { return Offset(l.cleaning.first.Load()) }

// SetFirstDirty tells what a checkpoint says. A point above the end, which belongs to another life of the log, is not believed.
func (l *Log) SetFirstDirty(o Offset) {
	if o > l.End() {
		o = 0
	}
	l.cleaning.first.Store(int64(o))
}

// cleanable lists the segments and where the part ends that may be cleaned: the first segment that is active, not below the
// high watermark as a whole, not wholly durable, or holds a record younger than min.compaction.lag.ms.
func (l *Log) cleanable(now time.Time) ([]*segment, Offset, error) {
	list := *l.segments.Load()
	bound := min(l.Safe(), Offset(l.retainBelow.Load()))
	lag := l.config.Load().CompactAfter
	for i, s := range list {
		if i == len(list)-1 || list[i+1].base > bound {
			return list, s.base, nil
		}
		if lag <= 0 || s.base < l.firstDirty() {
			continue
		}
		newest, err := s.newestTime()
		if err != nil {
			return nil, 0, err
		}
		if now.Sub(newest) < lag {
			return list, s.base, nil
		}
	}
	return list, list[len(list)-1].base, nil
}

// newestTime is the largest timestamp of a closed segment's records, or the file's own time if they have none.
func (s *segment) newestTime() (time.Time, error) {
	ts, err := s.largestTimestamp()
	if err != nil {
		return time.Time{}, err
	}
	if ts >= 0 {
		return time.UnixMilli(ts), nil
	}
	info, err := s.folder.fs.Stat(s.path(logSuffix))
	return info.ModTime, err
}

// Clean runs one pass of compaction: of each key the newest record stays in the closed segments (storage-formats, section 11).
// Appends and reads go on meanwhile, but for the moment in which rewritten segments take their places. A crash at any point leaves each
// group of segments as it was before or as it is after. Errors: ErrCleaning; *CorruptError for a batch that cannot be read; ErrStorage. A log whose
// policy is not compact is left alone.
func (l *Log) Clean(c Cleaning) (CleanResult, error) {
	var r CleanResult
	if !l.cleaning.TryLock() {
		return r, ErrCleaning
	}
	defer l.cleaning.Unlock()
	p, err := l.planClean(&c)
	if err != nil || p == nil {
		r.NothingDirty = err == nil
		return r, err
	}
	defer p.release()
	r.From = p.first
	if r.To, err = p.fill(); err == nil {
		r.Whole = r.To >= p.upper
		err = p.rewrite(&r)
	}
	if err != nil && p.overtaken() {
		err = errCut
	}
	return r, err
}

// overtaken tells that the log has moved, or lost segments to a truncation or to retention, since the pass began: what it then failed with
// says nothing of the log.
func (p *cleanPass) overtaken() bool {
	l := p.log
	l.mu.Lock()
	defer l.mu.Unlock()
	list := *l.segments.Load()
	return l.home.Load() != p.home || l.cleaning.cuts != p.cuts || list[0].base > p.segments[0].base
}

// cleanPass is one pass over the pinned segments below upper.
type cleanPass struct {
	*Cleaning
	log       *Log
	segments  []*segment // pinned, their files open
	next      []Offset   // where the segment behind each begins
	first     Offset     // first dirty
	upper     Offset
	producers map[int64]compact.Newest
	aborted   []compact.Aborted
	config    *Config
	buf       []byte
	cuts      int
	home      *home
}

// planClean takes stock. nil: there is nothing to clean.
func (l *Log) planClean(c *Cleaning) (*cleanPass, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.refusal(); err != nil {
		return nil, err
	}
	if err := l.wake(); err != nil {
		return nil, err
	}
	if !l.config.Load().Compact {
		return nil, nil // the policy may have changed since somebody looked
	}
	list, upper, err := l.cleanable(c.Now)
	if err != nil || list[0].base >= upper {
		return nil, err
	}
	p := &cleanPass{Cleaning: c, log: l, first: l.firstDirty(), upper: upper, config: l.config.Load(), cuts: l.cleaning.cuts, home: l.home.Load(), producers: map[int64]compact.Newest{}}
	if p.Throttle == nil {
		p.Throttle = func(int) error { return nil }
	}
	for _, s := range l.mu.producers.List() {
		p.producers[s.ProducerID] = compact.Newest{Data: s.LastOffset, Epoch: s.Epoch}
	}
	for i, s := range list {
		if s.base >= upper {
			break
		}
		if !s.pin() {
			p.release()
			return nil, fmt.Errorf("clean %s: segment %d is gone", l.Dir(), s.base)
		}
		p.segments, p.next = append(p.segments, s), append(p.next, list[i+1].base)
		if _, err := s.file(); err != nil { // opened under this name: the swap gives it to another file
			p.release()
			return nil, err
		}
	}
	if p.aborted, err = readAborted(p.segments); err != nil {
		p.release()
		return nil, err
	}
	return p, nil
}

func (p *cleanPass) release() {
	for _, s := range p.segments {
		s.unpin()
	}
}

// fill enters the keys of the dirty part and returns up to where it got.
func (p *cleanPass) fill() (Offset, error) {
	p.Keys.Clear()
	f := compact.NewFiller(p.Keys, int64(p.first), p.aborted)
	for i, s := range p.segments {
		if p.next[i] <= p.first {
			continue
		}
		full := false
		err := p.entries(s, func(b []byte, e entry) error {
			if err := p.Throttle(len(b)); err != nil {
				return err
			}
			ok, err := f.Add(b)
			if err == nil && !ok {
				full, err = true, io.EOF
			}
			return err
		})
		if full {
			to := Offset(p.Keys.End())
			if to <= p.first {
				return to, fmt.Errorf("clean %s: the map of %d keys is too small for one batch (log.cleaner.dedupe.buffer.size)", p.log.Dir(), p.Keys.Len())
			}
			return to, nil
		}
		if err != nil {
			return 0, err
		}
	}
	return p.upper, nil
}

// entries calls each for every entry of a segment, with its bytes, which are valid during the call. io.EOF ends it.
func (p *cleanPass) entries(s *segment, each func(b []byte, e entry) error) error {
	file, err := s.file()
	if err != nil {
		return err
	}
	r := batchReader{file: file, end: s.size.Load(), buf: p.buf}
	defer func() { p.buf = r.buf }()
	for {
		b, e, err := r.next()
		if err == io.EOF {
			return nil
		}
		if err == errNoEntry {
			err = &CorruptError{File: s.path(logSuffix), Position: e.pos, Want: "a whole batch", Got: "bytes that cannot be one"}
		}
		if err != nil {
			return fmt.Errorf("clean %s: %w", p.log.Dir(), err)
		}
		if err = each(b, e); err == io.EOF {
			return nil
		}
		if err != nil {
			return p.name(err, s, e)
		}
	}
}

// name says where a batch could not be read.
func (p *cleanPass) name(err error, s *segment, e entry) error {
	var c *batch.CorruptError
	if errors.As(err, &c) {
		return fmt.Errorf("clean %s: %w", p.log.Dir(), &CorruptError{File: s.path(logSuffix), Position: e.pos, Want: c.Want, Got: c.Got})
	}
	return fmt.Errorf("clean %s: offset %d: %w", p.log.Dir(), e.base, err)
}

// rewrite thins the segments below r.To, group by group, and swaps each group for what is left of it.
func (p *cleanPass) rewrite(r *CleanResult) error {
	pass := compact.NewPass(p.Keys, compact.Options{
		Now: p.Now, DeleteRetention: p.config.DeleteRetention, Start: int64(p.log.Start()), End: int64(r.To),
		Aborted: p.aborted, Producers: p.producers, LegacyBefore: p.legacyBefore(),
		Recode: p.recode(),
	})
	for from := 0; from < len(p.segments) && p.segments[from].base < r.To; {
		to := p.groupEnd(from, r.To)
		in, out, err := p.rewriteGroup(pass, from, to)
		if err != nil {
			return err
		}
		r.SegmentsIn, r.SegmentsOut = r.SegmentsIn+in, r.SegmentsOut+out
		from = to
	}
	r.Stats = pass.Stats
	p.log.cleaning.horizon.Store(pass.NextHorizon())
	if at := pass.NextHorizon(); at > 0 {
		r.NextHorizon = time.UnixMilli(at)
	}
	return p.log.cleaned(p, r.To)
}

// recode is how what stays is compressed.
func (p *cleanPass) recode() *compact.Recode {
	c := p.config
	if !c.Recompress {
		return nil
	}
	most := int(min(c.SegmentBytes, maxSegmentBytes))
	if c.MaxBatch > 0 {
		most = min(most, c.MaxBatch)
	}
	return &compact.Recode{Codec: c.Codec, Level: c.CodecLevel, Most: most}
}

// cleaned notes how far a pass has got, unless the log was cut meanwhile.
func (l *Log) cleaned(p *cleanPass, to Offset) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cleaning.cuts != p.cuts {
		return errCut
	}
	l.cleaning.first.Store(int64(to))
	return nil
}

// legacyBefore: null values in old message sets go from segments older than the newest clean one by delete.retention.ms.
func (p *cleanPass) legacyBefore() time.Time {
	var newest time.Time
	for i, s := range p.segments {
		if p.next[i] > p.first {
			break
		}
		if info, err := s.folder.fs.Stat(s.path(logSuffix)); err == nil {
			newest = info.ModTime
		}
	}
	if newest.IsZero() {
		return newest
	}
	return newest.Add(-p.config.DeleteRetention)
}

// groupEnd is the end of the group of segments from `from` on that become one: as many as fit the limits of a segment.
func (p *cleanPass) groupEnd(from int, upTo Offset) int {
	size, index := int64(0), 0
	for i := from; i < len(p.segments); i++ {
		s := p.segments[i]
		size += s.size.Load()
		index += s.index.Entries() * offsetEntryBytes
		tooBig := size > p.config.SegmentBytes || index > p.config.IndexBytes || p.next[i]-1-p.segments[from].base > maxOffsetSpan
		if i > from && (tooBig || s.base >= upTo) {
			return i
		}
	}
	return len(p.segments)
}
