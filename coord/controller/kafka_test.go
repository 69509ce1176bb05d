package controller

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"millrace/coord"
	"millrace/coord/controller/cluster"
	"millrace/coord/controller/znode"
	"millrace/wire"
)

const dumpFile = "znode/testdata/kafka-3.9.2.txt"

func dumpLines(t *testing.T) []string {
	t.Helper()
	file, err := os.ReadFile(dumpFile)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(string(file), "\n")
}

// dumpTree builds the tree of the dump's first cluster after a stage, with Kafka stopped: without its ephemeral nodes.
func dumpTree(t *testing.T, stage int) *tree {
	t.Helper()
	tr := newTree()
	line := regexp.MustCompile(`^([-+] )?(/\S*)( ephemeral)? v(\d+) c(-?\d+) = (.*)$`)
	in := false
	for _, l := range dumpLines(t) {
		if strings.HasPrefix(l, "=== ") {
			var n int
			_, err := fmt.Sscanf(l, "=== %d.", &n)
			in = err == nil && n >= 1 && n <= stage
			continue
		}
		m := line.FindStringSubmatch(l)
		if !in || m == nil || m[2] == "/" || m[3] != "" {
			continue
		}
		if m[1] == "- " {
			delete(tr.nodes, m[2])
			continue
		}
		n := &fakeNode{data: []byte(m[6])}
		if m[6] == "null" {
			n.data = nil
		}
		fmt.Sscan(m[4], &n.stat.Version)
		fmt.Sscan(m[5], &n.next)
		tr.zxid++
		n.stat.Czxid = tr.zxid
		tr.nodes[m[2]] = n
	}
	return tr
}

