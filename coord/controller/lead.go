package controller

import (
	"errors"
	"fmt"

	"github.com/go-zookeeper/zk"

	"millrace/coord"
	"millrace/coord/controller/cluster"
	"millrace/coord/controller/znode"
)

// lead is the controller half, from one election until this broker resigns. The holder of Service.mu owns it.
type lead struct {
	epoch        int32 // goes into what is written and ordered
	epochVersion int32 // of the epoch's node: what every write is checked against (C1)
	state        *cluster.State
	moves        []znode.PartitionOf // the reassignment trigger as it is written; nil if there is none
}

// elect finds out who is controller, and stands if nobody is. It returns once this broker is the controller and all is in order, or another is. Caller
// holds mu.
//
// The node of the office and the epoch are written in one multi, so each epoch has one controller at most. An office that was won by a write whose answer
// was lost is found by its owner; then the epoch is read between two looks at the owner: had our session ended in between, the second would not find it.
func (s *Service) elect() error {
	conn := s.mu.conn
	for {
		holder, err := conn.Exists(znode.ControllerPath, true)
		if err != nil {
			return err
		}
		if holder != nil && holder.EphemeralOwner != conn.SessionID() {
			s.resign("another broker is")
			return nil
		}
		data, stat, err := conn.Get(znode.ControllerEpochPath, false)
		if isNoNode(err) {
			if _, err := multi(conn, create(znode.ControllerEpochPath, []byte("0"))); err != nil && !isNodeExists(err) {
				return err
			}
			continue
		}
		if err != nil {
			return err
		}
		epoch, err := znode.Number(znode.ControllerEpochPath, data)
		if err != nil {
			return err
		}
		if holder != nil {
			again, err := conn.Exists(znode.ControllerPath, true)
			if err != nil {
				return err
			}
			if again == nil || again.EphemeralOwner != conn.SessionID() || again.Czxid != holder.Czxid {
				continue
			}
			return s.takeOffice(epoch, stat.Version)
		}
		node := znode.Controller{BrokerID: s.o.BrokerID, Timestamp: s.o.Now().UnixMilli()}
		results, err := multi(conn, createEphemeral(znode.ControllerPath, node.Encode()), set(znode.ControllerEpochPath, fmt.Appendf(nil, "%d", epoch+1), stat.Version))
		switch {
		case isNodeExists(err), isBadVersion(err):
			continue
		case err != nil:
			return err
		}
		return s.takeOffice(epoch+1, results[1].Stat.Version)
	}
}

// bringAllUp makes the states that the topics' partitions lack, elects where nobody leads, and gives the orders that follow. Caller holds mu and leads.
func (s *Service) bringAllUp(topics []*cluster.Topic, o *orders) error {
	if err := s.bringUp(topics, false, o); err != nil {
		return err
	}
	if err := s.reelect(topics, o); err != nil {
		return err
	}
	return o.send()
}

// takeOffice reads the whole state, brings it in order, and tells every broker. In the order of Kafka's controller: watches, stale notifications, state,
// partitions, moves, deletions, elections that were asked for.
func (s *Service) takeOffice(epoch, version int32) (err error) {
	if old := s.mu.lead; old == nil || old.epoch != epoch {
		s.o.Logger.Info("elected as the controller", "epoch", epoch)
	}
	s.mu.lead = &lead{epoch: epoch, epochVersion: version}
	defer func() {
		if err != nil {
			s.mu.lead = nil
		}
	}()
	for _, queue := range []string{znode.LogDirEvents, znode.ISRChanges} {
		if _, err := s.drain(queue); err != nil {
			return err
		}
	}
	if err := s.makeFeature(); err != nil {
		return err
	}
	brokers, err := s.readBrokers()
	if err != nil {
		return err
	}
	state, err := s.readTopics(true)
	if err != nil {
		return err
	}
	if err := s.readStates(state); err != nil {
		return err
	}
	state.Brokers = brokers
	s.mu.lead.state = state
	o := s.newOrders()
	o.everything()
	var topics []*cluster.Topic
	for _, name := range state.Names() {
		t := state.Topics[name]
		for _, p := range t.Partitions {
			p.Phase = cluster.PhaseOf(p.Version >= 0, p.Leader, state.Live)
		}
		if t.Deletion == nil {
			topics = append(topics, t)
		}
	}
	if err := s.bringAllUp(topics, o); err != nil {
		return err
	}
	if err := s.moveTrigger(); err != nil {
		return err
	}
	if err := s.goOnMoving(topics); err != nil {
		return err
	}
	if err := s.deletions(); err != nil {
		return err
	}
	return s.electionTrigger()
}

