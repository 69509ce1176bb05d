package group

import (
	"fmt"
	"slices"
	"time"

	"millrace/coord/group/record"
	"millrace/wire"
)

// replayConsumer takes in one record of a modern group.
func (m *Groups) replayConsumer(key record.Key, value []byte) error {
	g := m.groups[key.Group]
	if value == nil {
		if g != nil && g.modern != nil {
			m.replayConsumerEnd(g, key)
		}
		return nil
	}
	parsed, err := parseConsumerValue(key.Kind, value)
	if err != nil {
		return err
	}
	n := m.becomeModern(key.Group)
	x := consumer{id: key.Member, assigned: holding{}, revoking: holding{}}
	if old := n.members[key.Member]; old != nil {
		x = *old
	}
	switch v := parsed.(type) {
	case record.Epoch:
		n.epoch, n.hash = v.Epoch, v.Hash
	case record.TargetEpoch:
		n.targetEpoch, n.assignedAt = v.Epoch, v.At
	case record.Consumer:
		if x.said = v; v.Classic != nil && len(v.Classic.Protocols) == 0 {
			x.said.Classic = nil // as old records read that say nothing of it
		}
		slices.Sort(x.said.Topics)
		n.put(&x)
	case record.Current:
		x.epoch, x.previous, x.state = v.Epoch, v.Previous, v.State
		x.assigned, x.revoking = holdingOf(v.Assigned, v.Epoch), holdingOf(v.Revoking, v.Epoch)
		n.put(&x)
	case []record.Partitions:
		n.target[key.Member] = holdingOf(v, 0).places()
	case record.Pattern:
		p := n.patterns[key.Member]
		if p == nil {
			p = &pattern{}
			n.patterns[key.Member] = p
		}
		p.topics = v.Topics
		slices.Sort(p.topics)
	}
	return nil
}

func parseConsumerValue(kind record.Kind, value []byte) (any, error) {
	switch kind {
	case record.OfEpoch:
		return parsedAs(record.ParseEpoch(value))
	case record.OfWholeTarget:
		return parsedAs(record.ParseTargetEpoch(value))
	case record.OfMember:
		return parsedAs(record.ParseConsumer(value))
	case record.OfMemberCurrent:
		return parsedAs(record.ParseCurrent(value))
	case record.OfMemberTarget:
		return parsedAs(record.ParseTarget(value))
	case record.OfTopicPattern:
		return parsedAs(record.ParsePattern(value))
	}
	panic(fmt.Sprintf("group: a record of kind %d is not a consumer group's", kind))
}

func parsedAs[T any](v T, err error) (any, error) { return v, err }

func (m *Groups) replayConsumerEnd(g *group, key record.Key) {
	n := g.modern
	x := n.members[key.Member]
	switch key.Kind {
	case record.OfEpoch: // the last that is written of a group
		m.endModern(g)
		m.forgetIfIdle(g)
	case record.OfWholeTarget:
		n.targetEpoch, n.assignedAt = 0, 0
	case record.OfMember:
		if x != nil {
			n.forget(x)
		}
	case record.OfMemberCurrent:
		if x != nil {
			n.put(&consumer{id: x.id, said: x.said, assigned: holding{}, revoking: holding{}})
		}
	case record.OfMemberTarget:
		delete(n.target, key.Member)
	case record.OfTopicPattern:
		if p := n.patterns[key.Member]; p != nil && p.users == 0 {
			delete(n.patterns, key.Member)
		}
	}
}

// becomeModern finds a group of this protocol while the log is read. What the
// log has of a classic one of that name has been overtaken.
func (m *Groups) becomeModern(id string) *modern {
	g := m.find(id)
	if g.modern != nil {
		return g.modern
	}
	if g.recorded || len(g.members) > 0 {
		commits := g.commits
		delete(m.groups, id)
		g = m.find(id)
		g.commits, g.recorded = commits, true // its record is still there: it is ended with the group
	}
	g.modern = m.newModern(g)
	return g.modern
}

// consumersLoaded begins the sessions of a group.
func (m *Groups) consumersLoaded(now time.Time, g *group) {
	if g.modern == nil {
		return
	}
	for id := range g.modern.members {
		m.mind(now, g, g.modern, id, true)
	}
	m.mindTarget(now, g)
}

// canBecomeModern says whether nobody is in a group of the classic protocol, or
// of none. Who was given an id may be on the way.
func (g *group) canBecomeModern() bool { return g.state == Empty && len(g.members) == 0 }

// consumerEnds ends all that the log has of a group without members.
func (g *group) consumerEnds() (out []record.Record) {
	for name := range g.modern.patterns {
		out = append(out, record.PatternEnd(g.id, name))
	}
	if g.modern.epoch > 0 {
		out = append(out, record.ConsumersEnd(g.id)...)
	}
	return out
}

// becomeClassic lets an empty group speak the classic protocol again. Its
// commits stay, and who waits finds it so.
func (m *Groups) becomeClassic(now time.Time, g *group) {
	n := g.modern
	ends := g.consumerEnds()
	m.endModern(g)
	g.classicState = newClassicState()
	g.become(Empty, now)
	defer m.runAgain(now, n)
	if len(ends) > 0 {
		m.write(ends, func(time.Time, int16) {
			// If it is lost, the record of the classic group, which comes later,
			// says what the group is.
		})
	}
}

// removedModern follows the end of the write that ends a group: those who have
// come meanwhile find it new, or as it was. n is what it was then; nil: classic.
func (m *Groups) removedModern(now time.Time, g *group, n *modern, code int16) {
	if n == nil {
		return
	}
	n.writing = false
	if code != wire.ErrNone {
		m.turn(now, g)
		return
	}
	m.endModern(g)
	m.runAgain(now, n)
}
