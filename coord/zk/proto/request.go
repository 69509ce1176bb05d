package proto

import "fmt"

// Header precedes every request but the first of a connection.
type Header struct {
	Xid int32
	Op  Op
}

// ParseHeader splits a frame into its header and the request's body.
func ParseHeader(frame []byte) (Header, []byte, error) {
	r := reader{b: frame}
	h := Header{Xid: r.int32(), Op: Op(r.int32())}
	return h, r.b, r.err
}

// Request is any request. Op says which fields count.
type Request struct {
	Op      Op
	Path    string
	Data    []byte // nil is null; of a parsed request it aliases the frame
	ACL     []ACL
	Mode    Mode
	TTL     int64 // ms; createTTL
	Version int32 // expected; -1 any
	Watch   bool
	Kind    int32 // addWatch's mode; the kind of watch to check or remove
	Timeout int32 // createSession, ms

	Scheme     string // auth; the credentials are Data
	AuthType   int32
	Ops        []Request   // multi, multiRead
	SetWatches *SetWatches // setWatches, setWatches2
	Reconfig   *Reconfig
}

// SetWatches sets a client's watches anew after it has reconnected.
type SetWatches struct {
	RelativeZxid                                int64 // the newest that the client has seen
	Data, Exist, Child, Persistent, Recursively []string
}

// Reconfig is a change of the ensemble's membership.
type Reconfig struct {
	Joining, Leaving, Members string
	ConfigID                  int64
}

// ParseRequest parses the body of a request. Nothing may be left over, except that
// bodies which nobody reads (ping, closeSession) are not looked at.
func ParseRequest(op Op, body []byte) (Request, error) {
	q := Request{Op: op}
	r := reader{b: body}
	switch op {
	case OpPing, OpCloseSession, OpWhoAmI:
		return q, nil
	case OpMulti, OpMultiRead:
		q.Ops = r.multi()
	default:
		if !r.request(&q) {
			return q, fmt.Errorf("%w: %v", ErrUnimplemented, op)
		}
	}
	return q, r.end(op)
}

// request reads the body of one operation; false if there is no such.
func (r *reader) request(q *Request) bool {
	switch q.Op {
	case OpCreate, OpCreate2, OpCreateContainer, OpCreateTTL:
		q.Path, q.Data, q.ACL, q.Mode = r.string(), r.buffer(), r.acl(), Mode(r.int32())
		q.TTL = -1
		if q.Op == OpCreateTTL {
			q.TTL = r.int64()
		}
	case OpDelete, OpCheck:
		q.Path, q.Version = r.string(), r.int32()
	case OpExists, OpGetData, OpGetChildren, OpGetChildren2:
		q.Path, q.Watch = r.string(), r.bool()
	case OpSetData:
		q.Path, q.Data, q.Version = r.string(), r.buffer(), r.int32()
	case OpSetACL:
		q.Path, q.ACL, q.Version = r.string(), r.acl(), r.int32()
	case OpGetACL, OpSync, OpDeleteContainer, OpGetEphemerals, OpGetChildrenNum:
		q.Path = r.string()
	case OpCheckWatches, OpRemoveWatches, OpAddWatch:
		q.Path, q.Kind = r.string(), r.int32()
	case OpAuth:
		q.AuthType, q.Scheme, q.Data = r.int32(), r.string(), r.buffer()
	case OpSASL:
		q.Data = r.buffer()
	case OpSetWatches, OpSetWatches2:
		s := &SetWatches{RelativeZxid: r.int64(), Data: r.strings(), Exist: r.strings(), Child: r.strings()}
		if q.Op == OpSetWatches2 {
			s.Persistent, s.Recursively = r.strings(), r.strings()
		}
		q.SetWatches = s
	case OpReconfig:
		q.Reconfig = &Reconfig{Joining: r.string(), Leaving: r.string(), Members: r.string(), ConfigID: r.int64()}
	case OpCreateSession:
		q.Timeout = r.int32()
	default:
		return false
	}
	return true
}

// AppendRequest appends a header and a request, without the frame's length.
func AppendRequest(b []byte, xid int32, q *Request) []byte {
	return AppendBody(appendInt32(appendInt32(b, xid), int32(q.Op)), q)
}

// AppendBody appends a request's body.
func AppendBody(b []byte, q *Request) []byte {
	switch q.Op {
	case OpCreate, OpCreate2, OpCreateContainer, OpCreateTTL:
		b = appendInt32(appendACL(appendBuffer(appendString(b, q.Path), q.Data), q.ACL), int32(q.Mode))
		if q.Op == OpCreateTTL {
			b = appendInt64(b, q.TTL)
		}
	case OpDelete, OpCheck:
		b = appendInt32(appendString(b, q.Path), q.Version)
	case OpExists, OpGetData, OpGetChildren, OpGetChildren2:
		b = appendBool(appendString(b, q.Path), q.Watch)
	case OpSetData:
		b = appendInt32(appendBuffer(appendString(b, q.Path), q.Data), q.Version)
	case OpSetACL:
		b = appendInt32(appendACL(appendString(b, q.Path), q.ACL), q.Version)
	case OpGetACL, OpSync, OpDeleteContainer, OpGetEphemerals, OpGetChildrenNum:
		b = appendString(b, q.Path)
	case OpCheckWatches, OpRemoveWatches, OpAddWatch:
		b = appendInt32(appendString(b, q.Path), q.Kind)
	case OpAuth:
		b = appendBuffer(appendString(appendInt32(b, q.AuthType), q.Scheme), q.Data)
	case OpSASL:
		b = appendBuffer(b, q.Data)
	case OpSetWatches, OpSetWatches2:
		s := q.SetWatches
		b = appendStrings(appendStrings(appendStrings(appendInt64(b, s.RelativeZxid), s.Data), s.Exist), s.Child)
		if q.Op == OpSetWatches2 {
			b = appendStrings(appendStrings(b, s.Persistent), s.Recursively)
		}
	case OpReconfig:
		c := q.Reconfig
		b = appendInt64(appendString(appendString(appendString(b, c.Joining), c.Leaving), c.Members), c.ConfigID)
	case OpCreateSession:
		b = appendInt32(b, q.Timeout)
	case OpMulti, OpMultiRead:
		b = appendMulti(b, q.Ops)
	}
	return b
}
