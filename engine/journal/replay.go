package journal

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"millrace/engine/vfs"
)

// Entry is what the journal holds of one Add of an earlier life. A log replays its entries in order:
//
//	End <= log's end          it is there already: skip
//	Base <= log's end < End   append its batches from the log's end on: an entry may hold many, and the file be torn between them
//	Base > log's end          stop. A truncation or reset was interrupted before its Cut was durable, and is finished so. (There
//	                          is no other cause but damage: a block is written after its round's files are
//	                          synced and after every earlier round has ended.)
//
// What the log then has above its recovery point must be written again in place before it is synced, unless the machine is known to
// have been started anew since: after a failed sync the page cache of a machine that went on running shows bytes that
// the disk does not have and that no later sync writes, and Start takes the journal's copy away.
//
// Entries do not hold the bytes; Read fetches them, until Start.
type Entry struct {
	Epoch     int32
	Base, End int64 // offsets; Base is the log's end before, End after
	Size      int   // bytes

	file vfs.File
	at   int64
}

// Read fills dst, which must have Size bytes, with the batches as they were given to Add.
func (e *Entry) Read(dst []byte) error {
	if len(dst) != e.Size {
		return fmt.Errorf("journal entry of %d bytes read into %d", e.Size, len(dst))
	}
	if n, err := e.file.ReadAt(dst, e.at); n < len(dst) {
		return fmt.Errorf("read journal %s: %w", e.file.Name(), err)
	}
	return nil
}

// oldFile is a file of an earlier life.
type oldFile struct {
	name string
	file vfs.File
	size int64
	head blockHeader // of the first block, if chained
	// chained: the first block is whole. Otherwise nothing in the file can be replayed.
	chained bool
}

// Replay returns what is left of the log's batches, in the order of their rounds. Cuts have been applied already.
func (j *Journal) Replay(id LogID) []Entry { return slices.Clone(j.entries[id]) }

// Logs returns every log that has entries, in a fixed order.
func (j *Journal) Logs() []LogID {
	ids := make([]LogID, 0, len(j.entries))
	for id := range j.entries {
		ids = append(ids, id)
	}
	slices.SortFunc(ids, func(a, b LogID) int {
		return cmp.Or(bytes.Compare(a.Topic[:], b.Topic[:]), cmp.Compare(a.Partition, b.Partition))
	})
	return ids
}

// scan reads what earlier lives left. It streams each file once to check it and keeps only where things are.
func (j *Journal) scan() error {
	indexes, left, err := listFiles(j.fs, j.dir)
	if err != nil {
		return err
	}
	j.doomed = left
	var s scanner
	for _, n := range indexes {
		j.nextIndex = max(j.nextIndex, n+1)
		name := filepath.Join(j.dir, filePrefix+strconv.Itoa(n))
		f, err := j.fs.OpenFile(name, os.O_RDONLY)
		if err != nil {
			return fmt.Errorf("open journal: %w", err)
		}
		j.old = append(j.old, oldFile{name: name, file: f})
		old := &j.old[len(j.old)-1]
		if old.size, err = f.Size(); err != nil {
			return fmt.Errorf("size of journal: %w", err)
		}
		s.open(f, old.size)
		if old.head, _, old.chained, err = s.block(0); err != nil {
			return err
		}
	}
	// In the order in which they were written. Files without a chain come first, in no order.
	slices.SortStableFunc(j.old, func(a, b oldFile) int {
		return cmp.Or(
			cmp.Compare(b2i(a.chained), b2i(b.chained)),
			cmp.Compare(a.head.began, b.head.began),
			bytes.Compare(a.head.generation[:], b.head.generation[:]),
			cmp.Compare(a.head.number, b.head.number))
	})
	return j.scanChains(&s)
}

// scanChains collects the entries of the newest unbroken sequence of blocks. There is only one sequence unless files were damaged or moved here:
// Start kills all files of the generation before, and files are killed in order (see recycle).
func (j *Journal) scanChains(s *scanner) error {
	j.entries = map[LogID][]Entry{}
	var previous *oldFile
	var expected uint64 // number that the next file must begin with
	for i := range j.old {
		old := &j.old[i]
		if !old.chained {
			continue
		}
		if previous != nil && (old.head.generation != previous.head.generation || old.head.number != expected) {
			// What came before may have been cut by what is missing here, so it must not come back.
			j.log.Error("the commit journal has a hole; what was written before it is not replayed",
				"before", previous.name, "after", old.name, "missing from", expected, "to", old.head.number,
				"logs", len(j.entries))
			clear(j.entries)
		}
		last, err := j.scanFile(s, old)
		if err != nil {
			return err
		}
		previous, expected = old, last+1
	}
	return nil
}

// scanFile goes through the blocks of one file up to the first that is not whole or not of the chain: it was torn, and then nothing
// after it was acknowledged, or it is what an earlier use of the file left. It returns the number of the last good one.
func (j *Journal) scanFile(s *scanner, old *oldFile) (last uint64, err error) {
	s.open(old.file, old.size)
	for at := int64(0); ; {
		h, block, ok, err := s.block(at)
		if err != nil {
			return 0, err
		}
		if !ok || at > 0 && (h.generation != old.head.generation || h.number != last+1) {
			if at == 0 {
				return 0, fmt.Errorf("journal %s changes while it is read", old.name)
			}
			return last, nil
		}
		if err := j.scanBlock(old, at, &h, block); err != nil {
			return 0, err
		}
		last = h.number
		at += int64(padTo(headerBytes+h.length, pageBytes))
	}
}

