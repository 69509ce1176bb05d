package controller

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"millrace/coord"
	"millrace/coord/controller/znode"
	"millrace/wire"
)

// Claim: a controller that has been replaced writes nothing more, whether it knows or not, and says NOT_CONTROLLER; what it still orders is refused (C1).
// Method: take its office away while it is kept from noticing.
func TestADeposedControllerWritesNothing(t *testing.T) {
	tr := newTree()
	a := start(t, optionsOf(tr, 1, nil))
	old, _ := a.Controller()

	a.mu.Lock() // it cannot look at its events
	if err := tr.act(remove(znode.ControllerPath)); err != nil {
		t.Fatal(err)
	}
	b, err := Open(t.Context(), optionsOf(tr, 2, nil))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Close() })
	if err := b.RegisterBroker(t.Context(), brokerOf(2)); err != nil {
		t.Fatal(err)
	}
	if epoch, ok := b.Controller(); !ok || epoch != old+1 {
		t.Errorf("epoch %d, %v", epoch, ok)
	}
	before := tr.length()
	if a.mu.lead == nil {
		t.Fatal("it has noticed")
	}
	_, err = a.fenced(create(znode.DeletePath("x"), nil))
	if !errors.Is(err, errMoved) || tr.length() != before || a.mu.lead != nil {
		t.Errorf("%v, %d writes", err, tr.length()-before)
	}
	a.mu.Unlock()
	if r := a.CreateTopics(t.Context(), []coord.NewTopic{newTopic("x", 1)}, false)[0]; r.Code != wire.ErrNotController {
		t.Errorf("%+v", r)
	}
	if r := a.DeleteTopics(t.Context(), []string{"x"})[0]; r.Code != wire.ErrNotController {
		t.Errorf("%+v", r)
	}
	if r := a.CreatePartitions(t.Context(), []coord.MorePartitions{{Name: "x", Count: 2}}, false)[0]; r.Code != wire.ErrNotController {
		t.Errorf("%+v", r)
	}
	if err := b.Member().UpdateMetadata(&UpdateMetadata{Order: Order{1, old, b.BrokerEpoch()}}); !errors.Is(err, ErrStaleOrder) || b.Image().ControllerID() != 2 {
		t.Errorf("an old order: %v, controller %d", err, b.Image().ControllerID())
	}
}

