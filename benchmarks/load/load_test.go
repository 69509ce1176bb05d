package load

import (
	"encoding/binary"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

func fetchAnswer(code int16, records []byte) []byte {
	resp := kmsg.NewPtrFetchResponse()
	resp.SetVersion(fetchVersion)
	t := kmsg.NewFetchResponseTopic()
	t.Topic = "some-topic"
	p := kmsg.NewFetchResponseTopicPartition()
	p.ErrorCode, p.RecordBatches, p.AbortedTransactions = code, records, []kmsg.FetchResponseTopicPartitionAbortedTransaction{{ProducerID: 1}}
	t.Partitions = append(t.Partitions, p)
	resp.Topics = append(resp.Topics, t)
	return resp.AppendTo(make([]byte, 4)) // behind a correlation id
}

// Claim: the reader finds a fetch's records, steps behind the last whole batch, and takes no torn answer or error for records.
func TestReaderFindsRecords(t *testing.T) {
	b := Batch(3, 50)
	binary.BigEndian.PutUint64(b, 1000)
	got, err := fetchedRecords(fetchAnswer(0, append(append([]byte{}, b...), b[:40]...)))
	if err != nil || len(got) != len(b)+40 {
		t.Fatalf("%d bytes of records, %v", len(got), err)
	}
	if next := afterBatches(got); next != 1003 {
		t.Errorf("the next offset is %d, want 1003", next)
	}
	if next := afterBatches(b[:40]); next != -1 {
		t.Errorf("a torn batch leads to offset %d", next)
	}
	whole := fetchAnswer(0, b)
	for n := range len(whole) {
		if r, err := fetchedRecords(whole[:n:n]); err == nil {
			t.Fatalf("%d of %d bytes gave %d bytes of records", n, len(whole), len(r))
		}
	}
	if _, err := fetchedRecords(fetchAnswer(3, b)); err == nil {
		t.Error("error code 3 was not noticed")
	}
}

// Claim: each codec's batch says its codec and is smaller than the plain one.
func TestCompressedBatches(t *testing.T) {
	plain, err := CompressedBatch(100, 100, kgo.NoCompression())
	if err != nil {
		t.Fatal(err)
	}
	for id, codec := range []kgo.CompressionCodec{kgo.NoCompression(), kgo.GzipCompression(), kgo.SnappyCompression(), kgo.Lz4Compression(), kgo.ZstdCompression()} {
		b, err := CompressedBatch(100, 100, codec)
		if err != nil {
			t.Fatal(err)
		}
		var batch kmsg.RecordBatch
		if err := batch.ReadFrom(b); err != nil {
			t.Fatal(err)
		}
		if int(batch.Attributes&7) != id || batch.NumRecords != 100 || id > 0 && len(b) >= len(plain) {
			t.Errorf("codec %d: attributes %d, %d records, %d bytes of %d", id, batch.Attributes, batch.NumRecords, len(b), len(plain))
		}
	}
}
