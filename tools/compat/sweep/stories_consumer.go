package sweep

import "github.com/twmb/franz-go/pkg/kmsg"

// beat is a step of the next-generation protocol.
func beat(name, group string, change func(c *moment, r *kmsg.ConsumerGroupHeartbeatRequest)) step {
	return ask(name, kmsg.NewPtrConsumerGroupHeartbeatRequest, func(c *moment, r *kmsg.ConsumerGroupHeartbeatRequest) {
		r.Group, r.RebalanceTimeoutMillis = c.its(group), -1
		change(c, r)
	})
}

// joining fills in what a first heartbeat must say.
func joining(r *kmsg.ConsumerGroupHeartbeatRequest, id string) {
	r.MemberID, r.MemberEpoch, r.RebalanceTimeoutMillis, r.SubscribedTopicNames, r.Topics = id, 0, 30_000, []string{"t"}, []kmsg.ConsumerGroupHeartbeatRequestTopic{}
}

// epochOf keeps a member's id and epoch.
func (m member) epochOf(c *moment, r kmsg.Response) {
	h := r.(*kmsg.ConsumerGroupHeartbeatResponse)
	if h.ErrorCode == 0 && h.MemberID != nil {
		c.vars[string(m)+".id"], c.vars[string(m)+".generation"] = *h.MemberID, h.MemberEpoch
	}
}

