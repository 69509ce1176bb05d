package vfs

import (
	"errors"
	"syscall"
)

// NoDescriptors tells that an error is the system's having no descriptor left, for this process or for all. Nothing was done then, and nothing is lost.
func NoDescriptors(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)
}

// Relieved is fsys for those who can do without some of their open files: where an operation finds no descriptor, relieve is asked to close
// some, and if it has, the operation is done again. Without it a folder that cannot even be opened to be synced would pass for a failed sync.
// relieve may be called by many goroutines, and under whatever locks the caller of an operation holds.
func Relieved(fsys FS, relieve func() bool) FS {
	r := &relieved{fsys, relieve}
	if b, ok := fsys.(batchSyncer); ok {
		return &relievedBatches{r, b}
	}
	return r
}

type relieved struct {
	FS
	relieve func() bool
}

// relievedBatches is one over an FS that syncs files in batches; they are open.
type relievedBatches struct {
	*relieved
	batchSyncer
}

// reliefs is how often descriptors are found for one operation: others may be quicker to take them.
const reliefs = 4

// do does an operation, and again if it found no descriptor and there are some now.
func (r *relieved) do(op func() error) error {
	err := op()
	for range reliefs {
		if !NoDescriptors(err) || !r.relieve() {
			break
		}
		err = op()
	}
	return err
}

// OpenFile is FS.
func (r *relieved) OpenFile(name string, flag int) (f File, err error) {
	err = r.do(func() error { f, err = r.FS.OpenFile(name, flag); return err })
	return f, err
}

// OpenDirect is FS.
func (r *relieved) OpenDirect(name string) (f File, direct bool, err error) {
	err = r.do(func() error { f, direct, err = r.FS.OpenDirect(name); return err })
	return f, direct, err
}

// ReadDir is FS.
func (r *relieved) ReadDir(name string) (list []DirEntry, err error) {
	err = r.do(func() error { list, err = r.FS.ReadDir(name); return err })
	return list, err
}

// RemoveAll is FS.
func (r *relieved) RemoveAll(name string) error {
	return r.do(func() error { return r.FS.RemoveAll(name) })
}

// SyncDir is FS.
func (r *relieved) SyncDir(name string) error {
	return r.do(func() error { return r.FS.SyncDir(name) })
}

// SyncFS is FS.
func (r *relieved) SyncFS(dir string) error {
	return r.do(func() error { return r.FS.SyncFS(dir) })
}
