package cluster

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"millrace/coord"
	"millrace/wire"
)

func stateOf(live ...int32) *State {
	s := &State{Brokers: map[int32]*Broker{}, Topics: map[string]*Topic{}}
	for _, id := range live {
		s.Brokers[id] = &Broker{Broker: coord.Broker{ID: id}, Epoch: 100 + int64(id)}
	}
	return s
}

// Claim: partitions and replicas go only where the tables let them.
// Method: every pair of states; the tables of the comments as text.
func TestTablesOfStates(t *testing.T) {
	partitions := map[Phase]string{NonExistent: "Offline", New: "NonExistent", Online: "New Online Offline", Offline: "New Online Offline"}
	for to, from := range partitions {
		for p := NonExistent; p <= Offline; p++ {
			at := Partition{Phase: p}
			allowed := slices.Contains(split(from), p.String())
			if err := at.Enter(to); (err == nil) != allowed || allowed && at.Phase != to || !allowed && at.Phase != p {
				t.Errorf("partition from %v to %v: %v", p, to, err)
			}
		}
	}
	live := "ReplicaNew ReplicaOnline ReplicaOffline ReplicaIneligible"
	replicas := map[Replica]string{ReplicaGone: "ReplicaDeleted", ReplicaNew: "ReplicaGone", ReplicaOnline: live, ReplicaOffline: live, ReplicaDeleting: "ReplicaOffline", ReplicaDeleted: "ReplicaDeleting", ReplicaIneligible: "ReplicaOffline ReplicaDeleting"}
	for to, from := range replicas {
		for r := ReplicaGone; r <= ReplicaIneligible; r++ {
			at := r
			allowed := slices.Contains(split(from), r.String())
			if err := at.Enter(to); (err == nil) != allowed || allowed && at != to {
				t.Errorf("replica from %v to %v: %v", r, to, err)
			}
		}
	}
}

func split(text string) (out []string) {
	for start, i := 0, 0; i <= len(text); i++ {
		if i == len(text) || text[i] == ' ' {
			out = append(out, text[start:i])
			start = i + 1
		}
	}
	return out
}

// Claim: who leads follows the table of elections.
// Method: cases by hand.
func TestElections(t *testing.T) {
	p := func(leader int32, isr ...int32) *Partition {
		return &Partition{Replicas: []int32{1, 2, 3}, Phase: Online, Leader: leader, ISR: isr}
	}
	moving := p(1, 1, 2, 3)
	moving.Replicas, moving.Adding, moving.Removing = []int32{3, 2, 1}, []int32{3}, []int32{1}
	for i, c := range []struct {
		kind    Kind
		p       *Partition
		live    []int32
		leaving int32
		unclean bool
		want    string
	}{
		{First, p(-1), []int32{2, 3}, 0, false, "{2 [2 3] false} true"},
		{First, p(-1), nil, 0, false, "{-1 [] false} false"},
		{OnOffline, p(1, 1, 2), []int32{2, 3}, 0, false, "{2 [2] false} true"},
		{OnOffline, p(1, 1, 3), []int32{2, 3}, 0, true, "{3 [3] false} true"},
		{OnOffline, p(1, 1), []int32{2, 3}, 0, false, "{-1 [1] false} true"},
		{OnOffline, p(-1, 1), []int32{2, 3}, 0, false, "{-1 [1] false} false"},
		{OnOffline, p(-1, 1), []int32{2, 3}, 0, true, "{2 [2] true} true"},
		{OnOffline, p(1, 1, 2), nil, 0, true, "{-1 [1 2] false} true"},
		{Preferred, p(2, 2, 1), []int32{1, 2}, 0, false, "{1 [2 1] false} true"},
		{Preferred, p(2, 2, 3), []int32{1, 2, 3}, 0, true, "{1 [2 3] false} false"},
		{Preferred, p(1, 1, 2), []int32{1, 2}, 0, false, "{1 [1 2] false} false"},
		{OnReassign, moving, []int32{1, 2, 3}, 0, false, "{3 [1 2 3] false} true"},
		{OnReassign, moving, []int32{1}, 0, false, "{-1 [1 2 3] false} false"},
		{OnShutdown, p(1, 1, 2, 3), []int32{1, 2, 3}, 1, false, "{2 [2 3] false} true"},
		{OnShutdown, p(1, 1), []int32{1, 2, 3}, 1, true, "{-1 [] false} false"},
	} {
		s := stateOf(c.live...)
		if b := s.Brokers[c.leaving]; b != nil {
			b.ShuttingDown = true
		}
		choice, ok := s.Elect(c.kind, c.p, c.unclean)
		if got := fmt.Sprint(choice, " ", ok); got != c.want {
			t.Errorf("%d: %s, want %s", i, got, c.want)
		}
	}
}

