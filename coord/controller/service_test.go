package controller

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"millrace/coord"
	"millrace/coord/contract"
	"millrace/coord/controller/znode"
	"millrace/wire"
)

var quiet = slog.New(slog.DiscardHandler)

func optionsOf(t *tree, id int32, p *plan) Options {
	return Options{Dial: t.dialer(p), BrokerID: id, Logger: quiet, Retry: time.Millisecond, Readers: 1, SessionTimeout: 20 * time.Second}
}

func brokerOf(id int32) coord.Broker {
	return coord.Broker{ID: id, Endpoints: []coord.Endpoint{{Listener: "PLAINTEXT", Host: "127.0.0.1", Port: 9000 + id}}}
}

// start is a broker's Service over a tree, registered.
func start(t *testing.T, o Options) *Service {
	t.Helper()
	s, err := Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	if err := s.RegisterBroker(t.Context(), brokerOf(o.BrokerID)); err != nil {
		t.Fatal(err)
	}
	return s
}

// within waits for a condition.
func within(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); !ok(); {
		if time.Now().After(end) {
			t.Fatalf("not in time: %s", what)
		}
		time.Sleep(time.Millisecond)
	}
}

// Claim: the Service does what a broker relies on.
// Method: the contract, over a tree in memory.
func TestContract(t *testing.T) {
	contract.Run(t, func(t *testing.T) contract.Cluster {
		tree := newTree()
		return contract.Cluster{
			Broker:  1,
			Open:    func(t *testing.T) coord.Service { return start(t, optionsOf(tree, 1, nil)) },
			Written: func() int { tree.mu.Lock(); defer tree.mu.Unlock(); return len(tree.trace) },
		}
	})
}

func newTopic(name string, partitions int32) coord.NewTopic {
	return coord.NewTopic{Name: name, Partitions: partitions, Factor: 1}
}

// shown is all of an image that these tests change, as text.
func shown(img *coord.Image) string {
	var b strings.Builder
	fmt.Fprintf(&b, "controller %d, brokers %v\nall %v, own %v, quotas %v\n", img.ControllerID(), img.Brokers(), img.DefaultConfig(), img.BrokerConfigs(), img.Quotas())
	for _, name := range img.Names() {
		t := img.Topic(name)
		fmt.Fprintf(&b, "%s %s %v %v\n", name, coord.IDText(t.ID), t.Config, t.Partitions)
	}
	return b.String()
}

// requireWhole demands that a tree and the image of a broker on it are whole: every topic has settings, an id, all its partitions' states, and nothing is
// left of any other.
func requireWhole(t *testing.T, tr *tree, img *coord.Image) {
	t.Helper()
	want := map[string]bool{}
	for _, name := range img.Names() {
		topic := img.Topic(name)
		for _, p := range []string{znode.TopicPath(name), znode.ConfigPath(topicEntity(name)), znode.PartitionsPath(name)} {
			want[p] = true
		}
		node, err := znode.DecodeTopic([]byte(tr.read(znode.TopicPath(name))))
		if err != nil || node.ID != topic.ID || node.ID == (coord.ID{}) || len(node.Partitions) != len(topic.Partitions) {
			t.Errorf("topic %s: %+v, the image has %+v (%v)", name, node, topic, err)
		}
		if config, err := znode.DecodeConfig([]byte(tr.read(znode.ConfigPath(topicEntity(name))))); err != nil || !maps.Equal(config, topic.Config) {
			t.Errorf("topic %s: settings %v, the image has %v (%v)", name, config, topic.Config, err)
		}
		for i, p := range topic.Partitions {
			want[znode.PartitionPath(name, int32(i))], want[znode.StatePath(name, int32(i))] = true, true
			state, err := znode.DecodeState([]byte(tr.read(znode.StatePath(name, int32(i)))))
			if err != nil || state.Leader != p.Leader || state.LeaderEpoch != p.Epoch || !slices.Equal(state.ISR, p.ISR) || p.Leader < 0 {
				t.Errorf("topic %s, partition %d: %+v, the image has %+v (%v)", name, i, state, p, err)
			}
		}
	}
	for _, p := range tr.paths() {
		for _, root := range []string{znode.Topics + "/", "/config/topics/", znode.DeleteTopics + "/"} {
			if strings.HasPrefix(p, root) && !want[p] {
				t.Errorf("orphan: %s", p)
			}
		}
	}
	if t.Failed() {
		t.Log(shown(img))
	}
}

