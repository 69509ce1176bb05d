package group

import (
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"millrace/wire"
)

// Claim: a classic member of a mixed group that falls silent, does not join when
// told to, joins and does not sync, or does not give up in time, loses its
// place; one that does all that keeps it. In the end the group comes to rest.
// Method: each way to be late, on a fake clock.
func TestLateClassicMembersLoseTheirPlace(t *testing.T) {
	for what, act := range map[string]func(s *story, a *rider){
		"silent": func(*story, *rider) {},
		"does not join": func(s *story, a *rider) {
			s.want("a is told", a.heartbeat(), wire.ErrRebalanceInProgress)
		},
		"does not sync": func(s *story, a *rider) {
			if s.done[a.join()].(*kmsg.JoinGroupResponse).ErrorCode != 0 {
				s.t.Fatal("a cannot join")
			}
		},
		"keeps all": func(s *story, a *rider) {
			s.want("a joins", a.joined(a.join()), 0)
			s.want("a syncs", a.synced(a.sync()), 0)
		},
	} {
		s := newStory(t, allowing(true, true))
		a, b := s.rider("a"), s.rider("b")
		a.session, a.rebalance = 10*time.Second, 20*time.Second
		s.settleDown([]*rider{a, b}, nil)
		c := s.modern("c")
		c.join()
		act(s, a)
		for i := range 30 {
			if what != "silent" && i < 19 {
				if code := a.heartbeat(); code == wire.ErrUnknownMemberID {
					t.Fatalf("%s: it is gone after %d s", what, i)
				}
			}
			s.settleDownFor(time.Second, b, c)
		}
		s.want(what, a.heartbeat(), wire.ErrUnknownMemberID)
		if len(b.owns) != 3 || len(c.owns[[16]byte{1}]) != 3 {
			t.Errorf("%s: b has %s, c %s", what, b.has(), c.has())
		}
	}
}

// settleDownFor lets two clients go on for a while.
func (s *story) settleDownFor(d time.Duration, r *rider, c *modernClient) {
	for range 4 {
		r.poll()
	}
	c.beat()
	c.obey()
	s.pass(d)
}

// Claim: classic members of a mixed group are held to their generation, their
// protocol and their names, with the codes of their protocol.
// Method: wrong requests, one by one.
func TestClassicMembersAreChecked(t *testing.T) {
	s := newStory(t, allowing(true, true))
	a, b := twoRiders(s)
	c := s.modern("c")
	c.join()
	s.settleDown([]*rider{a, b}, []*modernClient{c})
	right := a.generation
	for _, generation := range []int32{right - 1, right + 1, -1} {
		a.generation = generation
		s.want("heartbeat", a.heartbeat(), wire.ErrIllegalGeneration)
		s.want("sync", a.synced(a.sync()), wire.ErrIllegalGeneration)
		s.want("commit", s.commitCode(a.commit(7, 1)), wire.ErrIllegalGeneration)
	}
	a.generation = right
	s.want("commit of a version of old", s.commitCode(a.commit(2, 1)), 0)
	stranger := s.client("g")
	stranger.id, stranger.generation = c.id, c.epoch
	s.want("heartbeat of one that is not classic", stranger.heartbeat(), wire.ErrUnknownMemberID)
	s.want("sync of one that is not classic", stranger.synced(stranger.sync()), wire.ErrUnknownMemberID)
	stranger.id = ""
	s.want("no protocol in common", stranger.joined(stranger.join()), wire.ErrInconsistentGroupProtocol)
	stranger.protocols, stranger.tell = []string{"cooperative-sticky"}, func() []byte { return []byte{0} }
	s.want("unreadable", stranger.joined(stranger.join()), wire.ErrInconsistentGroupProtocol)
	stranger.instance, stranger.id = "nobody", "n"
	s.want("an instance that is not known", stranger.joined(stranger.join()), wire.ErrUnknownMemberID)
	fetch := func(epoch int32) int16 {
		asked := kmsg.NewOffsetFetchRequestGroup()
		asked.Group, asked.MemberID, asked.MemberEpoch = "g", &a.id, epoch
		return s.g.Fetch(9, &asked, s.known).ErrorCode
	}
	s.want("fetch", fetch(right), 0)
	s.want("fetch of another epoch", fetch(right-1), wire.ErrIllegalGeneration)
	if d := s.g.Describe(6, "g"); d.ErrorCode != wire.ErrGroupIDNotFound || d.ErrorMessage == nil {
		t.Errorf("DescribeGroups: %+v", d)
	}
}

// Claim: without a leader somebody still looks for new partitions, also when all
// members are classic and the policy keeps the group as it is.
// Method: a topic grows under classic members of a next-generation group.
func TestTopicsGrowUnderMixedGroups(t *testing.T) {
	s := newStory(t, allowing(true, false))
	a, b := twoRiders(s)
	c := s.modern("c")
	c.join()
	s.settleDown([]*rider{a, b}, []*modernClient{c})
	c.leave()
	s.settleDown([]*rider{a, b}, nil)
	s.known["orders"] = Topic{Name: "orders", ID: [16]byte{1}, Partitions: 8}
	s.g.TopicsChanged()
	s.settleDown([]*rider{a, b}, nil)
	if len(a.owns) != 4 || len(b.owns) != 4 {
		t.Errorf("a has %s, b %s", a.has(), b.has())
	}
}
