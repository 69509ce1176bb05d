package engine

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"

	"millrace/engine/vfs"
)

// scrubIndex is the bytes of an index file, which are held against the batches of its segment as these go by. Every entry of an offset index must
// point at a batch that ends where it says. Of a time index order and range are looked at: Kafka's versions differ in which offset they enter.
type scrubIndex struct {
	fs    vfs.FS
	path  string
	base  Offset
	raw   []byte
	size  int   // of an entry
	at    int   // the entry that is next
	err   error // the first thing that is wrong
	badAt int64 // position of that
}

// read reads the file. Its segment may be going: an error counts only if confirm says so.
func (i *scrubIndex) read(x *scrub, suffix string, size int) {
	*i = scrubIndex{fs: x.segment.folder.fs, path: x.segment.path(suffix), base: x.segment.base, size: size}
	i.raw, i.err = i.load()
	if i.err = missing(i.err); i.err != nil {
		return
	}
	if over := len(i.raw) % size; over != 0 {
		i.bad(len(i.raw)-over, fmt.Sprintf("whole entries of %d bytes", size), fmt.Sprintf("%d bytes", len(i.raw)))
		return
	}
	zero := make([]byte, size)
	for n := 0; n < len(i.raw); n += size {
		if bytes.Equal(i.raw[n:n+size], zero) {
			i.raw = i.raw[:n] // the rest was reserved and never used
		}
	}
}

func (i *scrubIndex) load() ([]byte, error) {
	f, err := i.fs.OpenFile(i.path, os.O_RDONLY)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	size, err := f.Size()
	if err != nil || size > maxScrubIndex {
		return nil, err
	}
	b := make([]byte, size)
	return b, readFull(f, b, 0)
}

func (i *scrubIndex) bad(at int, want, got string) {
	if i.err == nil {
		i.err, i.badAt = &CorruptError{Want: want, Got: got}, int64(at)
	}
}

// meet takes up to the next batch. The entries are those of an offset index.
func (i *scrubIndex) meet(pos int64, last Offset) {
	for i.err == nil && i.at < len(i.raw) {
		e := i.raw[i.at:]
		off, at := i.base+Offset(int32(binary.BigEndian.Uint32(e))), int64(int32(binary.BigEndian.Uint32(e[4:])))
		if at > pos {
			return
		}
		if at != pos || off != last {
			i.bad(i.at, "the last offset and the position of a batch", fmt.Sprintf("offset %d, position %d", off, at))
		}
		i.at += i.size
	}
}

// end: all batches have gone by.
func (i *scrubIndex) end() {
	if i.err == nil && i.at < len(i.raw) {
		i.bad(i.at, "the last offset and the position of a batch", fmt.Sprintf("position %d, behind the last one", int32(binary.BigEndian.Uint32(i.raw[i.at+4:]))))
	}
}

// checkTimes looks at a time index; maxTs is the largest timestamp of the segment.
func (i *scrubIndex) checkTimes(x *scrub, maxTs int64) {
	beforeTs, before := int64(-1), i.base
	for at := 0; at < len(i.raw) && i.err == nil; at += i.size {
		ts, off := int64(binary.BigEndian.Uint64(i.raw[at:])), i.base+Offset(int32(binary.BigEndian.Uint32(i.raw[at+8:])))
		if ts <= beforeTs || ts > maxTs || off < before || off >= x.next {
			i.bad(at, fmt.Sprintf("a timestamp in (%d, %d] of an offset in [%d, %d)", beforeTs, maxTs, before, x.next), fmt.Sprintf("%d of %d", ts, off))
		}
		beforeTs, before = ts, off
	}
}

// unchanged tells that the file still says the same.
func (i *scrubIndex) unchanged() bool {
	raw, err := i.load()
	if i.err != nil && err != nil {
		return true
	}
	return err == nil && bytes.HasPrefix(raw, i.raw)
}
