package frameworks

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"millrace/tools/compat/harness"
)

const mirrorRecords = 2000

func mirrorChecks() []harness.Check {
	return []harness.Check{{Client: "MirrorMaker 2 4.3.1", Name: "Apache Kafka 4.3.1 to Millrace and Millrace to Kafka: records, partitions, topic configs, group offsets", Limit: 12 * time.Minute, Run: mirror}}
}

// side is one direction: a topic of one cluster that must appear as FROM.TOPIC on the other.
type side struct {
	from, topic    string
	source, target string // addresses
	partitions     int32
	configs        map[string]string
}

func (s side) mirrored() string { return s.from + "." + s.topic }
func (s side) group() string    { return s.topic + "-readers" }

func mirror(e *harness.Env) error {
	m, err := harness.StartMillrace(e)
	if err != nil {
		return err
	}
	defer m.Kill()
	k, err := harness.StartKafka(e)
	if err != nil {
		return err
	}
	defer k.Kill()
	sides := []side{
		{"kafka", "orders", k.Addr, m.Addr, 3, map[string]string{"retention.ms": "9876543210000", "max.message.bytes": "2000000"}},
		{"millrace", "invoices", m.Addr, k.Addr, 2, map[string]string{"delete.retention.ms": "987654321", "cleanup.policy": "compact"}},
	}
	for _, s := range sides {
		if err := s.fill(e); err != nil {
			return fmt.Errorf("%s: %w", s.from, err)
		}
	}
	libs, err := harness.NeedJava(e.Cache, harness.Kafka43)
	if err != nil {
		return err
	}
	properties := filepath.Join(e.Dir, "mm2.properties")
	if err := os.WriteFile(properties, []byte(mirrorProperties(sides)), 0o644); err != nil {
		return err
	}
	mm, err := e.Java(libs, "384M", nil, "org.apache.kafka.connect.mirror.MirrorMaker", properties)
	if err != nil {
		return err
	}
	if err := background(e, mm, "mm2"); err != nil {
		return err
	}
	for _, s := range sides {
		if err := s.arrived(); err != nil {
			return fmt.Errorf("%s to the other: %w", s.from, err)
		}
	}
	if err := harness.StopJava(mm, step); err != nil {
		return err
	}
	if err := noteACLs(e); err != nil {
		return err
	}
	if err := k.Stop(); err != nil {
		return err
	}
	return m.Stop()
}

// mirrorProperties are Kafka's defaults but for what one node per cluster and a short run need.
func mirrorProperties(sides []side) string {
	var b strings.Builder
	b.WriteString("clusters = kafka, millrace\n")
	for i, s := range sides {
		flow := s.from + "->" + sides[1-i].from
		fmt.Fprintf(&b, "%s.bootstrap.servers = %s\n%[3]s.enabled = true\n%[3]s.topics = %[4]s\n%[3]s.sync.group.offsets.enabled = true\n%[3]s.sync.group.offsets.interval.seconds = 1\n"+
			"%[3]s.emit.checkpoints.interval.seconds = 1\n%[3]s.refresh.topics.interval.seconds = 2\n%[3]s.refresh.groups.interval.seconds = 2\n%[3]s.sync.topic.configs.interval.seconds = 2\n", s.from, s.source, flow, s.topic)
	}
	b.WriteString("offset.lag.max = 0\n" + serviceLoad + "\n")
	for _, k := range []string{"", "offset-syncs.topic.", "checkpoints.topic.", "heartbeats.topic.", "config.storage.", "offset.storage.", "status.storage."} {
		b.WriteString(k + "replication.factor = 1\n")
	}
	return b.String()
}

