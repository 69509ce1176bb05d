package store

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"os"

	"millrace/engine/vfs"
)

// A snapshot file: magic, offset of the first record that is not in it, then frames of
// length, checksum and bytes; a frame of length 0 is the end. The checksum is CRC-32C
// of everything before it but checksums, from the first byte of the file on, so that
// frames cannot change places.
const (
	magic      = "MRZKSN01"
	headerSize = len(magic) + 8
	frameHead  = 8
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// DamageError names a snapshot file and what is wrong with it.
type DamageError struct {
	File     string
	Position int64 // byte in File
	What     string
}

func (e *DamageError) Error() string {
	return fmt.Sprintf("%s: at byte %d: %s", e.File, e.Position, e.What)
}

// writer writes a snapshot file.
type writer struct {
	f   vfs.File
	pos int64
	out int64 // what is before it has been written to the disk
	sum uint32
}

func createFile(fsys vfs.FS, name string, offset int64) (*writer, error) {
	f, err := fsys.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_TRUNC)
	if err != nil {
		return nil, err
	}
	w := &writer{f: f}
	head := binary.BigEndian.AppendUint64([]byte(magic), uint64(offset))
	w.sum = crc32.Update(0, castagnoli, head)
	return w, w.put(head)
}

func (w *writer) put(b []byte) error {
	_, err := w.f.WriteAt(b, w.pos)
	w.pos += int64(len(b))
	return err
}

// write adds b in as many frames as it takes.
func (w *writer) write(b []byte) error {
	for len(b) > 0 {
		n := min(len(b), frameBytes)
		if err := w.frame(b[:n]); err != nil {
			return err
		}
		b = b[n:]
	}
	return w.writeOut()
}

// writeOut sends what is written to the disk, so that a round of the commit journal has
// little of a snapshot before it in the disk's queue, and the sync has little to do.
func (w *writer) writeOut() error {
	if w.pos-w.out < outBytes {
		return nil
	}
	err := w.f.WriteOut(w.out, w.pos-w.out, true)
	w.out = w.pos
	return err
}

func (w *writer) frame(b []byte) error {
	head := make([]byte, frameHead)
	binary.BigEndian.PutUint32(head, uint32(len(b)))
	w.sum = crc32.Update(crc32.Update(w.sum, castagnoli, head[:4]), castagnoli, b)
	binary.BigEndian.PutUint32(head[4:], w.sum)
	if err := w.put(head); err != nil || len(b) == 0 {
		return err
	}
	return w.put(b)
}

// finish marks the end and syncs.
func (w *writer) finish() error {
	if err := w.frame(nil); err != nil {
		return err
	}
	return w.f.Sync()
}

// reader gives back what was written, each frame only once its checksum is right.
type reader struct {
	f      vfs.File
	size   int64
	pos    int64
	sum    uint32
	frame  []byte // not read yet
	buf    []byte
	done   bool
	offset int64 // of the header
}

func openFile(fsys vfs.FS, name string) (*reader, error) {
	f, err := fsys.OpenFile(name, os.O_RDONLY)
	if err != nil {
		return nil, err
	}
	r := &reader{f: f}
	if r.size, err = f.Size(); err == nil {
		err = r.header()
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return r, nil
}

func (r *reader) damage(format string, args ...any) error {
	return &DamageError{File: r.f.Name(), Position: r.pos, What: fmt.Sprintf(format, args...)}
}

// get reads n bytes at the reader's position, and passes them.
func (r *reader) get(b []byte) error {
	if r.size-r.pos < int64(len(b)) {
		return r.damage("the file ends after %d bytes, %d more are wanted", r.size, int64(len(b))-(r.size-r.pos))
	}
	if _, err := r.f.ReadAt(b, r.pos); err != nil && err != io.EOF {
		return err
	}
	r.pos += int64(len(b))
	return nil
}

func (r *reader) header() error {
	head := make([]byte, headerSize)
	if err := r.get(head); err != nil {
		return err
	}
	if string(head[:len(magic)]) != magic {
		r.pos = 0
		return r.damage("%q is not the beginning of a snapshot (%q)", head[:len(magic)], magic)
	}
	r.offset = int64(binary.BigEndian.Uint64(head[len(magic):]))
	r.sum = crc32.Update(0, castagnoli, head)
	return nil
}

// Read is io.Reader's. io.EOF comes only at the marked end, with nothing behind it.
func (r *reader) Read(p []byte) (int, error) {
	for len(r.frame) == 0 {
		if r.done {
			return 0, io.EOF
		}
		if err := r.next(); err != nil {
			return 0, err
		}
	}
	n := copy(p, r.frame)
	r.frame = r.frame[n:]
	return n, nil
}

func (r *reader) next() error {
	var head [frameHead]byte
	if err := r.get(head[:]); err != nil {
		return err
	}
	n := binary.BigEndian.Uint32(head[:])
	if n > frameBytes {
		return r.damage("a frame of %d bytes, at most %d are written", n, frameBytes)
	}
	if r.buf == nil {
		r.buf = make([]byte, frameBytes)
	}
	b := r.buf[:n]
	if err := r.get(b); err != nil {
		return err
	}
	r.sum = crc32.Update(crc32.Update(r.sum, castagnoli, head[:4]), castagnoli, b)
	if want := binary.BigEndian.Uint32(head[4:]); want != r.sum {
		return r.damage("checksum 0x%08x, the bytes have 0x%08x", want, r.sum)
	}
	if r.frame, r.done = b, n == 0; r.done && r.pos != r.size {
		return r.damage("%d bytes behind the end", r.size-r.pos)
	}
	return nil
}
