package controller

import (
	"maps"
	"slices"

	"millrace/coord"
	"millrace/coord/controller/cluster"
)

// orders gathers what the brokers are to be told after one act, so that each is told once.
type orders struct {
	s       *Service
	changed map[string]map[int32]bool // partitions by topic
	whole   map[string]bool           // topics with all their partitions
	gone    map[string]coord.ID
	brokers bool           // who is live has changed
	all     map[int32]bool // brokers that are to be told everything; nil: nobody
}

func (s *Service) newOrders() *orders {
	return &orders{s: s, changed: map[string]map[int32]bool{}, whole: map[string]bool{}, gone: map[string]coord.ID{}, all: map[int32]bool{}}
}

func (o *orders) partition(t *cluster.Topic, index int32) {
	if o.changed[t.Name] == nil {
		o.changed[t.Name] = map[int32]bool{}
	}
	o.changed[t.Name][index] = true
}

func (o *orders) topic(t *cluster.Topic) { o.whole[t.Name] = true }

// delete tells that a topic is about to go.
func (o *orders) delete(t *cluster.Topic) { o.gone[t.Name] = t.ID }

// everything is for a new controller: brokers may know anything.
func (o *orders) everything() {
	o.brokers = true
	for _, id := range slices.Collect(maps.Keys(o.s.mu.lead.state.Brokers)) {
		o.all[id] = true
	}
}

// send gives the orders. A broker that cannot be reached gets all of them when it is back: its registration changes then. Only an error of this
// broker's own member is returned.
func (o *orders) send() error {
	l := o.s.mu.lead
	var live []coord.Broker
	for _, id := range l.state.IDs() {
		live = append(live, l.state.Brokers[id].Broker)
	}
	some := o.topics(false)
	var every []TopicState
	if len(o.all) > 0 {
		every = o.topics(true)
	}
	if len(some) == 0 && !o.brokers && len(o.all) == 0 {
		return nil
	}
	for _, id := range l.state.IDs() {
		b := l.state.Brokers[id]
		peer := o.s.peer(b)
		if peer == nil {
			continue
		}
		topics := some
		if o.all[id] {
			topics = every
		}
		order := Order{o.s.o.BrokerID, l.epoch, b.Epoch}
		var err error
		if mine := ofBroker(topics, id); len(mine) > 0 {
			err = peer.LeaderAndISR(&LeaderAndISR{order, mine, live})
		}
		if err == nil {
			err = peer.UpdateMetadata(&UpdateMetadata{order, o.all[id], topics, live})
		}
		if err != nil {
			if id == o.s.o.BrokerID {
				o.s.doubt(err)
				return err
			}
			o.s.o.Logger.Warn("a broker did not take its orders", "broker", id, "error", err)
		}
	}
	return nil
}

// peer is how a broker is reached; nil if it cannot be.
func (s *Service) peer(b *cluster.Broker) Peer {
	if b.ID == s.o.BrokerID {
		return s.member
	}
	if s.o.Peer == nil {
		return nil
	}
	return s.o.Peer(b.Broker)
}

// topics are what is told: what changed, or everything. They are in order.
func (o *orders) topics(every bool) []TopicState {
	state := o.s.mu.lead.state
	var out []TopicState
	for _, name := range state.Names() {
		t := state.Topics[name]
		whole := every || o.whole[name]
		if t.Deletion != nil || t.ID == (coord.ID{}) || !whole && o.changed[name] == nil {
			continue
		}
		ts := TopicState{Name: name, ID: t.ID}
		for i, p := range t.Partitions {
			if whole || o.changed[name][int32(i)] {
				ts.Partitions = append(ts.Partitions, PartitionState{
					Partition: int32(i), Leader: p.Leader, LeaderEpoch: p.LeaderEpoch, ControllerEpoch: p.ControllerEpoch, PartitionEpoch: p.Version,
					Replicas: p.Replicas, ISR: p.ISR, Adding: p.Adding, Removing: p.Removing, Recovering: p.Recovering,
				})
			}
		}
		out = append(out, ts)
	}
	for _, name := range slices.Sorted(maps.Keys(o.gone)) {
		if t := state.Topics[name]; t == nil || t.Deletion != nil {
			out = append(out, TopicState{Name: name, ID: o.gone[name], Deleted: true})
		}
	}
	return out
}

// ofBroker are the partitions that a broker has replicas of.
func ofBroker(topics []TopicState, id int32) []TopicState {
	var out []TopicState
	for _, t := range topics {
		mine := TopicState{Name: t.Name, ID: t.ID}
		for _, p := range t.Partitions {
			if slices.Contains(p.Replicas, id) {
				mine.Partitions = append(mine.Partitions, p)
			}
		}
		if len(mine.Partitions) > 0 {
			out = append(out, mine)
		}
	}
	return out
}
