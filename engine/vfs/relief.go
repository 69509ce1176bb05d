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

func (r *relieved) again(err error) bool { return NoDescriptors(err) && r.relieve() }

// OpenFile is FS.
func (r *relieved) OpenFile(name string, flag int) (File, error) {
	f, err := r.FS.OpenFile(name, flag)
	if r.again(err) {
		f, err = r.FS.OpenFile(name, flag)
	}
	return f, err
}

// OpenDirect is FS.
func (r *relieved) OpenDirect(name string) (File, bool, error) {
	f, direct, err := r.FS.OpenDirect(name)
	if r.again(err) {
		f, direct, err = r.FS.OpenDirect(name)
	}
	return f, direct, err
}

// ReadDir is FS.
func (r *relieved) ReadDir(name string) ([]DirEntry, error) {
	list, err := r.FS.ReadDir(name)
	if r.again(err) {
		list, err = r.FS.ReadDir(name)
	}
	return list, err
}

// RemoveAll is FS.
func (r *relieved) RemoveAll(name string) error {
	err := r.FS.RemoveAll(name)
	if r.again(err) {
		err = r.FS.RemoveAll(name)
	}
	return err
}

// SyncDir is FS.
func (r *relieved) SyncDir(name string) error {
	err := r.FS.SyncDir(name)
	if r.again(err) {
		err = r.FS.SyncDir(name)
	}
	return err
}

// SyncFS is FS.
func (r *relieved) SyncFS(dir string) error {
	err := r.FS.SyncFS(dir)
	if r.again(err) {
		err = r.FS.SyncFS(dir)
	}
	return err
}
