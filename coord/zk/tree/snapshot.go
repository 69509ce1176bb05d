package tree

import (
	"encoding/binary"
	"fmt"

	"millrace/coord/zk/proto"
)

// Snapshot is the tree as it was when the snapshot was begun, on its way out while the
// tree goes on changing. Every node is written once: by Step, which goes through the
// arena, or, if that has not come to it yet, right before the node is changed or removed
// (save). So it is exact, not fuzzy, and nothing is copied but what changes meanwhile.
//
// Which nodes are written already is one bit in each, whose meaning changes from one
// snapshot to the next; that is why one that is not wanted any more must be abandoned.
type Snapshot struct {
	Zxid int64 // of the newest transaction in it

	t    *Tree
	next nodeID
	end  nodeID
	out  []byte
}

// snapshotFormat is the first byte of a snapshot.
const snapshotFormat = 1

const (
	recordEnd  = 0 // no more nodes
	recordNode = 1
	hasMore    = 1 // flags of a node's record
	hasNull    = 2
)

// BeginSnapshot starts a snapshot of the tree as it is now. Only one can be under way:
// a second one is a broken rule of the caller and panics.
func (t *Tree) BeginSnapshot() *Snapshot {
	if t.snap != nil {
		panic("tree: a snapshot is under way already")
	}
	s := &Snapshot{Zxid: t.zxid, t: t, next: rootID, end: t.nodes.end}
	t.snap = s
	t.parity ^= marked
	s.head()
	return s
}

// head writes what is not nodes.
func (s *Snapshot) head() {
	t := s.t
	b := append(s.out, snapshotFormat)
	b = binary.AppendUvarint(b, uint64(t.zxid))
	b = binary.AppendUvarint(b, uint64(t.nodes.count)+1)
	b = binary.AppendUvarint(b, uint64(len(t.sessions)))
	for id, session := range t.sessions {
		b = binary.BigEndian.AppendUint64(b, uint64(id))
		b = binary.AppendVarint(b, int64(session.timeout))
	}
	b = binary.AppendUvarint(b, uint64(len(t.acls.ids)))
	for id, list := range t.acls.lists {
		if list == nil {
			continue
		}
		b = binary.AppendUvarint(b, uint64(id))
		b = binary.AppendUvarint(b, uint64(len(list)))
		for _, a := range list {
			b = appendText(appendText(binary.AppendVarint(b, int64(a.Perms)), a.ID.Scheme), a.ID.ID)
		}
	}
	s.out = b
}

// Step writes further nodes until there are about most bytes, and hands over what is
// written so far; done says that this was all. It needs the tree for itself, as Apply
// does. The bytes are the caller's until the next Step, which reuses buf for its own.
func (s *Snapshot) Step(most int, buf []byte) (out []byte, done bool) {
	for s.next < s.end && len(s.out) < most {
		s.save(s.next)
		s.next++
	}
	if done = s.next >= s.end; done {
		s.out = append(s.out, recordEnd)
		s.t.snap = nil
	}
	out, s.out = s.out, buf[:0]
	return out, done
}

// Abandon ends a snapshot that is not wanted any more. It does no harm after the last Step.
func (s *Snapshot) Abandon() {
	if s.t.snap != s {
		return
	}
	for ; s.next < s.end; s.next++ {
		if n := s.t.nodes.at(s.next); n.meta&live != 0 {
			n.meta = n.meta&^marked | s.t.parity
		}
	}
	s.t.snap, s.out = nil, nil
}

// save writes a node unless it is written already, or new.
func (s *Snapshot) save(id nodeID) {
	n := s.t.nodes.at(id)
	if n.meta&live == 0 || n.meta&marked == s.t.parity {
		return
	}
	n.meta ^= marked
	b := append(s.out, recordNode)
	b = binary.AppendUvarint(b, uint64(id))
	b = binary.AppendUvarint(b, uint64(n.parent))
	b = binary.AppendVarint(b, n.czxid)
	mzxid, mtime := n.changed()
	b = binary.AppendVarint(b, mzxid-n.czxid)
	b = binary.AppendVarint(b, n.ctime)
	b = binary.AppendVarint(b, mtime-n.ctime)
	b = binary.AppendVarint(b, int64(n.version))
	b = binary.AppendUvarint(b, uint64(n.acl))
	var flags byte
	if n.more != nil {
		flags |= hasMore
	}
	if n.meta&nullData != 0 {
		flags |= hasNull
	}
	b = append(b, flags)
	if m := n.more; m != nil {
		b = binary.BigEndian.AppendUint64(b, uint64(m.owner))
		b = binary.AppendVarint(b, m.pzxid-n.czxid)
		b = binary.AppendVarint(b, int64(m.cversion))
		b = binary.AppendVarint(b, int64(m.aversion))
	}
	b = binary.AppendUvarint(b, uint64(n.meta&nameMask))
	b = binary.AppendUvarint(b, uint64(n.size))
	s.out = append(b, n.text()...)
}

// SnapshotError says why bytes are no snapshot. Checksums are the file's business; what
// comes here has passed them, so it is a mistake of ours or of whoever made the file.
type SnapshotError struct {
	What string
}

func (e *SnapshotError) Error() string { return "zookeeper snapshot: " + e.What }

func badSnapshot(format string, args ...any) error {
	return &SnapshotError{What: fmt.Sprintf(format, args...)}
}

// aclOf is the list with a snapshot's number; kept apart from the table so that the
// numbers may have gaps.
type aclOf map[uint64][]proto.ACL
