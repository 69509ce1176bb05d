// Package compact decides what log compaction keeps. It knows batches and offsets, not files: a [Map] of the newest offset of
// each key, filled from the dirty part of a log, and a [Pass] over the log's entries that thins each one by it. The rules are
// Kafka's cleaner's (storage-formats, section 11): the newest record of each key stays, a null value stays until the horizon
// that the first pass gave it, data of aborted transactions goes, a marker goes once nothing of its transaction is left and its
// horizon has passed, and the newest batch of a live producer and the last batch of the range stay as bare headers.
package compact
