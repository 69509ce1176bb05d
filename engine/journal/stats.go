package journal

import "time"

// Stats are counters since Start. Averages are for the reader to take: Time/Rounds is the mean latency of a round, Waiters/Rounds the mean
// number of waiters.
type Stats struct {
	Rounds     uint64 // rounds ended
	Blocks     uint64 // of them, with a block written to the journal
	BlockBytes uint64 // bytes of those blocks, padding included
	Records    uint64 // records gathered
	Waiters    uint64 // Waits that were part of a round
	Synced     uint64 // owners' files synced in rounds
	Large      uint64 // times that a log passed the threshold in a round
	Fallbacks  uint64 // Adds that found the round full
	Unplaced   uint64 // rounds that found no room in a file and synced the owners' files in its place
	Recycled   uint64 // journal files freed
	Passes     uint64 // syncs of owners' files outside of rounds

	Time, Last, Max time.Duration // of rounds, from their beginning to the moment the owners are told
	Latency         [24]uint64    // rounds that took [2^(i-1), 2^i) µs; the last one holds all above

	Files, FreeFiles, SealedFiles int // now
}

// Stats returns the current figures.
func (j *Journal) Stats() Stats {
	j.mu.Lock()
	defer j.mu.Unlock()
	s := j.stats
	s.Files, s.FreeFiles, s.SealedFiles = len(j.files), len(j.free), len(j.sealed)
	return s
}
