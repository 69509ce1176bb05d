package controller

import (
	"context"
	"errors"
	"fmt"

	"millrace/coord/controller/cluster"
	"millrace/wire"
)

// AlterPartition takes a leader's wish for another in-sync set. next is the partition as it is then, for the leader to adopt.
func (s *Service) AlterPartition(a *cluster.AlterPartition) (next PartitionState, code int16) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.leading(s.ctx); err != nil {
		return next, wire.ErrNotController
	}
	changed, code := s.mu.lead.state.Alter(a, s.mu.lead.epoch)
	if code != wire.ErrNone {
		return next, code
	}
	t := s.topic(a.Topic)
	if changed != nil {
		o := s.newOrders()
		err := s.write([]change{{t, a.Partition, changed}}, o)
		switch {
		case isBadVersion(err):
			s.doubt(err)
			return next, wire.ErrInvalidUpdateVersion
		case err != nil:
			return next, wire.ErrNotController
		}
		if err := o.send(); err != nil {
			return next, wire.ErrNotController
		}
		if err := s.goOnMoving([]*cluster.Topic{t}); err != nil && !errors.Is(err, errMoved) {
			s.doubt(err) // the wish is granted all the same
		}
	}
	p := t.Partitions[a.Partition]
	return PartitionState{Partition: a.Partition, Leader: p.Leader, LeaderEpoch: p.LeaderEpoch, ControllerEpoch: p.ControllerEpoch, PartitionEpoch: p.Version,
		Replicas: p.Replicas, ISR: p.ISR, Adding: p.Adding, Removing: p.Removing, Recovering: p.Recovering}, wire.ErrNone
}

// ControlledShutdown prepares for a broker's end: others lead what it leads, where they can, and it leaves the in-sync sets. remaining are the partitions
// that it leads still although they have other replicas.
func (s *Service) ControlledShutdown(broker int32, epoch int64) (remaining []Partition, code int16) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.leading(s.ctx); err != nil {
		code, _ := s.code(err)
		return nil, code
	}
	state := s.mu.lead.state
	b := state.Brokers[broker]
	if b == nil {
		return nil, wire.ErrBrokerNotAvailable
	}
	if epoch != b.Epoch && epoch != -1 {
		return nil, wire.ErrStaleBrokerEpoch
	}
	b.ShuttingDown = true
	o := s.newOrders()
	var changes []change
	for _, t := range s.standing() {
		for i, p := range t.Partitions {
			if len(p.Replicas) == 1 || p.Phase != cluster.Online {
				continue // nobody else could have it
			}
			if p.Leader == broker {
				if choice, ok := state.Elect(cluster.OnShutdown, p, false); ok {
					changes = append(changes, change{t, int32(i), p.Lead(choice, s.mu.lead.epoch)})
				} else {
					remaining = append(remaining, Partition{t.Name, int32(i)})
				}
			} else if next, ok := p.WithoutReplica(broker, s.mu.lead.epoch); ok {
				changes = append(changes, change{t, int32(i), next})
			}
		}
	}
	if err := s.write(changes, o); err != nil {
		code, _ := s.code(err)
		return nil, code
	}
	if err := o.send(); err != nil {
		code, _ := s.code(err)
		return nil, code
	}
	return remaining, wire.ErrNone
}

// BumpEpochs raises the leader epoch of every partition that this broker leads. For a start after an unclean stop: offsets above what survived may
// be given out anew, and readers can tell by the epoch.
func (s *Service) BumpEpochs(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.leading(ctx); err != nil {
		return fmt.Errorf("leader epochs were not raised: %w", err)
	}
	o := s.newOrders()
	var changes []change
	for _, t := range s.standing() {
		for i, p := range t.Partitions {
			if p.Leader == s.o.BrokerID && p.Phase == cluster.Online {
				changes = append(changes, change{t, int32(i), p.Lead(cluster.Choice{Leader: p.Leader, ISR: p.ISR, Recovering: p.Recovering}, s.mu.lead.epoch)})
			}
		}
	}
	if err := s.write(changes, o); err != nil {
		return fmt.Errorf("leader epochs were not raised: %w", err)
	}
	return o.send()
}
