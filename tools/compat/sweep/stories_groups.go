package sweep

import (
	"strings"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// member is who a step speaks as: the vars "<name>.id" and "<name>.generation" hold what the broker gave it.
type member string

func (m member) id(c *moment) string { return c.text(string(m) + ".id") }

// joined keeps the id and the generation out of a JoinGroup answer.
func (m member) joined(c *moment, r kmsg.Response) {
	j := r.(*kmsg.JoinGroupResponse)
	c.vars[string(m)+".id"] = j.MemberID
	if j.ErrorCode == 0 {
		c.vars[string(m)+".generation"] = j.Generation
	}
}

func join(name, group string, change func(c *moment, r *kmsg.JoinGroupRequest)) step {
	return ask(name, kmsg.NewPtrJoinGroupRequest, func(c *moment, r *kmsg.JoinGroupRequest) {
		r.Group, r.SessionTimeoutMillis, r.RebalanceTimeoutMillis, r.ProtocolType = c.its(group), 30_000, 30_000, "consumer"
		r.Protocols = []kmsg.JoinGroupRequestProtocol{{Name: "range", Metadata: []byte{0, 0, 0, 0, 0, 0}}, {Name: "other", Metadata: []byte("m")}}
		if change != nil {
			change(c, r)
		}
	})
}

func (m member) joins(name, group string) step {
	return join(name, group, func(c *moment, r *kmsg.JoinGroupRequest) { r.MemberID = m.id(c) }).then(m.joined)
}

// news is a member that has no id yet.
func (m member) news(name, group string) step {
	return join(name, group, nil).then(m.joined)
}

func (m member) syncs(name, group string, change func(c *moment, r *kmsg.SyncGroupRequest)) step {
	return ask(name, kmsg.NewPtrSyncGroupRequest, func(c *moment, r *kmsg.SyncGroupRequest) {
		r.Group, r.MemberID, r.Generation, r.ProtocolType, r.Protocol = c.its(group), m.id(c), c.number(string(m)+".generation"), ptr("consumer"), ptr("range")
		if change != nil {
			change(c, r)
		}
	})
}

func (m member) beats(name, group string, change func(c *moment, r *kmsg.HeartbeatRequest)) step {
	return ask(name, kmsg.NewPtrHeartbeatRequest, func(c *moment, r *kmsg.HeartbeatRequest) {
		r.Group, r.MemberID, r.Generation = c.its(group), m.id(c), c.number(string(m)+".generation")
		if change != nil {
			change(c, r)
		}
	})
}

func (m member) commits(name, group, topic string, change func(c *moment, r *kmsg.OffsetCommitRequest, p *kmsg.OffsetCommitRequestTopicPartition)) step {
	return ask(name, kmsg.NewPtrOffsetCommitRequest, func(c *moment, r *kmsg.OffsetCommitRequest) {
		r.Group, r.MemberID, r.Generation, r.RetentionTimeMillis = c.its(group), m.id(c), c.number(string(m)+".generation"), -1
		if m == "" {
			r.Generation = -1
		}
		p := kmsg.NewOffsetCommitRequestTopicPartition()
		p.Offset, p.Timestamp, p.LeaderEpoch, p.Metadata = 42, -1, -1, ptr("note")
		t := kmsg.OffsetCommitRequestTopic{Topic: topic, TopicID: c.ids[topic]}
		if t.TopicID == [16]byte{} {
			t.TopicID = strange
		}
		if change != nil {
			change(c, r, &p)
		}
		t.Partitions = []kmsg.OffsetCommitRequestTopicPartition{p}
		r.Topics = append(r.Topics, t)
	})
}

func (m member) leaves(name, group string, more ...kmsg.LeaveGroupRequestMember) step {
	return ask(name, kmsg.NewPtrLeaveGroupRequest, func(c *moment, r *kmsg.LeaveGroupRequest) {
		r.Group, r.MemberID = c.its(group), m.id(c)
		r.Members = append(r.Members, kmsg.LeaveGroupRequestMember{MemberID: m.id(c), Reason: ptr("done")})
		r.Members = append(r.Members, more...)
	})
}

// fetchOffsets asks for some partitions of t, or with none for all there are, in the shape of the version.
func fetchOffsets(name, group string, partitions ...int32) step {
	return ask(name, kmsg.NewPtrOffsetFetchRequest, func(c *moment, r *kmsg.OffsetFetchRequest) {
		r.Group = c.its(group)
		g := kmsg.NewOffsetFetchRequestGroup()
		g.Group = c.its(group)
		if partitions != nil {
			r.Topics = []kmsg.OffsetFetchRequestTopic{{Topic: "t", Partitions: partitions}}
			g.Topics = []kmsg.OffsetFetchRequestGroupTopic{{Topic: "t", TopicID: c.ids["t"], Partitions: partitions}}
		}
		r.Groups = append(r.Groups, g)
	})
}

func describeGroups(name string, groups ...string) step {
	return ask(name, kmsg.NewPtrDescribeGroupsRequest, func(c *moment, r *kmsg.DescribeGroupsRequest) {
		r.IncludeAuthorizedOperations = true
		for _, g := range groups {
			r.Groups = append(r.Groups, c.its(g))
		}
	})
}

func deleteGroups(name string, groups ...string) step {
	return ask(name, kmsg.NewPtrDeleteGroupsRequest, func(c *moment, r *kmsg.DeleteGroupsRequest) {
		for _, g := range groups {
			r.Groups = append(r.Groups, c.its(g))
		}
	})
}

func listGroups(name string, states, types []string) step {
	return ask(name, kmsg.NewPtrListGroupsRequest, func(c *moment, r *kmsg.ListGroupsRequest) { r.StatesFilter, r.TypesFilter = states, types })
}

func classicStory() story {
	const a = member("a")
	type j = *kmsg.JoinGroupRequest
	type h = *kmsg.HeartbeatRequest
	type s = *kmsg.SyncGroupRequest
	type o = *kmsg.OffsetCommitRequest
	type p = *kmsg.OffsetCommitRequestTopicPartition
	return story{name: "classic group", steps: []step{
		join("a member nobody knows", "cg~", func(c *moment, r j) { r.MemberID = "stranger" }), join("no group", "", nil), join("a session too short", "cg~", func(c *moment, r j) { r.SessionTimeoutMillis = 1 }),
		join("a session too long", "cg~", func(c *moment, r j) { r.SessionTimeoutMillis = 1 << 30 }), join("no protocols", "cg~", func(c *moment, r j) { r.Protocols = nil }), join("no protocol type", "cg~", func(c *moment, r j) { r.ProtocolType = "" }),
		a.beats("a beat to a group that is not there", "cg~", func(c *moment, r h) { r.MemberID, r.Generation = "stranger", 1 }), a.syncs("a sync to a group that is not there", "cg~", func(c *moment, r s) { r.MemberID, r.Generation = "stranger", 1 }),
		a.leaves("leaving a group that is not there", "cg-none~", kmsg.LeaveGroupRequestMember{MemberID: "other"}), deleteGroups("deleting a group that is not there", "cg-none~"), describeGroups("describing groups that are not there", "cg-none~", ""),
		a.news("join", "cg~"), a.joins("join with the id", "cg~").since(4), describeGroups("waiting for the sync", "cg~"),
		a.beats("a beat before the sync", "cg~", nil), a.commits("a commit before the sync", "cg~", "t", nil).since(1),
		a.syncs("a sync of the wrong generation", "cg~", func(c *moment, r s) { r.Generation += 7 }), a.syncs("a sync by a stranger", "cg~", func(c *moment, r s) { r.MemberID = "stranger" }),
		a.syncs("a sync of another protocol", "cg~", func(c *moment, r s) { r.Protocol = ptr("other") }).since(5), a.syncs("a sync of another protocol type", "cg~", func(c *moment, r s) { r.ProtocolType = ptr("connect") }).since(5),
		a.syncs("sync", "cg~", func(c *moment, r s) {
			r.GroupAssignment = []kmsg.SyncGroupRequestGroupAssignment{{MemberID: a.id(c), MemberAssignment: []byte("all of it")}}
		}),
		a.syncs("a sync of null protocols", "cg~", func(c *moment, r s) { r.ProtocolType, r.Protocol = nil, nil }).since(5),
		a.syncs("sync again", "cg~", nil), a.beats("beat", "cg~", nil), a.beats("a beat of the wrong generation", "cg~", func(c *moment, r h) { r.Generation += 7 }), a.beats("a beat by a stranger", "cg~", func(c *moment, r h) { r.MemberID = "stranger" }),
		a.beats("a beat to no group", "cg~", func(c *moment, r h) { r.Group = "" }), a.beats("a beat of a stranger instance", "cg~", func(c *moment, r h) { r.InstanceID = ptr("nobody") }).since(3),
		join("a stranger joins a stable group", "cg~", func(c *moment, r j) { r.MemberID = "stranger" }), join("another protocol type", "cg~", func(c *moment, r j) { r.ProtocolType = "connect" }), join("no common protocol", "cg~", func(c *moment, r j) { r.Protocols = []kmsg.JoinGroupRequestProtocol{{Name: "else"}} }),
		a.commits("commit", "cg~", "t", nil).since(1), a.commits("a commit of the wrong generation", "cg~", "t", func(c *moment, r o, p p) { r.Generation += 7 }).since(1), a.commits("a commit by a stranger", "cg~", "t", func(c *moment, r o, p p) { r.MemberID = "stranger" }).since(1),
		member("").commits("a commit by nobody", "cg~", "t", nil), fetchOffsets("the offset", "cg~", 0),
		describeGroups("stable", "cg~"), describeGroups("twice", "cg~", "cg~"), deleteGroups("deleting while it lives", "cg~"), listGroups("stable groups", []string{"Stable"}, nil).since(4), listGroups("all groups", nil, nil), listGroups("an unknown state", []string{"Cloudy"}, nil).since(4), listGroups("classic groups", nil, []string{"classic"}).since(5), listGroups("an unknown type", nil, []string{"cloud"}).since(5),
		a.leaves("leave", "cg~"), a.leaves("leave again", "cg~"), a.beats("a beat after leaving", "cg~", nil), describeGroups("empty", "cg~"), a.commits("a commit after leaving", "cg~", "t", nil).since(1),
		deleteGroups("delete", "cg~", "cg~"), deleteGroups("delete again", "cg~", ""), describeGroups("dead", "cg~"), fetchOffsets("offsets of a dead group", "cg~", 0), deleteGroups("delete nothing"), describeGroups("describe nothing"),
	}}
}

// pairStory is two members and the rebalances between them.
func pairStory() story {
	const a, b = member("pa"), member("pb")
	assign := func(c *moment, r *kmsg.SyncGroupRequest) {
		r.GroupAssignment = []kmsg.SyncGroupRequestGroupAssignment{{MemberID: a.id(c), MemberAssignment: []byte("for a")}, {MemberID: b.id(c), MemberAssignment: []byte("for b")}}
	}
	return story{name: "two members", steps: []step{
		{name: "forget", build: func(c *moment) kmsg.Request { c.vars["pb.id"] = ""; return kmsg.NewPtrHeartbeatRequest() }},
		a.news("join", "pg~"), a.joins("join with the id", "pg~").since(4), a.syncs("sync", "pg~", assign),
		b.news("the second asks for an id", "pg~").over("b").since(4), b.joins("the second joins", "pg~").over("b").later(),
		a.beats("the first hears of the rebalance", "pg~", nil).till(27), describeGroups("rebalancing", "pg~"), a.commits("a commit meanwhile", "pg~", "t", nil).since(1), a.syncs("a sync meanwhile", "pg~", nil),
		a.joins("the first joins again", "pg~"), answerTo("the second joins"),
		b.syncs("the second waits for its assignment", "pg~", nil).over("b").later(), a.syncs("the leader's sync", "pg~", assign), answerTo("the second waits for its assignment"),
		b.beats("the second's beat", "pg~", nil), describeGroups("both", "pg~"),
		b.leaves("the second leaves, and a stranger", "pg~", kmsg.LeaveGroupRequestMember{MemberID: "stranger"}), a.beats("the first hears of it", "pg~", nil).till(27), a.leaves("the first leaves", "pg~"),
	}}
}

// staticStory is a member with an instance id.
func staticStory() story {
	const a, old = member("sa"), member("sold")
	static := func(c *moment, r *kmsg.JoinGroupRequest) { r.InstanceID = ptr("i1") }
	named := kmsg.LeaveGroupRequestMember{InstanceID: ptr("i1")}
	return story{name: "static member", steps: []step{
		join("join", "sg~", static).then(a.joined).since(5),
		a.syncs("sync", "sg~", func(c *moment, r *kmsg.SyncGroupRequest) {
			r.InstanceID = ptr("i1")
			r.GroupAssignment = []kmsg.SyncGroupRequestGroupAssignment{{MemberID: a.id(c), MemberAssignment: []byte("all")}}
		}).since(3).round(5),
		a.beats("beat", "sg~", func(c *moment, r *kmsg.HeartbeatRequest) { r.InstanceID = ptr("i1") }).round(5),
		{name: "keep", build: func(c *moment) kmsg.Request {
			c.vars["sold.id"], c.vars["sold.generation"] = c.vars["sa.id"], c.vars["sa.generation"]
			return kmsg.NewPtrHeartbeatRequest()
		}},
		join("it comes back", "sg~", static).then(a.joined).since(5),
		old.beats("its old self", "sg~", func(c *moment, r *kmsg.HeartbeatRequest) { r.InstanceID = ptr("i1") }).round(5),
		old.syncs("its old self's sync", "sg~", func(c *moment, r *kmsg.SyncGroupRequest) { r.InstanceID = ptr("i1") }).since(3).round(5),
		join("its old self joins", "sg~", func(c *moment, r *kmsg.JoinGroupRequest) { r.InstanceID, r.MemberID = ptr("i1"), old.id(c) }).since(5),
		join("an empty instance id", "sg-empty~", func(c *moment, r *kmsg.JoinGroupRequest) { r.InstanceID = ptr("") }).since(5),
		join("a bad instance id", "sg-bad~", func(c *moment, r *kmsg.JoinGroupRequest) { r.InstanceID = ptr("no/slash") }).since(5),
		old.commits("its old self's commit", "sg~", "t", func(c *moment, r *kmsg.OffsetCommitRequest, p *kmsg.OffsetCommitRequestTopicPartition) {
			r.InstanceID = ptr("i1")
		}).since(7),
		describeGroups("described", "sg~").round(5),
		ask("leave by its instance", kmsg.NewPtrLeaveGroupRequest, func(c *moment, r *kmsg.LeaveGroupRequest) {
			r.Group, r.Members = c.its("sg~"), []kmsg.LeaveGroupRequestMember{named, {MemberID: "x", InstanceID: ptr("i2")}}
		}).since(3).round(5),
	}}
}

func offsetStories() []story {
	const nobody = member("")
	type o = *kmsg.OffsetCommitRequest
	type p = *kmsg.OffsetCommitRequestTopicPartition
	del := func(name, group, topic string, partitions ...int32) step {
		return ask(name, kmsg.NewPtrOffsetDeleteRequest, func(c *moment, r *kmsg.OffsetDeleteRequest) {
			r.Group = c.its(group)
			t := kmsg.OffsetDeleteRequestTopic{Topic: topic}
			for _, p := range partitions {
				t.Partitions = append(t.Partitions, kmsg.OffsetDeleteRequestTopicPartition{Partition: p})
			}
			r.Topics = append(r.Topics, t)
		})
	}
	many := func(name string, groups ...string) step {
		return ask(name, kmsg.NewPtrOffsetFetchRequest, func(c *moment, r *kmsg.OffsetFetchRequest) {
			for _, g := range groups {
				f := kmsg.NewOffsetFetchRequestGroup()
				f.Group = c.its(g)
				r.Groups = append(r.Groups, f)
			}
		}).since(8)
	}
	return []story{{name: "offsets", steps: []step{
		nobody.commits("commit", "og~", "t", nil), fetchOffsets("one", "og~", 0), fetchOffsets("one that has none", "og~", 1), fetchOffsets("one that is not there", "og~", 9), fetchOffsets("all", "og~").since(2), fetchOffsets("a group that is not there", "og-none~", 0), fetchOffsets("no group", "", 0),
		many("two groups", "og~", "og-none~"), many("no groups"),
		ask("stable ones", kmsg.NewPtrOffsetFetchRequest, func(c *moment, r *kmsg.OffsetFetchRequest) {
			r.Group, r.RequireStable = c.its("og~"), true
			r.Topics = []kmsg.OffsetFetchRequestTopic{{Topic: "t", Partitions: []int32{0}}}
			r.Groups = []kmsg.OffsetFetchRequestGroup{{Group: c.its("og~"), MemberEpoch: -1, Topics: []kmsg.OffsetFetchRequestGroupTopic{{Topic: "t", TopicID: c.ids["t"], Partitions: []int32{0}}}}}
		}).since(7),
		ask("by a strange member", kmsg.NewPtrOffsetFetchRequest, func(c *moment, r *kmsg.OffsetFetchRequest) {
			r.Groups = []kmsg.OffsetFetchRequestGroup{{Group: c.its("og~"), MemberID: ptr("stranger"), MemberEpoch: 5, Topics: []kmsg.OffsetFetchRequestGroupTopic{{Topic: "t", TopicID: c.ids["t"], Partitions: []int32{0}}}}}
		}).since(9),
		ask("a strange topic id", kmsg.NewPtrOffsetFetchRequest, func(c *moment, r *kmsg.OffsetFetchRequest) {
			r.Groups = []kmsg.OffsetFetchRequestGroup{{Group: c.its("og~"), MemberEpoch: -1, Topics: []kmsg.OffsetFetchRequestGroupTopic{{TopicID: strange, Partitions: []int32{0}}}}}
		}).since(10),
		nobody.commits("a partition that is not there", "og~", "t", func(c *moment, r o, p p) { p.Partition = 9 }), nobody.commits("an unknown topic", "og~", "nowhere", nil), nobody.commits("an invalid name", "og~", "no/slash", nil).until(9),
		nobody.commits("a note that is too long", "og~", "t", func(c *moment, r o, p p) { p.Metadata = ptr(strings.Repeat("x", 5000)) }), nobody.commits("a null note", "og~", "t", func(c *moment, r o, p p) { p.Metadata = nil }), nobody.commits("a negative offset", "og~", "t", func(c *moment, r o, p p) { p.Offset = -1 }),
		nobody.commits("with an epoch", "og~", "t", func(c *moment, r o, p p) { p.LeaderEpoch = 0 }).since(6), fetchOffsets("with its epoch", "og~", 0),
		nobody.commits("no group", "", "t", nil), nobody.commits("a generation and no member", "og-gen~", "t", func(c *moment, r o, p p) { r.Generation = 3 }).since(1), nobody.commits("a member and no generation", "og-mem~", "t", func(c *moment, r o, p p) { r.MemberID = "stranger" }).since(1),
		ask("no topics", kmsg.NewPtrOffsetCommitRequest, func(c *moment, r o) { r.Group, r.Generation = c.its("og~"), -1 }),
		del("delete one", "og~", "t", 0), del("delete it again", "og~", "t", 0), del("delete one that is not there", "og~", "t", 9), del("delete of an unknown topic", "og~", "nowhere", 0), del("delete of a group that is not there", "og-none~", "t", 0), del("delete of no group", "", "t", 0), del("delete nothing", "og~", "t"),
		fetchOffsets("it is gone", "og~", 0), describeGroups("a group of offsets alone", "og~"),
	}}}
}

func groupStories() []story {
	find := func(name string, kind int8, keys ...string) step {
		return ask(name, kmsg.NewPtrFindCoordinatorRequest, func(c *moment, r *kmsg.FindCoordinatorRequest) {
			r.CoordinatorType, r.CoordinatorKeys = kind, keys
			if len(keys) > 0 {
				r.CoordinatorKey = keys[0]
			}
		})
	}
	return []story{
		{name: "coordinator", steps: []step{find("of a group", 0, "g"), find("of two", 0, "g", "h").since(4), find("of none", 0).since(4), find("of the empty group", 0, ""), find("of an unknown kind", 7, "g").since(1), find("of a share group", 2, "g").since(4)}},
		classicStory(), pairStory(), staticStory(),
	}
}
