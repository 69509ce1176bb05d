package faultfs

import (
	"maps"
	"math/rand/v2"
)

// Clone returns a disk as this one is at this instant, unsynced state included,
// with nothing open, no lock held, no fault armed and no hook. Used as it is, it is
// the machine on which only the process was killed; after CutPower, the one that
// lost power. Its chance is its own, following from this disk's seed and the number
// of clones made so far. Contents are shared until written, so a clone after every
// operation is cheap.
func (d *Disk) Clone() *Disk {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.sampleAll()
	d.clones++
	c := &Disk{
		directRefused:      d.directRefused,
		preallocateRefused: d.preallocateRefused,
		now:                d.now,
		seed:               d.seed,
		rng:                rand.New(rand.NewPCG(d.seed, d.clones)),
		locks:              make(map[string]*lock),
		space:              d.space,
	}
	copies := copier{nodes: make(map[*node]*node), ops: make(map[*nameOp]*nameOp)}
	c.root = copies.node(d.root)
	c.spent = c.used()
	for _, n := range d.dirty {
		if have := copies.nodes[n]; have != nil { // else it has no name, now or on the disk
			c.markDirty(have)
		}
	}
	return c
}

// copier copies nodes, each once.
type copier struct {
	nodes map[*node]*node
	ops   map[*nameOp]*nameOp
}

func (c *copier) node(n *node) *node {
	if n == nil {
		return nil
	}
	if have := c.nodes[n]; have != nil {
		return have
	}
	to := &node{isDir: n.isDir, reserve: n.reserve, mtime: n.mtime, diskMtime: n.diskMtime, links: n.links}
	c.nodes[n] = to
	if !n.isDir {
		to.live, to.disk = n.live.clone(), n.disk.clone()
		to.changes = n.changes[:len(n.changes):len(n.changes)]
		return to
	}
	to.names, to.synced = c.names(n.names), c.names(n.synced)
	for _, o := range n.unnamed {
		to.unnamed = append(to.unnamed, c.op(o))
	}
	return to
}

func (c *copier) names(m map[string]*node) map[string]*node {
	to := maps.Clone(m)
	for name, n := range to {
		to[name] = c.node(n)
	}
	return to
}

func (c *copier) op(o *nameOp) *nameOp {
	if have := c.ops[o]; have != nil {
		return have
	}
	to := &nameOp{old: o.old, new: o.new, done: o.done}
	c.ops[o] = to
	to.from, to.to, to.node = c.node(o.from), c.node(o.to), c.node(o.node)
	return to
}
