package group

import (
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"millrace/wire"
)

// consumerLeaves serves a member that leaves, or, if it is static, says that it
// will be back within its session.
func (m *Groups) consumerLeaves(now time.Time, s *step, b *beat) kmsg.Response {
	n := s.g.modern
	x := n.members[b.member]
	if b.instance != nil {
		switch holder := n.instances[*b.instance]; {
		case holder == nil:
			return RefuseConsumer(wire.ErrUnknownMemberID, fmt.Sprintf("Instance id %s is unknown.", *b.instance))
		case holder.id != b.member:
			return RefuseConsumer(wire.ErrFencedInstanceID, fmt.Sprintf("Static member %s with instance id %s was fenced by member %s.", b.member, *b.instance, holder.id))
		}
	}
	if x == nil {
		return RefuseConsumer(wire.ErrUnknownMemberID, fmt.Sprintf("Member %s is not a member of group %s.", b.member, b.group))
	}
	if b.epoch == epochAway {
		y := *x
		y.previous, y.epoch, y.state, y.revoking = x.epoch, epochAway, settled, holding{}
		s.setMember(&y)
	} else {
		m.dropConsumer(now, s, x)
	}
	r := kmsg.NewPtrConsumerGroupHeartbeatResponse()
	id := b.member
	r.MemberID, r.MemberEpoch = &id, b.epoch
	return r
}

// dropConsumer removes a member; the others get what it had.
func (m *Groups) dropConsumer(now time.Time, s *step, x *consumer) {
	s.dropMember(x)
	m.afterLoss(now, s)
}

// afterLoss follows the loss of members: without one of its protocol the group
// goes back to the classic one, if it may.
func (m *Groups) afterLoss(now time.Time, s *step) {
	if m.downgrade(now, s) {
		return
	}
	m.look(now, s, true)
	m.target(now, s)
}

// silentOp is for a member whose session has ended, unless it has been heard of
// since.
func (m *Groups) silentOp(g *group, id string, l *life) *consumerOp {
	return &consumerOp{run: func(now time.Time, s *step) kmsg.Response {
		n := g.modern
		if x := n.members[id]; x != nil && n.lives[id] == l && l.session.index == 0 && !s.touched[id] {
			m.dropConsumer(now, s, x)
		}
		return nil
	}}
}

// slowOp is for a member that has not given up its partitions in time.
func (m *Groups) slowOp(g *group, id string) *consumerOp {
	return &consumerOp{run: func(now time.Time, s *step) kmsg.Response {
		if x := g.modern.members[id]; x != nil && x.state == unrevoked && g.modern.lives[id].late() {
			m.dropConsumer(now, s, x)
		}
		return nil
	}}
}

// late says that the time for giving up is over, and has not begun anew.
func (l *life) late() bool { return l != nil && l.rebalance.index == 0 }

// behindOp is for a member of the classic protocol that was told to join, or has
// joined, and did not go on in time.
func (m *Groups) behindOp(g *group, id string, l *life) *consumerOp {
	return &consumerOp{run: func(now time.Time, s *step) kmsg.Response {
		n := g.modern
		if x := n.members[id]; x != nil && x.said.Classic != nil && n.lives[id] == l && l.behind.index == 0 && !s.touched[id] {
			m.dropConsumer(now, s, x)
		}
		return nil
	}}
}
