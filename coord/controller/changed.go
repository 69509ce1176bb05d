package controller

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"millrace/coord/controller/cluster"
	"millrace/coord/controller/znode"
)

// keepChanges is how long notifications of changed settings stay for brokers that have not read them, as Kafka has it.
const keepChanges = 15 * time.Minute

// changed acts on a watch that fired. What each path means is the table of the layout. Caller holds mu; nothing is stale.
func (s *Service) changed(path string) error {
	switch path {
	case znode.ConfigChanges, znode.OwnChanges:
		return s.readChanges(path)
	case znode.ControllerPath:
		return s.controllerChanged()
	case znode.BrokerPath(s.o.BrokerID):
		if err := s.selfChanged(); err != nil {
			return err
		}
	}
	if s.mu.lead == nil {
		return nil
	}
	switch {
	case path == znode.BrokerIDs, strings.HasPrefix(path, znode.BrokerIDs+"/"):
		return s.brokersChanged()
	case path == znode.Topics:
		return s.topicsChanged()
	case strings.HasPrefix(path, znode.Topics+"/"):
		return s.topicChanged(strings.TrimPrefix(path, znode.Topics+"/"))
	case path == znode.DeleteTopics:
		return s.deletions()
	case path == znode.ReassignPartitions:
		return s.moveTrigger()
	case path == znode.PreferredElection:
		return s.electionTrigger()
	case path == znode.ISRChanges:
		return s.statesChanged()
	case path == znode.LogDirEvents:
		return s.dirsFailed()
	}
	return nil
}

// controllerChanged: the office is vacant, or another's.
func (s *Service) controllerChanged() error {
	if s.mu.self == nil {
		return nil
	}
	stat, err := s.mu.conn.Exists(znode.ControllerPath, true)
	if err != nil {
		return err
	}
	if stat != nil && stat.EphemeralOwner == s.mu.conn.SessionID() && s.mu.lead != nil {
		return nil
	}
	s.resign("the office is not its own any more")
	if s.mu.epoch == 0 {
		return nil // not registered: elected when it is
	}
	s.mu.stale = false
	return s.elect()
}

// selfChanged registers this broker again if somebody has removed its node.
func (s *Service) selfChanged() error {
	stat, err := s.mu.conn.Exists(znode.BrokerPath(s.o.BrokerID), true)
	if err != nil || s.mu.self == nil || stat != nil && stat.EphemeralOwner == s.mu.conn.SessionID() {
		return err
	}
	s.mu.epoch = 0
	return s.register()
}

// standing are the topics that are not being deleted.
func (s *Service) standing() []*cluster.Topic {
	var out []*cluster.Topic
	state := s.mu.lead.state
	for _, name := range state.Names() {
		if t := state.Topics[name]; t.Deletion == nil {
			out = append(out, t)
		}
	}
	return out
}

// brokersChanged: brokers came, went, or moved. One that has gone and come again between two looks is treated as both.
func (s *Service) brokersChanged() error {
	now, err := s.readBrokers()
	if err != nil {
		return err
	}
	state := s.mu.lead.state
	c := state.Compare(now)
	moved := false
	for id, b := range now {
		if known := state.Brokers[id]; known != nil && known.Epoch == b.Epoch {
			b.ShuttingDown = known.ShuttingDown
			moved = moved || !sameBroker(known.Broker, b.Broker)
		}
	}
	if !moved && len(c.New)+len(c.Dead)+len(c.Bounced) == 0 {
		return nil
	}
	s.o.Logger.Info("brokers changed", "new", c.New, "dead", c.Dead, "bounced", c.Bounced)
	o := s.newOrders()
	o.brokers = true
	if len(c.Bounced) > 0 { // first as dead
		state.Brokers = without(now, c.Bounced)
		if err := s.reelect(s.standing(), o); err != nil {
			return err
		}
	}
	state.Brokers = now
	for _, id := range slices.Concat(c.New, c.Bounced) {
		o.all[id] = true
	}
	topics := s.standing()
	if err := s.bringAllUp(topics, o); err != nil {
		return err
	}
	return s.deletions()
}

func without(all map[int32]*cluster.Broker, these []int32) map[int32]*cluster.Broker {
	out := map[int32]*cluster.Broker{}
	for id, b := range all {
		if !slices.Contains(these, id) {
			out[id] = b
		}
	}
	return out
}

// topicsChanged: tools have made topics, or removed their nodes.
func (s *Service) topicsChanged() error {
	names, err := s.mu.conn.Children(znode.Topics, true)
	if err != nil {
		return err
	}
	state := s.mu.lead.state
	o := s.newOrders()
	var made []*cluster.Topic
	for _, name := range names {
		if state.Topics[name] != nil {
			continue
		}
		t, err := s.readTopic(name, true)
		if err != nil {
			return err
		}
		if t != nil {
			made = append(made, t)
		}
	}
	there := map[string]bool{}
	for _, name := range names {
		there[name] = true
	}
	for _, name := range state.Names() {
		if t := state.Topics[name]; !there[name] {
			o.delete(t)
			delete(state.Topics, name)
		}
	}
	for _, t := range made {
		for i := range t.Partitions {
			if err := s.readState(t, int32(i), nil); err != nil {
				return err
			}
		}
		state.Topics[t.Name] = t
		o.topic(t)
	}
	if err := s.bringUp(made, false, o); err != nil {
		return err
	}
	if len(made) == 0 && len(o.gone) == 0 {
		return nil
	}
	return o.send()
}