// act is one act of a life: what it does, and what is true of the names of topics (with their numbers of partitions and settings) once it is answered.
type lifeAct struct {
	do    func(s *Service) int16
	after string
}

// brief is the image as the acts of a life tell it.
func brief(img *coord.Image) string {
	var out []string
	for _, name := range img.Names() {
		out = append(out, fmt.Sprintf("%s %d %v", name, len(img.Topic(name).Partitions), img.Topic(name).Config))
	}
	return strings.Join(out, "; ") + fmt.Sprint(" all ", img.DefaultConfig())
}

func set1(r coord.ConfigResource, key, value string) []coord.ConfigChange {
	return []coord.ConfigChange{{Resource: r, Edit: func(before map[string]string) (map[string]string, int16, string) {
		after := maps.Clone(before)
		if after == nil {
			after = map[string]string{}
		}
		after[key] = value
		return after, 0, ""
	}}}
}

// folders are a broker's logs, which outlive it: they follow the images as the broker's do.
type folders struct {
	mu   sync.Mutex
	made map[string]coord.Found
}

func (f *folders) follow(img *coord.Image) {
	f.mu.Lock()
	defer f.mu.Unlock()
	want := map[string]coord.Found{}
	for _, name := range img.Names() {
		t := img.Topic(name)
		for i := range t.Partitions {
			want[fmt.Sprint(name, "-", i)] = coord.Found{Topic: name, ID: t.ID, Partition: int32(i)}
		}
	}
	f.made = want
}

// begin is what a broker does with its folders at a start, before it is registered. Nothing may be there that nobody knows.
func (f *folders) begin(t *testing.T, s *Service) {
	t.Helper()
	f.mu.Lock()
	a, err := s.Adopt(context.Background(), slices.Collect(maps.Values(f.made)), 0)
	if err == nil && len(a.Strays) > 0 {
		t.Errorf("folders that nobody knows: %+v", a.Strays)
	}
	for _, left := range a.Leftovers {
		delete(f.made, fmt.Sprint(left.Topic, "-", left.Partition))
	}
	f.mu.Unlock()
	s.Subscribe(f.follow)
}

// life are the acts that the loops of faults are about.
var life = []lifeAct{
	{func(s *Service) int16 {
		return s.CreateTopics(context.Background(), []coord.NewTopic{newTopic("a", 2)}, false)[0].Code
	}, "a 2 map[] all map[]"},
	{func(s *Service) int16 {
		return s.CreatePartitions(context.Background(), []coord.MorePartitions{{Name: "a", Count: 4}}, false)[0].Code
	}, "a 4 map[] all map[]"},
	{func(s *Service) int16 {
		if s.BumpEpochs(context.Background()) != nil {
			return wire.ErrNotController
		}
		return 0
	}, "a 4 map[] all map[]"},
	{func(s *Service) int16 {
		return s.AlterConfigs(context.Background(), set1(coord.ConfigResource{Topic: "a"}, "k", "v"), false)[0].Code
	}, "a 4 map[k:v] all map[]"},
	{func(s *Service) int16 {
		return s.AlterConfigs(context.Background(), set1(coord.ConfigResource{Broker: coord.AllBrokers}, "k", "w"), false)[0].Code
	}, "a 4 map[k:v] all map[k:w]"},
	{func(s *Service) int16 {
		return s.CreateTopics(context.Background(), []coord.NewTopic{newTopic("b", 1)}, false)[0].Code
	}, "a 4 map[k:v]; b 1 map[] all map[k:w]"},
	{func(s *Service) int16 { return s.DeleteTopics(context.Background(), []string{"a"})[0].Code }, "b 1 map[] all map[k:w]"},
}

