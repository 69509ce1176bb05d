package faultfs

import (
	"io"
	"io/fs"
	"os"
	"strings"
	"syscall"
	"time"

	"millrace/engine/vfs"
)

// Session is the disk as one boot of the machine sees it: after the next power
// cut all its methods fail with ErrPowerCut. A program given a Session cannot, from
// some forgotten goroutine, write to the disk of the machine started after it.
type Session struct {
	d     *Disk
	power int // the boot it belongs to; current: whichever is running
}

// current is the power of the Disk's own methods.
const current = -1

// Session returns a view of the disk that ends with the next power cut.
func (d *Disk) Session() *Session {
	d.mu.Lock()
	defer d.mu.Unlock()
	return &Session{d: d, power: d.power}
}

// The Disk itself serves whoever calls, across power cuts.

func (d *Disk) anyone() *Session { return &Session{d: d, power: current} }

// OpenFile is vfs.FS. Directories cannot be opened.
func (d *Disk) OpenFile(name string, flag int) (vfs.File, error) {
	return d.anyone().OpenFile(name, flag)
}

// OpenDirect is vfs.FS.
func (d *Disk) OpenDirect(name string) (vfs.File, bool, error) { return d.anyone().OpenDirect(name) }

// MkdirAll is vfs.FS.
func (d *Disk) MkdirAll(name string) error { return d.anyone().MkdirAll(name) }

// Rename is vfs.FS.
func (d *Disk) Rename(old, new string) error { return d.anyone().Rename(old, new) }

// Remove is vfs.FS.
func (d *Disk) Remove(name string) error { return d.anyone().Remove(name) }

// RemoveAll is vfs.FS. It is as many operations as it removes names.
func (d *Disk) RemoveAll(name string) error { return d.anyone().RemoveAll(name) }

// ReadDir is vfs.FS.
func (d *Disk) ReadDir(name string) ([]vfs.DirEntry, error) { return d.anyone().ReadDir(name) }

// Stat is vfs.FS.
func (d *Disk) Stat(name string) (vfs.Info, error) { return d.anyone().Stat(name) }

// Chtimes is vfs.FS. The time is durable after a sync of the file.
func (d *Disk) Chtimes(name string, mtime time.Time) error { return d.anyone().Chtimes(name, mtime) }

// SyncDir is vfs.FS.
func (d *Disk) SyncDir(name string) error { return d.anyone().SyncDir(name) }

// SyncFS is vfs.FS. The whole disk is one file system.
func (d *Disk) SyncFS(dir string) error { return d.anyone().SyncFS(dir) }

// Free is vfs.FS; see SetFree.
func (d *Disk) Free(dir string) (int64, error) { return d.anyone().Free(dir) }

// Lock is vfs.FS. A power cut ends the lock.
func (d *Disk) Lock(name string) (io.Closer, error) { return d.anyone().Lock(name) }

// alive says whether the session's machine runs.
func (s *Session) alive(kind Kind, name string) error {
	if s.d.off || s.power != current && s.power != s.d.power {
		return named(kind, name, ErrPowerCut)
	}
	return nil
}

// OpenFile is vfs.FS. Directories cannot be opened.
func (s *Session) OpenFile(name string, flag int) (vfs.File, error) {
	d := s.d
	kind := OpOpen
	if flag&os.O_CREATE != 0 {
		kind = OpCreate
	}
	d.enter(kind, name)
	defer d.leave()
	if err := s.alive(kind, name); err != nil {
		return nil, err
	}
	n, err := d.open(name, flag)
	if err != nil {
		return nil, err
	}
	return d.handle(n, name, flag), nil
}

// open finds or makes the file, and empties it if flag says so.
func (d *Disk) open(name string, flag int) (*node, error) {
	if flag&os.O_APPEND != 0 {
		return nil, named(OpOpen, name, syscall.EINVAL)
	}
	dir, last, err := d.parent(name)
	if err != nil {
		return nil, named(OpOpen, name, err)
	}
	n := dir.names[last]
	switch {
	case n == nil && (flag&os.O_CREATE == 0 || last == ""):
		return nil, named(OpOpen, name, fs.ErrNotExist)
	case n == nil:
		return d.create(dir, last, name)
	case flag&(os.O_CREATE|os.O_EXCL) == os.O_CREATE|os.O_EXCL:
		return nil, named(OpOpen, name, fs.ErrExist)
	case n.isDir:
		return nil, named(OpOpen, name, syscall.EISDIR)
	}
	if err := d.faultFor(OpOpen, name, false); err != nil {
		return nil, named(OpOpen, name, err)
	}
	if flag&os.O_TRUNC != 0 {
		return n, d.truncate(n, name, 0)
	}
	return n, nil
}

