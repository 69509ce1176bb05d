//go:build linux && (amd64 || arm64)

package vfs

import (
	"fmt"
	"sync"

	"millrace/engine/ring"
)

// IO says how batches of operations are carried out.
type IO string

// The values of IO, and of millrace.io.
const (
	IOAuto IO = "auto" // io_uring where it was measured to pay and the kernel allows it
	IORing IO = "ring" // io_uring wherever a way through it is built
	IOPool IO = "pool" // plain system calls on a bounded number of goroutines
)

// System is the operating system's file system with a way of its own to carry out batches: the journal's direct writes, syncs of a few
// files (SyncMany), and reads of what is not in memory (File.ReadCold, File.SendTo). It shares its locks with OS().
type System struct {
	*osFS
	way     *way
	refused error
}

// OSWith opens the operating system's file system for a way of I/O. It is to be closed. With IORing the error is a *ring.SetupError that
// says why the kernel refuses; with IOAuto that is no error, see Refused.
func OSWith(io IO) (*System, error) {
	s := &System{osFS: theOS, way: plainWay}
	if io != IOAuto && io != IORing && io != IOPool {
		return nil, fmt.Errorf("no such way of I/O: %q, only %s, %s and %s", io, IOAuto, IORing, IOPool)
	}
	if io == IOPool {
		return s, nil
	}
	r, err := ring.NewRing()
	switch {
	case err == nil:
		s.way = &way{batches: r, syncs: true, cold: true, direct: io == IORing}
	case io == IORing:
		return nil, err
	default:
		s.refused = err
	}
	return s, nil
}

// Way is "ring" or "pool": what is in use.
func (s *System) Way() string { return s.way.batches.String() }

// Refused says why io_uring is not used although IOAuto asked for it; nil if it is, or if nobody asked.
func (s *System) Refused() error { return s.refused }

// Close gives back descriptors and memory. Files stay usable; what they do from then on is done by plain calls.
func (s *System) Close() error {
	s.way.batches.Close()
	return nil
}

// OpenFile is FS.
func (s *System) OpenFile(name string, flag int) (File, error) {
	return s.adopt(s.osFS.OpenFile(name, flag))
}

// OpenDirect is FS.
func (s *System) OpenDirect(name string) (File, bool, error) {
	f, direct, err := s.osFS.OpenDirect(name)
	f, err = s.adopt(f, err)
	if err == nil && direct && s.way.direct {
		f = &ringWriter{f.(*osFile)}
	}
	return f, direct, err
}

func (s *System) adopt(f File, err error) (File, error) {
	if err != nil {
		return nil, err
	}
	f.(*osFile).way = s.way
	return f, nil
}

// way is how the files of a System do what can be done in more ways than one. Which way pays where is measured by benchmarks/crossover:
//
//   - direct writes: pwrite and the ring alike from 4 to 256 KiB (125-200 µs), pwrite ahead above: auto writes plainly;
//   - syncs of 2 to 7 files: the ring takes 0.6 to 0.8 of what goroutines take;
//   - cold reads: asking for all of a range first (fadvise) beats every other way, the ring is second. What the ring adds is the waiting: a
//     goroutine in the poller holds neither thread nor processor.
type way struct {
	batches ring.Backend
	syncs   bool // of several files, through batches
	direct  bool // journal writes, through batches
	cold    bool // waits for the disk in Park
	devices sync.Map
}

// plainWay is that of OS().
var plainWay = &way{batches: ring.NewPool()}

// ringWriter is a direct file whose writes go through the ring.
type ringWriter struct{ *osFile }

func (f *ringWriter) WriteAt(p []byte, off int64) (int, error) {
	ops := [1]ring.Op{{Kind: ring.Write, Name: f.Name(), Buf: p, Off: off}}
	if err := f.do(ops[:], f.way.batches.Do); err != nil {
		return 0, err
	}
	return ops[0].N, ops[0].Err
}

// do carries out ops, all of f, with its descriptor held. The error is that f is closed; those of ops are theirs.
func (f *osFile) do(ops []ring.Op, how func([]ring.Op)) error {
	return f.control(ops[0].Kind.String(), func(fd int) error {
		for i := range ops {
			ops[i].FD = fd
		}
		how(ops)
		return nil
	})
}
