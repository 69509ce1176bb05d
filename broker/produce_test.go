package broker

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"millrace/engine/batch"
	"millrace/wire"
)

// Claim: every Produce version stores what it is given, and Fetch of the same
// age gives it back.
// Method: one request for each version; old versions send a message set.
func TestEveryProduceVersionStores(t *testing.T) {
	b := startBroker(t)
	b.topic("t", 1)
	c := b.dial()
	for version := int16(0); version <= 13; version++ {
		records := values(batch.None, "a", "b")
		if version < 3 {
			set, err := batch.DownConvert(nil, records, int8(min(version, 1)), 0)
			if err != nil {
				t.Fatal(err)
			}
			records = set
		}
		p := b.produce(c, version, "t", 0, records)
		if p.ErrorCode != 0 || p.BaseOffset != int64(version)*2 {
			t.Errorf("v%d: %s at %d, want offset %d", version, wire.ErrorName(p.ErrorCode), p.BaseOffset, version*2)
		}
	}
	for version := int16(0); version <= 18; version++ {
		r := c.fetch(b.fetchOf(version, want{topic: "t", offset: 3}), version)
		p := r.Topics[0].Partitions[0]
		if p.ErrorCode != 0 || p.HighWatermark != 28 {
			t.Fatalf("fetch v%d: %s, watermark %d", version, wire.ErrorName(p.ErrorCode), p.HighWatermark)
		}
		var got []string
		for rest := p.RecordBatches; len(rest) > 0; {
			n, err := batch.Split(rest)
			if err != nil {
				t.Fatalf("fetch v%d: %v", version, err)
			}
			if magic := batch.View(rest).Magic(); magic > magicFor(version) {
				t.Fatalf("fetch v%d got format %d", version, magic)
			}
			for r, err := range batch.Records(rest[:n]) {
				if err != nil {
					t.Fatalf("fetch v%d: %v", version, err)
				}
				if r.Offset >= 3 {
					got = append(got, string(r.Value))
				}
			}
			rest = rest[n:]
		}
		if all := strings.Join(got, ""); all != "b"+strings.Repeat("ab", 12) {
			t.Errorf("fetch v%d from 3 gave %q", version, all)
		}
	}
}

// Claim: acks other than -1, 0, 1 are refused and nothing is stored.
// Method: the case's three values, then the end offset.
func TestField_F037_Acks(t *testing.T) {
	b := startBroker(t)
	b.topic("t", 1)
	c := b.dial()
	for _, acks := range []int16{2, -2, 32767} {
		resp := c.ask(b.produceTo(7, acks, "t", 0, values(batch.None, "x")), 7).(*kmsg.ProduceResponse)
		if p := resp.Topics[0].Partitions[0]; p.ErrorCode != wire.ErrInvalidRequiredAcks || p.BaseOffset != -1 {
			t.Errorf("acks=%d: code %d, offset %d, want 21 and -1", acks, p.ErrorCode, p.BaseOffset)
		}
	}
	if end := b.end("t", 0); end != 0 {
		t.Errorf("end offset %d, want 0", end)
	}
}

// Claim: zstd needs Produce v7, and readers of before Fetch v10 are told so.
// Method: the case's four requests; the bytes that come back are those sent.
func TestField_F047_Zstd(t *testing.T) {
	b := startBroker(t)
	b.topic("t", 1)
	c := b.dial()
	records := values(batch.Zstd, strings.Repeat("z", 500))
	for _, version := range []int16{3, 6} {
		if p := b.produce(c, version, "t", 0, records); p.ErrorCode != wire.ErrUnsupportedCompressionType {
			t.Errorf("produce v%d: %s, want 76", version, wire.ErrorName(p.ErrorCode))
		}
	}
	if end := b.end("t", 0); end != 0 {
		t.Fatalf("end offset %d after refusals, want 0", end)
	}
	if p := b.produce(c, 7, "t", 0, records); p.ErrorCode != 0 {
		t.Fatalf("produce v7: %s", wire.ErrorName(p.ErrorCode))
	}
	for _, version := range []int16{0, 2, 4, 9} {
		r := c.fetch(b.fetchOf(version, want{topic: "t"}), version)
		if p := r.Topics[0].Partitions[0]; p.ErrorCode != wire.ErrUnsupportedCompressionType || len(p.RecordBatches) != 0 {
			t.Errorf("fetch v%d: %s and %d bytes, want 76 and none", version, wire.ErrorName(p.ErrorCode), len(p.RecordBatches))
		}
	}
	r := c.fetch(b.fetchOf(10, want{topic: "t"}), 10)
	got := r.Topics[0].Partitions[0].RecordBatches
	batch.Stamp(records, 0, batch.View(got).LeaderEpoch())
	if !bytes.Equal(got, records) {
		t.Error("fetch v10: other bytes than were sent")
	}
}

