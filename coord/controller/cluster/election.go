package cluster

import (
	"fmt"
	"slices"
)

// Kind is why a leader is to be chosen.
//
//	kind        leader                                                    in-sync set
//	First       first live replica                                        all live replicas
//	OnOffline   first live replica in sync; else, where unclean is        its live members; or the unclean leader
//	            allowed, first live replica (it recovers); else none      alone; or as it was (never emptied)
//	Preferred   the first replica if it is live and in sync               as it was
//	OnReassign  first target replica that is live and in sync             as it was
//	OnShutdown  first replica that is live, in sync and does not leave    without those that leave
type Kind uint8

// The kinds of election.
const (
	First Kind = iota
	OnOffline
	Preferred
	OnReassign
	OnShutdown
)

// Choice is what an election comes to. Leader is NoLeader if nobody can lead.
type Choice struct {
	Leader     int32
	ISR        []int32
	Recovering bool
}

// Elect chooses. ok is false where nothing is to be written: nobody can lead (the partition stays as it is, but see OnOffline in Lead), or the right one
// leads already.
func (s *State) Elect(kind Kind, p *Partition, unclean bool) (c Choice, ok bool) {
	inSync := func(id int32) bool { return slices.Contains(p.ISR, id) }
	candidate := func(among []int32, fits func(int32) bool) int32 {
		if i := slices.IndexFunc(among, fits); i >= 0 {
			return among[i]
		}
		return NoLeader
	}
	ready := func(id int32) bool { return s.Live(id) && inSync(id) && !s.Leaving(id) }
	switch kind {
	case First:
		live := filter(p.Replicas, s.Live)
		return Choice{Leader: candidate(live, s.Live), ISR: live}, len(live) > 0
	case OnOffline:
		if id := candidate(p.Replicas, func(id int32) bool { return s.Live(id) && inSync(id) }); id != NoLeader {
			return Choice{id, filter(p.ISR, s.Live), p.Recovering}, true
		}
		if id := candidate(p.Replicas, s.Live); unclean && id != NoLeader {
			return Choice{id, []int32{id}, true}, true
		}
		return Choice{NoLeader, p.ISR, p.Recovering}, p.Leader != NoLeader
	case Preferred:
		id := p.Replicas[0]
		return Choice{id, p.ISR, p.Recovering}, ready(id) && p.Leader != id
	case OnReassign:
		id := candidate(Target(p), ready)
		return Choice{id, p.ISR, p.Recovering}, id != NoLeader
	case OnShutdown:
		id := candidate(p.Replicas, ready)
		return Choice{id, filter(p.ISR, func(id int32) bool { return !s.Leaving(id) }), p.Recovering}, id != NoLeader && s.Leaving(p.Leader)
	}
	return c, false
}

// Lead is the partition after an election: another leader epoch, written by the controller of that epoch.
func (p *Partition) Lead(c Choice, controllerEpoch int32) *Partition {
	next := *p
	next.Leader, next.ISR, next.Recovering, next.ControllerEpoch = c.Leader, c.ISR, c.Recovering, controllerEpoch
	if next.LeaderEpoch++; p.Phase == New {
		next.LeaderEpoch = 0
	}
	phase := Online
	if c.Leader < 0 {
		phase = Offline
	}
	if err := next.Enter(phase); err != nil {
		panic(fmt.Sprintf("cluster: %v: %+v", err, *p)) // only partitions of the tree are led
	}
	return &next
}

// WithoutReplica is the partition after a replica went offline that does not lead: it leaves the in-sync set, unless it is the last there. ok is false if
// nothing changes.
func (p *Partition) WithoutReplica(id, controllerEpoch int32) (next *Partition, ok bool) {
	if !slices.Contains(p.ISR, id) || len(p.ISR) == 1 {
		return nil, false
	}
	changed := *p
	changed.ISR = filter(p.ISR, func(other int32) bool { return other != id })
	if changed.Leader == id {
		changed.Leader = NoLeader
	}
	changed.LeaderEpoch++
	changed.ControllerEpoch = controllerEpoch
	return &changed, true
}

func filter(list []int32, keep func(int32) bool) []int32 {
	var out []int32
	for _, id := range list {
		if keep(id) {
			out = append(out, id)
		}
	}
	return out
}