// Claim: a leader's wish is checked in Kafka's order, and only the partition epoch's owner writes.
// Method: a table of single faults.
func TestAlterPartition(t *testing.T) {
	good := AlterPartition{Broker: 1, BrokerEpoch: 101, Topic: "t", ID: coord.ID{7}, LeaderEpoch: 5, PartitionEpoch: 9, ISR: []int32{1, 2}}
	for name, c := range map[string]struct {
		change func(a *AlterPartition, s *State)
		code   int16
		writes bool
	}{
		"good":              {func(*AlterPartition, *State) {}, 0, true},
		"no such broker":    {func(a *AlterPartition, _ *State) { a.Broker = 9 }, wire.ErrStaleBrokerEpoch, false},
		"older life":        {func(a *AlterPartition, _ *State) { a.BrokerEpoch-- }, wire.ErrStaleBrokerEpoch, false},
		"other id":          {func(a *AlterPartition, _ *State) { a.ID = coord.ID{8} }, wire.ErrUnknownTopicID, false},
		"no such topic":     {func(a *AlterPartition, _ *State) { a.Topic = "x" }, wire.ErrUnknownTopicOrPartition, false},
		"no such partition": {func(a *AlterPartition, _ *State) { a.Partition = 1 }, wire.ErrUnknownTopicOrPartition, false},
		"newer partition":   {func(a *AlterPartition, _ *State) { a.PartitionEpoch++ }, wire.ErrNotController, false},
		"newer leader":      {func(a *AlterPartition, _ *State) { a.LeaderEpoch++ }, wire.ErrNotController, false},
		"older leader":      {func(a *AlterPartition, _ *State) { a.LeaderEpoch-- }, wire.ErrFencedLeaderEpoch, false},
		"not the leader":    {func(a *AlterPartition, _ *State) { a.Broker, a.BrokerEpoch = 2, 102 }, wire.ErrFencedLeaderEpoch, false},
		"as it is":          {func(a *AlterPartition, _ *State) { a.ISR, a.PartitionEpoch = []int32{1}, 3 }, 0, false},
		"older partition":   {func(a *AlterPartition, _ *State) { a.PartitionEpoch-- }, wire.ErrInvalidUpdateVersion, false},
		"without itself":    {func(a *AlterPartition, _ *State) { a.ISR = []int32{2} }, wire.ErrInvalidRequest, false},
		"recovering":        {func(a *AlterPartition, _ *State) { a.Recovering = true }, wire.ErrInvalidRequest, false},
		"no replica":        {func(a *AlterPartition, _ *State) { a.ISR = []int32{1, 4} }, wire.ErrInvalidRequest, false},
		"a dead one":        {func(_ *AlterPartition, s *State) { delete(s.Brokers, 2) }, wire.ErrIneligibleReplica, false},
		"a leaving one":     {func(a *AlterPartition, s *State) { s.Brokers[2].ShuttingDown, a.OldCodes = true, true }, wire.ErrOperationNotAttempted, false},
	} {
		s := stateOf(1, 2, 4)
		s.Topics["t"] = &Topic{Name: "t", ID: coord.ID{7}, Partitions: []*Partition{{Replicas: []int32{1, 2, 3}, Phase: Online, Leader: 1, LeaderEpoch: 5, ISR: []int32{1}, Version: 9}}}
		a := good
		c.change(&a, s)
		next, code := s.Alter(&a, 3)
		if code != c.code || (next != nil) != c.writes || next != nil && (next.LeaderEpoch != 5 || next.ControllerEpoch != 3 || !slices.Equal(next.ISR, a.ISR)) {
			t.Errorf("%s: code %d, %+v", name, code, next)
		}
	}
}

// Claim: a deletion waits for dead brokers and for moves, is done when every replica is, and tries again those that could not be deleted.
func TestDeletion(t *testing.T) {
	topic := &Topic{Name: "t", Partitions: []*Partition{{Replicas: []int32{1, 2}}, {Replicas: []int32{2, 1}}}}
	s := stateOf(1)
	if !s.Waits(topic) {
		t.Error("does not wait for broker 2")
	}
	s = stateOf(1, 2)
	topic.Partitions[0].Adding = []int32{2}
	if !s.Waits(topic) {
		t.Error("does not wait for a move")
	}
	topic.Partitions[0].Adding = nil
	d := topic.Begin()
	waiting := d.Replicas(ReplicaOffline)
	if s.Waits(topic) || fmt.Sprint(waiting) != "[{0 1} {0 2} {1 1} {1 2}]" || d.Done() {
		t.Errorf("%v", waiting)
	}
	for i, r := range waiting {
		end := ReplicaDeleted
		if i == 1 {
			end = ReplicaIneligible
		}
		if d.Enter(r, end) == nil && end == ReplicaDeleted {
			t.Error("deleted without being told to")
		}
		_ = d.Enter(r, ReplicaDeleting)
		if err := d.Enter(r, end); err != nil && end == ReplicaDeleted {
			t.Error(err)
		}
	}
	if d.Done() {
		t.Error("done with one that was not deleted")
	}
	d.Retry()
	for _, r := range d.Replicas(ReplicaOffline) {
		_, _ = d.Enter(r, ReplicaDeleting), d.Enter(r, ReplicaDeleted)
	}
	if !d.Done() {
		t.Errorf("%v", d.replicas)
	}
}

