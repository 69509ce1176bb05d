package group

import (
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"millrace/coord/group/assign"
	"millrace/wire"
)

// classicMember finds a member of the classic protocol that names its epoch as
// its generation.
func (n *modern) classicMember(id string, instance *string, generation int32) (*consumer, int16) {
	x := n.members[id]
	if instance != nil {
		switch holder := n.holderOf(instance); {
		case holder == nil:
			return nil, wire.ErrUnknownMemberID
		case holder.id != id:
			return nil, wire.ErrFencedInstanceID
		}
	}
	switch {
	case x == nil || x.said.Classic == nil:
		return nil, wire.ErrUnknownMemberID
	case x.epoch != generation:
		return nil, wire.ErrIllegalGeneration
	}
	return x, wire.ErrNone
}

// syncMixed serves SyncGroup in a group of the next-generation protocol.
func (m *Groups) syncMixed(now time.Time, g *group, call Call, from Client, req *kmsg.SyncGroupRequest) {
	kept := *req
	kept.GroupAssignment = nil // nobody leads
	m.enqueue(now, g, &consumerOp{
		call:   call,
		run:    func(_ time.Time, s *step) kmsg.Response { return m.runSync(s, &kept) },
		refuse: func(code int16) kmsg.Response { return refuseSync(code) },
		again:  func(now time.Time) { m.Sync(now, call, from, &kept) },
	})
}

// runSync tells a member what it has: that is durable, for the step in which it
// joined has ended.
func (m *Groups) runSync(s *step, req *kmsg.SyncGroupRequest) kmsg.Response {
	n := s.g.modern
	x, code := n.classicMember(req.MemberID, req.InstanceID, req.Generation)
	switch {
	case code != wire.ErrNone:
		return refuseSync(code)
	case differs(req.ProtocolType, consumers), differs(req.Protocol, x.said.Classic.Protocols[0].Name):
		return refuseSync(wire.ErrInconsistentGroupProtocol)
	}
	s.touched[x.id] = true
	if n.targetEpoch > x.epoch && x.state != unrevoked {
		s.after = append(s.after, func(now time.Time) { m.owes(now, n, x.id, false) })
		return refuseSync(wire.ErrRebalanceInProgress)
	}
	s.after = append(s.after, func(time.Time) {
		if l := n.lives[x.id]; l != nil {
			m.timers.stop(&l.behind)
		}
	})
	r := kmsg.NewPtrSyncGroupResponse()
	protocolType, protocol := consumers, x.said.Classic.Protocols[0].Name
	r.ProtocolType, r.Protocol = &protocolType, &protocol
	r.MemberAssignment = assignmentFor(x.said.Classic, x.assigned.places(), m.topics())
	return r
}

// owes begins the time in which a member of the classic protocol must join, or
// sync; anew, or unless it runs already.
func (m *Groups) owes(now time.Time, n *modern, id string, anew bool) {
	x, l := n.members[id], n.lives[id]
	if x != nil && l != nil && x.said.Classic != nil && (anew || l.behind.index == 0) {
		m.timers.set(&l.behind, now.Add(millis(x.said.RebalanceMs)))
	}
}

// heartbeatMixed serves Heartbeat in a group of the next-generation protocol. A
// member joins again when it is behind the target, has something to give up, or
// can get what it waits for.
func (m *Groups) heartbeatMixed(now time.Time, g *group, req *kmsg.HeartbeatRequest) int16 {
	n := g.modern
	x, code := n.classicMember(req.MemberID, req.InstanceID, req.Generation)
	if code != wire.ErrNone {
		return code
	}
	if l := n.lives[x.id]; l != nil {
		m.timers.set(&l.session, now.Add(x.session(&m.settings, g.id)))
	}
	if n.seen != m.topicsSeen && !n.writing && len(n.queue) == 0 {
		// Nobody leads, and so nobody but us looks for new partitions.
		m.enqueue(now, g, &consumerOp{run: func(now time.Time, s *step) kmsg.Response {
			m.look(now, s, false)
			m.target(now, s)
			return nil
		}})
	}
	if x.epoch >= n.targetEpoch && x.state != unrevoked && !n.canGet(x) {
		return wire.ErrNone
	}
	m.owes(now, n, x.id, false)
	return wire.ErrRebalanceInProgress
}

// canGet says whether all that a member waits for has been given up.
func (n *modern) canGet(x *consumer) bool {
	return x.state == unreleased && !slices.ContainsFunc(n.target[x.id], func(p assign.Place) bool {
		owner := n.owners[p]
		return owner != "" && owner != x.id
	})
}

// leaveMixed serves LeaveGroup in a group of the next-generation protocol: of a
// member of the classic one, or of any at an administrator's wish.
func (m *Groups) leaveMixed(now time.Time, g *group, c *leaveCall) {
	m.enqueue(now, g, &consumerOp{
		call:   c.call,
		run:    func(now time.Time, s *step) kmsg.Response { return m.runLeave(now, s, c) },
		refuse: func(code int16) kmsg.Response { return c.refuse(code) },
		again:  func(now time.Time) { m.leave(now, c) },
	})
}

func (m *Groups) runLeave(now time.Time, s *step, c *leaveCall) kmsg.Response {
	n := s.g.modern
	gone := false
	r := c.answer(func(l *kmsg.LeaveGroupRequestMember) int16 {
		id := l.MemberID
		if l.InstanceID != nil {
			switch holder := n.holderOf(l.InstanceID); {
			case holder == nil:
				return wire.ErrUnknownMemberID
			case id == "": // an administrator removes a static member
				id = holder.id
			case id != holder.id:
				return wire.ErrFencedInstanceID
			}
		}
		x := n.members[id]
		if x == nil {
			return wire.ErrUnknownMemberID
		}
		s.dropMember(x)
		gone = true
		return wire.ErrNone
	})
	if gone {
		m.afterLoss(now, s)
	}
	return r
}
