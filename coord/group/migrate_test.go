package group

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kmsg"

	"millrace/coord/group/embedded"
	"millrace/coord/group/record"
	"millrace/wire"
)

// twoRiders is a classic group of two cooperative members with three partitions each.
func twoRiders(s *story) (a, b *rider) {
	a, b = s.rider("a"), s.rider("b")
	s.settleDown([]*rider{a, b}, nil)
	return a, b
}

// shares fails the test if partitions are not read as wanted.
func (s *story) shares(what string, got ...string) {
	s.t.Helper()
	for i := 0; i+1 < len(got); i += 2 {
		if got[i] != got[i+1] {
			s.t.Fatalf("%s: %q, want %q (%v)", what, got[i], got[i+1], got)
		}
	}
}

// Claim: the first member of the next-generation protocol that joins a classic
// group converts it in place: the members stay with what they have, their
// commits stay, only what moves pauses; when it leaves, the group is classic
// again and nobody has lost anything. A restart at rest changes nothing.
// Method: two cooperative members, one that comes and goes.
func TestGroupsMigrateThereAndBack(t *testing.T) {
	for _, restarts := range []bool{false, true} {
		s := newStory(t, allowing(true, true))
		again := func() {
			if restarts {
				s.restart()
			}
		}
		a, b := twoRiders(s)
		s.shares("classic", a.has(), "0,2,4", b.has(), "1,3,5")
		s.want("commit", s.commitCode(a.commit(7, 5)), 0)
		generation := a.generation
		again()
		c := s.modern("c")
		is(t, "c joins", c, c.join(), 0, "")
		s.settleDown([]*rider{a, b}, []*modernClient{c})
		again()
		n := s.g.groups["g"].modern
		if n == nil || n.stateName() != "Stable" || len(n.members) != 3 || n.classics() != 2 || c.epoch <= generation {
			t.Fatalf("%+v", n)
		}
		if len(a.owns) != 2 || len(b.owns) != 2 || len(c.owns[[16]byte{1}]) != 2 {
			t.Fatalf("a has %s, b %s, c %s", a.has(), b.has(), c.has())
		}
		if len(a.stopped) != 1 || len(b.stopped) != 1 {
			t.Errorf("more than what moves has stopped: %v, %v", a.stopped, b.stopped)
		}
		if s.committed("g", 0) != 5 {
			t.Error("the commit is lost")
		}
		s.want("commit in the mixed group", s.commitCode(a.commit(7, 6)), 0)
		hadA, hadB := a.has(), b.has()
		if code := c.leave(); code != 0 {
			t.Fatalf("c leaves: %s", wire.ErrorName(code))
		}
		again()
		s.settleDown([]*rider{a, b}, nil)
		if g := s.g.groups["g"]; g.modern != nil || g.state != Stable || g.generation <= c.epoch || len(a.owns) != 3 || len(b.owns) != 3 {
			t.Fatalf("not classic again: %v generation %d; a has %s, b %s", g.state, g.generation, a.has(), b.has())
		}
		if !strings.Contains(a.has(), hadA[:1]) || !strings.Contains(b.has(), hadB[:1]) || len(a.stopped) != 1 || len(b.stopped) != 1 {
			t.Errorf("the way back has stopped what did not move: %v, %v", a.stopped, b.stopped)
		}
		if s.committed("g", 0) != 6 {
			t.Error("the second commit is lost")
		}
	}
}

