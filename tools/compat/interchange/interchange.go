// Package interchange holds the checks that a data directory goes from Apache Kafka to Millrace and back: the same records, offsets,
// groups and producers, and files that each takes for its own.
package interchange

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"millrace/tools/compat/harness"
)

// Checks are all of the package's.
func Checks() []harness.Check {
	const name = "its data directory served by Millrace and back: every codec, compacted, transactional, groups"
	var checks []harness.Check
	for _, k := range []kafka{
		{"Apache Kafka 4.3.1 broker", harness.Kafka43, "version=1", true, harness.StartKafka},
		{"Apache Kafka 3.9.2 broker", harness.Kafka39, "version=1", true, func(e *harness.Env, overrides ...string) (*harness.Kafka, error) {
			return harness.StartKafkaOf(e, harness.Kafka39, overrides...)
		}},
		{"Apache Kafka 3.9.2 broker with ZooKeeper", harness.Kafka39, "version=0", false, harness.StartKafkaZooKeeper},
	} {
		checks = append(checks, harness.Check{Client: k.name, Name: name, Limit: 6 * time.Minute, Run: k.roundTrip})
	}
	return append(checks, takeOverCheck)
}

// kafka is a version of Kafka whose directory goes there and back.
type kafka struct {
	name  string
	libs  harness.Libs
	meta  string // a line of meta.properties that must be there still
	dumps bool   // its DumpLogSegments looks at what Millrace wrote; one check a version does
	start func(e *harness.Env, overrides ...string) (*harness.Kafka, error)
}

// topics of the round trip; config as Kafka creates them.
var topics = map[string]map[string]*string{
	"plain":         {},
	"small":         {"segment.bytes": ptr("1048576")},
	"compacted":     {"cleanup.policy": ptr("compact"), "segment.ms": ptr("500"), "min.cleanable.dirty.ratio": ptr("0.01"), "delete.retention.ms": ptr("100")},
	"transactional": {},
	"append-time":   {"message.timestamp.type": ptr("LogAppendTime")},
}

func ptr(s string) *string { return &s }

func (v kafka) roundTrip(e *harness.Env) error {
	// The cleaner of the first broker must have been at work before its directory moves.
	k, err := v.start(e, "log.cleaner.backoff.ms=200", "log.initial.task.delay.ms=500")
	if err != nil {
		return err
	}
	defer k.Kill()
	if err := fill(k.Addr, 0); err != nil {
		return fmt.Errorf("filling Kafka: %w", err)
	}
	if err := cleaned(k.Addr, 1500); err != nil {
		return err
	}
	first, err := everything(k.Addr)
	if err != nil {
		return fmt.Errorf("reading Kafka: %w", err)
	}
	if err := k.Stop(); err != nil {
		return fmt.Errorf("stopping Kafka: %w", err)
	}

	data := filepath.Join(k.Dir, "data")
	m, err := harness.StartMillrace(e, "log.dirs="+data)
	if err != nil {
		return err
	}
	defer func() { m.Kill() }()
	served, err := everything(m.Addr)
	if err != nil {
		return fmt.Errorf("reading what Kafka wrote: %w", err)
	}
	if err := same("Kafka's, read from Millrace", first, served); err != nil {
		return err
	}
	if err := fill(m.Addr, 1); err != nil {
		return fmt.Errorf("filling Millrace: %w", err)
	}
	m.KeepAddress()
	m.Kill() // a crash, and then a clean stop: Kafka must take up either's files
	if err := m.Start(); err != nil {
		return err
	}
	second, err := everything(m.Addr)
	if err != nil {
		return err
	}
	for name, end := range second.ends {
		if name != "transactional" && end != served.ends[name]+1500 {
			return fmt.Errorf("%s ended at %d and ends at %d after 1500 more records", name, served.ends[name], end)
		}
	}
	if err := m.Stop(); err != nil {
		return err
	}
	meta, err := os.ReadFile(filepath.Join(data, "meta.properties"))
	if err != nil || !strings.Contains(string(meta), v.meta+"\n") {
		return fmt.Errorf("meta.properties has no line %s: %q, %v", v.meta, meta, err)
	}
	if v.dumps {
		if err := dumped(e, v.libs, data); err != nil {
			return err
		}
	}
	if err := k.Start(); err != nil {
		return fmt.Errorf("Kafka over Millrace's directory: %w", err)
	}
	back, err := everything(k.Addr)
	if err != nil {
		return fmt.Errorf("reading what Millrace wrote: %w", err)
	}
	if err := same("Millrace's, read from Kafka", second, back); err != nil {
		return err
	}
	if err := fill(k.Addr, 2); err != nil {
		return fmt.Errorf("filling Kafka again: %w", err)
	}
	if err := complaints(k); err != nil {
		return err
	}
	e.Note("%d records of Kafka there, %d of both back, in %d partitions", len(first.records), len(back.records), len(back.ends))
	return k.Stop()
}

