//go:build linux

package wire

import (
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// moreWriter returns a write with MSG_MORE on a plain socket, nil for any
// other connection (TLS must see every byte). With it, a Fetch answer's header
// leaves in one packet with the first file bytes that sendfile adds.
func moreWriter(conn net.Conn) func([]byte) error {
	switch conn.(type) {
	case *net.TCPConn, *net.UnixConn:
	default:
		return nil
	}
	raw, err := conn.(syscall.Conn).SyscallConn()
	if err != nil {
		return nil
	}
	return func(b []byte) error {
		var failed error
		err := raw.Write(func(fd uintptr) bool {
			for len(b) > 0 {
				n, err := unix.SendmsgN(int(fd), b, nil, nil, unix.MSG_MORE|unix.MSG_NOSIGNAL)
				if n > 0 {
					b = b[n:]
				}
				switch err {
				case nil, unix.EINTR:
				case unix.EAGAIN:
					return false // wait until writable, or until the write deadline
				default:
					failed = err
					return true
				}
			}
			return true
		})
		if failed != nil {
			return &net.OpError{Op: "write", Net: conn.RemoteAddr().Network(), Addr: conn.RemoteAddr(), Err: failed}
		}
		return err
	}
}
