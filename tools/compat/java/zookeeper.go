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
	return []harness.Check{{Client: "Apache Kafka's tools 2.8.2", Name: "topics and topic configs with --zookeeper, and our kafka-topics.sh with it", Limit: 6 * time.Minute, Run: func(e *harness.Env) error {
		s, err := besideZooKeeper(e, harness.Kafka28)
		if err != nil {
			return err
		}
		defer s.close()
		theirs := zookeeperActs(s, "topics")
		ours := zookeeperActs(s, "bin/kafka-topics.sh")
		for i, want := range theirs {
			if !slices.Equal(ours[i].lines, want.lines) {
				s.fail(fmt.Errorf("%s: our kafka-topics.sh says %q, Kafka's %q", want.args, ours[i].lines, want.lines))
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

// zookeeperActs: kafka-topics by a tool, and Kafka's kafka-configs, with --zookeeper; what the tool said on Millrace.
func zookeeperActs(s *stage, tool string) (out []said) {
	note := func(args, text string) {
		out = append(out, said{args, s.brokers[0].normal(text, nil)})
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
		s.do(act{tool: "configs", args: "--zookeeper {z} --entity-type topics " + args, want: want})
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

	c("--entity-name quick --alter --add-config retention.ms=60000,cleanup.policy=[compact,delete]", "Completed updating config for entity: topic 'quick'.")
	c("--entity-name quick --describe", "Configs for topic 'quick' are cleanup.policy=compact,delete,retention.ms=60000")
	c("--entity-name quick --alter --delete-config retention.ms", "Completed updating config for entity: topic 'quick'.")
	s.do(act{tool: "configs", args: "--zookeeper {z} --entity-type topics --describe", want: []string{"Configs for topic 'quick' are cleanup.policy=compact,delete"}, how: anyOrder})
	// The settings have reached the brokers, as their own answers say.
	s.settled(act{tool: "topics", args: "--describe --topic quick --bootstrap-server {b}", want: []string{"~Topic: quick .*PartitionCount: 6 .*Configs: cleanup.policy=compact,delete"}, not: []string{"retention.ms"}, how: alone})

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