// complaints are the errors that a node has logged, corrupt files above all.
func complaints(k *harness.Kafka) error {
	log, err := os.ReadFile(filepath.Join(k.Dir, "out.log"))
	if err != nil {
		return err
	}
	for _, line := range strings.Split(string(log), "\n") {
		slow := strings.Contains(line, "EventPerformanceMonitor") // of its own controller, on a busy machine
		if strings.Contains(line, " ERROR ") && !slow || strings.Contains(line, "orrupt") {
			return fmt.Errorf("Kafka says: %s", line)
		}
	}
	return nil
}

// fill writes one round of records to every topic; the topics are made in the first.
func fill(addr string, round int) error {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	for name, config := range topics {
		if round > 0 {
			break
		}
		cl, err := kgo.NewClient(kgo.SeedBrokers(addr))
		if err != nil {
			return err
		}
		_, err = kadm.NewClient(cl).CreateTopic(ctx, 1, 1, config, name)
		cl.Close()
		if err != nil {
			return fmt.Errorf("create %s: %w", name, err)
		}
	}
	for _, codec := range []kgo.CompressionCodec{kgo.NoCompression(), kgo.GzipCompression(), kgo.SnappyCompression(), kgo.Lz4Compression(), kgo.ZstdCompression()} {
		cl, err := kgo.NewClient(kgo.SeedBrokers(addr), kgo.ProducerBatchCompression(codec))
		if err != nil {
			return err
		}
		var all []*kgo.Record
		for i := range 300 {
			for name := range topics {
				if name != "transactional" {
					r := &kgo.Record{Topic: name, Key: fmt.Append(nil, "key-", i%40), Value: fmt.Appendf(nil, "round %d record %d %s", round, i, strings.Repeat("v", 200)), Headers: []kgo.RecordHeader{{Key: "h", Value: []byte{byte(i)}}}}
					if name == "compacted" && i == 299 {
						r.Value = nil
					}
					all = append(all, r)
				}
			}
		}
		err = cl.ProduceSync(ctx, all...).FirstErr()
		cl.Close()
		if err != nil {
			return err
		}
		time.Sleep(600 * time.Millisecond) // a segment of the compacted topic is this old at most
	}
	if round != 1 { // Millrace has no transactions yet
		if err := transact(ctx, addr); err != nil {
			return fmt.Errorf("transactions: %w", err)
		}
	}
	return commit(ctx, addr, int64(100*(round+1)))
}

// transact commits one transaction and aborts one.
func transact(ctx context.Context, addr string) error {
	cl, err := kgo.NewClient(kgo.SeedBrokers(addr), kgo.TransactionalID("txn"), kgo.DefaultProduceTopic("transactional"))
	if err != nil {
		return err
	}
	defer cl.Close()
	for _, end := range []kgo.TransactionEndTry{kgo.TryCommit, kgo.TryAbort} {
		if err := cl.BeginTransaction(); err != nil {
			return err
		}
		for i := range 20 {
			if err := cl.ProduceSync(ctx, kgo.StringRecord(fmt.Sprintf("%v %d", end, i))).FirstErr(); err != nil {
				return err
			}
		}
		if err := cl.EndTransaction(ctx, end); err != nil {
			return err
		}
	}
	return nil
}

func commit(ctx context.Context, addr string, at int64) error {
	cl, err := kgo.NewClient(kgo.SeedBrokers(addr))
	if err != nil {
		return err
	}
	defer cl.Close()
	offsets := kadm.Offsets{}
	for name := range topics {
		offsets.Add(kadm.Offset{Topic: name, Partition: 0, At: at, LeaderEpoch: -1, Metadata: fmt.Sprint("at ", at)})
	}
	return kadm.NewClient(cl).CommitAllOffsets(ctx, "group", offsets)
}

// cleaned waits until the cleaner has taken records out of the compacted topic, which had as many.
func cleaned(addr string, had int) error {
	return harness.Within(time.Minute, func() error {
		n := 0
		if err := harness.ReadAll(addr, "compacted", 0, func(*kgo.Record) error { n++; return nil }, kgo.KeepControlRecords()); err != nil {
			return err
		}
		if n >= had {
			return fmt.Errorf("all %d records are still there", n)
		}
		return nil
	})
}

// state is what a client can see of a broker.
type state struct {
	records []string         // sorted: every record with all it has
	ends    map[string]int64 // by partition
	commits map[string]string
	ids     map[string]string // of topics
}

