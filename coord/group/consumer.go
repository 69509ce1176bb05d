package group

import (
	"maps"
	"slices"
	"time"

	"millrace/coord/group/assign"
	"millrace/coord/group/record"
)

// ConsumerSettings hold for all groups of the next-generation protocol.
type ConsumerSettings struct {
	Enabled   bool
	Session   time.Duration
	Heartbeat time.Duration        // members are told to beat this often
	Interval  func() time.Duration // at least between two runs of an assignor for a group
	MaxSize   int                  // members of one group
	Assignors []string             // that members may choose; the first is for those who do not

	// Of tells what holds for one group, if that is something else; nil: nothing is.
	Of func(group string) ConsumerTimes
}

// ConsumerTimes are the times of one group.
type ConsumerTimes struct{ Session, Heartbeat, Interval time.Duration }

// times are those that hold for a group now.
func (s *ConsumerSettings) times(group string) ConsumerTimes {
	if s.Of != nil {
		return s.Of(group)
	}
	return ConsumerTimes{s.Session, s.Heartbeat, s.Interval()}
}

// modern is a group of the next-generation protocol (KIP-848): the broker
// assigns, and each member goes to its target by itself, at its own heartbeats.
//
// epoch rises with everything that may call for another assignment; an assignor
// makes a target for it (targetEpoch); a member that has given up what it must
// takes over the epoch of the target and what others have released.
//
// All that a restart must find changes through a [step], one write at a time.
type modern struct {
	epoch       int32 // 0: nothing of it is in the log
	hash        int64 // of the topics that members read, as of epoch
	targetEpoch int32
	assignedAt  int64 // ms, when an assignor made the target; 0: never

	members   map[string]*consumer // a member never changes, it is replaced
	instances map[string]*consumer // the static ones
	target    map[string][]assign.Place
	owners    map[assign.Place]string // member ids (G2)
	patterns  map[string]*pattern     // those that a member reads by

	seen    uint64 // Groups.topicsSeen when the topics were looked at
	lives   map[string]*life
	writing bool // a step is on its way into the log
	queue   []*consumerOp
	assign  timer // an assignor may run again
}

// Member states, as the log has them.
const (
	settled    int8 = 0 // has what it shall have at its epoch
	unrevoked  int8 = 1 // has been told to give something up
	unreleased int8 = 2 // waits for what another has not given up
)

// Epochs with a meaning, in ConsumerGroupHeartbeat.
const (
	epochJoins  int32 = 0
	epochLeaves int32 = -1
	epochAway   int32 = -2 // a static member that will be back
)

// consumer is a member of a modern group. It never changes.
type consumer struct {
	id       string
	said     record.Consumer
	epoch    int32
	previous int32 // the epoch before; a member that has missed an answer still names it
	state    int8
	assigned holding
	revoking holding // state unrevoked: told to give up
}

// holding is partitions, each with the epoch at which it was assigned.
type holding map[assign.Place]int32

// life is what a member has while it is alive; never in the log.
type life struct {
	session   timer
	rebalance timer   // on while it is told to give up
	revoking  holding // what
	behind    timer   // of the classic protocol: on while it owes a JoinGroup or a SyncGroup
}

// pattern is what a pattern of topic names has come to.
type pattern struct {
	topics []string // in order
	users  int      // members that read by it
}

// State names, beside those of the classic protocol.
const (
	stateAssigning   = "Assigning"
	stateReconciling = "Reconciling"
)

func (m *Groups) newModern(g *group) *modern {
	n := &modern{
		members: map[string]*consumer{}, instances: map[string]*consumer{}, target: map[string][]assign.Place{},
		owners: map[assign.Place]string{}, patterns: map[string]*pattern{}, lives: map[string]*life{},
	}
	n.assign.fire = func(now time.Time) { m.enqueue(now, g, m.assignOp(g)) }
	return n
}

// endModern lets a group have no protocol, or the classic one. Its alarms go.
func (m *Groups) endModern(g *group) {
	m.timers.stop(&g.modern.assign)
	for _, l := range g.modern.lives {
		m.endLife(l)
	}
	g.modern = nil
}

func (m *Groups) endLife(l *life) {
	m.timers.stop(&l.session)
	m.timers.stop(&l.rebalance)
	m.timers.stop(&l.behind)
}

