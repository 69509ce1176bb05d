package engine

import (
	"errors"
	"fmt"
	"io"

	"millrace/engine/batch"
)

// scan checks every batch of segment i from pos on, checksums and all, and
// brings its indexes and the epoch history up to date. It returns the first
// damage, or nil when the segment is whole.
func (r *recovery) scan(s *segment, pos int64, i int) (_ *damage, err error) {
	l := r.log
	c := l.config.Load()
	f, err := s.file()
	if err != nil {
		return nil, err
	}
	next := Offset(noLimit)
	if i+1 < len(r.segments) {
		next = r.segments[i+1].base
	}
	reader := batchReader{file: f, pos: pos, end: s.size.Load()}
	again := rewriter{file: f}
	defer func() { err = errors.Join(err, again.flush()) }()
	for {
		b, e, err := reader.next()
		if err == io.EOF {
			return r.gapBefore(s, next, i), nil
		}
		if err != nil && !errors.Is(err, errNoEntry) {
			return nil, fmt.Errorf("%s: read at %d: %w", s.path(logSuffix), reader.pos, err)
		}
		d := &damage{pos: e.pos, offset: r.end}
		d.length, d.checksum, d.sane = true, true, true
		switch {
		case err != nil:
			d.length = false
			d.err = &CorruptError{Want: "a whole batch", Got: fmt.Sprintf("%d bytes that are none", s.size.Load()-e.pos)}
		case e.base < r.end || e.last >= next || e.epoch < -1:
			d.sane = false
			d.err = &CorruptError{
				Want: fmt.Sprintf("offsets in [%d, %d)", r.end, next),
				Got:  fmt.Sprintf("[%d, %d], epoch %d", e.base, e.last, e.epoch),
			}
		default:
			if _, err := batch.CheckStored(b); err != nil {
				d.checksum = false
				d.err = asCorrupt(err)
			}
		}
		if !d.length || !d.checksum || !d.sane {
			d.reached = r.end == next
			r.judge(d, s, i)
			return d, nil
		}
		if err := s.noteBatch(e.pos, e.size, e.last, e.maxTs, c.IndexInterval); err != nil {
			return nil, fmt.Errorf("rebuild index of %s: %w", s.path(logSuffix), err)
		}
		if r.suspect && e.base >= r.point {
			r.changed = true
			if err := again.add(b, e.pos); err != nil {
				return nil, err
			}
		}
		if e.epoch > l.epoch.Load() && e.last >= r.start {
			l.epochs.Note(e.epoch, int64(e.base))
			l.epoch.Store(e.epoch)
		}
		r.end = e.last + 1
		r.report(int64(e.size))
	}
}

// judge fills in where the damage is and what was promised there.
func (r *recovery) judge(d *damage, s *segment, i int) {
	d.err.File, d.err.Position = s.path(logSuffix), d.pos
	d.clean, d.above = r.clean, d.offset >= r.point
	d.synced, d.proven = r.log.config.Load().Durability == Sync && !r.log.home.Load().loose, r.proven(d.offset)
	switch len(r.segments) - 1 - i {
	case 0:
		d.place = lastSegment
	case 1:
		d.place = beforeLast
	default:
		d.place = earlier
	}
}

// gapBefore looks for a tail that is missing to the byte: a closed segment that
// ends below the next one's base. A crash leaves such gaps where the file's size
// was not synced; a follower's append across a hole wider than a segment's span
// does; and so does another program's compaction (ours keeps the last batch of a
// segment), which is why in a compacted log a gap that the journal cannot fill is none.
func (r *recovery) gapBefore(s *segment, next Offset, i int) *damage {
	if next == noLimit || r.end == next || r.end < r.point || next-r.end > maxOffsetSpan/2 {
		return nil
	}
	d := &damage{pos: s.size.Load(), offset: r.end, mayBe: r.log.config.Load().Compact}
	d.checksum, d.sane = true, true
	d.err = &CorruptError{Want: fmt.Sprintf("a batch at %d", r.end), Got: "the end of the file"}
	r.judge(d, s, i)
	return d
}

func asCorrupt(err error) *CorruptError {
	var c *CorruptError
	if errors.As(err, &c) {
		return c
	}
	return &CorruptError{Want: "a whole batch", Got: err.Error()}
}

func (r *recovery) report(bytes int64) {
	before := r.done
	r.done += bytes
	if r.progress != nil && (before/recoverChunk != r.done/recoverChunk || r.done == r.total) {
		r.progress(r.done, r.total)
	}
}

// rewriter writes what recovery has found above the recovery point over itself,
// if a sync has failed in the folder since the machine was started. The system
// then shows bytes that are not on the disk, takes them for clean, and does not
// write them with any later sync; a process started again would vouch for them.
// Written again they are dirty, and the sync at the end of recovery means something.
type rewriter struct {
	file io.WriterAt
	buf  []byte
	pos  int64 // of buf[0]
}

func (w *rewriter) add(b []byte, pos int64) error {
	if len(w.buf) > 0 && (w.pos+int64(len(w.buf)) != pos || len(w.buf)+len(b) > recoverChunk) {
		if err := w.flush(); err != nil {
			return err
		}
	}
	if len(w.buf) == 0 {
		w.pos = pos
	}
	w.buf = append(w.buf, b...)
	return nil
}

func (w *rewriter) flush() error {
	if len(w.buf) == 0 {
		return nil
	}
	_, err := w.file.WriteAt(w.buf, w.pos)
	w.buf = w.buf[:0]
	if err != nil {
		return fmt.Errorf("write recovered batches again: %w", err)
	}
	return nil
}

var errNoEntry = errors.New("no entry here")

// batchReader reads whole entries, one after another, in big pieces.
type batchReader struct {
	file io.ReaderAt
	pos  int64 // of the next entry
	end  int64
	buf  []byte
	from int64 // position of buf[0]
	have int
}

// next returns the next entry and its bytes, valid until the call after. At
// what cannot be an entry the error is errNoEntry and e.pos says where.
func (b *batchReader) next() ([]byte, entry, error) {
	left := b.end - b.pos
	if left == 0 {
		return nil, entry{pos: b.pos}, io.EOF
	}
	if left < shortestHeader {
		return nil, entry{pos: b.pos}, errNoEntry
	}
	head, err := b.bytes(int(min(left, batch.HeaderSize)))
	if err != nil {
		return nil, entry{pos: b.pos}, err
	}
	e, ok := parseEntry(head, b.pos)
	if !ok || int64(e.size) > left {
		return nil, entry{pos: b.pos}, errNoEntry
	}
	whole, err := b.bytes(e.size)
	if err != nil {
		return nil, e, err
	}
	b.pos += int64(e.size)
	return whole, e, nil
}

// bytes returns n bytes at pos; n is never more than what the file has.
func (b *batchReader) bytes(n int) ([]byte, error) {
	if b.pos < b.from || b.pos+int64(n) > b.from+int64(b.have) {
		if want := max(n, recoverChunk); len(b.buf) < want && int64(len(b.buf)) < b.end-b.pos {
			b.buf = make([]byte, min(int64(want), b.end-b.pos))
		}
		b.from, b.have = b.pos, int(min(int64(len(b.buf)), b.end-b.pos))
		if err := readFull(b.file, b.buf[:b.have], b.pos); err != nil {
			b.have = 0
			return nil, err
		}
	}
	at := b.pos - b.from
	return b.buf[at : at+int64(n)], nil
}
