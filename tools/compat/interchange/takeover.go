package interchange

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"millrace/tools/compat/harness"
)

// takeOverCheck is the one that moves a node whole: its data directory, its ZooKeeper, its id and its address.
var takeOverCheck = harness.Check{
	Client: "Apache Kafka 3.9.2 broker with ZooKeeper", Name: "the node taken over by Millrace with its zookeeper.connect (a chroot), data directory and id, and back",
	BuiltIn: true, Limit: 8 * time.Minute, Run: takeOver,
}

// takeOver: Kafka makes everything and stops; Millrace serves it, goes on with it, is killed and stopped; Kafka serves it again.
func takeOver(e *harness.Env) error {
	k, err := harness.StartKafkaBelow(e, "/kafka/one", "log.cleaner.backoff.ms=200", "log.initial.task.delay.ms=500", "offsets.topic.num.partitions=4", "transaction.state.log.num.partitions=4")
	if err != nil {
		return err
	}
	defer k.Kill()
	if err := furnish(k); err != nil {
		return fmt.Errorf("filling Kafka: %w", err)
	}
	theirs, err := heldBy(k.Addr)
	if err != nil {
		return fmt.Errorf("reading Kafka: %w", err)
	}
	if err := k.Stop(); err != nil {
		return fmt.Errorf("stopping Kafka: %w", err)
	}

	m, err := harness.StartMillrace(e, "zookeeper.connect="+k.Connect, "zookeeper.session.timeout.ms=6000", "log.dirs="+filepath.Join(k.Dir, "data"), "broker.id=1", "listeners=PLAINTEXT://"+k.Addr)
	if err != nil {
		return fmt.Errorf("Millrace over Kafka's ZooKeeper and directory: %w", err)
	}
	defer func() { m.Kill() }()
	served, err := heldBy(m.Addr)
	if err != nil {
		return fmt.Errorf("reading what Kafka wrote: %w", err)
	}
	if err := unchanged("Kafka's, from Millrace", theirs, served); err != nil {
		return err
	}
	if err := goOn(m.Addr); err != nil {
		return fmt.Errorf("going on with Millrace: %w", err)
	}
	m.Kill() // a crash, after which its session has to end first; then a clean stop
	if err := m.Start(); err != nil {
		return err
	}
	ours, err := heldBy(m.Addr)
	if err != nil {
		return err
	}
	if got, want := ours.topics["grown"], served.topics["grown"]; got.id != want.id || got.partitions != 4 || ours.topics["ours"].partitions != 3 || ours.topics["doomed"].partitions != 0 {
		return fmt.Errorf("after the changes in Millrace its topics are %v", ours.topics)
	}
	if err := m.Stop(); err != nil {
		return err
	}

	if err := k.Start(); err != nil {
		return fmt.Errorf("Kafka again: %w", err)
	}
	back, err := heldBy(k.Addr)
	if err != nil {
		return fmt.Errorf("reading what Millrace wrote: %w", err)
	}
	if err := unchanged("Millrace's, from Kafka", ours, back); err != nil {
		return err
	}
	// Millrace has no transactions yet and hides no aborted records; what it keeps of them is Kafka's again.
	if !slices.Equal(theirs.committed, back.committed) {
		return fmt.Errorf("of transactions %q is committed, was %q", back.committed, theirs.committed)
	}
	if err := fill(k.Addr, 2); err != nil {
		return fmt.Errorf("filling Kafka again: %w", err)
	}
	if _, err := readOn(k.Addr, 100); err != nil {
		return err
	}
	if err := errors.Join(complaints(k), orphans(filepath.Join(k.Dir, "data"))); err != nil {
		return err
	}
	e.Note("%d records of Kafka there, %d of both back; %d topics with ids, settings and epochs, 2 groups, quotas", len(theirs.records), len(back.records), len(back.topics))
	return k.Stop()
}

// furnish makes what is to be found again, with a restart between, so that leaders have had more than one epoch.
func furnish(k *harness.Kafka) error {
	if err := fill(k.Addr, 0); err != nil {
		return err
	}
	if err := cleaned(k.Addr, 1500); err != nil {
		return err
	}
	if err := k.Stop(); err != nil {
		return err
	}
	if err := k.Start(); err != nil {
		return err
	}
	err := within(k.Addr, func(ctx context.Context, adm *kadm.Client) error {
		_, err := adm.CreateTopic(ctx, 2, 1, map[string]*string{"retention.ms": ptr("7200000")}, "doomed")
		if err == nil {
			_, err = adm.CreateTopic(ctx, 2, 1, map[string]*string{"max.message.bytes": ptr("2000000")}, "grown")
		}
		if err != nil {
			return err
		}
		// The cleaners of both sides leave what is compared as it is.
		if err := errors.Join(setting(ctx, adm, "plain", "retention.ms", "7200000"), setting(ctx, adm, "compacted", "min.compaction.lag.ms", "604800000")); err != nil {
			return err
		}
		user := "someone"
		changed, err := adm.AlterClientQuotas(ctx, []kadm.AlterClientQuotaEntry{{Entity: kadm.ClientQuotaEntity{{Type: "user", Name: &user}}, Ops: []kadm.AlterClientQuotaOp{{Key: "producer_byte_rate", Value: 5e6}}}})
		if err != nil {
			return err
		}
		return changed[0].Err
	})
	if err != nil {
		return err
	}
	if err := write(k.Addr, "plain", 10); err != nil {
		return err
	}
	if err := write(k.Addr, "grown", 20); err != nil {
		return err
	}
	_, err = readOn(k.Addr, 700)
	return err
}

