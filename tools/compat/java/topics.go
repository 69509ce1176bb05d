package java

import "regexp"

// kafkasOwn is what a new Kafka cluster sets by itself for all topics, with its feature eligible.leader.replicas.
const kafkasOwn = `min\.insync\.replicas=1,?`

// topicActs: kafka-topics.
func topicActs(s *stage) {
	t := func(args string, want ...string) string {
		return s.do(act{tool: "topics", args: args, want: want, mask: []string{kafkasOwn}})
	}
	refused := func(args, exception string) {
		s.do(act{tool: "topics", args: args, status: 1, want: []string{"~Error while executing topic command : .+"}, err: "org.apache.kafka.common.errors." + exception, how: alone})
	}
	t("--create --topic orders --partitions 3 --config retention.ms=3600000 --config max.message.bytes=2000000", "Created topic orders.")
	refused("--create --topic orders", "TopicExistsException")
	t("--create --topic orders --if-not-exists")
	t("--create --topic plain", "Created topic plain.")
	t("--create --topic placed --replica-assignment 1,1", "Created topic placed.")
	t("--create --topic dotted.name --partitions 2", "Created topic dotted.name.")
	refused("--create --topic dotted_name", "InvalidTopicException")
	refused("--create --topic 'not valid'", "InvalidTopicException")
	refused("--create --topic two --replication-factor 2", "InvalidReplicationFactorException")
	refused("--create --topic two --replica-assignment 1:2", "InvalidReplicaAssignmentException")
	refused("--create --topic none --config nosuch.key=1", "InvalidConfigurationException")
	refusedHere := func(args, message string) { // by the tool itself
		s.do(act{tool: "topics", args: args, status: 1, want: []string{"~Error while executing topic command : " + message}})
	}
	nosuch := `Topic '(Optional\[)?nosuch\]?' does not exist as expected`
	refusedHere("--create --topic none --config retention.ms=soon", "Invalid value soon for configuration retention.ms: Not a number of type LONG")
	refusedHere("--create --topic none --config retention.ms=-2", "Invalid value -2 for configuration retention.ms: Value must be at least -1")
	t("--list", "dotted.name", "orders", "placed", "plain")
	t("--list --exclude-internal", "orders")
	t("--list --topic 'p.*'", "placed", "plain")
	out := t("--describe --topic orders",
		`~Topic: orders TopicId: [\w-]{22} PartitionCount: 3 ReplicationFactor: 1 Configs: .*retention.ms=3600000.*`,
		"~Topic: orders Partition: 0 Leader: 1 Replicas: 1 Isr: 1.*", "~Topic: orders Partition: 1 .*", "~Topic: orders Partition: 2 .*")
	if id := regexp.MustCompile(`TopicId: (\S+)`).FindStringSubmatch(out); id != nil {
		s.on(s.brokers[0], act{tool: "topics", args: "--describe --topic-id " + id[1], want: []string{"~Topic: orders TopicId: " + id[1] + " .*", "~.*Partition: 2.*"}})
	}
	t("--describe")
	for _, describe := range []string{"--describe --topic p.*", "--describe --exclude-internal"} {
		s.do(act{tool: "topics", args: describe, want: []string{"~Topic: placed .*PartitionCount: 2.*", "~Topic: placed Partition: 1 .*"}, how: anyOrder, mask: []string{kafkasOwn}})
	}
	s.do(act{tool: "topics", args: "--describe --topics-with-overrides", want: []string{"~Topic: orders .*max.message.bytes=2000000.*"}, how: alone}) // to Kafka all topics are
	s.on(s.brokers[0], act{tool: "topics", args: "--describe --topics-with-overrides", not: []string{"Topic: plain", "Partition: 0"}})
	t("--describe --under-replicated-partitions")
	t("--describe --unavailable-partitions")
	t("--describe --at-min-isr-partitions", "~Topic: orders Partition: 0 .*")
	t("--describe --under-min-isr-partitions")
	refusedHere("--describe --topic nosuch", nosuch)
	t("--describe --topic nosuch --if-exists")
	t("--alter --topic orders --partitions 5")
	t("--describe --topic orders", "~Topic: orders .*PartitionCount: 5 .*", "~.*Partition: 4 Leader: 1 .*")
	refused("--alter --topic orders --partitions 2", "InvalidPartitionsException")
	refused("--alter --topic orders --partitions 5", "InvalidPartitionsException")
	refusedHere("--alter --topic nosuch --partitions 2", nosuch)
	t("--alter --topic nosuch --partitions 2 --if-exists")
	t("--alter --topic placed --partitions 3 --replica-assignment 1,1,1")
	refused("--alter --topic placed --partitions 4 --replica-assignment 1,1,1,2", "InvalidReplicaAssignmentException")
	refusedHere("--delete --topic nosuch", nosuch)
	t("--delete --topic nosuch --if-exists")
	t("--delete --topic plain")
	t("--delete --topic 'dotted.*'")
	t("--list", "orders", "placed")
}
