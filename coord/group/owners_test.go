package group

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
	"pgregory.net/rapid"

	"millrace/wire"
)

// owners plays random clients against one group and checks G1 at every answer.
type owners struct {
	*story
	rt      *rapid.T
	clients []*client
	joins   map[*client]Call
	syncs   map[*client]Call
	asked   map[Call]int32           // SyncGroup → its generation
	by      map[Call]*client         // who asked
	owner   map[int32]map[int]string // generation, partition → instance or member
}

// Claim (G1): a partition has at most one owner per generation, and nobody is
// answered with a generation that is not the group's; whatever clients do, in
// whatever order writes end or fail, over crashes.
// Method: random clients, some of them twins of one static member, random time,
// held and failing writes, restarts; every answer is looked at as it is given.
func TestOwnersAreUnique(t *testing.T) {
	for range 20 { // a wrong answer needs a rare order of steps
		rapid.Check(t, func(rt *rapid.T) { playOwners(t, rt) })
	}
}

func playOwners(t *testing.T, rt *rapid.T) {
	o := &owners{story: newStory(t), rt: rt, joins: map[*client]Call{}, syncs: map[*client]Call{}, asked: map[Call]int32{}, by: map[Call]*client{}, owner: map[int32]map[int]string{}}
	o.answered = o.check
	for i := range 4 {
		c := o.client("g")
		switch i {
		case 1, 2:
			c = o.static("g", "twin")
		case 3:
			c.version = 4
		}
		o.clients = append(o.clients, c)
	}
	rt.Repeat(map[string]func(*rapid.T){
		"join": func(rt *rapid.T) { o.doJoin(rt, o.pick(rt)) },
		"sync": func(rt *rapid.T) { o.doSync(rt, o.pick(rt)) },
		"all join": func(rt *rapid.T) {
			for _, c := range o.clients {
				o.doJoin(rt, c)
			}
		},
		"all sync": func(rt *rapid.T) {
			for _, c := range o.clients {
				o.doSync(rt, c)
			}
		},
		"heartbeat": func(rt *rapid.T) { o.pick(rt).heartbeat() },
		"commit":    func(rt *rapid.T) { o.pick(rt).commit(9, 1) },
		"leave":     func(rt *rapid.T) { o.pick(rt).leave() },
		"forget":    func(rt *rapid.T) { c := o.pick(rt); c.id = "" },
		"time":      func(rt *rapid.T) { o.pass(time.Duration(rapid.IntRange(1, 12_000).Draw(rt, "ms")) * time.Millisecond) },
		"hold":      func(*rapid.T) { o.hold = true },
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
		"restart": func(*rapid.T) { o.hold = false; o.restart() },
		"":        o.invariants,
	})
}

func (o *owners) pick(rt *rapid.T) *client { return rapid.SampledFrom(o.clients).Draw(rt, "client") }

func (o *owners) doJoin(rt *rapid.T, c *client) {
	c.topics = []string{rapid.SampledFrom([]string{"orders", "more"}).Draw(rt, "topic")}
	o.by[o.next+1] = c
	c.join()
}

// doSync sends SyncGroup with a random but whole division of six partitions.
func (o *owners) doSync(rt *rapid.T, c *client) {
	req := kmsg.NewPtrSyncGroupRequest()
	req.Group, req.MemberID, req.InstanceID, req.Generation = "g", c.id, c.instanceID(), c.generation
	if c.leader == c.id && !c.skip && len(c.members) > 0 {
		shares := make([][]byte, len(c.members))
		for p := range byte(6) {
			i := rapid.IntRange(0, len(shares)-1).Draw(rt, "owner")
			shares[i] = append(shares[i], p)
		}
		for i, m := range c.members {
			req.GroupAssignment = append(req.GroupAssignment, kmsg.SyncGroupRequestGroupAssignment{MemberID: m.MemberID, MemberAssignment: shares[i]})
		}
	}
	call := o.call()
	o.asked[call], o.by[call] = c.generation, c
	o.g.Sync(o.now, call, Client{Version: 5}, req)
	clear(req.GroupAssignment) // the request is the caller's again
	o.settle()
}

