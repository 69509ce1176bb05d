package faultfs

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// ReadFile returns a file's live contents, power or no power.
func (d *Disk) ReadFile(name string) ([]byte, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	n, err := d.find(name)
	if err == nil && n.isDir {
		err = syscall.EISDIR
	}
	if err != nil {
		return nil, named(OpRead, name, err)
	}
	d.sample(n)
	return n.live.bytes(), nil
}

// ReadSynced returns what is certain to be in a file after a power cut now:
// fs.ErrNotExist if its name is not durable.
func (d *Disk) ReadSynced(name string) ([]byte, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	n := d.root
	for _, part := range splitName(name) {
		if n = n.synced[part]; n == nil { // also if it was a file: it has no names
			return nil, named(OpRead, name, fs.ErrNotExist)
		}
	}
	if n.isDir {
		return nil, named(OpRead, name, syscall.EISDIR)
	}
	return n.disk.bytes(), nil
}

// WriteFile makes a file as if it had always been there: name, directories and
// contents are durable, nothing is counted and no fault strikes.
func (d *Disk) WriteFile(name string, data []byte) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	dir := d.root
	parts := splitName(name)
	for i, part := range parts {
		n := dir.names[part]
		if n == nil {
			n = newDir()
			if i == len(parts)-1 {
				n = newFile(d.now())
			}
			n.links = 1
			n.mtime = d.now()
			n.diskMtime = n.mtime
			dir.names[part] = n
		}
		dir.synced[part] = n // past the list of changes: those before it stay unsynced
		dir = n
		if n.isDir == (i == len(parts)-1) {
			return named(OpCreate, name, syscall.ENOTDIR)
		}
	}
	before := dir.allocated()
	d.cut(dir, 0)
	d.put(dir, data, 0)
	dir.syncAll()
	d.account(dir, before)
	return nil
}

// Damage changes n bytes at off in a file, each to some other value, on the disk as
// in what is not yet on it. Bytes past the end are not made.
func (d *Disk) Damage(name string, off, n int64) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	f, err := d.find(name)
	if err == nil && f.isDir {
		err = syscall.EISDIR
	}
	if err != nil {
		return named("damage", name, err)
	}
	d.sample(f)
	mask := make([]byte, n)
	for i := range mask {
		mask[i] = byte(1 + d.rng.IntN(255))
	}
	spoil := func(p []byte, at int64) {
		for i := range p {
			if k := at + int64(i) - off; k >= 0 && k < n {
				p[i] ^= mask[k]
			}
		}
	}
	for _, img := range []*image{f.live, f.disk} {
		p := make([]byte, n)
		if p = p[:img.read(p, off)]; len(p) > 0 {
			spoil(p, off)
			img.write(p, off, int64(len(p)))
		}
	}
	f.changes = slices.Clone(f.changes) // a clone may share the list
	for i, c := range f.changes {
		if in := c.part(off, off+n); !c.truncate && in.size > 0 {
			data := make([]byte, c.size)
			copy(data, c.data)
			spoil(data, c.off)
			f.changes[i].data = data
		}
	}
	if f.shared != nil {
		f.shared.store(f.live.bytes()[:min(f.live.size, int64(len(f.shared.buf)))], 0)
	}
	return nil
}

// Dump writes the live files to a real directory, to be looked at with other tools.
func (d *Disk) Dump(dir string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.sampleAll()
	return dump(d.root, dir)
}

func dump(n *node, to string) error {
	if !n.isDir {
		if err := os.WriteFile(to, n.live.bytes(), 0o644); err != nil {
			return err
		}
		return os.Chtimes(to, n.mtime, n.mtime)
	}
	if err := os.MkdirAll(to, 0o755); err != nil {
		return err
	}
	for _, base := range sortedNames(n.names) {
		if err := dump(n.names[base], filepath.Join(to, base)); err != nil {
			return err
		}
	}
	return nil
}

// cleanName is the one spelling of a name.
func cleanName(name string) string { return "/" + strings.Join(splitName(name), "/") }
