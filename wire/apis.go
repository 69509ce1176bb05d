package wire

import "slices"

// Keys of the APIs in the table.
const (
	KeyProduce                     int16 = 0
	KeyFetch                       int16 = 1
	KeyListOffsets                 int16 = 2
	KeyMetadata                    int16 = 3
	KeyOffsetCommit                int16 = 8
	KeyOffsetFetch                 int16 = 9
	KeyFindCoordinator             int16 = 10
	KeyJoinGroup                   int16 = 11
	KeyHeartbeat                   int16 = 12
	KeyLeaveGroup                  int16 = 13
	KeySyncGroup                   int16 = 14
	KeyDescribeGroups              int16 = 15
	KeyListGroups                  int16 = 16
	KeyAPIVersions                 int16 = 18
	KeyCreateTopics                int16 = 19
	KeyDeleteTopics                int16 = 20
	KeyDeleteRecords               int16 = 21
	KeyInitProducerID              int16 = 22
	KeyOffsetForLeaderEpoch        int16 = 23
	KeyDescribeConfigs             int16 = 32
	KeyAlterConfigs                int16 = 33
	KeyAlterReplicaLogDirs         int16 = 34
	KeyDescribeLogDirs             int16 = 35
	KeyCreatePartitions            int16 = 37
	KeyDeleteGroups                int16 = 42
	KeyElectLeaders                int16 = 43
	KeyIncrementalAlterConfigs     int16 = 44
	KeyAlterPartitionReassignments int16 = 45
	KeyListPartitionReassignments  int16 = 46
	KeyOffsetDelete                int16 = 47
	KeyDescribeClientQuotas        int16 = 48
	KeyAlterClientQuotas           int16 = 49
	KeyDescribeCluster             int16 = 60
	KeyDescribeProducers           int16 = 61
	KeyListConfigResources         int16 = 74
	KeyConsumerGroupHeartbeat      int16 = 68
	KeyConsumerGroupDescribe       int16 = 69
	KeyDescribeTopicPartitions     int16 = 75
	KeyGetTelemetrySubscriptions   int16 = 71
	KeyPushTelemetry               int16 = 72
)

// neverFlexible is for APIs that have only classic versions.
const neverFlexible int16 = 1 << 14

// API is one row of the table: what we speak of one request kind.
type API struct {
	Key          int16
	Name         string
	Min, Max     int16 // versions served, both inclusive
	FlexibleFrom int16 // first version with compact lengths and tagged fields

	shape []field // what the body looks like, for the walk of decode.go; nil: parsed by this package
}

