package sweep

import "github.com/twmb/franz-go/pkg/kmsg"

func allStories() []story {
	var all []story
	for _, list := range [][]story{stateStories(), recordStories(), topicStories(), configStories(), groupStories(), consumerStories(), offsetStories(), adminStories(), versionStories()} {
		all = append(all, list...)
	}
	return all
}

// createTopic is a step that makes a topic with this many partitions.
func createTopic(name string, partitions int32, configs ...string) step {
	return ask("create "+name, kmsg.NewPtrCreateTopicsRequest, func(c *moment, r *kmsg.CreateTopicsRequest) {
		t := kmsg.NewCreateTopicsRequestTopic()
		t.Topic, t.NumPartitions, t.ReplicationFactor = c.its(name), partitions, 1
		for i := 0; i < len(configs); i += 2 {
			t.Configs = append(t.Configs, kmsg.CreateTopicsRequestTopicConfig{Name: configs[i], Value: &configs[i+1]})
		}
		r.Topics, r.TimeoutMillis = append(r.Topics, t), 30_000
	})
}

// learn waits until the topics are there and keeps their ids.
func learn(topics ...string) step {
	return ask("look up topics", kmsg.NewPtrMetadataRequest, func(c *moment, r *kmsg.MetadataRequest) {
		for _, t := range topics {
			r.Topics = append(r.Topics, kmsg.MetadataRequestTopic{Topic: ptr(c.its(t))})
		}
	}).settled().then(keepIDs)
}

func keepIDs(c *moment, r kmsg.Response) {
	for _, t := range r.(*kmsg.MetadataResponse).Topics {
		if t.Topic != nil && t.TopicID != [16]byte{} {
			c.ids[*t.Topic] = t.TopicID
		}
	}
}

// stateStories make what the others stand on: topic t with records in its first partition, empty topic u, a compacted one, and a
// coordinator that has loaded.
func stateStories() []story {
	return []story{{name: "state", once: true, steps: []step{
		createTopic("t", 2), createTopic("u", 1), createTopic("compacted", 1, "cleanup.policy", "compact"), createTopic("small", 1, "max.message.bytes", "200", "message.timestamp.type", "LogAppendTime"),
		learn("t", "u", "compacted", "small"),
		produce("three records", "t", 0, func(c *moment) []byte { return recordsOf(c.version, 3) }).settled(),
		produce("two records", "t", 0, func(c *moment) []byte { return recordsOf(c.version, 2) }).settled(),
		ask("coordinator", kmsg.NewPtrFindCoordinatorRequest, func(c *moment, r *kmsg.FindCoordinatorRequest) { r.CoordinatorKeys = []string{"g"} }).settled(),
		ask("no offsets yet", kmsg.NewPtrOffsetFetchRequest, func(c *moment, r *kmsg.OffsetFetchRequest) {
			r.Groups = []kmsg.OffsetFetchRequestGroup{{Group: "g", MemberEpoch: -1}}
		}).settled(),
	}}}
}
