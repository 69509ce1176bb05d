// Package journal is the commit journal of a data directory: what makes an acknowledgement that means "synced" cheap.
//
// Logs write their batches to their segment files through the page cache and give the same bytes to the journal (Add). Whoever waits (Wait)
// runs the round: one direct, synced write to a file whose blocks were written before, for all logs together. Segment
// files are synced later, in the background, and then the journal's file is used again. Measured, that is half the time of an append and a
// sync of the file, and a small part of it when many logs are dirty. Many bytes of one log skip the journal: its files are synced in the round.
//
// # What is promised
//
// When Wait returns nil, everything added under its ticket survives a crash: it is in a synced part of the log's files, or in a block
// of the journal that will not be overwritten before it is (L6). After the first failed write or sync no Wait returns nil again,
// whatever its ticket, until the directory is opened anew (L4). Replaying a journal again, or a clean stop's journal, changes
// nothing (L7). What a Cut took back never returns once its ticket's round has ended.
//
// # Rounds
//
//	open ...... gathers: Add copies bytes, AddSync and full or large Adds name files to sync, Cut writes a record
//	running ... one at a time: sync the named files, then write the block
//	ended ..... owners are told (Synced), its waiters wake, one waiter of the open round is handed the next turn
//
// wait.go argues why no wake-up is lost. The block goes last, so a block that is whole says that all before it, and its own
// round's files, were made durable.
//
// # Files
//
//	millrace-journal-0   | block 41 | block 42 | block 43 | (block 17) | ...
//	millrace-journal-1   | block 31 | block 32 | ...                         sealed: being synced
//	millrace-journal-2   | empty head | ...                                  free
//
// Blocks of one life (a generation) are numbered without gaps, from the first position of each file on; what an earlier use left behind them (block 17
// above) does not continue the numbers, and what an earlier life left is of another generation. A checksum covers the whole
// block. The first block of a file that does not fit ends the file: it was torn, so it was not acknowledged, nor was anything after it.
// Files are killed (their head overwritten) in the order in which they were filled, before they are free; the comment at recycle proves from it
// that a batch never outlives the cut that took it back.
//
// Files are made and written full of zeros by a background goroutine, the keeper, as they are needed; the first small one by Start. If none is free,
// a round syncs the logs' files in place of writing a block: slower, never blocked.
//
// # What a crash may leave
//
//   - A torn last block: passed over.
//   - During replay or Start: the old records, or the newest of them; they are replayed again.
//   - During reuse: a killed head, whole or torn: the file counts as empty. All of it was synced where it belongs.
//   - During Close: as during reuse.
//   - A file half made: used as far as it goes, or removed.
//
// Who may call what: everything from many goroutines, but Open, Replay, Start and Close in that order. Add and Cut are called under the
// lock of the log concerned, so that its records are in its order; Wait is called without locks, since it may run a round, and with it the Notify of other logs.
// Owner says what a log owes in return.
//
// Reading order: owner.go, options.go, round.go (Add, Cut), wait.go, run.go, block.go, file.go, pass.go, gentle.go, keeper.go, replay.go, journal.go.
package journal
