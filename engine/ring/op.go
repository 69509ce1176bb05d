//go:build linux && (amd64 || arm64)

package ring

import (
	"io"
	"io/fs"

	"golang.org/x/sys/unix"
)

// Kind is what an Op does.
type Kind uint8

// The kinds, each with the system call that it stands for.
const (
	Read     Kind = iota + 1 // pread
	Write                    // pwrite
	Sync                     // fdatasync
	WillNeed                 // posix_fadvise: begins to read a range into the page cache; a hint
)

var kindNames = [...]string{Read: "read", Write: "write", Sync: "fdatasync", WillNeed: "fadvise"}

func (k Kind) String() string {
	if int(k) < len(kindNames) && kindNames[k] != "" {
		return kindNames[k]
	}
	return "unknown operation"
}

// Op is one operation of a batch and, when Do has returned, its result.
type Op struct {
	Kind Kind
	FD   int    // the caller keeps it open until Do returns
	Name string // of the file, for errors
	Off  int64  // Read, Write, WillNeed
	Buf  []byte // Read, Write; the kernel's until Do returns
	Len  int64  // WillNeed: bytes; 0: to the end of the file

	N   int   // bytes read or written
	Err error // *fs.PathError, or io.EOF if a file ended before Buf was full
}

// fail notes an error in the name of the operation and the file.
func (o *Op) fail(err error) { o.Err = &fs.PathError{Op: o.Kind.String(), Path: o.Name, Err: err} }

// begin clears the result and reports whether there is anything to do. What the system calls would take amiss in different ways it refuses.
func (o *Op) begin() bool {
	o.N, o.Err = 0, nil
	if o.Kind < Read || o.Kind > WillNeed || o.Off < 0 || o.Len < 0 || o.FD < 0 {
		o.fail(unix.EINVAL)
		return false
	}
	return o.Kind == Sync || o.Kind == WillNeed || len(o.Buf) > 0
}

// plain carries out the operation, or what is left of it behind N, by system calls of this goroutine.
func (o *Op) plain() {
	for o.Err == nil {
		n, err := o.call()
		switch {
		case err == unix.EINTR || err == unix.EAGAIN: // a file gives the second only in passing
		case err != nil:
			o.fail(err)
		case o.took(n):
			return
		}
	}
}

func (o *Op) call() (int, error) {
	rest := o.Buf[min(o.N, len(o.Buf)):]
	switch o.Kind {
	case Read:
		return unix.Pread(o.FD, rest, o.Off+int64(o.N))
	case Write:
		return unix.Pwrite(o.FD, rest, o.Off+int64(o.N))
	case Sync:
		return 0, unix.Fdatasync(o.FD)
	}
	return 0, unix.Fadvise(o.FD, o.Off, o.Len, unix.FADV_WILLNEED)
}

// took counts n more bytes and reports whether the operation has ended.
func (o *Op) took(n int) bool {
	if o.Kind != Read && o.Kind != Write {
		return true
	}
	o.N += n
	switch {
	case o.N == len(o.Buf):
		return true
	case n > 0:
		return false
	case o.Kind == Read:
		o.Err = io.EOF
	default:
		o.fail(io.ErrShortWrite) // a write of nothing, without a reason
	}
	return true
}
