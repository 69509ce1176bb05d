package sweep

import (
	"cmp"

	"github.com/twmb/franz-go/pkg/kmsg"
)

func adminStories() []story {
	logDirs := func(name string, topics ...kmsg.DescribeLogDirsRequestTopic) step {
		return ask(name, kmsg.NewPtrDescribeLogDirsRequest, func(c *moment, r *kmsg.DescribeLogDirsRequest) { r.Topics = topics })
	}
	of := func(topic string, partitions ...int32) kmsg.DescribeLogDirsRequestTopic {
		return kmsg.DescribeLogDirsRequestTopic{Topic: topic, Partitions: partitions}
	}
	cluster := func(name string, change func(r *kmsg.DescribeClusterRequest)) step {
		return ask(name, kmsg.NewPtrDescribeClusterRequest, func(c *moment, r *kmsg.DescribeClusterRequest) {
			r.EndpointType = 1
			change(r)
		})
	}
	type cr = *kmsg.DescribeClusterRequest
	return []story{
		{name: "log dirs", steps: []step{logDirs("two partitions", of("t", 0, 1)), logDirs("a partition that is not there", of("t", 9)), logDirs("an unknown topic", of("nowhere", 0)), logDirs("one topic twice", of("t", 0), of("t", 1)),
			ask("none", kmsg.NewPtrDescribeLogDirsRequest, func(c *moment, r *kmsg.DescribeLogDirsRequest) { r.Topics = []kmsg.DescribeLogDirsRequestTopic{} })}},
		{name: "cluster", steps: []step{cluster("plain", func(r cr) {}), cluster("with the right to do what", func(r cr) { r.IncludeClusterAuthorizedOperations = true }), cluster("its controllers", func(r cr) { r.EndpointType = 2 }).since(1), cluster("an unknown kind", func(r cr) { r.EndpointType = 9 }).since(1), cluster("fenced brokers too", func(r cr) { r.IncludeFencedBrokers = true }).since(2)}},
		electStory(), reassignStory(), quotaStory(), moveStory(), telemetryStory(),
	}
}

func electStory() story {
	elect := func(name string, kind int8, topic string, partitions ...int32) step {
		return ask(name, kmsg.NewPtrElectLeadersRequest, func(c *moment, r *kmsg.ElectLeadersRequest) {
			r.ElectionType, r.TimeoutMillis, r.Topics = kind, 30_000, []kmsg.ElectLeadersRequestTopic{{Topic: topic, Partitions: partitions}}
		})
	}
	return story{name: "elections", steps: []step{elect("preferred", 0, "t", 0, 1), elect("a partition that is not there", 0, "t", 9), elect("an unknown topic", 0, "nowhere", 0), elect("unclean", 1, "t", 0).since(1), elect("an unknown kind", 9, "t", 0).since(1), elect("no partitions", 0, "t"), elect("one twice", 0, "t", 0, 0),
		ask("nothing", kmsg.NewPtrElectLeadersRequest, func(c *moment, r *kmsg.ElectLeadersRequest) {
			r.TimeoutMillis, r.Topics = 30_000, []kmsg.ElectLeadersRequestTopic{}
		})}}
}

func reassignStory() story {
	move := func(name, topic string, partition int32, replicas []int32, change func(r *kmsg.AlterPartitionAssignmentsRequest)) step {
		return ask(name, kmsg.NewPtrAlterPartitionAssignmentsRequest, func(c *moment, r *kmsg.AlterPartitionAssignmentsRequest) {
			p := kmsg.NewAlterPartitionAssignmentsRequestTopicPartition()
			p.Partition, p.Replicas = partition, replicas
			r.TimeoutMillis, r.Topics = 30_000, []kmsg.AlterPartitionAssignmentsRequestTopic{{Topic: topic, Partitions: []kmsg.AlterPartitionAssignmentsRequestTopicPartition{p}}}
			if change != nil {
				change(r)
			}
		})
	}
	list := func(name string, topics []kmsg.ListPartitionReassignmentsRequestTopic) step {
		return ask(name, kmsg.NewPtrListPartitionReassignmentsRequest, func(c *moment, r *kmsg.ListPartitionReassignmentsRequest) { r.TimeoutMillis, r.Topics = 30_000, topics })
	}
	of := func(topic string, partition int32) []kmsg.ListPartitionReassignmentsRequestTopic {
		return []kmsg.ListPartitionReassignmentsRequestTopic{{Topic: topic, Partitions: []int32{partition}}}
	}
	return story{name: "reassignments", steps: []step{
		move("where it is", "t", 0, []int32{node}, nil), move("cancel what does not run", "t", 0, nil, nil), move("to a broker that is not there", "t", 0, []int32{99}, nil), move("to nobody", "t", 0, []int32{}, nil), move("twice to one broker", "t", 0, []int32{node, node}, nil),
		move("a partition that is not there", "t", 9, []int32{node}, nil), move("an unknown topic", "nowhere", 0, []int32{node}, nil),
		move("no change of the factor", "t", 0, []int32{node}, func(r *kmsg.AlterPartitionAssignmentsRequest) { r.AllowReplicationFactorChange = false }).since(1),
		move("a change of the factor refused", "t", 0, []int32{node, 99}, func(r *kmsg.AlterPartitionAssignmentsRequest) { r.AllowReplicationFactorChange = false }).since(1),
		ask("nothing", kmsg.NewPtrAlterPartitionAssignmentsRequest, func(c *moment, r *kmsg.AlterPartitionAssignmentsRequest) { r.TimeoutMillis = 30_000 }),
		list("all", nil), list("one", of("t", 0)), list("a partition that is not there", of("t", 9)), list("an unknown topic", of("nowhere", 0)), list("none", []kmsg.ListPartitionReassignmentsRequestTopic{}),
	}}
}