// makeFeature makes the node of features, as Kafka's controller does where there is none.
func (s *Service) makeFeature() error {
	stat, err := s.mu.conn.Exists(znode.FeaturePath, false)
	if err != nil || stat != nil {
		return err
	}
	none := znode.Feature{Enabled: true}
	_, err = s.fenced(create(znode.FeaturePath, none.Encode()))
	return err
}

// drain empties a queue of notifications and returns what was in it.
func (s *Service) drain(queue string) (contents [][]byte, err error) {
	names, err := s.mu.conn.Children(queue, true)
	if err != nil {
		return nil, err
	}
	var ops []any
	for _, name := range names {
		data, _, err := s.mu.conn.Get(queue+"/"+name, false)
		if isNoNode(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		contents = append(contents, data)
		ops = append(ops, remove(queue+"/"+name))
	}
	return contents, s.fencedInBatches(ops, 0, 0, nil)
}

// change is a partition as it is to be.
type change struct {
	topic *cluster.Topic
	index int32
	next  *cluster.Partition
}

// write makes changes of partitions that have a state, and notes them for the brokers. A state that another has written meanwhile refuses: then all is
// read again.
func (s *Service) write(changes []change, o *orders) error {
	ops := make([]any, len(changes))
	for i, c := range changes {
		ops[i] = set(znode.StatePath(c.topic.Name, c.index), encodeState(c.next), c.topic.Partitions[c.index].Version)
	}
	err := s.fencedInBatches(ops, 0, 0, func(first int, results []zk.MultiResponse) {
		for i, r := range results {
			c := changes[first+i]
			c.next.Version = r.Stat.Version
			c.topic.Partitions[c.index] = c.next
			o.partition(c.topic, c.index)
		}
	})
	if errors.As(err, new(*refused)) {
		s.doubt(err)
	}
	return err
}

func encodeState(p *cluster.Partition) []byte {
	node := znode.State{Leader: p.Leader, LeaderEpoch: p.LeaderEpoch, ControllerEpoch: p.ControllerEpoch, ISR: p.ISR, Recovering: p.Recovering}
	return node.Encode()
}

// bringUp gives topics an id that have none and makes the states of partitions that have none, with their first leaders. A partition that nobody can
// lead waits for a broker. fresh says that nothing of the topics' partitions is in the tree yet.
func (s *Service) bringUp(topics []*cluster.Topic, fresh bool, o *orders) error {
	for _, t := range topics {
		if t.ID == (coord.ID{}) {
			if err := s.giveID(t); err != nil {
				return err
			}
			o.topic(t)
		}
		have := map[string]bool{}
		parent := false
		if news(t) && !fresh {
			names, err := s.mu.conn.Children(znode.PartitionsPath(t.Name), false)
			if err != nil && !isNoNode(err) {
				return err
			}
			parent = err == nil
			for _, name := range names {
				have[znode.PartitionsPath(t.Name)+"/"+name] = true
			}
		}
		changes, ops := s.firstStates(t, parent, have)
		if len(changes) == 0 {
			continue
		}
		if err := s.fencedInBatches(ops, 0, 0, nil); err != nil {
			return err
		}
		take(changes, o)
	}
	return nil
}

func news(t *cluster.Topic) bool {
	for _, p := range t.Partitions {
		if p.Phase == cluster.New {
			return true
		}
	}
	return false
}

// firstStates are the operations that make the nodes of a topic's new partitions, in Kafka's order, and what the partitions are then.
func (s *Service) firstStates(t *cluster.Topic, parent bool, have map[string]bool) (changes []change, ops []any) {
	var states []any
	for i, p := range t.Partitions {
		if p.Phase != cluster.New {
			continue
		}
		choice, ok := s.mu.lead.state.Elect(cluster.First, p, false)
		if !ok {
			continue
		}
		next := p.Lead(choice, s.mu.lead.epoch)
		next.Version = 0
		changes = append(changes, change{t, int32(i), next})
		path := znode.PartitionPath(t.Name, int32(i))
		if !have[path] {
			ops = append(ops, create(path, nil))
		}
		states = append(states, create(znode.StatePath(t.Name, int32(i)), encodeState(next)))
	}
	if len(changes) > 0 && !parent {
		ops = append([]any{create(znode.PartitionsPath(t.Name), nil)}, ops...)
	}
	return changes, append(ops, states...)
}

// take makes written changes the state.
func take(changes []change, o *orders) {
	for _, c := range changes {
		c.topic.Partitions[c.index] = c.next
		o.partition(c.topic, c.index)
	}
}

// giveID writes an id for a topic that a tool has made without one.
func (s *Service) giveID(t *cluster.Topic) error {
	id, err := s.newTopicID()
	if err != nil {
		return err
	}
	next := *t
	next.ID = id
	return s.writeTopic(t, &next)
}

// writeTopic writes a topic's node against the version that is known, and takes it over.
func (s *Service) writeTopic(t, next *cluster.Topic) error {
	results, err := s.fenced(set(znode.TopicPath(t.Name), encodeTopic(next), t.Version))
	if err != nil {
		return err
	}
	*t = *next
	t.Version = results[0].Stat.Version
	return nil
}

func encodeTopic(t *cluster.Topic) []byte {
	node := znode.Topic{ID: t.ID, Partitions: map[int32][]int32{}, Adding: map[int32][]int32{}, Removing: map[int32][]int32{}}
	for i, p := range t.Partitions {
		node.Partitions[int32(i)] = p.Replicas
		if len(p.Adding) > 0 {
			node.Adding[int32(i)] = p.Adding
		}
		if len(p.Removing) > 0 {
			node.Removing[int32(i)] = p.Removing
		}
	}
	return node.Encode()
}

// reelect gives partitions without a live leader another one, and takes replicas of dead brokers out of the in-sync sets of the others.
func (s *Service) reelect(topics []*cluster.Topic, o *orders) error {
	state, epoch := s.mu.lead.state, s.mu.lead.epoch
	var changes []change
	for _, t := range topics {
		for i, p := range t.Partitions {
			if p.Phase == cluster.New {
				continue
			}
			if !state.Live(p.Leader) {
				if choice, ok := state.Elect(cluster.OnOffline, p, s.unclean(t.Name)); ok {
					changes = append(changes, change{t, int32(i), p.Lead(choice, epoch)})
				}
				continue
			}
			next := p
			for _, id := range p.ISR {
				if smaller, ok := next.WithoutReplica(id, epoch); ok && !state.Live(id) {
					next = smaller
				}
			}
			if next != p {
				next.LeaderEpoch = p.LeaderEpoch + 1
				changes = append(changes, change{t, int32(i), next})
			}
		}
	}
	return s.write(changes, o)
}

// unclean says whether a replica that is not in sync may lead a topic's partition if no other is left: what the topic says, else the brokers, else the
// file.
func (s *Service) unclean(topic string) bool {
	img := s.Image()
	const key = "unclean.leader.election.enable"
	if t := img.Topic(topic); t != nil && t.Config[key] != "" {
		return t.Config[key] == "true"
	}
	if v := img.BrokerConfig(s.o.BrokerID)[key]; v != "" {
		return v == "true"
	}
	if v := img.DefaultConfig()[key]; v != "" {
		return v == "true"
	}
	return s.o.Unclean
}

// newTopicID makes an id that no topic has.
func (s *Service) newTopicID() (coord.ID, error) {
	img := s.Image()
	for {
		id, err := coord.NewID(s.o.Random)
		if err != nil || img.TopicByID(id) == nil {
			return id, err
		}
	}
}