// Claim: a tree that Kafka 3.9 has written is taken over: the same cluster, topics, ids, settings and quotas; epochs and producer ids go on; credentials that
// we do not know stay.
// Method: the dump's tree after a group was used, with Kafka stopped.
func TestKafkasTreeIsTakenOver(t *testing.T) {
	tr := dumpTree(t, 4)
	before := map[string]string{}
	for _, p := range tr.paths() {
		before[p] = tr.read(p)
	}
	s := start(t, optionsOf(tr, 0, nil))
	img := s.Image()
	got := shown(img)
	const want = `controller 0, brokers [{0  [{PLAINTEXT 127.0.0.1 9000}]}]
all map[message.max.bytes:2000000], own map[0:map[log.cleaner.threads:2]], quotas map[{{false } {true } {false }}:map[producer_byte_rate:5000] {{false } {true c1} {false }}:map[consumer_byte_rate:1000] {{true u1} {false } {false }}:map[producer_byte_rate:1000] {{true u1} {true c1} {false }}:map[request_percentage:50]]
__consumer_offsets FU2YQ9G4RG-V7V3oZcOtFA map[cleanup.policy:compact compression.type:producer segment.bytes:104857600] [{0 0 [0] [0]} {0 0 [0] [0]} {0 0 [0] [0]} {0 0 [0] [0]}]
t1 9GZ4CdGuSGSwzH5D4RY4UA map[retention.ms:3600000] [{0 0 [0] [0]} {0 0 [0] [0]}]
`
	if got != want || img.ClusterID() != "fBsJ1_v-QrOlxN8KWr_X9w" {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	for p, data := range before {
		if now := tr.read(p); now != data && p != znode.ControllerEpochPath {
			t.Errorf("%s was %s and is %s", p, data, now)
		}
	}
	if epoch, ok := s.Controller(); !ok || epoch != 2 {
		t.Errorf("controller epoch %d, %v", epoch, ok)
	}
	if first, count, err := s.AllocateProducerIDs(t.Context()); err != nil || first != 1000 || count != 1000 {
		t.Errorf("producer ids %d, %d, %v", first, count, err)
	}
	r := s.AlterQuotas(t.Context(), []coord.QuotaChange{{Entity: coord.QuotaEntity{User: coord.QuotaPart{Given: true, Name: "u2"}}, Edit: func(before map[string]float64) (map[string]float64, int16, string) {
		return map[string]float64{"consumer_byte_rate": 7}, 0, ""
	}}}, false)
	if now := tr.read("/config/users/u2"); r[0].Code != 0 || !strings.Contains(now, "SCRAM-SHA-256") || !strings.Contains(now, `"consumer_byte_rate":"7"`) {
		t.Errorf("%+v: %s", r, now)
	}
	if _, err := Open(t.Context(), Options{Dial: tr.dialer(nil), ClusterID: "other", Logger: quiet}); err == nil || !strings.Contains(err.Error(), "other") {
		t.Errorf("another cluster's tree was taken: %v", err)
	}
}

// kafkaTrace are the changes of a section of the dump, as comparable lines.
func kafkaTrace(t *testing.T, section string) (out []string) {
	t.Helper()
	in, first := false, false
	for _, l := range dumpLines(t) {
		switch {
		case strings.HasPrefix(l, "=== "):
			first = strings.HasPrefix(l, "=== Cluster 1: every change")
			in = false
		case strings.HasPrefix(l, "--- "):
			in = first && strings.HasPrefix(l, "--- "+section)
		case in && l != "":
			out = append(out, asLine(l))
		}
	}
	if len(out) == 0 {
		t.Fatalf("the dump has no section %q", section)
	}
	return out
}

var (
	anyID      = regexp.MustCompile(`"topic_id":"[^"]*"|"timestamp":"\d+"|"id":"[^"]*"`)
	created    = regexp.MustCompile(`^(Created \S+)( ephemeral)? v\d+`)
	ephemeral  = regexp.MustCompile(`^(\S+ /\S+) ephemeral`)
	ownBroker  = regexp.MustCompile(`^(Created /brokers/ids/\d+) = .*`)
	endpoint   = regexp.MustCompile(`127\.0\.0\.1:\d+|"port":\d+`)
	jsonObject = regexp.MustCompile(`^(\S+ /config/.* = )(\{.*\})$`)
)

// asLine is a line of a trace without what must differ: ids, times, ports; the order of settings; the data of a broker's node between its making
// and its first set, which the dump cannot show.
func asLine(l string) string {
	l = created.ReplaceAllString(l, "$1")
	l = ephemeral.ReplaceAllString(l, "$1")
	l = ownBroker.ReplaceAllString(l, "$1")
	l = anyID.ReplaceAllString(endpoint.ReplaceAllString(l, "…"), "…")
	if m := jsonObject.FindStringSubmatch(l); m != nil {
		var v any
		if json.Unmarshal([]byte(m[2]), &v) == nil {
			sorted, _ := json.Marshal(v)
			l = m[1] + string(sorted)
		}
	}
	return l
}

// since are the changes of a tree after the first n, as comparable lines, without those of our own root.
func (t *tree) since(n int) (out []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, l := range t.trace[n:] {
		if !strings.Contains(l, " "+znode.OwnRoot) {
			out = append(out, asLine(l))
		}
	}
	return out
}

func (t *tree) length() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.trace)
}

