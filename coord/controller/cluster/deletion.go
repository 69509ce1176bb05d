package cluster

import (
	"cmp"
	"maps"
	"slices"
)

// Deletion is how far a topic's deletion has come. The request node is there from before the first step until after the last, so a new controller begins
// again; every step may be done twice.
//
//	step       what is written or told                       waits for
//	asked      (the request node is there)                   no replica being moved, every replica's broker live
//	stopping   states: leader -1; brokers: the topic is gone
//	deleting   brokers: stop and delete their replicas       every broker's answer; one that cannot: begin again when it is back
//	deleted    the topic's nodes, its settings, the request
type Deletion struct {
	replicas map[ReplicaOf]*Replica
}

// ReplicaOf names one replica of a topic.
type ReplicaOf struct {
	Partition, Broker int32
}

// Begin starts a deletion.
func (t *Topic) Begin() *Deletion {
	d := &Deletion{replicas: map[ReplicaOf]*Replica{}}
	for p, partition := range t.Partitions {
		for _, id := range partition.Replicas {
			state := ReplicaOffline
			d.replicas[ReplicaOf{int32(p), id}] = &state
		}
	}
	return d
}

// Waits says whether the topic's deletion has to wait.
func (s *State) Waits(t *Topic) bool {
	for _, p := range t.Partitions {
		if Moving(p) || slices.ContainsFunc(p.Replicas, func(id int32) bool { return !s.Live(id) }) {
			return true
		}
	}
	return false
}

// Replicas are those in a state, in order.
func (d *Deletion) Replicas(in Replica) []ReplicaOf {
	var out []ReplicaOf
	for r := range maps.Keys(d.replicas) {
		if *d.replicas[r] == in {
			out = append(out, r)
		}
	}
	slices.SortFunc(out, func(a, b ReplicaOf) int {
		return cmp.Or(cmp.Compare(a.Partition, b.Partition), cmp.Compare(a.Broker, b.Broker))
	})
	return out
}

// Enter moves one replica on.
func (d *Deletion) Enter(r ReplicaOf, next Replica) error { return d.replicas[r].Enter(next) }

// Done says whether every replica is deleted.
func (d *Deletion) Done() bool {
	for _, state := range d.replicas {
		if *state != ReplicaDeleted {
			return false
		}
	}
	return true
}

// Retry brings replicas that could not be deleted back to where they may try again.
func (d *Deletion) Retry() {
	for _, state := range d.replicas {
		if *state == ReplicaIneligible {
			*state = ReplicaOffline
		}
	}
}
