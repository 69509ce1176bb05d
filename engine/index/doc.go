// Package index holds the two sparse indexes of a segment, in Kafka's formats:
//
//	.index      8 bytes an entry: offset - base int32, position int32
//	.timeindex 12 bytes an entry: timestamp int64, offset - base int32
//
// An index is a hint and never the truth: whatever is in its file, of whatever
// length, the answer is either right or an error that wraps ErrCorrupt, upon
// which the owner calls Reset and appends the entries anew from the segment.
//
// One index lives in one of four states (DESIGN D6):
//
//	deferred  nothing read yet, not even opened: a clean start costs no I/O
//	mapped    active with two entries or more, preallocated to its maximum (sparse, zero-filled), memory-mapped
//	paged     active without a map: the last page in memory, one write when it is full
//	sealed    read only, trimmed to its entries: first key of each page in memory, one pread a lookup
//
// No state keeps a descriptor of its own: those of paged and sealed indexes are
// borrowed from a Set, a mapping needs none. A Set bounds both, maps and files,
// over all logs of a process.
//
// All methods may be called at the same time from several goroutines, with one
// exception: Append, TruncateTo, Reset and Seal come from the holder of the log.
package index
