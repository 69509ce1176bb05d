// Package vfs is the one seam between the engine and files. Everything the
// engine does to a disk goes through [FS] and [File], so that a test can put a
// disk that loses, tears and refuses (package faultfs) in the place of the real
// one ([OS]). Nothing here knows what the bytes mean.
//
// Reading order: vfs.go (the seam), syncmany.go, buffer.go, copy.go, then the
// Linux implementation: osfs.go, osfile.go, system.go (batches), cold.go, pwritev.go,
// sendfile.go, lock.go.
//
// What "synced" means here: Sync and SyncFS return nil only when the operating
// system said that the bytes had reached stable storage. After any failed sync
// the bytes it covered are in an unknown state and a later successful sync says
// nothing about them; the caller has to give up on the directory (L4).
//
// Only Linux on amd64 and arm64 is supported; see unsupported.go.
package vfs

import (
	"errors"
	"fmt"
	"io"
	"net"
	"time"
)

// FS is one view of a file system. All methods may be called at the same time
// from many goroutines. Errors are *fs.PathError or *os.LinkError naming the
// operation and the file; errors.Is works with fs.ErrNotExist, fs.ErrExist and
// the system's error numbers.
type FS interface {
	// OpenFile opens name with os.O_* flags. Files are created 0o644. os.O_APPEND
	// is refused: Linux would ignore the offset of every WriteAt.
	OpenFile(name string, flag int) (File, error)

	// OpenDirect opens an existing file so that WriteAt goes past the page cache
	// and returns when the bytes are synced (O_DIRECT|O_DSYNC). Buffers (see
	// AlignedBuffer), offsets and lengths of reads and writes must then be
	// multiples of DirectAlign. direct == false means that the file system
	// refused: the file was opened plainly for reading and writing, has no
	// alignment rule, and the caller must Sync after writing.
	OpenDirect(name string) (f File, direct bool, err error)

	// MkdirAll makes name and what is missing above it, 0o755.
	MkdirAll(name string) error

	// Rename replaces new by old in one step, as rename(2). It is not durable
	// until the directories of both names have been synced.
	Rename(old, new string) error

	// Remove removes a file or an empty directory.
	Remove(name string) error

	// RemoveAll removes name and everything below it; no error if it is not there.
	RemoveAll(name string) error

	// ReadDir lists a directory, sorted by name.
	ReadDir(name string) ([]DirEntry, error)

	// Stat describes a file or directory; a symbolic link is followed.
	Stat(name string) (Info, error)

	// Chtimes sets the modification time (and the access time with it).
	Chtimes(name string, mtime time.Time) error

	// SyncDir makes the names in a directory durable: fsync of the directory
	// itself. It says nothing about the contents of the files or about the name
	// of the directory in its parent.
	SyncDir(name string) error

	// SyncFS makes everything on the file system holding dir durable: syncfs,
	// then one flush of the device's cache. It waits for dirty data of others too.
	// When the lock of dir is held (see Lock), a write-back error that happened
	// since Lock is reported even if somebody else's sync was told of it first.
	SyncFS(dir string) error

	// Free reports how many bytes an unprivileged writer may still use on the
	// file system holding dir.
	Free(dir string) (int64, error)

	// Lock takes an exclusive lock on the file name, creating it if needed,
	// without waiting. The lock ends with Close of the result or with the process.
	// When somebody else has it, the error is a *LockError, which is ErrLocked. The
	// lock keeps out other processes of ours and tools (flock) and Kafka's JVM
	// (POSIX record lock).
	Lock(name string) (io.Closer, error)
}

