package tree

import (
	"hash/maphash"
	"math/bits"
	"unsafe"

	"millrace/coord/zk/proto"
)

// nodeID is a node's place in the arena. 0 is none, 1 the root.
type nodeID uint32

const rootID nodeID = 1

// node is one znode: 64 bytes, and one allocation for its name and data. What only
// some nodes have (children, an owner, a changed ACL, changed data) stands in more.
type node struct {
	czxid, ctime int64 // ctime in ms
	blob         *byte // the name, then the data; never changed in place, so readers may keep it
	more         *more

	size         uint32 // of blob
	version      int32
	parent       nodeID
	next         nodeID // in the bucket of the index
	older, newer nodeID // siblings
	acl          aclID
	meta         uint32 // length of the name, and flags
}

const (
	nameMask = 1<<24 - 1 // also the longest name: 16 MiB - 1
	nullData = 1 << 24   // the data is null, not empty
	marked   = 1 << 25   // the parity of the last snapshot that has this node (snapshot.go)
	live     = 1 << 26
)

// more is what a leaf that was made once and left alone has no need of.
type more struct {
	owner    int64 // session, container or TTL; 0 none
	pzxid    int64
	mzxid    int64
	mtime    int64 // ms
	cversion int32 // children made; a client sees creates and deletes
	aversion int32
	first    nodeID // newest child
	count    int32  // of children

	ephNext, ephPrev nodeID // ephemerals of the same session
}

// text is name and data.
func (n *node) text() string { return unsafe.String(n.blob, n.size) }

// setText takes memory that nobody writes to any more.
func (n *node) setText(s string) { n.blob, n.size = unsafe.StringData(s), uint32(len(s)) }

func (n *node) name() string { return n.text()[:n.meta&nameMask] }

// data aliases the blob: nobody may write to it.
func (n *node) data() []byte {
	if n.meta&nullData != 0 {
		return nil
	}
	s := n.text()[n.meta&nameMask:]
	if s == "" {
		return []byte{}
	}
	return unsafe.Slice(unsafe.StringData(s), len(s))
}

func (n *node) dataLen() int { return int(n.size) - int(n.meta&nameMask) }

// setBlob gives a node a name and data, in memory of its own.
func (n *node) setBlob(name string, data []byte) {
	b := make([]byte, 0, len(name)+len(data))
	b = append(append(b, name...), data...)
	n.setText(unsafe.String(unsafe.SliceData(b), len(b)))
	n.meta = n.meta&^(nameMask|nullData) | uint32(len(name))
	if data == nil {
		n.meta |= nullData
	}
}

// extra returns the node's more and makes it if there is none.
func (n *node) extra() *more {
	if n.more == nil {
		n.more = &more{pzxid: n.czxid, mzxid: n.czxid, mtime: n.ctime}
	}
	return n.more
}

// changed is the zxid and the time of the newest change of the data.
func (n *node) changed() (mzxid, mtime int64) {
	if n.more == nil {
		return n.czxid, n.ctime
	}
	return n.more.mzxid, n.more.mtime
}

func (n *node) owner() int64 {
	if n.more == nil {
		return 0
	}
	return n.more.owner
}

func (n *node) children() int32 {
	if n.more == nil {
		return 0
	}
	return n.more.count
}

func (n *node) cversion() int32 {
	if n.more == nil {
		return 0
	}
	return n.more.cversion
}

func (n *node) stat() proto.Stat {
	s := proto.Stat{
		Czxid: n.czxid, Mzxid: n.czxid, Ctime: n.ctime, Mtime: n.ctime, Version: n.version,
		DataLength: int32(n.dataLen()), Pzxid: n.czxid,
	}
	if m := n.more; m != nil {
		s.Cversion, s.Aversion = m.cversion*2-m.count, m.aversion
		s.NumChildren, s.Pzxid = m.count, m.pzxid
		s.Mzxid, s.Mtime = m.mzxid, m.mtime
		if kindOf(m.owner) == sessionOwner { // what a container and a TTL node have is not shown
			s.EphemeralOwner = m.owner
		}
	}
	return s
}

// arena holds all nodes in pages, so that growing copies nothing, and finds them by
// parent and name in a table that grows by one bucket at a time (linear hashing): no
// insertion waits for a table of a million to be made anew.
type arena struct {
	pages   [][]node
	end     nodeID // first that was never used
	free    nodeID // list of unused ones, through next
	count   int
	buckets []nodeID
	seed    maphash.Seed
}

const (
	pageBits   = 12 // 4096 nodes, 256 KiB
	pageNodes  = 1 << pageBits
	maxNodes   = 1 << 31
	minBuckets = 8
)

func newArena() arena {
	return arena{end: 1, buckets: make([]nodeID, minBuckets), seed: maphash.MakeSeed()}
}

func (a *arena) at(id nodeID) *node { return &a.pages[id>>pageBits][id&(pageNodes-1)] }

// alloc returns a node with nothing in it. The caller keeps count below maxNodes.
func (a *arena) alloc() nodeID {
	if id := a.free; id != 0 {
		n := a.at(id)
		a.free = n.next
		*n = node{}
		return id
	}
	id := a.end
	a.grow(id)
	return id
}

// grow makes id a valid place.
func (a *arena) grow(id nodeID) {
	for int(id>>pageBits) >= len(a.pages) {
		a.pages = append(a.pages, make([]node, pageNodes))
	}
	if id >= a.end {
		a.end = id + 1
	}
}

func (a *arena) release(id nodeID) {
	*a.at(id) = node{next: a.free}
	a.free = id
}

func (a *arena) hash(parent nodeID, name string) uint64 {
	return maphash.String(a.seed, name) ^ uint64(parent)*0x9e3779b97f4a7c15
}

// bucket is where a hash belongs: among the smallest power of two of buckets that is
// not below their number, folded back if that one does not exist yet.
func (a *arena) bucket(h uint64) int {
	mask := uint64(1)<<bits.Len(uint(len(a.buckets)-1)) - 1
	if i := h & mask; i < uint64(len(a.buckets)) {
		return int(i)
	}
	return int(h & (mask >> 1))
}

func (a *arena) child(parent nodeID, name string) nodeID {
	for id := a.buckets[a.bucket(a.hash(parent, name))]; id != 0; {
		n := a.at(id)
		if n.parent == parent && n.name() == name {
			return id
		}
		id = n.next
	}
	return 0
}

// insert puts a node with name and parent into the index.
func (a *arena) insert(id nodeID) {
	n := a.at(id)
	b := &a.buckets[a.bucket(a.hash(n.parent, n.name()))]
	n.next, *b = *b, id
	if a.count++; a.count > len(a.buckets) {
		a.split()
	}
}

func (a *arena) remove(id nodeID) {
	n := a.at(id)
	at := &a.buckets[a.bucket(a.hash(n.parent, n.name()))]
	for *at != id {
		at = &a.at(*at).next
	}
	*at, n.next = n.next, 0
	a.count--
}

// split adds a bucket and moves to it what belongs there, all from one other.
func (a *arena) split() {
	fresh := len(a.buckets)
	from := fresh - 1<<(bits.Len(uint(fresh))-1)
	a.buckets = append(a.buckets, 0)
	id := a.buckets[from]
	a.buckets[from] = 0
	for id != 0 {
		n := a.at(id)
		next := n.next
		b := &a.buckets[a.bucket(a.hash(n.parent, n.name()))]
		n.next, *b = *b, id
		id = next
	}
}