// Claim: whatever happens to brokers, partitions and moves: the leader is a live member of the in-sync set or there is none; that set is never
// empty and holds replicas only; nobody who was not in sync leads unless that is allowed; epochs only rise; a move ends where it was to go.
// Method: random events, as the controller would act on them.
func TestPartitionsStayInOrder(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		unclean := rapid.Bool().Draw(rt, "unclean")
		s := stateOf(1, 2, 3, 4)
		start := &Partition{Replicas: []int32{1, 2, 3}, Phase: New, Leader: NoLeader, Version: -1}
		choice, _ := s.Elect(First, start, false)
		p := start.Lead(choice, 1)
		s.Topics["t"] = &Topic{Name: "t", Partitions: []*Partition{p}}
		take := func(next *Partition, leads bool) {
			if next.LeaderEpoch < p.LeaderEpoch {
				rt.Fatalf("epoch falls: %+v after %+v", next, p)
			}
			if leads && next.Leader != NoLeader && !slices.Contains(p.ISR, next.Leader) && !unclean {
				rt.Fatalf("%d leads, in sync were %v", next.Leader, p.ISR)
			}
			next.Version = p.Version + 1
			p = next
			s.Topics["t"].Partitions[0] = p
		}
		reelect := func() {
			if !s.Live(p.Leader) {
				if c, ok := s.Elect(OnOffline, p, unclean); ok {
					take(p.Lead(c, 1), true)
				}
				return
			}
			for _, id := range slices.Clone(p.ISR) {
				if !s.Live(id) {
					if next, ok := p.WithoutReplica(id, 1); ok {
						take(next, false)
					}
				}
			}
		}
		for range rapid.IntRange(1, 60).Draw(rt, "events") {
			id := rapid.Int32Range(1, 4).Draw(rt, "broker")
			switch rapid.IntRange(0, 5).Draw(rt, "event") {
			case 0:
				delete(s.Brokers, id)
				reelect()
			case 1:
				if !s.Live(id) {
					s.Brokers[id] = &Broker{Epoch: int64(100 + id)}
				}
				reelect()
			case 2:
				want := []int32{p.Leader}
				for _, other := range p.Replicas {
					if other != p.Leader && (slices.Contains(p.ISR, other) || other == id) {
						want = append(want, other)
					}
				}
				a := &AlterPartition{Broker: p.Leader, BrokerEpoch: int64(100 + p.Leader), Topic: "t", LeaderEpoch: p.LeaderEpoch, PartitionEpoch: p.Version, ISR: want}
				if next, code := s.Alter(a, 1); next != nil && code == 0 {
					take(next, false)
				}
			case 3:
				if c, ok := s.Elect(Preferred, p, false); ok {
					take(p.Lead(c, 1), true)
				}
			case 4:
				if _, dropped, err := s.Move(p, []int32{id, id%4 + 1}); err == nil {
					if next, ok := s.Drop(p, dropped, 1); ok {
						take(next, true)
					}
					next, _, _ := s.Move(p, []int32{id, id%4 + 1})
					take(next, false)
				}
			case 5:
				if !Moving(p) || !Arrived(p) {
					break
				}
				target := Target(p)
				if !slices.Contains(target, p.Leader) || !s.Live(p.Leader) {
					c, ok := s.Elect(OnReassign, p, false)
					if !ok {
						break
					}
					take(p.Lead(c, 1), true)
				}
				for _, gone := range slices.Clone(p.Removing) {
					if next, ok := p.WithoutReplica(gone, 1); ok {
						take(next, false)
					}
				}
				take(Finish(p), false)
				if !slices.Equal(p.Replicas, target) || Moving(p) {
					rt.Fatalf("the move to %v ended as %+v", target, p)
				}
			}
			switch {
			case len(p.ISR) == 0:
				rt.Fatalf("nobody in sync: %+v", p)
			case p.Leader != NoLeader && !slices.Contains(p.ISR, p.Leader):
				rt.Fatalf("the leader is not in sync: %+v", p)
			case p.Leader != NoLeader && !s.Live(p.Leader):
				rt.Fatalf("the leader is dead: %+v", p)
			case p.Leader == NoLeader && slices.ContainsFunc(p.ISR, s.Live):
				rt.Fatalf("nobody leads although one could: %+v", p)
			}
			for _, id := range p.ISR {
				if !slices.Contains(p.Replicas, id) {
					rt.Fatalf("%d is in sync and no replica: %+v", id, p)
				}
			}
		}
	})
}
