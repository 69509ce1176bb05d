package main

import (
	"bytes"
	"strings"
	"testing"

	"millrace/coord/zk/proto"
	"millrace/tools/internal/zkclient"
)

// treeWith starts a coordination service without a controller, whose tree has empty nodes at the paths.
func treeWith(t *testing.T, paths ...string) (at string, c *zkclient.Client) {
	t.Helper()
	at = coordination(t)
	c, err := zkclient.Dial(t.Context(), at, zookeeperTimeout)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	for _, path := range paths {
		mustDo(t, c, proto.Request{Op: proto.OpCreate, Path: path})
	}
	return at, c
}

// Claim: kafka-topics.sh --zookeeper reads and writes Kafka's nodes, below a chroot too, as Kafka 2.8's does, and says what it cannot do. What a
// controller makes of it, and that the answers are those of 2.8's, is shown by tools/compat.
// Method: a tree without a controller; each act, with what is in the tree before and after it.
func TestTopicsByZookeeper(t *testing.T) {
	at, c := treeWith(t, "/k", "/k/brokers", "/k/brokers/ids", "/k/brokers/ids/3", "/k/brokers/ids/10", "/k/brokers/topics", "/k/config", "/k/config/topics", "/k/config/topics/left", "/k/admin", "/k/admin/delete_topics")
	is := func(path, want string) {
		t.Helper()
		r, err := c.Do(proto.Request{Op: proto.OpGetData, Path: path})
		if err != nil || !strings.Contains(string(r.Data), want) {
			t.Errorf("%s: %s, %v, want %s", path, r.Data, err, want)
		}
	}
	topics := func(status int, want, args string) {
		t.Helper()
		var out, errs bytes.Buffer
		words := append([]string{"--zookeeper", at + "/k"}, strings.Fields(args)...)
		if got := runNamed(t.Context(), "kafka-topics.sh", words, strings.NewReader(""), &out, &errs); got != status || !strings.Contains(out.String()+errs.String(), want) || want == "" && out.Len() > 0 {
			t.Errorf("%s: exit status %d, want %d and %q: %s%s", args, got, status, want, out.String(), errs.String())
		}
	}
	topics(0, "", "--list")
	topics(0, "Created topic left.\n", "--create --topic left --partitions 3 --replication-factor 2 --config retention.ms=5")
	is("/k/config/topics/left", `{"version":1,"config":{"retention.ms":"5"}}`)
	is("/k/brokers/topics/left", `"version":3`)
	topics(1, "Topic 'left' already exists.", "--create --topic left --partitions 1 --replication-factor 1")
	topics(0, "", "--create --topic left --partitions 1 --replication-factor 1 --if-not-exists")
	topics(0, "PartitionCount: 3\tReplicationFactor: 2\tConfigs: retention.ms=5\n\tTopic: left\tPartition: 0\tLeader: none\tReplicas: ", "--describe --topic left")
	topics(0, "\tTopic: left\tPartition: 2\tLeader: none", "--describe --unavailable-partitions")
	mustDo(t, c, proto.Request{Op: proto.OpCreate, Path: "/k/brokers/topics/left/partitions"})
	mustDo(t, c, proto.Request{Op: proto.OpCreate, Path: "/k/brokers/topics/left/partitions/0"})
	mustDo(t, c, proto.Request{Op: proto.OpCreate, Path: "/k/brokers/topics/left/partitions/0/state", Data: []byte(`{"controller_epoch":1,"leader":10,"version":1,"leader_epoch":0,"isr":[10]}`)})
	topics(0, "\tTopic: left\tPartition: 0\tLeader: 10\t", "--describe --under-replicated-partitions")
	topics(0, "Adding partitions succeeded!", "--alter --topic left --partitions 4 --replica-assignment 3:10,3:10,3:10,10:3")
	is("/k/brokers/topics/left", `"3":[10,3]`)
	topics(1, "has 4 partition(s) already", "--alter --topic left --partitions 4")
	topics(1, "only 2 broker(s) are alive", "--create --topic a --partitions 1 --replication-factor 3")
	topics(1, "unknown config name", "--create --topic a --partitions 1 --replication-factor 1 --config no=1")
	topics(0, "Topic left is marked for deletion.\nNote: ", "--delete --topic left")
	topics(0, "Topic left is already marked for deletion.\n", "--delete --topic left")
	topics(0, "left - marked for deletion\n", "--list")
	topics(0, "Isr: 10\tMarkedForDeletion: true\n", "--describe --topic left")

	// A topic that a tool before 2.8 made has no id until the controller gives it one.
	mustDo(t, c, proto.Request{Op: proto.OpCreate, Path: "/k/brokers/topics/old", Data: []byte(`{"version":1,"partitions":{"0":[3]}}`)})
	topics(0, "succeeded", "--alter --topic old --partitions 2")
	if r, _ := c.Do(proto.Request{Op: proto.OpGetData, Path: "/k/brokers/topics/old"}); strings.Contains(string(r.Data), "topic_id") {
		t.Errorf("an id was made up: %s", r.Data)
	}
	mustDo(t, c, proto.Request{Op: proto.OpCreate, Path: "/k/brokers/topics/__consumer_offsets", Data: []byte(`{"version":1,"partitions":{"0":[3]}}`)})
	topics(1, "is a kafka internal topic", "--delete --topic __consumer_offsets")
	topics(1, "does not exist as expected", "--alter --topic none --partitions 2")
	topics(0, "", "--delete --topic none --if-exists")
	topics(1, `"[at-min-isr-partitions]" can't be used with option "[zookeeper]"`, "--describe --at-min-isr-partitions")
	topics(1, "Only one of --bootstrap-server or --zookeeper", "--list --bootstrap-server x:1")
	topics(1, `Missing required argument "[replication-factor]"`, "--create --topic a --partitions 1")
}