// Claim: a conversion is one write: before it is durable a crash finds the group
// as it was, after it as it shall be, with all that the members said; one that
// fails leaves the members in the group as it was.
// Method: both ways, with held, lost and failing writes; the records compared.
func TestConversionsAreAtomic(t *testing.T) {
	s := newStory(t, allowing(true, true))
	a, b := twoRiders(s)
	c := s.modern("c")
	s.hold = true
	call := c.send(c.request(true))
	if len(s.held) != 1 || s.done[call] != nil {
		t.Fatalf("%d writes, answered %v", len(s.held), s.done[call])
	}
	records := s.held[0].Records
	if !bytes.Equal(records[0].Key, record.StateEnd("g").Key) || records[0].Value != nil {
		t.Errorf("the classic group is not ended first: %+v", records[0])
	}
	s.hold = false
	s.restart() // it is lost
	if g := s.g.groups["g"]; g.modern != nil || g.state != Stable || len(g.members) != 2 {
		t.Fatalf("after a crash before: %+v", g)
	}
	s.fail = wire.ErrNotEnoughReplicas
	c = s.modern("c")
	if code := c.join(); code != wire.ErrCoordinatorNotAvailable {
		t.Fatalf("c joins, and it is not written: %s", wire.ErrorName(code))
	}
	if g := s.g.groups["g"]; g.modern != nil || g.state != Stable || g.members[a.id].timer.index == 0 {
		t.Fatalf("after it failed: %+v", g)
	}
	s.fail = 0
	s.want("heartbeat", a.heartbeat(), 0)
	is(t, "c joins", c, c.join(), 0, "")
	before := s.g.groups["g"].modern
	s.restart()
	after := s.g.groups["g"].modern
	if len(after.members) != 3 || after.epoch != before.epoch || after.targetEpoch != before.targetEpoch {
		t.Fatalf("after a restart: %+v", after)
	}
	for id, x := range before.members {
		y := after.members[id]
		if diff := cmp.Diff(x.said, y.said); diff != "" || x.epoch != y.epoch || x.previous != y.previous || !sameHolding(x.assigned, y.assigned) {
			t.Errorf("member %s: %+v, was %+v\n%s", id, y, x, diff)
		}
	}
	if d := s.g.DescribeConsumer("g", s.known); len(d.Members) != 3 || d.Members[0].MemberType+d.Members[1].MemberType+d.Members[2].MemberType != 1 {
		t.Errorf("described: %+v", d)
	}
	s.settleDown([]*rider{a, b}, []*modernClient{c})
	s.fail = wire.ErrNotEnoughReplicas
	c.s.want("c leaves, and it is not written", c.leave(), wire.ErrCoordinatorNotAvailable)
	if n := s.g.groups["g"].modern; n == nil || len(n.members) != 3 {
		t.Fatal("the downgrade has happened")
	}
	s.fail = 0
	s.want("c leaves", c.leave(), 0)
	if g := s.g.groups["g"]; g.modern != nil || g.state != Preparing {
		t.Fatalf("not classic: %+v", g)
	}
	s.restart()
	if g := s.g.groups["g"]; g.modern != nil || g.state != Preparing || len(g.members) != 2 {
		t.Fatalf("after a restart nobody is asked to join: %v", g.state)
	}
}

// Claim: the policy says which way a group may go; without members each may.
// What is refused is said with Kafka's code and in words, and changes nothing.
// Method: each policy; a group that comes, mixes, and is left.
func TestMigrationPolicies(t *testing.T) {
	for _, up := range []bool{false, true} {
		for _, down := range []bool{false, true} {
			s := newStory(t, allowing(up, down))
			a, b := twoRiders(s)
			c := s.modern("c")
			if !up {
				if code := c.join(); code != wire.ErrGroupIDNotFound || !strings.Contains(c.why, "group.consumer.migration.policy") {
					t.Fatalf("c joins: %s %q", wire.ErrorName(code), c.why)
				}
				s.want("heartbeat", a.heartbeat(), 0)
				if s.want("a leaves", a.quit(), 0); b.quit() != 0 {
					t.Fatal("b does not leave")
				}
			}
			s.want("c joins", c.join(), 0)
			s.settleDown([]*rider{a, b}, []*modernClient{c})
			if !up && !down {
				if n := s.g.groups["g"].modern; len(n.members) != 1 || a.joined(a.join()) != wire.ErrInconsistentGroupProtocol {
					t.Error("a classic member has joined under a policy that lets no group change")
				}
				continue
			}
			if n := s.g.groups["g"].modern; n == nil || len(n.members) != 3 || len(a.owns) != 2 {
				t.Fatalf("up %v, down %v: no mixed group", up, down)
			}
			s.want("c leaves", c.leave(), 0)
			if g := s.g.groups["g"]; (g.modern == nil) != down {
				t.Errorf("up %v, down %v: modern is %v", up, down, g.modern)
			}
			s.settleDown([]*rider{a, b}, nil)
			if len(a.owns) != 3 || len(b.owns) != 3 {
				t.Errorf("up %v, down %v: a has %s, b %s", up, down, a.has(), b.has())
			}
			a.quit()
			b.quit()
			if d := s.client("g"); d.joined(d.join()) != -100 {
				t.Error("a group without members does not become classic")
			}
		}
	}
}

