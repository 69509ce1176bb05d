package main

import (
	"bytes"
	"strings"
	"testing"

	"millrace/coord/zk/proto"
)

// Claim: kafka-configs.sh --zookeeper reads and writes Kafka's nodes, below a chroot too, and tells the brokers of each change; what it refuses
// changes nothing. That the sentences are those of Kafka 2.8, and what brokers make of it, is shown by tools/compat.
// Method: a tree with a live broker and a topic, but without a controller; each act, with what is in the tree after it.
func TestConfigsByZookeeper(t *testing.T) {
	at, c := treeWith(t, "/k", "/k/brokers", "/k/brokers/ids", "/k/brokers/ids/3", "/k/brokers/topics", "/k/brokers/topics/t", "/k/config", "/k/config/changes", "/k/config/topics")
	is := func(path, want string) {
		t.Helper()
		r, err := c.Do(proto.Request{Op: proto.OpGetData, Path: path})
		if err != nil || string(r.Data) != want {
			t.Errorf("%s: %s, %v, want %s", path, r.Data, err, want)
		}
	}
	changes := func() int {
		r, err := c.Do(proto.Request{Op: proto.OpGetChildren, Path: "/k/config/changes"})
		if err != nil {
			t.Fatal(err)
		}
		return len(r.Children)
	}
	configs := func(status int, want, args string) {
		t.Helper()
		var out, errs bytes.Buffer
		before := changes()
		words := append([]string{"--zookeeper", at + "/k"}, strings.Fields(args)...)
		got := runNamed(t.Context(), "kafka-configs.sh", words, strings.NewReader(""), &out, &errs)
		if said := out.String() + errs.String(); got != status || !strings.Contains(said, want) || want == "" && said != "" {
			t.Errorf("%s: exit status %d, want %d and %q: %s", args, got, status, want, said)
		}
		told := changes() - before
		if should := strings.Contains(args, "--alter") && status == 0; told > 1 || (told == 1) != should {
			t.Errorf("%s: %d changes were told", args, told)
		}
	}
	configs(0, "", "--describe --entity-type topics")
	configs(0, "Configs for topic 't' are \n", "--describe --entity-type topics --entity-name t")
	configs(0, "Completed updating config for entity: topic 't'.\n", "--alter --entity-type topics --entity-name t --add-config retention.ms=5,cleanup.policy=[compact,delete]")
	is("/k/config/topics/t", `{"version":1,"config":{"cleanup.policy":"compact,delete","retention.ms":"5"}}`)
	is("/k/config/changes/config_change_0000000000", `{"version":2,"entity_path":"topics/t"}`)
	configs(0, "Completed", "--alter --topic t --delete-config retention.ms --add-config segment.bytes=2000000")
	configs(0, "Configs for topic 't' are cleanup.policy=compact,delete,segment.bytes=2000000\n", "--describe --entity-type topics")
	configs(1, "Invalid config(s): retention.ms", "--alter --topic t --delete-config retention.ms")
	configs(1, "Topic 'gone' does not exist.", "--alter --topic gone --add-config retention.ms=1")
	configs(1, `unknown config name "nosuch.key"`, "--alter --topic t --add-config nosuch.key=1")
	configs(1, `invalid value "soon" for config retention.ms`, "--alter --topic t --add-config retention.ms=soon")
	is("/k/config/topics/t", `{"version":1,"config":{"cleanup.policy":"compact,delete","segment.bytes":"2000000"}}`)

	configs(0, "entity: client-id 'a/b'.", "--alter --client a/b --add-config producer_byte_rate=1024")
	configs(0, "entity: default client-id.", "--alter --entity-type clients --entity-default --add-config producer_byte_rate=2048")
	configs(0, "Configs for default client-id are producer_byte_rate=2048\nConfigs for client-id 'a/b' are producer_byte_rate=1024\n", "--describe --entity-type clients")
	is("/k/config/clients/a%2Fb", `{"version":1,"config":{"producer_byte_rate":"1024"}}`)
	configs(0, "entity: user-principal 'u', client-id 'c'.", "--alter --entity-type clients --entity-name c --entity-type users --entity-name u --add-config request_percentage=2.5")
	configs(0, "entity: user-principal 'u', default client-id.", "--alter --user u --client-defaults --add-config consumer_byte_rate=1")
	is("/k/config/users/u/clients/c", `{"version":1,"config":{"request_percentage":"2.5"}}`)
	configs(0, "", "--describe --entity-type users")
	configs(0, "Configs for user-principal 'u', default client-id are consumer_byte_rate=1\nConfigs for user-principal 'u', client-id 'c' are request_percentage=2.5\n", "--describe --entity-type users --entity-type clients")
	configs(0, "entity: user-principal 'u'.", "--alter --user u --add-config producer_byte_rate=7")
	is("/k/config/users/u", `{"version":1,"config":{"producer_byte_rate":"7"}}`)
	configs(0, "Configs for user-principal 'u' are producer_byte_rate=7\n", "--describe --entity-type users")
	configs(0, "entity: user-principal 'u'.", "--alter --user u --delete-config producer_byte_rate")
	is("/k/config/users/u", `{"version":1,"config":{}}`)
	configs(0, "entity: user-principal 'u'.", "--alter --user u --add-config producer_byte_rate=8")
	is("/k/config/users/u", `{"version":1,"config":{"producer_byte_rate":"8"}}`)
	configs(0, "entity: ips '10.0.0.1'.", "--alter --ip 10.0.0.1 --add-config connection_creation_rate=3")
	configs(1, `"nowhere" is no IP address`, "--alter --ip nowhere --add-config connection_creation_rate=3")
	configs(1, `has no quota "SCRAM-SHA-256"`, "--alter --user u --add-config SCRAM-SHA-256=[password=x]")
	configs(1, `invalid value "x" for quota producer_byte_rate`, "--alter --user u --add-config producer_byte_rate=x")
	configs(1, "must be greater than 0", "--alter --user u --add-config producer_byte_rate=0")

	configs(1, "--bootstrap-server option must be specified to update broker configs log.cleaner.threads: broker 3 is running", "--alter --broker 3 --add-config log.cleaner.threads=2")
	configs(1, "broker 3 is running", "--alter --broker-defaults --add-config log.cleaner.threads=2")
	configs(0, "entity: brokers '3'.", "--alter --broker 3 --add-config leader.replication.throttled.rate=1000")
	configs(0, "entity: brokers '7'.", "--alter --broker 7 --add-config log.cleaner.threads=2")
	configs(1, "cannot be changed while the broker runs", "--alter --broker 7 --add-config broker.id=2")
	configs(1, `unknown broker config "no.such"`, "--alter --broker 7 --add-config no.such=2")
	configs(1, "log.cleaner.threads", "--alter --broker 7 --add-config log.cleaner.threads=many")
	configs(0, "Configs for brokers '3' are leader.replication.throttled.rate=1000\nConfigs for brokers '7' are log.cleaner.threads=2\n", "--describe --entity-type brokers")

	configs(1, "Invalid entity type groups, the entity type must be one of topics,clients,users,brokers,ips with the --zookeeper argument", "--describe --group g")
	configs(1, "--bootstrap-server must be specified for --all", "--describe --all --topic t")
	configs(1, "Only one of --bootstrap-server or --zookeeper", "--describe --topic t --bootstrap-server x:1")
	mustDo(t, c, proto.Request{Op: proto.OpSetData, Path: "/k/config/topics/t", Data: []byte("nonsense"), Version: -1})
	configs(1, "/config/topics/t: ", "--alter --topic t --add-config retention.ms=1")
	is("/k/config/topics/t", "nonsense")
}
