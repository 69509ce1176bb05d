package engine

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"syscall"

	"millrace/engine/batch"
	"millrace/engine/checkpoint"
	"millrace/engine/vfs"
)

// scrub is a look at one closed segment, through a descriptor of its own: the segment may go meanwhile, and closed segments that nobody
// reads need no open file for it.
type scrub struct {
	*scrubber
	log     *Log
	segment *segment
	next    Offset // where the segment behind begins
	size    int64
	cuts    int      // of the log, when the look began
	home    *home    // likewise
	file    vfs.File // nil: it could not be opened, found says why
	direct  bool
	from    int64 // position of window[0]
	have    int
	index   scrubIndex
	times   scrubIndex
	found   []Damage // of batches or else of indexes, never of both
}

// begin opens a segment if it is one of the log's closed ones. nil: it is not any more.
func (c *scrubber) begin(l *Log, s *segment) (*scrub, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	x := &scrub{scrubber: c, log: l, segment: s, size: s.size.Load(), cuts: l.cleaning.cuts, home: l.home.Load()}
	if !x.isSealed() {
		return nil, nil
	}
	list := *l.segments.Load()
	x.next = list[slices.Index(list, s)+1].base
	var err error
	if c.plain {
		x.file, err = s.folder.open(s.name(logSuffix), os.O_RDONLY)
	} else {
		x.file, x.direct, err = s.folder.fs.OpenDirect(s.path(logSuffix))
	}
	switch {
	case err == nil:
		return x, nil
	case outOfFiles(err):
		return nil, err
	case (*c.store.table.Load())[checkpoint.TopicPartition(l.key())] != l:
		return nil, nil // it is being deleted
	}
	x.file = nil
	x.found = append(x.found, x.damage(logSuffix, 0, s.base, x.next-1, err))
	return x, nil
}

// isSealed tells that the segment is a closed one of a log whose files are as it thinks they are. Caller holds Log.mu.
func (x *scrub) isSealed() bool {
	list := *x.log.segments.Load()
	at := slices.Index(list, x.segment)
	return at >= 0 && at < len(list)-1 && !x.log.closed.Load() && x.log.mu.failed == nil
}

// confirm tells that what was found was found in the log's own segment, which nobody has cut or replaced since, and in indexes that nobody
// was making again. What a truncation, a move or a compaction pulled from under the look is not damage.
func (x *scrub) confirm() bool {
	l := x.log
	l.mu.Lock()
	defer l.mu.Unlock()
	return x.isSealed() && l.cleaning.cuts == x.cuts && l.home.Load() == x.home &&
		(!x.found[0].IndexOnly || x.index.unchanged() && x.times.unchanged())
}

func (x *scrub) damage(suffix string, pos int64, from, to Offset, err error) Damage {
	d := Damage{
		Dir: x.store.DirOf(x.log), Topic: x.log.topic, Partition: x.log.partition, File: x.segment.path(suffix), Position: pos,
		From: from, To: max(from, to), IndexOnly: suffix != logSuffix, Err: err,
	}
	var c *CorruptError
	if errors.As(err, &c) {
		d.Err = &CorruptError{File: d.File, Position: pos, Want: c.Want, Got: c.Got}
	}
	return d
}

// add notes damage of the segment's file.
func (x *scrub) add(pos int64, from, to Offset, err error) {
	x.found = append(x.found, x.damage(logSuffix, pos, from, to, err))
}

// verify reads all batches and holds them against their checksums and each other, and the indexes against them. An error says nothing of the segment:
// the scrub ends, or the segment is gone.
func (x *scrub) verify() error {
	r := batchReader{file: x, end: x.size, buf: x.buf}
	defer func() { x.buf = r.buf }()
	end, maxTs := x.segment.base, int64(-1)
	for len(x.found) < scrubFindings {
		err := x.plausible(&r)
		var b []byte
		var e entry
		pos := r.pos
		if err == nil {
			b, e, err = r.next()
		}
		switch {
		case err == io.EOF:
			if len(x.found) == 0 {
				x.judgeIndexes(maxTs)
			}
			return nil
		case errors.Is(err, errStopped), errors.Is(err, errScrubOff), errors.Is(err, errScrubGone), errors.Is(err, errScrubDirect):
			return err
		case errors.Is(err, errNoEntry):
			x.add(pos, end, x.next-1, &CorruptError{Want: "a whole batch", Got: fmt.Sprintf("%d bytes that are none", x.size-pos)})
			return nil
		case err != nil:
			x.add(pos, end, x.next-1, err)
			return nil
		case e.base < end || e.last >= x.next:
			x.add(pos, end, x.next-1, &CorruptError{Want: fmt.Sprintf("offsets in [%d, %d)", end, x.next), Got: fmt.Sprintf("[%d, %d]", e.base, e.last)})
			continue // the offsets are no measure of the next one
		}
		if _, err := batch.CheckStored(b); err != nil {
			x.add(pos, e.base, e.last, err)
			if !x.follows(&r) {
				return nil // the length may be what is wrong: nobody knows where the next batch begins
			}
		}
		x.index.meet(pos, e.last)
		end, maxTs = e.last+1, max(maxTs, e.maxTs)
	}
	return nil
}

