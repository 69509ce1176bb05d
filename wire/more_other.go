//go:build !linux

package wire

import "net"

// moreWriter: this system has no MSG_MORE; a plain write does.
func moreWriter(net.Conn) func([]byte) error { return nil }
