package tree

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"strings"
	"unsafe"

	"millrace/coord/zk/proto"
)

// loader makes a tree of a snapshot's bytes. Nodes come in any order and may name a
// parent that has not come yet; they are numbered anew, without the gaps.
type loader struct {
	r     *bufio.Reader
	t     *Tree
	err   error
	acls  aclOf
	ids   map[uint64]*[idPage]nodeID // old number to new, in small pages
	count uint64
}

// idPage keeps what a hostile snapshot can make us allocate within a small multiple of its size.
const idPage = 64

// LoadSnapshot reads a whole snapshot. What it allocates is bounded by what it has read.
func LoadSnapshot(r io.Reader) (*Tree, error) {
	l := &loader{r: bufio.NewReaderSize(r, 1<<16), t: empty(), acls: aclOf{}, ids: map[uint64]*[idPage]nodeID{}}
	l.id(uint64(rootID)) // stays what it is
	l.head()
	for l.err == nil {
		kind := l.byte()
		if l.err != nil || kind == recordEnd {
			break
		}
		if kind != recordNode {
			return nil, badSnapshot("record of kind %d", kind)
		}
		l.node()
	}
	if l.err == nil {
		if _, err := l.r.ReadByte(); err != io.EOF {
			l.fail("bytes behind the end")
		}
	}
	if l.err == nil {
		l.link()
	}
	if l.err != nil {
		return nil, l.err
	}
	l.t.findQuotas()
	return l.t, nil
}

func (l *loader) fail(format string, args ...any) {
	if l.err == nil {
		l.err = badSnapshot(format, args...)
	}
}

func (l *loader) check(err error) {
	if err != nil && l.err == nil {
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			err = badSnapshot("it ends too early")
		}
		l.err = err
	}
}

func (l *loader) byte() byte {
	b, err := l.r.ReadByte()
	l.check(err)
	return b
}

func (l *loader) uvarint() uint64 {
	v, err := binary.ReadUvarint(l.r)
	l.check(err)
	return v
}

func (l *loader) varint() int64 {
	v, err := binary.ReadVarint(l.r)
	l.check(err)
	return v
}

func (l *loader) int64() int64 {
	var b [8]byte
	_, err := io.ReadFull(l.r, b[:])
	l.check(err)
	return int64(binary.BigEndian.Uint64(b[:]))
}

// bytes reads n bytes into memory that grows as they come.
func (l *loader) bytes(n uint64) []byte {
	if l.err != nil {
		return nil
	}
	if n > 1<<31-1 {
		l.fail("a field of %d bytes", n)
		return nil
	}
	if n <= 1<<16 {
		b := make([]byte, n)
		_, err := io.ReadFull(l.r, b)
		l.check(err)
		return b
	}
	var buf bytes.Buffer
	_, err := io.CopyN(&buf, l.r, int64(n))
	l.check(err)
	return bytes.Clone(buf.Bytes()) // without what it has grown too large
}

func (l *loader) text() string {
	var b [4]byte
	_, err := io.ReadFull(l.r, b[:])
	l.check(err)
	return string(l.bytes(uint64(binary.BigEndian.Uint32(b[:]))))
}

func (l *loader) head() {
	if format := l.byte(); l.err == nil && format != snapshotFormat {
		l.fail("format %d, this program reads %d", format, snapshotFormat)
	}
	l.t.zxid = int64(l.uvarint())
	l.count = l.uvarint()
	for n := l.uvarint(); n > 0 && l.err == nil; n-- {
		id := l.int64()
		l.t.sessions[id] = &session{timeout: int32(l.varint())}
	}
	for n := l.uvarint(); n > 0 && l.err == nil; n-- {
		id := l.uvarint()
		list := []proto.ACL{}
		for n := l.uvarint(); n > 0 && l.err == nil; n-- {
			list = append(list, proto.ACL{Perms: int32(l.varint()), ID: proto.ID{Scheme: l.text(), ID: l.text()}})
		}
		l.acls[id] = list
	}
}

// id is the new number of what had the number old.
func (l *loader) id(old uint64) nodeID {
	page := l.ids[old/idPage]
	if page == nil {
		page = new([idPage]nodeID)
		l.ids[old/idPage] = page
	}
	at := &page[old%idPage]
	if *at == 0 {
		*at = l.t.nodes.alloc()
	}
	return *at
}

func (l *loader) node() {
	old, parent := l.uvarint(), l.uvarint()
	if l.err != nil {
		return
	}
	if old == 0 || (parent == 0) != (old == uint64(rootID)) || parent == old {
		l.fail("node %d with parent %d", old, parent)
		return
	}
	id := l.id(old)
	n := l.t.nodes.at(id)
	if n.meta&live != 0 {
		l.fail("node %d twice", old)
		return
	}
	if parent != 0 {
		n.parent = l.id(parent)
	}
	n.czxid = l.varint()
	mzxid := n.czxid + l.varint()
	n.ctime = l.varint()
	mtime := n.ctime + l.varint()
	n.version = int32(l.varint())
	acl, ok := l.acls[l.uvarint()]
	if !ok {
		l.fail("node %d with an access list that is not there", old)
		return
	}
	n.acl = l.t.acls.take(acl)
	flags := l.byte()
	if flags&hasMore != 0 {
		m := n.extra()
		m.owner = l.int64()
		m.pzxid = n.czxid + l.varint()
		m.cversion, m.aversion = int32(l.varint()), int32(l.varint())
	}
	if mzxid != n.czxid || mtime != n.ctime {
		m := n.extra()
		m.mzxid, m.mtime = mzxid, mtime
	}
	name, size := l.uvarint(), l.uvarint()
	if name > size || name > nameMask {
		l.fail("node %d with a name of %d bytes", old, name)
		return
	}
	b := l.bytes(size) // nobody else's: it becomes the node's
	n.setText(unsafe.String(unsafe.SliceData(b), len(b)))
	n.meta = live | uint32(name)
	if flags&hasNull != 0 {
		n.meta |= nullData
	}
}

// link joins the nodes, and sees that they are one tree.
func (l *loader) link() {
	t := l.t
	for id := rootID; id < t.nodes.end; id++ {
		n := t.nodes.at(id)
		owner := n.owner()
		switch {
		case n.meta&live == 0:
			l.fail("a node's parent is missing")
		case id == rootID:
			t.dataBytes += int64(n.dataLen())
			continue
		case n.name() == "" || strings.IndexByte(n.name(), '/') >= 0:
			l.fail("a node called %q", n.name())
		case t.nodes.child(n.parent, n.name()) != 0:
			l.fail("two nodes called %q with the same parent", n.name())
		case kindOf(owner) == sessionOwner && t.sessions[owner] == nil:
			l.fail("node %q of session 0x%x, which is not there", n.name(), owner)
		}
		if l.err != nil {
			return
		}
		t.link(id)
	}
	reached := uint64(0)
	t.walk(rootID, func(*node) { reached++ })
	if reached != l.count || uint64(t.nodes.count)+1 != l.count {
		l.fail("%d nodes below the root, of %d there should be %d", reached, t.nodes.count+1, l.count)
	}
}