// APIs is the one table of what we speak (W2): dispatch, header parsing and
// the ApiVersions answer all read it. The old ends are kept because clients
// switch features on by exact old versions; the new ends are Kafka 4.3's.
// It must not be changed at run time.
var APIs = []API{
	{Key: KeyProduce, Name: "Produce", Min: 0, Max: 13, FlexibleFrom: 9},
	{Key: KeyFetch, Name: "Fetch", Min: 0, Max: 18, FlexibleFrom: 12},
	{Key: KeyListOffsets, Name: "ListOffsets", Min: 0, Max: 11, FlexibleFrom: 6, shape: listOffsetsShape},
	{Key: KeyMetadata, Name: "Metadata", Min: 0, Max: 13, FlexibleFrom: 9, shape: metadataShape},
	{Key: KeyOffsetCommit, Name: "OffsetCommit", Min: 0, Max: 10, FlexibleFrom: 8, shape: offsetCommitShape},
	{Key: KeyOffsetFetch, Name: "OffsetFetch", Min: 0, Max: 10, FlexibleFrom: 6, shape: offsetFetchShape},
	{Key: KeyFindCoordinator, Name: "FindCoordinator", Min: 0, Max: 6, FlexibleFrom: 3, shape: findCoordinatorShape},
	{Key: KeyJoinGroup, Name: "JoinGroup", Min: 0, Max: 9, FlexibleFrom: 6, shape: joinGroupShape},
	{Key: KeyHeartbeat, Name: "Heartbeat", Min: 0, Max: 4, FlexibleFrom: 4, shape: heartbeatShape},
	{Key: KeyLeaveGroup, Name: "LeaveGroup", Min: 0, Max: 5, FlexibleFrom: 4, shape: leaveGroupShape},
	{Key: KeySyncGroup, Name: "SyncGroup", Min: 0, Max: 5, FlexibleFrom: 4, shape: syncGroupShape},
	{Key: KeyDescribeGroups, Name: "DescribeGroups", Min: 0, Max: 6, FlexibleFrom: 5, shape: describeGroupsShape},
	{Key: KeyListGroups, Name: "ListGroups", Min: 0, Max: 5, FlexibleFrom: 3, shape: listGroupsShape},
	{Key: KeyAPIVersions, Name: "ApiVersions", Min: 0, Max: 4, FlexibleFrom: 3, shape: apiVersionsShape},
	{Key: KeyCreateTopics, Name: "CreateTopics", Min: 0, Max: 7, FlexibleFrom: 5, shape: createTopicsShape},
	{Key: KeyDeleteTopics, Name: "DeleteTopics", Min: 0, Max: 6, FlexibleFrom: 4, shape: deleteTopicsShape},
	{Key: KeyDeleteRecords, Name: "DeleteRecords", Min: 0, Max: 2, FlexibleFrom: 2, shape: deleteRecordsShape},
	{Key: KeyInitProducerID, Name: "InitProducerId", Min: 0, Max: 5, FlexibleFrom: 2, shape: initProducerIDShape},
	{Key: KeyOffsetForLeaderEpoch, Name: "OffsetForLeaderEpoch", Min: 0, Max: 4, FlexibleFrom: 4, shape: offsetForLeaderEpochShape},
	{Key: KeyDescribeConfigs, Name: "DescribeConfigs", Min: 0, Max: 4, FlexibleFrom: 4, shape: describeConfigsShape},
	{Key: KeyAlterConfigs, Name: "AlterConfigs", Min: 0, Max: 2, FlexibleFrom: 2, shape: alterConfigsShape},
	{Key: KeyAlterReplicaLogDirs, Name: "AlterReplicaLogDirs", Min: 0, Max: 2, FlexibleFrom: 2, shape: alterReplicaLogDirsShape},
	{Key: KeyDescribeLogDirs, Name: "DescribeLogDirs", Min: 0, Max: 5, FlexibleFrom: 2, shape: describeLogDirsShape},
	{Key: KeyCreatePartitions, Name: "CreatePartitions", Min: 0, Max: 3, FlexibleFrom: 2, shape: createPartitionsShape},
	{Key: KeyDeleteGroups, Name: "DeleteGroups", Min: 0, Max: 2, FlexibleFrom: 2, shape: deleteGroupsShape},
	{Key: KeyElectLeaders, Name: "ElectLeaders", Min: 0, Max: 2, FlexibleFrom: 2, shape: electLeadersShape},
	{Key: KeyIncrementalAlterConfigs, Name: "IncrementalAlterConfigs", Min: 0, Max: 1, FlexibleFrom: 1, shape: incrementalAlterConfigsShape},
	{Key: KeyAlterPartitionReassignments, Name: "AlterPartitionReassignments", Min: 0, Max: 1, FlexibleFrom: 0, shape: alterPartitionReassignmentsShape},
	{Key: KeyListPartitionReassignments, Name: "ListPartitionReassignments", Min: 0, Max: 0, FlexibleFrom: 0, shape: listPartitionReassignmentsShape},
	{Key: KeyOffsetDelete, Name: "OffsetDelete", Min: 0, Max: 0, FlexibleFrom: neverFlexible, shape: offsetDeleteShape},
	{Key: KeyDescribeClientQuotas, Name: "DescribeClientQuotas", Min: 0, Max: 1, FlexibleFrom: 1, shape: describeClientQuotasShape},
	{Key: KeyAlterClientQuotas, Name: "AlterClientQuotas", Min: 0, Max: 1, FlexibleFrom: 1, shape: alterClientQuotasShape},
	{Key: KeyDescribeCluster, Name: "DescribeCluster", Min: 0, Max: 2, FlexibleFrom: 0, shape: describeClusterShape},
	{Key: KeyDescribeProducers, Name: "DescribeProducers", Min: 0, Max: 0, FlexibleFrom: 0, shape: describeProducersShape},
	{Key: KeyListConfigResources, Name: "ListConfigResources", Min: 0, Max: 1, FlexibleFrom: 0, shape: listConfigResourcesShape},
	{Key: KeyConsumerGroupHeartbeat, Name: "ConsumerGroupHeartbeat", Min: 0, Max: 1, FlexibleFrom: 0, shape: consumerGroupHeartbeatShape},
	{Key: KeyConsumerGroupDescribe, Name: "ConsumerGroupDescribe", Min: 0, Max: 1, FlexibleFrom: 0, shape: consumerGroupDescribeShape},
	{Key: KeyGetTelemetrySubscriptions, Name: "GetTelemetrySubscriptions", Min: 0, Max: 0, FlexibleFrom: 0, shape: getTelemetrySubscriptionsShape},
	{Key: KeyPushTelemetry, Name: "PushTelemetry", Min: 0, Max: 0, FlexibleFrom: 0, shape: pushTelemetryShape},
	{Key: KeyDescribeTopicPartitions, Name: "DescribeTopicPartitions", Min: 0, Max: 0, FlexibleFrom: 0, shape: describeTopicPartitionsShape},
}

// byKey finds a row by its key without a map look-up on the hot path.
var byKey = func() []*API {
	t := make([]*API, slices.MaxFunc(APIs, func(a, b API) int { return int(a.Key) - int(b.Key) }).Key+1)
	for i := range APIs {
		t[APIs[i].Key] = &APIs[i]
	}
	return t
}()

// Lookup finds the row of a key; false if we do not know the API at all.
func Lookup(key int16) (API, bool) {
	if key < 0 || int(key) >= len(byKey) || byKey[key] == nil {
		return API{}, false
	}
	return *byKey[key], true
}

// Serves says whether the version is within the row's range.
func (a API) Serves(version int16) bool { return version >= a.Min && version <= a.Max }

// Flexible says whether the version uses compact lengths and tagged fields.
func (a API) Flexible(version int16) bool { return version >= a.FlexibleFrom }
