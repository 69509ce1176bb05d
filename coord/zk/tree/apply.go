package tree

import (
	"fmt"

	"millrace/coord/zk/proto"
)

// Rules are what a transaction is judged by beside the tree itself. They are part of
// it, so that replaying a log decides as was decided then, whatever the settings say now.
type Rules uint8

// The rules.
const (
	EnforceQuota  Rules = 1 << iota // zookeeper.enforceQuota
	ExtendedTypes                   // zookeeper.extendedTypesEnabled: TTL nodes
	SkipACL                         // zookeeper.skipACL=yes
	LocalSession                    // the session is known to one server only
	Internal                        // the service's own: no session, no access list
)

// Txn is one change, in the one order that all servers apply them in. A request that
// is refused is one too: it has a zxid, as in ZooKeeper.
type Txn struct {
	Zxid    int64
	Time    int64 // ms
	Session int64
	Cxid    int32 // the client's xid, for people
	Rules   Rules
	Refused proto.Code // not OK: refused before it came here; Req is not looked at
	Auth    []proto.ID // what the client has proven
	Req     proto.Request
}

// change is a Txn at work: what to take back should a multi fail, what to tell watchers.
type change struct {
	t        *Tree
	x        *Txn
	multi    bool
	undos    []undo
	dead     []nodeID // unlinked, kept until nothing can be taken back
	triggers []trigger
}

// trigger is something that watchers may want to know, noted while the tree is changed
// and told when the change is whole.
type trigger struct {
	typ       proto.EventType
	path      string
	acl       []proto.ACL
	parent    string
	parentACL []proto.ACL
}

// Apply carries out x and returns what to answer; the events for watchers are appended
// to events. The order in which they are to reach a client is theirs, and all of them
// come before the answer to any request that sees the change (C3).
//
// Equal trees stay equal: the outcome depends on the tree and x alone. A zxid that does
// not rise is a broken rule of the caller (C2) and panics. Events, and the Result but
// for a multi's Results, keep nothing of x except strings.
func (t *Tree) Apply(x *Txn, events []Event) (proto.Result, []Event) {
	if x.Zxid <= t.zxid {
		panic(fmt.Sprintf("tree: C2: zxid 0x%x after 0x%x", x.Zxid, t.zxid))
	}
	c := &t.work
	c.t, c.x = t, x
	res := proto.Result{Op: x.Req.Op, Err: x.Refused}
	if res.Err == proto.OK {
		if x.Req.Op == proto.OpMulti {
			res.Results = c.applyMulti(x.Req.Ops)
		} else {
			res.Err = c.apply(&x.Req, &res)
		}
	}
	t.zxid = x.Zxid
	for _, id := range c.dead {
		t.acls.drop(t.nodes.at(id).acl)
		t.nodes.release(id)
	}
	for i := range c.triggers {
		events = t.fire(&c.triggers[i], x.Zxid, events)
	}
	clear(c.triggers)
	clear(c.undos)
	c.x, c.multi, c.undos, c.dead, c.triggers = nil, false, c.undos[:0], c.dead[:0], c.triggers[:0]
	return res, events
}

func (c *change) apply(q *proto.Request, res *proto.Result) proto.Code {
	switch q.Op {
	case proto.OpCreate, proto.OpCreate2, proto.OpCreateContainer, proto.OpCreateTTL:
		return c.create(q, res)
	case proto.OpDelete:
		return c.delete(q)
	case proto.OpDeleteContainer:
		return c.deleteContainer(q)
	case proto.OpSetData:
		return c.setData(q, res)
	case proto.OpSetACL:
		return c.setACL(q, res)
	case proto.OpCheck:
		return c.check(q)
	case proto.OpCreateSession:
		c.t.sessions[c.x.Session] = &session{timeout: q.Timeout}
		return proto.OK
	case proto.OpCloseSession:
		c.closeSession()
		return proto.OK
	}
	return proto.ErrUnimplemented
}

// live says why the transaction's session may not write.
func (c *change) live(ephemeral bool) proto.Code {
	switch {
	case c.x.Rules&Internal != 0:
		return proto.OK
	case c.x.Rules&LocalSession != 0:
		if ephemeral {
			return proto.ErrEphOnLocal
		}
		return proto.OK
	case c.t.sessions[c.x.Session] == nil:
		return proto.ErrSessionExpired
	}
	return proto.OK
}

func (c *change) allowed(id nodeID, perm int32) bool {
	return c.x.Rules&(SkipACL|Internal) != 0 || Allows(c.t.acls.lists[c.t.nodes.at(id).acl], perm, c.x.Auth)
}

