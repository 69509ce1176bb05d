package load

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kbin"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// The frames are built once and sent again and again, so that the client costs next to nothing. Produce v7 and Fetch v11
// are the versions that the toy reads; brokers serve them as well.
const (
	produceVersion = 7
	fetchVersion   = 11
	clientID       = "bench"
)

// Batch builds one uncompressed v2 batch of n records with values of size random bytes.
func Batch(n, size int) []byte {
	value := make([]byte, size)
	for i := range value {
		value[i] = byte('a' + rand.IntN(26))
	}
	return seal(n, recordsOf(n, func(int) []byte { return value }), 0)
}

// CompressedBatch builds a batch of n records with values of size bytes of words, compressed with the codec.
func CompressedBatch(n, size int, codec kgo.CompressionCodec) ([]byte, error) {
	words := strings.Fields("offset segment partition leader follower batch index record replica commit topic group consumer producer broker log")
	r := rand.New(rand.NewPCG(1, 2))
	records := recordsOf(n, func(int) []byte {
		var v []byte
		for len(v) < size {
			v = append(append(v, words[r.IntN(len(words))]...), byte('0'+r.IntN(10)), ' ')
		}
		return v[:size]
	})
	c, err := kgo.DefaultCompressor(codec)
	if err != nil {
		return nil, err
	}
	if c == nil {
		return seal(n, records, 0), nil
	}
	out, id := c.Compress(new(bytes.Buffer), records)
	return seal(n, out, int16(id)), nil
}

// recordsOf encodes n records without keys.
func recordsOf(n int, value func(int) []byte) []byte {
	var records []byte
	for i := range n {
		var r []byte
		r = append(r, 0)                   // attributes
		r = kbin.AppendVarlong(r, 0)       // timestamp delta
		r = kbin.AppendVarint(r, int32(i)) // offset delta
		r = kbin.AppendVarint(r, -1)       // no key
		r = kbin.AppendVarintBytes(r, value(i))
		r = kbin.AppendVarint(r, 0) // headers
		records = kbin.AppendVarint(records, int32(len(r)))
		records = append(records, r...)
	}
	return records
}

// seal puts a batch's header before encoded records; attributes name the codec.
func seal(n int, records []byte, attributes int16) []byte {
	now := time.Now().UnixMilli()
	b := kmsg.RecordBatch{Length: int32(49 + len(records)), PartitionLeaderEpoch: -1, Magic: 2, Attributes: attributes, LastOffsetDelta: int32(n - 1), FirstTimestamp: now, MaxTimestamp: now,
		ProducerID: -1, ProducerEpoch: -1, FirstSequence: -1, NumRecords: int32(n), Records: records}
	out := b.AppendTo(nil)
	binary.BigEndian.PutUint32(out[17:], crc32.Checksum(out[21:], crc32.MakeTable(crc32.Castagnoli)))
	return out
}

// Frame is the request with its size and header, ready to be sent.
func Frame(r kmsg.Request) []byte {
	return kmsg.NewRequestFormatter(kmsg.FormatterClientID(clientID)).AppendRequest(nil, r, 1)
}

// ProduceFrame carries a batch of the row's records to partitions 0 … r.Partitions-1.
func ProduceFrame(r Row, topic string) []byte {
	return ProduceFrameOf(r, topic, Batch(r.Records, r.Size))
}

// ProduceFrameOf carries the given batch to partitions 0 … r.Partitions-1.
func ProduceFrameOf(r Row, topic string, b []byte) []byte {
	req := kmsg.NewPtrProduceRequest()
	req.SetVersion(produceVersion)
	req.Acks, req.TimeoutMillis = r.Acks, 30_000
	t := kmsg.NewProduceRequestTopic()
	t.Topic = topic
	for i := range r.Partitions {
		p := kmsg.NewProduceRequestTopicPartition()
		p.Partition, p.Records = int32(i), b
		t.Partitions = append(t.Partitions, p)
	}
	req.Topics = append(req.Topics, t)
	return Frame(req)
}

// ProduceFrameTo carries the batch to one partition.
func ProduceFrameTo(r Row, topic string, partition int32, b []byte) []byte {
	req := kmsg.NewPtrProduceRequest()
	req.SetVersion(produceVersion)
	req.Acks, req.TimeoutMillis = r.Acks, 30_000
	t := kmsg.NewProduceRequestTopic()
	t.Topic = topic
	p := kmsg.NewProduceRequestTopicPartition()
	p.Partition, p.Records = partition, b
	t.Partitions = append(t.Partitions, p)
	req.Topics = append(req.Topics, t)
	return Frame(req)
}

// FetchFrames ask for successive ranges of the stored batches, so that not one hot range is read.
func FetchFrames(r Row, topic string, batches, batchBytes int) [][]byte {
	step := max(1, r.Fetch/batchBytes)
	var out [][]byte
	for first := 0; first+2*step < batches && len(out) < 64; first += step {
		req := kmsg.NewPtrFetchRequest()
		req.SetVersion(fetchVersion)
		req.ReplicaID, req.MaxWaitMillis, req.MinBytes, req.MaxBytes, req.SessionEpoch = -1, 100, 1, 64<<20, -1
		t := kmsg.NewFetchRequestTopic()
		t.Topic = topic
		for i := range r.Partitions {
			p := kmsg.NewFetchRequestTopicPartition()
			p.Partition, p.FetchOffset, p.PartitionMaxBytes = int32(i), int64(first*r.Records), int32(r.Fetch)
			t.Partitions = append(t.Partitions, p)
		}
		req.Topics = append(req.Topics, t)
		out = append(out, Frame(req))
	}
	return out
}
