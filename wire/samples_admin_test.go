package wire

import "github.com/twmb/franz-go/pkg/kmsg"

// sampleAdmin fills the admin requests, so that every count in them is at work.
func sampleAdmin(req kmsg.Request) {
	name, indexes := "orders", []int32{0, 1}
	switch r := req.(type) {
	case *kmsg.DeleteRecordsRequest:
		r.Topics = []kmsg.DeleteRecordsRequestTopic{{Topic: name, Partitions: make([]kmsg.DeleteRecordsRequestTopicPartition, 2)}}
	case *kmsg.OffsetForLeaderEpochRequest:
		r.Topics = []kmsg.OffsetForLeaderEpochRequestTopic{{Topic: name, Partitions: make([]kmsg.OffsetForLeaderEpochRequestTopicPartition, 2)}}
	case *kmsg.AlterConfigsRequest:
		r.Resources = []kmsg.AlterConfigsRequestResource{{ResourceName: name, Configs: []kmsg.AlterConfigsRequestResourceConfig{{Name: name, Value: &name}, {Name: name}}}}
	case *kmsg.IncrementalAlterConfigsRequest:
		r.Resources = []kmsg.IncrementalAlterConfigsRequestResource{{ResourceName: name, Configs: []kmsg.IncrementalAlterConfigsRequestResourceConfig{{Name: name, Value: &name}, {Name: name}}}}
	case *kmsg.AlterReplicaLogDirsRequest:
		topics := []kmsg.AlterReplicaLogDirsRequestDirTopic{{Topic: name, Partitions: indexes}, {Topic: name}}
		r.Dirs = []kmsg.AlterReplicaLogDirsRequestDir{{Dir: name, Topics: topics}, {Dir: name}}
	case *kmsg.DescribeLogDirsRequest:
		r.Topics = []kmsg.DescribeLogDirsRequestTopic{{Topic: name, Partitions: indexes}}
	case *kmsg.CreatePartitionsRequest:
		r.Topics = []kmsg.CreatePartitionsRequestTopic{{Topic: name, Count: 3, Assignment: []kmsg.CreatePartitionsRequestTopicAssignment{{Replicas: indexes}}}, {Topic: name}}
	case *kmsg.ElectLeadersRequest:
		r.Topics = []kmsg.ElectLeadersRequestTopic{{Topic: name, Partitions: indexes}}
	case *kmsg.AlterPartitionAssignmentsRequest:
		r.Topics = []kmsg.AlterPartitionAssignmentsRequestTopic{{Topic: name, Partitions: []kmsg.AlterPartitionAssignmentsRequestTopicPartition{{Replicas: indexes}, {}}}}
	case *kmsg.ListPartitionReassignmentsRequest:
		r.Topics = []kmsg.ListPartitionReassignmentsRequestTopic{{Topic: name, Partitions: indexes}}
	case *kmsg.DescribeProducersRequest:
		r.Topics = []kmsg.DescribeProducersRequestTopic{{Topic: name, Partitions: indexes}}
	case *kmsg.DescribeClientQuotasRequest:
		r.Components = []kmsg.DescribeClientQuotasRequestComponent{{EntityType: name, Match: &name}, {EntityType: name, MatchType: 1}}
	case *kmsg.AlterClientQuotasRequest:
		r.Entries = []kmsg.AlterClientQuotasRequestEntry{{
			Entity: []kmsg.AlterClientQuotasRequestEntryEntity{{Type: name, Name: &name}, {Type: name}},
			Ops:    []kmsg.AlterClientQuotasRequestEntryOp{{Key: name, Value: 1}, {Key: name, Remove: true}},
		}}
	case *kmsg.ListConfigResourcesRequest:
		r.ResourceTypes = []int8{2, 4}
	case *kmsg.PushTelemetryRequest:
		r.Metrics = []byte(name)
	case *kmsg.DescribeTopicPartitionsRequest:
		r.Topics = []kmsg.DescribeTopicPartitionsRequestTopic{{Topic: name}, {Topic: name}}
		r.Cursor = &kmsg.DescribeTopicPartitionsRequestCursor{Topic: name, Partition: 1}
	}
}
