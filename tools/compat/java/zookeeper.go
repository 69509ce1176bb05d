package java

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"millrace/tools/compat/harness"
)

// zookeeperChecks: the tools of the ZooKeeper era, which write to coordination themselves and leave it to the controller to act.
func zookeeperChecks() []harness.Check {
	return []harness.Check{{Client: "Apache Kafka's tools 2.8.2", Name: "topics, settings and quotas with --zookeeper, and our kafka-topics.sh and kafka-configs.sh with it", Limit: 6 * time.Minute, Run: func(e *harness.Env) error {
		s, err := besideZooKeeper(e, harness.Kafka28)
		if err != nil {
			return err
		}
		defer s.close()
		theirs := zookeeperActs(s, "topics", "configs")
		ours := zookeeperActs(s, "bin/kafka-topics.sh", "bin/kafka-configs.sh")
		for i, want := range theirs {
			if !slices.Equal(ours[i].lines, want.lines) {
				s.fail(fmt.Errorf("%s: our script says %q, Kafka's %q", want.args, ours[i].lines, want.lines))
			}
		}
		return s.finish()
	}}}
}

// said is what a tool answered to arguments.
type said struct {
	args  string
	lines []string
}

// settled runs an act until the controllers have done what was asked for before, and then holds it against Kafka's.
func (s *stage) settled(a act) string {
	for _, b := range s.brokers {
		harness.Within(20*time.Second, func() error { // what is still wrong then, do says
			_, err := s.once(a, b)
			return err
		})
	}
	return s.do(a)
}

// deprecation is what Kafka's kafka-configs says of --zookeeper each time; ours does not, since it is not going to end.
const deprecation = `(?m)^(Warning: --zookeeper is deprecated|Use --bootstrap-server instead).*$`

