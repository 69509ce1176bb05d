package broker

import (
	"errors"
	"math"
	"strconv"
	"strings"

	"millrace/engine"
	"millrace/engine/batch"
)

// topicTable is every topic setting that Kafka 4.3 knows, those that 4.0
// removed, and ours. It is the one place where a topic key is named: creation,
// DescribeConfigs, the logs' and the leaders' settings all read it.
var topicTable = []topicKey{
	{
		ConfigKey: words("cleanup.policy", "delete", "what happens to old segments: deleted by time and size, or compacted to the last record of each key", "compact", "delete"),
		Server:    []string{"log.cleanup.policy"},
		apply: func(s *topicSettings, v string) {
			s.Log.Delete, s.Log.Compact = false, false
			for _, w := range splitList(v) {
				s.Log.Delete = s.Log.Delete || w == "delete"
				s.Log.Compact = s.Log.Compact || w == "compact"
			}
			s.Policy.Compacted = s.Log.Compact
		},
	},
	{
		ConfigKey: number[int]("compression.gzip.level", TypeInt, "-1", -1, 9, "", "level if the broker compresses with gzip; -1 is the codec's own", nil),
		Server:    []string{"compression.gzip.level"},
		apply:     func(s *topicSettings, v string) { s.gzip = int(asInt(v)) },
	},
	{
		ConfigKey: number[int]("compression.lz4.level", TypeInt, "9", 1, 17, "", "level if the broker compresses with lz4", nil),
		Server:    []string{"compression.lz4.level"},
		apply:     func(s *topicSettings, v string) { s.lz4 = int(asInt(v)) },
	},
	{
		ConfigKey: choice("compression.type", "producer", "codec of stored batches; producer keeps them as they were sent", nil, "producer", "uncompressed", "gzip", "snappy", "lz4", "zstd"),
		Server:    []string{"compression.type"},
		apply: func(s *topicSettings, v string) {
			if s.Policy.Recompress = v != "producer"; s.Policy.Recompress {
				s.Policy.Codec, _ = batch.ParseCodec(v) // the choice allows no other
			}
		},
	},
	{
		ConfigKey: number[int]("compression.zstd.level", TypeInt, "3", -131072, 22, "", "level if the broker compresses with zstd", nil),
		Server:    []string{"compression.zstd.level"},
		apply:     func(s *topicSettings, v string) { s.zstd = int(asInt(v)) },
	},
	{
		ConfigKey: number[int64]("delete.retention.ms", TypeLong, "86400000", 0, maxInt64, "ms", "how long a compacted topic keeps its tombstones", nil),
		Server:    []string{"log.cleaner.delete.retention.ms"},
		apply:     func(s *topicSettings, v string) { s.Log.DeleteRetention = asTime(v) },
	},
	{
		ConfigKey: number[int64]("file.delete.delay.ms", TypeLong, "60000", 0, maxInt64, "ms", "time between taking a file out of use and deleting it", nil),
		Server:    []string{"log.segment.delete.delay.ms"},
		apply:     func(s *topicSettings, v string) { s.Log.DeleteDelay = asTime(v) },
	},
	{
		ConfigKey: number[int64]("flush.messages", TypeLong, "9223372036854775807", 1, maxInt64, "count", "with millrace.durability=page-cache: sync after this many records", nil),
		Server:    []string{"log.flush.interval.messages"},
		apply:     func(s *topicSettings, v string) { s.Log.FlushMessages = asInt(v) },
	},
	{
		ConfigKey: number[int64]("flush.ms", TypeLong, "9223372036854775807", 0, maxInt64, "ms", "with millrace.durability=page-cache: sync after this time", nil),
		Server:    []string{"log.flush.interval.ms", "log.flush.scheduler.interval.ms"},
		apply:     func(s *topicSettings, v string) { s.Log.FlushEvery = asTime(v) },
	},
	{ConfigKey: throttled("follower.replication.throttled.replicas", "followers")},
	{
		ConfigKey: number[int]("index.interval.bytes", TypeInt, "4096", 0, maxInt32, "bytes", "bytes of records between two index entries", nil),
		Server:    []string{"log.index.interval.bytes"},
		apply:     func(s *topicSettings, v string) { s.Log.IndexInterval = int(asInt(v)) },
	},
	{ConfigKey: throttled("leader.replication.throttled.replicas", "leaders")},
	{
		ConfigKey: number[int64]("local.retention.bytes", TypeLong, "-2", -2, maxInt64, "bytes", "of tiered storage, which is not built: no effect", nil),
	},
	{
		ConfigKey: number[int64]("local.retention.ms", TypeLong, "-2", -2, maxInt64, "ms", "of tiered storage, which is not built: no effect", nil),
	},
	{
		ConfigKey: number[int64]("max.compaction.lag.ms", TypeLong, "9223372036854775807", 1, maxInt64, "ms", "longest time a record may wait for compaction", nil),
		Server:    []string{"log.cleaner.max.compaction.lag.ms"},
		apply:     func(s *topicSettings, v string) { s.Log.CompactWithin = asTime(v) },
	},
	{
		ConfigKey: number[int]("max.message.bytes", TypeInt, "1048588", 0, maxInt32, "bytes", "largest batch, as sent (compressed), with its 61 byte header", nil),
		Server:    []string{"message.max.bytes"},
		apply:     func(s *topicSettings, v string) { s.Policy.MaxMessage = int(asInt(v)) },
	},
	{
		ConfigKey: number[int64]("message.timestamp.after.max.ms", TypeLong, "3600000", 0, maxInt64, "ms", "how far ahead of the broker's clock a record's timestamp may be", nil),
		Server:    []string{"log.message.timestamp.after.max.ms"},
		apply:     func(s *topicSettings, v string) { s.Policy.AfterMax = asBound(v) },
	},
	{
		ConfigKey: number[int64]("message.timestamp.before.max.ms", TypeLong, "9223372036854775807", 0, maxInt64, "ms", "how far behind the broker's clock a record's timestamp may be", nil),
		Server:    []string{"log.message.timestamp.before.max.ms"},
		apply:     func(s *topicSettings, v string) { s.Policy.BeforeMax = asBound(v) },
	},
	{
		ConfigKey: choice("message.timestamp.type", "CreateTime", "whose clock stamps records: the producer's or, on arrival, the broker's", nil, "CreateTime", "LogAppendTime"),
		Server:    []string{"log.message.timestamp.type"},
		apply: func(s *topicSettings, v string) {
			s.Log.AppendTime = v == "LogAppendTime"
			s.Policy.AppendTime = s.Log.AppendTime
		},
	},
	{
		ConfigKey: choice("millrace.durability", "sync", "what an ack means: sync, the records were synced to disk on every in-sync replica; page-cache, Kafka's meaning, they were handed to the operating system", nil, "sync", "page-cache"),
		Server:    []string{"millrace.durability"},
		apply: func(s *topicSettings, v string) {
			s.Log.Durability = engine.Sync
			if v == "page-cache" {
				s.Log.Durability = engine.PageCache
			}
		},
	},
	{
		ConfigKey: choice("millrace.validate", "full", "how much of each produced batch is checked: full, checksum, header and every record; header, checksum and header", nil, "full", "header"),
		Server:    []string{"millrace.validate"},
		apply: func(s *topicSettings, v string) {
			s.Policy.Validate = batch.Full
			if v == "header" {
				s.Policy.Validate = batch.HeaderOnly
			}
		},
	},
	{
		ConfigKey: fraction("min.cleanable.dirty.ratio", "0.5", 0, 1, "share of a log that must be uncompacted before it is compacted"),
		Server:    []string{"log.cleaner.min.cleanable.ratio"},
		apply:     func(s *topicSettings, v string) { s.Log.DirtyRatio, _ = strconv.ParseFloat(v, 64) }, // the row has checked it
	},
	{
		ConfigKey: number[int64]("min.compaction.lag.ms", TypeLong, "0", 0, maxInt64, "ms", "shortest time a record stays uncompacted", nil),
		Server:    []string{"log.cleaner.min.compaction.lag.ms"},
		apply:     func(s *topicSettings, v string) { s.Log.CompactAfter = asTime(v) },
	},
	{
		ConfigKey: number[int]("min.insync.replicas", TypeInt, "1", 1, maxInt32, "count", "replicas that must be in sync for acks=all; never more than the topic has", nil),
		Server:    []string{"min.insync.replicas"},
		apply:     func(s *topicSettings, v string) { s.Policy.MinInSync = int(asInt(v)) },
	},
	{
		ConfigKey: boolean("preallocate", "false", "reserve a segment's space when it is made", nil),
		Server:    []string{"log.preallocate"},
		apply:     func(s *topicSettings, v string) { s.Log.Preallocate = strings.EqualFold(v, "true") },
	},
	{ConfigKey: off("remote.log.copy.disable")},
	{ConfigKey: off("remote.log.delete.on.disable")},
	{ConfigKey: off("remote.storage.enable")},
	{
		ConfigKey: number[int64]("retention.bytes", TypeLong, "-1", math.MinInt64, maxInt64, "bytes", "bytes a partition keeps; -1 keeps all", nil),
		Server:    []string{"log.retention.bytes"},
		apply:     func(s *topicSettings, v string) { s.Log.RetentionBytes = asInt(v) },
	},
	{
		ConfigKey: number[int64]("retention.ms", TypeLong, "604800000", -1, maxInt64, "ms", "time a record is kept; -1 keeps it for ever", nil),
		Server:    []string{"log.retention.ms", "log.retention.minutes", "log.retention.hours"},
		apply:     func(s *topicSettings, v string) { s.Log.RetentionAge = asBound(v) },
	},
	{
		ConfigKey: number[int64]("segment.bytes", TypeInt, "1073741824", 14, maxInt32, "bytes", "a segment file is closed before it grows past this", nil),
		Server:    []string{"log.segment.bytes"},
		apply:     func(s *topicSettings, v string) { s.Log.SegmentBytes = asInt(v) },
	},
	{
		ConfigKey: number[int]("segment.index.bytes", TypeInt, "10485760", 24, maxInt32, "bytes", "size of an index file; a full one closes its segment", nil),
		Server:    []string{"log.index.size.max.bytes"},
		apply:     func(s *topicSettings, v string) { s.Log.IndexBytes = int(asInt(v)) },
	},
	{
		ConfigKey: number[int64]("segment.jitter.ms", TypeLong, "0", 0, maxInt64, "ms", "random time taken off segment.ms, so that not all segments close at once", nil),
		Server:    []string{"log.roll.jitter.ms", "log.roll.jitter.hours"},
		apply:     func(s *topicSettings, v string) { s.Log.SegmentJitter = min(asTime(v), maxInt64-1) },
	},
	{
		ConfigKey: number[int64]("segment.ms", TypeLong, "604800000", 1, maxInt64, "ms", "a segment file is closed when it is this old", nil),
		Server:    []string{"log.roll.ms", "log.roll.hours"},
		apply:     func(s *topicSettings, v string) { s.Log.SegmentAge = asTime(v) },
	},
	{
		ConfigKey: boolean("unclean.leader.election.enable", "false", "whether a replica that is not in sync may lead, losing records", nil),
		Server:    []string{"unclean.leader.election.enable"},
	},

	// Removed in Kafka 4.0. Old tools still send them with a new topic.
	{ConfigKey: boolean("message.downconversion.enable", "true", "removed in Kafka 4.0: old consumers are always served", nil), Gone: true},
	{ConfigKey: parsed("message.format.version", TypeString, "", "", "removed in Kafka 4.0: batches are always stored in format 2", accept), Gone: true},
	{ConfigKey: number[int64]("message.timestamp.difference.max.ms", TypeLong, "9223372036854775807", 0, maxInt64, "ms", "removed in Kafka 4.0: see message.timestamp.before.max.ms and message.timestamp.after.max.ms", nil), Gone: true},
}