func quotaStory() story {
	type entity = kmsg.AlterClientQuotasRequestEntryEntity
	type op = kmsg.AlterClientQuotasRequestEntryOp
	set := func(name string, validate bool, entities []entity, ops ...op) step {
		return ask(name, kmsg.NewPtrAlterClientQuotasRequest, func(c *moment, r *kmsg.AlterClientQuotasRequest) {
			r.ValidateOnly, r.Entries = validate, []kmsg.AlterClientQuotasRequestEntry{{Entity: entities, Ops: ops}}
		})
	}
	describe := func(name string, strict bool, components ...kmsg.DescribeClientQuotasRequestComponent) step {
		return ask(name, kmsg.NewPtrDescribeClientQuotasRequest, func(c *moment, r *kmsg.DescribeClientQuotasRequest) { r.Strict, r.Components = strict, components })
	}
	some := []entity{{Type: "client-id", Name: ptr("slow")}}
	rate := op{Key: "producer_byte_rate", Value: 1e9}
	gone := op{Key: "producer_byte_rate", Remove: true}
	exact := func(kind, name string) kmsg.DescribeClientQuotasRequestComponent {
		return kmsg.DescribeClientQuotasRequestComponent{EntityType: kind, MatchType: 0, Match: &name}
	}
	match := func(kind string, how kmsg.QuotasMatchType) kmsg.DescribeClientQuotasRequestComponent {
		return kmsg.DescribeClientQuotasRequestComponent{EntityType: kind, MatchType: how}
	}
	return story{name: "quotas", steps: []step{
		set("only checked", true, some, rate), describe("none yet", false).when(entries(0)), set("set", false, some, rate, op{Key: "request_percentage", Value: 500}), set("for all users", false, []entity{{Type: "user"}}, rate), set("for a user's client", false, []entity{{Type: "user", Name: ptr("u")}, {Type: "client-id", Name: ptr("slow")}}, rate),
		set("for an address", false, []entity{{Type: "ip", Name: ptr("10.0.0.1")}}, op{Key: "connection_creation_rate", Value: 100}),
		describe("all of them", false).when(entries(4)), describe("one", false, exact("client-id", "slow")), describe("one alone", true, exact("client-id", "slow")), describe("the default user", false, match("user", 1)), describe("any user", false, match("user", 2)), describe("any address", false, match("ip", 2)),
		describe("an unknown kind", false, exact("planet", "x")), describe("a kind twice", false, exact("user", "x"), exact("user", "y")), describe("an unknown match", false, match("user", 9)), describe("an exact match of nothing", false, match("user", 0)), describe("an address and a user", false, match("ip", 2), match("user", 2)), describe("no kind", false, match("", 2)),
		set("an unknown key", false, some, op{Key: "speed", Value: 1}), set("an unknown kind", false, []entity{{Type: "planet", Name: ptr("x")}}, rate), set("no entity", false, nil, rate), set("a kind twice", false, []entity{{Type: "user"}, {Type: "user"}}, rate), set("an empty name", false, []entity{{Type: "user", Name: ptr("")}}, rate), set("a rate of 0", false, some, op{Key: "producer_byte_rate", Value: 0}), set("a negative rate", false, some, op{Key: "producer_byte_rate", Value: -1}),
		set("an address that is none", false, []entity{{Type: "ip", Name: ptr("nowhere at all")}}, op{Key: "connection_creation_rate", Value: 1}), set("a byte rate for an address", false, []entity{{Type: "ip", Name: ptr("10.0.0.1")}}, rate), set("half a byte", false, some, op{Key: "producer_byte_rate", Value: 0.5}), set("an address and a user", false, []entity{{Type: "ip", Name: ptr("10.0.0.1")}, {Type: "user", Name: ptr("u")}}, rate),
		set("take back", false, some, gone, op{Key: "request_percentage", Remove: true}), set("take back again", false, some, gone), set("take back for all users", false, []entity{{Type: "user"}}, gone), set("take back a user's client", false, []entity{{Type: "user", Name: ptr("u")}, {Type: "client-id", Name: ptr("slow")}}, gone), set("take back an address", false, []entity{{Type: "ip", Name: ptr("10.0.0.1")}}, op{Key: "connection_creation_rate", Remove: true}),
		set("no operation", false, some),
		ask("nothing", kmsg.NewPtrAlterClientQuotasRequest, nil),
	}}
}

