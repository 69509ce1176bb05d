package cluster

import (
	"slices"

	"millrace/coord"
	"millrace/wire"
)

// AlterPartition is a leader's wish for another in-sync set (KIP-497, 841, 903).
type AlterPartition struct {
	Broker         int32
	BrokerEpoch    int64
	Topic          string
	ID             coord.ID // zero: the request's version has names only
	Partition      int32
	LeaderEpoch    int32
	PartitionEpoch int32
	ISR            []int32
	Recovering     bool
	OldCodes       bool // versions below 2 know no INELIGIBLE_REPLICA
}

// Alter checks the wish in the order of Kafka 3.9's controller. next is the partition to be written, nil if nothing is: then code says why, or is 0 as
// the partition is like that already.
func (s *State) Alter(a *AlterPartition, controllerEpoch int32) (next *Partition, code int16) {
	b := s.Brokers[a.Broker]
	if b == nil || b.Epoch != a.BrokerEpoch {
		return nil, wire.ErrStaleBrokerEpoch
	}
	t := s.Topics[a.Topic]
	switch {
	case t != nil && a.ID != (coord.ID{}) && a.ID != t.ID:
		return nil, wire.ErrUnknownTopicID
	case t == nil || t.Deletion != nil || a.Partition < 0 || int(a.Partition) >= len(t.Partitions):
		return nil, wire.ErrUnknownTopicOrPartition
	}
	p := t.Partitions[a.Partition]
	switch {
	case a.PartitionEpoch > p.Version || a.LeaderEpoch > p.LeaderEpoch:
		return nil, wire.ErrNotController // the leader knows of a newer controller's writes
	case a.LeaderEpoch < p.LeaderEpoch || p.Leader != a.Broker:
		return nil, wire.ErrFencedLeaderEpoch
	case slices.Equal(a.ISR, p.ISR) && a.Recovering == p.Recovering:
		return nil, wire.ErrNone
	case a.PartitionEpoch < p.Version:
		return nil, wire.ErrInvalidUpdateVersion
	case a.Recovering && (len(a.ISR) > 1 || !p.Recovering), !slices.Contains(a.ISR, a.Broker):
		return nil, wire.ErrInvalidRequest
	}
	for _, id := range a.ISR {
		if !slices.Contains(p.Replicas, id) {
			return nil, wire.ErrInvalidRequest
		}
		if !s.Live(id) || s.Leaving(id) {
			if a.OldCodes {
				return nil, wire.ErrOperationNotAttempted
			}
			return nil, wire.ErrIneligibleReplica
		}
	}
	changed := *p
	changed.ISR, changed.Recovering, changed.ControllerEpoch = slices.Clone(a.ISR), a.Recovering, controllerEpoch
	return &changed, wire.ErrNone
}
