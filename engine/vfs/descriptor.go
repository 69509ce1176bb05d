//go:build linux && (amd64 || arm64)

package vfs

import (
	"errors"
	"io"
	"io/fs"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// descriptor is an open file of the system: its number, and who is using it. It stands for *os.File, which is four objects in four places of memory
// and a finalizer: with tens of thousands of open files, written to in turn, each of them is out of every cache when its turn comes. Unlike
// *os.File it must be closed by somebody; nothing else does it.
type descriptor struct {
	fd   int
	name string
	uses atomic.Int64 // twice the calls that are using fd, and closing
}

// closing in descriptor.uses: Close was called. The last use closes the file.
const closing = 1

// open is open(2). os.OpenFile would make the descriptor non-blocking, offer it to epoll, be refused, since it is a regular file, and
// take it all back: three system calls for nothing.
func (d *descriptor) open(name string, flag int) error {
	err := retry(func() (err error) {
		d.fd, err = unix.Open(name, flag|unix.O_CLOEXEC, fileMode)
		return err
	})
	if err != nil {
		return &fs.PathError{Op: "open", Path: name, Err: err}
	}
	d.name = name
	return nil
}

// take keeps the number ours until give. It fails once Close was called: by then the number may belong to another file, and a write to it would
// land there.
func (d *descriptor) take() bool {
	for {
		n := d.uses.Load()
		if n&closing != 0 {
			return false
		}
		if d.uses.CompareAndSwap(n, n+2) {
			return true
		}
	}
}

func (d *descriptor) give() {
	if d.uses.Add(-2) == closing {
		_ = unix.Close(d.fd) // whoever called Close is gone
	}
}

// Name is the one that the file was opened by.
func (d *descriptor) Name() string { return d.name }

// Close ends the use of the file; calls that are under way end in peace, and the last of them closes it.
func (d *descriptor) Close() error {
	for {
		n := d.uses.Load()
		if n&closing != 0 {
			return d.failed("close", fs.ErrClosed)
		}
		if !d.uses.CompareAndSwap(n, n|closing) {
			continue
		}
		if n > 0 {
			return nil
		}
		return d.failed("close", unix.Close(d.fd)) // not again on EINTR: the number is free by then
	}
}

func (d *descriptor) failed(op string, err error) error {
	if err == nil {
		return nil
	}
	return &fs.PathError{Op: op, Path: d.name, Err: err}
}

// hold runs do with the number, which stays ours meanwhile. The error is that the file is closed.
func (d *descriptor) hold(do func(fd int)) error {
	if !d.take() {
		return fs.ErrClosed
	}
	defer d.give()
	do(d.fd)
	return nil
}

// control is hold for one system call: it repeats it when a signal interrupts it, and names the operation and the file in its error.
func (d *descriptor) control(op string, do func(fd int) error) error {
	if !d.take() {
		return d.failed(op, fs.ErrClosed)
	}
	defer d.give()
	return d.failed(op, retry(func() error { return do(d.fd) }))
}

// retry repeats do while a signal interrupts it. Nothing that is called through
// it reports an error once and success afterwards on EINTR: an interrupted
// fdatasync or syncfs has not consumed a write-back error.
func retry(do func() error) error {
	for {
		if err := do(); err != unix.EINTR {
			return err
		}
	}
}

// ReadAt is io.ReaderAt.
func (d *descriptor) ReadAt(p []byte, off int64) (int, error) {
	return d.whole("read", unix.Pread, p, off, io.EOF)
}

// WriteAt is io.WriterAt.
func (d *descriptor) WriteAt(p []byte, off int64) (int, error) {
	return d.whole("write", unix.Pwrite, p, off, io.ErrUnexpectedEOF)
}

// whole repeats call until p is done; atEnd is the error of one that does nothing and says nothing.
func (d *descriptor) whole(op string, call func(int, []byte, int64) (int, error), p []byte, off int64, atEnd error) (done int, err error) {
	if off < 0 {
		return 0, d.failed(op, errNegativeOffset)
	}
	if !d.take() {
		return 0, d.failed(op, fs.ErrClosed)
	}
	defer d.give()
	for done < len(p) {
		n, err := call(d.fd, p[done:], off+int64(done))
		switch {
		case err == unix.EINTR:
		case err != nil:
			return done, d.failed(op, err)
		case n == 0 && atEnd == io.EOF:
			return done, io.EOF // bare, as readers expect it
		case n == 0:
			return done, d.failed(op, atEnd)
		default:
			done += n
		}
	}
	return done, nil
}

var errNegativeOffset = errors.New("negative offset")
