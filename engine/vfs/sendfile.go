//go:build linux && (amd64 || arm64)

package vfs

import (
	"errors"
	"io"
	"io/fs"
	"net"
	"os"
	"runtime"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// sendChunk bounds one sendfile call, and with it the time a thread spends in
// the kernel without the scheduler's knowledge when the reader keeps up: 4 MiB is
// about 2 ms at the 2 GB/s of loopback. Larger gains nothing.
const sendChunk = 4 << 20

func (f *osFile) SendTo(c net.Conn, off, n int64) (int64, error) {
	if off < 0 || n < 0 {
		return 0, &fs.PathError{Op: "sendfile", Path: f.Name(), Err: unix.EINVAL}
	}
	if n == 0 {
		return 0, nil
	}
	socket, ok := rawStream(c)
	if !ok {
		return CopyTo(c, coldReader{f}, off, n)
	}
	s := sending{name: f.Name(), off: off, left: n, file: f}
	err := s.send(f, socket)
	done := n - s.left
	if errors.Is(err, errNoSendfile) {
		more, err := CopyTo(c, coldReader{f}, s.off, s.left)
		return done + more, err
	}
	return done, err
}

// rawStream gives the descriptor of a connection that sendfile and MSG_MORE are
// for: TCP, or a Unix stream.
func rawStream(c net.Conn) (syscall.RawConn, bool) {
	switch c := c.(type) {
	case *net.TCPConn:
		raw, err := c.SyscallConn()
		return raw, err == nil
	case *net.UnixConn:
		if a := c.LocalAddr(); a == nil || a.Network() != "unix" {
			return nil, false // datagrams: a file's bytes must not be cut into messages
		}
		raw, err := c.SyscallConn()
		return raw, err == nil
	}
	return nil, false
}

// errNoSendfile: this pair of file and socket cannot; the bytes have to be copied.
var errNoSendfile = errors.New("no sendfile here")

// sending is one range on its way. off and left move with what the socket took,
// so after an error they say what is still to be sent.
type sending struct {
	name  string
	off   int64
	left  int64
	file  *osFile       // nil: whether the bytes are in memory is nobody's concern
	ready int64         // up to where they are in memory
	ahead chan struct{} // closed when the window behind ready is, too; nil: nobody asked for it
}

// send holds the file's descriptor, then the socket's write side, for the whole
// range: nobody else's bytes get in between, and neither number can be closed and
// given to another file while the kernel uses it.
func (s *sending) send(file *osFile, socket syscall.RawConn) error {
	var err, werr error
	held := file.hold(func(in int) {
		defer s.end()
		werr = socket.Write(func(out uintptr) (done bool) {
			done, err = s.pump(int(out), in)
			return done
		})
	})
	switch {
	case held != nil:
		return &fs.PathError{Op: "sendfile", Path: s.name, Err: held}
	case werr != nil: // deadline passed, connection closed
		return werr
	case err == nil || err == errNoSendfile || err == io.ErrUnexpectedEOF:
		return err
	}
	return os.NewSyscallError("sendfile", err)
}

// pump sends until the range is done, the socket is full (false: wait until it can
// be written, then call again) or an error ends it. The offset is explicit: the
// file's own position is shared by all who send from it, and is not touched.
func (s *sending) pump(out, in int) (done bool, err error) {
	for s.left > 0 {
		if s.off >= s.ready {
			s.prepare(in)
		}
		n, err := unix.Sendfile(out, in, &s.off, int(s.ready-s.off)) // moves s.off
		if n > 0 {
			s.left -= int64(n)
		}
		switch err {
		case nil:
			if n == 0 { // end of file
				return true, io.ErrUnexpectedEOF
			}
		case unix.EINTR:
		case unix.EAGAIN:
			return false, nil
		case unix.EINVAL, unix.ENOSYS, unix.EOPNOTSUPP:
			return true, errNoSendfile
		default:
			return true, err
		}
	}
	return true, nil
}

// WriteMore writes b to c as c.Write does, but tells TCP that more follows at
// once, so that a header does not leave in a segment of its own before the file
// range of SendTo. Whoever calls it must send something after it: the kernel may
// hold the tail back for up to 200 ms. On anything but *net.TCPConn it is c.Write.
func WriteMore(c net.Conn, b []byte) error {
	tcp, ok := c.(*net.TCPConn)
	if !ok || len(b) == 0 {
		return writeAll(c, b)
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return writeAll(c, b)
	}
	var failed error
	werr := raw.Write(func(fd uintptr) (done bool) {
		for len(b) > 0 {
			n, _, errno := unix.Syscall6(unix.SYS_SENDTO, fd, uintptr(unsafe.Pointer(unsafe.SliceData(b))),
				uintptr(len(b)), unix.MSG_MORE|unix.MSG_NOSIGNAL, 0, 0)
			switch errno {
			case 0:
				b = b[n:]
			case unix.EINTR:
			case unix.EAGAIN:
				return false
			default:
				failed = os.NewSyscallError("sendto", errno)
				return true
			}
		}
		return true
	})
	runtime.KeepAlive(b)
	if werr != nil {
		return werr
	}
	return failed
}

func writeAll(c net.Conn, b []byte) error {
	_, err := c.Write(b)
	return err
}
