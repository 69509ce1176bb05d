package sweep

import (
	"strings"

	"github.com/twmb/franz-go/pkg/kmsg"

	"millrace/wire"
)

func metadataStory() story {
	type r = *kmsg.MetadataRequest
	named := func(name string, auto bool, topics ...string) step {
		return ask(name, kmsg.NewPtrMetadataRequest, func(c *moment, r r) {
			r.AllowAutoTopicCreation = auto
			r.Topics = []kmsg.MetadataRequestTopic{}
			for _, t := range topics {
				r.Topics = append(r.Topics, kmsg.MetadataRequestTopic{Topic: ptr(c.its(t))})
			}
		})
	}
	byID := func(name string, topic *string, id func(c *moment) [16]byte) step {
		return ask(name, kmsg.NewPtrMetadataRequest, func(c *moment, r r) {
			r.Topics = []kmsg.MetadataRequestTopic{{Topic: topic, TopicID: id(c)}}
		})
	}
	t := func(c *moment) [16]byte { return c.ids["t"] }
	return story{name: "metadata", steps: []step{
		named("one topic", false, "t"), named("two topics", false, "t", "compacted"), named("one topic twice", false, "t", "t"),
		named("an unknown topic", false, "nowhere").since(4), named("an invalid name", false, "no/slash"), named("an empty name", false, ""), named("a name of 250", false, strings.Repeat("x", 250)),
		named("a name of two dots", false, ".."),
		named("none", false).since(1),
		named("an unknown topic to be made", true, "made~"), named("the topic that was made", true, "made~").settled(), named("an invalid topic to be made", true, "no/slash"),
		named("the offsets topic", false, "__consumer_offsets"),
		byID("by id", nil, t).since(10), byID("by a strange id", nil, func(*moment) [16]byte { return strange }).since(10),
		byID("by id and name", ptr("t"), t).since(10), byID("by neither", nil, func(*moment) [16]byte { return [16]byte{} }).since(10),
		ask("the right to do what", kmsg.NewPtrMetadataRequest, func(c *moment, r r) {
			r.Topics = []kmsg.MetadataRequestTopic{{Topic: ptr("t")}}
			r.IncludeTopicAuthorizedOperations, r.IncludeClusterAuthorizedOperations = true, c.asked < 11
		}).since(8),
	}}
}

