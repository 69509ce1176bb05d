package cluster

import (
	"fmt"
	"slices"
)

// A partition's replicas are moved in phases (KIP-455):
//
//	phase  what is written                                        goes on when
//	U      the topic: replicas = target, then the removed ones;   at once
//	       adding and removing say which
//	A      the partition: leader epoch + 1                        every target replica is in sync
//	B      the partition: a target replica leads; the removed     at once
//	       ones leave the in-sync set; then the topic: replicas
//	       = target, nothing added or removed
//
// Each is found again from what is written, so a new controller goes on where the last one stopped.

// Moving says whether replicas are being moved.
func Moving(p *Partition) bool { return len(p.Adding) > 0 || len(p.Removing) > 0 }

// Target is where the replicas are to be in the end.
func Target(p *Partition) []int32 {
	return filter(p.Replicas, func(id int32) bool { return !slices.Contains(p.Removing, id) })
}

// Origin is where the replicas were at first.
func Origin(p *Partition) []int32 {
	return filter(p.Replicas, func(id int32) bool { return !slices.Contains(p.Adding, id) })
}

// Move is phase U: the partition with the replicas of both ends. A move that is under way is replaced. Moving back to the origin cancels. Dropped are
// replicas that had been added by the move before and are no part of this one.
func (s *State) Move(p *Partition, target []int32) (next *Partition, dropped []int32, err error) {
	if len(target) == 0 {
		return nil, nil, fmt.Errorf("no replicas")
	}
	for i, id := range target {
		if slices.Contains(target[:i], id) {
			return nil, nil, fmt.Errorf("broker %d is named twice", id)
		}
		if !s.Live(id) && !slices.Contains(p.Replicas, id) {
			return nil, nil, fmt.Errorf("broker %d is not alive", id)
		}
	}
	from := Origin(p)
	changed := *p
	changed.Adding, changed.Removing = without(target, from), without(from, target)
	changed.Replicas = slices.Concat(target, changed.Removing)
	dropped = without(p.Replicas, changed.Replicas)
	if len(p.ISR) > 0 && len(without(p.ISR, dropped)) == 0 {
		return nil, nil, fmt.Errorf("only replicas that would be dropped are in sync: %v", p.ISR)
	}
	return &changed, dropped, nil
}

// Drop is the partition after replicas that a move gives up have left the in-sync set, written before the topic forgets them. ok is false if
// nothing changes.
func (s *State) Drop(p *Partition, dropped []int32, controllerEpoch int32) (next *Partition, ok bool) {
	isr := without(p.ISR, dropped)
	if len(isr) == len(p.ISR) {
		return nil, false
	}
	leader := p.Leader
	if slices.Contains(dropped, leader) {
		leader = NoLeader
		if i := slices.IndexFunc(isr, s.Live); i >= 0 {
			leader = isr[i]
		}
	}
	return p.Lead(Choice{leader, isr, p.Recovering}, controllerEpoch), true
}

// without is list less these.
func without(list, these []int32) []int32 {
	return filter(list, func(id int32) bool { return !slices.Contains(these, id) })
}

// Arrived says whether every target replica is in sync: phase B may begin.
func Arrived(p *Partition) bool {
	return !slices.ContainsFunc(Target(p), func(id int32) bool { return !slices.Contains(p.ISR, id) })
}

// Finish is the partition at the end of phase B, as its topic has it.
func Finish(p *Partition) *Partition {
	changed := *p
	changed.Replicas, changed.Adding, changed.Removing = Target(p), nil, nil
	return &changed
}
