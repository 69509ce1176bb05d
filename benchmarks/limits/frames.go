package main

import (
	"encoding/binary"
	"hash/crc32"
	"math/rand/v2"
	"time"

	"github.com/twmb/franz-go/pkg/kbin"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// The frames are built once and sent again and again, so that the client costs next to nothing. Produce v7 and Fetch v11
// are the versions that the toy reads; brokers serve them as well.
const (
	produceVersion = 7
	fetchVersion   = 11
	clientID       = "bench"
)

// batch builds one uncompressed v2 batch of n records with values of size random bytes.
func batch(n, size int) []byte {
	now := time.Now().UnixMilli()
	value := make([]byte, size)
	for i := range value {
		value[i] = byte('a' + rand.IntN(26))
	}
	var records []byte
	for i := range n {
		var r []byte
		r = append(r, 0)                   // attributes
		r = kbin.AppendVarlong(r, 0)       // timestamp delta
		r = kbin.AppendVarint(r, int32(i)) // offset delta
		r = kbin.AppendVarint(r, -1)       // no key
		r = kbin.AppendVarintBytes(r, value)
		r = kbin.AppendVarint(r, 0) // headers
		records = kbin.AppendVarint(records, int32(len(r)))
		records = append(records, r...)
	}
	b := kmsg.RecordBatch{Length: int32(49 + len(records)), PartitionLeaderEpoch: -1, Magic: 2, LastOffsetDelta: int32(n - 1), FirstTimestamp: now, MaxTimestamp: now,
		ProducerID: -1, ProducerEpoch: -1, FirstSequence: -1, NumRecords: int32(n), Records: records}
	out := b.AppendTo(nil)
	binary.BigEndian.PutUint32(out[17:], crc32.Checksum(out[21:], crc32.MakeTable(crc32.Castagnoli)))
	return out
}

func frame(r kmsg.Request) []byte {
	return kmsg.NewRequestFormatter(kmsg.FormatterClientID(clientID)).AppendRequest(nil, r, 1)
}

// produceFrame carries the batch to partitions first … first+r.partitions-1.
func produceFrame(r row, topic string) []byte {
	req := kmsg.NewPtrProduceRequest()
	req.SetVersion(produceVersion)
	req.Acks, req.TimeoutMillis = r.acks, 30_000
	t := kmsg.NewProduceRequestTopic()
	t.Topic = topic
	b := batch(r.records, r.size)
	for i := range r.partitions {
		p := kmsg.NewProduceRequestTopicPartition()
		p.Partition, p.Records = int32(i), b
		t.Partitions = append(t.Partitions, p)
	}
	req.Topics = append(req.Topics, t)
	return frame(req)
}

// fetchFrames ask for successive ranges of the stored batches, so that not one hot range is read.
func fetchFrames(r row, topic string, batches, batchBytes int) [][]byte {
	step := max(1, r.fetch/batchBytes)
	var out [][]byte
	for first := 0; first+2*step < batches && len(out) < 64; first += step {
		req := kmsg.NewPtrFetchRequest()
		req.SetVersion(fetchVersion)
		req.ReplicaID, req.MaxWaitMillis, req.MinBytes, req.MaxBytes, req.SessionEpoch = -1, 100, 1, 64<<20, -1
		t := kmsg.NewFetchRequestTopic()
		t.Topic = topic
		for i := range r.partitions {
			p := kmsg.NewFetchRequestTopicPartition()
			p.Partition, p.FetchOffset, p.PartitionMaxBytes = int32(i), int64(first*r.records), int32(r.fetch)
			t.Partitions = append(t.Partitions, p)
		}
		req.Topics = append(req.Topics, t)
		out = append(out, frame(req))
	}
	return out
}
