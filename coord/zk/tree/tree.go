package tree

import (
	"fmt"
	"unsafe"

	"millrace/coord/zk/proto"
)

// Owners of nodes that are not a session's. A TTL node's is ttlOwner with its time to
// live in the low 40 bits; server numbers end at 254, so no session looks like one.
const (
	containerOwner int64 = -1 << 63
	ttlOwner       int64 = -1 << 56
	maxTTL         int64 = 1<<40 - 1 // ms, about 34 years
)

type ownerKind int8

const (
	noOwner ownerKind = iota
	sessionOwner
	ofContainer
	ofTTL
)

func kindOf(owner int64) ownerKind {
	switch {
	case owner == 0:
		return noOwner
	case owner == containerOwner:
		return ofContainer
	case owner&ttlOwner == ttlOwner:
		return ofTTL
	}
	return sessionOwner
}

// session is one that all of the ensemble knows of.
type session struct {
	timeout     int32  // ms
	first, last nodeID // ephemerals, in the order they were made
	count       int32
}

// Tree is the whole state of the service: nodes, access lists, sessions, quotas; and,
// which is this server's alone and in no snapshot, the watches.
type Tree struct {
	nodes     arena
	acls      aclTable
	sessions  map[int64]*session
	quotas    map[string]struct{}
	reaped    map[nodeID]struct{} // containers and TTL nodes
	watches   watchTable
	zxid      int64 // of the newest transaction
	dataBytes int64 // of all nodes' data
	work      change
	snap      *Snapshot // that is being taken
	parity    uint32    // marked or 0: what nodes in the newest snapshot have
}

// New returns the tree of a service that has never been used.
func New() *Tree {
	t := empty()
	root := t.plant(0, "", openACL)
	if root != rootID {
		panic(fmt.Sprintf("tree: the root is node %d", root))
	}
	zk := t.plant(rootID, zkPath[1:], openACL)
	t.plant(zk, "quota", openACL)
	config := t.plant(zk, "config", t.acls.take(proto.ReadACL))
	t.nodes.at(config).extra().aversion = -1 // as ZooKeeper has it
	return t
}

func empty() *Tree {
	return &Tree{
		nodes: newArena(), acls: newACLTable(), sessions: map[int64]*session{},
		quotas: map[string]struct{}{}, reaped: map[nodeID]struct{}{}, watches: newWatchTable(),
	}
}

// plant makes one of the nodes that were never created.
func (t *Tree) plant(parent nodeID, name string, acl aclID) nodeID {
	id := t.nodes.alloc()
	n := t.nodes.at(id)
	n.setBlob(name, []byte{})
	n.parent, n.acl = parent, acl
	n.meta |= live
	if parent != 0 {
		t.link(id)
	}
	return id
}

// link puts a node that is complete into the index, among its siblings and, if it has
// an owner, where nodes of that kind are found.
func (t *Tree) link(id nodeID) {
	n := t.nodes.at(id)
	t.nodes.insert(id)
	t.dataBytes += int64(n.dataLen())
	m := t.nodes.at(n.parent).extra()
	n.older, n.newer = m.first, 0
	if m.first != 0 {
		t.nodes.at(m.first).newer = id
	}
	m.first = id
	m.count++
	switch owner := n.owner(); kindOf(owner) {
	case ofContainer, ofTTL:
		t.reaped[id] = struct{}{}
	case sessionOwner:
		t.own(t.sessions[owner], id)
	}
}

// unlink is link taken back.
func (t *Tree) unlink(id nodeID) {
	n := t.nodes.at(id)
	t.nodes.remove(id)
	t.dataBytes -= int64(n.dataLen())
	m := t.nodes.at(n.parent).more
	if n.newer == 0 {
		m.first = n.older
	} else {
		t.nodes.at(n.newer).older = n.older
	}
	if n.older != 0 {
		t.nodes.at(n.older).newer = n.newer
	}
	n.older, n.newer = 0, 0
	m.count--
	switch owner := n.owner(); kindOf(owner) {
	case ofContainer, ofTTL:
		delete(t.reaped, id)
	case sessionOwner:
		t.disown(t.sessions[owner], id)
	}
}

func (t *Tree) own(s *session, id nodeID) {
	m := t.nodes.at(id).more
	m.ephPrev, m.ephNext = s.last, 0
	if s.last != 0 {
		t.nodes.at(s.last).more.ephNext = id
	} else {
		s.first = id
	}
	s.last = id
	s.count++
}

func (t *Tree) disown(s *session, id nodeID) {
	m := t.nodes.at(id).more
	if m.ephPrev != 0 {
		t.nodes.at(m.ephPrev).more.ephNext = m.ephNext
	} else {
		s.first = m.ephNext
	}
	if m.ephNext != 0 {
		t.nodes.at(m.ephNext).more.ephPrev = m.ephPrev
	} else {
		s.last = m.ephPrev
	}
	m.ephNext, m.ephPrev = 0, 0
	s.count--
}

// Zxid is that of the newest transaction applied.
func (t *Tree) Zxid() int64 { return t.zxid }

// Size describes a tree in numbers.
type Size struct {
	Nodes, Sessions, Ephemerals, ACLs int
	Watches, WatchedPaths, Watchers   int
	DataBytes                         int64 // paths not counted
}

// Size counts. It is cheap but for Ephemerals, which looks at every session.
func (t *Tree) Size() Size {
	s := Size{
		Nodes: t.nodes.count + 1, Sessions: len(t.sessions), ACLs: len(t.acls.ids), DataBytes: t.dataBytes,
		Watches: t.watches.count, WatchedPaths: len(t.watches.paths), Watchers: len(t.watches.watchers),
	}
	for _, session := range t.sessions {
		s.Ephemerals += int(session.count)
	}
	return s
}

// Bytes is about what the tree takes in memory, its watches included. It is cheap.
func (t *Tree) Bytes() int64 {
	const perName, perWatch = 32, 200
	a := &t.nodes
	return int64(len(a.pages))*pageNodes*int64(unsafe.Sizeof(node{})) + int64(len(a.buckets))*int64(unsafe.Sizeof(nodeID(0))) +
		int64(a.count)*perName + t.dataBytes + int64(t.watches.count)*perWatch
}

// Sessions calls f with every session and its time-out in ms, in no order.
func (t *Tree) Sessions(f func(id int64, timeout int32)) {
	for id, s := range t.sessions {
		f(id, s.timeout)
	}
}

// HasSession reports whether a session lives, and its time-out in ms.
func (t *Tree) HasSession(id int64) (timeout int32, ok bool) {
	if s := t.sessions[id]; s != nil {
		return s.timeout, true
	}
	return 0, false
}

// Reapable returns up to most paths of containers that had children and have none any
// more, and of TTL nodes without children that were last changed longer ago than they
// are to live. now is in ms. The service deletes each with a deleteContainer.
func (t *Tree) Reapable(now int64, most int) (paths []string) {
	for id := range t.reaped {
		n := t.nodes.at(id)
		if n.children() > 0 {
			continue
		}
		due := n.cversion() > 0
		if kindOf(n.owner()) == ofTTL {
			_, mtime := n.changed()
			due = now-mtime > n.owner()&maxTTL
		}
		if due {
			if paths = append(paths, t.path(id)); len(paths) == most {
				break
			}
		}
	}
	return paths
}