// entries waits until this many quotas are described.
func entries(n int) func(r kmsg.Response) bool {
	return func(r kmsg.Response) bool { return len(r.(*kmsg.DescribeClientQuotasResponse).Entries) == n }
}

// moveStory is about moving partitions between data directories.
func moveStory() story {
	move := func(name, dir, topic string, partitions ...int32) step {
		return ask(name, kmsg.NewPtrAlterReplicaLogDirsRequest, func(c *moment, r *kmsg.AlterReplicaLogDirsRequest) {
			dir := cmp.Or(dir, c.text("dir"))
			r.Dirs = []kmsg.AlterReplicaLogDirsRequestDir{{Dir: dir, Topics: []kmsg.AlterReplicaLogDirsRequestDirTopic{{Topic: topic, Partitions: partitions}}}}
		})
	}
	return story{name: "moves", about: []int16{kmsg.AlterReplicaLogDirs.Int16()}, steps: []step{
		ask("where it is", kmsg.NewPtrDescribeLogDirsRequest, func(c *moment, r *kmsg.DescribeLogDirsRequest) {
			r.Topics = []kmsg.DescribeLogDirsRequestTopic{{Topic: "t", Partitions: []int32{0}}}
		}).then(func(c *moment, r kmsg.Response) {
			if dirs := r.(*kmsg.DescribeLogDirsResponse).Dirs; len(dirs) > 0 {
				c.vars["dir"] = dirs[0].Dir
			}
		}),
		move("to where it is", "", "t", 0), move("to a directory that is not there", "/no/such/dir", "t", 0), move("a partition that is not there", "", "t", 9), move("an unknown topic", "", "nowhere", 0), move("to a relative path", "data", "t", 0), move("no partitions", "", "t"),
		ask("nothing", kmsg.NewPtrAlterReplicaLogDirsRequest, nil),
	}}
}

// telemetryStory is about clients' metrics, which Kafka serves only with a plugin: what comes back is decoded, not compared.
func telemetryStory() story {
	subscription := func(name string, id [16]byte) step {
		return ask(name, kmsg.NewPtrGetTelemetrySubscriptionsRequest, func(c *moment, r *kmsg.GetTelemetrySubscriptionsRequest) { r.ClientInstanceID = id })
	}
	push := func(name string, change func(r *kmsg.PushTelemetryRequest)) step {
		return ask(name, kmsg.NewPtrPushTelemetryRequest, func(c *moment, r *kmsg.PushTelemetryRequest) {
			r.ClientInstanceID, _ = c.vars["instance"].([16]byte)
			r.SubscriptionID = c.number("subscription")
			change(r)
		})
	}
	return story{name: "telemetry", steps: []step{
		subscription("a new instance", [16]byte{}).then(func(c *moment, r kmsg.Response) {
			s := r.(*kmsg.GetTelemetrySubscriptionsResponse)
			c.vars["instance"], c.vars["subscription"] = s.ClientInstanceID, s.SubscriptionID
		}),
		subscription("a named instance", strange),
		push("nothing to tell", func(r *kmsg.PushTelemetryRequest) {}), push("another subscription", func(r *kmsg.PushTelemetryRequest) { r.SubscriptionID += 7 }), push("an unknown codec", func(r *kmsg.PushTelemetryRequest) { r.CompressionType = 9 }),
		push("no instance", func(r *kmsg.PushTelemetryRequest) { r.ClientInstanceID = [16]byte{} }), push("the last", func(r *kmsg.PushTelemetryRequest) { r.Terminating = true }),
	}}
}

func versionStories() []story {
	software := func(name, program, version string) step {
		return ask(name, kmsg.NewPtrApiVersionsRequest, func(c *moment, r *kmsg.ApiVersionsRequest) {
			r.ClientSoftwareName, r.ClientSoftwareVersion = program, version
		})
	}
	return []story{{name: "versions", steps: []step{software("plain", "sweep", "1.0"), software("no name", "", "1").since(3), software("a bad name", "no slash/", "1").since(3), software("a bad version", "sweep", "-1-").since(3)}}}
}
