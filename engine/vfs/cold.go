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
//     stands behind it. So a cold range is asked for in windows, one at a time, before anything touches it: the kernel then finds it in memory and
//     reads nothing ahead by itself. Measured, with four readers, MB/s and what a write of 4 KiB takes beside them (p50, p99; alone 0.14 ms):
//     one window of 512 KiB 812, 0.7 and 4 ms; two of 256 KiB 863, 0.8 and 4; one of 1 MiB 892, 1.5 and 13; four of 1 MiB 1360, 12 and 28;
//     four of 4 MiB 1166, 44 and 116.
const (
	// coldWindow is read at a time.
	coldWindow = 512 << 10

	// coldReads is how many windows are under way on one device.
	coldReads = 1
)

// prepare sees to it that the next bytes are in memory, and says in ready how many. Of a cold range the window after this one is read while
// this one is sent; who waits for that is end.
func (s *sending) prepare(in int) {
	s.ready = s.off + min(s.left, sendChunk)
	f := s.file
	if f == nil || s.ahead == nil && !isCold(in, s.off, s.ready-s.off) {
		return
	}
	n := min(s.left, coldWindow-s.off%coldWindow)
	s.ready = s.off + n
	if s.ahead != nil {
		s.end()
	} else if isCold(in, s.off, n) {
		f.fetch(in, s.off, n)
	}
	if next := min(s.left-n, coldWindow); next > 0 && isCold(in, s.ready, next) {
		ahead := make(chan struct{})
		s.ahead = ahead
		go func(off int64) { // ends with its window; end waits for it, before in may be closed
			f.fetch(in, off, next)
			close(ahead)
		}(s.ready)
	}
}

// end waits for the window that is being read ahead.
func (s *sending) end() {
	if s.ahead != nil {
		<-s.ahead
		s.ahead = nil
	}
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
	_ = f.hold(k.hold)
	runtime.KeepAlive(p)
	k.iov.Base = nil
	return k.n
}

// peeking is the state of one peek, pooled so that reading what is in memory allocates nothing.
type peeking struct {
	iov  unix.Iovec
	off  int64
	n    int
	hold func(fd int)
}

var peeks = sync.Pool{New: func() any {
	k := new(peeking)
	k.hold = k.run
	return k
}}

func (k *peeking) run(fd int) {
	n, _, errno := unix.Syscall6(unix.SYS_PREADV2, uintptr(fd), uintptr(unsafe.Pointer(&k.iov)), 1, uintptr(k.off), 0, unix.RWF_NOWAIT) // on 64 bits the high half is ignored
	if errno == 0 {
		k.n = int(n)
	}
}

// coldReader reads by ReadCold.
type coldReader struct{ f *osFile }

func (r coldReader) ReadAt(p []byte, off int64) (int, error) { return r.f.ReadCold(p, off) }

var _ io.ReaderAt = coldReader{}