// goOn does to a node all that a broker is there for, and checks that the group goes on where it was.
func goOn(addr string) error {
	next, err := readOn(addr, 300)
	if err != nil {
		return err
	}
	if next != 700 {
		return fmt.Errorf("the group goes on at %d, it had read to 700", next)
	}
	if err := fill(addr, 1); err != nil {
		return err
	}
	err = within(addr, func(ctx context.Context, adm *kadm.Client) error {
		if _, err := adm.CreateTopic(ctx, 3, 1, map[string]*string{"cleanup.policy": ptr("compact,delete")}, "ours"); err != nil {
			return err
		}
		deleted, err := adm.DeleteTopic(ctx, "doomed")
		if err = errors.Join(err, deleted.Err); err != nil {
			return err
		}
		more, err := adm.UpdatePartitions(ctx, 4, "grown")
		if err = errors.Join(err, more.Error()); err != nil {
			return err
		}
		return setting(ctx, adm, "plain", "retention.ms", "3600000")
	})
	if err != nil {
		return err
	}
	return errors.Join(write(addr, "ours", 30), write(addr, "grown", 40))
}

// within calls act with a connected client.
func within(addr string, act func(context.Context, *kadm.Client) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	cl, err := kgo.NewClient(kgo.SeedBrokers(addr))
	if err != nil {
		return err
	}
	defer cl.Close()
	return act(ctx, kadm.NewClient(cl))
}

func setting(ctx context.Context, adm *kadm.Client, topic, key, value string) error {
	changed, err := adm.AlterTopicConfigs(ctx, []kadm.AlterConfig{{Op: kadm.SetConfig, Name: key, Value: &value}}, topic)
	if err != nil {
		return err
	}
	return changed[0].Err
}

// write puts n records into a topic, by key.
func write(addr, topic string, n int) error {
	cl, err := kgo.NewClient(kgo.SeedBrokers(addr), kgo.DefaultProduceTopic(topic))
	if err != nil {
		return err
	}
	defer cl.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	var all []*kgo.Record
	for i := range n {
		all = append(all, kgo.KeyStringRecord(fmt.Sprint("key-", i), fmt.Sprint(topic, " ", i)))
	}
	return cl.ProduceSync(ctx, all...).FirstErr()
}

// readOn has a member of the group "readers" read n more records of "plain" and commit; first is where it began.
func readOn(addr string, n int) (first int64, err error) {
	cl, err := kgo.NewClient(kgo.SeedBrokers(addr), kgo.ConsumerGroup("readers"), kgo.ConsumeTopics("plain"), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.DisableAutoCommit())
	if err != nil {
		return 0, err
	}
	defer cl.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	first = -1
	for had := 0; had < n; {
		fs := cl.PollRecords(ctx, n-had)
		if err := fs.Err(); err != nil {
			return 0, fmt.Errorf("the group readers: %w", err)
		}
		records := fs.Records()
		if first < 0 && len(records) > 0 {
			first = records[0].Offset
		}
		had += len(records)
		if err := cl.CommitRecords(ctx, records...); err != nil {
			return 0, fmt.Errorf("the group readers: %w", err)
		}
	}
	return first, nil
}

// held is what a node has besides records and ends.
type held struct {
	*state
	topics    map[string]topic
	committed []string // the transactional records of a reader that waits for commits
	readers   int64    // where the group is
	quotas    string
}

// topic is what is told of one.
type topic struct {
	id         string
	partitions int
	settings   string           // its own, sorted
	epochs     map[int32]int32  // of leaders, by partition
	ends       map[string]int64 // by partition and epoch, as in 0@2
}

