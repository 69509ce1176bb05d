package wire

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/twmb/franz-go/pkg/kmsg"
	"pgregory.net/rapid"
)

// noTags leaves out what kmsg keeps of unknown tagged fields.
var noTags = cmpopts.IgnoreTypes(kmsg.Tags{})

// Claim: every Produce request that kmsg can write, in every version, we read
// as it was meant, also into a request that held another one before.
// Method: random requests; compare field by field.
func TestProduceRequestsAreReadAsKmsgWritesThem(t *testing.T) {
	for version := int16(0); version <= 13; version++ {
		var got ProduceRequest // used again and again, as a connection does
		t.Run(fmt.Sprintf("v%d", version), rapid.MakeCheck(func(t *rapid.T) {
			want := drawProduceRequest(t, version)
			if err := got.Parse(want.AppendTo(nil), version); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, produceAsKmsg(&got), noTags, cmpopts.EquateEmpty()); diff != "" {
				t.Fatal(diff)
			}
			requireNullsKept(t, want, &got)
		}))
	}
}

func produceAsKmsg(r *ProduceRequest) *kmsg.ProduceRequest {
	out := kmsg.NewPtrProduceRequest()
	out.Version, out.TransactionID, out.Acks, out.TimeoutMillis = r.Version, r.TransactionalID, r.Acks, r.TimeoutMs
	for _, t := range r.Topics {
		topic := kmsg.ProduceRequestTopic{Topic: t.Name, TopicID: t.ID}
		for _, p := range t.Partitions {
			topic.Partitions = append(topic.Partitions, kmsg.ProduceRequestTopicPartition{Partition: p.Index, Records: p.Records})
		}
		out.Topics = append(out.Topics, topic)
	}
	return out
}

func requireNullsKept(t *rapid.T, want *kmsg.ProduceRequest, got *ProduceRequest) {
	for i, topic := range want.Topics {
		for j, p := range topic.Partitions {
			if (p.Records == nil) != (got.Topics[i].Partitions[j].Records == nil) {
				t.Fatalf("records of topic %d partition %d: null %v became null %v", i, j, p.Records == nil, p.Records != nil)
			}
		}
	}
}

// Claim: every Produce answer we write, in every version, kmsg reads as it was
// meant, less what that version does not have.
// Method: random answers; compare with the expected kmsg answer.
func TestProduceAnswersAreReadByKmsg(t *testing.T) {
	for version := int16(0); version <= 13; version++ {
		t.Run(fmt.Sprintf("v%d", version), rapid.MakeCheck(func(t *rapid.T) {
			r := drawProduceResponse(t)
			got := kmsg.NewPtrProduceResponse()
			got.Version = version
			body := r.AppendTo(nil, version)
			if err := got.ReadFrom(body); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(produceAnswerAsKmsg(r, version), got, noTags, cmpopts.EquateEmpty()); diff != "" {
				t.Fatal(diff)
			}
			if again := got.AppendTo(nil); string(again) != string(body) {
				t.Fatalf("kmsg writes it differently:\n%x\n%x", body, again)
			}
		}))
	}
}

func produceAnswerAsKmsg(r *ProduceResponse, version int16) *kmsg.ProduceResponse {
	out := kmsg.NewPtrProduceResponse()
	out.Version = version
	if version >= 1 {
		out.ThrottleMillis = r.ThrottleMs
	}
	for _, t := range r.Topics {
		topic := kmsg.NewProduceResponseTopic()
		if topic.Topic = t.Name; version >= 13 {
			topic.Topic, topic.TopicID = "", t.ID
		}
		for _, p := range t.Partitions {
			k := kmsg.NewProduceResponseTopicPartition()
			k.Partition, k.ErrorCode, k.BaseOffset = p.Index, p.Code, p.BaseOffset
			if version >= 2 {
				k.LogAppendTime = p.LogAppendTime
			}
			if version >= 5 {
				k.LogStartOffset = p.LogStart
			}
			if version >= 8 {
				k.ErrorMessage = orNull(p.ErrorMessage)
				for _, e := range p.RecordErrors {
					k.ErrorRecords = append(k.ErrorRecords, kmsg.ProduceResponseTopicPartitionErrorRecord{RelativeOffset: e.Index, ErrorMessage: orNull(e.Message)})
				}
			}
			if version >= 10 && p.CurrentLeader != nil {
				k.CurrentLeader.LeaderID, k.CurrentLeader.LeaderEpoch = p.CurrentLeader.ID, p.CurrentLeader.Epoch
			}
			topic.Partitions = append(topic.Partitions, k)
		}
		out.Topics = append(out.Topics, topic)
	}
	if version >= 10 {
		for _, n := range r.Nodes {
			out.Brokers = append(out.Brokers, kmsg.ProduceResponseBroker{NodeID: n.ID, Host: n.Host, Port: n.Port, Rack: n.Rack})
		}
	}
	return out
}

func orNull(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// Claim: records are not copied, and parsing into a used request allocates
// nothing.
// Method: compare addresses; count allocations.
func TestProduceParsingCopiesAndAllocatesNothing(t *testing.T) {
	for _, version := range []int16{3, 9, 13} {
		body := sampleProduce(version, 10, 100)
		var r ProduceRequest
		if err := r.Parse(body, version); err != nil {
			t.Fatal(err)
		}
		last := r.Topics[0].Partitions[9].Records
		if tail := len(body) - 100; version < 9 && &last[0] != &body[tail] {
			t.Errorf("v%d: records were copied", version)
		}
		if n := testing.AllocsPerRun(100, func() { _ = r.Parse(body, version) }); n != 0 {
			t.Errorf("v%d: %v allocations", version, n)
		}
	}
}

func BenchmarkProduceParse(b *testing.B) {
	for _, c := range []struct {
		version           int16
		partitions, bytes int
	}{{9, 1, 170}, {9, 100, 1024}, {13, 1, 16 << 10}, {3, 1, 170}} {
		b.Run(fmt.Sprintf("version=%d/partitions=%d/batch=%d", c.version, c.partitions, c.bytes), func(b *testing.B) {
			body := sampleProduce(c.version, c.partitions, c.bytes)
			var r ProduceRequest
			b.ReportAllocs()
			b.SetBytes(int64(len(body)))
			for b.Loop() {
				if err := r.Parse(body, c.version); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkProduceAnswer(b *testing.B) {
	for _, n := range []int{1, 100} {
		b.Run(fmt.Sprintf("version=9/partitions=%d", n), func(b *testing.B) {
			r := &ProduceResponse{Topics: []ProduceTopicResult{{Name: "orders", Partitions: make([]ProducePartitionResult, n)}}}
			var dst []byte
			b.ReportAllocs()
			for b.Loop() {
				dst = r.AppendTo(dst[:0], 9)
			}
		})
	}
}
