package group

import (
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
	"pgregory.net/rapid"

	"millrace/coord/group/assign"
	"millrace/wire"
)

// modernOwners plays random clients of the next-generation protocol.
type modernOwners struct {
	*story
	rt      *rapid.T
	clients []*modernClient
	waits   map[*modernClient]Call // heartbeats without an answer so far
	by      map[Call]*modernClient
}

// Claim (G2): a partition never has two owners, also not while a group goes from
// one assignment to another: what a client was told to use, no other that is
// still in the group is using; whatever clients do, whatever becomes of writes,
// over crashes; and when all obey, the group comes to rest with all owned.
// Method: random clients, some of them twins of one static member, that obey
// late or miss answers; random time, held and failing writes, restarts.
func TestConsumersNeverShare(t *testing.T) {
	for range 20 { // a wrong answer needs a rare order of steps
		rapid.Check(t, func(rt *rapid.T) { playModern(t, rt) })
	}
}

func playModern(t *testing.T, rt *rapid.T) {
	interval := time.Duration(rapid.IntRange(0, 1).Draw(rt, "interval")) * time.Second
	o := &modernOwners{rt: rt, waits: map[*modernClient]Call{}, by: map[Call]*modernClient{}}
	o.story = newStory(t, func(s *Settings) { s.Consumer.Interval = func() time.Duration { return interval } })
	o.known["more"] = Topic{Name: "more", ID: [16]byte{2}, Partitions: 2}
	o.answered = o.check
	p := "ord.*"
	o.clients = []*modernClient{o.modern("a"), o.modern("b", "more", "orders"), o.modern("t1").twin("t"), o.modern("t2").twin("t"), o.modern("p")}
	o.clients[4].topics, o.clients[4].pattern = nil, &p
	rt.Repeat(map[string]func(*rapid.T){
		"join": func(rt *rapid.T) {
			c := o.pick(rt)
			if o.waits[c] == 0 {
				c.epoch, c.owns, c.told = 0, nil, nil
				o.ask(c, true)
			}
		},
		"beat": func(rt *rapid.T) { o.ask(o.pick(rt), rapid.Bool().Draw(rt, "whole")) },
		"all beat": func(*rapid.T) {
			for _, c := range o.clients {
				o.ask(c, false)
			}
		},
		"obey": func(rt *rapid.T) { o.obey(o.pick(rt)) },
		"all obey": func(*rapid.T) {
			for _, c := range o.clients {
				o.obey(c)
			}
		},
		"leave": func(rt *rapid.T) { o.leave(o.pick(rt), epochLeaves) },
		"away":  func(rt *rapid.T) { o.leave(o.clients[rapid.IntRange(2, 3).Draw(rt, "twin")], epochAway) },
		"lose": func(rt *rapid.T) { // the answer: the connection is gone
			o.lose(o.pick(rt))
		},
		"topics": func(rt *rapid.T) {
			o.known["more"] = Topic{Name: "more", ID: [16]byte{2}, Partitions: rapid.IntRange(1, 4).Draw(rt, "partitions")}
			o.g.TopicsChanged()
		},
		"time": func(rt *rapid.T) { o.pass(time.Duration(rapid.IntRange(1, 20_000).Draw(rt, "ms")) * time.Millisecond) },
		"hold": func(*rapid.T) { o.hold = true },
		"release": func(*rapid.T) {
			if len(o.held) > 0 {
				o.release()
			}
			o.settle()
		},
		"flow": func(*rapid.T) { o.flow() },
		"fail": func(rt *rapid.T) {
			o.fail = rapid.SampledFrom([]int16{0, 0, wire.ErrNotEnoughReplicas}).Draw(rt, "code")
		},
		"restart": func(*rapid.T) {
			o.hold = false
			for _, c := range o.clients {
				o.lose(c)
			}
			o.restart()
		},
		"": o.invariants,
	})
	o.comesToRest()
}

func (o *modernOwners) pick(rt *rapid.T) *modernClient {
	return rapid.SampledFrom(o.clients).Draw(rt, "client")
}

// obey takes up nothing while a heartbeat is under way that says it is not used.
func (o *modernOwners) obey(c *modernClient) {
	if o.waits[c] == 0 {
		c.obey()
	}
}

// lose loses the answer that a client waits for. It then tells all, and takes up
// nothing before it has been told all.
func (o *modernOwners) lose(c *modernClient) {
	if o.waits[c] != 0 {
		delete(o.by, o.waits[c])
		delete(o.waits, c)
		c.told, c.resend = c.owns, true
	}
}

// ask sends a heartbeat, unless the client waits for an answer: it has one
// request under way at a time. One that is not in the group joins.
func (o *modernOwners) ask(c *modernClient, whole bool) {
	if o.waits[c] != 0 {
		return
	}
	if c.epoch < 0 {
		c.epoch = 0
	}
	call := o.next + 1
	o.waits[c], o.by[call] = call, c
	whole = whole || c.epoch == epochJoins || c.resend
	c.resend = false
	c.send(c.request(whole))
}

