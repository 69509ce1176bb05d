package tree

import (
	"strings"

	"millrace/coord/zk/proto"
)

// Reader is who asks.
type Reader struct {
	Session int64
	Watcher Watcher // sets watches; its connection
	Auth    []proto.ID
	SkipACL bool
}

// Arms reports whether a request that is not a write changes the watches: those need
// the tree for themselves, others may run side by side.
func Arms(q *proto.Request) bool {
	switch q.Op {
	case proto.OpSetWatches, proto.OpSetWatches2, proto.OpAddWatch, proto.OpRemoveWatches:
		return true
	}
	return q.Watch
}

// Read answers a request that changes no node. Data and Children's strings in the
// answer alias memory of the tree that is never written to again: they stay valid.
// Events, of setWatches only, are appended to events.
func (t *Tree) Read(q *proto.Request, r *Reader, events []Event) (proto.Result, []Event) {
	res := proto.Result{Op: q.Op}
	switch q.Op {
	case proto.OpExists:
		res.Err = t.exists(q, r, &res)
	case proto.OpGetData, proto.OpGetChildren, proto.OpGetChildren2, proto.OpGetChildrenNum, proto.OpGetACL:
		res.Err = t.get(q, r, &res)
	case proto.OpMultiRead:
		for i := range q.Ops {
			sub, _ := t.Read(&q.Ops[i], r, nil)
			res.Results = append(res.Results, sub)
		}
	case proto.OpGetEphemerals:
		res.Children = t.ephemerals(r.Session, q.Path)
	case proto.OpSync:
		res.Path = q.Path
	case proto.OpWhoAmI:
		for _, id := range r.Auth {
			res.Clients = append(res.Clients, proto.ClientInfo{Scheme: id.Scheme, User: userName(id)})
		}
	case proto.OpSetWatches, proto.OpSetWatches2:
		events = t.setWatches(q.SetWatches, r.Watcher, events)
	case proto.OpAddWatch:
		res.Err = t.addWatch(q, r.Watcher)
	case proto.OpCheckWatches:
		_, _, res.Err = t.watchesOf(q, r.Watcher)
	case proto.OpRemoveWatches:
		var id uint32
		var kinds watchKinds
		if id, kinds, res.Err = t.watchesOf(q, r.Watcher); res.Err == proto.OK {
			t.watches.drop(id, kinds)
		}
	default:
		res.Err = proto.ErrUnimplemented
	}
	return res, events
}

func (t *Tree) allows(n *node, perms int32, r *Reader) bool {
	return r.SkipACL || Allows(t.acls.lists[n.acl], perms, r.Auth)
}

// exists sets its watch also where there is no node.
func (t *Tree) exists(q *proto.Request, r *Reader, res *proto.Result) proto.Code {
	if strings.IndexByte(q.Path, 0) >= 0 {
		return proto.ErrBadArguments
	}
	id := t.find(q.Path)
	if id != 0 && !t.allows(t.nodes.at(id), proto.PermRead, r) {
		return proto.ErrNoAuth
	}
	if q.Watch {
		t.watches.add(q.Path, r.Watcher, dataOnce)
	}
	if id == 0 {
		return proto.ErrNoNode
	}
	res.Stat = t.nodes.at(id).stat()
	return proto.OK
}

func (t *Tree) get(q *proto.Request, r *Reader, res *proto.Result) proto.Code {
	id := t.find(q.Path)
	if id == 0 {
		return proto.ErrNoNode
	}
	n := t.nodes.at(id)
	perms := proto.PermRead
	if q.Op == proto.OpGetACL {
		perms |= proto.PermAdmin
	}
	if !t.allows(n, perms, r) {
		return proto.ErrNoAuth
	}
	res.Stat = n.stat()
	switch q.Op {
	case proto.OpGetData:
		res.Data = n.data()
		if q.Watch {
			t.watches.add(q.Path, r.Watcher, dataOnce)
		}
	case proto.OpGetACL:
		if res.ACL = t.acls.lists[n.acl]; !t.allows(n, proto.PermAdmin, r) {
			res.ACL = hideDigests(res.ACL)
		}
	case proto.OpGetChildrenNum:
		t.walk(id, func(*node) { res.Count++ })
		res.Count-- // itself
	default:
		res.Children = t.names(n)
		if q.Watch {
			t.watches.add(q.Path, r.Watcher, childOnce)
		}
	}
	return proto.OK
}

// names lists a node's children, the newest first.
func (t *Tree) names(n *node) []string {
	list := make([]string, 0, n.children())
	if n.more != nil {
		for id := n.more.first; id != 0; id = t.nodes.at(id).older {
			list = append(list, t.nodes.at(id).name())
		}
	}
	return list
}

// ephemerals lists the paths of a session's nodes at and below prefix, which is a
// prefix of the text and not of the path, as in ZooKeeper.
func (t *Tree) ephemerals(id int64, prefix string) []string {
	list := []string{}
	if strings.TrimSpace(prefix) == "" {
		prefix = rootPath
	}
	if s := t.sessions[id]; s != nil {
		for at := s.first; at != 0; at = t.nodes.at(at).more.ephNext {
			if path := t.path(at); strings.HasPrefix(path, prefix) {
				list = append(list, path)
			}
		}
	}
	return list
}

// Ephemerals lists the paths of a session's nodes, the oldest first.
func (t *Tree) Ephemerals(session int64) []string { return t.ephemerals(session, rootPath) }