// zookeeperActs: kafka-topics and kafka-configs by a tool, with --zookeeper; what the tool said on Millrace.
func zookeeperActs(s *stage, tool, configs string) (out []said) {
	note := func(args, text string) {
		out = append(out, said{args, s.brokers[0].normal(text, []string{deprecation})})
	}
	t := func(args string, want ...string) {
		note(args, s.do(act{tool: tool, args: "--zookeeper {z} " + args, want: want}))
	}
	shown := func(args string, want ...string) {
		note(args, s.settled(act{tool: tool, args: "--zookeeper {z} " + args, want: want}))
	}
	refused := func(args, exception string) { // each in its own words
		if tool != "topics" {
			exception = ""
		}
		text := s.do(act{tool: tool, args: "--zookeeper {z} " + args, status: 1, want: []string{"~Error while executing topic command : .+"}, err: exception})
		text, _, _ = strings.Cut(text, "Error while")
		note(args, text)
	}
	c := func(args string, want ...string) {
		note(args, s.do(act{tool: configs, args: "--zookeeper {z} " + args, want: want, how: anyOrder}))
		slices.Sort(out[len(out)-1].lines)
	}
	cRefused := func(args, want string) { // where the words are the same
		note(args, s.do(act{tool: configs, args: "--zookeeper {z} " + args, status: 1, err: want}))
	}
	t("--list")
	t("--create --replication-factor 1 --partitions 3 --topic quick --config retention.ms=3600000", "Created topic quick.")
	t("--create --replication-factor 1 --partitions 1 --topic other.name")
	t("--create --topic placed --replica-assignment 1,1")
	t("--create --replication-factor 1 --partitions 1 --topic quick --if-not-exists")
	refused("--create --replication-factor 1 --partitions 1 --topic quick", "TopicExistsException")
	refused("--create --replication-factor 1 --partitions 1 --topic other_name", "InvalidTopicException")
	refused("--create --replication-factor 1 --partitions 1 --topic 'not valid'", "InvalidTopicException")
	refused("--create --replication-factor 2 --partitions 1 --topic two", "InvalidReplicationFactorException")
	refused("--create --replication-factor 1 --partitions 0 --topic none", "")
	refused("--create --replication-factor 1 --partitions 1 --topic none --config nosuch.key=1", "InvalidConfigurationException")
	refused("--create --replication-factor 1 --partitions 1 --topic none --config retention.ms=soon", "")
	shown("--list", "other.name", "placed", "quick")
	t("--list --topic 'p.*|q.*'", "placed", "quick")
	shown("--describe --topic quick", `~Topic: quick TopicId: [\w-]{22} PartitionCount: 3 ReplicationFactor: 1 Configs: retention.ms=3600000`, "Topic: quick Partition: 0 Leader: 1 Replicas: 1 Isr: 1", "~.*Partition: 1 Leader: 1.*", "~.*Partition: 2 Leader: 1.*")
	shown("--describe", "~Topic: other.name .*", "~Topic: placed .*", "~.*Partition: 1 Leader: 1.*", "~Topic: quick .*")
	t("--describe --topics-with-overrides", "~Topic: quick .*")
	t("--describe --under-replicated-partitions")
	t("--describe --unavailable-partitions")
	refused("--describe --topic nosuch", "")
	t("--alter --topic quick --partitions 6", "Adding partitions succeeded!")
	shown("--describe --topic quick", "~Topic: quick .*PartitionCount: 6 .*", "Topic: quick Partition: 5 Leader: 1 Replicas: 1 Isr: 1")
	refused("--alter --topic quick --partitions 2", "InvalidPartitionsException")
	refused("--alter --topic quick --partitions 6", "InvalidPartitionsException")
	refused("--alter --topic nosuch --partitions 6", "")
	t("--alter --topic nosuch --partitions 6 --if-exists")
	t("--alter --topic placed --partitions 3 --replica-assignment 1,1,1")

	c("--entity-type topics --entity-name quick --alter --add-config retention.ms=60000,cleanup.policy=[compact,delete]", "Completed updating config for entity: topic 'quick'.")
	c("--entity-type topics --entity-name quick --describe", "Configs for topic 'quick' are cleanup.policy=compact,delete,retention.ms=60000")
	c("--entity-type topics --entity-name quick --alter --delete-config retention.ms", "Completed updating config for entity: topic 'quick'.")
	c("--entity-type topics --describe", "Configs for topic 'quick' are cleanup.policy=compact,delete")
	c("--entity-type topics --entity-name nosuch --describe", "~Configs for topic 'nosuch' are.*")
	cRefused("--entity-type topics --entity-name quick --alter --delete-config retention.ms", "Invalid config(s): retention.ms")
	// The settings have reached the brokers, as their own answers say.
	s.settled(act{tool: "topics", args: "--describe --topic quick --bootstrap-server {b}", want: []string{"~Topic: quick .*PartitionCount: 6 .*Configs: cleanup.policy=compact,delete"}, not: []string{"retention.ms"}, how: alone})

	c("--entity-type clients --entity-name c1 --alter --add-config producer_byte_rate=1024", "Completed updating config for entity: client-id 'c1'.")
	c("--entity-type clients --entity-default --alter --add-config consumer_byte_rate=2048", "Completed updating config for entity: default client-id.")
	c("--entity-type users --entity-name 'u 1' --alter --add-config request_percentage=50", "Completed updating config for entity: user-principal 'u 1'.")
	c("--entity-type clients --entity-name c1 --entity-type users --entity-name u2 --alter --add-config producer_byte_rate=1024", "Completed updating config for entity: user-principal 'u2', client-id 'c1'.")
	c("--entity-type users --entity-name u2 --entity-type clients --entity-default --alter --add-config consumer_byte_rate=1024", "Completed updating config for entity: user-principal 'u2', default client-id.")
	c("--entity-type ips --entity-name 10.0.0.1 --alter --add-config connection_creation_rate=10", "Completed updating config for entity: ips '10.0.0.1'.")
	c("--entity-type clients --describe", "Configs for client-id 'c1' are producer_byte_rate=1024", "Configs for default client-id are consumer_byte_rate=2048")
	c("--entity-type users --describe", "Configs for user-principal 'u 1' are request_percentage=50")
	c("--entity-type users --entity-type clients --describe", "Configs for user-principal 'u2', client-id 'c1' are producer_byte_rate=1024", "Configs for user-principal 'u2', default client-id are consumer_byte_rate=1024")
	c("--entity-type users --entity-name u2 --entity-type clients --describe", "~.*client-id 'c1' are.*", "~.*default client-id are.*")
	c("--entity-type ips --describe", "Configs for ips '10.0.0.1' are connection_creation_rate=10")
	s.settled(act{tool: "configs", args: "--describe --entity-type clients --bootstrap-server {b}", want: []string{"Quota configs for the default client-id are consumer_byte_rate=2048.0", "Quota configs for client-id 'c1' are producer_byte_rate=1024.0"}, how: alone})
	for _, remove := range []string{"clients --entity-name c1 --alter --delete-config producer_byte_rate", "clients --entity-default --alter --delete-config consumer_byte_rate", "users --entity-name 'u 1' --alter --delete-config request_percentage"} {
		c("--entity-type "+remove, "~Completed updating config for entity: .*")
	}
	c("--entity-type brokers --entity-name 1 --alter --add-config leader.replication.throttled.rate=1000000", "Completed updating config for entity: brokers '1'.")
	c("--entity-type brokers --entity-name 1 --describe", "Configs for brokers '1' are leader.replication.throttled.rate=1000000")
	c("--entity-type brokers --entity-name 1 --alter --delete-config leader.replication.throttled.rate", "Completed updating config for entity: brokers '1'.")
	cRefused("--entity-type broker-loggers --entity-name 1 --describe", "Invalid entity type broker-loggers, the entity type must be one of topics,clients,users,brokers,ips with the --zookeeper argument")

	t("--delete --topic other.name", "Topic other.name is marked for deletion.")
	refused("--delete --topic nosuch", "")
	t("--delete --topic nosuch --if-exists")
	gone := func(name string, want ...string) {
		note("--list", s.settled(act{tool: tool, args: "--zookeeper {z} --list", want: want, not: []string{name}}))
		s.settled(act{tool: "topics", args: "--list --bootstrap-server {b}", want: want, not: []string{name}})
	}
	gone("other.name", "placed", "quick")
	t("--delete --topic 'placed|quick'", "Topic placed is marked for deletion.", "Topic quick is marked for deletion.")
	gone("quick")
	return out
}