// plausible keeps a length that lies from costing a gigabyte of memory: behind a large batch there must be another, or the end.
func (x *scrub) plausible(r *batchReader) error {
	if r.end-r.pos < batch.HeaderSize {
		return nil // next finds out
	}
	head, err := r.bytes(batch.HeaderSize)
	if err != nil {
		return err
	}
	e, ok := parseEntry(head, r.pos)
	if !ok || e.size <= recoverChunk || r.pos+int64(e.size) > r.end {
		return nil // likewise
	}
	behind := batchReader{file: x, pos: r.pos + int64(e.size), end: r.end, buf: make([]byte, batch.HeaderSize)}
	if !x.follows(&behind) {
		return errNoEntry
	}
	return nil
}

// follows tells that where r stands there is the head of an entry, or the end. A read that fails is left to who reads on.
func (x *scrub) follows(r *batchReader) bool {
	left := r.end - r.pos
	if left == 0 {
		return true
	}
	if left < shortestHeader {
		return false
	}
	head, err := r.bytes(int(min(left, batch.HeaderSize)))
	if err != nil {
		return true
	}
	e, ok := parseEntry(head, r.pos)
	return ok && e.base >= x.segment.base && e.last < x.next
}

// ReadAt is io.ReaderAt, at the scrub's rate and in aligned pieces.
func (x *scrub) ReadAt(p []byte, off int64) (n int, err error) {
	for n < len(p) {
		at := off + int64(n)
		if at < x.from || at >= x.from+int64(x.have) {
			if err := x.fill(at); err != nil {
				return n, err
			}
		}
		n += copy(p[n:], x.window[at-x.from:x.have])
	}
	return n, nil
}

// fill reads the window that begins at or before position at.
func (x *scrub) fill(at int64) error {
	from := at &^ (vfs.DirectAlign - 1)
	n := int(min(int64(len(x.window)), (x.size-from+vfs.DirectAlign-1)&^(vfs.DirectAlign-1)))
	if err := x.pay(n); err != nil {
		return err
	}
	if x.log.closed.Load() || x.log.isGone(x.segment) {
		return errScrubGone // its space is wanted
	}
	x.have = 0
	got, err := x.file.ReadAt(x.window[:n], from)
	switch {
	case from+int64(got) >= min(from+int64(n), x.size): // all that was asked for, whatever is said of what lies behind the end
	case err == nil || errors.Is(err, io.EOF):
		return &CorruptError{Want: fmt.Sprintf("a file of %d bytes", x.size), Got: fmt.Sprintf("its end at %d", from+int64(got))}
	case x.direct && errors.Is(err, syscall.EINVAL):
		return errScrubDirect
	default:
		return err
	}
	x.from, x.have = from, int(min(int64(got), x.size-from))
	return nil
}

// readIndexes reads both indexes as they are on the disk, before the batches: memory for the entries of one file, not for all batches.
func (x *scrub) readIndexes() error {
	x.index.read(x, indexSuffix, offsetEntryBytes)
	x.times.read(x, timeSuffix, timeEntryBytes)
	return x.pay(len(x.index.raw) + len(x.times.raw))
}

// judgeIndexes adds what is wrong with the indexes of a segment that is whole.
func (x *scrub) judgeIndexes(maxTs int64) {
	x.index.end()
	x.times.checkTimes(x, maxTs)
	for i, index := range []*scrubIndex{&x.index, &x.times} {
		if index.err != nil {
			x.found = append(x.found, x.damage([]string{indexSuffix, timeSuffix}[i], index.badAt, x.segment.base, x.next-1, index.err))
		}
	}
}

// missing is how an index that is not there is told.
func missing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return &CorruptError{Want: "an index", Got: "no such file"}
	}
	return err
}