// Claim: whatever call to coordination fails, loses its answer, ends the session or is the last before the process dies, and at whatever step of create,
// grow, configure and delete: afterwards the state is whole, folders match, and nothing is orphaned; an act that was answered has happened, one that was not
// has happened or not, and no other act has (C1).
// Method: the same life, with the fault at call 0, 1, 2 … until none is hit. A process that died is started again; the others mend themselves.
func TestEveryStepMayFail(t *testing.T) {
	for _, batch := range []int{0, 1} { // all in one multi, and each operation in its own
		for _, kind := range []string{"before", "after", "expire", "kill before", "kill after"} {
			n := 0
			for ; ; n++ {
				if testing.Short() && n%7 != 0 && n > 20 {
					continue
				}
				if !oneFault(t, fault{n, kind}, batch) {
					break
				}
				if t.Failed() {
					t.Fatalf("%s at call %d, batches of %d", kind, n, batch)
				}
			}
			t.Logf("%s: %d calls", kind, n)
		}
	}
}

// oneFault lives once. hit is false if the life was over before the fault.
func oneFault(t *testing.T, f fault, batch int) (hit bool) {
	tr := newTree()
	defer func() {
		if t.Failed() {
			t.Logf("%+v, batches of %d", f, batch)
		}
	}()
	p := &plan{fault: f}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	answered, attempted := " all map[]", " all map[]"
	o := optionsOf(tr, 1, p)
	o.batch = batch
	disk := &folders{}
	s, err := Open(ctx, o)
	if err == nil {
		disk.begin(t, s)
		registered := make(chan error, 1)
		register, giveUp := context.WithCancel(ctx)
		go func() { registered <- s.RegisterBroker(register, brokerOf(1)) }() // ends when registered, or by giveUp
		for len(registered) == 0 && !p.isDead() {
			time.Sleep(100 * time.Microsecond)
		}
		giveUp()
		<-registered
		for _, a := range life {
			attempted = a.after
			// As a client would, try again what may be tried again, until it is seen.
			for ctx.Err() == nil && !p.isDead() {
				if a.do(s) == 0 || brief(s.Image()) == a.after {
					answered = a.after
					break
				}
				time.Sleep(time.Millisecond)
			}
			if p.isDead() {
				break
			}
		}
	}
	p.mu.Lock()
	hit = p.fired
	p.fault.at = -1 // none from here on
	p.mu.Unlock()
	if p.isDead() || err != nil {
		if s != nil {
			_ = s.Close()
		}
		tr.expireAll()
		s, err = Open(ctx, optionsOf(tr, 1, nil))
		if err != nil {
			t.Fatal(err)
		}
		disk.begin(t, s)
		if err := s.RegisterBroker(ctx, brokerOf(1)); err != nil {
			t.Fatal(err)
		}
	}
	var got string
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(time.Millisecond) {
		if got = brief(s.Image()); got == answered || got == attempted {
			break
		}
	}
	if got != answered && got != attempted {
		t.Errorf("%v: %s\nwant %s\nor   %s", f, got, answered, attempted)
	}
	s.settle(t)
	requireWhole(t, tr, s.Image())
	disk.mu.Lock()
	if len(disk.made) != s.Image().Partitions() {
		t.Errorf("%d folders of %d partitions", len(disk.made), s.Image().Partitions())
	}
	disk.mu.Unlock()
	_ = s.Close()
	return hit
}

// settle waits until nothing is to be done any more.
func (s *Service) settle(t *testing.T) {
	within(t, "at rest", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.events.mu.Lock()
		defer s.events.mu.Unlock()
		return s.mu.conn != nil && !s.mu.stale && s.mu.lead != nil && len(s.events.waiting) == 0
	})
}

