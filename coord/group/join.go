package group

import (
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"millrace/wire"
)

// idRequired is the first version of JoinGroup in which a member without an id
// is told one and asks again: a client that gives up then leaves no member
// behind.
const idRequired = 4

// joinCall is a JoinGroup with what all its paths need.
type joinCall struct {
	call               Call
	from               Client
	req                *kmsg.JoinGroupRequest
	protocols          []protocol
	rebalance, session time.Duration
}

// Join serves JoinGroup. The answer comes when the group's rebalance is over.
func (m *Groups) Join(now time.Time, call Call, from Client, req *kmsg.JoinGroupRequest) {
	c := &joinCall{call: call, from: from, req: req, session: millis(req.SessionTimeoutMillis), rebalance: millis(req.RebalanceTimeoutMillis)}
	if from.Version == 0 || c.rebalance < 0 {
		c.rebalance = c.session // version 0 has one time-out for both
	}
	switch {
	case req.Group == "":
		m.refuse(c, req.MemberID, wire.ErrInvalidGroupID)
		return
	case c.session < m.settings.SessionMin || c.session > m.settings.SessionMax:
		m.refuse(c, req.MemberID, wire.ErrInvalidSessionTimeout)
		return
	}
	c.protocols = protocolsOf(req.Protocols)
	m.join(now, c)
}

// join finds the call's group, which may be of either protocol.
func (m *Groups) join(now time.Time, c *joinCall) {
	req := c.req
	g := m.groups[req.Group]
	if g == nil && req.MemberID != "" {
		m.refuse(c, req.MemberID, wire.ErrUnknownMemberID)
		return
	}
	if g == nil {
		g = m.find(req.Group)
	}
	if g.modern != nil && g.vacant() {
		m.becomeClassic(now, g)
	}
	switch {
	case g.modern != nil:
		m.joinMixed(now, g, c)
		return
	case !m.hasRoom(g, c):
		m.discard(now, g, req.MemberID)
		m.refuse(c, "", wire.ErrGroupMaxSizeReached)
	case !g.supports(req.ProtocolType, c.protocols):
		m.refuse(c, req.MemberID, wire.ErrInconsistentGroupProtocol)
	case req.MemberID != "":
		m.joinKnown(now, g, c)
	case req.InstanceID != nil && g.instances[*req.InstanceID] != nil:
		m.joinReplacing(now, g, c)
	default:
		m.joinNew(now, g, c)
	}
	m.forgetIfIdle(g)
}

func millis(ms int32) time.Duration { return time.Duration(ms) * time.Millisecond }

func (m *Groups) refuse(c *joinCall, member string, code int16) {
	m.answer(c.call, refuseJoin(member, code))
}

func refuseJoin(member string, code int16) *kmsg.JoinGroupResponse {
	r := kmsg.NewPtrJoinGroupResponse()
	r.ErrorCode, r.MemberID, r.Generation = code, member, -1
	return r
}

// hasRoom applies the size limit. During a rebalance only those who have joined
// count, so that a limit that was lowered lets the fastest in.
func (m *Groups) hasRoom(g *group, c *joinCall) bool {
	x := g.members[c.req.MemberID]
	if c.req.MemberID == "" && c.req.InstanceID != nil {
		x = g.instances[*c.req.InstanceID] // takes its own old place
	}
	switch g.state {
	case Empty:
		return c.req.MemberID != "" || len(g.pending) < maxPending
	case Preparing:
		return x != nil && x.join.call != 0 || g.joining < m.settings.MaxSize
	}
	return x != nil || len(g.members) < m.settings.MaxSize && len(g.pending) < maxPending
}

// discard drops a member or an id for which there is no room.
func (m *Groups) discard(now time.Time, g *group, id string) {
	if p := g.pending[id]; p != nil {
		m.dropPending(g, id, p)
		m.afterRemoval(now, g)
	}
	if x := g.members[id]; x != nil {
		m.remove(g, x, wire.ErrGroupMaxSizeReached)
		m.afterRemoval(now, g)
	}
}

