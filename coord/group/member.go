package group

import (
	"bytes"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"millrace/wire"
)

// member is one member of a group.
type member struct {
	id       string
	instance *string // nil: not static
	clientID string
	host     string
	order    uint64 // when it joined, compared with others

	rebalance time.Duration // how long it may take to come back for a rebalance
	session   time.Duration
	protocols []protocol // in its order of preference

	assignment []byte // of the last generation that has one; stored when durable
	came       int32  // its epoch in the group of the next-generation protocol that this one was; 0: in none
	fresh      bool   // never answered: it does not know its id yet
	synced     bool   // has sent SyncGroup in this generation, or need not

	join, sync parked
	timer      timer // its session
}

// protocol is one that a member can speak, with what it says to the leader.
type protocol struct {
	name     string
	metadata []byte
}

// parked is a request that waits; call 0: none does.
type parked struct {
	call    Call
	version int16
}

// protocolsOf copies what a request says, which must not be kept.
func protocolsOf(asked []kmsg.JoinGroupRequestProtocol) []protocol {
	out := make([]protocol, len(asked))
	for i := range asked {
		out[i] = protocol{asked[i].Name, bytes.Clone(asked[i].Metadata)}
	}
	return out
}

func (m *member) metadata(protocol string) []byte {
	for i := range m.protocols {
		if m.protocols[i].name == protocol {
			return m.protocols[i].metadata
		}
	}
	return nil
}

// matches says whether a JoinGroup tells nothing new.
func (m *member) matches(protocols []protocol) bool {
	return slices.EqualFunc(m.protocols, protocols, func(a, b protocol) bool {
		return a.name == b.name && bytes.Equal(a.metadata, b.metadata)
	})
}

// add takes a new member in.
func (m *Groups) add(g *group, x *member) {
	if len(g.members) == 0 {
		g.leader = x.id
	}
	m.joined++
	x.order = m.joined
	g.members[x.id] = x
	if x.instance != nil {
		g.instances[*x.instance] = x
	}
	g.vote(x.protocols, 1)
	m.bind(g, x)
}

// bind says what happens when the member's session ends. A timer's owner never
// changes its place in memory, but a static member changes its id.
func (m *Groups) bind(g *group, x *member) {
	x.timer.fire = func(now time.Time) { m.sessionOver(now, g, x) }
}

func (g *group) vote(protocols []protocol, n int) {
	for i := range protocols {
		name := protocols[i].name
		if slices.ContainsFunc(protocols[:i], func(p protocol) bool { return p.name == name }) {
			continue // named twice: still one vote
		}
		if g.votes[name] += n; g.votes[name] == 0 {
			delete(g.votes, name)
		}
	}
}

// update takes over what a known member says anew.
func (g *group) update(x *member, protocols []protocol, rebalance, session time.Duration) {
	g.vote(x.protocols, -1)
	x.protocols, x.rebalance, x.session = protocols, rebalance, session
	g.vote(protocols, 1)
}

// remove takes a member out; what it waits for is answered with code. What that
// means for the group is the caller's business.
func (m *Groups) remove(g *group, x *member, code int16) {
	m.answerJoin(g, x, refuseJoin(x.id, code))
	m.answerSync(x, refuseSync(code))
	m.timers.stop(&x.timer)
	delete(g.members, x.id)
	if x.instance != nil && g.instances[*x.instance] == x {
		delete(g.instances, *x.instance)
	}
	g.vote(x.protocols, -1)
	if !x.synced {
		g.unsynced--
	}
	if g.leader == x.id {
		g.leader = ""
		if next := g.oldest(func(*member) bool { return true }); next != nil {
			g.leader = next.id
		}
	}
}

// oldest is the longest-standing member that fits; nil if none does.
func (g *group) oldest(fits func(*member) bool) *member {
	var first *member
	for _, x := range g.members {
		if fits(x) && (first == nil || x.order < first.order) {
			first = x
		}
	}
	return first
}

// parkJoin makes a JoinGroup wait. One of the same member that waits already is
// from a connection that broke, most likely; it is told to try again.
func (m *Groups) parkJoin(g *group, x *member, call Call, version int16) {
	m.answerJoin(g, x, refuseJoin(x.id, wire.ErrRebalanceInProgress))
	x.join = parked{call, version}
	g.joining++
}

// answerJoin answers the member's JoinGroup, if one waits.
func (m *Groups) answerJoin(g *group, x *member, r *kmsg.JoinGroupResponse) {
	if x.join.call == 0 {
		return
	}
	m.answer(x.join.call, r)
	x.join = parked{}
	g.joining--
}

// answerSync answers the member's SyncGroup, if one waits.
func (m *Groups) answerSync(x *member, r *kmsg.SyncGroupResponse) {
	if x.sync.call == 0 {
		return
	}
	m.answer(x.sync.call, r)
	x.sync = parked{}
}

// alive starts the member's session anew.
func (m *Groups) alive(now time.Time, x *member) { m.timers.set(&x.timer, now.Add(x.session)) }

// sessionOver removes a member that has been silent for too long. One that has
// a request parked here is not silent: its clock starts with the answer. Only a
// new member can run out of time while it waits.
func (m *Groups) sessionOver(now time.Time, g *group, x *member) {
	if !x.fresh && (x.join.call != 0 || x.sync.call != 0) {
		return
	}
	m.remove(g, x, wire.ErrUnknownMemberID)
	m.afterRemoval(now, g)
}
