package group

import (
	"time"

	"millrace/coord/group/assign"
	"millrace/coord/group/embedded"
	"millrace/coord/group/record"
)

// downgrade makes a group of the next-generation protocol classic again when all
// its members speak that: in the log with the step that runs, in memory when
// that is durable. It says whether it does. Until the step is over everybody
// waits.
func (m *Groups) downgrade(now time.Time, s *step) bool {
	n := s.g.modern
	if !m.settings.Migration.Downgrade || len(n.members) == 0 || len(n.members) > m.settings.MaxSize || n.classics() < len(n.members) {
		return false
	}
	members := n.ordered()
	d := &group{id: s.g.id, classicState: newClassicState()}
	d.state, d.since, d.generation, d.protocolType = Stable, now.UnixMilli(), n.epoch, consumers
	for _, x := range members {
		m.add(d, x.asClassic(m.topics()))
	}
	d.protocol, d.leader = d.selectProtocol(), ""
	for _, x := range members {
		s.add(record.ConsumerEnd(s.g.id, x.id)...)
	}
	s.add(s.g.consumerEnds()...)
	// Without a leader: who reads the record knows that all have to join.
	s.add(d.stateRecord(func(x *member) []byte { return x.assignment }))
	s.becomes = d
	return true
}

// classics is how many members speak the classic protocol.
func (n *modern) classics() (count int) {
	for _, x := range n.members {
		if x.said.Classic != nil {
			count++
		}
	}
	return count
}

// asClassic is a member of a classic group as it was one in this. What it may be
// using is its assignment until the rebalance that follows.
func (x *consumer) asClassic(known Topics) *member {
	c := x.said.Classic
	y := &member{
		id: x.id, instance: x.said.Instance, clientID: x.said.ClientID, host: x.said.ClientHost, synced: true, came: x.epoch,
		rebalance: millis(x.said.RebalanceMs), session: millis(c.SessionMs),
	}
	for _, p := range c.Protocols {
		y.protocols = append(y.protocols, protocol{p.Name, p.Metadata})
	}
	using := make(holding, len(x.assigned)+len(x.revoking))
	for _, h := range []holding{x.assigned, x.revoking} {
		for p, epoch := range h {
			using[p] = epoch
		}
	}
	y.assignment = assignmentFor(c, using.places(), known)
	return y
}

// assignmentFor tells a member of the classic protocol what it shall read, in the
// version that it knows.
func assignmentFor(c *record.Classic, places []assign.Place, known Topics) []byte {
	var version int16
	if told, err := embedded.ParseSubscription(c.Protocols[0].Metadata); err == nil {
		version = told.Version
	}
	var topics []embedded.Topic
	for _, t := range named(places, known) {
		topics = append(topics, embedded.Topic{Name: t.Topic, Partitions: t.Partitions})
	}
	return embedded.FormatAssignment(version, topics)
}

// downgraded follows the end of that step: all members have to join, so that
// one of them leads and all partitions are given out.
func (m *Groups) downgraded(now time.Time, g, d *group) {
	m.endModern(g)
	g.classicState, g.recorded = d.classicState, true
	for _, x := range g.ordered() {
		m.bind(g, x)
		m.alive(now, x)
		if g.leader == "" {
			g.leader = x.id
		}
	}
	m.prepare(now, g)
}