// check looks at an answer as it is given.
func (o *owners) check(call Call, r kmsg.Response) {
	c := o.by[call]
	switch r := r.(type) {
	case *kmsg.JoinGroupResponse:
		if r.ErrorCode == 0 {
			if now := o.g.groups["g"].generation; r.Generation != now {
				o.rt.Fatalf("JoinGroup tells generation %d, the group is in %d", r.Generation, now)
			}
			if o.g.groups["g"].members[r.MemberID] == nil {
				o.rt.Fatalf("JoinGroup tells %q that it is a member", r.MemberID)
			}
		}
		c.joined(call)
	case *kmsg.SyncGroupResponse:
		if r.ErrorCode != 0 {
			return
		}
		g := o.g.groups["g"]
		if o.asked[call] != g.generation || g.state != Stable {
			o.rt.Fatalf("SyncGroup of generation %d is answered in %d, %v", o.asked[call], g.generation, g.state)
		}
		o.own(g.generation, c, r.MemberAssignment)
	}
}

// own notes what a member was given.
func (o *owners) own(generation int32, c *client, share []byte) {
	name := c.instance
	if name == "" {
		name = c.id
	}
	if o.owner[generation] == nil {
		o.owner[generation] = map[int]string{}
	}
	for _, p := range share {
		if other := o.owner[generation][int(p)]; other != "" && other != name {
			o.rt.Fatalf("G1: partition %d has owners %q and %q in generation %d", p, other, name, generation)
		}
		o.owner[generation][int(p)] = name
	}
}

// invariants of the state itself, after every step.
func (o *owners) invariants(rt *rapid.T) {
	for id, g := range o.g.groups {
		joining, unsynced, votes := 0, 0, map[string]int{}
		for _, x := range g.members {
			if x.join.call != 0 {
				joining++
			}
			if !x.synced {
				unsynced++
			}
			if x.timer.index == 0 && x.join.call == 0 && x.sync.call == 0 {
				rt.Fatalf("%s: member %s lives for ever", id, x.id)
			}
			for _, p := range x.protocols {
				votes[p.name]++
			}
			if x.instance != nil && g.instances[*x.instance] != x {
				rt.Fatalf("%s: instance %s is not its member", id, *x.instance)
			}
		}
		switch {
		case joining != g.joining, g.state != Preparing && joining > 0:
			rt.Fatalf("%s: %d parked in %v, counted %d", id, joining, g.state, g.joining)
		case (g.state == Stable || g.state == Completing) && unsynced != g.unsynced:
			rt.Fatalf("%s: %d have not synced, counted %d", id, unsynced, g.unsynced)
		case (g.state == Empty) != (len(g.members) == 0) && g.state != Preparing:
			rt.Fatalf("%s: %d members in %v", id, len(g.members), g.state)
		case fmt.Sprint(votes) != fmt.Sprint(g.votes):
			rt.Fatalf("%s: votes are %v, counted %v", id, votes, g.votes)
		case len(g.members) > 0 && g.members[g.leader] == nil:
			rt.Fatalf("%s: leader %q is no member", id, g.leader)
		case g.state == Preparing && g.rebalance.timer.index == 0:
			rt.Fatalf("%s: the rebalance has no end", id)
		case (g.state == Completing || g.state == Stable) && unsynced > 0 && g.syncing.index == 0:
			rt.Fatalf("%s: the wait for SyncGroup has no end", id)
		}
	}
}

// Claim: alarms go off in order, never early, and once; putting one off does
// not move it in the heap.
// Method: random alarms against a plain list.
func TestAlarms(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var ts timers
		var fired []int
		all := make([]timer, 8)
		due := make([]time.Time, len(all))
		now := start
		for i := range all {
			all[i].fire = func(now time.Time) {
				if now.Before(due[i]) || due[i].IsZero() {
					rt.Fatalf("alarm %d goes off at %v, is due at %v", i, now, due[i])
				}
				fired = append(fired, i)
				due[i] = time.Time{}
			}
		}
		rt.Repeat(map[string]func(*rapid.T){
			"set": func(rt *rapid.T) {
				i := rapid.IntRange(0, len(all)-1).Draw(rt, "alarm")
				due[i] = now.Add(time.Duration(rapid.IntRange(0, 100).Draw(rt, "in")) * time.Second)
				ts.set(&all[i], due[i])
			},
			"stop": func(rt *rapid.T) {
				i := rapid.IntRange(0, len(all)-1).Draw(rt, "alarm")
				due[i] = time.Time{}
				ts.stop(&all[i])
			},
			"advance": func(rt *rapid.T) {
				now = now.Add(time.Duration(rapid.IntRange(0, 60).Draw(rt, "by")) * time.Second)
				ts.advance(now)
				for i := range due {
					if !due[i].IsZero() && !due[i].After(now) {
						rt.Fatalf("alarm %d is due at %v, not gone off at %v", i, due[i], now)
					}
				}
				if at, ok := ts.due(); ok && !at.After(now) {
					rt.Fatal("the next alarm is in the past")
				}
			},
		})
		slices.Sort(fired)
	})
}
