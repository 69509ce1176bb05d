//go:build linux && (amd64 || arm64)

package ring

import (
	"os"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// queue is a submission queue and its completion queue, in memory shared with the kernel. One batch owns it at a time.
//
// The kernel reads entries between head and tail of the submission queue, only while io_uring_enter is called, and moves its head; we move
// its tail. It writes completions, at any time, and moves that queue's tail; we move its head.
type queue struct {
	file *os.File        // the ring's descriptor, known to Go's poller
	raw  syscall.RawConn // of file
	fd   int

	rings, entries []byte // the mappings

	sqHead, sqTail *uint32
	sqMask         uint32
	sqes           []sqe
	cqHead, cqTail *uint32
	cqMask         uint32
	cqes           []cqe

	broken bool // enter failed for a reason of its own: not to be used again
}

// sqe is struct io_uring_sqe.
type sqe struct {
	opcode   uint8
	flags    uint8
	ioprio   uint16
	fd       int32
	off      uint64
	addr     uint64
	len      uint32
	opFlags  uint32
	userData uint64
	_        [3]uint64
}

// cqe is struct io_uring_cqe.
type cqe struct {
	userData uint64
	res      int32
	flags    uint32
}

const (
	_ = uint(unsafe.Sizeof(sqe{})-64) + uint(64-unsafe.Sizeof(sqe{}))
	_ = uint(unsafe.Sizeof(cqe{})-16) + uint(16-unsafe.Sizeof(cqe{}))
)

// From include/uapi/linux/io_uring.h.
const (
	opFsync   = 3
	opRead    = 22
	opWrite   = 23
	opFadvise = 24

	sqeAsync       = 1 << 4 // IOSQE_ASYNC: a kernel worker does it from the start
	fsyncDatasync  = 1
	enterGetEvents = 1
)

// push puts the operation into the submission queue, as the one at that place of its batch. There is room.
func (q *queue) push(o *Op, place int, flags uint8) {
	tail := *q.sqTail // ours alone
	e := &q.sqes[tail&q.sqMask]
	*e = sqe{flags: flags, fd: int32(o.FD), userData: uint64(place)}
	switch o.Kind {
	case Read, Write:
		e.opcode = opRead
		if o.Kind == Write {
			e.opcode = opWrite
		}
		e.off = uint64(o.Off)
		e.addr = uint64(uintptr(unsafe.Pointer(unsafe.SliceData(o.Buf))))
		e.len = uint32(min(len(o.Buf), maxBytes)) // the rest is finished as that of any short one
	case Sync:
		e.opcode, e.opFlags = opFsync, fsyncDatasync
	case WillNeed:
		e.opcode, e.opFlags = opFadvise, unix.FADV_WILLNEED
		e.off, e.len = uint64(o.Off), uint32(min(o.Len, maxBytes)) // a hint may be shorter
	}
	atomic.StoreUint32(q.sqTail, tail+1)
}

// maxBytes is what Linux reads or writes in one call at most (MAX_RW_COUNT).
const maxBytes = 1<<31 - 4096

// load fills the submission queue and returns how many operations are in it.
func (q *queue) load(ops []Op, flags uint8) int {
	n := 0
	for i := range ops {
		if o := &ops[i]; o.begin() {
			q.push(o, i, flags)
			n++
		}
	}
	return n
}

// wait carries out ops, which fit in the queue, and waits for them in the kernel.
func (q *queue) wait(ops []Op) { q.finish(ops, q.load(ops, 0)) }

// park carries out ops, which fit in the queue, and waits for them in Go's poller.
func (q *queue) park(ops []Op) {
	left := q.load(ops, sqeAsync)
	unsent := q.submit(left)
	if unsent > 0 { // no resources for all of them: the other way knows what to do
		q.finish(ops, left)
		return
	}
	// The poller reports each completion at least once, and one that came before the wait began ends it at once.
	_ = q.raw.Read(func(uintptr) bool {
		left -= q.reap(ops)
		return left == 0
	})
	q.finish(ops, left) // nothing is left, unless the poller failed
}

// submit hands up to n entries to the kernel and returns how many it did not take.
func (q *queue) submit(n int) (unsent int) {
	for n > 0 {
		took, errno := q.enter(n, 0, 0)
		if errno == unix.EINTR {
			continue
		}
		if errno != 0 || took == 0 {
			return n
		}
		n -= took
	}
	return 0
}

// finish submits what is not submitted yet and returns when all left operations have ended. It never returns earlier: the kernel has their buffers.
func (q *queue) finish(ops []Op, left int) {
	for {
		left -= q.reap(ops)
		if left == 0 {
			return
		}
		unsent := int(*q.sqTail - atomic.LoadUint32(q.sqHead))
		_, errno := q.enter(unsent, left, enterGetEvents)
		switch errno {
		case 0, unix.EINTR:
		case unix.EAGAIN, unix.EBUSY:
			if unsent == left { // nothing is under way that could make room
				left -= q.withdraw(ops)
			}
		default:
			q.broken = true
			left -= q.withdraw(ops)
			time.Sleep(time.Millisecond) // what is under way ends by itself
		}
	}
}

// withdraw takes back what the kernel has not taken, carries it out by plain calls, and returns how many that were. The kernel looks at
// the queue only during enter, so its tail may go back.
func (q *queue) withdraw(ops []Op) int {
	head, tail := atomic.LoadUint32(q.sqHead), *q.sqTail
	for at := head; at != tail; at++ {
		ops[q.sqes[at&q.sqMask].userData].plain()
	}
	atomic.StoreUint32(q.sqTail, head)
	return int(tail - head)
}

func (q *queue) enter(submit, complete, flags int) (int, unix.Errno) {
	n, _, errno := unix.Syscall6(unix.SYS_IO_URING_ENTER, uintptr(q.fd), uintptr(submit), uintptr(complete), uintptr(flags), 0, 0)
	if errno != 0 {
		return 0, errno
	}
	return int(n), 0
}

// reap takes the completions that are there and returns how many.
func (q *queue) reap(ops []Op) int {
	head := *q.cqHead // ours alone
	tail := atomic.LoadUint32(q.cqTail)
	n := int(tail - head)
	for ; head != tail; head++ {
		c := q.cqes[head&q.cqMask]
		ops[c.userData].ended(c.res)
	}
	atomic.StoreUint32(q.cqHead, head)
	return n
}

// ended takes the kernel's result. What was interrupted, cancelled with its thread, or came out short is finished by plain calls.
func (o *Op) ended(res int32) {
	switch errno := unix.Errno(-res); {
	case res >= 0:
		if !o.took(int(res)) {
			o.plain()
		}
	case errno == unix.EINTR || errno == unix.EAGAIN || errno == unix.ECANCELED:
		o.plain()
	default:
		o.fail(errno)
	}
}
