package batch

import "time"

// Level is how deep Check looks.
type Level int8

// Levels, as in the topic setting millrace.validate.
const (
	Full       Level = iota // header, checksum and every record
	HeaderOnly              // header and checksum
)

// Rules are what a topic asks of a batch. The zero value is a full check with no
// limits.
type Rules struct {
	Level       Level
	MaxSize     int  // bytes of the whole batch as stored, compressed, its 61-byte header included; 0 no limit
	RequireKeys bool // a compacted topic: a record without key is refused
	AppendTime  bool // a LogAppendTime topic: the clients' timestamps are not looked at

	// A CreateTime topic's bounds: now-BeforeMax <= timestamp <= now+AfterMax.
	// Below 0 is no limit; a zero Now switches both off.
	Now                 time.Time
	BeforeMax, AfterMax time.Duration

	MaxExpanded        int  // bytes a compressed payload may expand to; 0 is DefaultMaxExpanded
	AllowControl       bool // our own markers; a producer may not send them
	FromFollowerOrDisk bool // offsets are assigned, compaction may have left gaps, and the bytes may not be touched
}
