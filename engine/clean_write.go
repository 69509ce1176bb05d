package engine

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"time"

	"millrace/engine/checkpoint"
	"millrace/engine/compact"
)

// rewriteGroup thins segments [from, to) into as few as their limits allow and puts these in their place. A group that a pass
// would not change stays. in and out count segments.
func (p *cleanPass) rewriteGroup(pass *compact.Pass, from, to int) (in, out int, err error) {
	w := &cleanWriter{pass: p, base: p.segments[from].base}
	changed := to-from > 1
	var modified time.Time
	for i := from; i < to; i++ {
		s := p.segments[i]
		info, err := s.folder.fs.Stat(s.path(logSuffix))
		if err != nil {
			w.abandon()
			return 0, 0, err
		}
		modified = info.ModTime
		last, err := p.lastOffset(s, p.next[i])
		if err != nil {
			w.abandon()
			return 0, 0, err
		}
		if i == to-1 {
			pass.KeepLast(int64(last))
		}
		var buf []byte
		err = p.entries(s, func(b []byte, e entry) error {
			var err error
			if buf, err = pass.Thin(buf[:0], b, modified); err != nil {
				return err
			}
			changed = changed || !bytes.Equal(buf, b)
			if err := p.Throttle(len(b) + len(buf)); err != nil {
				return err
			}
			return w.add(buf)
		})
		if err == nil {
			err = w.addAborted(pass.StillAborted())
		}
		if err != nil {
			w.abandon()
			return 0, 0, err
		}
	}
	if !changed {
		w.abandon()
		return 0, 0, nil
	}
	if err := w.finish(modified); err != nil {
		w.abandon()
		return 0, 0, err
	}
	taken, err := p.log.swap(p.segments[from:to], w.done, p.cuts)
	if !taken {
		w.abandon()
	}
	if err != nil {
		return 0, 0, err
	}
	return to - from, len(w.done), nil
}

// lastOffset is the last offset of a segment; next is where the segment behind it begins.
func (p *cleanPass) lastOffset(s *segment, next Offset) (Offset, error) {
	at, _, ok := s.index.Last()
	pos := int64(0)
	if ok {
		if e, found, err := s.locate(Offset(at)); err == nil && found {
			pos = e.pos
		}
	}
	last := Offset(-1)
	err := s.walk(pos, s.size.Load(), func(e entry) bool {
		last = e.last
		return true
	})
	if err == nil && last >= next {
		err = &CorruptError{File: s.path(logSuffix), Position: pos, Want: fmt.Sprintf("offsets below %d, where the next segment begins", next), Got: fmt.Sprint(last)}
	}
	return last, err
}

// cleanWriter writes segments under names that end in .cleaned: what the next opening throws away.
type cleanWriter struct {
	pass    *cleanPass
	base    Offset   // of the group
	end     Offset   // behind the last batch written
	open    *segment // being written; nil before the first batch
	file    *segmentFile
	buf     []byte
	aborted []compact.Aborted // of the open one
	done    []*segment
}

// cleanChunk is how much is written at once.
const cleanChunk = 512 << 10

// add appends whole entries.
func (w *cleanWriter) add(b []byte) error {
	for len(b) > 0 {
		e, ok := parseEntry(b, 0)
		if !ok || e.size > len(b) {
			return fmt.Errorf("a thinned batch of %d bytes does not parse", len(b))
		}
		if s := w.open; s != nil && (e.last-s.base > maxOffsetSpan || s.size.Load() > 0 && s.size.Load()+int64(e.size) > w.pass.config.SegmentBytes || s.indexFull()) {
			if err := w.close(); err != nil {
				return err
			}
		}
		if w.open == nil {
			if err := w.begin(e); err != nil {
				return err
			}
		}
		s := w.open
		if err := s.noteBatch(s.size.Load(), e.size, e.last, e.maxTs, w.pass.config.IndexInterval); err != nil {
			return err
		}
		s.size.Add(int64(e.size))
		w.end = e.last + 1
		w.buf = append(w.buf, b[:e.size]...)
		if len(w.buf) >= cleanChunk {
			if err := w.flush(); err != nil {
				return err
			}
		}
		b = b[e.size:]
	}
	return nil
}

