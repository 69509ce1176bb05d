package wire

import "github.com/twmb/franz-go/pkg/kmsg"

// sampleGroup fills a request of consumer groups with something of each field.
func sampleGroup(req kmsg.Request) {
	name, some := "orders", []byte("some bytes")
	switch r := req.(type) {
	case *kmsg.OffsetCommitRequest:
		r.Group, r.MemberID, r.InstanceID = name, name, &name
		p := kmsg.OffsetCommitRequestTopicPartition{Partition: 1, Metadata: &name}
		r.Topics = []kmsg.OffsetCommitRequestTopic{{Topic: name, TopicID: [16]byte{1}, Partitions: []kmsg.OffsetCommitRequestTopicPartition{p, p}}}
	case *kmsg.OffsetFetchRequest:
		r.Group = name
		r.Topics = []kmsg.OffsetFetchRequestTopic{{Topic: name, Partitions: []int32{1, 2}}}
		topic := kmsg.OffsetFetchRequestGroupTopic{Topic: name, TopicID: [16]byte{1}, Partitions: []int32{1, 2}}
		r.Groups = []kmsg.OffsetFetchRequestGroup{{Group: name, MemberID: &name, Topics: []kmsg.OffsetFetchRequestGroupTopic{topic, topic}}}
	case *kmsg.OffsetDeleteRequest:
		r.Group = name
		r.Topics = []kmsg.OffsetDeleteRequestTopic{{Topic: name, Partitions: make([]kmsg.OffsetDeleteRequestTopicPartition, 2)}}
	case *kmsg.FindCoordinatorRequest:
		r.CoordinatorKey, r.CoordinatorKeys = name, []string{name, name}
	case *kmsg.JoinGroupRequest:
		r.Group, r.InstanceID, r.Reason, r.ProtocolType = name, &name, &name, "consumer"
		r.Protocols = []kmsg.JoinGroupRequestProtocol{{Name: "range", Metadata: some}, {Name: "sticky"}}
	case *kmsg.SyncGroupRequest:
		r.Group, r.InstanceID, r.Protocol = name, &name, &name
		r.GroupAssignment = []kmsg.SyncGroupRequestGroupAssignment{{MemberID: name, MemberAssignment: some}, {}}
	case *kmsg.HeartbeatRequest:
		r.Group, r.MemberID, r.InstanceID = name, name, &name
	case *kmsg.LeaveGroupRequest:
		r.Group, r.MemberID = name, name
		r.Members = []kmsg.LeaveGroupRequestMember{{MemberID: name, InstanceID: &name, Reason: &name}, {}}
	case *kmsg.DescribeGroupsRequest:
		r.Groups = []string{name, name}
	case *kmsg.ListGroupsRequest:
		r.StatesFilter, r.TypesFilter = []string{"Stable", "Empty"}, []string{"classic"}
	case *kmsg.ConsumerGroupHeartbeatRequest:
		r.Group, r.MemberID, r.InstanceID, r.RackID, r.ServerAssignor, r.SubscribedTopicRegex = name, name, &name, &name, &name, &name
		r.SubscribedTopicNames = []string{name, name}
		r.Topics = []kmsg.ConsumerGroupHeartbeatRequestTopic{{TopicID: [16]byte{1}, Partitions: []int32{1, 2}}, {}}
	case *kmsg.ConsumerGroupDescribeRequest:
		r.Groups = []string{name, name}
	case *kmsg.DeleteGroupsRequest:
		r.Groups = []string{name, name}
	}
}