// joinNew is for those that bring no id.
func (m *Groups) joinNew(now time.Time, g *group, c *joinCall) {
	if c.req.InstanceID != nil {
		m.admit(now, g, c, *c.req.InstanceID+"-"+m.newID())
		return
	}
	id := c.from.ID + "-" + m.newID()
	if c.from.Version < idRequired {
		m.admit(now, g, c, id)
		return
	}
	p := &pendingID{}
	p.timer.fire = func(now time.Time) {
		delete(g.pending, id)
		m.afterRemoval(now, g)
		m.forgetIfIdle(g)
	}
	g.pending[id] = p
	m.timers.set(&p.timer, now.Add(c.session))
	m.refuse(c, id, wire.ErrMemberIDRequired)
}

func (m *Groups) dropPending(g *group, id string, p *pendingID) {
	m.timers.stop(&p.timer)
	delete(g.pending, id)
}

// joinKnown is for those that bring an id.
func (m *Groups) joinKnown(now time.Time, g *group, c *joinCall) {
	id := c.req.MemberID
	if p := g.pending[id]; p != nil && c.req.InstanceID == nil {
		m.dropPending(g, id, p)
		m.admit(now, g, c, id)
		return
	}
	if code := g.validate(id, c.req.InstanceID); code != wire.ErrNone {
		m.refuse(c, id, code)
		return
	}
	x := g.members[id]
	same := x.matches(c.protocols)
	switch {
	case g.state == Completing && same, g.state == Stable && same && g.leader != id:
		// It has missed our answer, or joins without need: the generation stands.
		m.alive(now, x)
		m.answer(c.call, g.joined(x))
		return
	}
	// The leader may ask for a rebalance: it knows of changes to topics that
	// its metadata does not tell.
	g.update(x, c.protocols, c.rebalance, c.session)
	m.parkJoin(g, x, c.call, c.from.Version)
	m.rebalanceOrComplete(now, g)
}

// admit makes a new member, parked until the rebalance is over.
func (m *Groups) admit(now time.Time, g *group, c *joinCall, id string) {
	x := &member{
		id: id, clientID: c.from.ID, host: c.from.Host, fresh: true, synced: true,
		rebalance: c.rebalance, session: c.session, protocols: c.protocols,
	}
	if c.req.InstanceID != nil {
		instance := *c.req.InstanceID
		x.instance = &instance
	}
	if len(g.members) == 0 {
		g.protocolType = c.req.ProtocolType
	}
	m.add(g, x)
	if g.state == Preparing && g.rebalance.initial {
		g.rebalance.grown = true
	}
	m.parkJoin(g, x, c.call, c.from.Version)
	m.timers.set(&x.timer, now.Add(newMemberTimeout))
	m.rebalanceOrComplete(now, g)
}

// joined is the answer to a member of the current generation. The leader gets
// all members, to make an assignment for.
func (g *group) joined(x *member) *kmsg.JoinGroupResponse {
	r := kmsg.NewPtrJoinGroupResponse()
	protocolType, protocol := g.protocolType, g.protocol
	r.Generation, r.ProtocolType, r.Protocol, r.LeaderID, r.MemberID = g.generation, &protocolType, &protocol, g.leader, x.id
	if g.leader == x.id {
		r.Members = g.listing()
	}
	return r
}

func (g *group) listing() []kmsg.JoinGroupResponseMember {
	out := make([]kmsg.JoinGroupResponseMember, 0, len(g.members))
	for _, x := range g.ordered() {
		out = append(out, kmsg.JoinGroupResponseMember{MemberID: x.id, InstanceID: x.instance, ProtocolMetadata: x.metadata(g.protocol)})
	}
	return out
}

// Abandon tells that nobody waits for a JoinGroup any more. A member that has
// never been answered goes with it: it owns nothing, and would hold up the
// group until it times out. Others may come back.
func (m *Groups) Abandon(now time.Time, id string, call Call) {
	g := m.groups[id]
	if g == nil {
		return
	}
	x := g.oldest(func(x *member) bool { return x.join.call == call })
	if x == nil || !x.fresh || x.instance != nil {
		return
	}
	m.remove(g, x, wire.ErrUnknownMemberID)
	m.afterRemoval(now, g)
	m.forgetIfIdle(g)
}