// begin opens a segment for a batch at base. It takes the name of the group's first, or follows the one before without a gap,
// so that an offset that is gone is looked for in the right one, unless that is too far from the batch.
func (w *cleanWriter) begin(e entry) error {
	l, base := w.pass.log, w.base
	if n := len(w.done); n > 0 {
		base = w.end
	}
	if e.last-base > maxOffsetSpan {
		base = e.base
	}
	s := newSegment(base, l.home.Load().folder, l.indexes)
	file, err := s.folder.openFile(s.name(logSuffix)+cleanedSuffix, os.O_RDWR|os.O_CREATE|os.O_TRUNC)
	if err != nil {
		return l.storageError("clean", err)
	}
	s.setFile(file)
	w.open, w.file, w.buf = s, s.open.Load(), w.buf[:0]
	for _, suffix := range []string{indexSuffix, timeSuffix, txnSuffix} {
		if err := s.folder.fs.Remove(s.path(suffix) + cleanedSuffix); err != nil && !errors.Is(err, os.ErrNotExist) {
			return l.storageError("clean", err)
		}
	}
	s.index = l.indexes.DeferOffset(s.folder.forIndexes(), s.path(indexSuffix)+cleanedSuffix, int64(s.base), w.pass.config.IndexBytes, true)
	s.times = l.indexes.DeferTime(s.folder.forIndexes(), s.path(timeSuffix)+cleanedSuffix, int64(s.base), w.pass.config.IndexBytes, true)
	if err := errors.Join(s.index.Load(), s.times.Load()); err != nil {
		return l.storageError("clean", err)
	}
	s.countRoom(w.pass.config)
	return nil
}

func (w *cleanWriter) flush() error {
	if len(w.buf) == 0 {
		return nil
	}
	_, err := w.file.WriteAt(w.buf, w.open.size.Load()-int64(len(w.buf)))
	w.buf = w.buf[:0]
	if err != nil {
		return w.pass.log.storageError("clean", err)
	}
	return nil
}

func (w *cleanWriter) addAborted(a []compact.Aborted) error {
	if len(a) > 0 && w.open == nil {
		return errors.New("an aborted transaction without a marker in the cleaned segment")
	}
	w.aborted = append(w.aborted, a...)
	return nil
}

// close completes the open segment on disk, but for its name.
func (w *cleanWriter) close() error {
	s, l := w.open, w.pass.log
	if err := w.flush(); err != nil {
		return err
	}
	w.done, w.open = append(w.done, s), nil
	if len(w.aborted) > 0 {
		if err := writeAborted(s, w.aborted); err != nil {
			return l.storageError("clean", err)
		}
		w.aborted = nil
	}
	s.tsKnown.Store(true)
	if err := errors.Join(s.addTimeEntry(true), s.index.Seal(), s.times.Seal(), s.syncIndexes(), w.file.Sync()); err != nil {
		return l.storageError("clean", err)
	}
	return nil
}

// finish closes the last segment and gives all the file time of the newest source, which retention and old null values go by.
func (w *cleanWriter) finish(modified time.Time) error {
	if w.open != nil {
		if err := w.close(); err != nil {
			return err
		}
	}
	for _, s := range w.done {
		if err := s.folder.fs.Chtimes(s.path(logSuffix)+cleanedSuffix, modified); err != nil {
			return w.pass.log.storageError("clean", err)
		}
	}
	return nil
}

// abandon removes what was written, as far as it can: the next opening does the rest.
func (w *cleanWriter) abandon() {
	all := w.done
	if w.open != nil {
		all = append(all, w.open)
	}
	for _, s := range all {
		if s.index != nil {
			s.index.Discard()
		}
		if s.times != nil {
			s.times.Discard()
		}
		s.letGo()
		for _, kind := range []string{logSuffix, indexSuffix, timeSuffix, txnSuffix} {
			s.folder.fs.Remove(s.path(kind) + cleanedSuffix)
		}
	}
	w.done, w.open = nil, nil
}

// abortedBytes is an entry of a transaction index: version, producer, first and last offset, last stable offset.
const abortedBytes = 34

// readAborted reads the transaction indexes of segments.
func readAborted(segments []*segment) ([]compact.Aborted, error) {
	var all []compact.Aborted
	for _, s := range segments {
		b, err := checkpoint.ReadFile(s.folder.fs, s.path(txnSuffix))
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if len(b)%abortedBytes != 0 {
			return nil, &CorruptError{File: s.path(txnSuffix), Want: fmt.Sprintf("a multiple of %d bytes", abortedBytes), Got: fmt.Sprint(len(b))}
		}
		for ; len(b) > 0; b = b[abortedBytes:] {
			be := binary.BigEndian
			all = append(all, compact.Aborted{ProducerID: int64(be.Uint64(b[2:])), First: int64(be.Uint64(b[10:])), Last: int64(be.Uint64(b[18:])), Stable: int64(be.Uint64(b[26:]))})
		}
	}
	return all, nil
}

// writeAborted writes and syncs the transaction index of a segment being cleaned.
func writeAborted(s *segment, aborted []compact.Aborted) error {
	var b []byte
	for _, a := range aborted {
		be := binary.BigEndian
		b = be.AppendUint16(b, 0)
		b = be.AppendUint64(b, uint64(a.ProducerID))
		b = be.AppendUint64(b, uint64(a.First))
		b = be.AppendUint64(b, uint64(a.Last))
		b = be.AppendUint64(b, uint64(a.Stable))
	}
	f, err := s.folder.open(s.name(txnSuffix)+cleanedSuffix, os.O_RDWR|os.O_CREATE|os.O_TRUNC)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(b, 0)
	return errors.Join(err, f.Sync(), f.Close())
}
