package engine

import (
	"fmt"
	"sync/atomic"
)

// A full disk stops more than appends: checkpoints, compaction and the rolls that retention needs want space too. So a Store looks
// once a second at what its directories have left, and below StoreOptions.MinFree tells who asks (Log.RoomLeft) that nothing new should
// be taken in. The logs themselves go on taking what they are given.

// LowSpaceError says that a data directory has less space left than is to be kept free. It matches ErrStorage.
type LowSpaceError struct {
	Dir        string
	Free, Need int64 // bytes
}

func (e *LowSpaceError) Error() string {
	return fmt.Sprintf("data directory %s has %d bytes free and %d are to be kept (millrace.min.free.bytes): records are taken again once there is more",
		e.Dir, e.Free, e.Need)
}

// Is makes it a storage error: it may pass.
func (e *LowSpaceError) Is(target error) bool { return target == ErrStorage }

// RoomLeft returns a *LowSpaceError while the directory that the log lives in is short of space, as of the Store's last look.
func (l *Log) RoomLeft() error {
	h := l.home.Load()
	if h.low == nil {
		return nil
	}
	if e := h.low.Load(); e != nil {
		return e
	}
	return nil
}

// lowSpaceState is what a directory's logs look at; nil inside: there is enough.
type lowSpaceState = atomic.Pointer[LowSpaceError]

// lookAtSpace brings the directories' states up to date.
func (s *Store) lookAtSpace() {
	for _, d := range s.dirs {
		if d.offline() != nil {
			continue
		}
		free, err := d.fs.Free(d.path)
		if err != nil {
			continue // whoever writes there will find out
		}
		was := d.low.Load() != nil
		switch {
		case free >= s.o.MinFree && was:
			d.low.Store(nil)
			s.log.Info("there is enough free space again", "dir", d.path, "free", free)
		case free < s.o.MinFree:
			d.low.Store(&LowSpaceError{Dir: d.path, Free: free, Need: s.o.MinFree})
			if !was {
				s.log.Warn("free space is low: producers are told to wait (millrace.min.free.bytes)", "dir", d.path, "free", free, "keep", s.o.MinFree)
			}
		}
	}
}
