// Package engine is an append-only log on disk, in Kafka's file formats, and a
// Store of many such logs. It knows nothing of the network.
//
// # What a Log is
//
// A Log is a sequence of record batches, each of which has the offsets that
// follow those of the batch before it (L1). Batches are checked by the caller
// (engine/batch), stamped in place with offset and leader epoch, and stored as
// they are: bytes on disk are the bytes on the wire. Reading hands out ranges of
// the files themselves (Slice), which can be sent without copying.
//
// # What an append has promised
//
// Append returns when the batch is as safe as Config.Durability says. Sync (the
// default): the bytes have survived a sync, in the commit journal
// (engine/journal) or in their own segment, and will be there after a loss of
// power (L6). PageCache: the operating system has them, which survives a crash
// of the process only; FlushMessages and FlushEvery bound what a loss of power
// may take. Enqueue, Write and Wait are the three steps of Append: many appends
// in line are written with one call, and many that wait share one sync.
//
// # The offset ladder
//
//	Start ......... first offset a reader may ask for
//	Durable ....... below this, bytes have survived a sync
//	End ........... next offset to be assigned
//
// L2: Start <= Durable <= End. Each rung only rises, except that truncation
// lowers End, and Durable with it, and nothing else. The high watermark is the
// business of whoever replicates; readers bring it along as their limit.
//
// # The files
//
//	<topic>-<partition>/
//	    00000000000000000000.log         batches, one after another
//	    00000000000000000000.index       offset -> position, sparse
//	    00000000000000000000.timeindex   timestamp -> offset, sparse
//	    00000000000000104711.log         the active segment: the only one that grows
//	    00000000000000104711.index       preallocated while it is active
//	    00000000000000104711.timeindex
//	    00000000000000104711.snapshot    producers' sequences as of that offset
//	    leader-epoch-checkpoint          first offset of each leader epoch
//	    partition.metadata               the topic's id (Store)
//	    .millrace-moves                  how often the log moved between data directories
//	    .millrace-page-cache             segments were closed unsynced: a loss of power may have torn any of them
//	    .millrace-sync-failed            a sync has failed: the next opening writes the tail again
//	    *.deleted                        unlinked after Config.DeleteDelay
//	    *.cut                            taken out by recovery; nobody reads it
//
// A log that is opened without a Store keeps .lock, its journal, its two
// checkpoint files and the mark of a clean stop in the same folder.
//
// # For other stores
//
// AppendRecords, NewAppend, Get, Records and Tail deal in records and know the
// batches for their callers; Reader deals in whole batches. Readers wait at the
// end without polling, end with Safe, and are told when what they have read was
// truncated (news.go). SetStart with Retain, and TruncateTo, cut the two ends.
// Positions keep named offsets, Metrics are for a monitor. docs/library.md is a
// guide; engine/examples has a queue, a key-value store and a raft.LogStore.
//
// # What a crash may leave
//
// A torn tail behind the recovery point, in the last segment or, when the crash
// came during a roll, in the last two; index files of any content; snapshots
// torn or missing. Opening the log brings that into order: recover.go has the
// decision table. Damage where nothing can be torn is reported as a
// *CorruptError that names file and position, and the log does not open; it is
// never taken for the end. Offsets never go back, also when retention has
// emptied a log. What goes bad later in closed segments is found by a Store's
// scrub (StoreOptions.ScrubRate, OnDamage), which stops nothing.
//
// # Who may call what at once
//
// All methods of a Log may be called at the same time, from any goroutine,
// except that an Append has one owner, and Close comes last. Reads take no lock.
// Appends, truncation and retention exclude each other by Log.mu, which comes
// after a partition's lock and before the journal's and the segments' pins. It
// is not held across the sync that an ack waits for; it is across those that
// must be over before the next append may be (a roll's directory entry,
// truncation). A Log has no goroutine of its own: rounds are run by who waits,
// deletion by a Background, which lives while there is something to delete, and
// flush.ms by a timer, which is armed only while there is something to flush (the
// runtime keeps timers in a heap: a wheel of our own would save nothing). Close ends both.
//
// # Many logs
//
// A log that nobody uses holds no descriptor, no map and no timer. Segment files are
// opened at their first use and may be closed for others when nobody uses them: not
// while somebody has a pin (a Slice, a sync, a pass of compaction) or holds Log.mu.
// FileSet bounds them, index.Set maps and files of indexes. Who uses segment.file
// holds one of the two as long as it uses the file.
//
// # How files are read and synced
//
// Through engine/vfs alone. A Store opens the operating system's files in the way of StoreOptions.IO: through io_uring (engine/ring) where that
// was measured to pay, or by plain calls. For OpenLog, LogOptions.FS takes what vfs.OSWith returns. Readers of what is not in memory hold up
// nobody else, and what they ask of the disk is bounded.
//
// # Errors, by what the caller can do
//
//   - ErrOutOfRange: ask for another offset; the error says what there is.
//   - ErrNoRecord: compaction has removed it; go on behind it.
//   - ErrTooLarge, ErrNoKey, ErrStaleEpoch, ErrOffsetOrder, *producers.SequenceError:
//     refuse the request; the log is as it was.
//   - ErrStorage: nothing was stored. The log may take the next append, say
//     when a disk has space again.
//   - ErrPoisoned: nothing of this directory is acknowledged until it is opened
//     again (L4). Reads go on.
//   - *CorruptError: a person must look.
//   - ErrClosed: stop.
//
// # Reading order
//
// config.go, errors.go, limits.go; log.go (the type), append.go and
// append_write.go (the way in), segment.go, open_files.go and segment_walk.go, read.go
// and slice.go (the way out), read_time.go; record.go, reader.go, news.go, positions.go,
// metrics.go (for other stores); log_roll.go, log_journal.go,
// log_truncate.go, retention.go; log_open.go, recover.go (the table),
// recover_run.go, recover_scan.go, dormant.go; store.go; store_move.go,
// store_move_copy.go, store_move_swap.go, store_move_load.go; clean.go,
// clean_write.go, clean_swap.go; scrub.go, scrub_segment.go, scrub_index.go.
package engine