// create checks in ZooKeeper's order, so that of several reasons the same one is given.
func (c *change) create(q *proto.Request, res *proto.Result) proto.Code {
	t := c.t
	owner, code := c.ownerOf(q)
	if code != proto.OK {
		return code
	}
	parentPath, name, ok := splitParent(q.Path)
	if !ok {
		return proto.ErrBadArguments
	}
	acl, code := fixACL(q.ACL, c.x.Auth)
	if code != proto.OK {
		return code
	}
	parent := t.find(parentPath)
	switch {
	case parent == 0:
		return proto.ErrNoNode
	case !c.allowed(parent, proto.PermCreate):
		return proto.ErrNoAuth
	}
	path := q.Path
	if q.Mode.Sequential() {
		number := fmt.Sprintf("%010d", t.nodes.at(parent).cversion())
		path, name = path+number, name+number
	}
	switch {
	case !ValidPath(path):
		return proto.ErrBadArguments
	case path == rootPath || t.nodes.child(parent, name) != 0:
		return proto.ErrNodeExists
	case kindOf(t.nodes.at(parent).owner()) == sessionOwner:
		return proto.ErrNoChildrenForEph
	case len(name) > nameMask || t.nodes.count >= maxNodes:
		return proto.ErrSystem
	}
	if prefix := t.quotaFor(path); prefix != "" && c.x.Rules&EnforceQuota != 0 && t.exceeds(prefix, int64(len(q.Data)), 1) {
		return proto.ErrQuotaExceeded
	}
	id := c.make(parent, name, q.Data, acl, owner)
	res.Path, res.Stat = path, t.nodes.at(id).stat()
	c.noteQuota(parentPath, name, true)
	c.account(path, int64(len(q.Data)), 1)
	c.triggers = append(c.triggers, trigger{
		typ: proto.EventCreated, path: path, acl: acl, parent: orRoot(parentPath), parentACL: t.acls.lists[t.nodes.at(parent).acl],
	})
	return proto.OK
}

func orRoot(path string) string {
	if path == "" {
		return rootPath
	}
	return path
}

// ownerOf is what a create makes the node's owner, or why it may not.
func (c *change) ownerOf(q *proto.Request) (int64, proto.Code) {
	switch {
	case !q.Mode.Valid():
		return 0, proto.ErrBadArguments
	case q.Mode.TTL() && c.x.Rules&ExtendedTypes == 0:
		return 0, proto.ErrUnimplemented
	case q.Mode.TTL() != (q.Op == proto.OpCreateTTL), q.Mode.TTL() && (q.TTL <= 0 || q.TTL > maxTTL):
		return 0, proto.ErrBadArguments
	}
	if code := c.live(q.Mode.Ephemeral()); code != proto.OK {
		return 0, code
	}
	switch {
	case q.Op == proto.OpCreateContainer:
		return containerOwner, proto.OK
	case q.Mode.TTL():
		return ttlOwner | q.TTL, proto.OK
	case q.Mode.Ephemeral():
		return c.x.Session, proto.OK
	}
	return 0, proto.OK
}

// make adds a node. The caller has made sure that it may.
func (c *change) make(parent nodeID, name string, data []byte, acl []proto.ACL, owner int64) nodeID {
	t := c.t
	c.touch(parent)
	id := t.nodes.alloc()
	n := t.nodes.at(id)
	n.czxid, n.ctime = c.x.Zxid, c.x.Time
	n.parent, n.acl = parent, t.acls.take(acl)
	n.meta = live | t.parity
	n.setBlob(name, data)
	if owner != 0 {
		n.extra().owner = owner
	}
	t.link(id)
	m := t.nodes.at(parent).more
	m.cversion++
	m.pzxid = c.x.Zxid
	c.undo(undo{kind: undoMade, id: id})
	return id
}

func (c *change) delete(q *proto.Request) proto.Code {
	if code := c.live(false); code != proto.OK {
		return code
	}
	parentPath, _, ok := splitParent(q.Path)
	if !ok || isReserved(q.Path) {
		return proto.ErrBadArguments
	}
	parent := c.t.find(parentPath)
	switch {
	case parent == 0:
		return proto.ErrNoNode
	case !c.allowed(parent, proto.PermDelete):
		return proto.ErrNoAuth
	}
	id := c.t.find(q.Path)
	switch {
	case id == 0:
		return proto.ErrNoNode
	case q.Version != -1 && q.Version != c.t.nodes.at(id).version:
		return proto.ErrBadVersion
	case c.t.nodes.at(id).children() > 0:
		return proto.ErrNotEmpty
	}
	c.remove(id, q.Path)
	return proto.OK
}

