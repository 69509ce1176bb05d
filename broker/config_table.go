package broker

import (
	"math"
	"slices"
	"time"
)

// configTable is every key that we read, and every key of Kafka's that we
// accept without acting on it (config_table_inert.go). It is the one table: the
// loader, DescribeConfigs and the documentation walk it. Sources of Kafka's
// rows: its own documentation of 3.9 and 4.3.
var configTable = slices.Concat(servedKeys, groupKeys, groupBoundKeys, inertKeys)

var servedKeys = []ConfigKey{
	// Identity.
	number("node.id", TypeInt, "-1", -1, maxInt32, "", "this broker's id; -1 takes the one kept in meta.properties, else 0", func(c *Config) *int32 { return &c.NodeID }),
	number("broker.id", TypeInt, "-1", -1, maxInt32, "", "older name of node.id", func(c *Config) *int32 { return &c.NodeID }),
	text("cluster.id", "", "the cluster's id; empty takes the one kept in meta.properties, else makes one", func(c *Config) *string { return &c.ClusterID }),
	text("broker.rack", "", "name of this broker's rack, told to clients", func(c *Config) *string { return &c.Rack }),

	// Listeners and connections.
	parsed("listeners", TypeList, "PLAINTEXT://:9092", listenersRule, "addresses to bind; port 0 takes any free port", setListeners),
	parsed("advertised.listeners", TypeList, "", listenersRule, "addresses clients are told; empty means listeners", setAdvertised),
	parsed("listener.security.protocol.map", TypeString, "PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT,SASL_SSL:SASL_SSL", "name:protocol,…; only PLAINTEXT is built so far", "which protocol each listener name speaks", checkProtocolMap),
	number("telemetry.max.bytes", TypeInt, "1048576", 1, maxInt32, "bytes", "largest push of a client's metrics (KIP-714), compressed and expanded", func(c *Config) *int { return &c.TelemetryMax }),
	text("admin.listener", "127.0.0.1:9644", "host:port of /metrics, /healthz and /readyz over HTTP; empty for none; if it is not given and its port is taken, the broker goes without", func(c *Config) *string { return &c.Admin }),
	boolean("millrace.admin.pprof", "false", "whether the admin listener serves profiles under /debug/pprof", nil),
	number("socket.request.max.bytes", TypeInt, "104857600", 1, maxInt32, "bytes", "largest request frame", func(c *Config) *int64 { return &c.Socket.RequestMax }),
	number("queued.max.request.bytes", TypeLong, "-1", -1, maxInt64, "bytes", "memory that all requests together may hold; -1 means ours: an eighth of RAM, from 64 MiB to 512 MiB, never under one largest frame", func(c *Config) *int64 { return &c.Socket.QueuedBytes }),
	number("socket.send.buffer.bytes", TypeInt, "-1", -1, maxInt32, "bytes", "SO_SNDBUF; -1 leaves it to the system (Kafka: 102400)", func(c *Config) *int { return &c.Socket.SendBuffer }),
	number("socket.receive.buffer.bytes", TypeInt, "-1", -1, maxInt32, "bytes", "SO_RCVBUF; -1 leaves it to the system (Kafka: 102400)", func(c *Config) *int { return &c.Socket.ReceiveBuffer }),
	number("max.connections", TypeInt, "2147483647", 0, maxInt32, "count", "connections at once, all listeners", func(c *Config) *int { return &c.Socket.MaxConnections }),
	number("max.connections.per.ip", TypeInt, "2147483647", 0, maxInt32, "count", "connections at once from one address", func(c *Config) *int { return &c.Socket.MaxPerIP }),
	parsed("max.connections.per.ip.overrides", TypeString, "", "address:count,…", "exceptions from max.connections.per.ip", setPerIPOverrides),
	span("connections.max.idle.ms", TypeLong, "600000", -1, maxInt64, time.Millisecond, "idle connections are closed after this; -1 never", func(c *Config) *time.Duration { return &c.Socket.IdleMax }),

	// Coordination.
	text("zookeeper.connect", "", "host:port,…/chroot of a ZooKeeper ensemble that coordinates the cluster; empty means the built-in service", func(c *Config) *string { return &c.Coordination.Connect }),
	span("zookeeper.connection.timeout.ms", TypeInt, "18000", 1, maxInt32, time.Millisecond, "a start gives up when coordination has not answered for so long", func(c *Config) *time.Duration { return &c.Coordination.ConnectTimeout }),
	span("zookeeper.session.timeout.ms", TypeInt, "18000", 1, maxInt32, time.Millisecond, "a broker that coordination has not heard of for so long is dead; with an ensemble, a broker that was killed waits for it at its next start", func(c *Config) *time.Duration { return &c.Coordination.SessionTimeout }),
	text("millrace.coordinator.listener", "127.0.0.1:2181", "host:port where the built-in coordination serves ZooKeeper's clients; port 0 takes any free port; empty: the broker only; if it is not given and its port is taken, a free port of 127.0.0.1", func(c *Config) *string { return &c.Coordination.Listener }),
	text("millrace.coordinator.dir", "", "folder of the built-in coordination; empty means __millrace_coordination-0 in the first data directory", func(c *Config) *string { return &c.Coordination.Dir }),

	// Fetch.
	number("fetch.max.bytes", TypeInt, "57671680", 1024, maxInt32, "bytes", "largest answer to Fetch, whatever the client asks for", func(c *Config) *int64 { return &c.Fetch.MaxBytes }),
	number("max.incremental.fetch.session.cache.slots", TypeInt, "1000", 0, maxInt32, "count", "fetch sessions kept", func(c *Config) *int { return &c.Fetch.SessionSlots }),
	number("millrace.sendfile.threshold", TypeInt, "131072", 0, maxInt32, "bytes", "parts of an answer at least this big leave by sendfile; smaller ones share one write", func(c *Config) *int { return &c.Fetch.SendfileThreshold }),

	// Quotas.
	number("quota.window.num", TypeInt, "11", 1, maxInt32, "count", "windows over which client quotas hold; all together bound how long a client is held back at once", func(c *Config) *int64 { return &c.Quotas.Windows }),
	number("quota.window.size.seconds", TypeInt, "1", 1, maxInt32, "s", "length of one window of client quotas", func(c *Config) *int64 { return &c.Quotas.WindowSeconds }),

	// Storage.
	parsed("log.dirs", TypeList, "", "folders, no two the same", "data directories; wins over log.dir", setLogDirs),
	parsed("log.dir", TypeString, defaultLogDir, "a folder", "data directory", setLogDirs),
	choice("millrace.io", "auto", "how files are read and synced: ring goes through io_uring wherever that is built and refuses to start where the kernel forbids it; pool uses plain system calls; auto takes io_uring where it was measured to pay and the kernel allows it", func(c *Config) *string { return &c.Storage.IO }, "auto", "ring", "pool"),
	choice("millrace.commit.journal", "auto", "whether synced topics share a commit journal for each data directory", func(c *Config) *string { return &c.Storage.Journal }, "auto", "off"),
	text("millrace.commit.journal.dir", "", "folder for the journals (a device of its own); empty means the data directory", func(c *Config) *string { return &c.Storage.JournalDir }),
	number("millrace.commit.journal.threshold", TypeInt, "131072", 0, maxInt32, "bytes", "batches above this skip the journal and sync their file", func(c *Config) *int { return &c.Storage.JournalThreshold }),
	number("millrace.index.maps", TypeInt, "1000", 1, 60000, "count", "index files mapped at once", func(c *Config) *int { return &c.Storage.IndexMaps }),
	number("num.recovery.threads.per.data.dir", TypeInt, "2", 1, 1024, "count", "logs recovered side by side at start", func(c *Config) *int { return &c.Storage.RecoveryThreads }),
	number("num.replica.alter.log.dirs.threads", TypeInt, "", 1, maxInt32, "count", "partitions moved between data directories at the same time; empty means one a directory", func(c *Config) *int { return &c.Storage.MoveThreads }),
	number("replica.alter.log.dirs.io.max.bytes.per.second", TypeLong, "9223372036854775807", 0, maxInt64, "bytes/s", "what all such moves copy together; 0 halts them", func(c *Config) *int64 { return &c.Storage.MoveRate }),
	number("millrace.min.free.bytes", TypeLong, "104857600", 0, maxInt64, "bytes", "below so much free space in a data directory producers are told to try again later (KAFKA_STORAGE_ERROR, retriable), so that all else still works; 0: nobody looks", func(c *Config) *int64 { return &c.Storage.MinFree }),
	number("log.cleaner.threads", TypeInt, "1", 0, 1024, "count", "compacted logs cleaned side by side; 0: none is", func(c *Config) *int { return &c.Storage.Cleaner.Threads }),
	number("log.cleaner.dedupe.buffer.size", TypeLong, "134217728", 1<<20, maxInt64, "bytes", "memory for keys of all cleaning threads together, 24 bytes a key; taken only during a pass", func(c *Config) *int64 { return &c.Storage.Cleaner.Memory }),
	amount("log.cleaner.io.max.bytes.per.second", "1.7976931348623157E308", 1, "bytes/s", "what all cleaning threads read and write together", func(c *Config) *float64 { return &c.Storage.Cleaner.BytesPerSecond }),
	span("log.cleaner.backoff.ms", TypeLong, "15000", 0, maxInt64, time.Millisecond, "how often the cleaner looks when nothing is due", func(c *Config) *time.Duration { return &c.Storage.Cleaner.Backoff }),
	boolean("log.cleaner.enable", "true", "whether compacted logs are cleaned", func(c *Config) *bool { return &c.Storage.CleanerEnable }),
	number("millrace.scrub.bytes.per.second", TypeLong, "4194304", 0, maxInt64, "bytes/s", "what the scrub reads of closed segments to verify them, past the page cache; a pass over all logs a day at most; 0: no scrub", func(c *Config) *int64 { return &c.Storage.ScrubRate }),
	span("log.retention.check.interval.ms", TypeLong, "300000", 1, maxInt64, time.Millisecond, "how often retention looks", func(c *Config) *time.Duration { return &c.Storage.RetentionCheck }),
	span("log.flush.offset.checkpoint.interval.ms", TypeInt, "60000", 0, maxInt32, time.Millisecond, "how often recovery points are written", func(c *Config) *time.Duration { return &c.Storage.CheckpointEvery }),

	// Topics.
	number("num.partitions", TypeInt, "1", 1, 100000, "count", "partitions of a topic made without a number", func(c *Config) *int32 { return &c.Topics.Partitions }),
	number("default.replication.factor", TypeInt, "1", 1, math.MaxInt16, "count", "replicas of a topic made without a number", func(c *Config) *int16 { return &c.Topics.ReplicationFactor }),
	number[int]("max.request.partition.size.limit", TypeInt, "2000", 1, maxInt32, "count", "partitions in one page of DescribeTopicPartitions", nil),
	boolean("auto.create.topics.enable", "true", "whether Metadata may make the topics it is asked about", func(c *Config) *bool { return &c.Topics.AutoCreate }),
	boolean("delete.topic.enable", "true", "whether DeleteTopics is served", func(c *Config) *bool { return &c.Topics.DeleteEnabled }),

	// Defaults of topic settings: each stands behind the topic key of configs.md
	// and is read through Config.Get by the topic's own table.
	words("log.cleanup.policy", "delete", "default of cleanup.policy", "compact", "delete"),
	choice("compression.type", "producer", "default of compression.type", nil, "producer", "uncompressed", "gzip", "snappy", "lz4", "zstd"),
	number[int]("compression.gzip.level", TypeInt, "-1", -1, 9, "", "default of compression.gzip.level", nil),
	number[int]("compression.lz4.level", TypeInt, "9", 1, 17, "", "default of compression.lz4.level", nil),
	number[int]("compression.zstd.level", TypeInt, "3", -131072, 22, "", "default of compression.zstd.level", nil),
	number[int64]("log.cleaner.delete.retention.ms", TypeLong, "86400000", 0, maxInt64, "ms", "default of delete.retention.ms", nil),
	number[int64]("log.segment.delete.delay.ms", TypeLong, "60000", 0, maxInt64, "ms", "default of file.delete.delay.ms", nil),
	number[int64]("log.flush.interval.messages", TypeLong, "9223372036854775807", 1, maxInt64, "count", "default of flush.messages", nil),
	number[int64]("log.flush.interval.ms", TypeLong, "", 0, maxInt64, "ms", "default of flush.ms; falls back to log.flush.scheduler.interval.ms", nil),
	number[int64]("log.flush.scheduler.interval.ms", TypeLong, "9223372036854775807", 0, maxInt64, "ms", "default of log.flush.interval.ms", nil),
	number[int]("log.index.interval.bytes", TypeInt, "4096", 0, maxInt32, "bytes", "default of index.interval.bytes", nil),
	number[int]("log.index.size.max.bytes", TypeInt, "10485760", 4, maxInt32, "bytes", "default of segment.index.bytes", nil),
	number[int64]("log.cleaner.max.compaction.lag.ms", TypeLong, "9223372036854775807", 1, maxInt64, "ms", "default of max.compaction.lag.ms", nil),
	number[int64]("log.cleaner.min.compaction.lag.ms", TypeLong, "0", 0, maxInt64, "ms", "default of min.compaction.lag.ms", nil),
	fraction("log.cleaner.min.cleanable.ratio", "0.5", 0, 1, "default of min.cleanable.dirty.ratio"),
	number[int]("message.max.bytes", TypeInt, "1048588", 0, maxInt32, "bytes", "default of max.message.bytes: a whole batch as stored, header included", nil),
	number[int64]("log.message.timestamp.after.max.ms", TypeLong, "3600000", 0, maxInt64, "ms", "default of message.timestamp.after.max.ms", nil),
	number[int64]("log.message.timestamp.before.max.ms", TypeLong, "9223372036854775807", 0, maxInt64, "ms", "default of message.timestamp.before.max.ms", nil),
	choice("log.message.timestamp.type", "CreateTime", "default of message.timestamp.type", nil, "CreateTime", "LogAppendTime"),
	number[int]("min.insync.replicas", TypeInt, "1", 1, maxInt32, "count", "default of min.insync.replicas", nil),
	boolean("log.preallocate", "false", "default of preallocate", nil),
	number[int64]("log.retention.bytes", TypeLong, "-1", -1, maxInt64, "bytes", "default of retention.bytes; -1 no limit", nil),
	number[int64]("log.retention.ms", TypeLong, "", -1, maxInt64, "ms", "default of retention.ms; falls back to minutes, then hours", nil),
	number[int]("log.retention.minutes", TypeInt, "", -1, maxInt32, "minutes", "behind log.retention.ms", nil),
	number[int]("log.retention.hours", TypeInt, "168", -1, maxInt32, "hours", "behind log.retention.minutes", nil),
	number[int64]("log.segment.bytes", TypeInt, "1073741824", 1<<20, maxInt32, "bytes", "default of segment.bytes", nil),
	number[int64]("log.roll.ms", TypeLong, "", 1, maxInt64, "ms", "default of segment.ms; falls back to hours", nil),
	number[int]("log.roll.hours", TypeInt, "168", 1, maxInt32, "hours", "behind log.roll.ms", nil),
	number[int64]("log.roll.jitter.ms", TypeLong, "", 0, maxInt64, "ms", "default of segment.jitter.ms; falls back to hours", nil),
	number[int]("log.roll.jitter.hours", TypeInt, "0", 0, maxInt32, "hours", "behind log.roll.jitter.ms", nil),
	boolean("unclean.leader.election.enable", "false", "default of unclean.leader.election.enable", nil),
	choice("millrace.durability", "sync", "default of millrace.durability: sync means an ack was synced, page-cache is Kafka's meaning", nil, "sync", "page-cache"),
	choice("millrace.validate", "full", "default of millrace.validate: how much of each produced batch is checked", nil, "full", "header"),

	// Producers.
	number[int64]("producer.id.expiration.ms", TypeInt, "86400000", 1, maxInt32, "ms", "idempotent producers are forgotten after this", nil),
}

// configSynonyms lists, for settings that several keys name, the keys from
// strongest to weakest. Only keys that set a field of Config are here.
var configSynonyms = [][]string{
	{"node.id", "broker.id"},
	{"log.dirs", "log.dir"},
}

// defaultLogDir is Kafka's own default.
const defaultLogDir = "/tmp/kafka-logs"