// fill makes the source's topic with records and a group that has read all of them.
func (s side) fill(e *harness.Env) error {
	lines, err := textLines(e, mirrorRecords, anyText)
	if err != nil {
		return err
	}
	configs := map[string]*string{}
	for k, v := range s.configs {
		configs[k] = &v
	}
	err = withClient(s.source, func(ctx context.Context, cl *kgo.Client, adm *kadm.Client) error {
		if _, err := adm.CreateTopic(ctx, s.partitions, 1, configs, s.topic); err != nil {
			return err
		}
		var records []*kgo.Record
		for i, l := range lines {
			r := &kgo.Record{Topic: s.topic, Partition: int32(i) % s.partitions, Key: fmt.Appendf(nil, "%s-%d", s.topic, i), Value: []byte(l), Timestamp: time.UnixMilli(1_790_000_000_000 + int64(i))}
			switch i % 10 {
			case 3:
				r.Value = nil
			case 5:
				r.Headers = []kgo.RecordHeader{{Key: "line", Value: fmt.Append(nil, i)}, {Key: "null"}}
			case 7:
				r.Value = []byte{}
			}
			records = append(records, r)
		}
		return cl.ProduceSync(ctx, records...).FirstErr()
	}, kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		return err
	}
	return withClient(s.source, func(ctx context.Context, cl *kgo.Client, _ *kadm.Client) error {
		for n := 0; n < mirrorRecords; {
			fs := cl.PollFetches(ctx)
			if err := fs.Err0(); err != nil {
				return err
			}
			n += fs.NumRecords()
		}
		return cl.CommitUncommittedOffsets(ctx)
	}, kgo.ConsumerGroup(s.group()), kgo.ConsumeTopics(s.topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.DisableAutoCommit())
}

// arrived waits for the mirrored topic and compares all of it; then more partitions must follow.
func (s side) arrived() error {
	want, err := s.records(s.source, s.topic)
	if err != nil {
		return err
	}
	if err := harness.Within(step, func() error {
		got, err := s.records(s.target, s.mirrored())
		if err != nil {
			return err
		}
		return sameRecords(want, got)
	}); err != nil {
		return err
	}
	if err := harness.Within(step, func() error { return hasConfigs(s.target, s.mirrored(), s.configs) }); err != nil {
		return err
	}
	if err := harness.Within(step, func() error { return committedToTheEnd(s.target, s.group(), s.mirrored()) }); err != nil {
		return err
	}
	if err := withClient(s.source, func(ctx context.Context, _ *kgo.Client, adm *kadm.Client) error {
		r, err := adm.CreatePartitions(ctx, 2, s.topic)
		return errors.Join(err, r.Error())
	}); err != nil {
		return err
	}
	return harness.Within(step, func() error { return hasPartitions(s.target, s.mirrored(), int(s.partitions)+2) })
}

// records are a topic's by partition; the topic must have the side's partitions, no more.
func (s side) records(addr, topic string) ([][]*kgo.Record, error) {
	if err := hasPartitions(addr, topic, int(s.partitions)); err != nil {
		return nil, err
	}
	all := make([][]*kgo.Record, s.partitions)
	for p := range all {
		if err := harness.ReadAll(addr, topic, int32(p), func(r *kgo.Record) error { all[p] = append(all[p], r); return nil }); err != nil {
			return nil, err
		}
	}
	return all, nil
}

func hasPartitions(addr, topic string, want int) error {
	return withClient(addr, func(ctx context.Context, _ *kgo.Client, adm *kadm.Client) error {
		topics, err := adm.ListTopics(ctx, topic)
		if err != nil {
			return err
		}
		if got := len(topics[topic].Partitions); got != want {
			return fmt.Errorf("topic %s has %d partitions, want %d (%v)", topic, got, want, topics[topic].Err)
		}
		return nil
	})
}

// sameRecords says the first difference in number, key, value, headers or timestamp.
func sameRecords(want, got [][]*kgo.Record) error {
	for p := range want {
		if len(want[p]) != len(got[p]) {
			return fmt.Errorf("partition %d has %d records, want %d", p, len(got[p]), len(want[p]))
		}
		for i, w := range want[p] {
			g := got[p][i]
			same := sameBytes(w.Key, g.Key) && sameBytes(w.Value, g.Value) && w.Timestamp.Equal(g.Timestamp) && len(w.Headers) == len(g.Headers)
			for h := 0; same && h < len(w.Headers); h++ {
				same = w.Headers[h].Key == g.Headers[h].Key && sameBytes(w.Headers[h].Value, g.Headers[h].Value)
			}
			if !same {
				return fmt.Errorf("partition %d, record %d is %q=%.60q %v at %v, want %q=%.60q %v at %v", p, i, g.Key, g.Value, g.Headers, g.Timestamp, w.Key, w.Value, w.Headers, w.Timestamp)
			}
		}
	}
	return nil
}

// sameBytes tells null from empty.
func sameBytes(a, b []byte) bool { return bytes.Equal(a, b) && (a == nil) == (b == nil) }

// noteACLs says what a user meets with MirrorMaker's default of copying ACLs too.
func noteACLs(e *harness.Env) error {
	log, err := os.ReadFile(filepath.Join(e.Dir, "mm2.log"))
	if err != nil {
		return err
	}
	const text = "The node does not support DESCRIBE_ACLS"
	if strings.Contains(string(log), text) {
		e.Note("runs with default settings; since ACLs are not built it logs %q every ten minutes, unless sync.topic.acls.enabled=false", text)
	}
	return nil
}
