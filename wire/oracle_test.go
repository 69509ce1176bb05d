package wire

import (
	"math"
	"math/rand/v2"

	"github.com/twmb/franz-go/pkg/kmsg"
	"pgregory.net/rapid"
)

// Random messages for the tests that hold our codecs against kmsg, which was
// made from the protocol's own definitions by other people.

func drawName(t *rapid.T) string {
	return rapid.StringMatching(`[a-zA-Z0-9._-]{0,40}`).Draw(t, "name")
}

func drawID(t *rapid.T) (id [16]byte) {
	copy(id[:], rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "id"))
	return id
}

func drawText(t *rapid.T, label string) *string {
	if rapid.Bool().Draw(t, label+" null") {
		return nil
	}
	s := rapid.StringN(0, 60, 200).Draw(t, label)
	return &s
}

func drawRecords(t *rapid.T) []byte {
	switch rapid.IntRange(0, 3).Draw(t, "records kind") {
	case 0:
		return nil
	case 1:
		return []byte{}
	}
	return rapid.SliceOfN(rapid.Byte(), 1, 300).Draw(t, "records")
}

func drawProduceRequest(t *rapid.T, version int16) *kmsg.ProduceRequest {
	req := kmsg.NewPtrProduceRequest()
	req.Version = version
	if version >= 3 {
		req.TransactionID = drawText(t, "txn")
	}
	req.Acks = rapid.Int16().Draw(t, "acks")
	req.TimeoutMillis = rapid.Int32().Draw(t, "timeout")
	for range rapid.IntRange(0, 4).Draw(t, "topics") {
		topic := kmsg.NewProduceRequestTopic()
		if version >= 13 {
			topic.TopicID = drawID(t)
		} else {
			topic.Topic = drawName(t)
		}
		for range rapid.IntRange(0, 4).Draw(t, "partitions") {
			p := kmsg.NewProduceRequestTopicPartition()
			p.Partition = rapid.Int32().Draw(t, "partition")
			p.Records = drawRecords(t)
			topic.Partitions = append(topic.Partitions, p)
		}
		req.Topics = append(req.Topics, topic)
	}
	return req
}

func drawFetchRequest(t *rapid.T, version int16) *kmsg.FetchRequest {
	req := kmsg.NewPtrFetchRequest()
	req.Version = version
	if version >= 12 {
		req.ClusterID = drawText(t, "cluster")
	}
	if version < 15 {
		req.ReplicaID = rapid.Int32().Draw(t, "replica")
	} else if rapid.Bool().Draw(t, "follower") {
		req.ReplicaState.ID = rapid.Int32().Draw(t, "replica")
		req.ReplicaState.Epoch = rapid.Int64().Draw(t, "replica epoch")
	}
	req.MaxWaitMillis = rapid.Int32().Draw(t, "wait")
	req.MinBytes = rapid.Int32().Draw(t, "min")
	if version >= 3 {
		req.MaxBytes = rapid.Int32().Draw(t, "max")
	}
	if version >= 4 {
		req.IsolationLevel = rapid.Int8().Draw(t, "isolation")
	}
	if version >= 7 {
		req.SessionID = rapid.Int32().Draw(t, "session")
		req.SessionEpoch = rapid.Int32().Draw(t, "epoch")
		for range rapid.IntRange(0, 3).Draw(t, "forgotten") {
			f := kmsg.NewFetchRequestForgottenTopic()
			if version >= 13 {
				f.TopicID = drawID(t)
			} else {
				f.Topic = drawName(t)
			}
			f.Partitions = rapid.SliceOfN(rapid.Int32(), 0, 4).Draw(t, "forgotten partitions")
			req.ForgottenTopics = append(req.ForgottenTopics, f)
		}
	}
	if version >= 11 {
		req.Rack = drawName(t)
	}
	for range rapid.IntRange(0, 4).Draw(t, "topics") {
		topic := kmsg.NewFetchRequestTopic()
		if version >= 13 {
			topic.TopicID = drawID(t)
		} else {
			topic.Topic = drawName(t)
		}
		for range rapid.IntRange(0, 4).Draw(t, "partitions") {
			topic.Partitions = append(topic.Partitions, drawFetchPartition(t, version))
		}
		req.Topics = append(req.Topics, topic)
	}
	return req
}

func drawFetchPartition(t *rapid.T, version int16) kmsg.FetchRequestTopicPartition {
	p := kmsg.NewFetchRequestTopicPartition()
	p.Partition = rapid.Int32().Draw(t, "partition")
	p.FetchOffset = rapid.Int64().Draw(t, "offset")
	p.PartitionMaxBytes = rapid.Int32().Draw(t, "partition max")
	if version >= 9 {
		p.CurrentLeaderEpoch = rapid.Int32().Draw(t, "leader epoch")
	}
	if version >= 12 {
		p.LastFetchedEpoch = rapid.Int32().Draw(t, "last epoch")
	}
	if version >= 5 {
		p.LogStartOffset = rapid.Int64().Draw(t, "log start")
	}
	if version >= 17 && rapid.Bool().Draw(t, "directory") {
		p.ReplicaDirectoryID = drawID(t)
	}
	if version >= 18 && rapid.Bool().Draw(t, "watermark") {
		p.HighWatermark = rapid.Int64().Draw(t, "high watermark")
	}
	return p
}

