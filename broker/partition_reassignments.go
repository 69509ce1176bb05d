package broker

import (
	"fmt"
	"slices"

	"github.com/twmb/franz-go/pkg/kmsg"

	"millrace/coord"
	"millrace/wire"
)

// handleAlterPartitionReassignments serves AlterPartitionReassignments. With one broker
// the only assignment there can be is the one there is: asking for it is done at
// once, and nothing is ever under way that could be cancelled.
func (b *Broker) handleAlterPartitionReassignments(_ *requestContext, request kmsg.Request) kmsg.Response {
	req := request.(*kmsg.AlterPartitionAssignmentsRequest)
	resp := req.ResponseKind().(*kmsg.AlterPartitionAssignmentsResponse)
	resp.AllowReplicationFactorChange = req.AllowReplicationFactorChange
	img := b.coord.Image()
	for i := range req.Topics {
		asked := &req.Topics[i]
		t := kmsg.NewAlterPartitionAssignmentsResponseTopic()
		t.Topic = asked.Topic
		for j := range asked.Partitions {
			p := kmsg.NewAlterPartitionAssignmentsResponseTopicPartition()
			p.Partition = asked.Partitions[j].Partition
			var message string
			if p.ErrorCode, message = reassign(img, asked.Topic, &asked.Partitions[j], req.AllowReplicationFactorChange); message != "" {
				p.ErrorMessage = &message
			}
			t.Partitions = append(t.Partitions, p)
		}
		resp.Topics = append(resp.Topics, t)
	}
	return resp
}

func reassign(img *coord.Image, topic string, asked *kmsg.AlterPartitionAssignmentsRequestTopicPartition, factorMayChange bool) (code int16, message string) {
	p, code, message := findPartition(img, topic, asked.Partition)
	if code != wire.ErrNone {
		return code, message
	}
	refuse := func(code int16, format string, args ...any) (int16, string) {
		return code, fmt.Sprintf("partition %d of topic %q: ", asked.Partition, topic) + fmt.Sprintf(format, args...)
	}
	if asked.Replicas == nil {
		return refuse(wire.ErrNoReassignmentInProgress, "no reassignment is in progress that could be cancelled")
	}
	if len(asked.Replicas) == 0 {
		return refuse(wire.ErrInvalidReplicaAssignment, "the assignment is empty")
	}
	for i, id := range asked.Replicas {
		if slices.Contains(asked.Replicas[:i], id) {
			return refuse(wire.ErrInvalidReplicaAssignment, "the assignment names broker %d twice", id)
		}
		if img.Broker(id) == nil {
			return refuse(wire.ErrInvalidReplicaAssignment, "the assignment names broker %d, which is not alive", id)
		}
	}
	if now := len(p.Replicas); !factorMayChange && len(asked.Replicas) != now {
		return refuse(wire.ErrInvalidReplicationFactor, "the assignment has %d replicas where there are %d, and the request forbids a change of their number", len(asked.Replicas), now)
	}
	if !slices.Equal(asked.Replicas, p.Replicas) {
		// Not with one broker: all its assignments are alike.
		return refuse(wire.ErrInvalidReplicaAssignment, "replicas cannot be moved: clusters are not built yet")
	}
	return wire.ErrNone, ""
}

// handleListPartitionReassignments serves ListPartitionReassignments: none is ever
// under way.
func (b *Broker) handleListPartitionReassignments(_ *requestContext, request kmsg.Request) kmsg.Response {
	req := request.(*kmsg.ListPartitionReassignmentsRequest)
	return req.ResponseKind()
}