// leave gives everything up and says so; the answer does not matter.
func (o *modernOwners) leave(c *modernClient, epoch int32) {
	if o.waits[c] != 0 {
		return
	}
	c.epoch, c.owns, c.told = epoch, nil, nil
	call := o.next + 1
	o.waits[c], o.by[call] = call, c
	c.send(c.request(false))
}

// check takes an answer as it is given. What a client is told to use from now
// on, no other member uses.
func (o *modernOwners) check(call Call, r kmsg.Response) {
	c := o.by[call]
	if c == nil {
		return
	}
	delete(o.waits, c)
	left := c.epoch < 0
	if code := c.took(call); code != 0 || left {
		c.resend = true
		if code == wire.ErrFencedInstanceID || code == wire.ErrUnreleasedInstanceID || code == wire.ErrGroupIDNotFound || code == 0 {
			c.epoch, c.owns, c.told = 0, nil, nil
		}
		return
	}
	n := o.g.groups["g"].modern
	for _, other := range o.clients {
		x := n.members[other.id]
		if other == c || x == nil || other.epoch <= 0 || x.epoch < 0 {
			continue
		}
		if other.epoch != x.epoch && other.epoch != x.previous {
			continue // fenced, and about to learn it
		}
		for topic, list := range c.told {
			for _, p := range list {
				for _, q := range other.owns[topic] {
					if p == q && n.owners[assign.Place{Topic: topic, Partition: p}] != other.id {
						o.rt.Fatalf("G2: %s is told to use partition %d of %d, which %s uses", c.id, p, topic[0], other.id)
					}
				}
			}
		}
	}
}

// invariants of the state itself, after every step.
func (o *modernOwners) invariants(rt *rapid.T) {
	g := o.g.groups["g"]
	if g == nil || g.modern == nil {
		return
	}
	n := g.modern
	held := map[assign.Place]string{}
	users := map[string]int{}
	for id, x := range n.members {
		for _, h := range []holding{x.assigned, x.revoking} {
			for p := range h {
				if other, taken := held[p]; taken {
					rt.Fatalf("G2: %v is held by %s and %s", p, other, id)
				}
				held[p] = id
				if n.owners[p] != id {
					rt.Fatalf("%v is held by %s, noted for %q", p, id, n.owners[p])
				}
			}
		}
		l := n.lives[id]
		switch {
		case n.writing || len(n.queue) > 0: // its alarms are looked at afterwards
		case l == nil || l.session.index == 0:
			rt.Fatalf("member %s lives for ever", id)
		case (x.state == unrevoked) != (l.rebalance.index != 0):
			rt.Fatalf("member %s in state %d: its rebalance alarm is at %d", id, x.state, l.rebalance.index)
		}
		if x.said.Instance != nil && n.instances[*x.said.Instance] != x {
			rt.Fatalf("instance %s is not its member", *x.said.Instance)
		}
		if x.said.Pattern != nil {
			users[*x.said.Pattern]++
		}
		if x.epoch > n.targetEpoch || n.targetEpoch > n.epoch {
			rt.Fatalf("epochs: member %d, target %d, group %d", x.epoch, n.targetEpoch, n.epoch)
		}
	}
	if len(held) != len(n.owners) {
		rt.Fatalf("%d partitions are held, %d noted", len(held), len(n.owners))
	}
	for name, p := range n.patterns {
		if p.users != users[name] {
			rt.Fatalf("pattern %s has %d users, counted %d", name, users[name], p.users)
		}
	}
	if !n.writing && len(n.members) > 0 && n.epoch > n.targetEpoch && n.assign.index == 0 {
		rt.Fatalf("nobody will assign for epoch %d", n.epoch)
	}
}

// comesToRest lets all clients beat and obey, and looks at what they have.
func (o *modernOwners) comesToRest() {
	o.fail = 0
	o.flow()
	for _, c := range o.clients {
		o.lose(c)
	}
	live := []*modernClient{o.clients[0], o.clients[1], o.clients[4]}
	for range 80 {
		for _, c := range live {
			o.ask(c, false)
			o.obey(c)
		}
		o.pass(time.Second)
	}
	n := o.g.groups["g"].modern
	if n.stateName() != "Stable" {
		o.rt.Fatalf("the group is %s", n.stateName())
	}
	owners := map[assign.Place]bool{}
	for _, c := range live {
		for topic, list := range c.owns {
			for _, p := range list {
				if at := (assign.Place{Topic: topic, Partition: p}); owners[at] {
					o.rt.Fatalf("%v has two owners at rest", at)
				} else {
					owners[at] = true
				}
			}
		}
	}
	if want := o.known["orders"].Partitions + o.known["more"].Partitions; len(owners) != want {
		o.rt.Fatalf("%d of %d partitions are read", len(owners), want)
	}
}
