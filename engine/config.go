package engine

import (
	"fmt"
	"math"
	"sync/atomic"
	"time"

	"millrace/engine/batch"
)

// Durability says what an acknowledged append has been through (D2).
type Durability int8

const (
	// Sync: an ack means the bytes have survived a sync of the commit
	// journal or of their segment.
	Sync Durability = iota
	// PageCache: an ack means the operating system has the bytes. They
	// survive a crash of the process, not of the machine.
	PageCache
)

func (d Durability) String() string {
	if d == PageCache {
		return "page-cache"
	}
	return "sync"
}

// Config holds what may differ from log to log and may change while a log is
// open (Log.SetConfig). The Kafka topic key of each field is named beside it.
type Config struct {
	SegmentBytes  int64         // segment.bytes: a segment is closed before it would grow past this
	SegmentAge    time.Duration // segment.ms: ... or when it spans more time than this
	SegmentJitter time.Duration // segment.jitter.ms: random share taken off SegmentAge, so that logs do not all roll at once
	IndexBytes    int           // segment.index.bytes: size of an active index file; a full one closes the segment
	IndexInterval int           // index.interval.bytes: bytes between two index entries

	RetentionAge   time.Duration // retention.ms: < 0 keeps for ever
	RetentionBytes int64         // retention.bytes: < 0 means no limit
	DeleteDelay    time.Duration // file.delete.delay.ms: from rename to unlink
	Delete         bool          // cleanup.policy has "delete"
	Compact        bool          // cleanup.policy has "compact"

	DeleteRetention time.Duration // delete.retention.ms: how long compaction keeps a null value after it first met it
	CompactAfter    time.Duration // min.compaction.lag.ms: younger records are not compacted
	CompactWithin   time.Duration // max.compaction.lag.ms: a record is compacted at the latest this long after
	DirtyRatio      float64       // min.cleanable.dirty.ratio: share of bytes not looked at from which a pass is due

	Recompress bool        // compression.type is not "producer": compaction stores what stays with Codec
	Codec      batch.Codec // compression.type
	CodecLevel int         // compression.<codec>.level
	MaxBatch   int         // max.message.bytes: compaction makes no batch grow past it; 0: no bound

	Durability    Durability    // millrace.durability
	FlushMessages int64         // flush.messages: page-cache only; an append that fills this many waits for a sync
	FlushEvery    time.Duration // flush.ms: page-cache only; unsynced bytes are never older than this

	Preallocate    bool          // preallocate: reserve SegmentBytes when a segment is made
	ProducerExpiry time.Duration // producer.id.expiration.ms
	AppendTime     bool          // message.timestamp.type=LogAppendTime
}

// DefaultConfig returns Kafka's defaults, with synced acks.
func DefaultConfig() Config {
	return Config{
		SegmentBytes:   1 << 30,
		SegmentAge:     7 * 24 * time.Hour,
		IndexBytes:     10 << 20,
		IndexInterval:  4096,
		RetentionAge:   7 * 24 * time.Hour,
		RetentionBytes: -1,
		DeleteDelay:    time.Minute,
		Delete:         true,
		Durability:     Sync,
		FlushMessages:  math.MaxInt64,
		FlushEvery:     math.MaxInt64,
		ProducerExpiry: 24 * time.Hour,

		DeleteRetention: 24 * time.Hour,
		CompactWithin:   math.MaxInt64,
		DirtyRatio:      0.5,
	}
}

var newestConfig atomic.Pointer[Config]

// shared returns settings that say what c says. Logs whose settings are the same mostly
// get the same ones: every append looks at them, and with a copy for each of thousands
// of logs none would be in a cache. They are never changed.
func shared(c Config) *Config {
	if p := newestConfig.Load(); p != nil && *p == c {
		return p
	}
	newestConfig.Store(&c)
	return &c
}

// ConfigError names the key, the value and the limit that it breaks.
type ConfigError struct {
	Key   string // Kafka's name of the setting
	Value any
	Limit string // what would be allowed, in words
}

func (e *ConfigError) Error() string {
	return fmt.Sprintf("%s=%v: must be %s", e.Key, e.Value, e.Limit)
}

// Validate returns a *ConfigError for the first setting out of its range.
func (c *Config) Validate() error {
	const longest = time.Duration(math.MaxInt64)
	switch {
	case c.SegmentBytes < minSegmentBytes || c.SegmentBytes > maxSegmentBytes:
		return &ConfigError{"segment.bytes", c.SegmentBytes, fmt.Sprintf("in [%d, %d]", minSegmentBytes, maxSegmentBytes)}
	case c.SegmentAge < time.Millisecond:
		return &ConfigError{"segment.ms", c.SegmentAge.Milliseconds(), "at least 1"}
	case c.SegmentJitter < 0 || c.SegmentJitter == longest:
		return &ConfigError{"segment.jitter.ms", c.SegmentJitter.Milliseconds(), "at least 0"}
	case c.IndexBytes < minIndexBytes || c.IndexBytes > maxSegmentBytes:
		return &ConfigError{"segment.index.bytes", c.IndexBytes, fmt.Sprintf("in [%d, %d]", minIndexBytes, maxSegmentBytes)}
	case c.IndexInterval < 0:
		return &ConfigError{"index.interval.bytes", c.IndexInterval, "at least 0"}
	case c.DeleteDelay < 0:
		return &ConfigError{"file.delete.delay.ms", c.DeleteDelay.Milliseconds(), "at least 0"}
	case c.DeleteRetention < 0:
		return &ConfigError{"delete.retention.ms", c.DeleteRetention.Milliseconds(), "at least 0"}
	case c.CompactAfter < 0:
		return &ConfigError{"min.compaction.lag.ms", c.CompactAfter.Milliseconds(), "at least 0"}
	case c.CompactWithin < time.Millisecond || c.CompactWithin < c.CompactAfter:
		return &ConfigError{"max.compaction.lag.ms", c.CompactWithin.Milliseconds(), fmt.Sprintf("at least 1 and min.compaction.lag.ms (%d)", c.CompactAfter.Milliseconds())}
	case !(c.DirtyRatio >= 0 && c.DirtyRatio <= 1):
		return &ConfigError{"min.cleanable.dirty.ratio", c.DirtyRatio, "in [0, 1]"}
	case c.Recompress && batch.CheckLevel(c.Codec, c.CodecLevel) != nil:
		return &ConfigError{"compression." + c.Codec.String() + ".level", c.CodecLevel, batch.CheckLevel(c.Codec, c.CodecLevel).Error()}
	case c.Durability != Sync && c.Durability != PageCache:
		return &ConfigError{"millrace.durability", int8(c.Durability), "sync or page-cache"}
	case c.FlushMessages < 1:
		return &ConfigError{"flush.messages", c.FlushMessages, "at least 1"}
	case c.FlushEvery < 0:
		return &ConfigError{"flush.ms", c.FlushEvery.Milliseconds(), "at least 0"}
	case c.ProducerExpiry <= 0:
		return &ConfigError{"producer.id.expiration.ms", c.ProducerExpiry.Milliseconds(), "at least 1"}
	}
	return nil
}
