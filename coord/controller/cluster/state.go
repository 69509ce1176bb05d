package cluster

import (
	"maps"
	"slices"

	"millrace/coord"
)

// State is what the controller knows of its cluster. The controller alone changes it.
type State struct {
	Brokers map[int32]*Broker
	Topics  map[string]*Topic
}

// Broker is a live broker.
//
//	state          what it means                                         left by
//	(not in State) has no node below /brokers/ids: leads and follows     registration → live
//	               nothing; its replicas are offline
//	live           registered under Epoch                                node gone, or Epoch changed (bounced:
//	                                                                     dead, then live)
//	shutting down  live, but has asked to go: is elected nowhere and     node gone
//	               leaves the in-sync sets
type Broker struct {
	coord.Broker
	Epoch        int64 // transaction that made its node: another after every registration
	ShuttingDown bool
}

// Topic is a topic with its partitions by number.
type Topic struct {
	Name       string
	ID         coord.ID
	Version    int32 // of its node
	Partitions []*Partition
	Deletion   *Deletion // not nil: asked to be deleted
}

// Partition is one partition as it was last written.
type Partition struct {
	Replicas, Adding, Removing []int32 // the first is preferred
	Phase                      Phase
	Leader                     int32 // NoLeader: none
	LeaderEpoch                int32
	ControllerEpoch            int32
	ISR                        []int32
	Recovering                 bool
	Version                    int32 // of its node: the partition epoch
}

// NoLeader is the Leader of a partition that nobody leads.
const NoLeader int32 = -1

// Live says whether a broker is registered.
func (s *State) Live(id int32) bool { return s.Brokers[id] != nil }

// Leaving says whether a broker has asked to go.
func (s *State) Leaving(id int32) bool { return s.Brokers[id] != nil && s.Brokers[id].ShuttingDown }

// Names are the topics' names, sorted: whatever is done to all of them is done in this order.
func (s *State) Names() []string { return slices.Sorted(maps.Keys(s.Topics)) }

// IDs are the live brokers' ids, sorted.
func (s *State) IDs() []int32 { return slices.Sorted(maps.Keys(s.Brokers)) }

// Change is what became of the brokers between two looks.
type Change struct {
	New, Dead, Bounced []int32 // bounced: dead and live again since, under another epoch
}

// Compare says what is to be done for the brokers that are registered now.
func (s *State) Compare(now map[int32]*Broker) (c Change) {
	for _, id := range slices.Sorted(maps.Keys(now)) {
		switch known := s.Brokers[id]; {
		case known == nil:
			c.New = append(c.New, id)
		case known.Epoch != now[id].Epoch:
			c.Bounced = append(c.Bounced, id)
		}
	}
	for _, id := range s.IDs() {
		if now[id] == nil {
			c.Dead = append(c.Dead, id)
		}
	}
	return c
}

// Coord is the topic as brokers see it.
func (t *Topic) Coord(config map[string]string) coord.Topic {
	out := coord.Topic{Name: t.Name, ID: t.ID, Config: config, Internal: coord.InternalName(t.Name), Partitions: make([]coord.Partition, len(t.Partitions))}
	for i, p := range t.Partitions {
		out.Partitions[i] = coord.Partition{Leader: p.Leader, Epoch: p.LeaderEpoch, Replicas: p.Replicas, ISR: p.ISR}
	}
	return out
}
