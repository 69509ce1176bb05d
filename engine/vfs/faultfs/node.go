package faultfs

import (
	"bytes"
	"time"
)

// node is a file or a directory, apart from its name. It has two states: the live
// one that the program sees, and the one on the disk that the next boot sees.
// Between them lie the changes not yet synced, in order.
type node struct {
	isDir bool
	dirty bool // listed in Disk.dirty

	// A directory.
	names   map[string]*node // live
	synced  map[string]*node // on the disk
	unnamed []*nameOp        // changes of names not yet on the disk

	// A file.
	live    *image
	disk    *image
	changes []change // of contents, not yet on the disk
	shared  *shared  // the live mapping, if there is one
	reserve int64    // end of what Preallocate reserved

	mtime     time.Time
	diskMtime time.Time

	links   int // names it has: 0 or 1
	handles int // open handles and mappings
}

// change is an unsynced write or, with truncate set, change of size.
type change struct {
	truncate bool
	off      int64  // of a write
	size     int64  // of the write's bytes, or the new size
	data     []byte // nil: zeros
}

func (c change) end() int64 { return c.off + c.size }

// part is the piece of a write that lies within [from, to).
func (c change) part(from, to int64) change {
	from, to = max(from, c.off), min(to, c.end())
	p := change{off: from, size: max(0, to-from)}
	if c.data != nil && p.size > 0 {
		p.data = c.data[from-c.off : to-c.off]
	}
	return p
}

func newDir() *node {
	return &node{isDir: true, names: make(map[string]*node), synced: make(map[string]*node)}
}

func newFile(now time.Time) *node {
	return &node{live: newImage(), disk: newImage(), mtime: now, diskMtime: now}
}

// put writes p into the live state of a file and remembers it as unsynced.
func (d *Disk) put(n *node, p []byte, off int64) {
	if len(p) == 0 {
		return
	}
	c := change{off: off, size: int64(len(p))}
	if !isZero(p) {
		c.data = bytes.Clone(p)
	}
	n.live.write(c.data, c.off, c.size)
	n.changes = append(n.changes, c)
	n.mtime = d.now()
	d.markDirty(n)
	if n.shared != nil {
		n.shared.store(p, off)
	}
}

// cut changes the size of the live state of a file.
func (d *Disk) cut(n *node, size int64) {
	n.live.resize(size)
	n.changes = append(n.changes, change{truncate: true, size: size})
	n.mtime = d.now()
	d.markDirty(n)
	if n.shared != nil {
		n.shared.clearFrom(size)
	}
}

// syncAll puts all that is unsynced of a file on the disk.
func (n *node) syncAll() {
	for _, c := range n.changes {
		if c.truncate {
			n.disk.resize(c.size)
		} else {
			n.disk.write(c.data, c.off, c.size)
		}
	}
	n.changes = nil
	n.diskMtime = n.mtime
}

// syncRange puts what is unsynced of [from, to) on the disk, and the size with
// it. What lies outside stays unsynced, unless the file was truncated meanwhile: a
// truncation is not divisible.
func (n *node) syncRange(from, to int64) {
	var rest []change
	for _, c := range n.changes {
		if c.truncate {
			n.syncAll()
			return
		}
	}
	for _, c := range n.changes {
		if in := c.part(from, to); in.size > 0 {
			n.disk.write(in.data, in.off, in.size)
		}
		for _, out := range []change{c.part(c.off, from), c.part(to, c.end())} {
			if out.size > 0 {
				rest = append(rest, out)
			}
		}
	}
	n.changes = rest
}

// allocated is the space a file takes: to the end of its bytes or of what is
// reserved for it. Holes count.
func (n *node) allocated() int64 {
	if n.isDir {
		return 0
	}
	return max(n.live.size, n.reserve)
}

// room says how much of size bytes at off can be had, given the space left.
func (d *Disk) room(n *node, off, size int64) int64 {
	if d.space == unbounded {
		return size
	}
	end := n.allocated() + max(0, d.space-d.spent)
	return max(0, min(size, end-off))
}

// account adjusts the space spent after n's allocation was before.
func (d *Disk) account(n *node, before int64) { d.spent += n.allocated() - before }

// drop gives the space of a file back when nothing holds it any more.
func (d *Disk) drop(n *node) {
	if n.links == 0 && n.handles == 0 {
		d.spent -= n.allocated()
	}
}

func isZero(p []byte) bool {
	for len(p) > 0 {
		part := p[:min(len(p), pageBytes)]
		if !bytes.Equal(part, zeroPage[:len(part)]) {
			return false
		}
		p = p[len(part):]
	}
	return true
}