// scanBlock takes the records of a whole block.
func (j *Journal) scanBlock(old *oldFile, at int64, h *blockHeader, block []byte) error {
	rest := block[headerBytes : headerBytes+h.length]
	for n := range h.count {
		rec, ok := parseRecord(rest)
		if !ok {
			return fmt.Errorf("journal %s, position %d: checksum holds, but record %d of %d does not fit", old.name, at, n, h.count)
		}
		entries := j.entries[rec.id]
		switch rec.kind {
		case kindBatches:
			entries = append(entries, Entry{
				Epoch: rec.epoch,
				Base:  rec.base,
				End:   rec.end,
				Size:  rec.size,
				file:  old.file,
				at:    at + int64(headerBytes+h.length-len(rest)+recordBytes),
			})
		case kindCut:
			var err error
			if entries, err = cutEntries(entries, rec.base); err != nil {
				return err
			}
		default:
			return fmt.Errorf("journal %s, position %d: record of unknown kind %d; a newer version wrote it", old.name, at, rec.kind)
		}
		if len(entries) == 0 {
			delete(j.entries, rec.id)
		} else {
			j.entries[rec.id] = entries
		}
		rest = rest[min(len(rest), recordBytes+padTo(rec.size, 8)):]
	}
	return nil
}

// cutEntries takes away what lies at or above from. Between cuts a log's entries are in offset order.
func cutEntries(entries []Entry, from int64) ([]Entry, error) {
	for len(entries) > 0 {
		e := &entries[len(entries)-1]
		if e.End <= from {
			break
		}
		if e.Base < from {
			if err := e.shrink(from); err != nil {
				return nil, err
			}
			if e.Size > 0 {
				break
			}
		}
		entries = entries[:len(entries)-1]
	}
	return entries, nil
}

// shrink leaves of an entry the batches that end at or below from. One Add may carry many, and a cut may lie between them.
// This is the one place where the journal looks into the bytes: offset, size, magic and last offset delta of each batch.
// What does not look like batches is dropped.
func (e *Entry) shrink(from int64) error {
	const (
		frame    = 12 // offset and size
		magicAt  = 16
		deltaAt  = 23
		wellInto = deltaAt + 4
	)
	var head [wellInto]byte
	be := binary.BigEndian
	kept, end := 0, e.Base
	for kept+frame < e.Size {
		n, err := e.file.ReadAt(head[:min(wellInto, e.Size-kept)], e.at+int64(kept))
		if err != nil && !errors.Is(err, io.EOF) {
			return fmt.Errorf("read journal %s: %w", e.file.Name(), err)
		}
		if n < magicAt+1 {
			break
		}
		last := int64(be.Uint64(head[:]))
		size := frame + int64(be.Uint32(head[8:]))
		if head[magicAt] >= 2 {
			if n < wellInto {
				break
			}
			last += int64(be.Uint32(head[deltaAt:]))
		}
		if last >= from || last < end || size > int64(e.Size-kept) {
			break
		}
		kept += int(size)
		end = last + 1
	}
	e.Size, e.End = kept, end
	return nil
}

// scanner reads blocks of one file through a window.
type scanner struct {
	file vfs.File
	size int64
	buf  []byte // its length is what has been read
	at   int64  // position of buf[0]
}

func (s *scanner) open(f vfs.File, size int64) {
	s.file, s.size, s.buf, s.at = f, size, s.buf[:0], 0
}

// block returns the block at a position; ok is false if there is no whole one. block is valid until the next call.
func (s *scanner) block(at int64) (h blockHeader, block []byte, ok bool, err error) {
	b, err := s.bytes(at, headerBytes)
	if b == nil || err != nil {
		return h, nil, false, err
	}
	if h, ok = parseHeader(b); !ok {
		return h, nil, false, nil
	}
	b, err = s.bytes(at, headerBytes+h.length)
	if b == nil || err != nil {
		return h, nil, false, err
	}
	return h, b, h.verified(b), nil
}

// bytes returns n bytes at a position, nil if the file ends before.
func (s *scanner) bytes(at int64, n int) ([]byte, error) {
	if at+int64(n) > s.size {
		return nil, nil
	}
	if at < s.at || at+int64(n) > s.at+int64(len(s.buf)) {
		want := int(min(int64(max(n, scanBytes)), s.size-at))
		if cap(s.buf) < want {
			s.buf = make([]byte, want)
		}
		s.buf = s.buf[:want]
		s.at = at
		if got, err := s.file.ReadAt(s.buf, at); got < n {
			s.buf = s.buf[:0]
			if err == nil || errors.Is(err, io.EOF) {
				return nil, nil // shorter than it was a moment ago
			}
			return nil, fmt.Errorf("read journal %s: %w", s.file.Name(), err)
		} else {
			s.buf = s.buf[:got]
		}
	}
	return s.buf[at-s.at:][:n], nil
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}
