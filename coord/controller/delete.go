package controller

import (
	"errors"

	"millrace/coord/controller/cluster"
	"millrace/coord/controller/znode"
)

// deletions goes on with every topic that is asked to be deleted, as far as each can go now (see cluster.Deletion). Caller holds mu and leads.
func (s *Service) deletions() error {
	requests, err := s.mu.conn.Children(znode.DeleteTopics, true)
	if err != nil {
		return err
	}
	state := s.mu.lead.state
	for _, name := range requests {
		t := state.Topics[name]
		if t == nil { // of no topic: nothing to do, as for Kafka
			stat, err := s.mu.conn.Exists(znode.TopicPath(name), false)
			if err != nil {
				return err
			}
			if stat == nil {
				if _, err := s.fenced(remove(znode.DeletePath(name))); err != nil {
					return err
				}
			}
			continue
		}
		if t.Deletion == nil {
			t.Deletion = t.Begin()
		}
	}
	o := s.newOrders()
	var ready []*cluster.Topic
	for _, name := range state.Names() {
		t := state.Topics[name]
		if t.Deletion == nil {
			continue
		}
		o.delete(t) // clients are not to see it from now on
		if !state.Waits(t) {
			ready = append(ready, t)
		}
	}
	if err := s.stopTopics(ready, o); err != nil {
		return err
	}
	if err := o.send(); err != nil {
		return err
	}
	var done []*cluster.Topic
	for _, t := range ready {
		if err := s.stopReplicas(t); err != nil {
			return err
		}
		if !t.Deletion.Done() {
			s.o.Logger.Warn("a topic's deletion waits for a broker that did not delete its replicas", "topic", t.Name)
			continue
		}
		done = append(done, t)
	}
	return s.removeTopics(done)
}

// removeTopics removes the nodes of topics, those of as many in one multi as fit: each is removed whole there, or not at all. What one topic's nodes
// forbid is done topic by topic.
func (s *Service) removeTopics(topics []*cluster.Topic) error {
	for len(topics) > 0 {
		var ops []any
		n, size := 0, 0
		for ; n < len(topics); n++ {
			below := nodesBelow(topics[n])
			if below == nil {
				break
			}
			all, _ := removals(topics[n], below, true)
			bytes := 0
			for _, op := range all {
				bytes += sizeOf(op)
			}
			if size += bytes; size > s.o.batch {
				break
			}
			ops = append(ops, all...)
		}
		if n > 1 {
			_, err := s.fenced(ops...)
			if err == nil {
				for _, t := range topics[:n] {
					delete(s.mu.lead.state.Topics, t.Name)
				}
				topics = topics[n:]
				continue
			}
			if !errors.As(err, new(*refused)) {
				return err
			}
		}
		n = max(n, 1)
		for _, t := range topics[:n] {
			if err := s.removeTopic(t); err != nil {
				return err
			}
		}
		topics = topics[n:]
	}
	return nil
}

// stopTopics writes that nobody leads the topics' partitions any more.
func (s *Service) stopTopics(topics []*cluster.Topic, o *orders) error {
	var changes []change
	for _, t := range topics {
		for i, p := range t.Partitions {
			if p.Phase == cluster.New || p.Leader == cluster.NoLeader {
				continue
			}
			next := p.Lead(cluster.Choice{Leader: cluster.NoLeader, ISR: p.ISR, Recovering: p.Recovering}, s.mu.lead.epoch)
			changes = append(changes, change{t, int32(i), next})
		}
	}
	return s.write(changes, o)
}

