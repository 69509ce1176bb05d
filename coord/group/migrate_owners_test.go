package group

import (
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
	"pgregory.net/rapid"

	"millrace/coord/group/assign"
	"millrace/wire"
)

// migrants plays random clients of both protocols in one group.
type migrants struct {
	*modernOwners
	riders  []*rider
	epoch   int32                 // the newest that was answered while the group had members
	acked   map[int32]int64       // partition → newest commit that was acked
	tried   map[int32][]int64     // partition → commits without an answer since
	commits map[Call]pendingOffer // under way
	offset  int64
}

type pendingOffer struct {
	partition int32
	offset    int64
}

// Claim (G1, G2): while clients of both protocols come and go, so that the group
// goes from one to the other and back, a partition never has two users that are
// in the group; epochs and generations never go back while somebody is in it;
// every commit that was acked is kept; and when all obey, every partition is
// read by one.
// Method: random clients, two of them one static member's selves of either
// protocol; random time, held and failing writes, restarts, policies.
func TestMigrantsNeverShare(t *testing.T) {
	for range 5 { // a wrong answer needs a rare order of steps
		rapid.Check(t, func(rt *rapid.T) { playMigrants(t, rt) })
	}
}

func playMigrants(t *testing.T, rt *rapid.T) {
	up, down := rapid.Bool().Draw(rt, "upgrade"), rapid.Bool().Draw(rt, "downgrade")
	o := &migrants{acked: map[int32]int64{}, tried: map[int32][]int64{}, commits: map[Call]pendingOffer{}}
	o.modernOwners = &modernOwners{rt: rt, waits: map[*modernClient]Call{}, by: map[Call]*modernClient{}}
	o.story = newStory(t, allowing(up, down), func(s *Settings) { s.InitialDelay = 0 })
	o.answered = o.hear
	o.clients = []*modernClient{o.modern("m"), o.modern("n"), o.modern("t1").twin("t")}
	o.riders = []*rider{o.rider("a"), o.rider("b"), o.rider("e"), o.rider("t2")}
	o.riders[2].eager, o.riders[3].instance = true, "t"
	rt.Repeat(map[string]func(*rapid.T){
		"join": func(rt *rapid.T) {
			c := o.pick(rt)
			if o.waits[c] == 0 {
				c.epoch, c.owns, c.told = 0, nil, nil
				o.ask(c, true)
			}
		},
		"beat": func(rt *rapid.T) { o.ask(o.pick(rt), rapid.Bool().Draw(rt, "whole")) },
		"obey": func(rt *rapid.T) { o.take(o.pick(rt)) },
		"ride": func(rt *rapid.T) { o.ride(rapid.SampledFrom(o.riders).Draw(rt, "rider")) },
		"all go on": func(*rapid.T) {
			for _, c := range o.clients {
				if c.epoch > 0 {
					o.ask(c, false)
					o.take(c)
				}
			}
			for _, r := range o.riders {
				o.ride(r)
			}
		},
		"leave": func(rt *rapid.T) { o.leave(o.pick(rt), epochLeaves) },
		"away":  func(*rapid.T) { o.leave(o.clients[2], epochAway) },
		"quit": func(rt *rapid.T) {
			r := rapid.SampledFrom(o.riders).Draw(rt, "rider")
			o.lose1(r)
			r.quit()
		},
		"lose": func(rt *rapid.T) { o.lose(o.pick(rt)) },
		"commit": func(rt *rapid.T) {
			o.commitFor(rapid.SampledFrom(o.riders).Draw(rt, "rider"))
		},
		"time": func(rt *rapid.T) { o.pass(time.Duration(rapid.IntRange(1, 8_000).Draw(rt, "ms")) * time.Millisecond) },
		"hold": func(*rapid.T) { o.hold = true },
		"release": func(*rapid.T) {
			if len(o.held) > 0 {
				o.release()
			}
			o.settle()
		},
		"flow": func(*rapid.T) { o.flow() },
		"fail": func(rt *rapid.T) {
			o.fail = rapid.SampledFrom([]int16{0, 0, 0, wire.ErrNotEnoughReplicas}).Draw(rt, "code")
		},
		"restart": func(*rapid.T) {
			o.hold = false
			o.loseAll()
			o.restart()
			o.epoch = 0 // a generation is only in the log once its leader has assigned
		},
		"": o.holds,
	})
	o.atRest()
}

