package engine

import (
	"math"
	"time"

	"millrace/engine/batch"
)

// Every queue, buffer and loop of this package has its bound here.
const (
	// A position in an index is an int32, so no segment may reach 2 GiB.
	maxSegmentBytes = math.MaxInt32
	// Kafka's own lower bound up to 4.0: less than a batch header could never be useful.
	minSegmentBytes = 14
	// One offset index entry (8 bytes) or one time index entry (12), plus the
	// spare entry that the time index keeps.
	minIndexBytes = 24
	// A relative offset in an index is an int32 (F005).
	maxOffsetSpan = math.MaxInt32

	// One combined write: 1 MiB, since pwritev gains nothing beyond 256 KiB
	// (LIMITS.md: 64 x 16 KiB 6.9 GB/s), in at most as many pieces as one
	// pwritev takes (UIO_MAXIOV).
	maxRunBytes   = 1 << 20
	maxRunAppends = 1024

	// Bytes read at once while walking batch headers. A tail read or a limit
	// look-up walks at most IndexInterval bytes and one batch, so the small
	// one fits nearly all; recovery reads every byte.
	walkChunk    = 4 << 10
	recoverChunk = 1 << 20
	// Remembered batch boundaries of a log (see hints): 64 slots of 24 bytes.
	hintBits  = 6
	hintCount = 1 << hintBits

	// A record this far ahead of the clock holds its segment back from
	// retention by time, which is reported (F018). Clocks of producers are
	// seldom an hour off by accident.
	futureSlack = time.Hour
	// The journal of a log that stands alone: one writer's worth, two files so
	// that one can be emptied while the other is written.
	standaloneJournalBytes = 16 << 20
	standaloneJournalFiles = 2
	// How often free space is looked at: one statfs a directory.
	spaceEvery = time.Second
	// Open segment files (open_files.go): how many are drawn for one that can be closed
	// (100 ns each), how many of them are spared since they were used not long ago, and
	// how many are closed when the system has no descriptor left. One newcomer in stays keeps its place when the
	// next one comes: files that come into use are at home after about as many uses.
	maxFileTries  = 64
	secondChances = 8
	relievedFiles = 64
	stays         = 8
	// Snapshots of producer state kept beside those at segment starts.
	keepSnapshots = 2
)

// Bounds of the scrub.
const (
	scrubWindow    = 256 << 10      // read at once, past the page cache
	scrubFindings  = 8              // told of one segment; dump-log check tells the rest
	scrubEvery     = 24 * time.Hour // from the beginning of a pass to that of the next, if it took less
	scrubRetry     = time.Minute    // after an error that says nothing of a segment, such as no descriptor left
	scrubSaveEvery = time.Minute    // how often it is noted how far a pass got
	maxScrubIndex  = 64 << 20       // a larger index is not looked at: memory
)

const (
	_ = uint(maxRunBytes - batch.HeaderSize)  // a run holds at least one batch header
	_ = uint(maxSegmentBytes - maxRunBytes)   // a run fits in a segment
	_ = uint(recoverChunk - batch.HeaderSize) // a header fits in a chunk
	_ = uint(walkChunk - batch.HeaderSize)    // likewise
)

// Bounds of moving a log to another data directory.
const (
	// moveChunk is read and written at once. A worker checks after each whether it
	// should stop, so it bounds that wait as well.
	moveChunk = 256 << 10

	// moveSyncBytes are written between two syncs: on a device that writes 200 MB/s
	// a sync of somebody else's append waits some 80 ms for it at most.
	moveSyncBytes = 16 << 20

	// moveRest is what may be left to copy with appends halted: some 5 ms. A log that
	// is not caught up with may have it doubled moveRestDoublings times (16 MiB).
	moveRest          = 1 << 20
	moveRestDoublings = 4

	// maxWantedDirs bounds the wishes for logs that do not exist yet, some 100 bytes each.
	maxWantedDirs = 10000

	// leastMoveWait is not worth a timer; maxMoveWait is what one chunk costs at most.
	leastMoveWait = time.Millisecond
	maxMoveWait   = time.Hour
)

// Bounds of the API for other stores.
const (
	// A Reader begins with a page, which is all that a single look-up needs, and doubles
	// its reads up to what a disk in sequence wants. Its buffer is no larger than a read, or one batch.
	minReadBytes = 4 << 10
	maxReadBytes = 1 << 20
	// maxKeptAppend is the largest buffer that AppendRecords keeps for the next call.
	maxKeptAppend = 1 << 20
)
