package wire

import (
	"bytes"
	"encoding/binary"
	"fmt"
)

// httpWords begin the requests of browsers, scanners and health checks.
var httpWords = []string{"GET ", "HEAD", "POST", "PUT ", "DELE", "OPTI", "PATC", "CONN", "TRAC", "PRI ", "HTTP"}

// DescribeGarbage says what the first bytes of a connection look like, where
// they are no frame that we accept: their first four make the length. At least
// four bytes should be given. For one log line when the connection is closed.
func DescribeGarbage(first []byte) string {
	if len(first) < 4 {
		return fmt.Sprintf("%d bytes and then the end", len(first))
	}
	for _, w := range httpWords {
		if bytes.HasPrefix(first, []byte(w)) {
			return "looks like an HTTP request; this port speaks the Kafka protocol"
		}
	}
	// A TLS record: type 0x14–0x17, then version 3.0 to 3.4.
	if first[0] >= 0x14 && first[0] <= 0x17 && first[1] == 3 && first[2] <= 4 {
		if first[0] == 0x16 {
			return "looks like a TLS hello; this listener is plain text, or the client's security.protocol is wrong"
		}
		return "looks like TLS; this listener is plain text"
	}
	if bytes.HasPrefix(first, []byte("SSH-")) {
		return "looks like an SSH client"
	}
	if bytes.HasPrefix(first, []byte("PROX")) || bytes.HasPrefix(first, []byte("\r\n\r\n")) {
		return "looks like a proxy's PROXY protocol header, which is not supported"
	}
	switch n := int32(binary.BigEndian.Uint32(first)); {
	case n < 0:
		return fmt.Sprintf("says its length is %d, which is negative; not the Kafka protocol", n)
	case n < 8:
		return fmt.Sprintf("says its length is %d bytes, too short for a request header", n)
	default:
		return fmt.Sprintf("says its length is %d bytes, or is not the Kafka protocol", n)
	}
}
