//go:build linux && (amd64 || arm64)

package vfs

import (
	"sync"

	"millrace/engine/ring"
)

// syncBatch syncs the files, fewer than syncFSFrom, in one batch, and those that are not the system's beside it.
func (s *System) syncBatch(files []File, errs []error) bool {
	if !s.way.syncs {
		return false
	}
	var b syncing
	var others sync.WaitGroup
	for i, f := range files {
		guard, guarded := f.(SyncGuard)
		inner, ok := f, true
		if guarded {
			inner, ok = guard.BeginSync()
		}
		file, ours := inner.(*osFile)
		if ok && !ours && guarded { // not to be synced twice at once
			errs[i] = guard.EndSync(inner.Sync())
			continue
		}
		if !ok || !ours {
			others.Go(func() { errs[i] = f.Sync() }) // ends with its one Sync, waited for below
			continue
		}
		b.files = append(b.files, file)
		b.ops = append(b.ops, ring.Op{Kind: ring.Sync, FD: -1, Name: f.Name()})
		b.done = append(b.done, func(err error) {
			if errs[i] = err; guarded {
				errs[i] = guard.EndSync(err)
			}
		})
	}
	b.run(s.way, 0)
	for i, done := range b.done {
		done(b.ops[i].Err)
	}
	others.Wait()
	return true
}

// syncing is a batch of syncs with the files that it is about.
type syncing struct {
	files []*osFile
	ops   []ring.Op
	done  []func(error)
}

// run takes hold of the descriptors from the i-th on, one inside the other, then carries out the batch.
func (b *syncing) run(w *way, i int) {
	if i == len(b.files) {
		w.park(b.ops)
		return
	}
	held := b.files[i].control("fdatasync", func(fd int) error {
		b.ops[i].FD = fd
		b.run(w, i+1)
		return nil
	})
	if held != nil { // closed: the others are synced nevertheless
		b.run(w, i+1)
		b.ops[i].Err = held
	}
}