// Claim: with several brokers, whoever is left is elected and leads on: partitions of a dead broker have other leaders, those it led alone have none and
// get it back, topics can be made and deleted, and every broker's image follows.
// Method: three brokers that reach each other; the controller dies; it comes back.
func TestBrokersTakeOver(t *testing.T) {
	tr := newTree()
	var mu sync.Mutex
	brokers := map[int32]*Service{}
	plans := map[int32]*plan{}
	boot := func(id int32) *Service {
		t.Helper()
		p := &plan{fault: fault{at: -1}}
		o := optionsOf(tr, id, p)
		o.Peer = func(b coord.Broker) Peer {
			mu.Lock()
			defer mu.Unlock()
			if plans[b.ID].isDead() {
				return nil
			}
			return brokers[b.ID].Member()
		}
		s, err := Open(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		mu.Lock()
		brokers[id], plans[id] = s, p
		mu.Unlock()
		t.Cleanup(func() { _ = s.Close() })
		if err := s.RegisterBroker(t.Context(), brokerOf(id)); err != nil {
			t.Fatal(err)
		}
		return s
	}
	one, two, three := boot(1), boot(2), boot(3)
	if _, ok := one.Controller(); !ok || two.Image().ControllerID() != 1 || len(three.Image().Brokers()) != 3 {
		t.Fatalf("%s", shown(three.Image()))
	}
	wide := coord.NewTopic{Name: "wide", Assignment: [][]int32{{1, 2, 3}, {2, 3, 1}, {3, 1, 2}}}
	alone := coord.NewTopic{Name: "alone", Assignment: [][]int32{{1}, {2}}}
	for _, r := range one.CreateTopics(t.Context(), []coord.NewTopic{wide, alone}, false) {
		if r.Code != 0 {
			t.Fatalf("%+v", r)
		}
	}
	for _, s := range []*Service{two, three} {
		if s.Image().Topic("wide") == nil || s.Image().Topic("wide").Partitions[2].Leader != 3 {
			t.Errorf("not told: %s", shown(s.Image()))
		}
	}
	if r := two.CreateTopics(t.Context(), []coord.NewTopic{newTopic("x", 1)}, false)[0]; r.Code != wire.ErrNotController {
		t.Errorf("%+v", r)
	}
	if r := two.AlterConfigs(t.Context(), set1(coord.ConfigResource{Topic: "wide"}, "k", "v"), false)[0]; r.Code != 0 || two.Image().Topic("wide").Config["k"] != "v" {
		t.Errorf("%+v", r)
	}
	within(t, "settings reach the others", func() bool {
		return three.Image().Topic("wide").Config["k"] == "v" && one.Image().Topic("wide").Config["k"] == "v"
	})

	// Broker 1 dies: its process does nothing more, its session expires.
	plans[1].mu.Lock()
	plans[1].dead = true
	plans[1].mu.Unlock()
	tr.mu.Lock()
	var fire []func()
	for id, c := range tr.conns {
		if c.plan == plans[1] {
			fire = append(fire, tr.expire(id)...)
		}
	}
	tr.mu.Unlock()
	for _, f := range fire {
		f()
	}
	within(t, "another controller and leaders", func() bool {
		for _, s := range []*Service{two, three} {
			img := s.Image()
			p, q := img.Topic("wide").Partitions, img.Topic("alone").Partitions
			if img.ControllerID() == 1 || p[0].Leader != 2 || len(p[0].ISR) != 2 || len(p[1].ISR) != 2 || p[0].Epoch != 1 || p[1].Epoch != 1 || q[0].Leader != -1 || len(q[0].ISR) != 1 || q[1].Leader != 2 {
				return false
			}
		}
		return true
	})
	leader := brokers[two.Image().ControllerID()]
	if r := leader.DeleteTopics(t.Context(), []string{"alone"})[0]; r.Code != 0 || two.Image().Topic("alone") != nil || tr.read(znode.DeletePath("alone")) == "" {
		t.Errorf("a deletion that has to wait for broker 1: %+v", r)
	}
	if r := leader.CreateTopics(t.Context(), []coord.NewTopic{{Name: "alone", Partitions: 1, Factor: 1}}, false)[0]; r.Code != wire.ErrTopicAlreadyExists {
		t.Errorf("made while it is being deleted: %+v", r)
	}

	_ = one.Close()
	one = boot(1)
	within(t, "the deletion goes on", func() bool {
		return tr.read(znode.DeletePath("alone")) == "" && tr.read(znode.TopicPath("alone")) == ""
	})
	if img := one.Image(); img.ControllerID() == 1 || img.Topic("alone") != nil || img.Topic("wide").Partitions[0].Leader != 2 || img.Topic("wide").Config["k"] != "v" {
		t.Errorf("%s", shown(img))
	}
	codes, err := leader.ElectPreferred([]Partition{{"wide", 0}, {"wide", 1}, {"none", 0}})
	if err != nil || codes[0] != wire.ErrPreferredLeaderNotAvailable || codes[1] != wire.ErrElectionNotNeeded || codes[2] != wire.ErrUnknownTopicOrPartition {
		t.Errorf("%v, %v", codes, err)
	}
	if err := two.Member().StopReplica(&StopReplica{Order: Order{two.Image().ControllerID(), 99, two.BrokerEpoch() - 1}}); !errors.Is(err, ErrStaleOrder) {
		t.Errorf("an order for an older life: %v", err)
	}
	if err := two.BumpEpochs(t.Context()); (err == nil) != (leader == two) {
		t.Error(err)
	}
}

// Claim: while coordination is away the image stays served, changes are refused with retriable errors, and all resumes by itself, with the same
// topics and a new registration.
// Method: take the tree away with its sessions, and bring it back.
func TestServiceOutlivesCoordination(t *testing.T) {
	tr := newTree()
	s := start(t, optionsOf(tr, 1, nil))
	s.CreateTopics(t.Context(), []coord.NewTopic{newTopic("a", 3)}, false)
	s.settle(t)
	img, epoch := s.Image(), s.BrokerEpoch()
	tr.mu.Lock()
	tr.away = true
	tr.mu.Unlock()
	tr.expireAll()
	within(t, "noticed", func() bool { _, ok := s.Controller(); return !ok })
	if s.Image() != img {
		t.Error("the image changed")
	}
	retriable := map[int16]bool{wire.ErrNotController: true, wire.ErrRequestTimedOut: true}
	if r := s.CreateTopics(t.Context(), []coord.NewTopic{newTopic("b", 1)}, false)[0]; !retriable[r.Code] {
		t.Errorf("%+v", r)
	}
	if r := s.AlterConfigs(t.Context(), set1(coord.ConfigResource{Topic: "a"}, "k", "v"), false)[0]; !retriable[r.Code] {
		t.Errorf("%+v", r)
	}
	if _, _, err := s.AllocateProducerIDs(t.Context()); !errors.Is(err, coord.ErrUnavailable) {
		t.Errorf("producer ids from nowhere: %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := Open(ctx, optionsOf(tr, 2, nil)); err == nil {
		t.Error("opened without coordination")
	}
	tr.mu.Lock()
	tr.away = false
	tr.mu.Unlock()
	within(t, "controller again", func() bool { _, ok := s.Controller(); return ok })
	s.settle(t)
	if now := s.Image(); now.Topic("a") != img.Topic("a") || s.BrokerEpoch() <= epoch {
		t.Errorf("%s\nwas\n%s, broker epoch %d after %d", shown(now), shown(img), s.BrokerEpoch(), epoch)
	}
	if r := s.CreateTopics(t.Context(), []coord.NewTopic{newTopic("b", 1)}, false)[0]; r.Code != 0 {
		t.Errorf("%+v", r)
	}
	requireWhole(t, tr, s.Image())
}

// Claim: what is damaged in the tree stops the start with an error that names the node; it is never taken for an empty cluster.
// Method: one damaged node of each kind.
func TestADamagedNodeStopsTheStart(t *testing.T) {
	for _, path := range []string{znode.TopicPath("a"), znode.StatePath("a", 0), znode.ConfigPath("topics/a"), znode.ClusterIDPath} {
		tr := newTree()
		s := start(t, optionsOf(tr, 1, nil))
		s.CreateTopics(t.Context(), []coord.NewTopic{newTopic("a", 1)}, false)
		_ = s.Close()
		if err := tr.act(set(path, []byte("{"), -1)); err != nil {
			t.Fatal(err)
		}
		s, err := Open(t.Context(), optionsOf(tr, 1, nil))
		if err == nil {
			err = s.RegisterBroker(t.Context(), brokerOf(1))
			_ = s.Close()
		}
		if err == nil || path != znode.ClusterIDPath && !strings.Contains(err.Error(), path) {
			t.Errorf("started with a damaged %s: %v", path, err)
		}
	}
}

// Claim: a start tells logs of a topic whose deletion was cut off, which are to go, from logs that the tree does not know, which are left alone.
// Method: a deletion that waits, and logs of every kind.
func TestLogsFoundAreComparedWithTheTree(t *testing.T) {
	tr := newTree()
	s := start(t, optionsOf(tr, 1, nil))
	s.CreateTopics(t.Context(), []coord.NewTopic{newTopic("kept", 2), newTopic("going", 1)}, false)
	kept, going := s.Image().Topic("kept").ID, s.Image().Topic("going").ID
	_ = s.Close()
	if err := tr.act(create(znode.DeletePath("going"), nil)); err != nil {
		t.Fatal(err)
	}
	s, err := Open(t.Context(), optionsOf(tr, 1, nil))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	found := []coord.Found{{Topic: "going", ID: going}, {Topic: "kept", ID: kept, Partition: 1}, {Topic: "kept", Partition: 0}, {Topic: "kept", ID: kept, Partition: 2}, {Topic: "kept", ID: coord.ID{9}}, {Topic: "none", ID: coord.ID{8}}}
	a, err := s.Adopt(t.Context(), found, 0)
	if err != nil || len(a.Adopted) != 0 || !slices.Equal(a.Leftovers, found[:1]) || !slices.Equal(a.Strays, found[3:]) {
		t.Errorf("%+v, %v", a, err)
	}
	if s.Image().Topic("going") != nil || s.Image().Topic("kept").Partitions[0].Leader != -1 {
		t.Errorf("before a controller has spoken: %s", shown(s.Image()))
	}
	if err := s.RegisterBroker(t.Context(), brokerOf(1)); err != nil {
		t.Fatal(err)
	}
	s.settle(t)
	requireWhole(t, tr, s.Image())
}

// Claim: a broker that was killed and starts again at once waits for its last life's session to end, and goes on then; a second broker with its id is
// refused in the end.
// Method: kill, start, expire; then a start beside a living one.
func TestARestartWaitsForTheLastLife(t *testing.T) {
	tr := newTree()
	p := &plan{fault: fault{at: -1}}
	s := start(t, optionsOf(tr, 1, p))
	s.CreateTopics(t.Context(), []coord.NewTopic{newTopic("a", 1)}, false)
	p.mu.Lock()
	p.dead = true
	p.mu.Unlock()
	next, err := Open(t.Context(), optionsOf(tr, 1, nil))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = next.Close() })
	registered := make(chan error, 1)
	go func() { registered <- next.RegisterBroker(t.Context(), brokerOf(1)) }() // ends when registered
	within(t, "it has looked", func() bool { next.mu.Lock(); defer next.mu.Unlock(); return next.mu.self != nil })
	if next.Image().Topic("a").Partitions[0].Leader != -1 || len(registered) != 0 {
		t.Error("it leads already")
	}
	tr.mu.Lock()
	var fire []func()
	for id, c := range tr.conns {
		if c.plan == p {
			fire = append(fire, tr.expire(id)...)
		}
	}
	tr.mu.Unlock()
	for _, f := range fire {
		f()
	}
	if err := <-registered; err != nil || next.Image().Topic("a").Partitions[0].Leader != 1 {
		t.Errorf("%v: %s", err, shown(next.Image()))
	}

	o := optionsOf(tr, 1, nil)
	o.SessionTimeout = 20 * time.Millisecond
	twin, err := Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = twin.Close() })
	if err := twin.RegisterBroker(t.Context(), brokerOf(1)); err == nil || !errors.Is(err, errOldLife) {
		t.Errorf("a twin: %v", err)
	}
}
