package broker

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"millrace/engine/batch"
	"millrace/wire"
)

// keyed is a batch of one record with a key.
func keyedRecord(t testing.TB, key, value string) []byte {
	b := batch.NewBuilder(batch.None, batch.DefaultLevel)
	if err := b.Add(batch.Record{Timestamp: time.Now().UnixMilli(), Key: []byte(key), Value: []byte(value)}); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// readToEnd reads a partition with franz-go until its position is the end, and returns the offsets of its records.
func (b *testBroker) readToEnd(topic string) (offsets []int64) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	cl, err := kgo.NewClient(kgo.SeedBrokers(b.Addr("PLAINTEXT")), kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: {0: kgo.NewOffset().AtStart()}}))
	if err != nil {
		b.t.Fatal(err)
	}
	defer cl.Close()
	for end := b.end(topic, 0); len(offsets) == 0 || offsets[len(offsets)-1] < end-1; {
		fs := cl.PollFetches(ctx)
		if err := fs.Err(); err != nil {
			b.t.Fatalf("read %d records up to %v: %v", len(offsets), offsets, err)
		}
		fs.EachRecord(func(r *kgo.Record) { offsets = append(offsets, r.Offset) })
	}
	return offsets
}

// F022: compaction took the last batch of a segment, and who read to the end never got there.
// Claim: after compaction a consumer's position reaches the end; a fetch at any offset brings a batch that reaches at least there, one at end-1 the last;
// and a topic whose policy is changed to compact is compacted from then on.
func TestField_F022_EndAfterClean(t *testing.T) {
	b := startBroker(t, append([]string{"log.cleaner.backoff.ms=100"}, quick...)...)
	b.topic("t", 1, "segment.bytes=1048576")
	alter := func(name, value string) {
		t.Helper()
		got, err := b.admin().AlterTopicConfigs(context.Background(), []kadm.AlterConfig{{Op: kadm.SetConfig, Name: name, Value: &value}}, "t")
		if err == nil {
			err = got[0].Err
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	const n = 60
	for i := range n {
		b.mustProduce("t", 0, keyedRecord(t, fmt.Sprint("key-", i%3), fmt.Sprint(i, strings.Repeat("x", 50_000))))
	}
	log := b.replicas.Topic("t").Partition(0).Log()
	if log.FirstDirty() != 0 {
		t.Fatal("compacted without the policy")
	}
	size := log.Size()
	for name, value := range map[string]string{"min.cleanable.dirty.ratio": "0.01", "cleanup.policy": "compact"} {
		alter(name, value)
	}
	b.eventually("a pass", func() bool { return log.FirstDirty() > 0 && log.Size() < size/2 })

	offsets := b.readToEnd("t")
	if offsets[len(offsets)-1] != n-1 || len(offsets) >= n {
		t.Errorf("left are %v", offsets)
	}
	c := b.dial()
	for at := range int64(n) {
		p := c.fetch(b.fetchOf(12, want{topic: "t", partition: 0, offset: at}), 12).Topics[0].Partitions[0]
		if p.ErrorCode != 0 || len(p.RecordBatches) < batch.HeaderSize {
			t.Fatalf("fetch at %d: %s, %d bytes", at, wire.ErrorName(p.ErrorCode), len(p.RecordBatches))
		}
		if v := batch.View(p.RecordBatches); v.LastOffset() < at {
			t.Fatalf("fetch at %d begins with a batch that ends at %d", at, v.LastOffset())
		}
		if at == n-1 && batch.View(p.RecordBatches).LastOffset() != n-1 {
			t.Fatalf("the last batch ends at %d", batch.View(p.RecordBatches).LastOffset())
		}
	}
}

// Claim: __consumer_offsets stays small however often a group commits, and the newest commits outlive compaction and a restart.
func TestCommitsAreCompacted(t *testing.T) {
	dir := t.TempDir()
	settings := append(slices.Clone(quick), "log.cleaner.backoff.ms=100", "offsets.topic.num.partitions=1", "offsets.topic.segment.bytes=1048576", "log.cleaner.min.cleanable.ratio=0.01")
	b := startBrokerIn(t, dir, settings...)
	b.topic("t", 1)
	pad, adm := strings.Repeat("m", 3000), b.admin()
	commit := func(at int64) {
		t.Helper()
		o := kadm.Offsets{}
		o.Add(kadm.Offset{Topic: "t", Partition: 0, At: at, LeaderEpoch: -1, Metadata: pad})
		if err := adm.CommitAllOffsets(context.Background(), "g", o); err != nil {
			t.Fatal(err)
		}
	}
	const n = 1000
	for i := range int64(n) {
		commit(i)
	}
	log := b.replicas.Topic("__consumer_offsets").Partition(0).Log()
	b.eventually("a pass", func() bool { return log.FirstDirty() > 0 && log.Size() < 2<<20 })
	if st := b.store.CleanerStats(); st.RecordsKept >= st.RecordsRead {
		t.Errorf("%+v", st)
	}
	b.halt()
	b = startBrokerIn(t, dir, settings...)
	b.eventually("the commit", func() bool {
		got, err := b.admin().FetchOffsets(context.Background(), "g")
		o, ok := got.Lookup("t", 0)
		return err == nil && ok && o.At == n-1 && o.Metadata == pad
	})
}
