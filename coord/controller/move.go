package controller

import (
	"fmt"
	"slices"

	"millrace/coord/controller/cluster"
	"millrace/coord/controller/znode"
	"millrace/wire"
)

// moveTrigger acts on /admin/reassign_partitions, which a tool has written or which was there before us.
func (s *Service) moveTrigger() error {
	stat, err := s.mu.conn.Exists(znode.ReassignPartitions, true)
	if err != nil || stat == nil {
		s.mu.lead.moves = nil
		return err
	}
	data, _, err := s.mu.conn.Get(znode.ReassignPartitions, false)
	if isNoNode(err) {
		return nil // told by the watch
	}
	if err != nil {
		return err
	}
	list, err := znode.DecodePartitions(data)
	if err != nil {
		s.o.Logger.Warn("a reassignment that cannot be read is removed", "error", err)
		s.mu.lead.moves = nil
		_, err := s.fenced(remove(znode.ReassignPartitions))
		return err
	}
	s.mu.lead.moves = list
	for _, m := range list {
		if code, message, err := s.move(m); err != nil {
			return err
		} else if code != 0 {
			s.o.Logger.Warn("a reassignment is passed over", "topic", m.Topic, "partition", m.Partition, "reason", message)
		}
	}
	return s.trimTrigger()
}

// move begins one move of replicas (phases U and A), and ends it if there is nothing to wait for. A move to the same target goes on.
func (s *Service) move(m znode.PartitionOf) (code int16, message string, err error) {
	t := s.topic(m.Topic)
	if t == nil || t.Deletion != nil || m.Partition < 0 || int(m.Partition) >= len(t.Partitions) {
		return wire.ErrUnknownTopicOrPartition, "the partition does not exist", nil
	}
	p := t.Partitions[m.Partition]
	if slices.Equal(cluster.Target(p), m.Replicas) {
		return 0, "", s.goOnMoving([]*cluster.Topic{t})
	}
	next, dropped, err := s.mu.lead.state.Move(p, m.Replicas)
	if err != nil {
		return wire.ErrInvalidReplicaAssignment, err.Error(), nil
	}
	o := s.newOrders()
	if left, ok := s.mu.lead.state.Drop(p, dropped, s.mu.lead.epoch); ok {
		if err := s.write([]change{{t, m.Partition, left}}, o); err != nil {
			return 0, "", err
		}
		if next, _, err = s.mu.lead.state.Move(t.Partitions[m.Partition], m.Replicas); err != nil {
			return wire.ErrInvalidReplicaAssignment, err.Error(), nil
		}
	}
	changed := *t
	changed.Partitions = slices.Clone(t.Partitions)
	changed.Partitions[m.Partition] = next
	if err := s.writeTopic(t, &changed); err != nil {
		return 0, "", err
	}
	next = t.Partitions[m.Partition]
	if !cluster.Arrived(next) && next.Phase == cluster.Online {
		again := next.Lead(cluster.Choice{Leader: next.Leader, ISR: next.ISR, Recovering: next.Recovering}, s.mu.lead.epoch)
		if err := s.write([]change{{t, m.Partition, again}}, o); err != nil {
			return 0, "", err
		}
	}
	o.partition(t, m.Partition)
	if err := o.send(); err != nil {
		return 0, "", err
	}
	s.giveUp(t, m.Partition, dropped)
	return 0, "", s.goOnMoving([]*cluster.Topic{t})
}

// goOnMoving ends every move whose target replicas are all in sync (phase B).
func (s *Service) goOnMoving(topics []*cluster.Topic) error {
	ended := false
	for _, t := range topics {
		for i, p := range t.Partitions {
			if !cluster.Moving(p) || !cluster.Arrived(p) {
				continue
			}
			if err := s.endMove(t, int32(i)); err != nil {
				return err
			}
			ended = true
		}
	}
	if !ended {
		return nil
	}
	return s.trimTrigger()
}

// endMove: a target replica leads, the removed ones leave the in-sync set, and the topic has the target. Each step is found done by a controller that
// begins again.
func (s *Service) endMove(t *cluster.Topic, index int32) error {
	state, epoch := s.mu.lead.state, s.mu.lead.epoch
	o := s.newOrders()
	p := t.Partitions[index]
	if target := cluster.Target(p); !slices.Contains(target, p.Leader) || !state.Live(p.Leader) {
		choice, ok := state.Elect(cluster.OnReassign, p, false)
		if !ok {
			return nil // waits for a broker
		}
		if err := s.write([]change{{t, index, p.Lead(choice, epoch)}}, o); err != nil {
			return err
		}
	}
	p = t.Partitions[index]
	removed := p.Removing
	for _, id := range removed {
		if smaller, ok := t.Partitions[index].WithoutReplica(id, epoch); ok {
			if err := s.write([]change{{t, index, smaller}}, o); err != nil {
				return err
			}
		}
	}
	next := *t
	next.Partitions = slices.Clone(t.Partitions)
	next.Partitions[index] = cluster.Finish(t.Partitions[index])
	if err := s.writeTopic(t, &next); err != nil {
		return err
	}
	o.partition(t, index)
	if err := o.send(); err != nil {
		return err
	}
	s.giveUp(t, index, removed)
	return nil
}