// Claim: max.message.bytes is about the batch as stored, header included, and
// the answer names size and limit.
// Method: exactly the limit, one more, and 100 KB that compress well.
func TestField_F049_SizeLimit(t *testing.T) {
	b := startBroker(t)
	b.topic("t", 1, "max.message.bytes=1000")
	c := b.dial()
	if p := b.produce(c, 9, "t", 0, sized(1000)); p.ErrorCode != 0 {
		t.Errorf("1000 bytes: %s", wire.ErrorName(p.ErrorCode))
	}
	p := b.produce(c, 9, "t", 0, sized(1001))
	if p.ErrorCode != wire.ErrMessageTooLarge {
		t.Errorf("1001 bytes: %s, want 10", wire.ErrorName(p.ErrorCode))
	}
	if p.ErrorMessage == nil || !strings.Contains(*p.ErrorMessage, "1001") || !strings.Contains(*p.ErrorMessage, "1000") {
		t.Errorf("message %v does not name size and limit", p.ErrorMessage)
	}
	if p := b.produce(c, 9, "t", 0, values(batch.Gzip, strings.Repeat("\x00", 100<<10))); p.ErrorCode != 0 {
		t.Errorf("100 KB of zeros with gzip: %s", wire.ErrorName(p.ErrorCode))
	}
	if end := b.end("t", 0); end != 2 {
		t.Errorf("end offset %d, want 2", end)
	}
}

// Claim: the producer's sequence survives the deletion of its records, a repeat
// is answered with its first offset, and a gap is refused.
// Method: sequences 0–4, all records deleted, then 5, 5 again, and 9.
func TestField_F075_SequenceAfterDeletion(t *testing.T) {
	b := startBroker(t)
	b.topic("t", 1)
	c := b.dial()
	send := func(sequence int32, n int) kmsg.ProduceResponseTopicPartition {
		builder := batch.NewBuilder(batch.None, 0)
		for range n {
			_ = builder.Add(batch.Record{Timestamp: time.Now().UnixMilli(), Value: []byte("v")})
		}
		return b.produce(c, 9, "t", 0, bytes.Clone(builder.Bytes(batch.Producer(7, 0, sequence))))
	}
	if p := send(0, 5); p.ErrorCode != 0 {
		t.Fatalf("sequence 0: %s", wire.ErrorName(p.ErrorCode))
	}
	if err := b.replicas.Topic("t").Partition(0).Log().SetStart(5); err != nil {
		t.Fatal(err)
	}
	first := send(5, 1)
	if first.ErrorCode != 0 || first.BaseOffset != 5 {
		t.Errorf("sequence 5 after deletion: %s at %d, want offset 5", wire.ErrorName(first.ErrorCode), first.BaseOffset)
	}
	if again := send(5, 1); again.ErrorCode != 0 || again.BaseOffset != 5 {
		t.Errorf("sequence 5 again: %s at %d, want the first offset", wire.ErrorName(again.ErrorCode), again.BaseOffset)
	}
	if gap := send(9, 1); gap.ErrorCode != wire.ErrOutOfOrderSequenceNumber {
		t.Errorf("sequence 9: %s, want 45", wire.ErrorName(gap.ErrorCode))
	}
}

