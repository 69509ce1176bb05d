//go:build linux && (amd64 || arm64)

package vfs

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

const (
	fileMode = 0o644
	dirMode  = 0o755
)

// osFS is the operating system's file system. It has one piece of state: the
// lock files held, because SyncFS asks through them (see lock.go).
type osFS struct {
	mu    sync.Mutex
	locks map[string][]*dirLock // by the directory the lock file is in; guarded by mu
}

// theOS is one per process, so that whoever took a directory's lock and whoever
// syncs that directory need not share more than the package.
var theOS = &osFS{locks: make(map[string][]*dirLock)}

// OS returns the operating system's file system. It is the same value each time.
func OS() FS { return theOS }

func (o *osFS) OpenFile(name string, flag int) (File, error) {
	if flag&os.O_APPEND != 0 {
		return nil, &fs.PathError{Op: "open", Path: name, Err: unix.EINVAL}
	}
	f, err := openFile(name, flag)
	if err != nil {
		return nil, err
	}
	return f, nil
}

func (o *osFS) OpenDirect(name string) (File, bool, error) {
	f, err := openFile(name, unix.O_RDWR|unix.O_DIRECT|unix.O_DSYNC)
	if err == nil && !takesDirect(f) {
		f.Close()
		err = unix.EINVAL
	}
	direct := err == nil
	if errors.Is(err, unix.EINVAL) { // how a file system says no to O_DIRECT: open(2)
		f, err = openFile(name, unix.O_RDWR)
	}
	if err != nil {
		return nil, false, err
	}
	return f, direct, nil
}

// takesDirect reports whether direct I/O in units of DirectAlign will be accepted.
// Some file systems accept the flag and refuse every write, or want more than
// 4096; kernels since 6.1 can tell. An older kernel is believed.
func takesDirect(f *osFile) bool {
	takes := true
	f.control("statx", func(fd int) error {
		var st unix.Statx_t
		err := unix.Statx(fd, "", unix.AT_EMPTY_PATH, unix.STATX_DIOALIGN, &st)
		if err == nil && st.Mask&unix.STATX_DIOALIGN != 0 {
			align := max(st.Dio_mem_align, st.Dio_offset_align)
			takes = st.Dio_offset_align != 0 && align <= DirectAlign && DirectAlign%align == 0
		}
		return nil
	})
	return takes
}

func (o *osFS) MkdirAll(name string) error {
	return os.MkdirAll(name, dirMode)
}

// Rename is rename(2) itself: os.Rename looks at the target first and refuses any
// directory, also the empty one that rename(2) replaces.
func (o *osFS) Rename(old, new string) error {
	if err := retry(func() error { return unix.Rename(old, new) }); err != nil {
		return &os.LinkError{Op: "rename", Old: old, New: new, Err: err}
	}
	return nil
}

func (o *osFS) Remove(name string) error { return os.Remove(name) }

func (o *osFS) RemoveAll(name string) error { return os.RemoveAll(name) }

func (o *osFS) ReadDir(name string) ([]DirEntry, error) {
	list, err := os.ReadDir(name)
	if err != nil {
		return nil, err
	}
	entries := make([]DirEntry, len(list))
	for i, e := range list {
		entries[i] = DirEntry{Name: e.Name(), IsDir: e.IsDir()}
	}
	return entries, nil
}

func (o *osFS) Stat(name string) (Info, error) {
	st, err := os.Stat(name)
	if err != nil {
		return Info{}, err
	}
	return Info{Size: st.Size(), ModTime: st.ModTime(), IsDir: st.IsDir()}, nil
}

func (o *osFS) Chtimes(name string, mtime time.Time) error {
	return os.Chtimes(name, mtime, mtime)
}

func (o *osFS) SyncDir(name string) error {
	dir, err := openFile(name, unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return err
	}
	defer dir.Close()
	return dir.control("fsync", unix.Fsync)
}

// SyncFS ends with a flush of its own: syncfs writes the block device's cache
// (inode tables, on a file system without a journal) after the flush it issues
// itself, so that those last blocks may still sit in the drive's cache. An
// fdatasync, even of a clean file, flushes the drive (90 µs measured).
func (o *osFS) SyncFS(dir string) error {
	f, release := o.lockFile(dir)
	if f == nil {
		var err error
		if f, err = openFile(dir, unix.O_RDONLY|unix.O_DIRECTORY); err != nil {
			return err
		}
		release = func() { f.Close() }
	}
	defer release()
	if err := f.control("syncfs", unix.Syncfs); err != nil {
		return err
	}
	return f.control("fdatasync", unix.Fdatasync)
}

func (o *osFS) Free(dir string) (int64, error) {
	var st unix.Statfs_t
	err := retry(func() error { return unix.Statfs(dir, &st) })
	if err != nil {
		return 0, &fs.PathError{Op: "statfs", Path: dir, Err: err}
	}
	return int64(st.Bavail) * int64(st.Bsize), nil
}

// Total is how many bytes the file system that holds dir has, free or not.
func (o *osFS) Total(dir string) (int64, error) {
	var st unix.Statfs_t
	err := retry(func() error { return unix.Statfs(dir, &st) })
	if err != nil {
		return 0, &fs.PathError{Op: "statfs", Path: dir, Err: err}
	}
	return int64(st.Blocks) * int64(st.Bsize), nil
}

// dirKey is the form in which lock.go and SyncFS compare directories.
func dirKey(dir string) string {
	if abs, err := filepath.Abs(dir); err == nil {
		return abs
	}
	return filepath.Clean(dir)
}
