// Package store keeps a znode tree: its transactions in an [engine.Log], its snapshots
// in files beside it.
//
// # What a commit has promised
//
// Commit puts transactions into the log, waits for the sync they share, applies them to
// the tree, and only then tells their results. So nobody, neither the client that asked
// nor one that reads, sees a change that a crash could take back (C2), and a watcher's
// event is handed out before any read can see what it is about (C3).
//
// # The files
//
//	<log>/                                  an engine.Log; record n is transaction n
//	<dir>/snapshot.00000000000000104711     the tree before record 104711; the newest few are kept
//	<dir>/snapshot.00000000000000104711.tmp one that was not finished; removed by the next start
//
// A snapshot is taken in the background, exact, while commits go on (tree.Snapshot). It
// is written under another name, synced, renamed, and the name synced; then older ones
// go, and the log's prefix that none of those kept needs. Every frame in it carries a
// checksum of all bytes so far, and the end is marked: no cut or change goes unseen.
//
// # Recovery
//
// The newest snapshot that is whole, then the log from there on; one that is torn or
// damaged is passed over for the one before it. The cases, in order:
//
//	a snapshot's name says more records than the log has   *GapError: the log is not this tree's, or has lost its end
//	a whole snapshot, the log begins at or before it       load, replay
//	none, the log begins with record 0                     replay all
//	none, the log begins later                             *GapError; never an empty tree
//
// # Who may call what at once
//
// Commit has one caller at a time; View and Change may be called by anybody at any time.
// The one goroutine is a snapshot being written; Close ends it.
//
// Errors of Commit: engine.ErrStorage, nothing was stored, and it may be tried again
// (say, when a disk has space). Anything else is for ever: the store must be opened anew.
package store
