//go:build linux && (amd64 || arm64)

package vfs

import (
	"io"
)

const (
	// copyBufferBytes is four TLS records; larger gains nothing once reads of the
	// page cache and the records' encryption dominate.
	copyBufferBytes = 64 << 10

	// copyBuffersKept bounds the idle buffers: 64 x 64 KiB = 4 MiB, outside the heap.
	// A copy that finds none maps one, and unmaps it if the list is full by then.
	copyBuffersKept = 64
)

var copyBuffers = make(chan []byte, copyBuffersKept)

// CopyTo writes the bytes [off, off+n) of r to w through a pooled buffer and
// returns how many w took. io.ErrUnexpectedEOF means that r ended before off+n.
func CopyTo(w io.Writer, r io.ReaderAt, off, n int64) (int64, error) {
	if n <= 0 {
		return 0, nil
	}
	var buf []byte
	select {
	case buf = <-copyBuffers:
	default:
		buf = AlignedBuffer(copyBufferBytes)
	}
	defer func() {
		select {
		case copyBuffers <- buf:
		default:
			FreeBuffer(buf)
		}
	}()
	var done int64
	for done < n {
		part := buf[:min(n-done, copyBufferBytes)]
		got, err := r.ReadAt(part, off+done)
		if got == len(part) {
			err = nil // ReaderAt may report io.EOF with a full read
		}
		wrote, werr := w.Write(part[:got])
		done += int64(wrote)
		if werr != nil {
			return done, werr
		}
		if err == io.EOF {
			return done, io.ErrUnexpectedEOF
		}
		if err != nil {
			return done, err
		}
	}
	return done, nil
}
