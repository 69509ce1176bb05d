package group

import (
	"fmt"
	"time"

	"millrace/coord/group/assign"
	"millrace/coord/group/embedded"
	"millrace/coord/group/record"
	"millrace/wire"
)

// upgrade makes a classic group with members one of the next-generation
// protocol, because of the beat of the first such member, which must call write
// in its step. The members stay, each with the partitions of its last
// assignment; they are told to join again, and speak on as they did. Those that
// have never been answered have nothing yet, and are told to join anew.
func (m *Groups) upgrade(g *group, b *beat) (write func(s *step), code int16, why string) {
	cannot := func(why string) (func(*step), int16, string) {
		return nil, wire.ErrGroupIDNotFound, fmt.Sprintf("Cannot upgrade classic group %s to consumer group because %s.", g.id, why)
	}
	switch limit := m.settings.Consumer.MaxSize; {
	case !m.settings.Migration.Upgrade:
		return cannot("online upgrade is disabled (group.consumer.migration.policy)")
	case g.protocolType != consumers:
		return cannot("the group does not use the consumer embedded protocol")
	case len(g.members) > limit:
		return cannot(fmt.Sprintf("its %d members exceed the consumer group maximum size of %d (group.consumer.max.size)", len(g.members), limit))
	}
	n, err := m.upgradeOf(g)
	if err != nil {
		return cannot(err.Error())
	}
	if _, code, why := m.claim(n, b); code != wire.ErrNone {
		return nil, code, why
	}
	was := m.suspendClassic(g)
	g.modern = n
	return func(s *step) {
		s.endClassic()
		s.begin()
		s.failed = append(s.failed, func(now time.Time) { m.resumeClassic(now, g, was) })
	}, wire.ErrNone, ""
}

// upgradeOf is a classic group as one of the next-generation protocol. Nothing
// is changed.
func (m *Groups) upgradeOf(g *group) (*modern, error) {
	n := m.newModern(g)
	n.epoch, n.targetEpoch = g.generation, g.generation
	known := m.topics()
	for _, x := range g.ordered() {
		if x.fresh {
			continue
		}
		c, err := x.asConsumer(g, known)
		if err != nil {
			return nil, err
		}
		for p := range c.assigned {
			if owner := n.owners[p]; owner != "" {
				return nil, fmt.Errorf("its leader has given partition %d of one topic to both %s and %s", p.Partition, owner, x.id)
			}
		}
		n.put(c)
		n.target[c.id] = c.assigned.places()
	}
	return n, nil
}

// asConsumer is a member of a classic group as one of the next-generation
// protocol that speaks the classic one.
func (x *member) asConsumer(g *group, known Topics) (*consumer, error) {
	told, err := embedded.ParseSubscription(x.metadata(g.protocol))
	if err != nil {
		return nil, fmt.Errorf("the embedded consumer protocol is malformed: member %s: %w", x.id, err)
	}
	had, err := embedded.ParseAssignment(x.assignment)
	switch {
	case err != nil:
		return nil, fmt.Errorf("the embedded consumer protocol is malformed: member %s: %w", x.id, err)
	case len(had.UserData) > 0:
		return nil, fmt.Errorf("an unsupported custom assignor is in use: the assignment of member %s has user data", x.id)
	}
	epoch := g.generation
	if x.came != 0 { // a downgrade a moment ago: all it knows is its epoch of before
		epoch = x.came
	}
	c := &consumer{id: x.id, epoch: epoch, previous: epoch, assigned: holding{}, revoking: holding{}}
	for _, p := range placesOf(had.Topics, known) {
		c.assigned[p] = epoch
	}
	c.said = record.Consumer{
		Instance: x.instance, Rack: told.Rack, ClientID: x.clientID, ClientHost: x.host, Topics: told.Topics,
		RebalanceMs: int32(x.rebalance.Milliseconds()), Classic: classicOf(x.session, x.protocols),
	}
	return c, nil
}

func classicOf(session time.Duration, protocols []protocol) *record.Classic {
	c := &record.Classic{SessionMs: int32(session.Milliseconds())}
	for _, p := range protocols {
		c.Protocols = append(c.Protocols, record.Protocol{Name: p.name, Metadata: p.metadata})
	}
	return c
}

// placesOf finds partitions by the names of their topics; of topics that are
// gone there are none.
func placesOf(topics []embedded.Topic, known Topics) (out []assign.Place) {
	for i := range topics {
		t, ok := Topic{}, false
		if known != nil {
			t, ok = known.Topic(topics[i].Name)
		}
		if !ok {
			continue
		}
		for _, p := range topics[i].Partitions {
			out = append(out, assign.Place{Topic: t.ID, Partition: p})
		}
	}
	return out
}

// suspendClassic takes away what makes the group classic, and returns it. Who
// waits is told to join again; ids that were handed out need not be known then.
func (m *Groups) suspendClassic(g *group) classicState {
	m.timers.stop(&g.rebalance.timer)
	m.timers.stop(&g.syncing)
	g.assigning = false
	for id, p := range g.pending {
		m.dropPending(g, id, p)
	}
	for _, x := range g.ordered() {
		m.answerJoin(g, x, refuseJoin(x.id, wire.ErrRebalanceInProgress))
		m.answerSync(x, refuseSync(wire.ErrRebalanceInProgress))
		m.timers.stop(&x.timer)
	}
	was := g.classicState
	g.classicState = newClassicState()
	return was
}

// resumeClassic is for an upgrade that could not be written. Sessions begin
// anew, and so does a rebalance that was going on.
func (m *Groups) resumeClassic(now time.Time, g *group, was classicState) {
	m.endModern(g)
	g.classicState = was
	for _, x := range g.members {
		m.alive(now, x)
	}
	switch g.state {
	case Empty: // nobody has been in it
	case Stable:
		m.watchSync(now, g)
	default:
		m.prepare(now, g)
	}
}

// begin writes all of a group that has just become what it is.
func (s *step) begin() {
	g, n := s.g, s.g.modern
	if n.epoch == 0 {
		return // without members; its first epoch is yet to come
	}
	members := n.ordered()
	for _, x := range members {
		s.add(record.OfConsumer(g.id, x.id, &x.said))
	}
	s.add(record.OfConsumerEpoch(g.id, record.Epoch{Epoch: n.epoch, Hash: n.hash}))
	for _, x := range members {
		s.add(targetRecord(g.id, x.id, n.target[x.id]))
	}
	s.add(record.OfTargetEpoch(g.id, record.TargetEpoch{Epoch: n.targetEpoch, At: n.assignedAt}))
	for _, x := range members {
		s.add(currentRecord(g.id, x))
		s.touched[x.id] = true
	}
}
