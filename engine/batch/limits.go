package batch

import "runtime"

// Limits of this room. Bytes unless the name says otherwise.
const (
	// DefaultMaxExpanded is what a compressed payload may expand to where the caller
	// sets no limit of its own: 64 times the default max.message.bytes. Far beyond it
	// consumers with usual fetch settings would not cope either.
	DefaultMaxExpanded = 64 << 20

	// maxStoredExpanded is the same for what is already stored: a limit that was once
	// higher, or another broker's directory, must not make records unreadable.
	maxStoredExpanded = 256 << 20

	// maxPooledScratch is the largest buffer that goes back to the pool; one bigger
	// batch a day must not pin its memory.
	maxPooledScratch = 8 << 20

	// minScratch is the first size of a buffer: the expanded size of a usual 16 KiB batch.
	minScratch = 64 << 10

	// maxRecordErrors is how many records of one batch are named in a refusal.
	maxRecordErrors = 100

	// maxSlots bounds maxExpanding. Hostile payloads can thus hold at most
	// 16 x DefaultMaxExpanded = 1 GiB, and twice that for a moment while buffers grow.
	maxSlots = 16
)

// maxExpanding is how many calls may hold an expanded payload at a time. Expanding is
// pure computing, so more than two a processor would only add memory, not speed.
var maxExpanding = min(maxSlots, 2*runtime.GOMAXPROCS(0))

const (
	_ = uint(maxStoredExpanded - DefaultMaxExpanded) // what was let in can be read
	_ = uint(maxPooledScratch - minScratch)
)