// stopReplicas has the brokers delete a topic's replicas.
func (s *Service) stopReplicas(t *cluster.Topic) error {
	l := s.mu.lead
	t.Deletion.Retry()
	byBroker := map[int32][]StoppedReplica{}
	waiting := t.Deletion.Replicas(cluster.ReplicaOffline)
	for _, r := range waiting {
		byBroker[r.Broker] = append(byBroker[r.Broker], StoppedReplica{t.Name, t.ID, r.Partition, true})
	}
	done := map[int32]bool{}
	for _, id := range l.state.IDs() {
		if len(byBroker[id]) == 0 {
			continue
		}
		b := l.state.Brokers[id]
		peer := s.peer(b)
		if peer == nil {
			continue
		}
		if err := peer.StopReplica(&StopReplica{Order{s.o.BrokerID, l.epoch, b.Epoch}, byBroker[id]}); err != nil {
			s.o.Logger.Warn("a broker did not delete its replicas", "broker", id, "topic", t.Name, "error", err)
			continue
		}
		done[id] = true
	}
	for _, r := range waiting {
		end := cluster.ReplicaIneligible
		if done[r.Broker] {
			end = cluster.ReplicaDeleted
		}
		if err := t.Deletion.Enter(r, cluster.ReplicaDeleting); err != nil {
			return err
		}
		if err := t.Deletion.Enter(r, end); err != nil {
			return err
		}
	}
	return nil
}

// removeTopic removes a topic's nodes from the bottom up, then its settings, then the request. The last three go together: there are never settings
// without a topic, and no request that a topic made anew could fall victim to.
func (s *Service) removeTopic(t *cluster.Topic) error {
	below := nodesBelow(t)
	err := errUnknown
	if below != nil {
		err = s.removeNodes(t, below, true)
	}
	if err == errUnknown || isNoNode(err) {
		// A controller before us was cut off here: see what is left.
		if below, err = s.removeBelow(znode.PartitionsPath(t.Name)); err != nil {
			return err
		}
		config, err := s.mu.conn.Exists(znode.ConfigPath(topicEntity(t.Name)), false)
		if err != nil {
			return err
		}
		if err := s.removeNodes(t, below, config != nil); err != nil {
			return err
		}
	} else if err != nil {
		return err
	}
	delete(s.mu.lead.state.Topics, t.Name)
	return nil
}

var errUnknown = errors.New("it is not known which nodes are there")

func (s *Service) removeNodes(t *cluster.Topic, below []any, config bool) error {
	ops, tail := removals(t, below, config)
	return s.fencedInBatches(ops, 0, tail, nil)
}

// removals are the operations that remove a topic; the last tail of them go together.
func removals(t *cluster.Topic, below []any, config bool) (ops []any, tail int) {
	ops, tail = append(below, remove(znode.TopicPath(t.Name))), 2
	if config {
		ops = append(ops, remove(znode.ConfigPath(topicEntity(t.Name))))
		tail++
	}
	return append(ops, remove(znode.DeletePath(t.Name))), tail
}

// nodesBelow are the operations that remove a topic's partitions if all are there, as they are unless somebody was cut off; nil if not all were made.
func nodesBelow(t *cluster.Topic) (ops []any) {
	for i, p := range t.Partitions {
		if p.Phase == cluster.New {
			return nil
		}
		ops = append(ops, remove(znode.StatePath(t.Name, int32(i))), remove(znode.PartitionPath(t.Name, int32(i))))
	}
	return append(ops, remove(znode.PartitionsPath(t.Name)))
}

// removeBelow are the operations that remove a node and all below it, from the bottom up; none if it is not there.
func (s *Service) removeBelow(path string) ([]any, error) {
	names, err := s.mu.conn.Children(path, false)
	if isNoNode(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var ops []any
	below := make([][]any, len(names))
	if err := s.each(len(names), func(i int) (err error) {
		if names[i] == "state" { // has no children
			below[i] = []any{remove(path + "/" + names[i])}
			return nil
		}
		below[i], err = s.removeBelow(path + "/" + names[i])
		return err
	}); err != nil {
		return nil, err
	}
	for _, more := range below {
		ops = append(ops, more...)
	}
	return append(ops, remove(path)), nil
}
