package group

import (
	"time"

	"millrace/coord/group/record"
	"millrace/wire"
)

// skipsAssignment is the first version of JoinGroup in which a leader can be
// told who the members are and that it need not assign.
const skipsAssignment = 9

// joinReplacing is for a static member that comes back without its id, after a
// restart within its session: it takes the place of its old self, which is
// fenced from then on (F061). If the group is stable and would choose the same
// protocol again, nobody else notices.
func (m *Groups) joinReplacing(now time.Time, g *group, c *joinCall) {
	x := g.instances[*c.req.InstanceID]
	oldLeader := g.leader
	m.rename(g, x, *c.req.InstanceID+"-"+m.newID())
	g.update(x, c.protocols, c.rebalance, c.session)
	x.clientID, x.host = c.from.ID, c.from.Host
	m.alive(now, x)
	if g.state != Stable || g.selectProtocol() != g.protocol {
		// Completing: the leader may already know the old id, and would assign
		// to it. So all start over.
		m.parkJoin(g, x, c.call, c.from.Version)
		m.rebalanceOrComplete(now, g)
		return
	}
	// A restart must not bring the old id back, so the answer waits for the
	// record. If that cannot be written, the old self stays fenced: whoever
	// joins next under this instance replaces the id that nobody was told.
	answer := g.joined(x)
	if c.from.Version >= skipsAssignment {
		answer.SkipAssignment = g.leader == x.id
	} else {
		answer.LeaderID, answer.Members = oldLeader, nil // so that it does not take itself for the leader
	}
	assignment := func(x *member) []byte { return x.assignment }
	call, id := c.call, x.id
	m.write([]record.Record{g.stateRecord(assignment)}, func(_ time.Time, code int16) {
		switch {
		case code != wire.ErrNone:
			m.answer(call, refuseJoin("", code))
		case g.state != Stable || g.generation != answer.Generation || g.members[id] != x:
			m.answer(call, refuseJoin(id, wire.ErrRebalanceInProgress)) // G1
		default:
			m.answer(call, answer)
		}
	})
}

// rename gives a static member another id. What its old self waits for is
// answered so that it stops.
func (m *Groups) rename(g *group, x *member, id string) {
	m.answerJoin(g, x, refuseJoin(x.id, wire.ErrFencedInstanceID))
	m.answerSync(x, refuseSync(wire.ErrFencedInstanceID))
	delete(g.members, x.id)
	g.members[id] = x
	if g.leader == x.id {
		g.leader = id
	}
	x.id = id
}