// Claim: groups that cannot be converted are refused with their reason, and live
// on: too large, of another protocol type, unreadable, with a custom assignor's
// data, with a partition given to two.
// Method: one of each.
func TestUpgradesThatCannotBe(t *testing.T) {
	for what, c := range map[string]struct {
		why   string
		limit int
		share func(id string) []byte
	}{
		"too large":    {"exceed the consumer group maximum size of 1", 1, func(string) []byte { return nil }},
		"unreadable":   {"malformed", 9, func(string) []byte { return []byte("?") }},
		"a custom one": {"custom assignor", 9, func(string) []byte { return []byte{0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 9} }},
		"given to two": {"to both", 9, func(string) []byte {
			return embedded.FormatAssignment(0, []embedded.Topic{{Name: "orders", Partitions: []int32{3}}})
		}},
		"all in order":   {"", 9, func(string) []byte { return nil }},
		"not consumers'": {"does not use the consumer embedded protocol", 9, nil},
	} {
		s := newStory(t, allowing(true, true), func(st *Settings) { st.Consumer.MaxSize = c.limit })
		a, b := s.client("g"), s.client("g")
		lead := func(members []kmsg.JoinGroupResponseMember) map[string][]byte {
			out := map[string][]byte{}
			for _, m := range members {
				out[m.MemberID] = c.share(m.MemberID)
			}
			return out
		}
		a.lead, b.lead = lead, lead
		joins := []Call{a.join(), b.join()}
		s.pass(7 * time.Second)
		a.joined(joins[0])
		b.joined(joins[1])
		if c.share == nil {
			a.lead, b.lead = nil, nil
			s.g.groups["g"].protocolType = "connect"
		}
		s.want("a syncs", a.synced(a.sync()), 0)
		s.want("b syncs", b.synced(b.sync()), 0)
		m := s.modern("c")
		code := m.join()
		if c.why == "" {
			s.want(what, code, 0)
			continue
		}
		if code != wire.ErrGroupIDNotFound || !strings.Contains(m.why, c.why) {
			t.Errorf("%s: %s %q", what, wire.ErrorName(code), m.why)
		}
		s.want(what, a.heartbeat(), 0)
		if g := s.g.groups["g"]; g.modern != nil || g.state != Stable {
			t.Errorf("%s: the group has changed", what)
		}
	}
}

// Claim: an upgrade in the middle of a rebalance lets nobody wait: who has
// joined or synced is told to join again. What members use of their last
// assignment nobody else gets before they give it up, and all end up with a share.
// Method: a join while one member is parked in JoinGroup; one while all have
// joined, one is parked in SyncGroup, and nobody has assigned.
func TestUpgradesInterruptARebalance(t *testing.T) {
	for _, state := range []State{Preparing, Completing} {
		s := newStory(t, allowing(true, true))
		a, b := twoRiders(s)
		d := s.rider("d")
		d.begin()
		d.poll() // it is given an id
		d.begin()
		if state == Completing {
			a.begin()
			b.begin()
			for _, r := range []*rider{d, b} {
				r.pollJoin()
			}
		}
		if got := s.g.groups["g"].state; got != state {
			t.Fatalf("the group is %v, want %v", got, state)
		}
		c := s.modern("c")
		is(t, "c joins", c, c.join(), 0, "")
		for _, r := range []*rider{a, b, d} {
			if r.joins != 0 && s.done[r.joins] == nil || r.syncs != 0 && s.done[r.syncs] == nil {
				t.Errorf("%s still waits", r.name)
			}
		}
		s.settleDown([]*rider{a, b, d}, []*modernClient{c})
		if len(a.owns)+len(b.owns)+len(d.owns)+len(c.owns[[16]byte{1}]) != 6 || len(d.owns) == 0 {
			t.Errorf("a has %s, b %s, d %s, c %s", a.has(), b.has(), d.has(), c.has())
		}
	}
}