// topicChanged: a tool has given a topic more partitions.
func (s *Service) topicChanged(name string) error {
	t := s.topic(name)
	if t == nil {
		return nil // told with the list
	}
	next, err := s.readTopic(name, true)
	if err != nil || next == nil || next.Version == t.Version || t.Deletion != nil {
		return err
	}
	t.Version = next.Version
	if len(next.Partitions) <= len(t.Partitions) {
		return nil // replicas are moved by the trigger, not by hand
	}
	for i := len(t.Partitions); i < len(next.Partitions); i++ {
		if err := s.readState(next, int32(i), nil); err != nil {
			return err
		}
	}
	t.Partitions = append(t.Partitions, next.Partitions[len(t.Partitions):]...)
	o := s.newOrders()
	if err := s.bringUp([]*cluster.Topic{t}, false, o); err != nil {
		return err
	}
	return o.send()
}

// statesChanged: leaders of an older version have written in-sync sets themselves.
func (s *Service) statesChanged() error {
	contents, err := s.drain(znode.ISRChanges)
	if err != nil {
		return err
	}
	o := s.newOrders()
	for _, data := range contents {
		list, err := znode.DecodePartitions(data)
		if err != nil {
			s.o.Logger.Warn("a notification of changed in-sync sets is passed over", "error", err)
			continue
		}
		for _, p := range list {
			t := s.topic(p.Topic)
			if t == nil || t.Deletion != nil || p.Partition < 0 || int(p.Partition) >= len(t.Partitions) {
				continue
			}
			if err := s.readState(t, p.Partition, nil); err != nil {
				return err
			}
			read := t.Partitions[p.Partition]
			read.Phase = cluster.PhaseOf(read.Version >= 0, read.Leader, s.mu.lead.state.Live)
			o.partition(t, p.Partition)
		}
	}
	if err := o.send(); err != nil {
		return err
	}
	return s.goOnMoving(s.standing())
}

// dirsFailed: brokers say that they lost a data directory. They are told all again, so that they answer which replicas are gone.
func (s *Service) dirsFailed() error {
	contents, err := s.drain(znode.LogDirEvents)
	if err != nil {
		return err
	}
	o := s.newOrders()
	for _, data := range contents {
		event, err := znode.DecodeLogDirEvent(data)
		if err != nil {
			s.o.Logger.Warn("a notification of a failed data directory is passed over", "error", err)
			continue
		}
		if s.mu.lead.state.Live(event.Broker) {
			o.all[event.Broker] = true
		}
	}
	return o.send()
}

// followSettings reads all settings, those of these topics among them, and follows both queues from here on. Caller holds mu.
func (s *Service) followSettings(topics []string) (*settings, error) {
	for _, queue := range []string{znode.ConfigChanges, znode.OwnChanges} {
		names, err := s.mu.conn.Children(queue, true)
		if err != nil {
			return nil, err
		}
		last := int64(-1)
		for _, name := range names {
			if n, err := znode.Sequence(name); err == nil {
				last = max(last, n)
			}
		}
		s.mu.changes[queue] = last
	}
	clear(s.mu.own)
	return s.readSettings(topics)
}

// readChanges takes over the settings that a queue tells of, each once, and removes notifications that all have had time to read.
func (s *Service) readChanges(queue string) error {
	names, err := s.mu.conn.Children(queue, true)
	if err != nil {
		return err
	}
	slices.Sort(names)
	changed := map[string]map[string]string{}
	last := s.mu.changes[queue]
	for _, name := range names {
		n, err := znode.Sequence(name)
		if err != nil {
			continue // not one of ours
		}
		if n <= s.mu.changes[queue] {
			continue
		}
		last = max(last, n)
		if own := queue + "/" + name; s.mu.own[own] {
			delete(s.mu.own, own) // taken over when it was written
			continue
		}
		data, _, err := s.mu.conn.Get(queue+"/"+name, false)
		if isNoNode(err) {
			continue
		}
		if err != nil {
			return err
		}
		entity, err := znode.DecodeChange(data)
		if err == nil {
			changed[entity], _, err = readEntity(s.mu.conn, entity)
		}
		if err != nil {
			return fmt.Errorf("%s/%s: %w", queue, name, err)
		}
	}
	if len(changed) > 0 {
		if err := s.member.adopt(changed); err != nil {
			s.o.Logger.Warn("a notification of changed settings is passed over", "error", err)
		}
		if s.mu.lead != nil {
			s.uncleanNow(nil)
		}
	}
	s.mu.changes[queue] = last
	return s.purge(queue, names)
}

// purge removes old notifications. Another broker may be doing the same.
func (s *Service) purge(queue string, names []string) error {
	limit := s.o.Now().Add(-keepChanges).UnixMilli()
	for _, name := range names { // oldest first
		stat, err := s.mu.conn.Exists(queue+"/"+name, false)
		if err != nil {
			return err
		}
		if stat == nil {
			continue
		}
		if stat.Ctime >= limit {
			return nil
		}
		if _, err := multi(s.mu.conn, remove(queue+"/"+name)); err != nil && !isNoNode(err) {
			return err
		}
	}
	return nil
}
