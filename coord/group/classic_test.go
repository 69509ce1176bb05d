package group

import (
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"millrace/wire"
)

// Claim: members that come together get one generation after the initial delay,
// the first leads, and each gets its share; who comes later causes one more.
// Method: a script.
func TestMembersShareAGroup(t *testing.T) {
	s := newStory(t)
	a, b, c := s.client("g"), s.client("g"), s.client("g")
	ja := a.join()
	s.pass(2 * time.Second)
	jb := b.join() // puts the end off by another 3 s
	s.pass(2 * time.Second)
	s.want("join before the delay is over", a.joined(ja), -100)
	s.pass(3 * time.Second)
	s.assign(map[*client]Call{a: ja, b: jb})
	if a.generation != 1 || a.leader != a.id || len(a.members) != 2 || len(b.members) != 0 || s.state("g") != "Stable" {
		t.Fatalf("a %+v, b %+v, %s", a, b, s.state("g"))
	}

	jc := c.join()
	s.want("heartbeat during a rebalance", a.heartbeat(), wire.ErrRebalanceInProgress)
	s.want("sync during a rebalance", a.synced(a.sync()), wire.ErrRebalanceInProgress)
	ja, jb = a.join(), b.join()
	s.assign(map[*client]Call{a: ja, b: jb, c: jc})
	if c.generation != 2 || c.leader != a.id {
		t.Fatalf("c %+v", c)
	}
	c.generation = 1
	s.want("heartbeat of an old generation", c.heartbeat(), wire.ErrIllegalGeneration)
	s.want("commit of an old generation", s.commitCode(c.commit(8, 5)), wire.ErrIllegalGeneration)
	s.want("sync of an old generation", c.synced(c.sync()), wire.ErrIllegalGeneration)
}

// Claim: without an id, JoinGroup from version 4 on hands one out and makes no
// member; the id is good for a session time-out.
func TestMemberIDIsRequired(t *testing.T) {
	s := newStory(t)
	a := s.client("g")
	a.version = 4
	s.want("join without an id", a.joined(a.join()), wire.ErrMemberIDRequired)
	if a.id != "app-1" || s.state("g") != "Empty" {
		t.Fatalf("id %q, %s", a.id, s.state("g"))
	}
	s.pass(11 * time.Second)
	s.want("join too late", a.joined(a.join()), wire.ErrUnknownMemberID)
	if s.g.Len() != 0 {
		t.Error("a group is left over")
	}
	a.id = ""
	s.gather(a)
	s.want("heartbeat", a.heartbeat(), 0)
}

// Claim: a silent member is removed when its session ends, the others rebalance;
// a heartbeat puts that off, and so do commits and waiting in JoinGroup.
func TestSilentMembersAreRemoved(t *testing.T) {
	s := newStory(t)
	a, b := s.client("g"), s.client("g")
	s.gather(a, b)
	for range 5 {
		s.pass(8 * time.Second)
		s.want("heartbeat", a.heartbeat(), 0)
		s.want("commit", s.commitCode(b.commit(8, 1)), 0)
	}
	s.pass(8 * time.Second)
	a.heartbeat()
	s.pass(3 * time.Second) // b is gone
	s.want("heartbeat", a.heartbeat(), wire.ErrRebalanceInProgress)
	s.assign(map[*client]Call{a: a.join()})
	if a.generation != 2 || len(a.members) != 1 {
		t.Fatalf("%+v", a)
	}
	s.want("heartbeat of the removed", b.heartbeat(), wire.ErrUnknownMemberID)
	s.pass(11 * time.Second)
	if s.state("g") != "Empty" || s.g.groups["g"].generation != 3 {
		t.Errorf("%v", s.states())
	}
}

// Claim: a member that does not come back for a rebalance is removed after its
// own rebalance time-out, not the longest of the group.
func TestLateMembersAreRemoved(t *testing.T) {
	s := newStory(t)
	a, b, c := s.client("g"), s.client("g"), s.client("g")
	a.session, b.session = time.Minute, time.Minute
	a.rebalance, b.rebalance = 10*time.Second, 5*time.Minute
	s.gather(a, b)
	jc, jb := c.join(), b.join()
	s.pass(9 * time.Second)
	s.want("join while a may come", b.joined(jb), -100)
	s.want("heartbeat of the late", a.heartbeat(), wire.ErrRebalanceInProgress)
	s.pass(2 * time.Second)
	s.assign(map[*client]Call{b: jb, c: jc})
	if b.leader != b.id {
		t.Error("nobody leads")
	}
	s.want("heartbeat of the removed", a.heartbeat(), wire.ErrUnknownMemberID)
}