func (d *Disk) create(dir *node, last, name string) (*node, error) {
	err := d.begin(Op{Kind: OpCreate, Name: name})
	if err != nil && !isCut(err) {
		return nil, err
	}
	n := newFile(d.now())
	d.change(&nameOp{to: dir, new: last, node: n})
	return n, d.cutIf(err)
}

// OpenDirect is vfs.FS.
func (s *Session) OpenDirect(name string) (vfs.File, bool, error) {
	d := s.d
	d.enter(OpOpen, name)
	defer d.leave()
	if err := s.alive(OpOpen, name); err != nil {
		return nil, false, err
	}
	n, err := d.open(name, os.O_RDWR)
	if err != nil {
		return nil, false, err
	}
	h := d.handle(n, name, os.O_RDWR)
	h.direct = !d.directRefused
	return h, h.direct, nil
}

// MkdirAll is vfs.FS.
func (s *Session) MkdirAll(name string) error {
	parts := splitName(name)
	for i := range parts {
		if err := s.mkdir("/" + strings.Join(parts[:i+1], "/")); err != nil {
			return err
		}
	}
	return nil
}

func (s *Session) mkdir(name string) error {
	d := s.d
	d.enter(OpMkdir, name)
	defer d.leave()
	if err := s.alive(OpMkdir, name); err != nil {
		return err
	}
	dir, last, err := d.parent(name)
	if err != nil {
		return named(OpMkdir, name, err)
	}
	if n := dir.names[last]; n != nil {
		if !n.isDir {
			return named(OpMkdir, name, syscall.ENOTDIR)
		}
		return nil
	}
	err = d.begin(Op{Kind: OpMkdir, Name: name})
	if err != nil && !isCut(err) {
		return err
	}
	d.change(&nameOp{to: dir, new: last, node: newDir()})
	return d.cutIf(err)
}

// Rename is vfs.FS.
func (s *Session) Rename(old, new string) error {
	d := s.d
	d.enter(OpRename, old)
	defer d.leave()
	if err := s.alive(OpRename, old); err != nil {
		return err
	}
	o, err := d.renaming(old, new)
	if err != nil {
		return &os.LinkError{Op: string(OpRename), Old: old, New: new, Err: err}
	}
	if o == nil {
		return nil
	}
	err = d.begin(Op{Kind: OpRename, Name: old, To: new})
	if err != nil && !isCut(err) {
		return err
	}
	d.change(o)
	return d.cutIf(err)
}

// renaming checks a rename; nil if there is nothing to do.
func (d *Disk) renaming(old, new string) (*nameOp, error) {
	o := &nameOp{}
	var err error
	if o.from, o.old, err = d.parent(old); err != nil {
		return nil, err
	}
	if o.to, o.new, err = d.parent(new); err != nil {
		return nil, err
	}
	if o.node = o.from.names[o.old]; o.node == nil {
		return nil, fs.ErrNotExist
	}
	target := o.to.names[o.new]
	switch {
	case target == o.node:
		return nil, nil
	case o.node.isDir && strings.HasPrefix(cleanName(new), cleanName(old)+"/"):
		return nil, syscall.EINVAL // into itself
	case strings.HasPrefix(cleanName(old), cleanName(new)+"/"):
		return nil, syscall.ENOTEMPTY // over what holds it
	case target == nil:
	case o.node.isDir && !target.isDir:
		return nil, syscall.ENOTDIR
	case !o.node.isDir && target.isDir:
		return nil, syscall.EISDIR
	case target.isDir && len(target.names) > 0:
		return nil, syscall.ENOTEMPTY
	}
	return o, nil
}

