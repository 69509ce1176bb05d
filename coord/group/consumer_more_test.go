package group

import (
	"fmt"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"millrace/wire"
)

// Claim: a heartbeat is answered when what it changes is durable; while that is
// under way others wait, and go into one write together; if it fails, nothing
// has happened and the client may try again.
// Method: held writes, ended well or not.
func TestHeartbeatsWaitForTheLog(t *testing.T) {
	s := newStory(t)
	s.hold = true
	a, b, c := s.modern("a"), s.modern("b"), s.modern("c")
	first := a.send(a.request(true))
	second, third := b.send(b.request(true)), c.send(c.request(true))
	if a.took(first) != -100 || b.took(second) != -100 || len(s.held) != 1 {
		t.Fatalf("answered before the write has ended, or %d writes", len(s.held))
	}
	s.fail = wire.ErrNotEnoughReplicas
	s.release()
	s.settle()
	if code := a.took(first); code != wire.ErrCoordinatorNotAvailable || len(s.held) != 1 {
		t.Fatalf("a: %s, %d writes", wire.ErrorName(code), len(s.held))
	}
	if n := s.g.groups["g"].modern; n.members["a"] != nil || n.epoch != 2 {
		t.Errorf("a is in, or the epoch is %d", n.epoch)
	}
	s.fail = 0
	s.flow()
	if b.took(second) != 0 || c.took(third) != 0 {
		t.Errorf("b, c: %s %s", b.why, c.why)
	}
	s.fail = wire.ErrNotEnoughReplicas
	lone := s.modern("lone")
	lone.group = "other"
	if code := lone.join(); code != wire.ErrCoordinatorNotAvailable || s.g.groups["other"] != nil {
		t.Errorf("a group of which nothing was written is there: %s", wire.ErrorName(code))
	}
}

// Claim: commits of a group expire by the time of the commit, and only for
// topics that nobody reads; OffsetDelete refuses those that somebody reads; an
// empty group without commits goes.
// Method: two topics, one of them read; time.
func TestCommitsOfConsumersExpire(t *testing.T) {
	s := newStory(t)
	s.known["more"] = Topic{Name: "more", ID: [16]byte{2}, Partitions: 2}
	a := s.modern("a", "more", "orders")
	a.join()
	a.commit(9, 1, 0)
	remove := func() int16 {
		req := kmsg.NewPtrOffsetDeleteRequest()
		req.Group = "g"
		req.Topics = []kmsg.OffsetDeleteRequestTopic{{Topic: "orders", Partitions: []kmsg.OffsetDeleteRequestTopicPartition{{Partition: 0}}}}
		call := s.call()
		s.g.DeleteOffsets(call, req)
		s.settle()
		return s.done[call].(*kmsg.OffsetDeleteResponse).Topics[0].Partitions[0].ErrorCode
	}
	if code := remove(); code != wire.ErrGroupSubscribedToTopic {
		t.Errorf("OffsetDelete: %s", wire.ErrorName(code))
	}
	expire := func() {
		s.now = s.now.Add(8 * 24 * time.Hour) // nobody's session ends meanwhile
		s.g.Expire(s.now)
		s.settle()
	}
	expire()
	if s.g.groups["g"].count() != 1 {
		t.Error("a commit for a topic that is read has expired")
	}
	a.topics = []string{"more"}
	a.took(a.send(a.request(true)))
	expire()
	if s.g.groups["g"].count() != 0 {
		t.Error("a commit for a topic that is not read is still there")
	}
	a.leave()
	expire()
	if len(s.g.groups) != 0 {
		t.Error("the empty group stays")
	}
	if s.restart(); len(s.g.groups) != 0 {
		t.Error("the group is back after a restart")
	}
}

// Claim: an administrator removes members by LeaveGroup, static ones by their
// instance too, if both fit.
// Method: LeaveGroup by instance, by member, by what is wrong.
func TestAdministratorsRemoveConsumers(t *testing.T) {
	s := newStory(t)
	a, b, c := s.modern("a").twin("x"), s.modern("b"), s.modern("c")
	a.join()
	b.join()
	c.join()
	x, y := "x", "y"
	for _, c := range []struct {
		leaving kmsg.LeaveGroupRequestMember
		want    int16
	}{
		{kmsg.LeaveGroupRequestMember{MemberID: "c"}, wire.ErrNone},
		{kmsg.LeaveGroupRequestMember{MemberID: "c"}, wire.ErrUnknownMemberID},
		{kmsg.LeaveGroupRequestMember{MemberID: "b", InstanceID: &x}, wire.ErrFencedInstanceID},
		{kmsg.LeaveGroupRequestMember{InstanceID: &y}, wire.ErrUnknownMemberID},
		{kmsg.LeaveGroupRequestMember{InstanceID: &x}, wire.ErrNone},
	} {
		req := kmsg.NewPtrLeaveGroupRequest()
		req.Group, req.Members = "g", []kmsg.LeaveGroupRequestMember{c.leaving}
		call := s.call()
		s.g.Leave(s.now, call, Client{Version: 5}, req)
		s.settle()
		if code := s.done[call].(*kmsg.LeaveGroupResponse).Members[0].ErrorCode; code != c.want {
			t.Errorf("%+v: %s", c.leaving, wire.ErrorName(code))
		}
	}
	is(t, "b has all", b, b.beat(), 0, "1:0,1,2,3,4,5")
}

// BenchmarkConsumersJoin is a group that is joined by all at once, until each
// has its partitions: writes are free, the time is the state machine's.
func BenchmarkConsumersJoin(b *testing.B) {
	for _, members := range []int{500, 5000} {
		b.Run(fmt.Sprintf("members=%d", members), func(b *testing.B) {
			for b.Loop() {
				s := newStory(b, func(st *Settings) { st.Consumer.Interval = func() time.Duration { return time.Second } })
				s.known["orders"] = Topic{Name: "orders", ID: [16]byte{1}, Partitions: members}
				clients := make([]*modernClient, members)
				for i := range clients {
					clients[i] = s.modern(fmt.Sprint("m", i))
					clients[i].join()
				}
				s.pass(time.Second)
				for range 2 {
					for _, c := range clients {
						c.obey()
						if c.beat() != 0 {
							b.Fatal(c.why)
						}
					}
				}
				if state := s.g.groups["g"].modern.stateName(); state != "Stable" {
					b.Fatal(state)
				}
			}
		})
	}
}
