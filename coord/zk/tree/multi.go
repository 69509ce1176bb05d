package tree

import "millrace/coord/zk/proto"

type undoKind int8

const (
	undoFields    undoKind = iota // a node's data, version, times and its count of children made
	undoMade                      // take the node out again
	undoRemoved                   // put it back
	undoQuotaMade                 // path has no quota
	undoQuotaGone                 // path has one
)

// undo is how one step of a multi is taken back.
type undo struct {
	kind         undoKind
	id           nodeID
	path         string
	blob         string
	meta         uint32
	version      int32
	cversion     int32
	mzxid, mtime int64
	pzxid        int64
}

func (c *change) undo(u undo) {
	if c.multi {
		c.undos = append(c.undos, u)
	}
}

// touch comes before a node's fields are changed, or it is removed: a snapshot that is
// being taken gets it as it was, and a multi remembers it.
func (c *change) touch(id nodeID) {
	n := c.t.nodes.at(id)
	if c.t.snap != nil {
		c.t.snap.save(id)
	}
	if !c.multi {
		return
	}
	u := undo{kind: undoFields, id: id, blob: n.text(), meta: n.meta, version: n.version, pzxid: n.czxid}
	u.mzxid, u.mtime = n.changed()
	if n.more != nil {
		u.cversion, u.pzxid = n.more.cversion, n.more.pzxid
	}
	c.undos = append(c.undos, u)
}

// applyMulti carries out all of ops or none. Of a multi that fails, the operations
// before the one at fault answer OK in their error, those after it ErrInconsistency.
func (c *change) applyMulti(ops []proto.Request) []proto.Result {
	c.multi = true
	results := make([]proto.Result, len(ops))
	for i := range ops {
		results[i].Op = ops[i].Op
		var code proto.Code
		switch op := ops[i].Op; op {
		case proto.OpCreate, proto.OpCreate2, proto.OpCreateContainer, proto.OpCreateTTL, proto.OpDelete, proto.OpSetData, proto.OpCheck:
			code = c.apply(&ops[i], &results[i])
		default:
			code = proto.ErrUnimplemented
		}
		if code == proto.OK {
			continue
		}
		c.takeBack()
		for k := range results {
			results[k] = proto.Result{Op: proto.OpError}
			switch {
			case k == i:
				results[k].Err = code
			case k > i:
				results[k].Err = proto.ErrInconsistency
			}
		}
		break
	}
	return results
}

// takeBack undoes every step, the newest first.
func (c *change) takeBack() {
	t := c.t
	for i := len(c.undos) - 1; i >= 0; i-- {
		u := &c.undos[i]
		n := t.nodes.at(u.id)
		switch u.kind {
		case undoFields:
			before := n.dataLen()
			n.setText(u.blob)
			n.version = u.version
			n.meta = n.meta&marked | u.meta&^marked // a snapshot may have saved it meanwhile
			if n.more != nil {
				n.more.cversion, n.more.pzxid = u.cversion, u.pzxid
				n.more.mzxid, n.more.mtime = u.mzxid, u.mtime
			}
			t.dataBytes += int64(n.dataLen() - before)
		case undoMade:
			t.unlink(u.id)
			t.acls.drop(n.acl)
			t.nodes.release(u.id)
		case undoRemoved:
			t.link(u.id)
		case undoQuotaMade:
			delete(t.quotas, u.path)
		case undoQuotaGone:
			t.quotas[u.path] = struct{}{}
		}
	}
	c.undos, c.dead, c.triggers = c.undos[:0], c.dead[:0], c.triggers[:0]
}
