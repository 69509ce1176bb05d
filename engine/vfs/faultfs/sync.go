package faultfs

import (
	"slices"

	"millrace/engine/vfs"
)

// SyncDir is vfs.FS.
func (s *Session) SyncDir(name string) error {
	d := s.d
	d.enter(OpSyncDir, name)
	defer d.leave()
	if err := s.alive(OpSyncDir, name); err != nil {
		return err
	}
	n, err := d.findDir(name)
	if err != nil {
		return named(OpSyncDir, name, err)
	}
	err = d.begin(Op{Kind: OpSyncDir, Name: name})
	switch {
	case err == nil:
		syncNames(n.unnamed)
		n.diskMtime = n.mtime
		d.clean(n)
	case !isCut(err) && !vfs.NoDescriptors(err): // else the folder was not even opened
		d.loseNames(n)
	}
	return d.cutIf(err)
}

// SyncFS is vfs.FS. The whole disk is one file system.
func (s *Session) SyncFS(dir string) error {
	d := s.d
	d.enter(OpSyncFS, dir)
	defer d.leave()
	if err := s.alive(OpSyncFS, dir); err != nil {
		return err
	}
	if _, err := d.find(dir); err != nil {
		return named(OpSyncFS, dir, err)
	}
	err := d.begin(Op{Kind: OpSyncFS, Name: dir})
	if isCut(err) {
		return d.cutIf(err)
	}
	if vfs.NoDescriptors(err) {
		return err
	}
	d.sampleAll()
	for _, n := range d.dirty {
		switch {
		case err == nil && n.isDir:
			syncNames(n.unnamed)
		case err == nil:
			n.syncAll()
		case n.isDir:
			d.loseNames(n)
		default:
			d.loseContents(n)
		}
		n.diskMtime = n.mtime
		n.dirty = false
	}
	d.dirty = nil
	return err
}

// syncFile is File.Sync and, on a range, Mapping.Flush.
func (d *Disk) syncFile(kind Kind, n *node, name string, whole bool, size int64) error {
	err := d.begin(Op{Kind: kind, Name: name})
	d.sample(n)
	switch {
	case err == nil && whole:
		n.syncAll()
		d.clean(n)
	case err == nil:
		n.syncRange(0, size)
	case !isCut(err):
		d.loseContents(n)
	}
	return d.cutIf(err)
}

// loseContents is what a failed sync does to a file: of what it covered, all,
// nothing or any part is on the disk, and none of it counts as unsynced any more,
// so that no later sync writes it. The live state goes on showing it.
func (d *Disk) loseContents(n *node) {
	n.disk = d.settle(n, d.anyPercent())
	n.changes = nil
}

// loseNames is what a failed sync does to a directory: some first changes of names
// are on the disk, the others will never be.
func (d *Disk) loseNames(n *node) {
	syncNames(n.unnamed[:d.prefix(len(n.unnamed), d.anyPercent())])
	for _, o := range slices.Clone(n.unnamed) {
		o.forget()
	}
}

// anyPercent makes the extremes as likely as the middle.
func (d *Disk) anyPercent() int { return [...]int{0, 50, 100}[d.rng.IntN(3)] }