// Claim: what a member was told to give up stays its own over a downgrade and an
// upgrade in quick succession, until it has given it up.
// Method: one that is told to, and takes its time.
func TestNothingIsGivenTwiceOnTheWayThereAndBack(t *testing.T) {
	s := newStory(t, allowing(true, true))
	a := s.rider("a")
	s.settleDown([]*rider{a}, nil)
	c, d := s.modern("c"), s.modern("d")
	is(t, "c joins", c, c.join(), 0, "")
	a.begin() // with all six: it has three to give up
	c.leave()
	is(t, "d joins", d, d.join(), 0, "")
	is(t, "d waits", d, d.beat(), 0, "")
	s.settleDown([]*rider{a}, []*modernClient{d})
	if len(a.owns) != 3 || len(d.owns[[16]byte{1}]) != 3 || len(a.stopped) != 3 {
		t.Errorf("a has %s and stopped %v, d has %s", a.has(), a.stopped, d.has())
	}
}

// Claim: a classic member that was removed and does not know it is told so when
// it joins with what it thinks it owns: others may have that by now. One that
// owns nothing is taken in, whatever id it brings.
// Method: a silent member that comes back by JoinGroup.
func TestRemovedMembersGiveUpAllFirst(t *testing.T) {
	s := newStory(t, allowing(true, true))
	a, b := twoRiders(s)
	c := s.modern("c")
	c.join()
	s.settleDown([]*rider{a, b}, []*modernClient{c})
	s.settleDown([]*rider{b}, []*modernClient{c}) // 12 s
	s.want("a joins with its partitions", a.joined(a.join()), wire.ErrUnknownMemberID)
	a.drop(everything)
	s.want("a joins with none", a.joined(a.join()), 0)
}

// Claim: static members of either protocol take the place of the other: they
// take over what it had, without a new epoch, and the old self is fenced; an old
// one of the classic protocol need not have left. The last to come back classic
// makes the group classic.
// Method: one instance goes there and back beside another member.
func TestStaticMembersChangeTheirProtocol(t *testing.T) {
	s := newStory(t, allowing(true, true))
	a, b := s.rider("a"), s.rider("b")
	a.instance = "x"
	s.settleDown([]*rider{a, b}, nil)
	had := a.has()
	twin := s.modern("twin").twin("x")
	is(t, "the twin joins", twin, twin.join(), 0, "1:"+had)
	s.want("the old self", a.heartbeat(), wire.ErrFencedInstanceID)
	s.settleDown([]*rider{b}, []*modernClient{twin})
	if n := s.g.groups["g"].modern; len(n.members) != 2 || twin.has() != "1:"+had || len(b.stopped) != 0 {
		t.Fatalf("the twin has %s, b has stopped %v", twin.has(), b.stopped)
	}
	s.restart()
	twin.epoch = epochAway
	s.want("the twin goes", twin.took(twin.send(twin.request(false))), 0)
	back := s.rider("back")
	back.instance = "x"
	for range 3 {
		back.poll()
	}
	if g := s.g.groups["g"]; g.modern != nil || len(g.members) != 2 {
		t.Fatalf("the group is not classic: %+v", g)
	}
	twin.epoch = 0
	s.settleDown([]*rider{back, b}, nil)
	if back.has() != had || len(b.stopped) != 0 {
		t.Errorf("it has %s, had %s; b has stopped %v", back.has(), had, b.stopped)
	}
	other := s.rider("other")
	other.instance, other.id = "x", "nobody"
	s.want("one with another id", other.joined(other.join()), wire.ErrFencedInstanceID)
}

