package group

import (
	"time"

	"millrace/coord/group/record"
	"millrace/wire"
)

// rebalance is what a group in Preparing waits for.
type rebalance struct {
	begun   time.Time
	timer   timer
	initial bool          // the group was Empty: wait for more members to come
	grown   bool          // while initial, a member has come since the timer was set
	left    time.Duration // while initial, how much longer it may be put off
}

// rebalanceOrComplete follows a JoinGroup: it starts a rebalance, or ends the
// one that is going on if this was the last to join.
func (m *Groups) rebalanceOrComplete(now time.Time, g *group) {
	if g.state == Preparing {
		m.completeIfJoined(now, g)
		return
	}
	m.prepare(now, g)
}

// afterRemoval follows the loss of a member or of a handed out id.
func (m *Groups) afterRemoval(now time.Time, g *group) {
	switch g.state {
	case Stable, Completing:
		m.prepare(now, g)
	case Preparing:
		m.completeIfJoined(now, g)
	}
}

// prepare starts a rebalance.
func (m *Groups) prepare(now time.Time, g *group) {
	wasEmpty := g.state == Empty
	if g.state == Completing {
		for _, x := range g.members {
			if x.sync.call != 0 {
				m.alive(now, x)
				m.answerSync(x, refuseSync(wire.ErrRebalanceInProgress))
			}
		}
	}
	m.timers.stop(&g.syncing)
	g.assigning = false
	g.become(Preparing, now)
	r := &g.rebalance
	r.begun, r.initial, r.grown, r.left = now, false, false, 0
	if delay := m.settings.InitialDelay; wasEmpty && delay > 0 {
		r.initial = true
		r.left = max(g.longest()-delay, 0)
		m.timers.set(&r.timer, now.Add(delay))
		return
	}
	m.completeIfJoined(now, g)
}

// longest is the longest rebalance time-out of all members.
func (g *group) longest() (d time.Duration) {
	for _, x := range g.members {
		d = max(d, x.rebalance)
	}
	return d
}

// completeIfJoined ends the rebalance if there is nobody to wait for, and else
// makes sure that the wait has an end.
func (m *Groups) completeIfJoined(now time.Time, g *group) {
	switch {
	case g.rebalance.initial: // its timer decides
	case g.joining == len(g.members) && len(g.pending) == 0:
		m.complete(now, g)
	case g.rebalance.timer.index == 0:
		m.timers.set(&g.rebalance.timer, g.nextLate(now))
	}
}

// nextLate is when the next member will be late, each by its own time-out; when
// only handed out ids are missing, the time that the slowest member would have.
func (g *group) nextLate(now time.Time) time.Time {
	var next time.Time
	for _, x := range g.members {
		if x.join.call != 0 {
			continue
		}
		if at := g.rebalance.begun.Add(x.rebalance); at.After(now) && (next.IsZero() || at.Before(next)) {
			next = at
		}
	}
	if next.IsZero() {
		next = g.rebalance.begun.Add(g.longest())
	}
	if !next.After(now) {
		next = now.Add(max(g.longest(), time.Second))
	}
	return next
}

// rebalanceLate is the rebalance's alarm.
func (m *Groups) rebalanceLate(now time.Time, g *group) {
	if g.state != Preparing {
		return
	}
	r := &g.rebalance
	if r.initial {
		if r.grown && r.left > 0 {
			delay := min(m.settings.InitialDelay, r.left)
			r.grown, r.left = false, r.left-delay
			m.timers.set(&r.timer, now.Add(delay))
			return
		}
		r.initial = false
		m.complete(now, g)
		return
	}
	waiting := false
	for _, x := range g.ordered() {
		switch {
		case x.join.call != 0:
		case r.begun.Add(x.rebalance).After(now):
			waiting = true
		case x.instance == nil: // a static member keeps its place until its session ends
			m.remove(g, x, wire.ErrUnknownMemberID)
		}
	}
	if waiting {
		m.timers.set(&r.timer, g.nextLate(now))
		return
	}
	m.complete(now, g)
}

// complete begins the next generation with whoever has joined.
func (m *Groups) complete(now time.Time, g *group) {
	m.timers.stop(&g.rebalance.timer)
	if g.joining == 0 && len(g.members) > 0 {
		// Only static members are left and none has come back. Sessions will end.
		m.timers.set(&g.rebalance.timer, g.nextLate(now))
		return
	}
	g.generation++
	if len(g.members) == 0 {
		g.protocol, g.leader = "", ""
		g.become(Empty, now)
		m.write([]record.Record{g.stateRecord(nil)}, func(time.Time, int16) {
			// If it is lost, a restart finds members that are gone, and their
			// sessions end.
		})
		return
	}
	if leader := g.members[g.leader]; leader == nil || leader.join.call == 0 {
		g.leader = g.oldest(func(x *member) bool { return x.join.call != 0 }).id
	}
	g.protocol = g.selectProtocol()
	g.become(Completing, now)
	g.unsynced, g.syncFrom = 0, now
	for _, x := range g.members {
		x.came = 0
		if x.join.call == 0 {
			x.synced = true // a static member that is away
			continue
		}
		x.synced, x.fresh = false, false
		g.unsynced++
		m.answerJoin(g, x, g.joined(x))
		m.alive(now, x)
	}
	m.watchSync(now, g)
}