func consumerStories() []story {
	type h = *kmsg.ConsumerGroupHeartbeatRequest
	type o = *kmsg.OffsetCommitRequest
	type p = *kmsg.OffsetCommitRequestTopicPartition
	const m = member("ng")
	as := func(change func(c *moment, r h)) func(c *moment, r h) {
		return func(c *moment, r h) {
			r.MemberID, r.MemberEpoch = m.id(c), c.number("ng.generation")
			if change != nil {
				change(c, r)
			}
		}
	}
	describe := func(name string, groups ...string) step {
		return ask(name, kmsg.NewPtrConsumerGroupDescribeRequest, func(c *moment, r *kmsg.ConsumerGroupDescribeRequest) {
			r.IncludeAuthorizedOperations = true
			for _, g := range groups {
				r.Groups = append(r.Groups, c.its(g))
			}
		})
	}
	fetch := func(name string, change func(c *moment, g *kmsg.OffsetFetchRequestGroup)) step {
		return ask(name, kmsg.NewPtrOffsetFetchRequest, func(c *moment, r *kmsg.OffsetFetchRequest) {
			g := kmsg.OffsetFetchRequestGroup{Group: c.its("ng~"), MemberID: ptr(m.id(c)), MemberEpoch: c.number("ng.generation"), Topics: []kmsg.OffsetFetchRequestGroupTopic{{Topic: "t", TopicID: c.ids["t"], Partitions: []int32{0}}}}
			change(c, &g)
			r.Groups = append(r.Groups, g)
		}).since(9)
	}
	bad := func(name string, change func(r h)) step {
		return beat(name, "ng-bad~", func(c *moment, r h) { joining(r, "m1"); change(r) })
	}
	static := func(name, id string, epoch int32, change func(r h)) step {
		return beat(name, "ngs~", func(c *moment, r h) {
			if joining(r, id); epoch != 0 {
				r.SubscribedTopicNames, r.Topics, r.RebalanceTimeoutMillis = nil, nil, -1
			}
			r.InstanceID, r.MemberEpoch = ptr("i1"), epoch
			if change != nil {
				change(r)
			}
		})
	}
	return []story{
		{name: "consumer group refusals", steps: []step{
			bad("no group", func(r h) { r.Group = "" }), bad("no member id", func(r h) { r.MemberID = "" }), bad("no rebalance time-out", func(r h) { r.RebalanceTimeoutMillis = -1 }), bad("no partitions named", func(r h) { r.Topics = nil }),
			bad("partitions owned already", func(r h) {
				r.Topics = []kmsg.ConsumerGroupHeartbeatRequestTopic{{TopicID: strange, Partitions: []int32{0}}}
			}), bad("no subscription", func(r h) { r.SubscribedTopicNames = nil }), bad("an unknown assignor", func(r h) { r.ServerAssignor = ptr("clever") }),
			bad("an empty instance id", func(r h) { r.InstanceID = ptr("") }), bad("an empty rack", func(r h) { r.RackID = ptr("") }), bad("epoch -3", func(r h) { r.MemberEpoch = -3 }), bad("epoch 7 of a group that is not there", func(r h) { r.MemberEpoch = 7 }), bad("leaving a group that is not there", func(r h) { r.MemberEpoch = -1 }), bad("-2 without instance", func(r h) { r.MemberEpoch = -2 }),
			beat("a regular expression that is none", "ng-bad~", func(c *moment, r h) { joining(r, "m1"); r.SubscribedTopicNames, r.SubscribedTopicRegex = nil, ptr("(") }).since(1),
			describe("not there", "ng-none~", ""), describe("nothing"),
		}},
		{name: "consumer group", steps: []step{
			beat("join", "ng~", func(c *moment, r h) {
				if joining(r, ""); c.version > 0 {
					r.MemberID = "AAAAAAAAAAAAAAAAAAAAAQ"
				}
			}).then(m.epochOf),
			beat("beat", "ng~", as(nil)), beat("all of it again", "ng~", as(func(c *moment, r h) {
				r.RebalanceTimeoutMillis, r.SubscribedTopicNames = 30_000, []string{"t"}
				r.Topics = owned(c)
			})),
			beat("beat of a later epoch", "ng~", as(func(c *moment, r h) { r.MemberEpoch += 7 })), beat("beat of a stranger", "ng~", as(func(c *moment, r h) { r.MemberID = "AAAAAAAAAAAAAAAAAAAAAg" })),
			describe("described", "ng~"), describe("described twice", "ng~", "ng~"), describeGroups("described as classic", "ng~"), listGroups("listed", nil, []string{"consumer"}).since(5), listGroups("listed by state", []string{"Stable"}, []string{"Consumer"}).since(5),
			m.commits("commit", "ng~", "t", nil).since(9), m.commits("commit of an old version", "ng~", "t", nil).since(1).until(8), m.commits("commit of a later epoch", "ng~", "t", func(c *moment, r o, p p) { r.Generation += 7 }).since(9), m.commits("commit by a stranger", "ng~", "t", func(c *moment, r o, p p) { r.MemberID = "stranger" }).since(9), member("").commits("commit by nobody", "ng~", "t", nil).since(9),
			fetch("fetch", func(*moment, *kmsg.OffsetFetchRequestGroup) {}), fetch("fetch of a later epoch", func(c *moment, g *kmsg.OffsetFetchRequestGroup) { g.MemberEpoch += 7 }), fetch("fetch by a stranger", func(c *moment, g *kmsg.OffsetFetchRequestGroup) { g.MemberID = ptr("stranger") }), fetch("fetch by nobody", func(c *moment, g *kmsg.OffsetFetchRequestGroup) { g.MemberID, g.MemberEpoch = nil, -1 }), fetchOffsets("fetch of an old version", "ng~", 0),
			join("a classic member", "ng~", func(c *moment, r *kmsg.JoinGroupRequest) {
				r.Protocols = []kmsg.JoinGroupRequestProtocol{{Name: "range", Metadata: []byte("\x00\x00\x00\x00\x00\x01\x00\x01t\x00\x00\x00\x00")}}
			}).since(4), m.beats("a classic beat", "ng~", nil), m.syncs("a classic sync", "ng~", nil),
			ask("a classic stranger leaves", kmsg.NewPtrLeaveGroupRequest, func(c *moment, r *kmsg.LeaveGroupRequest) {
				r.Group, r.MemberID, r.Members = c.its("ng~"), "x", []kmsg.LeaveGroupRequestMember{{MemberID: "x"}}
			}), deleteGroups("delete while it lives", "ng~"),
			beat("other topics", "ng~", as(func(c *moment, r h) {
				r.RebalanceTimeoutMillis, r.SubscribedTopicNames, r.Topics = 30_000, []string{"nowhere"}, owned(c)
			})).then(m.epochOf),
			beat("leave", "ng~", as(func(c *moment, r h) { r.MemberEpoch = -1 })), beat("leave again", "ng~", as(func(c *moment, r h) { r.MemberEpoch = -1 })), describe("empty", "ng~"), deleteGroups("delete", "ng~"), describe("gone", "ng~"),
		}},
		{name: "static consumer", steps: []step{
			static("join", "AAAAAAAAAAAAAAAAAAAAAw", 0, nil), static("another takes its place", "AAAAAAAAAAAAAAAAAAAABA", 0, nil), static("leave for a while", "AAAAAAAAAAAAAAAAAAAAAw", -2, nil), static("back under another id", "AAAAAAAAAAAAAAAAAAAABQ", 0, nil),
			static("its old self", "AAAAAAAAAAAAAAAAAAAAAw", 1, nil), describe("described", "ngs~"), static("an instance nobody has", "AAAAAAAAAAAAAAAAAAAABQ", 1, func(r h) { r.InstanceID = ptr("i9") }), static("leave", "AAAAAAAAAAAAAAAAAAAABQ", -1, nil),
		}},
	}
}

// owned are both partitions of t.
func owned(c *moment) []kmsg.ConsumerGroupHeartbeatRequestTopic {
	return []kmsg.ConsumerGroupHeartbeatRequestTopic{{TopicID: c.ids["t"], Partitions: []int32{0, 1}}}
}
