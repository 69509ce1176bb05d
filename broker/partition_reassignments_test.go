package broker

import (
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"millrace/wire"
)

// Claim: reassigning to where the replicas are is done at once; everything else that
// one broker can be asked is refused with Kafka's code and a message; and none is ever
// listed.
// Method: a table in both versions.
func TestReassignmentsOfOneBroker(t *testing.T) {
	c := dialAdmin(t, adminBroker(t, ""), "")
	c.createTopic("t", 1)
	for version := int16(0); version <= 1; version++ {
		for _, try := range []struct {
			topic     string
			partition int32
			replicas  []int32
			fixed     bool // the replication factor may not change
			code      int16
			text      string
		}{
			{"t", 0, []int32{0}, false, 0, ""},
			{"t", 0, []int32{0}, true, 0, ""},
			{"t", 0, nil, false, wire.ErrNoReassignmentInProgress, "cancelled"},
			{"t", 0, []int32{}, false, wire.ErrInvalidReplicaAssignment, "empty"},
			{"t", 0, []int32{1}, false, wire.ErrInvalidReplicaAssignment, "broker 1"},
			{"t", 0, []int32{0, 1}, true, wire.ErrInvalidReplicaAssignment, "broker 1"},
			{"t", 0, []int32{0, 0}, false, wire.ErrInvalidReplicaAssignment, "broker 0 twice"},
			{"t", 1, []int32{0}, false, wire.ErrUnknownTopicOrPartition, "no partition 1"},
			{"t", -1, []int32{0}, false, wire.ErrUnknownTopicOrPartition, "no partition -1"},
			{"none", 0, []int32{0}, false, wire.ErrUnknownTopicOrPartition, `"none"`},
		} {
			req := kmsg.NewPtrAlterPartitionAssignmentsRequest()
			req.Version, req.AllowReplicationFactorChange = version, !try.fixed
			req.Topics = []kmsg.AlterPartitionAssignmentsRequestTopic{{Topic: try.topic, Partitions: []kmsg.AlterPartitionAssignmentsRequestTopicPartition{{Partition: try.partition, Replicas: try.replicas}}}}
			r := ask[*kmsg.AlterPartitionAssignmentsResponse](c, req)
			p := r.Topics[0].Partitions[0]
			if r.ErrorCode != 0 || p.ErrorCode != try.code || try.code != 0 && !strings.Contains(textOf(p.ErrorMessage), try.text) || try.code == 0 && p.ErrorMessage != nil {
				t.Errorf("v%d %v: %s %s", version, try, wire.ErrorName(p.ErrorCode), textOf(p.ErrorMessage))
			}
			if version == 1 && r.AllowReplicationFactorChange == try.fixed {
				t.Errorf("v1: %+v", r)
			}
		}
	}
	for _, topics := range [][]kmsg.ListPartitionReassignmentsRequestTopic{nil, {{Topic: "t", Partitions: []int32{0}}, {Topic: "none", Partitions: []int32{0}}}} {
		req := kmsg.NewPtrListPartitionReassignmentsRequest()
		req.Topics = topics
		if r := ask[*kmsg.ListPartitionReassignmentsResponse](c, req); r.ErrorCode != 0 || len(r.Topics) != 0 {
			t.Errorf("%+v", r)
		}
	}
}
