package group

import (
	"bytes"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"millrace/coord/group/record"
	"millrace/wire"
)

func refuseSync(code int16) *kmsg.SyncGroupResponse {
	r := kmsg.NewPtrSyncGroupResponse()
	r.ErrorCode = code
	return r
}

// Sync serves SyncGroup. The leader's brings the assignment; the others wait
// for it, and all are answered when it is durable.
func (m *Groups) Sync(now time.Time, call Call, from Client, req *kmsg.SyncGroupRequest) {
	if g := m.groups[req.Group]; g != nil && g.modern != nil {
		m.syncMixed(now, g, call, from, req)
		return
	}
	g, x, code := m.memberOf(req.Group, req.MemberID, req.InstanceID, req.Generation)
	switch {
	case code != wire.ErrNone:
	case differs(req.ProtocolType, g.protocolType), differs(req.Protocol, g.protocol) && g.state != Preparing:
		code = wire.ErrInconsistentGroupProtocol
	case g.state == Preparing:
		code = wire.ErrRebalanceInProgress
	}
	if code != wire.ErrNone {
		m.answer(call, refuseSync(code))
		return
	}
	m.alive(now, x)
	g.hasSynced(m, x)
	if g.state == Stable {
		m.answer(call, g.synced(x))
		return
	}
	m.answerSync(x, refuseSync(wire.ErrRebalanceInProgress)) // an older one, of a connection that broke
	x.sync = parked{call, from.Version}
	if g.leader == x.id && !g.assigning {
		m.assign(g, req.GroupAssignment)
	}
}

// differs says whether a client names something, and something else than ours.
func differs(said *string, ours string) bool { return said != nil && *said != ours }

// memberOf finds a group's member, as all requests do that name a generation.
func (m *Groups) memberOf(id, member string, instance *string, generation int32) (*group, *member, int16) {
	if id == "" {
		return nil, nil, wire.ErrInvalidGroupID
	}
	g := m.groups[id]
	if g == nil {
		return nil, nil, wire.ErrUnknownMemberID
	}
	if code := g.validate(member, instance); code != wire.ErrNone {
		return g, nil, code
	}
	if x := g.members[member]; g.isCurrent(x, generation) {
		return g, x, wire.ErrNone
	}
	return g, nil, wire.ErrIllegalGeneration
}

// isCurrent says whether a member names the generation that it is in: the
// group's, or, until the first rebalance after a downgrade, the epoch it had.
func (g *group) isCurrent(x *member, generation int32) bool {
	return generation == g.generation || x.came != 0 && generation == x.came
}

// hasSynced notes that a member has sent SyncGroup.
func (g *group) hasSynced(m *Groups, x *member) {
	if x.synced {
		return
	}
	x.synced = true
	if g.unsynced--; g.unsynced == 0 {
		m.timers.stop(&g.syncing)
	}
}

// assign writes what the leader decided. Members it does not name get nothing.
func (m *Groups) assign(g *group, assigned []kmsg.SyncGroupRequestGroupAssignment) {
	shares := make(map[string][]byte, len(assigned))
	for i := range assigned {
		shares[assigned[i].MemberID] = bytes.Clone(assigned[i].MemberAssignment)
	}
	generation := g.generation
	g.assigning = true
	state := g.stateRecord(func(x *member) []byte { return shares[x.id] })
	m.write([]record.Record{state}, func(now time.Time, code int16) {
		if g.state != Completing || g.generation != generation || !g.assigning {
			return // a rebalance came in between, and has answered all (G1)
		}
		g.assigning = false
		if code != wire.ErrNone {
			for _, x := range g.members {
				if x.sync.call != 0 {
					m.alive(now, x)
					m.answerSync(x, refuseSync(code))
				}
			}
			m.prepare(now, g)
			return
		}
		g.become(Stable, now)
		for _, x := range g.members {
			x.assignment = shares[x.id]
			if x.sync.call != 0 {
				m.alive(now, x)
				m.answerSync(x, g.synced(x))
			}
		}
	})
}

func (g *group) synced(x *member) *kmsg.SyncGroupResponse {
	r := kmsg.NewPtrSyncGroupResponse()
	protocolType, protocol := g.protocolType, g.protocol
	r.ProtocolType, r.Protocol, r.MemberAssignment = &protocolType, &protocol, x.assignment
	if r.MemberAssignment == nil {
		r.MemberAssignment = []byte{}
	}
	return r
}

// watchSync sets the alarm for the first member that will be late with
// SyncGroup. The wait is each member's own, so that one with a short time-out
// cannot hold up the group for as long as the slowest may take (F059).
func (m *Groups) watchSync(now time.Time, g *group) {
	var next time.Time
	for _, x := range g.members {
		if at := g.syncFrom.Add(x.rebalance); !x.synced && (next.IsZero() || at.Before(next)) {
			next = at
		}
	}
	if next.IsZero() {
		return
	}
	if !next.After(now) {
		next = now.Add(time.Millisecond)
	}
	m.timers.set(&g.syncing, next)
}

// syncLate removes the members that have had their time.
func (m *Groups) syncLate(now time.Time, g *group) {
	if g.state != Completing && g.state != Stable {
		return
	}
	removed := false
	for _, x := range g.ordered() {
		if !x.synced && !g.syncFrom.Add(x.rebalance).After(now) {
			m.remove(g, x, wire.ErrUnknownMemberID)
			removed = true
		}
	}
	if removed {
		m.prepare(now, g)
		return
	}
	m.watchSync(now, g)
}

// Heartbeat serves Heartbeat. It costs two look-ups and a store.
func (m *Groups) Heartbeat(now time.Time, req *kmsg.HeartbeatRequest) int16 {
	if g := m.groups[req.Group]; g != nil && g.modern != nil {
		return m.heartbeatMixed(now, g, req)
	}
	g, x, code := m.memberOf(req.Group, req.MemberID, req.InstanceID, req.Generation)
	if code != wire.ErrNone {
		return code
	}
	m.alive(now, x)
	if g.state == Preparing {
		return wire.ErrRebalanceInProgress
	}
	return wire.ErrNone
}