// Remove is vfs.FS.
func (s *Session) Remove(name string) error {
	d := s.d
	d.enter(OpRemove, name)
	defer d.leave()
	if err := s.alive(OpRemove, name); err != nil {
		return err
	}
	dir, last, err := d.parent(name)
	if err != nil {
		return named(OpRemove, name, err)
	}
	n := dir.names[last]
	switch {
	case n == nil:
		return named(OpRemove, name, fs.ErrNotExist)
	case n.isDir && len(n.names) > 0:
		return named(OpRemove, name, syscall.ENOTEMPTY)
	}
	err = d.begin(Op{Kind: OpRemove, Name: name})
	if err != nil && !isCut(err) {
		return err
	}
	d.change(&nameOp{from: dir, old: last, node: n})
	return d.cutIf(err)
}

// RemoveAll is vfs.FS. It is as many operations as it removes names.
func (s *Session) RemoveAll(name string) error {
	info, err := s.Stat(name)
	if isAbsent(err) {
		return nil
	}
	if err != nil {
		return err
	}
	if info.IsDir {
		list, err := s.ReadDir(name)
		if err != nil {
			return err
		}
		for _, e := range list {
			if err := s.RemoveAll(name + "/" + e.Name); err != nil {
				return err
			}
		}
	}
	if err := s.Remove(name); !isAbsent(err) {
		return err
	}
	return nil
}

// ReadDir is vfs.FS.
func (s *Session) ReadDir(name string) ([]vfs.DirEntry, error) {
	d := s.d
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := s.alive(OpOpen, name); err != nil {
		return nil, err
	}
	dir, err := d.findDir(name)
	if err != nil {
		return nil, named(OpOpen, name, err)
	}
	entries := make([]vfs.DirEntry, 0, len(dir.names))
	for _, base := range sortedNames(dir.names) {
		entries = append(entries, vfs.DirEntry{Name: base, IsDir: dir.names[base].isDir})
	}
	return entries, nil
}

// Stat is vfs.FS.
func (s *Session) Stat(name string) (vfs.Info, error) {
	d := s.d
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := s.alive("stat", name); err != nil {
		return vfs.Info{}, err
	}
	n, err := d.find(name)
	if err != nil {
		return vfs.Info{}, named("stat", name, err)
	}
	info := vfs.Info{ModTime: n.mtime, IsDir: n.isDir}
	if !n.isDir {
		info.Size = n.live.size
	}
	return info, nil
}

// Chtimes is vfs.FS. The time is durable after a sync of the file.
func (s *Session) Chtimes(name string, mtime time.Time) error {
	d := s.d
	d.enter(OpChtimes, name)
	defer d.leave()
	if err := s.alive(OpChtimes, name); err != nil {
		return err
	}
	n, err := d.find(name)
	if err != nil {
		return named(OpChtimes, name, err)
	}
	err = d.begin(Op{Kind: OpChtimes, Name: name})
	if err != nil && !isCut(err) {
		return err
	}
	n.mtime = mtime
	d.markDirty(n)
	return d.cutIf(err)
}

// plenty is what Free reports of a disk without bound: 1 PiB, so that sums with it
// do not overflow.
const plenty = 1 << 50

// Free is vfs.FS; see SetFree.
func (s *Session) Free(dir string) (int64, error) {
	d := s.d
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := s.alive("statfs", dir); err != nil {
		return 0, err
	}
	if _, err := d.find(dir); err != nil {
		return 0, named("statfs", dir, err)
	}
	return min(max(0, d.space-d.spent), plenty), nil
}

// lock is a held lock.
type lock struct {
	d    *Disk
	name string
}

// Lock is vfs.FS. A power cut ends the lock.
func (s *Session) Lock(name string) (io.Closer, error) {
	d := s.d
	d.enter(OpCreate, name)
	defer d.leave()
	if err := s.alive("lock", name); err != nil {
		return nil, err
	}
	if _, err := d.open(name, os.O_RDWR|os.O_CREATE); err != nil {
		return nil, err
	}
	key := cleanName(name)
	if d.locks[key] != nil {
		return nil, &vfs.LockError{Name: name}
	}
	l := &lock{d: d, name: key}
	d.locks[key] = l
	return l, nil
}

func (l *lock) Close() error {
	l.d.mu.Lock()
	defer l.d.mu.Unlock()
	if l.d.locks[l.name] != l {
		return os.ErrClosed
	}
	delete(l.d.locks, l.name)
	return nil
}
