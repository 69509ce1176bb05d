package controller

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"millrace/coord"
	"millrace/coord/contract"
	"millrace/coord/controller"
	"millrace/coord/controller/znode"
	"millrace/tools/compat/harness"
	"millrace/wire"
)

// needZooKeeper starts a server for a test, or skips it.
func needZooKeeper(t *testing.T) *zkServer {
	t.Helper()
	if os.Getenv("MILLRACE_ZOOKEEPER") == "" {
		t.Skip("opt-in: set MILLRACE_ZOOKEEPER=1; it runs a real ZooKeeper (java)")
	}
	z, err := startZooKeeper(cache(t), t.TempDir())
	var skip harness.Skip
	if errors.As(err, &skip) {
		t.Skip(skip)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { z.kill() })
	return z
}

func cache(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs("../../../.cache")
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

const sessionTimeout = 4 * time.Second

func start(t *testing.T, connect string, id int32) *controller.Service {
	t.Helper()
	s, err := controller.Open(t.Context(), controller.Options{Dial: controller.Dial(connect, sessionTimeout), SessionTimeout: sessionTimeout, BrokerID: id, Logger: quiet})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	b := coord.Broker{ID: id, Endpoints: []coord.Endpoint{{Listener: "PLAINTEXT", Host: "127.0.0.1", Port: 9092}}}
	if err := s.RegisterBroker(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	return s
}

func within(t *testing.T, what string, ok func() bool) {
	t.Helper()
	if err := harness.Within(time.Minute, func() error {
		if !ok() {
			return errors.New("not in time: " + what)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}

func topics(n int, partitions int32, name string) (out []coord.NewTopic) {
	for i := range n {
		out = append(out, coord.NewTopic{Name: fmt.Sprint(name, i), Partitions: partitions, Factor: 1})
	}
	return out
}

// Claim: over a real ZooKeeper, in a chroot, the Service does what a broker relies on.
// Method: the contract, a chroot for each of its tests.
func TestContract(t *testing.T) {
	z := needZooKeeper(t)
	chroots := 0
	contract.Run(t, func(t *testing.T) contract.Cluster {
		chroots++
		connect := fmt.Sprintf("%s/kafka/%d", z.addr, chroots)
		return contract.Cluster{
			Broker:  1,
			Open:    func(t *testing.T) coord.Service { return start(t, connect, 1) },
			Written: func() int { return written(t, connect) },
		}
	})
}

// written is the transaction of the last write below a connect string, as far as these tests write.
func written(t *testing.T, connect string) int {
	t.Helper()
	conn, err := controller.Dial(connect, sessionTimeout)(t.Context(), func(zk.Event) {})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	last := int64(0)
	for _, path := range []string{"/config/topics", "/config/topics/a", "/brokers/topics", "/brokers/topics/a", "/config/users", "/config/users/u", "/config/changes"} {
		stat, err := conn.Exists(path, false)
		if err != nil {
			t.Fatal(err)
		}
		if stat != nil {
			last = max(last, stat.Mzxid, stat.Pzxid)
		}
	}
	return int(last)
}

// Claim: kill -9 of ZooKeeper and its restart, and a session that expires while we are parted from it, end by themselves: the image stays served, changes
// meanwhile are refused with retriable errors, and afterwards topics are as they were and can be made.
// Method: a proxy between us and the server; the server is killed, then we are parted for longer than the session lasts.
func TestZooKeeperComesAndGoes(t *testing.T) {
	z := needZooKeeper(t)
	p, err := newProxy(z.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer p.l.Close()
	s := start(t, p.l.Addr().String(), 1)
	if r := s.CreateTopics(t.Context(), topics(1, 3, "a"), false)[0]; r.Code != 0 {
		t.Fatalf("%+v", r)
	}
	before, epoch := s.Image(), s.BrokerEpoch()
	made := 0
	make := func() {
		t.Helper()
		made++
		within(t, "a topic can be made again", func() bool {
			code := s.CreateTopics(t.Context(), topics(1, 1, fmt.Sprint("after", made, "-")), false)[0].Code
			return code == 0 || code == wire.ErrTopicAlreadyExists
		})
		if now := s.Image().Topic("a0"); now != before.Topic("a0") {
			t.Errorf("%+v became %+v", before.Topic("a0"), now)
		}
	}
	z.kill()
	if r := s.CreateTopics(t.Context(), topics(1, 1, "lost"), false)[0]; r.Code != wire.ErrRequestTimedOut && r.Code != wire.ErrNotController {
		t.Errorf("%+v", r)
	}
	if s.Image().Topic("a0") == nil {
		t.Error("the image is gone")
	}
	if err := z.start(); err != nil {
		t.Fatal(err)
	}
	make()

	p.part(true)
	other, err := controller.Dial(z.addr, sessionTimeout)(t.Context(), func(zk.Event) {})
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	within(t, "the server has given us up", func() bool {
		stat, err := other.Exists(znode.BrokerPath(1), false)
		return err == nil && stat == nil
	})
	p.part(false)
	within(t, "registered anew", func() bool { return s.BrokerEpoch() > epoch })
	make()
	if s.Image().ControllerID() != 1 || len(s.Image().Brokers()) != 1 {
		t.Errorf("controller %d, brokers %v", s.Image().ControllerID(), s.Image().Brokers())
	}
}

// Claim: 1,000 topics of 10 partitions are made, read at a start and deleted in seconds.
// Method: one request each; the times are logged.
func TestThousandTopics(t *testing.T) {
	z := needZooKeeper(t)
	s := start(t, z.addr, 1)
	var names []string
	begin := time.Now()
	for _, r := range s.CreateTopics(t.Context(), topics(1000, 10, "t"), false) {
		if r.Code != 0 {
			t.Fatalf("%+v", r)
		}
		names = append(names, r.Name)
	}
	created := time.Since(begin)
	if n := s.Image().Partitions(); n != 10_000 {
		t.Fatalf("%d partitions", n)
	}
	_ = s.Close()
	begin = time.Now()
	s = start(t, z.addr, 1)
	started := time.Since(begin)
	if n := s.Image().Partitions(); n != 10_000 || s.Image().Topic("t999").Partitions[9].Leader != 1 {
		t.Fatalf("%d partitions after a restart", n)
	}
	begin = time.Now()
	for _, r := range s.DeleteTopics(t.Context(), names) {
		if r.Code != 0 {
			t.Fatalf("%+v", r)
		}
	}
	t.Logf("created in %v, taken over in %v, deleted in %v", created, started, time.Since(begin))
	conn, err := controller.Dial(z.addr, sessionTimeout)(t.Context(), func(zk.Event) {})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for _, path := range []string{znode.Topics, "/config/topics", znode.DeleteTopics} {
		if left, err := conn.Children(path, false); err != nil || len(left) != 0 {
			t.Errorf("%s: %d left, %v", path, len(left), err)
		}
	}
}

// Claim: a node of Kafka 3.9 in ZooKeeper mode is taken over, with its topics, ids, settings and epochs, and taken back by Kafka with what we have changed.
// Method: Kafka makes topics and settings and stops; we change, make and delete; Kafka starts again and is asked.
func TestKafkasClusterThereAndBack(t *testing.T) {
	z := needZooKeeper(t)
	e := &harness.Env{Cache: cache(t), Dir: t.TempDir()}
	addr, run := kafka39(t, e, z.addr)
	stop := run()
	admin := adminOf(t, addr)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if _, err := admin.CreateTopics(ctx, 3, 1, map[string]*string{"retention.ms": kadm.StringPtr("7200000")}, "theirs", "doomed"); err != nil {
		t.Fatal(err)
	}
	theirs, err := admin.ListTopics(ctx)
	if err != nil {
		t.Fatal(err)
	}
	admin.Close()
	stop()

	s := start(t, z.addr+"/", 0)
	img := s.Image()
	if !slices.Equal(img.Names(), []string{"doomed", "theirs"}) || img.Topic("theirs").ID != coord.ID(theirs["theirs"].ID) || img.Topic("theirs").Config["retention.ms"] != "7200000" || img.Topic("theirs").Partitions[2].Leader != 0 {
		t.Fatalf("%v: %+v", img.Names(), img.Topic("theirs"))
	}
	if r := s.DeleteTopics(ctx, []string{"doomed"})[0]; r.Code != 0 {
		t.Fatalf("%+v", r)
	}
	if r := s.CreateTopics(ctx, topics(1, 2, "ours"), false)[0]; r.Code != 0 {
		t.Fatalf("%+v", r)
	}
	if r := s.CreatePartitions(ctx, []coord.MorePartitions{{Name: "theirs", Count: 5}}, false)[0]; r.Code != 0 {
		t.Fatalf("%+v", r)
	}
	setting := func(key, value string) func(map[string]string) (map[string]string, int16, string) {
		return func(map[string]string) (map[string]string, int16, string) {
			return map[string]string{key: value}, 0, ""
		}
	}
	for _, r := range s.AlterConfigs(ctx, []coord.ConfigChange{
		{Resource: coord.ConfigResource{Topic: "theirs"}, Edit: setting("retention.ms", "3600000")},
		{Resource: coord.ConfigResource{Group: "g"}, Edit: setting("consumer.session.timeout.ms", "50000")},
		{Resource: coord.ConfigResource{ClientMetrics: "m"}, Edit: setting("interval.ms", "1000")},
	}, false) {
		if r.Code != 0 {
			t.Errorf("%+v", r)
		}
	}
	ours := s.Image().Topic("ours0").ID
	_ = s.Close()

	stop = run()
	defer stop()
	admin = adminOf(t, addr)
	defer admin.Close()
	var back kadm.TopicDetails
	within(t, "Kafka's broker has heard from its controller", func() bool {
		back, err = admin.ListTopics(ctx)
		return err == nil && len(back) > 0
	})
	var names []string
	for name := range back {
		names = append(names, name)
	}
	slices.Sort(names)
	if !slices.Equal(names, []string{"ours0", "theirs"}) || len(back["theirs"].Partitions) != 5 || coord.ID(back["ours0"].ID) != ours || back["theirs"].Partitions[4].Leader != 0 {
		t.Errorf("%v", back)
	}
	configs, err := admin.DescribeTopicConfigs(ctx, "theirs")
	if err != nil || !slices.ContainsFunc(configs[0].Configs, func(c kadm.Config) bool { return c.Key == "retention.ms" && c.MaybeValue() == "3600000" }) {
		t.Errorf("%v, %v", configs, err)
	}
	client, err := kgo.NewClient(kgo.SeedBrokers(addr))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if err := client.ProduceSync(ctx, &kgo.Record{Topic: "ours0", Value: []byte("x")}).FirstErr(); err != nil {
		t.Errorf("a topic of ours takes no records: %v", err)
	}
}

// Claim: the tools of the ZooKeeper era drive us: they create, list, describe, grow, configure and delete topics through the tree.
// Method: kafka-topics.sh and kafka-configs.sh --zookeeper of an old Kafka, with our Service as broker and controller.
func TestOldToolsDriveUs(t *testing.T) {
	z := needZooKeeper(t)
	e := &harness.Env{Cache: cache(t), Dir: t.TempDir()}
	libs, err := harness.NeedJava(e.Cache, harness.Libs{Name: "kafka-0.10.2.2", Artifacts: []string{"org.apache.kafka:kafka_2.11:0.10.2.2"}})
	if err != nil {
		t.Skip(err)
	}
	s := start(t, z.addr, 1)
	tool := func(class string, args ...string) string {
		t.Helper()
		cmd, err := e.Java(libs, "128M", nil, append([]string{class, "--zookeeper", z.addr}, args...)...)
		if err != nil {
			t.Fatal(err)
		}
		out, err := harness.Output(cmd, "", time.Minute)
		if err != nil {
			t.Fatalf("%v: %v: %s", args, err, out)
		}
		return out
	}
	const topicCommand, configCommand = "kafka.admin.TopicCommand", "kafka.admin.ConfigCommand"
	tool(topicCommand, "--create", "--topic", "quick", "--partitions", "2", "--replication-factor", "1")
	within(t, "made", func() bool {
		topic := s.Image().Topic("quick")
		return topic != nil && len(topic.Partitions) == 2 && topic.Partitions[1].Leader == 1
	})
	if out := tool(topicCommand, "--list"); strings.TrimSpace(out) != "quick" {
		t.Errorf("list: %s", out)
	}
	if r := s.CreateTopics(t.Context(), topics(1, 1, "ours"), false)[0]; r.Code != 0 {
		t.Errorf("%+v", r)
	}
	if out := tool(topicCommand, "--describe", "--topic", "ours0"); !strings.Contains(out, "Leader: 1") || !strings.Contains(out, "Isr: 1") {
		t.Errorf("describe: %s", out)
	}
	tool(topicCommand, "--alter", "--topic", "quick", "--partitions", "6")
	within(t, "grown", func() bool { p := s.Image().Topic("quick").Partitions; return len(p) == 6 && p[5].Leader == 1 })
	tool(configCommand, "--alter", "--entity-type", "topics", "--entity-name", "quick", "--add-config", "retention.ms=60000")
	within(t, "configured", func() bool { return s.Image().Topic("quick").Config["retention.ms"] == "60000" })
	tool(topicCommand, "--delete", "--topic", "quick")
	within(t, "deleted", func() bool { return s.Image().Topic("quick") == nil })
	within(t, "gone from the tree", func() bool { return strings.TrimSpace(tool(topicCommand, "--list")) == "ours0" })
}

func adminOf(t *testing.T, addr string) *kadm.Client {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(addr))
	if err != nil {
		t.Fatal(err)
	}
	return kadm.NewClient(client)
}

// kafka39 prepares a Kafka 3.9 broker 0; run starts it and returns how to stop it.
func kafka39(t *testing.T, e *harness.Env, zookeeper string) (addr string, run func() (stop func())) {
	t.Helper()
	libs, err := harness.NeedJava(e.Cache, harness.Kafka39)
	if err != nil {
		t.Skip(err)
	}
	port, err := harness.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	addr = "127.0.0.1:" + port
	file := filepath.Join(e.Dir, "server.properties")
	text := strings.Join([]string{"broker.id=0", "zookeeper.connect=" + zookeeper, "zookeeper.session.timeout.ms=6000", "listeners=PLAINTEXT://" + addr, "log.dirs=" + filepath.Join(e.Dir, "data"), "offsets.topic.replication.factor=1", "offsets.topic.num.partitions=4", ""}, "\n")
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return addr, func() func() {
		t.Helper()
		cmd, err := e.Java(libs, "512M", nil, "kafka.Kafka", file)
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		stop := func() {
			if err := harness.StopJava(cmd, time.Minute); err != nil {
				t.Error(err)
			}
		}
		err = harness.Within(2*time.Minute, func() error {
			client, err := kgo.NewClient(kgo.SeedBrokers(addr))
			if err != nil {
				return err
			}
			defer client.Close()
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
			defer cancel()
			return client.Ping(ctx)
		})
		if err != nil {
			stop()
			t.Fatal(err)
		}
		return stop
	}
}
