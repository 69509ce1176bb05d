//go:build linux && (amd64 || arm64)

package vfs

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"sync"

	"golang.org/x/sys/unix"
)

// dirLock is a held lock file. It has a second job: while it is open, SyncFS of
// its directory asks through it. The kernel reports a write-back error of a file
// system once to every descriptor that was open when it happened. A descriptor
// opened for the one syncfs call would learn only of errors that nobody has been
// told of yet, and so would miss one that the operator's own "sync" had fetched.
type dirLock struct {
	owner *osFS
	dir   string
	file  *osFile
	uses  sync.WaitGroup // SyncFS calls using file
	once  sync.Once
}

func (o *osFS) Lock(name string) (io.Closer, error) {
	f, err := openFile(name, unix.O_RDWR|unix.O_CREAT)
	if err != nil {
		return nil, err
	}
	if err := f.control("lock", exclude); err != nil {
		f.Close()
		if errors.Is(err, unix.EWOULDBLOCK) || errors.Is(err, unix.EACCES) {
			return nil, &LockError{Name: name}
		}
		return nil, err
	}
	l := &dirLock{owner: o, dir: dirKey(filepath.Dir(name)), file: f}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.locks[l.dir] = append(o.locks[l.dir], l)
	return l, nil
}

// exclude takes two locks, since they do not see each other: flock, which other
// tools use, and a record lock of the whole file, which is what the JVM's
// FileChannel.tryLock takes, so that Kafka cannot open a directory that we have,
// nor we Kafka's. It is the kind that belongs to the open file, not to the process:
// the old kind is lost when anybody in the process closes the file.
func exclude(fd int) error {
	if err := unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return err
	}
	whole := unix.Flock_t{Type: unix.F_WRLCK, Whence: unix.SEEK_SET}
	err := unix.FcntlFlock(uintptr(fd), unix.F_OFD_SETLK, &whole)
	if err == unix.EINVAL || err == unix.ENOLCK { // not on this file system; flock must do
		return nil
	}
	return err
}

// Close ends the lock. The file stays: removing it would let a third party lock
// a new file of the same name while a second still waits for this one.
func (l *dirLock) Close() error {
	err := os.ErrClosed
	l.once.Do(func() {
		l.owner.forget(l)
		l.uses.Wait()
		err = l.file.Close()
	})
	return err
}

func (o *osFS) forget(l *dirLock) {
	o.mu.Lock()
	defer o.mu.Unlock()
	list := o.locks[l.dir]
	for i, have := range list {
		if have == l {
			list = append(list[:i:i], list[i+1:]...)
			break
		}
	}
	if len(list) == 0 {
		delete(o.locks, l.dir)
		return
	}
	o.locks[l.dir] = list
}

// lockFile returns the lock file held in dir, if there is one, and what to call
// when done with it.
func (o *osFS) lockFile(dir string) (*osFile, func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	list := o.locks[dirKey(dir)]
	if len(list) == 0 {
		return nil, nil
	}
	l := list[0]
	l.uses.Add(1) // under mu, so before forget, so before Wait
	return l.file, l.uses.Done
}
