package wire

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/twmb/franz-go/pkg/kmsg"
	"pgregory.net/rapid"
)

// Claim: every Fetch request that kmsg can write, in every version, we read as
// it was meant, also into a request that held another one before.
// Method: random requests; compare field by field.
func TestFetchRequestsAreReadAsKmsgWritesThem(t *testing.T) {
	for version := int16(0); version <= 18; version++ {
		var got FetchRequest // used again and again, as a connection does
		t.Run(fmt.Sprintf("v%d", version), rapid.MakeCheck(func(t *rapid.T) {
			want := drawFetchRequest(t, version)
			if err := got.Parse(want.AppendTo(nil), version); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, fetchAsKmsg(&got), noTags, cmpopts.EquateEmpty()); diff != "" {
				t.Fatal(diff)
			}
		}))
	}
}

func fetchAsKmsg(r *FetchRequest) *kmsg.FetchRequest {
	out := kmsg.NewPtrFetchRequest()
	out.Version, out.ClusterID = r.Version, r.ClusterID
	if r.Version >= 15 {
		out.ReplicaState.ID, out.ReplicaState.Epoch = r.ReplicaID, r.ReplicaEpoch
	} else {
		out.ReplicaID = r.ReplicaID
	}
	out.MaxWaitMillis, out.MinBytes, out.MaxBytes, out.IsolationLevel = r.MaxWaitMs, r.MinBytes, r.MaxBytes, r.Isolation
	out.SessionID, out.SessionEpoch, out.Rack = r.SessionID, r.SessionEpoch, r.Rack
	for _, t := range r.Topics {
		topic := kmsg.FetchRequestTopic{Topic: t.Name, TopicID: t.ID}
		for _, p := range t.Partitions {
			topic.Partitions = append(topic.Partitions, kmsg.FetchRequestTopicPartition{
				Partition: p.Index, CurrentLeaderEpoch: p.CurrentEpoch, FetchOffset: p.Offset, LastFetchedEpoch: p.LastFetchedEpoch,
				LogStartOffset: p.LogStart, PartitionMaxBytes: p.MaxBytes, ReplicaDirectoryID: p.DirectoryID, HighWatermark: p.HighWatermark,
			})
		}
		out.Topics = append(out.Topics, topic)
	}
	for _, f := range r.Forgotten {
		out.ForgottenTopics = append(out.ForgottenTopics, kmsg.FetchRequestForgottenTopic{Topic: f.Name, TopicID: f.ID, Partitions: f.Partitions})
	}
	return out
}

// Claim: every Fetch answer we write, in every version, kmsg reads as it was
// meant, less what that version does not have, and would write the same bytes.
// Method: random answers; compare with the expected kmsg answer.
func TestFetchAnswersAreReadByKmsg(t *testing.T) {
	for version := int16(0); version <= 18; version++ {
		t.Run(fmt.Sprintf("v%d", version), rapid.MakeCheck(func(t *rapid.T) {
			r := drawFetchResponse(t)
			got := kmsg.NewPtrFetchResponse()
			got.Version = version
			body := r.AppendTo(nil, version)
			if err := got.ReadFrom(body); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(fetchAnswerAsKmsg(r, version), got, noTags, cmpopts.EquateEmpty()); diff != "" {
				t.Fatal(diff)
			}
			if again := got.AppendTo(nil); string(again) != string(body) {
				t.Fatalf("kmsg writes it differently:\n%x\n%x", body, again)
			}
		}))
	}
}

func fetchAnswerAsKmsg(r *FetchResponse, version int16) *kmsg.FetchResponse {
	out := kmsg.NewPtrFetchResponse()
	out.Version = version
	if version >= 1 {
		out.ThrottleMillis = r.ThrottleMs
	}
	if version >= 7 {
		out.ErrorCode, out.SessionID = r.Code, r.SessionID
	}
	for _, t := range r.Topics {
		topic := kmsg.NewFetchResponseTopic()
		if topic.Topic = t.Name; version >= 13 {
			topic.Topic, topic.TopicID = "", t.ID
		}
		for i := range t.Partitions {
			topic.Partitions = append(topic.Partitions, fetchPartitionAsKmsg(&t.Partitions[i], version))
		}
		out.Topics = append(out.Topics, topic)
	}
	if version >= 16 {
		for _, n := range r.Nodes {
			out.Brokers = append(out.Brokers, kmsg.FetchResponseBroker{NodeID: n.ID, Host: n.Host, Port: n.Port, Rack: n.Rack})
		}
	}
	return out
}

func fetchPartitionAsKmsg(p *FetchPartitionResult, version int16) kmsg.FetchResponseTopicPartition {
	k := kmsg.NewFetchResponseTopicPartition()
	k.Partition, k.ErrorCode, k.HighWatermark, k.RecordBatches = p.Index, p.Code, p.HighWatermark, p.Bytes
	if version >= 4 {
		k.LastStableOffset = p.LastStable
		for _, a := range p.Aborted {
			k.AbortedTransactions = append(k.AbortedTransactions, kmsg.FetchResponseTopicPartitionAbortedTransaction{ProducerID: a.ProducerID, FirstOffset: a.FirstOffset})
		}
	}
	if version >= 5 {
		k.LogStartOffset = p.LogStart
	}
	if version >= 11 {
		k.PreferredReadReplica = p.PreferredReplica
	}
	if version >= 12 {
		if d := p.Diverging; d != nil {
			k.DivergingEpoch.Epoch, k.DivergingEpoch.EndOffset = d.Epoch, d.End
		}
		if l := p.CurrentLeader; l != nil {
			k.CurrentLeader.LeaderID, k.CurrentLeader.LeaderEpoch = l.ID, l.Epoch
		}
		if s := p.Snapshot; s != nil {
			k.SnapshotID.Epoch, k.SnapshotID.EndOffset = s.Epoch, s.End
		}
	}
	return k
}

// Claim: parsing a Fetch request into a used one allocates nothing.
// Method: count allocations.
func TestFetchParsingAllocatesNothing(t *testing.T) {
	for _, version := range []int16{4, 11, 12, 18} {
		body := sampleFetch(version, 20)
		var r FetchRequest
		if n := testing.AllocsPerRun(100, func() { _ = r.Parse(body, version) }); n != 0 {
			t.Errorf("v%d: %v allocations", version, n)
		}
	}
}

func BenchmarkFetchParse(b *testing.B) {
	for _, n := range []int{1, 20} {
		b.Run(fmt.Sprintf("version=12/partitions=%d", n), func(b *testing.B) {
			body := sampleFetch(12, n)
			var r FetchRequest
			b.ReportAllocs()
			for b.Loop() {
				if err := r.Parse(body, 12); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