// lose1 loses what a rider waits for: the connection is gone.
func (o *migrants) lose1(r *rider) {
	if r.joins != 0 || r.syncs != 0 {
		r.joins, r.syncs, r.inside = 0, 0, false
	}
}

func (o *migrants) loseAll() {
	for _, c := range o.clients {
		o.lose(c)
	}
	for _, r := range o.riders {
		o.lose1(r)
	}
	clear(o.commits) // tried stays: who knows
}

// ride lets a rider do its next act. One that was fenced begins anew some time.
func (o *migrants) ride(r *rider) {
	if r.fenced {
		r.fenced, r.id, r.generation = false, "", -1
	}
	before := len(r.owns)
	r.poll()
	if len(r.owns) > before || r.inside {
		o.check1(r.name, orders(r.owns))
	}
}

func orders(owns map[int32]bool) (out []assign.Place) {
	for p := range owns {
		out = append(out, assign.Place{Topic: [16]byte{1}, Partition: p})
	}
	return out
}

// take lets a client take up what it was told, unless a heartbeat is under way.
func (o *migrants) take(c *modernClient) {
	if o.waits[c] != 0 {
		return
	}
	c.obey()
	o.check1(c.id, placesUsed(c))
}

func placesUsed(c *modernClient) (out []assign.Place) {
	for topic, list := range c.owns {
		for _, p := range list {
			out = append(out, assign.Place{Topic: topic, Partition: p})
		}
	}
	return out
}

// check1 looks whether another that is in the group uses one of the partitions
// too. Who is in it and does not know that it has been fenced is not.
func (o *migrants) check1(name string, uses []assign.Place) {
	if !o.current(name) {
		return
	}
	for _, c := range o.clients {
		if c.id != name && o.current(c.id) {
			o.apart(name, uses, c.id, placesUsed(c))
		}
	}
	for _, r := range o.riders {
		if r.name != name && o.current(r.name) {
			o.apart(name, uses, r.name, orders(r.owns))
		}
	}
}

func (o *migrants) apart(a string, usesA []assign.Place, b string, usesB []assign.Place) {
	for _, p := range usesA {
		if slices.Contains(usesB, p) {
			o.rt.Fatalf("G2: %s and %s both use partition %d", a, b, p.Partition)
		}
	}
}

// current says whether the coordinator takes a client for a member that is up
// to date.
func (o *migrants) current(name string) bool {
	g := o.g.groups["g"]
	if g == nil {
		return false
	}
	for _, c := range o.clients {
		if c.id == name {
			if g.modern == nil {
				return false
			}
			x := g.modern.members[c.id]
			return x != nil && x.said.Classic == nil && c.epoch > 0 && (x.epoch == c.epoch || x.previous == c.epoch)
		}
	}
	for _, r := range o.riders {
		if r.name != name {
			continue
		}
		if g.modern != nil {
			x := g.modern.members[r.id]
			return x != nil && x.said.Classic != nil && x.epoch == r.generation
		}
		x := g.members[r.id]
		return x != nil && g.isCurrent(x, r.generation)
	}
	return false
}

// hear takes an answer as it is given.
func (o *migrants) hear(call Call, r kmsg.Response) {
	switch r := r.(type) {
	case *kmsg.ConsumerGroupHeartbeatResponse:
		c := o.by[call]
		if c == nil {
			return
		}
		delete(o.waits, c)
		left := c.epoch < 0
		code := c.took(call)
		if code != 0 || left {
			c.resend = true
			if code != wire.ErrCoordinatorNotAvailable {
				c.epoch, c.owns, c.told = 0, nil, nil
			}
			return
		}
		o.rises(*r.MemberID, r.MemberEpoch)
	case *kmsg.JoinGroupResponse:
		if r.ErrorCode == 0 {
			o.rises(r.MemberID, r.Generation)
		}
	case *kmsg.OffsetCommitResponse:
		at, ok := o.commits[call]
		if delete(o.commits, call); !ok || r.Topics[0].Partitions[0].ErrorCode != 0 {
			return
		}
		o.acked[at.partition] = at.offset
		o.tried[at.partition] = slices.DeleteFunc(o.tried[at.partition], func(x int64) bool { return x <= at.offset })
	}
}

// rises checks that what is answered is the member's, and of the group's time.
func (o *migrants) rises(id string, epoch int32) {
	g := o.g.groups["g"]
	if g == nil {
		return
	}
	if g.modern != nil {
		if epoch > g.modern.epoch {
			o.rt.Fatalf("epoch %d is answered, the group is at %d", epoch, g.modern.epoch)
		}
		return
	}
	// One of the step that made the group classic has its epoch there, and is told
	// to join again; one that has left in the same step is gone.
	if x := g.members[id]; x != nil && !g.isCurrent(x, epoch) {
		o.rt.Fatalf("%s is answered generation %d, the group is at %d", id, epoch, g.generation)
	}
}

