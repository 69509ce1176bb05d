package proto

import "fmt"

// Result is the outcome of any request. Op says which fields count, when Err is OK.
type Result struct {
	Op       Op
	Err      Code
	Path     string
	Data     []byte // nil is null
	Stat     Stat
	ACL      []ACL
	Children []string // also the paths of getEphemerals
	Count    int32    // getAllChildrenNumber
	Clients  []ClientInfo
	Results  []Result // multi, multiRead
}

// Reply is the header of an answer.
type Reply struct {
	Xid  int32
	Zxid int64
	Err  Code
}

// AppendReply appends an answer, without the frame's length. There is a body only when
// res.Err is OK.
func AppendReply(b []byte, xid int32, zxid int64, res *Result) []byte {
	b = appendInt32(appendInt64(appendInt32(b, xid), zxid), int32(res.Err))
	if res.Err != OK {
		return b
	}
	return appendResult(b, res)
}

func appendResult(b []byte, res *Result) []byte {
	switch res.Op {
	case OpCreate, OpSync:
		b = appendString(b, res.Path)
	case OpCreate2, OpCreateContainer, OpCreateTTL:
		b = appendStat(appendString(b, res.Path), &res.Stat)
	case OpExists, OpSetData, OpSetACL:
		b = appendStat(b, &res.Stat)
	case OpGetData:
		b = appendStat(appendBuffer(b, res.Data), &res.Stat)
	case OpGetACL:
		b = appendStat(appendACL(b, res.ACL), &res.Stat)
	case OpGetChildren, OpGetEphemerals:
		b = appendStrings(b, res.Children)
	case OpGetChildren2:
		b = appendStat(appendStrings(b, res.Children), &res.Stat)
	case OpGetChildrenNum:
		b = appendInt32(b, res.Count)
	case OpAddWatch:
		b = appendInt32(b, 0) // an ErrorResponse that says there is none
	case OpWhoAmI:
		b = appendInt32(b, int32(len(res.Clients)))
		for _, c := range res.Clients {
			b = appendString(appendString(b, c.Scheme), c.User)
		}
	case OpMulti, OpMultiRead:
		b = appendResults(b, res.Results)
	}
	return b
}

// ParseReply splits an answer's header from its body.
func ParseReply(frame []byte) (Reply, []byte, error) {
	r := reader{b: frame}
	h := Reply{Xid: r.int32(), Zxid: r.int64(), Err: Code(r.int32())}
	return h, r.b, r.err
}

// ParseResult parses the body of an answer to op. Data aliases body.
func ParseResult(op Op, body []byte) (Result, error) {
	res := Result{Op: op}
	r := reader{b: body}
	if op == OpMulti || op == OpMultiRead {
		res.Results = r.results()
	} else {
		r.result(&res)
	}
	return res, r.end(op)
}

func (r *reader) result(res *Result) {
	switch res.Op {
	case OpCreate, OpSync:
		res.Path = r.string()
	case OpCreate2, OpCreateContainer, OpCreateTTL:
		res.Path, res.Stat = r.string(), r.stat()
	case OpExists, OpSetData, OpSetACL:
		res.Stat = r.stat()
	case OpGetData:
		res.Data, res.Stat = r.buffer(), r.stat()
	case OpGetACL:
		res.ACL, res.Stat = r.acl(), r.stat()
	case OpGetChildren, OpGetEphemerals:
		res.Children = r.strings()
	case OpGetChildren2:
		res.Children, res.Stat = r.strings(), r.stat()
	case OpGetChildrenNum:
		res.Count = r.int32()
	case OpAddWatch:
		if err := Code(r.int32()); err != OK {
			r.fail(fmt.Errorf("addWatch answered %w", err))
		}
	case OpWhoAmI:
		for n := r.count(8); n > 0 && r.err == nil; n-- {
			res.Clients = append(res.Clients, ClientInfo{r.string(), r.string()})
		}
	}
}

// AppendEvent appends a notification, without the frame's length. zxid is that of the
// change, as servers since 3.9 say; older ones said -1.
func AppendEvent(b []byte, zxid int64, e *WatchEvent) []byte {
	b = appendInt32(appendInt64(appendInt32(b, XidNotification), zxid), 0)
	return appendString(appendInt32(appendInt32(b, int32(e.Type)), e.State), e.Path)
}

// ParseEvent parses the body of a notification.
func ParseEvent(body []byte) (WatchEvent, error) {
	r := reader{b: body}
	e := WatchEvent{Type: EventType(r.int32()), State: r.int32(), Path: r.string()}
	return e, r.end(OpNotify)
}
