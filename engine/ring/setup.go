//go:build linux && (amd64 || arm64)

package ring

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// params is struct io_uring_params.
type params struct {
	sqEntries, cqEntries, flags, threadCPU, threadIdle, features, wqFD uint32

	_  [3]uint32
	sq struct {
		head, tail, mask, entries, flags, dropped, array, _ uint32
		_                                                   uint64
	}
	cq struct {
		head, tail, mask, entries, overflow, cqes, flags, _ uint32
		_                                                   uint64
	}
}

const (
	_ = uint(unsafe.Sizeof(params{})-120) + uint(120-unsafe.Sizeof(params{}))

	offRings   = 0          // IORING_OFF_SQ_RING
	offEntries = 0x10000000 // IORING_OFF_SQES

	featSingleMmap = 1 << 0 // IORING_FEAT_SINGLE_MMAP, Linux 5.4: both queues in one mapping
	featNoDrop     = 1 << 1 // IORING_FEAT_NODROP, Linux 5.5: completions are never lost

	registerProbe = 8 // IORING_REGISTER_PROBE
	probeOps      = 64
	opSupported   = 1
)

// setUp makes a queue pair with that many entries, a power of two.
func setUp(entries uint32) (_ *queue, err error) {
	var p params
	fd, _, errno := unix.Syscall(unix.SYS_IO_URING_SETUP, uintptr(entries), uintptr(unsafe.Pointer(&p)), 0)
	if errno != 0 {
		return nil, &SetupError{Step: "io_uring_setup", Err: errno}
	}
	q := &queue{fd: int(fd)}
	defer func() {
		if err != nil {
			q.close()
		}
	}()
	unix.CloseOnExec(q.fd)
	if p.features&featSingleMmap == 0 || p.features&featNoDrop == 0 {
		return nil, &SetupError{Step: "io_uring_setup", Err: errors.New("the kernel's io_uring is older than Linux 5.5")}
	}
	if err := q.mapQueues(&p); err != nil {
		return nil, &SetupError{Step: "mmap of the rings", Err: err}
	}
	// Non-blocking, so that package os gives the descriptor to the poller.
	if err := unix.SetNonblock(q.fd, true); err != nil {
		return nil, &SetupError{Step: "fcntl", Err: err}
	}
	q.file = os.NewFile(fd, "io_uring")
	if q.raw, err = q.file.SyscallConn(); err != nil {
		return nil, &SetupError{Step: "poller", Err: err}
	}
	return q, nil
}

func (q *queue) mapQueues(p *params) (err error) {
	size := max(p.sq.array+p.sqEntries*4, p.cq.cqes+p.cqEntries*uint32(unsafe.Sizeof(cqe{})))
	if q.rings, err = unix.Mmap(q.fd, offRings, int(size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_POPULATE); err != nil {
		return err
	}
	size = p.sqEntries * uint32(unsafe.Sizeof(sqe{}))
	if q.entries, err = unix.Mmap(q.fd, offEntries, int(size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_POPULATE); err != nil {
		return err
	}
	word := func(off uint32) *uint32 { return (*uint32)(unsafe.Pointer(&q.rings[off])) }
	q.sqHead, q.sqTail, q.sqMask = word(p.sq.head), word(p.sq.tail), *word(p.sq.mask)
	q.cqHead, q.cqTail, q.cqMask = word(p.cq.head), word(p.cq.tail), *word(p.cq.mask)
	q.sqes = unsafe.Slice((*sqe)(unsafe.Pointer(unsafe.SliceData(q.entries))), p.sqEntries)
	q.cqes = unsafe.Slice((*cqe)(unsafe.Pointer(word(p.cq.cqes))), p.cqEntries)
	for i, places := uint32(0), unsafe.Slice(word(p.sq.array), p.sqEntries); i < p.sqEntries; i++ {
		places[i] = i // entry i of the queue is always sqe i
	}
	return nil
}

// close gives everything back. Nothing is under way.
func (q *queue) close() {
	if q.entries != nil {
		_ = unix.Munmap(q.entries)
	}
	if q.rings != nil {
		_ = unix.Munmap(q.rings)
	}
	if q.file != nil {
		_ = q.file.Close()
	} else {
		_ = unix.Close(q.fd)
	}
}

// probe asks the kernel for the operations, then uses them: a filter may let the set-up pass and refuse what follows.
func (q *queue) probe() error {
	var answer struct {
		last, count uint8
		_           [14]uint8
		ops         [probeOps]struct {
			op, _ uint8
			flags uint16
			_     uint32
		}
	}
	_, _, errno := unix.Syscall6(unix.SYS_IO_URING_REGISTER, uintptr(q.fd), registerProbe, uintptr(unsafe.Pointer(&answer)), probeOps, 0, 0)
	if errno != 0 {
		return &SetupError{Step: "io_uring_register of a probe", Err: errno}
	}
	for kind, op := range map[Kind]uint8{Read: opRead, Write: opWrite, Sync: opFsync, WillNeed: opFadvise} {
		if op > answer.last || answer.ops[op].flags&opSupported == 0 {
			return &SetupError{Step: "probe", Err: fmt.Errorf("the kernel's io_uring has no %v", kind)}
		}
	}
	return q.try()
}

// try writes, syncs and reads a few bytes of a file in memory, waiting in both ways.
func (q *queue) try() error {
	fd, err := unix.MemfdCreate("millrace-probe", unix.MFD_CLOEXEC)
	if err != nil {
		return &SetupError{Step: "memfd_create", Err: err}
	}
	defer unix.Close(fd)
	written, read := []byte("io_uring"), make([]byte, 8)
	write := []Op{{Kind: Write, FD: fd, Name: "memfd", Buf: written}}
	rest := []Op{{Kind: Sync, FD: fd, Name: "memfd"}, {Kind: Read, FD: fd, Name: "memfd", Buf: read}, {Kind: WillNeed, FD: fd, Name: "memfd", Len: 8}}
	q.wait(write)
	q.park(rest)
	for _, o := range append(write, rest...) {
		if o.Err != nil && o.Kind != WillNeed {
			return &SetupError{Step: "a first operation", Err: o.Err}
		}
	}
	switch {
	case q.broken:
		return &SetupError{Step: "io_uring_enter", Err: errors.New("refused")}
	case !bytes.Equal(written, read):
		return &SetupError{Step: "a first operation", Err: fmt.Errorf("read back %q, not %q", read, written)}
	}
	return nil
}

// SetupError says why io_uring cannot be used here.
type SetupError struct {
	Step string
	Err  error
}

func (e *SetupError) Error() string {
	why := ""
	switch {
	case errors.Is(e.Err, unix.ENOSYS):
		why = " (the kernel has no io_uring, or a seccomp filter hides it)"
	case errors.Is(e.Err, unix.EPERM), errors.Is(e.Err, unix.EACCES):
		why = " (forbidden by a seccomp filter or by the sysctl kernel.io_uring_disabled)"
	}
	return fmt.Sprintf("io_uring cannot be used: %s: %v%s", e.Step, e.Err, why)
}

func (e *SetupError) Unwrap() error { return e.Err }