// deleteContainer is the service's own request; clients' are refused before.
func (c *change) deleteContainer(q *proto.Request) proto.Code {
	id := c.t.find(q.Path)
	if id == 0 || isReserved(q.Path) {
		return proto.ErrNoNode
	}
	switch kind := kindOf(c.t.nodes.at(id).owner()); {
	case c.t.nodes.at(id).children() > 0:
		return proto.ErrNotEmpty
	case kind != ofContainer && kind != ofTTL:
		return proto.ErrBadVersion
	}
	c.remove(id, q.Path)
	return proto.OK
}

// remove takes out a node without children.
func (c *change) remove(id nodeID, path string) {
	t := c.t
	n := t.nodes.at(id)
	size := int64(n.dataLen())
	c.touch(id)
	c.touch(n.parent)
	parentPath, name, _ := splitParent(path)
	c.triggers = append(c.triggers, trigger{
		typ: proto.EventDeleted, path: path, acl: t.acls.lists[n.acl], parent: orRoot(parentPath), parentACL: t.acls.lists[t.nodes.at(n.parent).acl],
	})
	t.unlink(id)
	t.nodes.at(n.parent).more.pzxid = c.x.Zxid
	c.undo(undo{kind: undoRemoved, id: id})
	c.dead = append(c.dead, id)
	c.noteQuota(parentPath, name, false)
	c.account(path, -size, -1)
}

func (c *change) setData(q *proto.Request, res *proto.Result) proto.Code {
	if code := c.live(false); code != proto.OK {
		return code
	}
	if !ValidPath(q.Path) {
		return proto.ErrBadArguments
	}
	t := c.t
	id := t.find(q.Path)
	switch {
	case id == 0:
		return proto.ErrNoNode
	case !c.allowed(id, proto.PermWrite):
		return proto.ErrNoAuth
	}
	n := t.nodes.at(id)
	diff := int64(len(q.Data) - n.dataLen())
	if prefix := t.quotaFor(q.Path); prefix != "" && c.x.Rules&EnforceQuota != 0 && t.exceeds(prefix, diff, 0) {
		return proto.ErrQuotaExceeded
	}
	if q.Version != -1 && q.Version != n.version {
		return proto.ErrBadVersion
	}
	c.touch(id)
	n.setBlob(n.name(), q.Data)
	n.version++
	m := n.extra()
	m.mzxid, m.mtime = c.x.Zxid, c.x.Time
	t.dataBytes += diff
	res.Path, res.Stat = q.Path, n.stat()
	c.account(q.Path, diff, 0)
	c.triggers = append(c.triggers, trigger{typ: proto.EventDataChanged, path: q.Path, acl: t.acls.lists[n.acl]})
	return proto.OK
}

func (c *change) setACL(q *proto.Request, res *proto.Result) proto.Code {
	if code := c.live(false); code != proto.OK {
		return code
	}
	if !ValidPath(q.Path) {
		return proto.ErrBadArguments
	}
	acl, code := fixACL(q.ACL, c.x.Auth)
	if code != proto.OK {
		return code
	}
	id := c.t.find(q.Path)
	switch {
	case id == 0:
		return proto.ErrNoNode
	case !c.allowed(id, proto.PermAdmin):
		return proto.ErrNoAuth
	}
	n := c.t.nodes.at(id)
	if stat := n.stat(); q.Version != -1 && q.Version != stat.Aversion {
		return proto.ErrBadVersion
	}
	c.touch(id)
	old := n.acl
	n.acl = c.t.acls.take(acl)
	c.t.acls.drop(old)
	n.extra().aversion++
	res.Path, res.Stat = q.Path, n.stat()
	return proto.OK
}

func (c *change) check(q *proto.Request) proto.Code {
	if code := c.live(false); code != proto.OK {
		return code
	}
	if !ValidPath(q.Path) {
		return proto.ErrBadArguments
	}
	id := c.t.find(q.Path)
	switch {
	case id == 0:
		return proto.ErrNoNode
	case !c.allowed(id, proto.PermRead):
		return proto.ErrNoAuth
	case q.Version != -1 && q.Version != c.t.nodes.at(id).version:
		return proto.ErrBadVersion
	}
	return proto.OK
}

// closeSession ends a session and removes all that it owned, as one change.
func (c *change) closeSession() {
	s := c.t.sessions[c.x.Session]
	if s == nil {
		return
	}
	for s.first != 0 {
		c.remove(s.first, c.t.path(s.first))
	}
	delete(c.t.sessions, c.x.Session)
}