// F059: a member that heartbeats and never sends SyncGroup is removed, and the
// others go on.
// Claim: one half-dead process does not stop a group.
// Method: A joins with a rebalance time-out of 10 s and only heartbeats; B, with
// one of 5 min, joins normally and must be alone and Stable within 15 s.
func TestField_F059_StuckRebalance(t *testing.T) {
	t.Run("alone at first", func(t *testing.T) {
		s := newStory(t)
		a, b := s.client("g"), s.client("g")
		a.rebalance, b.rebalance = 10*time.Second, 5*time.Minute
		ja := a.join()
		s.pass(4 * time.Second)
		s.want("A joins", a.joined(ja), 0)
		stuckRebalance(s, a, b, b.join())
	})
	t.Run("together", func(t *testing.T) {
		s := newStory(t)
		a, b := s.client("g"), s.client("g")
		a.rebalance, b.rebalance = 10*time.Second, 5*time.Minute
		ja, jb := a.join(), b.join()
		s.pass(7 * time.Second)
		s.want("A joins", a.joined(ja), 0)
		s.want("B joins", b.joined(jb), 0)
		stuckRebalance(s, a, b, b.sync())
	})
}

// stuckRebalance beats A's heart each second while B does what a client does.
func stuckRebalance(s *story, a, b *client, waiting Call) {
	s.t.Helper()
	for second := 0; ; second++ {
		if second > 15 {
			s.t.Fatalf("the group hangs: %v", s.states())
		}
		s.pass(time.Second)
		a.heartbeat()
		switch r := s.done[waiting].(type) {
		case *kmsg.JoinGroupResponse:
			s.want("B joins", b.joined(waiting), 0)
			waiting = b.sync()
		case *kmsg.SyncGroupResponse:
			if r.ErrorCode == wire.ErrRebalanceInProgress {
				waiting = b.join()
				continue
			}
			s.want("B syncs", b.synced(waiting), 0)
			if len(b.members) != 1 {
				continue // still with A
			}
			s.want("A's next heartbeat", a.heartbeat(), wire.ErrUnknownMemberID)
			s.want("B's next heartbeat", b.heartbeat(), 0)
			return
		}
		if b.id != "" {
			b.heartbeat()
		}
	}
}

// Claim: the protocol is one that all members speak, by vote; a member that
// shares none is refused, and so is one of another type or none.
func TestProtocolIsChosenByVote(t *testing.T) {
	s := newStory(t)
	a, b, c := s.client("g"), s.client("g"), s.client("g")
	a.protocols = []string{"sticky", "range", "roundrobin"}
	b.protocols = []string{"range", "roundrobin"}
	c.protocols = []string{"roundrobin", "range"}
	s.gather(a, b, c)
	if got := s.g.groups["g"].protocol; got != "range" {
		t.Errorf("chose %q", got)
	}
	d := s.client("g")
	d.protocols = []string{"sticky"}
	s.want("join with a protocol that not all speak", d.joined(d.join()), wire.ErrInconsistentGroupProtocol)
	d.protocols = nil
	s.want("join with no protocol", d.joined(d.join()), wire.ErrInconsistentGroupProtocol)
	d.group = "fresh"
	s.want("join with no protocol", d.joined(d.join()), wire.ErrInconsistentGroupProtocol)
	if s.g.groups["fresh"] != nil {
		t.Error("a refused join leaves a group")
	}
	req := kmsg.NewPtrJoinGroupRequest()
	req.Group, req.SessionTimeoutMillis, req.ProtocolType = "g", 10000, "connect"
	req.Protocols = []kmsg.JoinGroupRequestProtocol{{Name: "range"}}
	call := s.call()
	s.g.Join(s.now, call, Client{Version: 3}, req)
	s.settle()
	s.want("join with another type", d.joined(call), wire.ErrInconsistentGroupProtocol)
}

