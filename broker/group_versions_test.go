package broker

import (
	"fmt"
	"slices"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"millrace/wire"
)

// Claim: every version of every API of groups is served and its answer decodes.
// Method: one life of a group in each version, over the wire.
func TestEveryVersionOfGroupAPIs(t *testing.T) {
	b := startBroker(t, "group.initial.rebalance.delay.ms=0", "offsets.topic.num.partitions=2")
	b.topic("t", 1)
	c := b.dial()
	b.coordinator(c, "g")
	for version := range int16(11) {
		liveInVersion(t, b, c, version)
	}
	txn := kmsg.NewPtrFindCoordinatorRequest()
	txn.CoordinatorType, txn.CoordinatorKeys = 1, []string{"x"}
	if r := c.ask(txn, 4).(*kmsg.FindCoordinatorResponse); r.Coordinators[0].ErrorCode != wire.ErrUnsupportedVersion {
		t.Errorf("a transaction's coordinator: %+v", r)
	}
}

// at caps a version at what the API has.
func at(key, version int16) int16 {
	api, _ := wire.Lookup(key)
	return min(version, api.Max)
}

func liveInVersion(t *testing.T, b *testBroker, c *client, version int16) {
	id := fmt.Sprint("group-", version)
	ask := func(req kmsg.Request) kmsg.Response { return c.ask(req, at(req.Key(), version)) }
	check := func(what string, code, want int16) {
		t.Helper()
		if code != want {
			t.Errorf("%s in version %d: %s, want %s", what, version, wire.ErrorName(code), wire.ErrorName(want))
		}
	}
	join := kmsg.NewPtrJoinGroupRequest()
	join.Group, join.SessionTimeoutMillis, join.RebalanceTimeoutMillis, join.ProtocolType = id, 10_000, 10_000, "consumer"
	join.Protocols = []kmsg.JoinGroupRequestProtocol{{Name: "range", Metadata: []byte{0, 0, 0, 0, 0, 0}}}
	joined := ask(join).(*kmsg.JoinGroupResponse)
	if version >= 4 {
		check("JoinGroup", joined.ErrorCode, wire.ErrMemberIDRequired)
		join.MemberID = joined.MemberID
		joined = ask(join).(*kmsg.JoinGroupResponse)
	}
	check("JoinGroup", joined.ErrorCode, 0)
	member, generation := joined.MemberID, joined.Generation
	if joined.LeaderID != member || len(joined.Members) != 1 || *joined.Protocol != "range" {
		t.Errorf("JoinGroup in version %d: %+v", version, joined)
	}

	sync := kmsg.NewPtrSyncGroupRequest()
	sync.Group, sync.MemberID, sync.Generation = id, member, generation
	sync.GroupAssignment = []kmsg.SyncGroupRequestGroupAssignment{{MemberID: member, MemberAssignment: []byte("all")}}
	if version >= 5 { // KIP-559
		check("SyncGroup without protocol", ask(sync).(*kmsg.SyncGroupResponse).ErrorCode, wire.ErrInconsistentGroupProtocol)
	}
	sync.ProtocolType, sync.Protocol = kmsg.StringPtr("consumer"), kmsg.StringPtr("range")
	synced := ask(sync).(*kmsg.SyncGroupResponse)
	check("SyncGroup", synced.ErrorCode, 0)
	if string(synced.MemberAssignment) != "all" {
		t.Errorf("SyncGroup in version %d: %+v", version, synced)
	}
	beat := kmsg.NewPtrHeartbeatRequest()
	beat.Group, beat.MemberID, beat.Generation = id, member, generation
	check("Heartbeat", ask(beat).(*kmsg.HeartbeatResponse).ErrorCode, 0)

	commit := kmsg.NewPtrOffsetCommitRequest()
	commit.Group, commit.MemberID, commit.Generation = id, member, generation
	if version == 0 { // which has neither
		commit.Group = id + "-simple"
	}
	p := kmsg.NewOffsetCommitRequestTopicPartition()
	p.Offset = 42
	topicID := b.coord.Image().Topic("t").ID
	commit.Topics = []kmsg.OffsetCommitRequestTopic{{Topic: "t", TopicID: topicID, Partitions: []kmsg.OffsetCommitRequestTopicPartition{p}}}
	check("OffsetCommit", ask(commit).(*kmsg.OffsetCommitResponse).Topics[0].Partitions[0].ErrorCode, 0)
	checkFetched(t, c, at(wire.KeyOffsetFetch, version), commit.Group, topicID)
	checkShown(t, c, version, id)

	remove := kmsg.NewPtrDeleteGroupsRequest()
	remove.Groups = []string{id}
	check("DeleteGroups", ask(remove).(*kmsg.DeleteGroupsResponse).Groups[0].ErrorCode, wire.ErrNonEmptyGroup)

	leave := kmsg.NewPtrLeaveGroupRequest()
	leave.Group, leave.MemberID, leave.Members = id, member, []kmsg.LeaveGroupRequestMember{{MemberID: member}}
	left := ask(leave).(*kmsg.LeaveGroupResponse)
	check("LeaveGroup", left.ErrorCode, 0)
	if version >= 3 {
		check("LeaveGroup", left.Members[0].ErrorCode, 0)
	}
	forget := kmsg.NewPtrOffsetDeleteRequest()
	forget.Group = commit.Group
	forget.Topics = []kmsg.OffsetDeleteRequestTopic{{Topic: "t", Partitions: []kmsg.OffsetDeleteRequestTopicPartition{{Partition: 0}}}}
	check("OffsetDelete", ask(forget).(*kmsg.OffsetDeleteResponse).ErrorCode, 0)
	check("DeleteGroups", ask(remove).(*kmsg.DeleteGroupsResponse).Groups[0].ErrorCode, 0)
}

