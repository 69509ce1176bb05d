package broker

import (
	"bytes"
	"context"
	"math"
	"os"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"millrace/engine/batch"
	"millrace/wire"
)

func (c *adminClient) deleteRecords(version int16, topic string, partition int32, offset int64) kmsg.DeleteRecordsResponseTopicPartition {
	c.t.Helper()
	req := kmsg.NewPtrDeleteRecordsRequest()
	req.Version, req.TimeoutMillis = version, 5000
	t := kmsg.NewDeleteRecordsRequestTopic()
	t.Topic = topic
	t.Partitions = []kmsg.DeleteRecordsRequestTopicPartition{{Partition: partition, Offset: offset}}
	req.Topics = append(req.Topics, t)
	return ask[*kmsg.DeleteRecordsResponse](c, req).Topics[0].Partitions[0]
}

// Claim: records below an offset are gone, in every version: the low watermark is
// told, reads below it are out of range, above it they go on; going back is
// no error and changes nothing; and it is so after a kill.
// Method: delete by one more for each version; open a copy of the files.
func TestRecordsAreDeleted(t *testing.T) {
	dir := t.TempDir()
	b := startBrokerIn(t, dir)
	c := dialAdmin(t, b.Broker, "")
	c.createTopic("t", 1)
	for range 4 {
		b.mustProduce("t", 0, values(batch.None, "a", "b"))
	}
	for version := int16(0); version <= 2; version++ {
		upTo := int64(version) + 1
		if p := c.deleteRecords(version, "t", 0, upTo); p.ErrorCode != 0 || p.LowWatermark != upTo {
			t.Errorf("v%d: %+v", version, p)
		}
	}
	if p := c.deleteRecords(2, "t", 0, 1); p.ErrorCode != 0 || p.LowWatermark != 3 {
		t.Errorf("going back: %+v", p)
	}
	raw := b.dial()
	fetch := func(offset int64) kmsg.FetchResponseTopicPartition {
		return raw.fetch(b.fetchOf(11, want{topic: "t", offset: offset}), 11).Topics[0].Partitions[0]
	}
	if p := fetch(2); p.ErrorCode != wire.ErrOffsetOutOfRange {
		t.Errorf("reading what is gone: %+v", p)
	}
	if p := fetch(3); p.ErrorCode != 0 || len(p.RecordBatches) == 0 {
		t.Errorf("reading what is left: %d", p.ErrorCode)
	}
	killed := t.TempDir()
	if err := os.CopyFS(killed, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	after := startBrokerIn(t, killed)
	if start := after.replicas.Topic("t").Partition(0).Log().Start(); start != 3 {
		t.Errorf("after a kill the log starts at %d", start)
	}
	if p := c.deleteRecords(2, "t", 0, -1); p.ErrorCode != 0 || p.LowWatermark != 8 {
		t.Errorf("all: %+v", p)
	}
	if base := b.mustProduce("t", 0, values(batch.None, "c")); base != 8 {
		t.Errorf("the next record is at %d", base)
	}
}

// Claim: what Kafka refuses is refused with its code and a low watermark of -1.
// Method: a table.
func TestWrongDeletionsAreRefused(t *testing.T) {
	b := startBroker(t)
	c := dialAdmin(t, b.Broker, "")
	c.createTopic("t", 1)
	c.createTopic("compacted", 1, "cleanup.policy", "compact")
	c.createTopic("both", 1, "cleanup.policy", "compact,delete")
	c.createTopic("__consumer_offsets", 1)
	b.mustProduce("t", 0, values(batch.None, "a"))
	for _, try := range []struct {
		topic     string
		partition int32
		offset    int64
		code      int16
	}{
		{"none", 0, 0, wire.ErrUnknownTopicOrPartition},
		{"t", 1, 0, wire.ErrUnknownTopicOrPartition},
		{"t", -1, 0, wire.ErrUnknownTopicOrPartition},
		{"t", 0, 2, wire.ErrOffsetOutOfRange},
		{"t", 0, -2, wire.ErrOffsetOutOfRange},
		{"t", 0, math.MinInt64, wire.ErrOffsetOutOfRange},
		{"t", 0, math.MaxInt64, wire.ErrOffsetOutOfRange},
		{"compacted", 0, -1, wire.ErrPolicyViolation},
		{"both", 0, -1, 0},
		{"__consumer_offsets", 0, -1, wire.ErrInvalidTopic},
		{"t", 0, 0, 0},
	} {
		p := c.deleteRecords(2, try.topic, try.partition, try.offset)
		if low := map[bool]int64{true: 0, false: -1}[try.code == 0]; p.ErrorCode != try.code || p.LowWatermark != low {
			t.Errorf("%v: %+v", try, p)
		}
	}
}

// Claim: files of deleted records go without waiting for the regular check.
// Method: small segments, delete all, count the bytes.
func TestDeletedRecordsFreeTheirSpace(t *testing.T) {
	b := startBroker(t)
	c := dialAdmin(t, b.Broker, "")
	c.createTopic("t", 1, "segment.bytes", "1048576")
	for range 4 {
		b.mustProduce("t", 0, sized(600_000))
	}
	if p := c.deleteRecords(2, "t", 0, -1); p.ErrorCode != 0 {
		t.Fatal(p)
	}
	log := b.replicas.Topic("t").Partition(0).Log()
	waitFor(t, "the space", func() bool { return log.Size() <= 600_000 })
}

// idempotent is a batch of one record of a producer.
func idempotent(producer int64, sequence int32) []byte {
	b := batch.NewBuilder(batch.None, 0)
	_ = b.Add(batch.Record{Timestamp: time.Now().UnixMilli(), Value: []byte("v")})
	return bytes.Clone(b.Bytes(batch.Producer(producer, 0, sequence)))
}

// Claim: an idempotent producer goes on after its records were deleted, at once and
// after a restart; what it sends twice is still known, and a gap still refused.
// Method: sequences 0 to 4, DeleteRecords(-1), 5; once more over a restart.
func TestField_F075_DeleteRecordsKeepsProducers(t *testing.T) {
	dir := t.TempDir()
	b := startBrokerIn(t, dir)
	c := dialAdmin(t, b.Broker, "")
	c.createTopic("t", 1)
	send := func(sequence int32) kmsg.ProduceResponseTopicPartition {
		return b.produce(b.dial(), 9, "t", 0, idempotent(7, sequence))
	}
	expect := func(sequence int32, code int16, base int64) {
		t.Helper()
		if p := send(sequence); p.ErrorCode != code || code == 0 && p.BaseOffset != base {
			t.Errorf("sequence %d: %s at %d, want %s at %d", sequence, wire.ErrorName(p.ErrorCode), p.BaseOffset, wire.ErrorName(code), base)
		}
	}
	for sequence := range int32(5) {
		expect(sequence, 0, int64(sequence))
	}
	if p := c.deleteRecords(2, "t", 0, -1); p.ErrorCode != 0 || p.LowWatermark != 5 {
		t.Fatalf("%+v", p)
	}
	expect(4, 0, 4) // a duplicate
	expect(5, 0, 5)
	expect(7, wire.ErrOutOfOrderSequenceNumber, 0)
	if p := c.deleteRecords(2, "t", 0, -1); p.ErrorCode != 0 {
		t.Fatalf("%+v", p)
	}
	b.halt()
	b = startBrokerIn(t, dir)
	expect(6, 0, 6)
	expect(6, 0, 6)
	expect(8, wire.ErrOutOfOrderSequenceNumber, 0)
}

// Claim: kadm deletes records of many partitions in one request.
// Method: 40 partitions, more than are worked on side by side.
func TestKadmDeletesRecords(t *testing.T) {
	b := startBroker(t)
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	cl, err := kgo.NewClient(kgo.SeedBrokers(b.Addr("")), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	adm := kadm.NewClient(cl)
	const n = 40
	if _, err := adm.CreateTopic(ctx, n, 1, nil, "t"); err != nil {
		t.Fatal(err)
	}
	ask := kadm.Offsets{}
	var records []*kgo.Record
	for i := range int32(n) {
		records = append(records, &kgo.Record{Topic: "t", Partition: i, Value: []byte("v")}, &kgo.Record{Topic: "t", Partition: i, Value: []byte("w")})
		ask.Add(kadm.Offset{Topic: "t", Partition: i, At: 1})
	}
	if err := cl.ProduceSync(ctx, records...).FirstErr(); err != nil {
		t.Fatal(err)
	}
	responses, err := adm.DeleteRecords(ctx, ask)
	if err != nil || len(responses.Sorted()) != n {
		t.Fatal(err, len(responses.Sorted()))
	}
	responses.Each(func(r kadm.DeleteRecordsResponse) {
		if r.Err != nil || r.LowWatermark != 1 {
			t.Errorf("%+v", r)
		}
	})
	starts, err := adm.ListStartOffsets(ctx, "t")
	if err != nil {
		t.Fatal(err)
	}
	starts.Each(func(o kadm.ListedOffset) {
		if o.Offset != 1 {
			t.Errorf("%+v", o)
		}
	})
}
