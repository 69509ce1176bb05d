package proto

import "fmt"

// PasswdSize is the length of a session's password, in bytes.
const PasswdSize = 16

// ConnectRequest opens or resumes a session: the first frame of a connection.
type ConnectRequest struct {
	Protocol     int32
	LastZxidSeen int64
	Timeout      int32 // ms, wished for
	Session      int64 // 0: a new one
	Passwd       []byte
	ReadOnly     bool // a read-only server is good enough
	HasReadOnly  bool // the client is new enough (3.4) to send the flag, and so to read it back
}

// ConnectResponse answers it. Timeout 0 means that the session has expired.
type ConnectResponse struct {
	Protocol    int32
	Timeout     int32 // ms, granted
	Session     int64
	Passwd      []byte
	ReadOnly    bool
	HasReadOnly bool // to be sent: the client sent its own
}

type connectName struct{}

func (connectName) String() string { return "connect" }

// ParseConnect parses the first frame of a connection, from old clients too.
func ParseConnect(frame []byte) (ConnectRequest, error) {
	r := reader{b: frame}
	q := ConnectRequest{Protocol: r.int32(), LastZxidSeen: r.int64(), Timeout: r.int32(), Session: r.int64(), Passwd: r.buffer()}
	if r.err == nil && len(q.Passwd) > PasswdSize {
		return q, fmt.Errorf("zookeeper protocol: connect: a password of %d bytes, at most %d are allowed", len(q.Passwd), PasswdSize)
	}
	if q.HasReadOnly = len(r.b) > 0; q.HasReadOnly {
		q.ReadOnly = r.bool()
	}
	return q, r.end(connectName{})
}

// AppendConnect appends q, without the frame's length.
func AppendConnect(b []byte, q *ConnectRequest) []byte {
	b = appendInt32(appendInt64(appendInt32(b, q.Protocol), q.LastZxidSeen), q.Timeout)
	b = appendBuffer(appendInt64(b, q.Session), q.Passwd)
	if q.HasReadOnly {
		b = appendBool(b, q.ReadOnly)
	}
	return b
}

// ParseConnected parses the server's answer.
func ParseConnected(frame []byte) (ConnectResponse, error) {
	r := reader{b: frame}
	a := ConnectResponse{Protocol: r.int32(), Timeout: r.int32(), Session: r.int64(), Passwd: r.buffer()}
	if a.HasReadOnly = len(r.b) > 0; a.HasReadOnly {
		a.ReadOnly = r.bool()
	}
	return a, r.end(connectName{})
}

// AppendConnected appends a, without the frame's length.
func AppendConnected(b []byte, a *ConnectResponse) []byte {
	b = appendInt64(appendInt32(appendInt32(b, a.Protocol), a.Timeout), a.Session)
	b = appendBuffer(b, a.Passwd)
	if a.HasReadOnly {
		b = appendBool(b, a.ReadOnly)
	}
	return b
}