func createStory() story {
	type topic = *kmsg.CreateTopicsRequestTopic
	create := func(name string, validate bool, topics ...func(c *moment, t topic)) step {
		return ask(name, kmsg.NewPtrCreateTopicsRequest, func(c *moment, r *kmsg.CreateTopicsRequest) {
			r.TimeoutMillis, r.ValidateOnly = 30_000, validate
			for _, fill := range topics {
				t := kmsg.NewCreateTopicsRequestTopic()
				t.NumPartitions, t.ReplicationFactor = 1, 1
				fill(c, &t)
				t.Topic = c.its(t.Topic)
				r.Topics = append(r.Topics, t)
			}
		})
	}
	named := func(name string) func(*moment, topic) { return func(c *moment, t topic) { t.Topic = name } }
	config := func(name, key string, value *string) func(*moment, topic) {
		return func(c *moment, t topic) {
			t.Topic, t.Configs = name, []kmsg.CreateTopicsRequestTopicConfig{{Name: key, Value: value}}
		}
	}
	assigned := func(name string, partitions int32, factor int16, replicas ...[]int32) func(*moment, topic) {
		return func(c *moment, t topic) {
			t.Topic, t.NumPartitions, t.ReplicationFactor = name, partitions, factor
			for i, p := range replicas {
				t.ReplicaAssignment = append(t.ReplicaAssignment, kmsg.CreateTopicsRequestTopicReplicaAssignment{Partition: int32(i), Replicas: p})
			}
		}
	}
	counts := func(name string, partitions int32, factor int16) func(*moment, topic) {
		return func(c *moment, t topic) { t.Topic, t.NumPartitions, t.ReplicationFactor = name, partitions, factor }
	}
	return story{name: "create topics", steps: []step{
		create("plain", false, named("c~")), create("again", false, named("c~")), create("twice in one request", false, named("c-twice~"), named("c-twice~")),
		create("one good and one bad", false, named("c-good~"), named("no/slash")),
		create("only checked", true, named("c-checked~")).since(1), create("only checked, there already", true, named("c~")).since(1),
		create("after the check", false, named("c-checked~")),
		create("with a setting", false, config("c-set~", "retention.ms", ptr("1000"))), create("with a null setting", false, config("c-null~", "retention.ms", nil)),
		create("with an unknown setting", false, config("c-bad~", "no.such.key", ptr("1"))), create("with a bad value", false, config("c-bad~", "retention.ms", ptr("soon"))),
		create("with a value out of range", false, config("c-bad~", "segment.bytes", ptr("1"))), create("with a bad policy", false, config("c-bad~", "cleanup.policy", ptr("burn"))),
		create("no partitions", false, counts("c-bad~", 0, 1)), create("-2 partitions", false, counts("c-bad~", -2, 1)), create("default partitions", false, counts("c-default~", -1, 1)).since(4),
		create("factor 3", false, counts("c-bad~", 1, 3)), create("factor 0", false, counts("c-bad~", 1, 0)), create("default factor", false, counts("c-factor~", 1, -1)).since(4),
		create("both defaults", false, counts("c-both~", -1, -1)).since(4),
		create("too many partitions", false, counts("c-bad~", 2_000_000, 1)),
		create("an assignment", false, assigned("c-assigned~", -1, -1, []int32{node}, []int32{node})), create("an assignment and counts", false, assigned("c-bad~", 2, 1, []int32{node}, []int32{node})),
		create("an assignment to nobody", false, assigned("c-bad~", -1, -1, []int32{})), create("an assignment to a broker that is not there", false, assigned("c-bad~", -1, -1, []int32{99})),
		create("an assignment twice to one broker", false, assigned("c-bad~", -1, -1, []int32{node, node})),
		create("an assignment with a gap", false, func(c *moment, t topic) {
			assigned("c-bad~", -1, -1, []int32{node})(c, t)
			t.ReplicaAssignment[0].Partition = 3
		}),
		create("no name", false, named("")), create("an invalid name", false, named("no/slash")), create("a name of 250", false, named(strings.Repeat("x", 250))), create("a dot", false, named(".")),
		create("a name that collides in metrics", false, named("c_~")), create("a name like ours with dots", false, named("dotted.name~")), create("and with underlines", false, named("dotted_name~")),
		create("an internal name", false, named("__consumer_offsets")),
		create("nothing", false),
	}}
}

func deleteStory() story {
	del := func(name string, topics ...string) step {
		return ask(name, kmsg.NewPtrDeleteTopicsRequest, func(c *moment, r *kmsg.DeleteTopicsRequest) {
			r.TimeoutMillis, r.TopicNames = 30_000, []string{}
			for _, t := range topics {
				r.TopicNames = append(r.TopicNames, c.its(t))
				r.Topics = append(r.Topics, kmsg.DeleteTopicsRequestTopic{Topic: ptr(c.its(t))})
			}
		})
	}
	byID := func(name string, fill func(c *moment) kmsg.DeleteTopicsRequestTopic) step {
		return ask(name, kmsg.NewPtrDeleteTopicsRequest, func(c *moment, r *kmsg.DeleteTopicsRequest) {
			r.TimeoutMillis, r.Topics = 30_000, []kmsg.DeleteTopicsRequestTopic{fill(c)}
		}).since(6)
	}
	return story{name: "delete topics", about: []int16{wire.KeyDeleteTopics}, steps: []step{
		createTopic("d~", 1), createTopic("d2~", 1), createTopic("d3~", 1), createTopic("d4~", 1), learn("d~", "d2~", "d3~", "d4~"),
		del("one", "d~"), del("again", "d~"), del("one known, one not", "d2~", "nowhere"), del("twice in one request", "d3~", "d3~"), del("an invalid name", "no/slash"), del("no name", ""), del("nothing"),
		byID("by id", func(c *moment) kmsg.DeleteTopicsRequestTopic {
			return kmsg.DeleteTopicsRequestTopic{TopicID: c.ids[c.its("d4~")]}
		}),
		byID("by a strange id", func(c *moment) kmsg.DeleteTopicsRequestTopic { return kmsg.DeleteTopicsRequestTopic{TopicID: strange} }),
		byID("by neither", func(c *moment) kmsg.DeleteTopicsRequestTopic { return kmsg.DeleteTopicsRequestTopic{} }),
		byID("by both", func(c *moment) kmsg.DeleteTopicsRequestTopic {
			return kmsg.DeleteTopicsRequestTopic{Topic: ptr("t"), TopicID: c.ids["t"]}
		}),
	}}
}