// Claim: what LeaveGroup answers about members of a next-generation group is
// durable, also while another step is on its way to disk; so after a crash they
// are still gone.
// Method: a held step, two that leave behind it, a crash after the answer.
func TestLeavesAreAnsweredWhenDurable(t *testing.T) {
	s := newStory(t)
	a, b, c := s.modern("a"), s.modern("b").twin("x"), s.modern("c")
	a.join()
	b.join()
	s.hold = true
	c.send(c.request(true))
	req := kmsg.NewPtrLeaveGroupRequest()
	req.Group, req.Members = "g", []kmsg.LeaveGroupRequestMember{{MemberID: "a"}, {InstanceID: b.instance}, {MemberID: "z"}}
	call := s.call()
	s.g.Leave(s.now, call, Client{Version: 5}, req)
	s.settle()
	for step := range 2 { // that of c, and that of the two
		if len(s.held) != 1 || s.done[call] != nil {
			t.Fatalf("step %d: %d writes are held, answered %v", step, len(s.held), s.done[call])
		}
		s.release()
		s.settle()
	}
	r := s.done[call].(*kmsg.LeaveGroupResponse)
	if len(r.Members) != 3 || r.Members[0].ErrorCode != 0 || r.Members[1].ErrorCode != 0 || r.Members[2].ErrorCode != wire.ErrUnknownMemberID {
		t.Errorf("%+v", r)
	}
	s.hold = false
	s.restart()
	if n := s.g.groups["g"].modern; len(n.members) != 1 || n.members["c"] == nil {
		t.Errorf("after a crash: %+v", n.members)
	}
}

// Claim: a group that is deleted while its first member of the other protocol
// joins goes on as a new one.
// Method: a deletion that is held, a join behind it.
func TestJoinsBehindADeletion(t *testing.T) {
	s := newStory(t)
	a := s.rider("a")
	s.settleDown([]*rider{a}, nil)
	a.quit()
	s.hold = true
	deleted := s.call()
	s.g.DeleteGroup(deleted, "g")
	s.settle()
	c := s.modern("c")
	call := c.send(c.request(true))
	s.flow()
	is(t, "c joins", c, c.took(call), 0, "1:0,1,2,3,4,5")
	if r := s.done[deleted].(*kmsg.DeleteGroupsResponse); r.Groups[0].ErrorCode != 0 {
		t.Errorf("%+v", r)
	}
	s.restart()
	is(t, "c is there", c, c.beat(), 0, "1:0,1,2,3,4,5")
}

// Claim: a member whose record says that it is classic and not what it speaks is
// taken for one of the next generation, and goes when its session ends.
// Method: such a record, replayed; a member that joins and one that leaves.
func TestClassicMembersWithoutProtocols(t *testing.T) {
	s := newStory(t, allowing(true, true))
	c := s.modern("c")
	c.join()
	s.log = append(s.log, record.OfConsumer("g", "odd", &record.Consumer{Topics: []string{"orders"}, Classic: &record.Classic{}}))
	s.restart()
	s.want("a classic member joins", s.client("g").joined(s.client("g").join()), 0)
	c.leave()
	s.pass(46 * time.Second)
	if g := s.g.groups["g"]; g.modern != nil && g.modern.members["odd"] != nil {
		t.Errorf("it lives on: %+v", g.modern.members)
	}
}

// Claim: an id that was handed out and not used yet keeps no next-generation
// member out of a group without members, and is good there.
// Method: a classic member between its two JoinGroups.
func TestHandedOutIDsDoNotKeepAGroupClassic(t *testing.T) {
	s := newStory(t, allowing(true, true))
	a, c := s.rider("a"), s.modern("c")
	a.begin()
	a.poll()
	is(t, "c joins", c, c.join(), 0, "1:0,1,2,3,4,5")
	s.settleDown([]*rider{a}, []*modernClient{c})
	if len(a.owns) != 3 || len(c.owns[[16]byte{1}]) != 3 {
		t.Errorf("a has %s, c %s", a.has(), c.has())
	}
}
