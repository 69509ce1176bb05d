package faultfs

import (
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"syscall"
)

// nameOp is an unsynced change of names. A rename between two directories is in
// the list of both, and reaches the disk in both at once.
type nameOp struct {
	from, to *node // directories; from == nil: a new name; to == nil: a removal
	old, new string
	node     *node
	done     bool // on the disk, or lost to a failed sync
}

// dirs are the one or two directories it is listed in.
func (o *nameOp) dirs() []*node {
	switch {
	case o.from == nil || o.from == o.to:
		return []*node{o.to}
	case o.to == nil:
		return []*node{o.from}
	}
	return []*node{o.from, o.to}
}

// change carries a change of names out in the live state.
func (d *Disk) change(o *nameOp) {
	if o.from != nil {
		delete(o.from.names, o.old)
		o.node.links--
	}
	if o.to != nil {
		if gone := o.to.names[o.new]; gone != nil {
			gone.links--
			d.drop(gone)
		}
		o.to.names[o.new] = o.node
		o.node.links++
	}
	d.drop(o.node)
	for _, dir := range o.dirs() {
		dir.unnamed = append(dir.unnamed, o)
		dir.mtime = d.now()
		d.markDirty(dir)
	}
}

// apply puts one change of names on the disk.
func (o *nameOp) apply() {
	if o.from != nil {
		delete(o.from.synced, o.old)
	}
	if o.to != nil {
		o.to.synced[o.new] = o.node
	}
}

// syncNames puts unsynced changes of names, a list's first, on the disk, and of
// other directories what has to be there before, because a rename joins them.
func syncNames(changes []*nameOp) {
	for _, o := range slices.Clone(changes) {
		if !o.done {
			o.sync()
		}
	}
}

// sync puts a change of names on the disk, after all older ones of its
// directories. It ends: every list is in the order in which things happened, so
// each step goes to an older change.
func (o *nameOp) sync() {
	for _, dir := range o.dirs() {
		for dir.unnamed[0] != o {
			dir.unnamed[0].sync()
		}
	}
	o.apply()
	o.forget()
}

// forget takes a change that is done off the lists.
func (o *nameOp) forget() {
	o.done = true
	for _, dir := range o.dirs() {
		if dir.unnamed[0] == o { // nearly always, and thousands may follow
			dir.unnamed = dir.unnamed[1:]
			continue
		}
		dir.unnamed = slices.DeleteFunc(dir.unnamed, func(have *nameOp) bool { return have == o })
	}
}

// splitName cleans a name and cuts it into parts; none for the root.
func splitName(name string) []string {
	clean := strings.Trim(path.Clean("/"+name), "/")
	if clean == "" {
		return nil
	}
	return strings.Split(clean, "/")
}

// find walks the live names.
func (d *Disk) find(name string) (*node, error) {
	n := d.root
	for _, part := range splitName(name) {
		if !n.isDir {
			return nil, syscall.ENOTDIR
		}
		if n = n.names[part]; n == nil {
			return nil, fs.ErrNotExist
		}
	}
	return n, nil
}

// findDir is find, for directories.
func (d *Disk) findDir(name string) (*node, error) {
	n, err := d.find(name)
	if err == nil && !n.isDir {
		err = syscall.ENOTDIR
	}
	return n, err
}

// parent returns the directory that name is in and its last part.
func (d *Disk) parent(name string) (*node, string, error) {
	parts := splitName(name)
	if len(parts) == 0 {
		return nil, "", fs.ErrInvalid
	}
	last := len(parts) - 1
	dir, err := d.findDir(strings.Join(parts[:last], "/"))
	return dir, parts[last], err
}

func sortedNames(m map[string]*node) []string {
	return slices.Sorted(maps.Keys(m))
}