// Claim: for the same acts we make the same changes of the tree as Kafka 3.9, in the same order.
// Method: the acts of the dump's first cluster, one after another: start, create, configure, quotas, producer ids, the offsets topic, grow, move a replica by
// request and by trigger, preferred election, delete.
func TestChangesAreKafkas(t *testing.T) {
	tr := newTree()
	brokers := map[int32]*Service{}
	options := func(id int32, rack string) Options {
		o := optionsOf(tr, id, nil)
		o.Peer = func(b coord.Broker) Peer { return brokers[b.ID].Member() }
		return o
	}
	compare := func(section string, from int, keep func(string) bool) {
		t.Helper()
		want, got := kafkaTrace(t, section), tr.since(from)
		if keep != nil {
			want = slices.DeleteFunc(want, func(l string) bool { return !keep(l) })
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s:\n%s\nKafka's\n%s", section, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
	s := start(t, options(0, ""))
	brokers[0] = s
	compare("first broker starts", 0, nil)

	step := func(section string, keep func(string) bool, act func()) {
		t.Helper()
		from := tr.length()
		act()
		compare(section, from, keep)
	}
	configure := func(r coord.ConfigResource, key, value string) {
		if r := s.AlterConfigs(t.Context(), set1(r, key, value), false)[0]; r.Code != 0 {
			t.Errorf("%+v", r)
		}
	}
	quota := func(user, client, key string, value float64) {
		part := func(name string) coord.QuotaPart {
			return coord.QuotaPart{Given: name != "", Name: strings.TrimPrefix(name, "*")}
		}
		r := s.AlterQuotas(t.Context(), []coord.QuotaChange{{Entity: coord.QuotaEntity{User: part(user), Client: part(client)}, Edit: func(map[string]float64) (map[string]float64, int16, string) {
			return map[string]float64{key: value}, 0, ""
		}}}, false)
		if r[0].Code != 0 {
			t.Errorf("%+v", r)
		}
	}
	step("create topic t1", nil, func() { s.CreateTopics(t.Context(), []coord.NewTopic{newTopic("t1", 2)}, false) })
	step("topic config", nil, func() { configure(coord.ConfigResource{Topic: "t1"}, "retention.ms", "3600000") })
	step("broker 0 dynamic", nil, func() {
		configure(coord.ConfigResource{Broker: 0}, "log.cleaner.threads", "2")
		configure(coord.ConfigResource{Broker: coord.AllBrokers}, "message.max.bytes", "2000000")
	})
	step("quota user u1", nil, func() {
		quota("u1", "", "producer_byte_rate", 1000)
		quota("", "c1", "consumer_byte_rate", 1000)
		quota("u1", "c1", "request_percentage", 50)
		quota("", "*", "producer_byte_rate", 5000)
	})
	step("produce and consume", nil, func() {
		if _, _, err := s.AllocateProducerIDs(t.Context()); err != nil {
			t.Error(err)
		}
		s.CreateTopics(t.Context(), []coord.NewTopic{{Name: "__consumer_offsets", Partitions: 4, Factor: 1, Config: map[string]string{"compression.type": "producer", "cleanup.policy": "compact", "segment.bytes": "104857600"}}}, false)
	})
	step("partitions of t1 raised", nil, func() { s.CreatePartitions(t.Context(), []coord.MorePartitions{{Name: "t1", Count: 3}}, false) })

	second, err := Open(t.Context(), options(1, "r1"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = second.Close() })
	brokers[1] = second
	step("second broker (id 1) starts", nil, func() {
		b := brokerOf(1)
		b.Rack = "r1"
		if err := second.RegisterBroker(t.Context(), b); err != nil {
			t.Fatal(err)
		}
	})

	// inSync speaks as the leader of t1-0 once its new replica has caught up.
	inSync := func(leader int32, isr ...int32) {
		t.Helper()
		p, _ := znode.DecodeState([]byte(tr.read(znode.StatePath("t1", 0))))
		tr.mu.Lock()
		version := tr.nodes[znode.StatePath("t1", 0)].stat.Version
		tr.mu.Unlock()
		_, code := s.AlterPartition(&cluster.AlterPartition{Broker: leader, BrokerEpoch: brokers[leader].BrokerEpoch(), Topic: "t1", LeaderEpoch: p.LeaderEpoch, PartitionEpoch: version, ISR: isr})
		if code != 0 {
			t.Fatalf("in-sync set %v: code %d", isr, code)
		}
	}
	notConfig := func(l string) bool { return !strings.Contains(l, " /config/") }
	step("reassign t1-0 to broker 1", notConfig, func() {
		if code, message := s.Reassign(Partition{"t1", 0}, []int32{1}); code != 0 {
			t.Fatal(code, message)
		}
		inSync(0, 0, 1)
	})
	if code, _ := s.Reassign(Partition{"t1", 0}, nil); code != wire.ErrNoReassignmentInProgress {
		t.Errorf("cancelled what is not under way: %d", code)
	}

	from := tr.length()
	if err := tr.act(create(znode.ReassignPartitions, []byte(`{"version":1,"partitions":[{"topic":"t1","partition":0,"replicas":[0]}]}`))); err != nil {
		t.Fatal(err)
	}
	within(t, "the move begins", func() bool { return strings.Contains(tr.read(znode.StatePath("t1", 0)), `"leader_epoch":4`) })
	inSync(1, 1, 0)
	within(t, "the trigger is gone", func() bool { return tr.read(znode.ReassignPartitions) == "" })
	if err := tr.act(create(znode.PreferredElection, []byte(`{"version":1,"partitions":[{"topic":"t1","partition":0}]}`))); err != nil {
		t.Fatal(err)
	}
	within(t, "the trigger is gone", func() bool { return tr.read(znode.PreferredElection) == "" })
	want, got := kafkaTrace(t, "the old way"), tr.since(from)
	// The dump read the node after two changes at once: it shows the second twice.
	v8 := slices.IndexFunc(want, func(l string) bool { return strings.Contains(l, "/state v8 ") })
	want[v8] = `DataChanged /brokers/topics/t1/partitions/0/state v7 = {"controller_epoch":1,"leader":0,"version":1,"leader_epoch":5,"isr":[1,0]}`
	if !slices.Equal(got, want) {
		t.Errorf("the old way:\n%s\nKafka's\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}

	step("broker 1 stops cleanly", nil, func() {
		if remaining, code := s.ControlledShutdown(1, second.BrokerEpoch()); code != 0 || len(remaining) != 0 {
			t.Errorf("%v, %d", remaining, code)
		}
		_ = second.Close()
	})
	from = tr.length()
	s.DeleteTopics(t.Context(), []string{"t1"})
	want, got = kafkaTrace(t, "topic t1 deleted"), tr.since(from)
	slices.Sort(want[1:4]) // Kafka's order of partitions is that of a hash table
	if !slices.Equal(got, want) {
		t.Errorf("delete:\n%s\nKafka's\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// Claim: tools that write to the tree themselves are obeyed: topics they make (also without an id), partitions they add, topics they ask to be deleted,
// settings they change.
// Method: what kafka-topics.sh --zookeeper and kafka-configs.sh --zookeeper of Kafka 2.x write.
func TestToolsThatWriteToTheTreeAreObeyed(t *testing.T) {
	tr := newTree()
	s := start(t, optionsOf(tr, 1, nil))
	act := func(what string, done func(*coord.Image) bool, ops ...any) {
		t.Helper()
		if err := tr.act(ops...); err != nil {
			t.Fatal(what, err)
		}
		within(t, what, func() bool { return done(s.Image()) })
		s.settle(t)
		requireWhole(t, tr, s.Image())
	}
	act("create", func(img *coord.Image) bool {
		return img.Topic("old") != nil && img.Topic("old").Partitions[1].Leader == 1
	},
		create("/config/topics/old", []byte(`{"version":1,"config":{"a":"b"}}`)), create("/brokers/topics/old", []byte(`{"version":1,"partitions":{"0":[1],"1":[1]}}`)))
	id := s.Image().Topic("old").ID
	node, _ := znode.DecodeTopic([]byte(tr.read("/brokers/topics/old")))
	act("grow", func(img *coord.Image) bool { return len(img.Topic("old").Partitions) == 3 },
		set("/brokers/topics/old", fmt.Appendf(nil, `{"version":2,"partitions":{"0":[1],"1":[1],"2":[1]},"topic_id":"%s"}`, coord.IDText(node.ID)), -1))
	if s.Image().Topic("old").ID != id || s.Image().Topic("old").Config["a"] != "b" {
		t.Errorf("%+v", s.Image().Topic("old"))
	}
	act("configure", func(img *coord.Image) bool { return img.Topic("old").Config["a"] == "c" },
		set("/config/topics/old", []byte(`{"version":1,"config":{"a":"c"}}`), -1), createSequential("/config/changes/config_change_", []byte(`{"version":2,"entity_path":"topics/old"}`)))
	act("an election for nobody", func(*coord.Image) bool { return tr.read(znode.PreferredElection) == "" },
		create(znode.PreferredElection, []byte(`{"version":1,"partitions":[{"topic":"none","partition":0},{"topic":"old","partition":0}]}`)))
	act("a move to where it is", func(*coord.Image) bool { return tr.read(znode.ReassignPartitions) == "" },
		create(znode.ReassignPartitions, []byte(`{"version":1,"partitions":[{"topic":"old","partition":0,"replicas":[1]},{"topic":"old","partition":1,"replicas":[9]}]}`)))
	act("notifications", func(*coord.Image) bool {
		return len(tr.below(znode.ISRChanges)) == 0 && len(tr.below(znode.LogDirEvents)) == 0
	}, createSequential(znode.ISRChanges+"/isr_change_", []byte(`{"version":1,"partitions":[{"topic":"old","partition":0}]}`)), createSequential(znode.LogDirEvents+"/log_dir_event_", []byte(`nonsense`)))
	act("delete", func(img *coord.Image) bool {
		return img.Topic("old") == nil && tr.read("/admin/delete_topics/old") == ""
	}, create("/admin/delete_topics/old", nil))
	act("delete what is not there", func(*coord.Image) bool { return tr.read("/admin/delete_topics/none") == "" }, create("/admin/delete_topics/none", nil))
}

func (t *tree) below(p string) []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.children(p)
}

// Claim: topics are deleted together, in as many transactions as their bytes ask for; a topic of which something is missing already holds up no other.
// Method: 40 topics whole, then with the settings of one gone, then in multis too small for all of them.
func TestManyTopicsGoTogether(t *testing.T) {
	for _, c := range []struct {
		what  string
		spoil string // a node that a tool removes before
		batch int
		most  int64 // transactions
	}{
		{"whole", "", 0, 3}, // asked for, led by nobody, gone
		{"one without settings", znode.ConfigPath("topics/t7"), 0, 2 + 40},
		{"in small multis", "", 5000, 60},
	} {
		t.Run(c.what, func(t *testing.T) {
			tr := newTree()
			o := optionsOf(tr, 1, nil)
			o.batch = c.batch
			s := start(t, o)
			var topics []coord.NewTopic
			var names []string
			for i := range 40 {
				names = append(names, fmt.Sprintf("t%d", i))
				topics = append(topics, newTopic(names[i], 3))
			}
			topics = append(topics, newTopic("kept", 3))
			for _, r := range s.CreateTopics(t.Context(), topics, false) {
				if r.Code != 0 {
					t.Fatalf("%+v", r)
				}
			}
			if c.spoil != "" {
				if err := tr.act(remove(c.spoil)); err != nil {
					t.Fatal(err)
				}
			}
			s.settle(t)
			tr.mu.Lock()
			before := tr.zxid
			tr.mu.Unlock()
			for _, r := range s.DeleteTopics(t.Context(), names) {
				if r.Code != 0 {
					t.Errorf("%+v", r)
				}
			}
			tr.mu.Lock()
			took := tr.zxid - before
			tr.mu.Unlock()
			if took > c.most {
				t.Errorf("%d transactions, at most %d are needed", took, c.most)
			}
			if got := s.Image().Names(); !slices.Equal(got, []string{"kept"}) {
				t.Errorf("left: %v", got)
			}
			requireWhole(t, tr, s.Image())
		})
	}
}