func (p *plan) isDead() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.dead
}

// Claim: topics of one request are written together, and one that cannot be made costs only itself, also if coordination alone knows why.
// Method: a topic that a tool has made a moment ago, and settings without a topic, among others; in one multi, and each operation in its own.
func TestTopicsOfOneRequestAreMadeTogether(t *testing.T) {
	for _, batch := range []int{0, 1} {
		tr := newTree()
		o := optionsOf(tr, 1, nil)
		o.batch = batch
		s := start(t, o)
		s.mu.Lock()
		s.mu.conn = deaf{s.mu.conn, tr}
		s.mu.Unlock()
		results := s.CreateTopics(t.Context(), []coord.NewTopic{newTopic("a", 2), newTopic("taken", 1), newTopic("b", 1), newTopic("settings", 1)}, false)
		for _, r := range results {
			want := int16(0)
			if r.Name == "taken" {
				want = wire.ErrTopicAlreadyExists
			}
			if r.Code != want || (r.Topic == nil) != (want != 0) {
				t.Errorf("%s: %+v", r.Name, r)
			}
		}
		within(t, "the tool's topic is seen", func() bool { return s.Image().Topic("taken") != nil })
		s.settle(t)
		requireWhole(t, tr, s.Image())
		if len(s.Image().Names()) != 4 {
			t.Errorf("%s", shown(s.Image()))
		}
	}
}

// deaf is a session before whose first multi a tool is faster.
type deaf struct {
	Conn
	t *tree
}

func (d deaf) Multi(ops ...any) ([]zk.MultiResponse, error) {
	topic := znode.Topic{ID: coord.ID{7}, Partitions: map[int32][]int32{0: {1}}}
	_ = d.t.act(create("/config/topics/settings", []byte(`{"version":1,"config":{"k":"v"}}`)))
	_ = d.t.act(create("/config/topics/taken", []byte(`{"version":1,"config":{}}`)))
	_ = d.t.act(create("/brokers/topics/taken", topic.Encode()))
	return d.Conn.Multi(ops...)
}

// countedConn counts reads by path.
type countedConn struct {
	Conn
	mu    *sync.Mutex
	reads map[string]int
}

func (c countedConn) count(path string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reads[path]++
}

func (c countedConn) Get(path string, watch bool) ([]byte, *zk.Stat, error) {
	c.count(path)
	return c.Conn.Get(path, watch)
}

func (c countedConn) Exists(path string, watch bool) (*zk.Stat, error) {
	c.count(path)
	return c.Conn.Exists(path, watch)
}

// Claim: a start reads each partition's state and each topic's settings once, and looks once for the nodes that every broker makes.
func TestAStartReadsOnce(t *testing.T) {
	tr := newTree()
	s := start(t, optionsOf(tr, 1, nil))
	for _, r := range s.CreateTopics(t.Context(), []coord.NewTopic{newTopic("a", 20), newTopic("b", 1)}, false) {
		if r.Code != 0 {
			t.Fatalf("%+v", r)
		}
	}
	_ = s.Close()
	o := optionsOf(tr, 1, nil)
	dial, counted := o.Dial, countedConn{mu: &sync.Mutex{}, reads: map[string]int{}}
	o.Dial = func(ctx context.Context, events func(zk.Event)) (Conn, error) {
		conn, err := dial(ctx, events)
		return countedConn{conn, counted.mu, counted.reads}, err
	}
	s = start(t, o)
	s.settle(t)
	_ = s.Close()
	seen := 0
	for path, n := range counted.reads {
		state, config := strings.HasSuffix(path, "/state"), strings.HasPrefix(path, znode.ConfigPath(znode.EntityTopics+"/"))
		if (state || config || slices.Contains(znode.AlwaysThere, path)) && n > 1 {
			t.Errorf("%s was read %d times", path, n)
		}
		if state || config {
			seen++
		}
	}
	if seen != 21+2 {
		t.Errorf("%d states and settings were read, want 23", seen)
	}
}