// giveUp has brokers delete replicas that were moved away. One that is away learns from its next orders that they are not its own.
func (s *Service) giveUp(t *cluster.Topic, index int32, brokers []int32) {
	l := s.mu.lead
	for _, id := range brokers {
		b := l.state.Brokers[id]
		if b == nil {
			continue
		}
		if peer := s.peer(b); peer != nil {
			if err := peer.StopReplica(&StopReplica{Order{s.o.BrokerID, l.epoch, b.Epoch}, []StoppedReplica{{t.Name, t.ID, index, true}}}); err != nil {
				s.o.Logger.Warn("a broker did not delete a replica that was moved away", "broker", id, "topic", t.Name, "partition", index, "error", err)
			}
		}
	}
}

// trimTrigger takes what is done out of the reassignment trigger, and removes it at the end.
func (s *Service) trimTrigger() error {
	l := s.mu.lead
	if l.moves == nil {
		return nil
	}
	var rest []znode.PartitionOf
	for _, m := range l.moves {
		if t := s.topic(m.Topic); t != nil && t.Deletion == nil && m.Partition >= 0 && int(m.Partition) < len(t.Partitions) && cluster.Moving(t.Partitions[m.Partition]) {
			rest = append(rest, m)
		}
	}
	var op any = remove(znode.ReassignPartitions)
	switch {
	case len(rest) == len(l.moves):
		return nil
	case len(rest) > 0:
		op = set(znode.ReassignPartitions, znode.EncodePartitions(rest), -1)
	}
	if _, err := s.fenced(op); err != nil && !isNoNode(err) {
		return err
	}
	l.moves = rest
	return nil
}

// electionTrigger acts on /admin/preferred_replica_election and removes it.
func (s *Service) electionTrigger() error {
	stat, err := s.mu.conn.Exists(znode.PreferredElection, true)
	if err != nil || stat == nil {
		return err
	}
	data, _, err := s.mu.conn.Get(znode.PreferredElection, false)
	if isNoNode(err) {
		return nil
	}
	if err != nil {
		return err
	}
	list, err := znode.DecodePartitions(data)
	if err != nil {
		s.o.Logger.Warn("a preferred election that cannot be read is removed", "error", err)
	}
	if _, err := s.electPreferred(list); err != nil {
		return err
	}
	if _, err := s.fenced(remove(znode.PreferredElection)); err != nil && !isNoNode(err) {
		return err
	}
	return nil
}

// electPreferred makes the preferred replicas lead where they can; codes answer for each partition.
func (s *Service) electPreferred(list []znode.PartitionOf) (codes []int16, err error) {
	o := s.newOrders()
	var changes []change
	for _, want := range list {
		t := s.topic(want.Topic)
		if t == nil || t.Deletion != nil || want.Partition < 0 || int(want.Partition) >= len(t.Partitions) {
			codes = append(codes, wire.ErrUnknownTopicOrPartition)
			continue
		}
		p := t.Partitions[want.Partition]
		choice, ok := s.mu.lead.state.Elect(cluster.Preferred, p, false)
		switch {
		case ok:
			codes = append(codes, wire.ErrNone)
			changes = append(changes, change{t, want.Partition, p.Lead(choice, s.mu.lead.epoch)})
		case p.Leader == p.Replicas[0]:
			codes = append(codes, wire.ErrElectionNotNeeded)
		default:
			codes = append(codes, wire.ErrPreferredLeaderNotAvailable)
		}
	}
	if err := s.write(changes, o); err != nil {
		return nil, err
	}
	return codes, o.send()
}

// Partition names one partition.
type Partition struct {
	Topic     string
	Partition int32
}

// ElectPreferred has the preferred replicas lead where they are live and in sync. The codes answer for each; err is for all.
func (s *Service) ElectPreferred(partitions []Partition) (codes []int16, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.leading(s.ctx); err != nil {
		return nil, err
	}
	list := make([]znode.PartitionOf, len(partitions))
	for i, p := range partitions {
		list[i] = znode.PartitionOf{Topic: p.Topic, Partition: p.Partition}
	}
	return s.electPreferred(list)
}

// Reassign begins to move a partition's replicas to target; nil cancels a move. Code 0 means that it is written, not that it is done.
func (s *Service) Reassign(p Partition, target []int32) (code int16, message string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.leading(s.ctx); err != nil {
		return s.code(err)
	}
	if target == nil {
		t := s.topic(p.Topic)
		if t == nil || p.Partition < 0 || int(p.Partition) >= len(t.Partitions) || !cluster.Moving(t.Partitions[p.Partition]) {
			return wire.ErrNoReassignmentInProgress, fmt.Sprintf("no replicas of partition %d of topic %q are being moved", p.Partition, p.Topic)
		}
		target = cluster.Origin(t.Partitions[p.Partition])
	}
	code, message, err := s.move(znode.PartitionOf{Topic: p.Topic, Partition: p.Partition, Replicas: target})
	if err != nil {
		return s.code(err)
	}
	return code, message
}
