package broker

import (
	"github.com/twmb/franz-go/pkg/kmsg"

	"millrace/wire"
)

// handler serves one API that goes through kmsg. It returns the answer with its
// version set, or nil to close the connection without one. Neither the request
// nor strings and bytes in it may be kept after the answer.
type handler func(b *Broker, rc *requestContext, req kmsg.Request) kmsg.Response

// handlers is the one dispatch table, with the keys of wire.APIs. Produce and
// Fetch are not in it: they do not go through kmsg, and conn.go calls them
// itself. What is in neither is neither served nor advertised (W2).
var handlers = map[int16]handler{
	wire.KeyListOffsets:                 (*Broker).handleListOffsets,
	wire.KeyMetadata:                    (*Broker).handleMetadata,
	wire.KeyOffsetCommit:                (*Broker).handleOffsetCommit,
	wire.KeyOffsetFetch:                 (*Broker).handleOffsetFetch,
	wire.KeyFindCoordinator:             (*Broker).handleFindCoordinator,
	wire.KeyJoinGroup:                   (*Broker).handleJoinGroup,
	wire.KeyHeartbeat:                   (*Broker).handleHeartbeat,
	wire.KeyLeaveGroup:                  (*Broker).handleLeaveGroup,
	wire.KeySyncGroup:                   (*Broker).handleSyncGroup,
	wire.KeyConsumerGroupHeartbeat:      (*Broker).handleConsumerGroupHeartbeat,
	wire.KeyConsumerGroupDescribe:       (*Broker).handleConsumerGroupDescribe,
	wire.KeyDescribeGroups:              (*Broker).handleDescribeGroups,
	wire.KeyListGroups:                  (*Broker).handleListGroups,
	wire.KeyCreateTopics:                (*Broker).handleCreateTopics,
	wire.KeyDeleteTopics:                (*Broker).handleDeleteTopics,
	wire.KeyDeleteRecords:               (*Broker).handleDeleteRecords,
	wire.KeyInitProducerID:              (*Broker).handleInitProducerID,
	wire.KeyOffsetForLeaderEpoch:        (*Broker).handleOffsetForLeaderEpoch,
	wire.KeyDescribeConfigs:             (*Broker).handleDescribeConfigs,
	wire.KeyAlterConfigs:                (*Broker).handleAlterConfigs,
	wire.KeyAlterReplicaLogDirs:         (*Broker).handleAlterReplicaLogDirs,
	wire.KeyDescribeLogDirs:             (*Broker).handleDescribeLogDirs,
	wire.KeyCreatePartitions:            (*Broker).handleCreatePartitions,
	wire.KeyDeleteGroups:                (*Broker).handleDeleteGroups,
	wire.KeyElectLeaders:                (*Broker).handleElectLeaders,
	wire.KeyIncrementalAlterConfigs:     (*Broker).handleIncrementalAlterConfigs,
	wire.KeyAlterPartitionReassignments: (*Broker).handleAlterPartitionReassignments,
	wire.KeyListPartitionReassignments:  (*Broker).handleListPartitionReassignments,
	wire.KeyOffsetDelete:                (*Broker).handleOffsetDelete,
	wire.KeyDescribeClientQuotas:        (*Broker).handleDescribeClientQuotas,
	wire.KeyAlterClientQuotas:           (*Broker).handleAlterClientQuotas,
	wire.KeyDescribeCluster:             (*Broker).handleDescribeCluster,
	wire.KeyDescribeProducers:           (*Broker).handleDescribeProducers,
	wire.KeyListConfigResources:         (*Broker).handleListConfigResources,
	wire.KeyDescribeTopicPartitions:     (*Broker).handleDescribeTopicPartitions,
	wire.KeyGetTelemetrySubscriptions:   (*Broker).handleGetTelemetrySubscriptions,
	wire.KeyPushTelemetry:               (*Broker).handlePushTelemetry,
}

// byKey is handlers as an array, so that a request costs no map look-up.
var byKey = func() (table []handler) {
	for key, h := range handlers {
		for len(table) <= int(key) {
			table = append(table, nil)
		}
		table[key] = h
	}
	return table
}()

func handlerOf(key int16) handler {
	if key < 0 || int(key) >= len(byKey) {
		return nil
	}
	return byKey[key]
}
