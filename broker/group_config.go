package broker

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"millrace/coord/group"
	"millrace/coord/group/assign"
)

// GroupConfig is what holds for consumer groups and for the topic that they are
// kept in.
type GroupConfig struct {
	SessionMin, SessionMax time.Duration // what members may ask for
	InitialDelay           time.Duration // a new group waits this long for more members
	MaxSize                int           // members of one group
	MaxMetadata            int           // bytes of the text that goes with a commit
	Retention              time.Duration // of commits of groups that are not in use
	RetentionCheck         time.Duration

	Protocols []string // that groups may speak
	Consumer  ConsumerGroupConfig

	TopicPartitions int32 // of __consumer_offsets
	TopicFactor     int16
	TopicSegment    int   // bytes
	TopicCodec      int16 // as Kafka numbers them
}

// ConsumerGroupConfig is what holds for groups of the next-generation protocol.
type ConsumerGroupConfig struct {
	Session   time.Duration
	Heartbeat time.Duration // what members are told
	Interval  time.Duration // at least between two assignments of a group
	MaxSize   int
	Assignors []string // the first is for members that name none
	Migration string   // which groups with members may change their protocol
}

// What group.consumer.migration.policy may say.
const (
	migrateBoth = "bidirectional"
	migrateUp   = "upgrade"
	migrateDown = "downgrade"
	migrateNot  = "disabled"
)

// groupKeys are the rows of groups in the table of keys.
var groupKeys = []ConfigKey{
	span("group.min.session.timeout.ms", TypeInt, "6000", 0, maxInt32, time.Millisecond, "shortest session that a member may ask for", func(c *Config) *time.Duration { return &c.Groups.SessionMin }),
	span("group.max.session.timeout.ms", TypeInt, "1800000", 0, maxInt32, time.Millisecond, "longest session that a member may ask for", func(c *Config) *time.Duration { return &c.Groups.SessionMax }),
	span("group.initial.rebalance.delay.ms", TypeInt, "3000", 0, maxInt32, time.Millisecond, "an empty group waits this long for more members before it begins", func(c *Config) *time.Duration { return &c.Groups.InitialDelay }),
	number("group.max.size", TypeInt, "2147483647", 1, maxInt32, "count", "members of one group", func(c *Config) *int { return &c.Groups.MaxSize }),
	lists("group.coordinator.rebalance.protocols", "classic,consumer", "protocols that groups may speak; classic is always on, share and streams are accepted and not built yet", func(c *Config) *[]string { return &c.Groups.Protocols }, "classic", "consumer", "share", "streams"),
	span("group.consumer.session.timeout.ms", TypeInt, "45000", 1, maxInt32, time.Millisecond, "next-generation protocol: a member that is silent for this long is removed", func(c *Config) *time.Duration { return &c.Groups.Consumer.Session }),
	span("group.consumer.heartbeat.interval.ms", TypeInt, "5000", 1, maxInt32, time.Millisecond, "next-generation protocol: how often members are told to send a heartbeat", func(c *Config) *time.Duration { return &c.Groups.Consumer.Heartbeat }),
	span("group.consumer.assignment.interval.ms", TypeInt, "1000", 0, 15_000, time.Millisecond, "next-generation protocol: least time between two assignments of a group", func(c *Config) *time.Duration { return &c.Groups.Consumer.Interval }),
	lists("group.consumer.assignors", "uniform,range", "next-generation protocol: assignors that members may choose; the first is for those who choose none", func(c *Config) *[]string { return &c.Groups.Consumer.Assignors }, assign.NameUniform, assign.NameRange),
	number("group.consumer.max.size", TypeInt, "2147483647", 1, maxInt32, "count", "next-generation protocol: members of one group", func(c *Config) *int { return &c.Groups.Consumer.MaxSize }),
	anyCase(choice("group.consumer.migration.policy", migrateBoth, "which groups with members may change their protocol: upgrade, from classic to next-generation when the first such member joins; downgrade, back when the last of them is gone; disabled also keeps classic members out of next-generation groups; groups without members always may", func(c *Config) *string { return &c.Groups.Consumer.Migration }, migrateBoth, migrateUp, migrateDown, migrateNot)),
	number("offset.metadata.max.bytes", TypeInt, "4096", 0, maxInt32, "bytes", "longest text that may go with a commit", func(c *Config) *int { return &c.Groups.MaxMetadata }),
	span("offsets.retention.minutes", TypeInt, "10080", 1, maxInt32, time.Minute, "commits are dropped this long after their group became empty, or after the commit where there are no members", func(c *Config) *time.Duration { return &c.Groups.Retention }),
	span("offsets.retention.check.interval.ms", TypeLong, "600000", 1, maxInt64, time.Millisecond, "how often commits are looked at for that", func(c *Config) *time.Duration { return &c.Groups.RetentionCheck }),
	number("offsets.topic.num.partitions", TypeInt, "50", 1, 10_000, "count", "partitions of __consumer_offsets; fixed when it is made, on first use", func(c *Config) *int32 { return &c.Groups.TopicPartitions }),
	number("offsets.topic.replication.factor", TypeShort, "3", 1, math.MaxInt16, "count", "replicas of __consumer_offsets; the default is lowered to the number of live brokers, a given value is taken at its word", func(c *Config) *int16 { return &c.Groups.TopicFactor }),
	number("offsets.topic.segment.bytes", TypeInt, "104857600", 1<<20, maxInt32, "bytes", "segment.bytes of __consumer_offsets", func(c *Config) *int { return &c.Groups.TopicSegment }),
	number("offsets.topic.compression.codec", TypeInt, "0", 0, 4, "", "how batches of __consumer_offsets are compressed: 0 none, 1 gzip, 2 snappy, 3 lz4, 4 zstd", func(c *Config) *int16 { return &c.Groups.TopicCodec }),
}

// anyCase lets the words of a row be written in any case.
func anyCase(row ConfigKey) ConfigKey {
	set := row.set
	row.set = func(c *Config, v string) error { return set(c, strings.ToLower(v)) }
	return row
}

// lists is a row for a list of at least one of a few words, each once.
func lists(name, def, text string, field func(*Config) *[]string, allowed ...string) ConfigKey {
	row := words(name, def, text, allowed...)
	check := row.set
	row.set = func(c *Config, v string) error {
		if err := check(c, v); err != nil {
			return err
		}
		list := splitList(v)
		if len(list) == 0 {
			return fmt.Errorf("must be %s, and not empty", row.Range)
		}
		*field(c) = list
		return nil
	}
	return row
}

func (b *Broker) groupSettings() group.Settings {
	c := &b.config.Groups
	return group.Settings{
		InitialDelay: c.InitialDelay,
		SessionMin:   c.SessionMin,
		SessionMax:   c.SessionMax,
		MaxSize:      c.MaxSize,
		MaxMetadata:  c.MaxMetadata,
		Retention:    c.Retention,
		Migration: group.Migration{
			Upgrade:   c.Consumer.Migration == migrateBoth || c.Consumer.Migration == migrateUp,
			Downgrade: c.Consumer.Migration == migrateBoth || c.Consumer.Migration == migrateDown,
		},
		Consumer: group.ConsumerSettings{
			Enabled:   slices.Contains(c.Protocols, "consumer"),
			Session:   c.Consumer.Session,
			Heartbeat: c.Consumer.Heartbeat,
			Interval:  func() time.Duration { return b.live.Load().Groups.Consumer.Interval },
			MaxSize:   c.Consumer.MaxSize,
			Assignors: c.Consumer.Assignors,
			Of:        b.groupTimes,
		},
	}
}
