//go:build linux && (amd64 || arm64)

package vfs

import (
	"io"
	"io/fs"
	"runtime"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

// maxIOV is the kernel's bound on buffers in one call (UIO_MAXIOV). The kernel's
// bound on bytes in one call, 2 GiB less a page, needs no care: it shows as a
// short write.
const maxIOV = 1024

// gather is the state of one WriteVAt, pooled so that appending allocates
// nothing: run is bound once, and the vector keeps its capacity.
type gather struct {
	iov  []unix.Iovec
	off  int64
	n    int
	err  error
	hold func(fd int)
}

var gathers = sync.Pool{New: func() any {
	g := &gather{iov: make([]unix.Iovec, 0, maxIOV)}
	g.hold = g.run
	return g
}}

func (f *osFile) WriteVAt(bufs [][]byte, off int64) (int, error) {
	if len(bufs) == 1 {
		return f.WriteAt(bufs[0], off)
	}
	if off < 0 {
		return 0, &fs.PathError{Op: "pwritev", Path: f.Name(), Err: unix.EINVAL}
	}
	g := gathers.Get().(*gather)
	defer g.free()
	g.off, g.n, g.err = off, 0, nil
	for _, b := range bufs {
		if len(b) == 0 {
			continue
		}
		if len(g.iov) == maxIOV && !f.write(g) {
			break
		}
		v := unix.Iovec{Base: unsafe.SliceData(b)}
		v.SetLen(len(b))
		g.iov = append(g.iov, v)
	}
	if g.err == nil {
		f.write(g)
	}
	runtime.KeepAlive(bufs)
	if g.err != nil {
		return g.n, &fs.PathError{Op: "pwritev", Path: f.Name(), Err: g.err}
	}
	return g.n, nil
}

// write writes what g has gathered and empties it; false: g.err is set.
func (f *osFile) write(g *gather) bool {
	if err := f.hold(g.hold); err != nil {
		g.err = err
	}
	g.iov = g.iov[:0]
	return g.err == nil
}

// run writes the vector at g.off until nothing of it is left. A short write is
// no error: it is what a signal, the 2 GiB bound or a nearly full disk leave, and
// the next call gets the reason if there is one.
func (g *gather) run(fd int) {
	left := g.iov
	for len(left) > 0 {
		n, _, errno := unix.Syscall6(unix.SYS_PWRITEV, uintptr(fd), uintptr(unsafe.Pointer(&left[0])),
			uintptr(len(left)), uintptr(g.off), 0, 0) // on 64 bits the high half is ignored
		switch {
		case errno == unix.EINTR:
			continue
		case errno != 0:
			g.err = errno
			return
		case n == 0:
			g.err = io.ErrUnexpectedEOF // would loop for ever; pwrite in package os says the same
			return
		}
		g.off += int64(n)
		g.n += int(n)
		left = consume(left, int(n))
	}
}

// consume drops the first n bytes of a vector, in place.
func consume(v []unix.Iovec, n int) []unix.Iovec {
	for len(v) > 0 && uint64(n) >= v[0].Len {
		n -= int(v[0].Len)
		v = v[1:]
	}
	if n > 0 {
		v[0].Base = (*byte)(unsafe.Add(unsafe.Pointer(v[0].Base), n))
		v[0].Len -= uint64(n)
	}
	return v
}

// free puts g back without the pointers to the caller's memory.
func (g *gather) free() {
	clear(g.iov[:cap(g.iov)])
	g.iov = g.iov[:0]
	gathers.Put(g)
}