// Claim: a refused batch says why, per record where it was a record.
// Method: one request for each kind of refusal.
func TestRefusedBatchesSayWhy(t *testing.T) {
	b := startBroker(t)
	b.topic("t", 1)
	b.topic("compacted", 1, "cleanup.policy=compact")
	c := b.dial()
	damaged := values(batch.None, "x")
	damaged[len(damaged)-1] ^= 1
	future := batch.NewBuilder(batch.None, 0)
	_ = future.Add(batch.Record{Timestamp: time.Now().Add(48 * time.Hour).UnixMilli(), Value: []byte("x")})
	transactional := batch.NewBuilder(batch.None, 0)
	_ = transactional.Add(batch.Record{Timestamp: time.Now().UnixMilli(), Value: []byte("x")})
	for name, test := range map[string]struct {
		topic   string
		index   int32
		records []byte
		code    int16
	}{
		"no such topic":     {"nope", 0, values(batch.None, "x"), wire.ErrUnknownTopicOrPartition},
		"no such partition": {"t", 7, values(batch.None, "x"), wire.ErrUnknownTopicOrPartition},
		"null records":      {"t", 0, nil, wire.ErrInvalidRecord},
		"garbage":           {"t", 0, []byte("these are not the records you are looking for, nor are these"), wire.ErrInvalidRecord},
		"two batches":       {"t", 0, append(values(batch.None, "x"), values(batch.None, "y")...), wire.ErrInvalidRecord},
		"damaged":           {"t", 0, damaged, wire.ErrCorruptMessage},
		"no key":            {"compacted", 0, values(batch.None, "x"), wire.ErrInvalidRecord},
		"future":            {"t", 0, bytes.Clone(future.Bytes()), wire.ErrInvalidTimestamp},
		"transactional":     {"t", 0, bytes.Clone(transactional.Bytes(batch.Producer(1, 0, 0), batch.Transactional())), wire.ErrInvalidTxnState},
	} {
		p := b.produce(c, 9, test.topic, test.index, test.records)
		if p.ErrorCode != test.code || p.BaseOffset != -1 {
			t.Errorf("%s: %s at %d, want %s at -1", name, wire.ErrorName(p.ErrorCode), p.BaseOffset, wire.ErrorName(test.code))
		}
		if p.ErrorMessage == nil || *p.ErrorMessage == "" {
			t.Errorf("%s: no message", name)
		}
		if perRecord := name == "no key" || name == "future"; perRecord != (len(p.ErrorRecords) > 0) {
			t.Errorf("%s: %d record errors", name, len(p.ErrorRecords))
		}
	}
	if end := b.end("t", 0) + b.end("compacted", 0); end != 0 {
		t.Errorf("%d records were stored", end)
	}
}

// Claim: compression.type and LogAppendTime change what is stored, and say so.
// Method: a plain batch into a zstd topic with LogAppendTime.
func TestTopicSettingsShapeTheStoredBatch(t *testing.T) {
	b := startBroker(t)
	b.topic("t", 1, "compression.type=zstd", "message.timestamp.type=LogAppendTime")
	c := b.dial()
	before := time.Now().UnixMilli()
	p := b.produce(c, 9, "t", 0, values(batch.None, strings.Repeat("x", 1000)))
	if p.ErrorCode != 0 || p.LogAppendTime < before {
		t.Fatalf("%s, append time %d, want at least %d", wire.ErrorName(p.ErrorCode), p.LogAppendTime, before)
	}
	got := batch.View(c.fetch(b.fetchOf(11, want{topic: "t"}), 11).Topics[0].Partitions[0].RecordBatches)
	if got.Codec() != batch.Zstd || !got.AppendTime() || got.MaxTimestamp() != p.LogAppendTime {
		t.Errorf("stored with %v, append time %v at %d, want zstd and %d", got.Codec(), got.AppendTime(), got.MaxTimestamp(), p.LogAppendTime)
	}
	for _, err := range batch.Records(got) {
		if err != nil {
			t.Error(err)
		}
	}
}