// finish sets what follows from several keys.
func (s *topicSettings) finish() {
	s.Log.MaxBatch = s.Policy.MaxMessage
	if !s.Policy.Recompress {
		return
	}
	defer func() { s.Log.Recompress, s.Log.Codec, s.Log.CodecLevel = true, s.Policy.Codec, s.Policy.CodecLevel }()
	switch s.Policy.Codec {
	case batch.Gzip:
		s.Policy.CodecLevel = s.gzip
	case batch.LZ4:
		s.Policy.CodecLevel = s.lz4
	case batch.Zstd:
		s.Policy.CodecLevel = s.zstd
	}
}

var (
	errNotBuilt  = errors.New("must be false: tiered storage is not built")
	errThrottled = errors.New("must be a list of partition:broker, or *")
)

func isNumber(s string) bool {
	n, err := strconv.ParseInt(s, 10, 32)
	return err == nil && n >= 0
}

func accept(*Config, string) error { return nil }

// off is a row for a switch of tiered storage: only its "off" is built.
func off(name string) ConfigKey {
	row := boolean(name, "false", "of tiered storage, which is not built", nil)
	row.Range = "false (tiered storage is not built)"
	row.set = func(_ *Config, v string) error {
		if !strings.EqualFold(v, "false") {
			return errNotBuilt
		}
		return nil
	}
	return row
}

// throttled is a row for a list of partition:broker, or * for all.
func throttled(name, whose string) ConfigKey {
	const rule = "a list of partition:broker, or *"
	return parsed(name, TypeList, "", rule, "replicas whose "+whose+" are throttled while replicating; clusters are not built yet: no effect", func(_ *Config, v string) error {
		if v == "*" {
			return nil
		}
		for _, w := range splitList(v) {
			partition, broker, ok := strings.Cut(w, ":")
			if !ok || !isNumber(partition) || !isNumber(broker) {
				return errThrottled
			}
		}
		return nil
	})
}