// session is how long the member may be silent.
func (x *consumer) session(s *Settings, group string) time.Duration {
	if x.said.Classic != nil {
		return millis(x.said.Classic.SessionMs)
	}
	return s.Consumer.times(group).Session
}

// vacant says that nobody is in the group, and nobody on the way in or out.
func (n *modern) vacant() bool {
	return len(n.members) == 0 && !n.writing && len(n.queue) == 0
}

// stateName is what the group does, as administrators see it.
func (n *modern) stateName() string {
	switch {
	case len(n.members) == 0:
		return Empty.String()
	case n.epoch > n.targetEpoch:
		return stateAssigning
	}
	for _, x := range n.members {
		if x.state != settled || x.epoch != n.targetEpoch {
			return stateReconciling
		}
	}
	return Stable.String()
}

// topicsOf lists what a member reads, each once, in order; also what does not exist.
func (n *modern) topicsOf(x *consumer) []string {
	p := n.patternOf(x)
	if p == nil || len(p.topics) == 0 {
		return x.said.Topics
	}
	all := slices.Concat(x.said.Topics, p.topics)
	slices.Sort(all)
	return slices.Compact(all)
}

func (n *modern) patternOf(x *consumer) *pattern {
	if x.said.Pattern == nil {
		return nil
	}
	return n.patterns[*x.said.Pattern]
}

// subscribes says whether a member reads the topic.
func (n *modern) subscribes(topic string) bool {
	for _, x := range n.members {
		if _, ok := slices.BinarySearch(x.said.Topics, topic); ok {
			return true
		}
	}
	for _, p := range n.patterns {
		if _, ok := slices.BinarySearch(p.topics, topic); ok {
			return true
		}
	}
	return false
}

// put takes in a member, in place of what it was. Returns that.
func (n *modern) put(x *consumer) (old *consumer) {
	if old = n.members[x.id]; old != nil {
		n.forget(old)
	}
	n.members[x.id] = x
	if x.said.Instance != nil {
		n.instances[*x.said.Instance] = x
	}
	for _, h := range []holding{x.assigned, x.revoking} {
		for p := range h {
			n.owners[p] = x.id
		}
	}
	if x.said.Pattern != nil {
		p := n.patterns[*x.said.Pattern]
		if p == nil {
			p = &pattern{}
			n.patterns[*x.said.Pattern] = p
		}
		p.users++
	}
	return old
}

// forget takes out a member. A pattern that nobody uses stays until it is ended.
func (n *modern) forget(x *consumer) {
	delete(n.members, x.id)
	if i := x.said.Instance; i != nil && n.instances[*i] == x {
		delete(n.instances, *i)
	}
	for _, h := range []holding{x.assigned, x.revoking} {
		for p := range h {
			if n.owners[p] == x.id {
				delete(n.owners, p)
			}
		}
	}
	if p := n.patternOf(x); p != nil {
		p.users--
	}
}

// ordered lists the members by id.
func (n *modern) ordered() []*consumer {
	out := make([]*consumer, 0, len(n.members))
	for _, id := range slices.Sorted(maps.Keys(n.members)) {
		out = append(out, n.members[id])
	}
	return out
}

// partitionsOf turns a holding into what the log and answers have.
func partitionsOf(h holding) []record.Partitions {
	var out []record.Partitions
	for _, p := range h.places() {
		if len(out) == 0 || out[len(out)-1].Topic != p.Topic {
			out = append(out, record.Partitions{Topic: p.Topic})
		}
		last := &out[len(out)-1]
		last.Partitions, last.Epochs = append(last.Partitions, p.Partition), append(last.Epochs, h[p])
	}
	return out
}

// places lists a holding in order.
func (h holding) places() []assign.Place {
	out := make([]assign.Place, 0, len(h))
	for p := range h {
		out = append(out, p)
	}
	slices.SortFunc(out, assign.Compare)
	return out
}

// holdingOf is the way back. Partitions whose epoch was not told have the
// member's.
func holdingOf(list []record.Partitions, epoch int32) holding {
	h := holding{}
	for i := range list {
		p := &list[i]
		for k, index := range p.Partitions {
			at := epoch
			if k < len(p.Epochs) {
				at = p.Epochs[k]
			}
			h[assign.Place{Topic: p.Topic, Partition: index}] = at
		}
	}
	return h
}

func contains(sorted []assign.Place, p assign.Place) bool {
	_, ok := slices.BinarySearchFunc(sorted, p, assign.Compare)
	return ok
}