// Claim: group.max.size bounds members in every state, and session time-outs
// have bounds.
func TestGroupLimits(t *testing.T) {
	s := newStory(t, func(c *Settings) { c.MaxSize = 2 })
	a, b, c := s.client("g"), s.client("g"), s.client("g")
	s.gather(a, b)
	s.want("a third member", c.joined(c.join()), wire.ErrGroupMaxSizeReached)
	s.want("heartbeat of a member", a.heartbeat(), 0)
	s.want("leave", b.leave(), 0)
	jc := c.join() // a has not joined yet, so there is room
	ja := a.join()
	s.assign(map[*client]Call{a: ja, c: jc})

	d := s.client("other")
	d.session = 5 * time.Second
	s.want("session too short", d.joined(d.join()), wire.ErrInvalidSessionTimeout)
	d.session = time.Hour
	s.want("session too long", d.joined(d.join()), wire.ErrInvalidSessionTimeout)
	d.group = ""
	s.want("no group", d.joined(d.join()), wire.ErrInvalidGroupID)
}

// Claim: a follower that repeats JoinGroup gets the current generation; the
// leader's, or one with other metadata, starts a rebalance.
func TestRepeatedJoins(t *testing.T) {
	s := newStory(t)
	a, b := s.client("g"), s.client("g")
	s.gather(a, b)
	s.want("follower", b.joined(b.join()), 0)
	if b.generation != 1 || s.state("g") != "Stable" {
		t.Fatalf("%v", s.states())
	}
	jb := func() Call { b.topics = []string{"orders", "more"}; return b.join() }()
	s.want("follower with news", b.joined(jb), -100)
	s.assign(map[*client]Call{a: a.join(), b: jb})
	ja := a.join()
	s.want("leader", a.joined(ja), -100)
	again := a.join() // over another connection
	s.want("leader's first", a.joined(ja), wire.ErrRebalanceInProgress)
	s.assign(map[*client]Call{a: again, b: b.join()})
}

// Claim: leaving starts a rebalance at once; a batch answers each member for
// itself; what the one who left waits for is answered.
func TestLeaving(t *testing.T) {
	s := newStory(t)
	a, b, c := s.client("g"), s.client("g"), s.static("g", "i")
	s.gather(a, b, c)
	s.want("leave", b.leave(), 0)
	s.want("heartbeat", a.heartbeat(), wire.ErrRebalanceInProgress)
	s.want("leave again", b.leave(), wire.ErrUnknownMemberID)
	ja := a.join()
	req := kmsg.NewPtrLeaveGroupRequest()
	req.Group = "g"
	instance, other := "i", "j"
	req.Members = []kmsg.LeaveGroupRequestMember{{MemberID: a.id}, {InstanceID: &instance}, {InstanceID: &other}, {MemberID: "nobody"}, {MemberID: "nobody", InstanceID: &instance}}
	call := s.call()
	s.g.Leave(s.now, call, Client{Version: 5}, req)
	s.settle()
	r := s.done[call].(*kmsg.LeaveGroupResponse)
	want := []int16{0, 0, wire.ErrUnknownMemberID, wire.ErrUnknownMemberID, wire.ErrUnknownMemberID}
	for i := range want {
		s.want("leave in a batch", r.Members[i].ErrorCode, want[i])
	}
	s.want("join of one who left", a.joined(ja), wire.ErrUnknownMemberID)
	if s.state("g") != "Empty" {
		t.Errorf("%v", s.states())
	}
}

// Claim: a new member whose client goes away during the rebalance is forgotten
// at once and holds nobody up.
func TestAbandonedJoins(t *testing.T) {
	s := newStory(t)
	a, b := s.client("g"), s.client("g")
	s.gather(a)
	jb := b.join()
	s.g.Abandon(s.now, "g", jb)
	s.settle()
	s.assign(map[*client]Call{a: a.join()})
	if len(a.members) != 1 {
		t.Errorf("members %v", a.members)
	}
}

// Claim: an assignment that cannot be written is given to nobody: all hear why,
// and start over.
func TestAssignmentThatIsNotWritten(t *testing.T) {
	s := newStory(t)
	a, b := s.client("g"), s.client("g")
	ja, jb := a.join(), b.join()
	s.pass(7 * time.Second)
	a.joined(ja)
	b.joined(jb)
	s.hold, s.fail = true, wire.ErrNotEnoughReplicas
	sb, sa := b.sync(), a.sync()
	s.want("sync before the write", a.synced(sa), -100)
	s.flow()
	s.want("leader", a.synced(sa), wire.ErrCoordinatorNotAvailable)
	s.want("follower", b.synced(sb), wire.ErrCoordinatorNotAvailable)
	s.fail = 0
	s.assign(map[*client]Call{a: a.join(), b: b.join()})
}