func everything(addr string) (*state, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	cl, err := kgo.NewClient(kgo.SeedBrokers(addr))
	if err != nil {
		return nil, err
	}
	defer cl.Close()
	adm := kadm.NewClient(cl)
	s := &state{ends: map[string]int64{}, commits: map[string]string{}, ids: map[string]string{}}
	for name := range topics {
		var end kadm.ListedOffset
		err := harness.Within(30*time.Second, func() error { // a node that has just started has no leaders yet
			ends, err := adm.ListEndOffsets(ctx, name)
			if err != nil {
				return err
			}
			var ok bool
			if end, ok = ends.Lookup(name, 0); !ok || end.Err != nil {
				return fmt.Errorf("%s has no end: %v", name, end.Err)
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
		s.ends[name] = end.Offset
		err = harness.ReadAll(addr, name, 0, func(r *kgo.Record) error {
			s.records = append(s.records, fmt.Sprintf("%s %08d at %d: %q=%q (null %v) %v attrs %v epoch %d", name, r.Offset, r.Timestamp.UnixMilli(), r.Key, r.Value, r.Value == nil, r.Headers, r.Attrs.CompressionType(), r.LeaderEpoch))
			return nil
		}, kgo.KeepControlRecords())
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	details, err := adm.ListTopics(ctx, slices.Collect(maps.Keys(topics))...)
	if err != nil {
		return nil, err
	}
	for name, d := range details {
		s.ids[name] = d.ID.String()
	}
	slices.Sort(s.records)
	err = harness.Within(30*time.Second, func() error {
		commits, err := adm.FetchOffsets(ctx, "group")
		if err != nil {
			return err
		}
		commits.Each(func(o kadm.OffsetResponse) { s.commits[o.Topic] = fmt.Sprint(o.At, " ", o.Metadata) })
		if len(s.commits) != len(topics) {
			return fmt.Errorf("%d commits of %d", len(s.commits), len(topics))
		}
		return nil
	})
	return s, err
}

// same says what first differs.
func same(what string, want, got *state) error {
	for name, end := range want.ends {
		if got.ends[name] != end {
			return fmt.Errorf("%s: %s ends at %d, was %d", what, name, got.ends[name], end)
		}
		if got.ids[name] != want.ids[name] {
			return fmt.Errorf("%s: the id of %s is %s, was %s", what, name, got.ids[name], want.ids[name])
		}
		if got.commits[name] != want.commits[name] {
			return fmt.Errorf("%s: commit of %s is %q, was %q", what, name, got.commits[name], want.commits[name])
		}
	}
	for i := range want.records {
		if i >= len(got.records) || got.records[i] != want.records[i] {
			g := "nothing"
			if i < len(got.records) {
				g = got.records[i]
			}
			return fmt.Errorf("%s: record %d is %.200s, was %.200s", what, i, g, want.records[i])
		}
	}
	if len(got.records) != len(want.records) {
		return fmt.Errorf("%s: %d records, were %d", what, len(got.records), len(want.records))
	}
	return nil
}

// dumped has Kafka's DumpLogSegments look at every segment, index and snapshot of the topics and of the groups that are not empty.
func dumped(e *harness.Env, libs harness.Libs, data string) error {
	var logs, indexes []string
	for _, pattern := range []string{"*-0/*.log", "__consumer_offsets-*/*.log"} {
		found, err := filepath.Glob(filepath.Join(data, pattern))
		if err != nil {
			return err
		}
		for _, f := range found {
			if st, err := os.Stat(f); err == nil && st.Size() > 0 && !strings.Contains(f, "__cluster_metadata") && !slices.Contains(logs, f) {
				logs = append(logs, f)
				for _, kind := range []string{".index", ".timeindex"} {
					indexes = append(indexes, strings.TrimSuffix(f, ".log")+kind)
				}
			}
		}
	}
	snapshots, err := filepath.Glob(filepath.Join(data, "*-0", "*.snapshot"))
	if err != nil {
		return err
	}
	for _, run := range [][]string{
		slices.Concat([]string{"--deep-iteration"}, logs, snapshots), append([]string{"--verify-index-only"}, indexes...), append([]string{"--index-sanity-check"}, indexes...),
	} {
		cmd, err := e.KafkaTool(libs, "dump-log", run[0], "--files", strings.Join(run[1:], ","))
		if err != nil {
			return err
		}
		both, err := cmd.CombinedOutput()
		if err != nil {
			return fmt.Errorf("dump-log %s: %w: %s", run[0], err, harness.LastLine(both))
		}
		for _, line := range strings.Split(string(both), "\n") {
			for _, bad := range []string{"isvalid: false", "invalid bytes", "ismatch", "out of order", "xception"} {
				if strings.Contains(line, bad) {
					return fmt.Errorf("dump-log %s: %s", run[0], line)
				}
			}
		}
	}
	return nil
}
