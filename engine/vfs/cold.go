//go:build linux && (amd64 || arm64)

package vfs

import (
	"io"
	"runtime"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"

	"millrace/engine/ring"
)

// Reading what is not in memory must hold up nobody else. Two things did:
//
//   - Whoever waits in a system call holds a processor of Go's until the runtime takes it away, which can last for milliseconds; with two of them,
//     two cold readers stopped everybody. So a wait for the disk goes through Park.
//   - The kernel's own read-ahead (8 MiB on the machine this was measured on) of a few readers fills the device's queue, and a journal write
//     stands behind it: 11 ms where it takes 1 alone. So a cold range is asked for in windows, of which coldReads are under way at a time, before
//     anything touches it: the kernel then finds it in memory and reads nothing ahead by itself.
const (
	// coldWindow is read at a time.
	coldWindow = 1 << 20

	// coldReads is how many windows are under way on one device.
	coldReads = 2
)

// sendWindow makes [off, off+n) ready to be sent, or as much of it as is read at a time, and returns how much that is.
func (f *osFile) sendWindow(fd int, off, n int64) int64 {
	n = min(n, coldWindow-off%coldWindow)
	if isCold(fd, off, n) {
		f.fetch(fd, off, n)
	}
	return n
}

// isCold reports whether part of the range is not in memory. What is just being read counts as there: its reader waits for the disk, as
// the one who comes behind it will, for a window at most. A kernel before 6.5 cannot tell; then the range's last byte stands for it.
func isCold(fd int, off, n int64) bool {
	const page = 4096
	var in unix.Cachestat_t
	switch err := unix.Cachestat(uint(fd), &unix.CachestatRange{Off: uint64(off), Len: uint64(n)}, &in, 0); err {
	case nil:
		return int64(in.Cache) < (off+n-1)/page-off/page+1
	case unix.ENOSYS, unix.EPERM:
		var b [1]byte
		_, err := unix.Preadv2(fd, [][]byte{b[:]}, off+n-1, unix.RWF_NOWAIT)
		return err == unix.EAGAIN
	}
	return false // memory is all there is (tmpfs and the like)
}

// fetch brings a window into memory, when it is its turn.
func (f *osFile) fetch(fd int, off, n int64) {
	turn := f.way.turns(fd)
	turn <- struct{}{}
	defer func() { <-turn }()
	_ = unix.Fadvise(fd, off, n, unix.FADV_WILLNEED)
	// The window was asked for in one go; its last byte comes last, or nearly. Whatever goes wrong here shows when the bytes are sent.
	last := []ring.Op{{Kind: ring.Read, FD: fd, Name: f.Name(), Buf: make([]byte, 1), Off: off + n - 1}}
	f.way.park(last)
}

func (w *way) park(ops []ring.Op) {
	if w.cold {
		w.batches.Park(ops)
	} else {
		w.batches.Do(ops)
	}
}

// turns is what bounds the cold reads of the device that a file is on. One device that does not answer must not stop readers of another.
func (w *way) turns(fd int) chan struct{} {
	var st unix.Stat_t
	_ = unix.Fstat(fd, &st) // device 0 for all whose device cannot be told
	turn, ok := w.devices.Load(st.Dev)
	if !ok {
		turn, _ = w.devices.LoadOrStore(st.Dev, make(chan struct{}, coldReads))
	}
	return turn.(chan struct{})
}

// ReadCold is File: what is in memory is copied at once, the rest is waited for in the poller.
func (f *osFile) ReadCold(p []byte, off int64) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	if !f.way.cold { // nothing would be won
		return f.ReadAt(p, off)
	}
	n := f.peek(p, off)
	if n == len(p) {
		return n, nil
	}
	rest := []ring.Op{{Kind: ring.Read, Name: f.Name(), Buf: p[n:], Off: off + int64(n)}}
	if err := f.do(rest, f.way.batches.Park); err != nil {
		return n, err
	}
	return n + rest[0].N, rest[0].Err
}

// peek copies what is in memory of [off, off+len(p)), from its front, and returns how much that is. Errors are for the read that follows to find.
func (f *osFile) peek(p []byte, off int64) int {
	k := peeks.Get().(*peeking)
	defer peeks.Put(k)
	k.iov.Base, k.off, k.n = unsafe.SliceData(p), off, 0
	k.iov.SetLen(len(p))
	_ = f.raw.Control(k.hold)
	runtime.KeepAlive(p)
	k.iov.Base = nil
	return k.n
}

// peeking is the state of one peek, pooled so that reading what is in memory allocates nothing.
type peeking struct {
	iov  unix.Iovec
	off  int64
	n    int
	hold func(fd uintptr)
}

var peeks = sync.Pool{New: func() any {
	k := new(peeking)
	k.hold = k.run
	return k
}}

func (k *peeking) run(fd uintptr) {
	n, _, errno := unix.Syscall6(unix.SYS_PREADV2, fd, uintptr(unsafe.Pointer(&k.iov)), 1, uintptr(k.off), 0, unix.RWF_NOWAIT) // on 64 bits the high half is ignored
	if errno == 0 {
		k.n = int(n)
	}
}

// coldReader reads by ReadCold.
type coldReader struct{ f *osFile }

func (r coldReader) ReadAt(p []byte, off int64) (int, error) { return r.f.ReadCold(p, off) }

var _ io.ReaderAt = coldReader{}