func (o *migrants) commitFor(r *rider) {
	if len(r.owns) == 0 {
		return
	}
	p := slices.Min(placesOfRider(r))
	o.offset++
	call := o.next + 1
	o.commits[call] = pendingOffer{p, o.offset}
	o.tried[p] = append(o.tried[p], o.offset)
	req := kmsg.NewPtrOffsetCommitRequest()
	req.Group, req.MemberID, req.InstanceID, req.Generation = "g", r.id, r.instanceID(), r.generation
	part := kmsg.NewOffsetCommitRequestTopicPartition()
	part.Partition, part.Offset = p, o.offset
	req.Topics = []kmsg.OffsetCommitRequestTopic{{Topic: "orders", Partitions: []kmsg.OffsetCommitRequestTopicPartition{part}}}
	o.commit(7, req)
}

func placesOfRider(r *rider) (out []int32) {
	for p := range r.owns {
		out = append(out, p)
	}
	return out
}

// holds are the invariants after every step.
func (o *migrants) holds(rt *rapid.T) {
	o.invariants(rt)
	g := o.g.groups["g"]
	if g == nil {
		o.epoch = 0
		return
	}
	epoch, members := g.generation, len(g.members)
	if n := g.modern; n != nil {
		epoch, members = n.epoch, len(n.members)
		if len(g.members)+len(g.pending) > 0 || g.state != Empty {
			rt.Fatalf("a next-generation group is still %v, with %d members", g.state, len(g.members))
		}
		for id, x := range n.members {
			if l := n.lives[id]; x.said.Classic == nil && l != nil && l.behind.index != 0 && !n.writing {
				rt.Fatalf("%s speaks the next protocol and owes a join", id)
			}
		}
		if !n.writing && len(n.queue) == 0 && o.g.settings.Migration.Downgrade && members > 0 && n.classics() == members {
			rt.Fatalf("all %d members are classic, the group is not", members)
		}
	} else {
		for id, x := range g.members {
			if x.timer.index == 0 && x.join.call == 0 && x.sync.call == 0 { // parked, its clock starts with the answer
				rt.Fatalf("member %s lives for ever", id)
			}
		}
		if g.state == Preparing && g.rebalance.timer.index == 0 {
			rt.Fatal("a rebalance has no end")
		}
	}
	busy := g.modern != nil && g.modern.writing // what is not durable may go back
	if members == 0 || o.fail != 0 || len(o.held) > 0 || busy {
		o.epoch = 0
		return
	}
	if epoch < o.epoch {
		rt.Fatalf("from epoch %d back to %d", o.epoch, epoch)
	}
	o.epoch = epoch
	for p, want := range o.acked {
		if got := o.committed("g", p); got != want && !slices.Contains(o.tried[p], got) {
			rt.Fatalf("partition %d: committed %d, acked %d", p, got, want)
		}
	}
}

// atRest lets all but the twins go on, and looks at what they have.
func (o *migrants) atRest() {
	o.fail = 0
	o.flow()
	o.loseAll()
	riders := o.riders[:3]
	moderns := o.clients[:2]
	if !o.g.settings.Migration.Upgrade {
		if g := o.g.groups["g"]; g == nil || g.modern == nil {
			moderns = nil // would be refused
		}
	}
	for range 90 {
		for _, c := range moderns {
			o.ask(c, false)
			o.take(c)
		}
		for _, r := range riders {
			for range 3 {
				o.ride(r)
			}
		}
		o.pass(time.Second)
	}
	owners := map[assign.Place]string{}
	note := func(name string, uses []assign.Place) {
		for _, p := range uses {
			if owners[p] != "" {
				o.rt.Fatalf("at rest %v is read by %s and %s", p, owners[p], name)
			}
			owners[p] = name
		}
	}
	for _, c := range moderns {
		note(c.id, placesUsed(c))
	}
	for _, r := range riders {
		note(r.name, orders(r.owns))
	}
	if want := o.known["orders"].Partitions; len(owners) != want {
		g := o.g.groups["g"]
		o.rt.Fatalf("at rest %d of %d partitions are read: %v (%v, %+v)", len(owners), want, owners, g.state, g.modern)
	}
	o.holds(o.rt)
}
