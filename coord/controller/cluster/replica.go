package cluster

import "fmt"

// Replica is the state of one replica of a topic that is being deleted, or the end of one that was moved away.
//
//	state               what it means                            may come from
//	ReplicaGone         nothing of it is left                    ReplicaDeleted
//	ReplicaNew          being made, not yet told to start        ReplicaGone
//	ReplicaOnline       its broker is live                       ReplicaNew, ReplicaOnline, ReplicaOffline, ReplicaIneligible
//	ReplicaOffline      told to stop, or its broker is dead      ReplicaNew, ReplicaOnline, ReplicaOffline, ReplicaIneligible
//	ReplicaDeleting     told to delete its log                   ReplicaOffline
//	ReplicaDeleted      its broker has deleted the log           ReplicaDeleting
//	ReplicaIneligible   its broker is dead, or could not delete  ReplicaOffline, ReplicaDeleting
type Replica uint8

// The states of a replica.
const (
	ReplicaGone Replica = iota
	ReplicaNew
	ReplicaOnline
	ReplicaOffline
	ReplicaDeleting
	ReplicaDeleted
	ReplicaIneligible
)

var replicaNames = [...]string{"ReplicaGone", "ReplicaNew", "ReplicaOnline", "ReplicaOffline", "ReplicaDeleting", "ReplicaDeleted", "ReplicaIneligible"}

func (r Replica) String() string { return replicaNames[r] }

// replicaFrom is the table above, by the state that is entered.
var replicaFrom = [...][]Replica{
	ReplicaGone:       {ReplicaDeleted},
	ReplicaNew:        {ReplicaGone},
	ReplicaOnline:     {ReplicaNew, ReplicaOnline, ReplicaOffline, ReplicaIneligible},
	ReplicaOffline:    {ReplicaNew, ReplicaOnline, ReplicaOffline, ReplicaIneligible},
	ReplicaDeleting:   {ReplicaOffline},
	ReplicaDeleted:    {ReplicaDeleting},
	ReplicaIneligible: {ReplicaOffline, ReplicaDeleting},
}

// Enter moves the replica on, or says that the table has no such step.
func (r *Replica) Enter(next Replica) error {
	for _, from := range replicaFrom[next] {
		if from == *r {
			*r = next
			return nil
		}
	}
	return fmt.Errorf("replica goes from %v to %v, which the table does not have", *r, next)
}
