// Package batch knows Kafka's record formats and nothing else: no files, no
// offsets to assign, no policy.
//
// A batch arrives from a producer as bytes and is stored as the very same bytes
// (D1). In between, [Check] walks it once, in place, so that what is stored can be
// read by every consumer (D12), and [Stamp] writes the two fields the checksum
// does not cover. Nothing else touches a batch unless a topic's compression.type
// or an old client's message format asks for it: [Recompress], [UpConvert],
// [DownConvert].
//
// Three formats, told apart by the magic byte at position 16 of each:
//
//	magic 2   one header of 61 bytes for many records; only the records are compressed
//	magic 1   entries of one message each; a compressed message wraps further ones
//	magic 0   the same without timestamps
//
// An "entry" is whatever stands at one place of a log file: a magic-2 batch, a
// message, or a wrapper. [Split] finds where it ends, [CheckStored] whether it is
// whole, [Records] what is in it, in all three formats.
//
// Memory. Uncompressed batches are read where they lie, with no allocation.
// Compressed ones are expanded into a pooled buffer, never beyond a limit, by at
// most maxExpanding calls at a time (limits.go has the arithmetic).
//
// Everything may be called from any goroutine at the same time; a [Builder] has
// one owner.
//
// Reading order: view.go, split.go, check.go, walk.go, codec.go, records.go, legacy.go,
// convert_up.go, convert_down.go.
//
// Source of the formats: Kafka's DefaultRecordBatch, DefaultRecord, LegacyRecord,
// AbstractLegacyRecordBatch and its compress package.
package batch
