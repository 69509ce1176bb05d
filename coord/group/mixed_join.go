package group

import (
	"bytes"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"millrace/coord/group/assign"
	"millrace/coord/group/embedded"
	"millrace/coord/group/record"
	"millrace/wire"
)

// joinMixed serves JoinGroup in a group of the next-generation protocol: the
// member lives there, is answered at once, and its epoch is its generation. Who
// owns what the broker decides; nobody leads.
func (m *Groups) joinMixed(now time.Time, g *group, c *joinCall) {
	req := *c.req // which must not be kept
	req.Protocols = nil
	if req.InstanceID != nil {
		instance := *req.InstanceID
		req.InstanceID = &instance
	}
	c.req = &req
	m.enqueue(now, g, &consumerOp{
		call: c.call, classic: true,
		run:    func(now time.Time, s *step) kmsg.Response { return m.runJoin(now, s, c) },
		refuse: func(code int16) kmsg.Response { return refuseJoin("", code) },
		again:  func(now time.Time) { m.join(now, c) },
	})
}

// runJoin is the JoinGroup itself. What the member says that it owns it has not
// given up; a member that rebalances eagerly has given up all before it joins.
func (m *Groups) runJoin(now time.Time, s *step, c *joinCall) kmsg.Response {
	n := s.g.modern
	if code := m.mayJoinMixed(n, c); code != wire.ErrNone {
		return refuseJoin("", code)
	}
	told, err := embedded.ParseSubscription(c.protocols[0].metadata)
	if err != nil {
		return refuseJoin("", wire.ErrInconsistentGroupProtocol)
	}
	id := c.req.MemberID
	switch {
	case id == "" && c.req.InstanceID != nil:
		id = *c.req.InstanceID + "-" + m.newID()
	case id == "":
		id = c.from.ID + "-" + m.newID()
		if c.from.Version >= idRequired {
			return refuseJoin(id, wire.ErrMemberIDRequired)
		}
	}
	x := n.members[id]
	old := x
	owns := placesOf(told.Owned, m.topics())
	slices.SortFunc(owns, assign.Compare)
	if replaced := n.holderOf(c.req.InstanceID); replaced != nil && replaced.id != id {
		x, old = s.replace(replaced, id, max(replaced.epoch, replaced.previous)), replaced
	} else if x == nil {
		if c.req.MemberID != "" && len(owns) > 0 {
			return refuseJoin("", wire.ErrUnknownMemberID) // it was removed, and uses what others may have by now
		}
		x = &consumer{id: id, assigned: holding{}, revoking: holding{}}
	}
	y := *x
	c.update(&y.said, &told)
	if old == nil || !equalSaid(&x.said, &y.said) {
		s.setMember(&y)
	}
	m.look(now, s, old == nil || !slices.Equal(old.said.Topics, y.said.Topics) || old.said.Pattern != nil)
	m.target(now, s)
	after := n.reconcile(n.members[id], &beat{epoch: y.epoch, owns: owns, tells: true})
	if after != n.members[id] {
		s.setMember(after)
	}
	s.touched[id] = true
	s.after = append(s.after, func(now time.Time) { m.owes(now, n, id, true) })
	m.downgrade(now, s)
	return joinedMixed(after)
}

// mayJoinMixed says what is wrong with a JoinGroup. A member of an id that is
// not known is new, unless it owns something: ids are not kept when they are
// handed out, and the classic group that this one was may have done so.
func (m *Groups) mayJoinMixed(n *modern, c *joinCall) int16 {
	id, holder := c.req.MemberID, n.holderOf(c.req.InstanceID)
	known := n.members[id]
	if known == nil && id == "" {
		known = holder
	}
	switch {
	case m.settings.Migration == Migration{} && (known == nil || known.said.Classic == nil):
		return wire.ErrInconsistentGroupProtocol
	case n.members[id] == nil && holder == nil && len(n.members) >= m.settings.Consumer.MaxSize:
		return wire.ErrGroupMaxSizeReached
	case !n.speaks(c.req.ProtocolType, c.protocols):
		return wire.ErrInconsistentGroupProtocol
	case c.req.InstanceID == nil || id == "":
		return wire.ErrNone
	case holder == nil:
		return wire.ErrUnknownMemberID
	case holder.id != id:
		return wire.ErrFencedInstanceID
	}
	return wire.ErrNone
}

// holderOf is the static member of an instance id, if there is one.
func (n *modern) holderOf(instance *string) *consumer {
	if instance == nil {
		return nil
	}
	return n.instances[*instance]
}

// speaks says whether a member with these protocols can be in the group: all
// members of the classic protocol must have one in common, so that they can be a
// classic group again.
func (n *modern) speaks(protocolType string, protocols []protocol) bool {
	return protocolType == consumers && slices.ContainsFunc(protocols, func(p protocol) bool {
		for _, x := range n.members {
			if x.said.Classic != nil && !slices.ContainsFunc(x.said.Classic.Protocols, func(q record.Protocol) bool { return p.name == q.Name }) {
				return false
			}
		}
		return true
	})
}

// update takes over what a JoinGroup tells. All its protocols tell the same of
// topics.
func (c *joinCall) update(said *record.Consumer, told *embedded.Subscription) {
	said.ClientID, said.ClientHost, said.RebalanceMs = c.from.ID, c.from.Host, int32(c.rebalance.Milliseconds())
	said.Topics, said.Pattern, said.Classic = told.Topics, nil, classicOf(c.session, c.protocols)
	if c.req.InstanceID != nil {
		said.Instance = c.req.InstanceID
	}
	if told.Rack != nil {
		said.Rack = told.Rack
	}
}

func joinedMixed(x *consumer) *kmsg.JoinGroupResponse {
	r := kmsg.NewPtrJoinGroupResponse()
	protocolType, protocol := consumers, x.said.Classic.Protocols[0].Name
	r.MemberID, r.Generation, r.ProtocolType, r.Protocol = x.id, x.epoch, &protocolType, &protocol
	return r
}

// equalClassic compares what members of the classic protocol have said.
func equalClassic(a, b *record.Classic) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.SessionMs == b.SessionMs && slices.EqualFunc(a.Protocols, b.Protocols, func(a, b record.Protocol) bool {
		return a.Name == b.Name && bytes.Equal(a.Metadata, b.Metadata)
	})
}
