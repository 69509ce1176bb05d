package engine

import (
	"math"
	"sync/atomic"

	"millrace/engine/journal"
	"millrace/engine/vfs"
)

// logOwner is a log as its journal sees it (see journal.Owner). A type of its
// own, so that none of these methods shows on Log.
type logOwner struct {
	log  *Log
	id   journal.LogID
	left atomic.Bool // the log lives elsewhere now: nothing here is owed, nor told, any more
}

// ID implements journal.Owner.
func (o *logOwner) ID() journal.LogID { return o.id }

// End implements journal.Owner; called under the journal's lock.
func (o *logOwner) End() int64 {
	if o.left.Load() {
		return math.MinInt64
	}
	return o.log.end.Load()
}

// Synced raises Durable. It comes under the journal's lock and never after a
// Cut that took the bytes back, so a plain rise is right.
func (o *logOwner) Synced(end int64) {
	if !o.left.Load() {
		raise(&o.log.durable, end)
	}
}

// SegmentSynced raises the recovery point, and Durable with it: bytes synced in
// their segment are durable.
func (o *logOwner) SegmentSynced(end int64) {
	if o.left.Load() {
		return
	}
	raise(&o.log.durable, end)
	raise(&o.log.synced, end)
}

// Notify tells the observer, in sync mode; in page-cache mode the appends do.
func (o *logOwner) Notify() {
	if o.log.config.Load().Durability == Sync {
		o.log.notify()
	}
}

// SyncTargets returns the files that hold bytes above the recovery point, each
// pinned until ReleaseTargets. They follow from the list alone: a segment ends
// where the next one begins.
func (o *logOwner) SyncTargets() []vfs.File {
	l := o.log
	if o.left.Load() {
		return nil
	}
	synced := Offset(l.synced.Load())
	list := *l.segments.Load()
	end := l.End()
	var files []vfs.File
	whole := false
	for i := len(list) - 1; i >= 0 && end > synced; i-- {
		s := list[i]
		end = s.base
		if !s.pin() {
			continue // retention has taken it meanwhile: nobody reads it again
		}
		f, err := s.open.Load(), error(nil) // not file(): a sync is no use that should keep it open
		if Offset(s.closedAt.Load()) > synced {
			s.unpin()
			whole = true
			continue
		}
		if f == nil { // nobody has opened it since the start
			f, err = s.file()
		}
		if err != nil {
			// One that is being deleted, or a disk that is going away: the sync must not pass.
			s.unpin()
			files = append(files, brokenFile{err: err})
			continue
		}
		files = append(files, f)
	}
	if whole {
		files = append(files, wholeSync{home: l.home.Load()})
	}
	if n := &l.home.Load().names; n.made.Load() > n.done.Load() {
		files = append(files, n)
	}
	return files
}

// ReleaseTargets ends what SyncTargets began.
func (o *logOwner) ReleaseTargets(files []vfs.File) {
	for _, f := range files {
		if f, ok := f.(*segmentFile); ok {
			f.segment.unpin()
		}
	}
}

// brokenFile stands for a file that could not be opened; its sync fails.
type brokenFile struct {
	vfs.File
	err error
}

func (f brokenFile) Sync() error           { return f.err }
func (f brokenFile) Dirty() (int64, error) { return 0, f.err }

func raise(rung *atomic.Int64, to int64) {
	for {
		now := rung.Load()
		if now >= to || rung.CompareAndSwap(now, to) {
			return
		}
	}
}
