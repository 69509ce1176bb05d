package checkpoint

import (
	"cmp"
	"maps"
	"slices"
	"strconv"

	"millrace/engine/vfs"
)

// TopicPartition names a log in the checkpoint files of a data directory.
type TopicPartition struct {
	Topic     string
	Partition int32
}

// Names of the checkpoint files in a data directory.
const (
	RecoveryPoints = "recovery-point-offset-checkpoint"    // everything below is synced in its segments
	LogStarts      = "log-start-offset-checkpoint"         // only logs whose start lies inside a segment
	CleanHorizons  = "millrace-cleaner-horizon-checkpoint" // ms: when the next null value that compaction kept may go; 0 none
	HighWatermarks = "replication-offset-checkpoint"
	CleanerOffsets = "cleaner-offset-checkpoint" // first offset that compaction has not seen
)

// Offsets is the content of one of them.
type Offsets map[TopicPartition]int64

// ReadOffsets reads a checkpoint file; a missing one is empty. With an error comes
// what was readable before the bad line, never nil.
func ReadOffsets(fsys vfs.FS, path string) (Offsets, error) {
	o := make(Offsets)
	err := readLines(fsys, path, "an entry \"topic partition offset\"", func(fields []string) bool {
		if len(fields) != 3 {
			return false
		}
		partition, ok := parseInt32(fields[1])
		offset, err := strconv.ParseInt(fields[2], 10, 64)
		if !ok || partition < 0 || err != nil || offset < 0 {
			return false
		}
		o[TopicPartition{fields[0], partition}] = offset
		return true
	})
	return o, err
}

// Write replaces the file atomically and durably.
func (o Offsets) Write(fsys vfs.FS, path string) error {
	return WriteFile(fsys, path, o.Encode())
}

// Encode is the file's content, by topic and partition.
func (o Offsets) Encode() []byte {
	keys := slices.SortedFunc(maps.Keys(o), func(a, b TopicPartition) int {
		return cmp.Or(cmp.Compare(a.Topic, b.Topic), cmp.Compare(a.Partition, b.Partition))
	})
	b := appendHead(make([]byte, 0, 16+40*len(o)), len(o))
	for _, k := range keys {
		b = append(b, k.Topic...)
		b = append(b, ' ')
		b = strconv.AppendInt(b, int64(k.Partition), 10)
		b = append(b, ' ')
		b = strconv.AppendInt(b, o[k], 10)
		b = append(b, '\n')
	}
	return b
}
