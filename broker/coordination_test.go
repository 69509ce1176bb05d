package broker

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"millrace/coord"
	"millrace/coord/topicsfile"
	"millrace/coord/zk"
	"millrace/coord/zk/server"
	"millrace/engine/batch"
	"millrace/wire"
)

// ensemble is a coordination service of its own, which stands for ZooKeeper.
func ensemble(t *testing.T, dir, address string) *zk.Service {
	t.Helper()
	s, err := zk.Start(zk.Options{Dir: dir, Address: address, Config: server.Config{Tick: 100 * time.Millisecond}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// writeOldState writes the file of an earlier build.
func writeOldState(t *testing.T, dir, state string) {
	t.Helper()
	sum := crc32.Checksum([]byte(state), crc32.MakeTable(crc32.Castagnoli))
	text := fmt.Sprintf(`{"format":"millrace single-broker state","version":1,"crc32c":"%08x","state":%s}`, sum, state)
	if err := os.WriteFile(filepath.Join(dir, topicsfile.Name), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func loaded(t *testing.T, dir string, overrides ...string) Config {
	t.Helper()
	config, _, err := LoadConfig("", append([]string{"listeners=PLAINTEXT://127.0.0.1:0", "admin.listener=", "millrace.coordinator.listener=", "log.dirs=" + dir}, overrides...))
	if err != nil {
		t.Fatal(err)
	}
	config.Logger = slog.New(slog.DiscardHandler)
	return config
}

// asKilled copies what a kill -9 would leave of a running broker's directory.
func asKilled(t *testing.T, dir string) string {
	t.Helper()
	copied := filepath.Join(t.TempDir(), "killed")
	if err := os.CopyFS(copied, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	return copied
}

// Claim: what an earlier build has kept in its file is taken over whole and once: topics with ids, epochs and settings, settings of brokers, groups and
// subscriptions, quotas, producer ids, the cluster's id; logs of topics that it was deleting go.
// Method: the logs of a broker, with a file in place of coordination's folder; once more with the file back under its name, as after a crash before it
// got its new one; then with another file, which nobody can merge.
func TestAnEarlierBuildsTopicsAreImported(t *testing.T) {
	dir := t.TempDir()
	b := startBrokerIn(t, dir)
	b.topic("t", 2)
	b.topic("gone", 1)
	b.mustProduce("t", 1, values(batch.None, "a", "b"))
	id, gone, cluster := b.coord.Image().Topic("t").ID, b.coord.Image().Topic("gone").ID, b.Ready().ClusterID
	b.halt()
	if err := os.RemoveAll(filepath.Join(dir, coordinationFolder)); err != nil {
		t.Fatal(err)
	}
	state := fmt.Sprintf(`{"cluster_id":%q,"next_producer_id":7000,"topics":[{"name":"t","id":%q,"leader_epochs":[3,5],"config":{"retention.ms":"123456"}}],"deleting":[{"name":"gone","id":%q}],`+
		`"broker_configs":{"default":{"log.cleaner.threads":"2"},"0":{"num.io.threads":"9"}},"group_configs":{"g":{"consumer.session.timeout.ms":"50000"}},"client_metrics":{"m":{"interval.ms":"1000"}},`+
		`"client_quotas":[{"client_id":"","values":{"producer_byte_rate":1000000}},{"user":"u","client_id":"c","values":{"consumer_byte_rate":2000000}}]}`, cluster, coord.IDText(id), coord.IDText(gone))
	writeOldState(t, dir, state)
	look := func() {
		t.Helper()
		b = startBrokerIn(t, dir)
		img := b.coord.Image()
		topic := img.Topic("t")
		if img.ClusterID() != cluster || len(img.Names()) != 1 || topic.ID != id || topic.Config["retention.ms"] != "123456" || topic.Partitions[0].Epoch != 3 || topic.Partitions[1].Epoch != 5 || topic.Partitions[1].Leader != 0 {
			t.Errorf("%s: %+v", img.ClusterID(), topic)
		}
		own := img.BrokerConfigs()[0]
		if img.DefaultConfig()["log.cleaner.threads"] != "2" || own["num.io.threads"] != "9" || img.GroupConfigs()["g"]["consumer.session.timeout.ms"] != "50000" || img.ClientMetrics()["m"]["interval.ms"] != "1000" || len(img.Quotas()) != 2 {
			t.Errorf("%v %v %v %v %v", img.DefaultConfig(), own, img.GroupConfigs(), img.ClientMetrics(), img.Quotas())
		}
		if b.end("t", 1) != 2 || b.store.Log("gone", 0) != nil {
			t.Errorf("the log ends at %d; the deleted topic's is %v", b.end("t", 1), b.store.Log("gone", 0))
		}
		if _, err := os.Stat(filepath.Join(dir, topicsfile.Name)); err == nil {
			t.Error("the file has its old name still")
		}
	}
	look()
	first, _, err := b.coord.AllocateProducerIDs(t.Context())
	if err != nil || first != 7000 {
		t.Errorf("the first producer id is %d (%v)", first, err)
	}
	b.halt()
	file := filepath.Join(dir, topicsfile.Name)
	if err := os.Rename(file+topicsfile.DoneSuffix, file); err != nil {
		t.Fatal(err)
	}
	look()
	b.halt()
	writeOldState(t, dir, strings.Replace(state, "123456", "123457", 1))
	if b, err := Start(context.Background(), loaded(t, dir)); err == nil || !strings.Contains(err.Error(), file) {
		t.Errorf("another file: %v", err)
		if err == nil {
			_ = b.Stop(context.Background())
		}
	}
}

// Claim: a start after kill -9 does not wait for the session of the last life, and finds everything.
// Method: a copy of a running broker's directory, with a session time-out of ten minutes.
func TestAStartAfterAKillDoesNotWait(t *testing.T) {
	dir := t.TempDir()
	const patient = "zookeeper.session.timeout.ms=600000"
	b := startBrokerIn(t, dir, patient)
	b.topic("t", 3, "retention.ms=1000000")
	b.mustProduce("t", 2, values(batch.None, "a"))
	killed := asKilled(t, dir)
	b.halt()
	b = startBrokerIn(t, killed, patient)
	topic := b.coord.Image().Topic("t")
	if topic == nil || len(topic.Partitions) != 3 || topic.Config["retention.ms"] != "1000000" || b.end("t", 2) != 1 {
		t.Errorf("%+v, the log ends at %d", topic, b.end("t", 2))
	}
	b.mustProduce("t", 2, values(batch.None, "b"))
}

// Claim: coordination's folder is no log: it is not listed, and no topic can take its name.
// Method: DescribeLogDirs and CreateTopics.
func TestCoordinationsFolderIsNoLog(t *testing.T) {
	dir := t.TempDir()
	startBrokerIn(t, dir).halt()
	b := startBrokerIn(t, dir)
	if _, err := os.Stat(filepath.Join(dir, coordinationFolder)); err != nil {
		t.Fatal(err)
	}
	c := b.dial()
	dirs := c.ask(kmsg.NewPtrDescribeLogDirsRequest(), 1).(*kmsg.DescribeLogDirsResponse)
	if len(dirs.Dirs) != 1 || len(dirs.Dirs[0].Topics) != 0 || len(b.store.Logs()) != 0 {
		t.Errorf("%+v, %d logs", dirs, len(b.store.Logs()))
	}
	req := kmsg.NewPtrCreateTopicsRequest()
	topic := kmsg.NewCreateTopicsRequestTopic()
	topic.Topic, topic.NumPartitions, topic.ReplicationFactor = coord.ReservedName, 1, 1
	req.Topics, req.TimeoutMillis = append(req.Topics, topic), 5000
	if r := c.ask(req, 5).(*kmsg.CreateTopicsResponse).Topics[0]; r.ErrorCode != wire.ErrInvalidTopic {
		t.Errorf("%+v", r)
	}
	if b.log.count("belongs to no topic") != 0 || b.log.count("left alone") != 0 {
		t.Error("the folder is spoken of in the log")
	}
}

// Claim: a folder that a Kafka broker has set aside is coordination's again.
// Method: the name that Kafka gives it.
func TestCoordinationsFolderIsBroughtBack(t *testing.T) {
	dir := t.TempDir()
	b := startBrokerIn(t, dir)
	b.topic("t", 1, "retention.ms=5")
	b.halt()
	place := filepath.Join(dir, coordinationFolder)
	if err := os.Rename(place, place+".0123456789abcdef0123456789abcdef-stray"); err != nil {
		t.Fatal(err)
	}
	b = startBrokerIn(t, dir)
	if topic := b.coord.Image().Topic("t"); topic == nil || topic.Config["retention.ms"] != "5" {
		t.Errorf("%+v", topic)
	}
}

// Claim: if the default address of coordination is taken the broker says so and takes a free port; an address that was given must be had.
// Method: take the default address, or find it taken.
func TestTheDefaultAddressOfCoordinationIsTaken(t *testing.T) {
	def := LookupConfigKey("millrace.coordinator.listener").Default
	if l, err := net.Listen("tcp", def); err == nil {
		t.Cleanup(func() { l.Close() })
	}
	config, _, err := LoadConfig("", []string{"listeners=PLAINTEXT://127.0.0.1:0", "admin.listener=", "log.dirs=" + t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	lines := &logLines{}
	config.Logger = slog.New(slog.NewTextHandler(lines, nil))
	b, err := Start(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Stop(context.Background()) })
	if at := b.Ready().Coordinator; !strings.HasPrefix(at, "127.0.0.1:") || at == def || lines.count("millrace.coordinator.listener") != 1 {
		t.Errorf("at %s\n%s", at, lines)
	}
	var wrong *ConfigError
	if b, err := Start(t.Context(), loaded(t, t.TempDir(), "millrace.coordinator.listener="+def)); !errors.As(err, &wrong) || wrong.Key != "millrace.coordinator.listener" {
		t.Errorf("%v, %v", b, err)
	}
}

// Claim: an ensemble that does not answer ends the start with an error that names it and the key.
func TestAnEnsembleThatDoesNotAnswer(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	b, err := Start(t.Context(), loaded(t, t.TempDir(), "zookeeper.connect="+l.Addr().String(), "zookeeper.connection.timeout.ms=200"))
	if err == nil {
		_ = b.Stop(context.Background())
		t.Fatal("started")
	}
	for _, part := range []string{l.Addr().String(), "zookeeper.connection.timeout.ms=200"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q is not in: %v", part, err)
		}
	}
}
