package group

import (
	"encoding/binary"
	"slices"
	"time"

	"millrace/coord/group/embedded"
	"millrace/coord/group/record"
	"millrace/wire"
)

// State is what a group is doing.
type State int8

// The states, in the order of a group's life. A group that is gone (Kafka's
// Dead) is simply not there.
const (
	Empty      State = iota // no members; there may be commits
	Preparing               // collects JoinGroup
	Completing              // has answered JoinGroup, waits for the leader's assignment
	Stable
)

// String is the name that DescribeGroups and ListGroups tell.
func (s State) String() string {
	return [...]string{"Empty", "PreparingRebalance", "CompletingRebalance", "Stable"}[s]
}

// consumers is the protocol type whose metadata we can read.
const consumers = embedded.ProtocolType

// group is one group. Its name stands in Groups.groups exactly while it lives.
type group struct {
	id string
	classicState

	rebalance rebalance // state Preparing
	syncing   timer     // somebody is late with SyncGroup
	syncFrom  time.Time // when the generation was told to its members
	commits   map[string]map[int32]*record.Commit
	inflight  map[topicPartition]int // commits being written
	recorded  bool                   // the log has a record of the (classic) group itself

	modern *modern // of the next-generation protocol; nil: classic, or never had members
}

// classicState is what a group of the classic protocol is, but for its alarms.
// That of a group of the next-generation protocol is as new.
type classicState struct {
	state State
	since int64 // ms, when the state began; record.None if no record told

	generation   int32
	protocolType string // "" if it never had members: only commits
	protocol     string // of the generation; "" without members
	leader       string // member id

	members   map[string]*member
	instances map[string]*member    // the static ones
	pending   map[string]*pendingID // ids handed out and not used yet
	votes     map[string]int        // protocol → members that can speak it
	joining   int                   // members with a parked JoinGroup
	unsynced  int                   // members of the generation that have not sent SyncGroup
	assigning bool                  // the leader's assignment is being written
	adrift    bool                  // replayed as it came from the next-generation protocol: nobody leads it
}

func newClassicState() classicState {
	return classicState{since: record.None, members: map[string]*member{}, instances: map[string]*member{}, pending: map[string]*pendingID{}, votes: map[string]int{}}
}

type topicPartition struct {
	topic     string
	partition int32
}

// pendingID is a member id that waits for its member.
type pendingID struct{ timer timer }

// find returns a group, made if it was not there.
func (m *Groups) find(id string) *group {
	if g := m.groups[id]; g != nil {
		return g
	}
	g := &group{
		id: id, classicState: newClassicState(),
		commits: map[string]map[int32]*record.Commit{}, inflight: map[topicPartition]int{},
	}
	g.rebalance.timer.fire = func(now time.Time) { m.rebalanceLate(now, g) }
	g.syncing.fire = func(now time.Time) { m.syncLate(now, g) }
	m.groups[id] = g
	return g
}

// forgetIfIdle drops a group that holds nothing: one that was made for a
// request that came to nothing.
func (m *Groups) forgetIfIdle(g *group) {
	if m.groups[g.id] == g && g.idle() && !g.recorded && g.modern == nil {
		delete(m.groups, g.id)
	}
}

// idle says that nothing depends on the group.
func (g *group) idle() bool {
	return g.state == Empty && len(g.pending) == 0 && len(g.commits) == 0 && len(g.inflight) == 0
}

// vacant says that nobody is in the group.
func (g *group) vacant() bool { return g.state == Empty && (g.modern == nil || g.modern.vacant()) }

func (g *group) become(s State, now time.Time) {
	g.state, g.since = s, now.UnixMilli()
}

// validate says what is wrong with a member's claim to be one; 0 if nothing is.
func (g *group) validate(id string, instance *string) int16 {
	if instance != nil {
		switch m := g.instances[*instance]; {
		case m == nil:
			return wire.ErrUnknownMemberID
		case m.id != id:
			return wire.ErrFencedInstanceID // F061: the newer one has the place
		}
	}
	if g.members[id] == nil {
		return wire.ErrUnknownMemberID
	}
	return wire.ErrNone
}

// supports says whether a member with these protocols can be in the group.
func (g *group) supports(protocolType string, protocols []protocol) bool {
	if protocolType == "" || len(protocols) == 0 {
		return false
	}
	if len(g.members) == 0 {
		return true
	}
	return protocolType == g.protocolType && slices.ContainsFunc(protocols, func(p protocol) bool { return g.votes[p.name] == len(g.members) })
}

// selectProtocol is the vote: each member is for the first of its protocols
// that all can speak. Equal votes go to the one that the longest-standing
// member named first.
func (g *group) selectProtocol() string {
	count := map[string]int{}
	best := ""
	ordered := g.ordered()
	for _, m := range ordered {
		for _, p := range m.protocols {
			if g.votes[p.name] == len(g.members) {
				count[p.name]++
				break
			}
		}
	}
	for _, p := range ordered[0].protocols {
		if n := count[p.name]; n > 0 && (best == "" || n > count[best]) {
			best = p.name
		}
	}
	return best
}

// ordered lists the members as they joined.
func (g *group) ordered() []*member {
	out := make([]*member, 0, len(g.members))
	for _, m := range g.members {
		out = append(out, m)
	}
	slices.SortFunc(out, func(a, b *member) int {
		if a.order < b.order {
			return -1
		}
		return 1
	})
	return out
}

// subscribes says whether a member reads the topic. When we cannot tell, it does.
func (g *group) subscribes() func(topic string) bool {
	if g.modern != nil {
		return g.modern.subscribes
	}
	if len(g.members) == 0 || g.protocolType != consumers {
		return func(string) bool { return false }
	}
	topics := map[string]bool{}
	for _, m := range g.members {
		if !subscriptionOf(m.metadata(g.protocol), topics) {
			return func(string) bool { return true }
		}
	}
	return func(topic string) bool { return topics[topic] }
}

// subscriptionOf reads the topics of a consumer's metadata (version, then an
// array of names; what follows differs by version). False if it cannot be read.
func subscriptionOf(b []byte, into map[string]bool) bool {
	if len(b) < 6 {
		return false
	}
	n, b := int32(binary.BigEndian.Uint32(b[2:])), b[6:]
	for ; n > 0; n-- {
		if len(b) < 2 {
			return false
		}
		size := int(binary.BigEndian.Uint16(b))
		if b = b[2:]; size > len(b) {
			return false
		}
		into[string(b[:size])] = true
		b = b[size:]
	}
	return true
}

// stateRecord is the group as a restart shall find it.
func (g *group) stateRecord(assignment func(*member) []byte) record.Record {
	r := record.Group{ProtocolType: g.protocolType, Generation: g.generation, Protocol: g.protocol, Leader: g.leader, Since: g.since}
	for _, m := range g.ordered() {
		r.Members = append(r.Members, record.Member{
			ID: m.id, Instance: m.instance, ClientID: m.clientID, ClientHost: m.host,
			RebalanceMs: int32(m.rebalance.Milliseconds()), SessionMs: int32(m.session.Milliseconds()),
			Subscription: m.metadata(g.protocol), Assignment: assignment(m),
		})
	}
	g.recorded = true
	return record.OfState(g.id, &r)
}
