package journal

import "millrace/engine/vfs"

// LogID names a log in the journal. It holds the topic's id, not its name: a topic that is deleted and made anew has
// another id, so old records never match it.
type LogID struct {
	Topic     [16]byte
	Partition int32
}

// Owner is a log as the journal sees it. The journal calls it from whichever goroutine runs a round and from its keeper;
// calls for one owner may overlap each other and the log's own appends.
//
// Two things must hold for a log that is cut (truncated, reset, deleted):
//   - its End is lowered before Cut is called;
//   - its own rungs (Durable, recovery point) are lowered after Cut has returned. No call about bytes that the Cut took back comes later.
//
// An owner must stay usable until it was cut with from = math.MinInt64, or its files are synced and SyncTargets answers nothing.
// Owners are map keys: pass pointers.
type Owner interface {
	// ID must not change.
	ID() LogID

	// End is the log's current end: everything below it has been written (not: synced) to the segment files.
	// Called with journal.mu held: an atomic load, no locks.
	End() int64

	// Synced says that everything below end is durable. Called with journal.mu held, so that it can never arrive after a Cut
	// that took those bytes back: it only stores (end may be lower than one told before: keep the larger), takes no lock and
	// calls nobody. Readers are told in Notify.
	Synced(end int64)

	// SegmentSynced says that everything below end is in synced segment bytes. Called like Synced.
	SegmentSynced(end int64)

	// Notify follows one or more Synced calls, without any lock held and after the round's waiters were released.
	// Calls may overlap: look at the current Durable, not at what it was.
	Notify()

	// SyncTargets returns the files with bytes that are not yet synced where they belong: the active segment, and a rolled
	// one until SegmentSynced passes its end. Called without any lock. The files must stay open until they are handed to
	// ReleaseTargets; the journal does so exactly once for each SyncTargets call that returned any.
	SyncTargets() []vfs.File
	ReleaseTargets(files []vfs.File)
}