func drawNodes(t *rapid.T) []NodeEndpoint {
	var out []NodeEndpoint
	for range rapid.IntRange(0, 3).Draw(t, "nodes") {
		out = append(out, NodeEndpoint{ID: rapid.Int32().Draw(t, "node"), Host: drawName(t), Port: rapid.Int32().Draw(t, "port"), Rack: drawText(t, "rack")})
	}
	return out
}

// drawLeader never draws the protocol's default, -1 and -1, which kmsg cannot
// tell from a field that is not there.
func drawLeader(t *rapid.T) *Leader {
	if rapid.Bool().Draw(t, "no leader") {
		return nil
	}
	return &Leader{ID: rapid.Int32Range(0, math.MaxInt32).Draw(t, "leader"), Epoch: rapid.Int32().Draw(t, "epoch")}
}

func drawEpochEnd(t *rapid.T) *EpochEnd {
	if rapid.Bool().Draw(t, "no epoch end") {
		return nil
	}
	return &EpochEnd{Epoch: rapid.Int32Range(0, math.MaxInt32).Draw(t, "epoch"), End: rapid.Int64().Draw(t, "end")}
}

func drawProduceResponse(t *rapid.T) *ProduceResponse {
	r := &ProduceResponse{ThrottleMs: rapid.Int32().Draw(t, "throttle"), Nodes: drawNodes(t)}
	for range rapid.IntRange(0, 3).Draw(t, "topics") {
		topic := ProduceTopicResult{Name: drawName(t), ID: drawID(t)}
		for range rapid.IntRange(0, 3).Draw(t, "partitions") {
			p := ProducePartitionResult{
				Index: rapid.Int32().Draw(t, "index"), Code: rapid.Int16().Draw(t, "code"),
				BaseOffset: rapid.Int64().Draw(t, "base"), LogAppendTime: rapid.Int64().Draw(t, "time"), LogStart: rapid.Int64().Draw(t, "start"),
				ErrorMessage: drawName(t), CurrentLeader: drawLeader(t),
			}
			for range rapid.IntRange(0, 3).Draw(t, "record errors") {
				p.RecordErrors = append(p.RecordErrors, RecordError{Index: rapid.Int32().Draw(t, "record"), Message: drawName(t)})
			}
			topic.Partitions = append(topic.Partitions, p)
		}
		r.Topics = append(r.Topics, topic)
	}
	return r
}

func drawFetchResponse(t *rapid.T) *FetchResponse {
	r := &FetchResponse{ThrottleMs: rapid.Int32().Draw(t, "throttle"), Code: rapid.Int16().Draw(t, "code"), SessionID: rapid.Int32().Draw(t, "session"), Nodes: drawNodes(t)}
	for range rapid.IntRange(0, 3).Draw(t, "topics") {
		topic := FetchTopicResult{Name: drawName(t), ID: drawID(t)}
		for range rapid.IntRange(0, 3).Draw(t, "partitions") {
			p := FetchPartitionResult{
				Index: rapid.Int32().Draw(t, "index"), Code: rapid.Int16().Draw(t, "code"),
				HighWatermark: rapid.Int64().Draw(t, "hw"), LastStable: rapid.Int64().Draw(t, "lso"), LogStart: rapid.Int64().Draw(t, "start"),
				Diverging: drawEpochEnd(t), CurrentLeader: drawLeader(t), Snapshot: drawEpochEnd(t),
				PreferredReplica: rapid.Int32().Draw(t, "preferred"),
				Bytes:            append([]byte{}, drawRecords(t)...),
			}
			if rapid.Bool().Draw(t, "aborted") {
				p.Aborted = []AbortedTxn{}
				for range rapid.IntRange(0, 3).Draw(t, "aborted count") {
					p.Aborted = append(p.Aborted, AbortedTxn{ProducerID: rapid.Int64().Draw(t, "pid"), FirstOffset: rapid.Int64().Draw(t, "first")})
				}
			}
			topic.Partitions = append(topic.Partitions, p)
		}
		r.Topics = append(r.Topics, topic)
	}
	return r
}

// sampleProduce is a request of one topic with n partitions of size bytes each.
func sampleProduce(version int16, n, size int) []byte {
	req := kmsg.NewPtrProduceRequest()
	req.Version = version
	req.Acks, req.TimeoutMillis = -1, 30000
	topic := kmsg.NewProduceRequestTopic()
	topic.Topic, topic.TopicID = "orders", [16]byte{1, 2, 3}
	for i := range n {
		p := kmsg.NewProduceRequestTopicPartition()
		p.Partition, p.Records = int32(i), make([]byte, size)
		topic.Partitions = append(topic.Partitions, p)
	}
	req.Topics = append(req.Topics, topic)
	return req.AppendTo(nil)
}

// sampleFetch is a request of one topic with n partitions.
func sampleFetch(version int16, n int) []byte {
	req := kmsg.NewPtrFetchRequest()
	req.Version = version
	req.MaxWaitMillis, req.MinBytes, req.MaxBytes = 500, 1, 50<<20
	topic := kmsg.NewFetchRequestTopic()
	topic.Topic, topic.TopicID = "orders", [16]byte{1, 2, 3}
	for i := range n {
		p := kmsg.NewFetchRequestTopicPartition()
		p.Partition, p.FetchOffset, p.PartitionMaxBytes = int32(i), rand.Int64N(1<<40), 1<<20
		topic.Partitions = append(topic.Partitions, p)
	}
	req.Topics = append(req.Topics, topic)
	return req.AppendTo(nil)
}
