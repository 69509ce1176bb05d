package group

import (
	"time"

	"millrace/coord/group/record"
)

// Replay takes in one record of the log, in order, before Loaded. Nothing comes
// out. Records of other protocols are passed over. An error leaves the state as
// it was: the record cannot be read. Nothing of the record is kept.
func (m *Groups) Replay(r record.Record) error {
	key, err := record.ParseKey(r.Key)
	if err != nil {
		return err
	}
	switch key.Kind {
	case record.OfCommit:
		return m.replayCommit(key, r.Value)
	case record.OfGroup:
		return m.replayGroup(key.Group, r.Value)
	case record.Other:
		return nil
	}
	return m.replayConsumer(key, r.Value)
}

func (m *Groups) replayCommit(key record.Key, value []byte) error {
	at := topicPartition{key.Topic, key.Partition}
	if value == nil {
		if g := m.groups[key.Group]; g != nil {
			g.drop(at)
			m.forgetIfIdle(g)
		}
		return nil
	}
	c, err := record.ParseCommit(value)
	if err != nil {
		return err
	}
	m.find(key.Group).put(at, &c)
	return nil
}

func (m *Groups) replayGroup(id string, value []byte) error {
	if value == nil {
		// Its commits, if it has any, have records of their own.
		if old := m.groups[id]; old != nil && old.modern != nil {
			old.recorded = false
		} else if old != nil {
			delete(m.groups, id)
			if len(old.commits) > 0 {
				m.find(id).commits = old.commits
			}
		}
		return nil
	}
	r, err := record.ParseGroup(value)
	if err != nil {
		return err
	}
	old := m.groups[id]
	delete(m.groups, id)
	g := m.find(id)
	if old != nil {
		g.commits = old.commits
	}
	g.recorded = true
	g.generation, g.protocolType, g.protocol, g.since = r.Generation, r.ProtocolType, r.Protocol, r.Since
	for i := range r.Members {
		m.replayMember(g, &r.Members[i])
	}
	if len(g.members) > 0 {
		g.state = Stable
		g.adrift = r.Leader == ""
		if g.leader = r.Leader; g.members[r.Leader] == nil {
			g.leader = g.ordered()[0].id
		}
	}
	return nil
}

func (m *Groups) replayMember(g *group, r *record.Member) {
	x := &member{
		id: r.ID, instance: r.Instance, clientID: r.ClientID, host: r.ClientHost, synced: true,
		rebalance: millis(r.RebalanceMs), session: millis(r.SessionMs),
		protocols: []protocol{{g.protocol, r.Subscription}}, assignment: r.Assignment,
	}
	m.add(g, x)
}

// Loaded ends the replay: sessions begin, and commits for topics that are gone,
// or were made anew since, are dropped: the broker may have stopped between the
// deletion of a topic and the end of its commits.
func (m *Groups) Loaded(now time.Time, topics Topics) {
	for _, g := range m.groups {
		for _, x := range g.members {
			m.alive(now, x)
		}
		if g.adrift {
			m.prepare(now, g) // as the downgrade would have
		}
		m.consumersLoaded(now, g)
		var ended []topicPartition
		for topic, partitions := range g.commits {
			t, ok := topics.Topic(topic)
			for index, c := range partitions {
				if !ok || c.TopicID != [16]byte{} && c.TopicID != t.ID {
					ended = append(ended, topicPartition{topic, index})
				}
			}
		}
		m.endCommits(g, ended)
	}
}
