package cluster

import "fmt"

// Phase is where a partition is in its life.
//
//	phase         what it means                               may come from
//	NonExistent   never made, or deleted                      Offline
//	New           has replicas, no leader yet, no state node  NonExistent
//	Online        has a live leader                           New, Online, Offline
//	Offline       had a leader, which is gone                 New, Online, Offline
type Phase uint8

// The phases of a partition.
const (
	NonExistent Phase = iota
	New
	Online
	Offline
)

var phaseNames = [...]string{"NonExistent", "New", "Online", "Offline"}

func (p Phase) String() string { return phaseNames[p] }

// phaseFrom is the table above, by the phase that is entered.
var phaseFrom = [...][]Phase{
	NonExistent: {Offline},
	New:         {NonExistent},
	Online:      {New, Online, Offline},
	Offline:     {New, Online, Offline},
}

// Enter moves the partition on, or says that the table has no such step.
func (p *Partition) Enter(next Phase) error {
	for _, from := range phaseFrom[next] {
		if from == p.Phase {
			p.Phase = next
			return nil
		}
	}
	return fmt.Errorf("partition goes from %v to %v, which the table does not have", p.Phase, next)
}

// PhaseOf is a partition's phase as a new controller finds it: written says whether it has a state node.
func PhaseOf(written bool, leader int32, live func(int32) bool) Phase {
	switch {
	case !written:
		return New
	case leader >= 0 && live(leader):
		return Online
	}
	return Offline
}
