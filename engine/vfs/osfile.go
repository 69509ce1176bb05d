//go:build linux && (amd64 || arm64)

package vfs

import (
	"io/fs"
	"os"

	"github.com/edsrzf/mmap-go"
	"golang.org/x/sys/unix"
)

// osFile is an open file with the calls that package os does not offer.
type osFile struct {
	descriptor
	way *way // of the System that opened it
}

func openFile(name string, flag int) (*osFile, error) {
	f := &osFile{way: plainWay}
	if err := f.open(name, flag); err != nil {
		return nil, err
	}
	return f, nil
}

func (f *osFile) Size() (int64, error) {
	var st unix.Stat_t
	err := f.control("stat", func(fd int) error { return unix.Fstat(fd, &st) })
	return st.Size, err
}

func (f *osFile) Truncate(size int64) error {
	return f.control("truncate", func(fd int) error { return unix.Ftruncate(fd, size) })
}

func (f *osFile) Sync() error {
	return f.control("fdatasync", unix.Fdatasync)
}

func (f *osFile) Preallocate(off, n int64) error {
	return f.control("fallocate", func(fd int) error {
		return unix.Fallocate(fd, unix.FALLOC_FL_KEEP_SIZE, off, n)
	})
}

func (f *osFile) Advise(off, n int64, a Advice) error {
	advice := [...]int{
		AdviseWillNeed:   unix.FADV_WILLNEED,
		AdviseDontNeed:   unix.FADV_DONTNEED,
		AdviseRandom:     unix.FADV_RANDOM,
		AdviseSequential: unix.FADV_SEQUENTIAL,
	}
	if a <= 0 || int(a) >= len(advice) {
		return &fs.PathError{Op: "fadvise", Path: f.Name(), Err: unix.EINVAL}
	}
	return f.control("fadvise", func(fd int) error {
		return unix.Fadvise(fd, off, n, advice[a])
	})
}

// Dirty asks cachestat(2), Linux 6.5.
func (f *osFile) Dirty() (int64, error) {
	var in unix.Cachestat_t
	err := f.control("cachestat", func(fd int) error {
		return unix.Cachestat(uint(fd), &unix.CachestatRange{}, &in, 0)
	})
	return int64(in.Dirty+in.Writeback) * int64(os.Getpagesize()), err
}

// WriteOut uses sync_file_range, whose waiting takes a write-back error away from a later sync: hence what File says of an error.
func (f *osFile) WriteOut(off, n int64, wait bool) error {
	how := unix.SYNC_FILE_RANGE_WRITE
	if wait {
		how = unix.SYNC_FILE_RANGE_WRITE_AND_WAIT
	}
	return f.control("sync_file_range", func(fd int) error {
		err := unix.SyncFileRange(fd, off, n, how)
		if err == unix.ENOSYS || err == unix.ESPIPE {
			return nil // the sync will do it all
		}
		return err
	})
}

func (f *osFile) Map(size int) (Mapping, error) {
	var m []byte
	err := f.control("mmap", func(fd int) error {
		var st unix.Stat_t
		if err := unix.Fstat(fd, &st); err != nil {
			return err
		}
		if size <= 0 || int64(size) > st.Size {
			return unix.EINVAL // the pages past the end would kill the process when touched
		}
		var err error
		// The call that mmap-go makes: its own wants an *os.File, and so one more descriptor, where there may be none left.
		if m, err = unix.Mmap(fd, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED); err != nil {
			return err
		}
		// Without this the first touch of a page reads ahead: of a sparse index that
		// means making and zeroing megabytes of page cache, 1.3 ms each time.
		return unix.Madvise(m, unix.MADV_RANDOM)
	})
	if err != nil {
		return nil, err
	}
	return &osMapping{m: m, name: f.Name()}, nil
}

// osMapping is an mmap-go map that knows its file's name, for errors.
type osMapping struct {
	m    mmap.MMap
	name string
}

func (m *osMapping) Bytes() []byte { return m.m }

func (m *osMapping) Flush() error {
	if m.m == nil {
		return &fs.PathError{Op: "msync", Path: m.name, Err: fs.ErrClosed}
	}
	if err := m.m.Flush(); err != nil {
		return &fs.PathError{Op: "msync", Path: m.name, Err: err}
	}
	return nil
}

func (m *osMapping) Close() error {
	if m.m == nil {
		return &fs.PathError{Op: "munmap", Path: m.name, Err: fs.ErrClosed}
	}
	if err := m.m.Unmap(); err != nil {
		return &fs.PathError{Op: "munmap", Path: m.name, Err: err}
	}
	return nil
}
