package journal

import (
	"time"

	"millrace/engine/vfs"
)

// Defaults of Options.
const (
	DefaultFileBytes = 64 << 20
	DefaultFiles     = 4

	// DefaultThreshold: with more bytes than this of one log in one round, syncing its file is cheaper than writing them
	// twice. BenchmarkThreshold, p50 µs of a round, journal / sync of the file, one log, on a noisy machine with 2 cores: 16 KiB
	// 179/230, 64 KiB 222/285, 128 KiB 496/689, 256 KiB 437/519, 512 KiB 854/718, 1 MiB 1469/1326.
	DefaultThreshold = 256 << 10
)

// Bounds. All are bytes unless said otherwise.
const (
	pageBytes = vfs.DirectAlign // blocks begin at, and are padded to, a multiple of this

	// maxBlockBytes bounds one round's block, and with it each of the two gathering buffers and what replay holds in memory
	// at once. What does not fit makes its owner's files part of the round's sync set. 64 writers with 32 KiB each fit.
	maxBlockBytes = 2 << 20

	// cutReserve of it is kept for cut records, which have no other way; should even that run out, the round empties the journal.
	cutReserve = 64 << 10

	// firstBufferBytes is what a gathering buffer starts with; it doubles up to maxBlockBytes.
	firstBufferBytes = 128 << 10

	// firstFileBytes is the size of the file that Start makes while the caller waits: 2 MiB take 3-8 ms to write and sync.
	// It is grown when it is first recycled.
	firstFileBytes = 2 << 20

	// What Options.FileBytes and Options.Files may not go below. With one file there would be no room while it is recycled.
	minFileBytes = 4 * pageBytes
	minFiles     = 2

	// maxReadableBytes bounds a block that replay accepts, and so its memory. It is larger than any block that was ever
	// written, so that maxBlockBytes can change.
	maxReadableBytes = 64 << 20

	// prewriteBytes are written and synced at a time when a file is made or grown, and then as long a pause is made as that took, so that a
	// round never queues behind much more than that on the device (with 4 MiB and no pause every 20th round took 3 ms).
	prewriteBytes = 1 << 20

	// spareFiles is how many full files must still fit on the device after another one is made.
	spareFiles = 2

	// makeRetry passes between two tries to make or grow a file (full disk).
	makeRetry = 30 * time.Second

	// pieceBytes of segment files are written at a time by a pass, and files with no more than that unwritten are synced passFiles at a time,
	// so that a round that comes meanwhile stands behind one such write on the device. passFiles is how many vfs.SyncMany syncs side by side.
	// More files than passMany are written out first, and then take one sync of the file system: 20,000 of them would be 3,000 commits of it.
	pieceBytes = 512 << 10
	passFiles  = 7
	passMany   = 64

	// scanBytes are read at a time when the journal is scanned.
	scanBytes = 1 << 20

	// flushDelay: a round that nobody waits for is run by the keeper after one to two of these.
	flushDelay = 10 * time.Millisecond

	// cutPatience bounds how long an emptying round waits for a log that lowered its End and has not called Cut yet.
	cutPatience = time.Second
)

// A block must fit in the smallest file, or the first file could never be left.
const _ = uint(firstFileBytes-maxBlockBytes) + uint(maxReadableBytes-maxBlockBytes)

// The first buffer holds pages, and the biggest is a whole number of doublings away.
const (
	_ = uint(-(firstBufferBytes % pageBytes))
	_ = uint(-(maxBlockBytes % firstBufferBytes))
)