// File is an open file. All methods may be called at the same time from many
// goroutines, Close included: what runs when Close is called finishes with the
// file it began with. There is no file position; every call says where.
type File interface {
	io.ReaderAt // a short read comes with io.EOF
	io.WriterAt // writes all or returns an error
	io.Closer

	// Name is the name given to OpenFile; a later Rename does not change it.
	Name() string

	// WriteVAt writes the buffers one after another from position off, in as few
	// system calls as the limit of 1024 buffers a call allows, until all is
	// written or an error stops it. It returns how many bytes were written. bufs
	// and what it points to are only read and are not kept.
	WriteVAt(bufs [][]byte, off int64) (int, error)

	// Size is the current size in bytes.
	Size() (int64, error)

	// Truncate cuts the file, or extends it with zeros, to size bytes. What
	// Preallocate reserved beyond size is given back.
	Truncate(size int64) error

	// Sync makes the bytes and the size durable (fdatasync). It does not make the
	// name durable; that is FS.SyncDir.
	Sync() error

	// Preallocate reserves space for [off, off+n) without changing the size.
	// ErrUnsupported where the file system cannot.
	Preallocate(off, n int64) error

	// Map maps the first size bytes, shared and writable. The file must be that
	// long. Touching a page that a later Truncate has cut off kills the process,
	// so close the mapping first. The mapping outlives Close of the file.
	Map(size int) (Mapping, error)

	// Advise tells the kernel how [off, off+n) will be used. n == 0 means to the
	// end of the file. It is a hint: ErrUnsupported may be ignored.
	Advise(off, n int64, a Advice) error

	// Dirty is about how many bytes of the file wait in memory to be written to the disk. ErrUnsupported where the system does not tell.
	Dirty() (int64, error)

	// WriteOut writes what is dirty in [off, off+n) to the disk, n == 0 meaning to the end of the file, and if told so waits for that, also for what
	// was begun before: a Sync that follows has less to do at once. It promises nothing (no size, no flush of the device), but an error counts as
	// that of a failed Sync: the kernel tells it once.
	WriteOut(off, n int64, wait bool) error

	// ReadCold is ReadAt for what may not be in memory: where the system allows it, nothing but this goroutine waits for the disk.
	ReadCold(p []byte, off int64) (int, error)

	// SendTo writes the bytes [off, off+n) of the file to c and returns how many
	// c took. To *net.TCPConn and *net.UnixConn it is sendfile(2): no copy, an
	// explicit offset (the file may be sent to many connections at once), both
	// descriptors held while it runs, the write deadline of c honoured as by
	// Write; what is not in memory is read before, a window at a time (cold.go). To any other connection it copies through a pooled buffer.
	// io.ErrUnexpectedEOF means that the file ended before off+n.
	SendTo(c net.Conn, off, n int64) (int64, error)
}

// Mapping is a piece of a file as memory. Methods must not run at the same
// time as Close; neither may accesses to Bytes.
type Mapping interface {
	// Bytes is the mapped memory, valid until Close.
	Bytes() []byte

	// Flush makes what was stored into Bytes before the call durable (msync).
	Flush() error

	// Close unmaps. Stores made before are in the file, but not synced.
	Close() error
}

// DirEntry is one name in a directory.
type DirEntry struct {
	Name  string
	IsDir bool
}

// Info describes a file or directory.
type Info struct {
	Size    int64 // bytes; meaningless for a directory
	ModTime time.Time
	IsDir   bool
}

// Advice is a hint for File.Advise.
type Advice int

// The hints; each is the posix_fadvise(2) of the same name.
const (
	AdviseWillNeed   Advice = iota + 1 // start reading it now
	AdviseDontNeed                     // clean pages of it may go
	AdviseRandom                       // no read-ahead (the whole file)
	AdviseSequential                   // more read-ahead (the whole file)
)

// DirectAlign is what addresses, offsets and lengths must be a multiple of for a
// file from OpenDirect: the largest logical block in use on Linux disks.
const DirectAlign = 4096

var (
	// ErrUnsupported: the file system or the kernel cannot do that. It is
	// errors.ErrUnsupported, so the system's own ENOTSUP and ENOSYS are it too.
	ErrUnsupported = errors.ErrUnsupported

	// ErrLocked: another process, or another part of this one, holds the lock.
	ErrLocked = errors.New("locked by another process")
)

// LockError names the file whose lock could not be taken.
type LockError struct {
	Name string
}

func (e *LockError) Error() string {
	return fmt.Sprintf("%s: %v", e.Name, ErrLocked)
}

// Unwrap makes errors.Is(err, ErrLocked) true.
func (e *LockError) Unwrap() error { return ErrLocked }
