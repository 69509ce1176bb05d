package engine

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"

	"millrace/engine/batch"
	"millrace/engine/index"
)

// Bytes of one entry of each index file.
const (
	offsetEntryBytes = 8
	timeEntryBytes   = 12
)

// entry is what the header of one stored batch (or old message) tells.
type entry struct {
	pos   int64
	size  int
	base  Offset // of an old wrapper: its last offset, as nothing else is known
	last  Offset
	maxTs int64 // -1 none
	epoch int32 // -1 none
	magic int8
}

// Where the fields stand (storage-formats: sections 1 and 2).
const (
	atMagic        = 16
	atEpoch        = 12
	atLastDelta    = 23
	atMaxTs        = 35
	atMessageTs    = 18 // magic 1
	shortestHeader = 26 // a magic 0 message with neither key nor value
	entryOverhead  = batch.LogOverhead
)

// parseEntry reads a header from b, which holds at least shortestHeader bytes.
// ok is false if this cannot be the start of an entry.
func parseEntry(b []byte, pos int64) (e entry, ok bool) {
	length := int32(binary.BigEndian.Uint32(b[8:]))
	e = entry{
		pos: pos, size: entryOverhead + int(length), magic: int8(b[atMagic]),
		base: Offset(binary.BigEndian.Uint64(b)), maxTs: -1, epoch: -1,
	}
	e.last = e.base
	if length < shortestHeader-entryOverhead || e.base < 0 {
		return e, false
	}
	switch e.magic {
	case 2:
		if e.size < batch.HeaderSize || len(b) < batch.HeaderSize {
			return e, false
		}
		e.epoch = int32(binary.BigEndian.Uint32(b[atEpoch:]))
		e.last += Offset(int32(binary.BigEndian.Uint32(b[atLastDelta:])))
		e.maxTs = int64(binary.BigEndian.Uint64(b[atMaxTs:]))
	case 1:
		e.maxTs = int64(binary.BigEndian.Uint64(b[atMessageTs:]))
	case 0:
	default:
		return e, false
	}
	return e, e.last >= e.base
}

// walker reads the headers of a segment one after another without the records
// behind them. Every segment byte below size is a whole batch (L3), so a header
// that does not parse is damage.
type walker struct {
	file io.ReaderAt
	of   *segment // for messages: making its file's name costs more than a look-up
	name string   // ... of a file that is no segment's
	pos  int64    // of the next entry
	end  int64
	buf  []byte // chunk
	from int64  // position of buf[0]
	have int    // bytes in buf
	big  bool   // the entry before was larger than a chunk: the next one will not be in it either
}

var walkBuffers = sync.Pool{New: func() any { b := make([]byte, walkChunk); return &b }}

// next returns io.EOF at the end, and *CorruptError at what is no entry.
func (w *walker) next() (entry, error) {
	left := w.end - w.pos
	if left == 0 {
		return entry{}, io.EOF
	}
	need := int(min(left, batch.HeaderSize))
	if w.pos < w.from || w.pos+int64(need) > w.from+int64(w.have) {
		chunk := len(w.buf)
		if w.big {
			chunk = batch.HeaderSize
		}
		w.from, w.have = w.pos, int(min(left, int64(chunk)))
		if err := readFull(w.file, w.buf[:w.have], w.pos); err != nil {
			w.have = 0
			return entry{}, fmt.Errorf("%s: read at %d: %w", w.path(), w.pos, err)
		}
	}
	if left < shortestHeader {
		return entry{}, w.damage("a whole entry", fmt.Sprintf("%d bytes", left))
	}
	at := int(w.pos - w.from)
	e, ok := parseEntry(w.buf[at:min(w.have, at+batch.HeaderSize)], w.pos)
	if !ok {
		return e, w.damage("a batch header", fmt.Sprintf("offset %d, size %d, magic %d", e.base, e.size, e.magic))
	}
	if int64(e.size) > left {
		return e, w.damage("a whole batch", fmt.Sprintf("%d of %d bytes", left, e.size))
	}
	w.pos += int64(e.size)
	w.big = e.size > len(w.buf)
	return e, nil
}

func (w *walker) damage(want, got string) error {
	return &CorruptError{File: w.path(), Position: w.pos, Want: want, Got: got}
}

func (w *walker) path() string {
	if w.of != nil {
		return w.of.path(logSuffix)
	}
	return w.name
}

// readFull fills b or says why not.
func readFull(f io.ReaderAt, b []byte, at int64) error {
	n, err := f.ReadAt(b, at)
	if n == len(b) {
		return nil
	}
	if err == nil || errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return err
}

// walk calls each for every entry from position pos to end, until it returns false.
func (s *segment) walk(pos, end int64, each func(e entry) bool) error {
	f, err := s.file()
	if err != nil {
		return err
	}
	buf := walkBuffers.Get().(*[]byte)
	defer walkBuffers.Put(buf)
	w := walker{file: f, of: s, pos: pos, end: end, buf: *buf}
	for {
		e, err := w.next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if !each(e) {
			return nil
		}
	}
}

// errIndexLies says that an index entry does not point at the batch it names.
var errIndexLies = fmt.Errorf("%w: an entry does not point at its batch", index.ErrCorrupt)

// locate finds the entry that holds off, or the first one above it. found is
// false if off lies behind the last batch; e.pos is then the position behind
// it, as of the moment of the look-up. The index is a hint: each
// entry is held against the batch that it names, and errIndexLies asks the
// caller to have it made again.
func (s *segment) locate(off Offset) (e entry, found bool, err error) {
	hint, at, err := s.index.Lookup(int64(off))
	if err != nil {
		return e, false, err
	}
	pos, size := int64(at), s.size.Load() // size after the look-up: it covers all that the index names
	if pos >= size && pos > 0 {
		return e, false, errIndexLies
	}
	first, lied := pos > 0, false
	err = s.walk(pos, size, func(got entry) bool {
		if first && got.last != Offset(hint) {
			lied = true
			return false
		}
		first = false
		if got.last >= off {
			e, found = got, true
		}
		return !found
	})
	var damaged *CorruptError
	if lied || first && errors.As(err, &damaged) && pos > 0 {
		return e, false, errIndexLies
	}
	if !found {
		e.pos = size
	}
	return e, found, err
}

// header is the header of the entry at pos that next has just returned.
func (w *walker) header(pos int64) []byte {
	at := int(pos - w.from)
	return w.buf[at : at+batch.HeaderSize]
}