func partitionsStory() story {
	grow := func(name, topic string, count int32, validate bool, replicas ...[]int32) step {
		return ask(name, kmsg.NewPtrCreatePartitionsRequest, func(c *moment, r *kmsg.CreatePartitionsRequest) {
			t := kmsg.NewCreatePartitionsRequestTopic()
			t.Topic, t.Count = c.its(topic), count
			for _, p := range replicas {
				t.Assignment = append(t.Assignment, kmsg.CreatePartitionsRequestTopicAssignment{Replicas: p})
			}
			r.TimeoutMillis, r.ValidateOnly, r.Topics = 30_000, validate, []kmsg.CreatePartitionsRequestTopic{t}
		})
	}
	return story{name: "create partitions", about: []int16{wire.KeyCreatePartitions}, steps: []step{
		createTopic("grow~", 1), learn("grow~"),
		grow("only checked", "grow~", 3, true), grow("to three", "grow~", 3, false), grow("to three again", "grow~", 3, false), grow("to fewer", "grow~", 2, false), grow("to none", "grow~", 0, false), grow("to -1", "grow~", -1, false),
		grow("with an assignment", "grow~", 4, false, []int32{node}), grow("with too few assignments", "grow~", 6, false, []int32{node}), grow("to a broker that is not there", "grow~", 5, false, []int32{99}),
		grow("twice to one broker", "grow~", 5, false, []int32{node, node}), grow("to nobody", "grow~", 5, false, []int32{}),
		grow("an unknown topic", "nowhere", 3, false), grow("an invalid name", "no/slash", 3, false),
		ask("twice in one request", kmsg.NewPtrCreatePartitionsRequest, func(c *moment, r *kmsg.CreatePartitionsRequest) {
			t := kmsg.NewCreatePartitionsRequestTopic()
			t.Topic, t.Count = c.its("grow~"), 9
			r.TimeoutMillis, r.Topics = 30_000, []kmsg.CreatePartitionsRequestTopic{t, t}
		}),
		ask("nothing", kmsg.NewPtrCreatePartitionsRequest, func(c *moment, r *kmsg.CreatePartitionsRequest) { r.TimeoutMillis = 30_000 }),
	}}
}

func describePartitionsStory() story {
	describe := func(name string, limit int32, cursor *kmsg.DescribeTopicPartitionsRequestCursor, topics ...string) step {
		return ask(name, kmsg.NewPtrDescribeTopicPartitionsRequest, func(c *moment, r *kmsg.DescribeTopicPartitionsRequest) {
			for _, t := range topics {
				r.Topics = append(r.Topics, kmsg.DescribeTopicPartitionsRequestTopic{Topic: t})
			}
			r.ResponsePartitionLimit, r.Cursor = limit, cursor
		})
	}
	at := func(topic string, partition int32) *kmsg.DescribeTopicPartitionsRequestCursor {
		return &kmsg.DescribeTopicPartitionsRequestCursor{Topic: topic, Partition: partition}
	}
	return story{name: "describe partitions", steps: []step{
		describe("one", 2000, nil, "t"), describe("two", 2000, nil, "t", "compacted"), describe("unsorted", 2000, nil, "t", "compacted", "small"), describe("twice", 2000, nil, "t", "t"), describe("limited", 1, nil, "t", "compacted"), describe("in the middle", 2000, at("t", 1), "t", "compacted"),
		describe("after all", 2000, at("zzz", 0), "t"), describe("a topic that is gone", 2000, at("d", 0), "t"), describe("an unknown topic", 2000, nil, "nowhere"), describe("an invalid name", 2000, nil, "no/slash"), describe("at partition -1", 2000, at("t", -1), "t"), describe("limit 0", 0, nil, "t"),
		describe("limit -5", -5, nil, "t"),
	}}
}

func topicStories() []story {
	return []story{metadataStory(), createStory(), deleteStory(), partitionsStory(), describePartitionsStory()}
}