// heldBy asks a node for everything. One that has just started may not know all its topics yet.
func heldBy(addr string) (h *held, err error) {
	h = &held{topics: map[string]topic{}}
	if h.state, err = everything(addr); err != nil {
		return nil, err
	}
	// Millrace takes out a tombstone as soon as its time is over, Kafka when it cleans the log the next time.
	h.records = slices.DeleteFunc(h.records, func(r string) bool {
		return strings.HasPrefix(r, "compacted ") && strings.Contains(r, "(null true)")
	})
	err = harness.ReadAll(addr, "transactional", 0, func(r *kgo.Record) error {
		h.committed = append(h.committed, fmt.Sprintf("%d %s", r.Offset, r.Value))
		return nil
	}, kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.KeepControlRecords())
	if err != nil {
		return nil, err
	}
	return h, within(addr, func(ctx context.Context, adm *kadm.Client) error {
		err := harness.Within(time.Minute, func() error {
			list, err := adm.ListTopicsWithInternal(ctx)
			if err != nil {
				return err
			}
			if err := list.Error(); err != nil {
				return err
			}
			for _, t := range list {
				if h.topics[t.Topic], err = described(ctx, adm, t); err != nil {
					return fmt.Errorf("%s: %w", t.Topic, err)
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		quotas, err := adm.DescribeClientQuotas(ctx, false, nil)
		if err != nil {
			return err
		}
		for _, q := range quotas {
			h.quotas += fmt.Sprintln(q.Entity, q.Values)
		}
		commits, err := adm.FetchOffsets(ctx, "readers")
		if err != nil {
			return err
		}
		at, _ := commits.Lookup("plain", 0)
		h.readers = at.At
		return at.Err
	})
}

func described(ctx context.Context, adm *kadm.Client, d kadm.TopicDetail) (topic, error) {
	t := topic{id: d.ID.String(), partitions: len(d.Partitions), epochs: map[int32]int32{}, ends: map[string]int64{}}
	configs, err := adm.DescribeTopicConfigs(ctx, d.Topic)
	if err != nil {
		return t, err
	}
	var own []string
	for _, c := range configs[0].Configs {
		if c.Source == kmsg.ConfigSourceDynamicTopicConfig {
			own = append(own, c.Key+"="+c.MaybeValue())
		}
	}
	slices.Sort(own)
	t.settings = strings.Join(own, " ")
	for _, p := range d.Partitions.Sorted() {
		if p.Err != nil || p.Leader < 0 {
			return t, fmt.Errorf("partition %d: leader %d, %w", p.Partition, p.Leader, errors.Join(p.Err, kerr.LeaderNotAvailable))
		}
		t.epochs[p.Partition] = p.LeaderEpoch
		for epoch := range p.LeaderEpoch + 1 {
			var r kadm.OffsetForLeaderEpochRequest
			r.Add(d.Topic, p.Partition, epoch)
			answers, err := adm.OffsetForLeaderEpoch(ctx, r)
			if err != nil {
				return t, err
			}
			a := answers[d.Topic][p.Partition]
			if a.Err != nil {
				return t, a.Err
			}
			t.ends[fmt.Sprint(p.Partition, "@", epoch)] = a.EndOffset
		}
	}
	return t, nil
}

// unchanged says what first differs between a node and the other that took it over.
func unchanged(what string, want, got *held) error {
	if err := same(what, want.state, got.state); err != nil {
		return err
	}
	if want.readers != got.readers || want.quotas != got.quotas {
		return fmt.Errorf("%s: the group readers is at %d, was at %d; quotas are %s, were %s", what, got.readers, want.readers, got.quotas, want.quotas)
	}
	if a, b := slices.Sorted(maps.Keys(want.topics)), slices.Sorted(maps.Keys(got.topics)); !slices.Equal(a, b) {
		return fmt.Errorf("%s: topics are %v, were %v", what, b, a)
	}
	for name, w := range want.topics {
		g := got.topics[name]
		if g.id != w.id || g.partitions != w.partitions || g.settings != w.settings {
			return fmt.Errorf("%s: %s is %s with %d partitions and %s, was %s with %d and %s", what, name, g.id, g.partitions, g.settings, w.id, w.partitions, w.settings)
		}
		for p, epoch := range w.epochs {
			if g.epochs[p] < epoch {
				return fmt.Errorf("%s: the leader of %s-%d has epoch %d, had %d", what, name, p, g.epochs[p], epoch)
			}
		}
		for at, end := range w.ends {
			if g.ends[at] != end && !strings.HasPrefix(name, "__") { // the brokers' own grow by themselves
				return fmt.Errorf("%s: partition and epoch %s of %s ends at %d, did at %d", what, at, name, g.ends[at], end)
			}
		}
	}
	return nil
}

// orphans are folders that belong to no partition.
func orphans(data string) error {
	entries, err := os.ReadDir(data)
	if err != nil {
		return err
	}
	for _, d := range entries {
		if name := d.Name(); strings.HasSuffix(name, "-stray") || strings.HasPrefix(name, "doomed-") && !strings.HasSuffix(name, "-delete") {
			return fmt.Errorf("the directory has a folder %s", name)
		}
	}
	return nil
}