// Claim: requests sent together are answered in order, with rising offsets,
// whatever lies between them, and acks=0 has no answer.
// Method: 200 requests of mixed kinds in one write.
func TestPipelinedAnswersComeInOrder(t *testing.T) {
	b := startBroker(t)
	b.topic("t", 1)
	c := b.dial()
	var frames [][]byte
	type expected struct {
		correlation int32
		produce     bool
	}
	var want []expected
	for i := range 200 {
		switch {
		case i%20 == 7:
			frames = append(frames, c.frame(kmsg.NewPtrApiVersionsRequest(), 0))
		case i%20 == 9:
			frames = append(frames, c.frame(b.produceTo(9, 0, "t", 0, values(batch.None, "x")), 9))
			continue
		case i%20 == 11:
			frames = append(frames, c.frame(kmsg.NewPtrMetadataRequest(), 4))
		default:
			frames = append(frames, c.frame(b.produceTo(9, -1, "t", 0, values(batch.None, "x")), 9))
		}
		want = append(want, expected{c.next, i%20 != 7 && i%20 != 11})
	}
	c.write(frames...)
	last := int64(-1)
	for _, e := range want {
		correlation, rest := c.read()
		if correlation != e.correlation {
			t.Fatalf("answer to %d, want %d", correlation, e.correlation)
		}
		if e.produce {
			p := c.decode(kmsg.NewPtrProduceRequest(), 9, rest).(*kmsg.ProduceResponse).Topics[0].Partitions[0]
			if p.ErrorCode != 0 || p.BaseOffset <= last {
				t.Fatalf("%s at %d after %d", wire.ErrorName(p.ErrorCode), p.BaseOffset, last)
			}
			last = p.BaseOffset
		}
	}
	if end := b.end("t", 0); end != 180 {
		t.Errorf("end offset %d, want 180: 20 requests were no produces", end)
	}
}

// Claim: an error with acks=0 closes the connection, its only sign, and answers
// of requests before it are still sent.
// Method: a good request, then a bad one without answer, in one write.
func TestFailedAcksZeroClosesTheConnection(t *testing.T) {
	b := startBroker(t)
	b.topic("t", 1)
	c := b.dial()
	c.write(c.frame(b.produceTo(9, -1, "t", 0, values(batch.None, "x")), 9), c.frame(b.produceTo(9, 0, "nope", 0, values(batch.None, "x")), 9))
	if correlation, _ := c.read(); correlation != 1 {
		t.Errorf("answer to %d, want 1", correlation)
	}
	if _, _, err := c.tryRead(5 * time.Second); err == nil {
		t.Error("the connection stayed open")
	}
}

// Claim: a topic deleted and made anew under running producers harms nobody:
// each answer is success or an error of the protocol, and the new topic begins
// at offset 0.
// Method: a producer in a loop while the topic is deleted and made again.
func TestProduceToADeletedTopic(t *testing.T) {
	b := startBroker(t)
	b.topic("t", 1)
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		c := b.dial()
		for {
			select {
			case <-stop:
				return
			default:
			}
			p := b.produce(c, 9, "t", 0, values(batch.None, "x"))
			if p.ErrorCode != 0 && p.ErrorCode != wire.ErrUnknownTopicOrPartition {
				t.Errorf("produce: %s", wire.ErrorName(p.ErrorCode))
			}
		}
	}()
	for range 5 {
		time.Sleep(20 * time.Millisecond)
		b.delete("t")
		time.Sleep(5 * time.Millisecond)
		b.topic("t", 1)
	}
	close(stop)
	<-done
}

// Claim: a request over many partitions stores all of them.
// Method: 100 partitions in one request, twice.
func TestProduceOverManyPartitions(t *testing.T) {
	b := startBroker(t)
	b.topic("t", 100)
	req := b.produceTo(9, -1, "t", 0, values(batch.None, "x"))
	for i := int32(1); i < 100; i++ {
		p := kmsg.NewProduceRequestTopicPartition()
		p.Partition, p.Records = i, values(batch.None, "x")
		req.Topics[0].Partitions = append(req.Topics[0].Partitions, p)
	}
	c := b.dial()
	for round := range int64(2) {
		resp := c.ask(req, 9).(*kmsg.ProduceResponse)
		for i, p := range resp.Topics[0].Partitions {
			if p.ErrorCode != 0 || p.BaseOffset != round || p.Partition != int32(i) {
				t.Fatalf("partition %d: %s at %d", p.Partition, wire.ErrorName(p.ErrorCode), p.BaseOffset)
			}
		}
	}
}