func checkFetched(t *testing.T, c *client, version int16, id string, topicID [16]byte) {
	t.Helper()
	req := kmsg.NewPtrOffsetFetchRequest()
	req.Group = id
	req.Topics = []kmsg.OffsetFetchRequestTopic{{Topic: "t", Partitions: []int32{0, 1}}}
	one, other := kmsg.NewOffsetFetchRequestGroup(), kmsg.NewOffsetFetchRequestGroup()
	one.Group, other.Group = id, "nobody"
	one.Topics = []kmsg.OffsetFetchRequestGroupTopic{{Topic: "t", TopicID: topicID, Partitions: []int32{0, 1}}}
	other.Topics = one.Topics
	req.Groups = []kmsg.OffsetFetchRequestGroup{one, other}
	got := c.ask(req, version).(*kmsg.OffsetFetchResponse)
	var offsets []int64
	for _, topic := range got.Topics {
		for _, p := range topic.Partitions {
			offsets = append(offsets, p.Offset, int64(p.ErrorCode))
		}
	}
	want := []int64{42, 0, -1, 0}
	for _, g := range got.Groups {
		for _, p := range g.Topics[0].Partitions {
			offsets = append(offsets, p.Offset, int64(p.ErrorCode))
		}
	}
	if version >= 8 {
		want = append(want, -1, 0, -1, 0)
	}
	if got.ErrorCode != 0 || !slices.Equal(offsets, want) {
		t.Errorf("OffsetFetch in version %d: %+v", version, got)
	}
}

// checkShown looks at the live group as administrators do.
func checkShown(t *testing.T, c *client, version int16, id string) {
	t.Helper()
	ask := func(req kmsg.Request) kmsg.Response { return c.ask(req, at(req.Key(), version)) }
	describe := kmsg.NewPtrDescribeGroupsRequest()
	describe.Groups, describe.IncludeAuthorizedOperations = []string{id}, true
	d := ask(describe).(*kmsg.DescribeGroupsResponse).Groups[0]
	if d.State != "Stable" || len(d.Members) != 1 || string(d.Members[0].MemberAssignment) != "all" || d.Members[0].ClientHost != "/127.0.0.1" || d.Members[0].ClientID != "test" {
		t.Errorf("DescribeGroups in version %d: %+v", version, d)
	}
	list := kmsg.NewPtrListGroupsRequest()
	list.StatesFilter, list.TypesFilter = []string{"Stable"}, []string{"classic"}
	if listed := ask(list).(*kmsg.ListGroupsResponse); !slices.ContainsFunc(listed.Groups, func(g kmsg.ListGroupsResponseGroup) bool { return g.Group == id }) {
		t.Errorf("ListGroups in version %d: %+v", version, listed)
	}
}
