package replica

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"millrace/engine"
	"millrace/engine/batch"
)

// logs is a few real logs.
type logs map[string]*engine.Log

func (l logs) Log(topic string, partition int32) *engine.Log {
	return l[fmt.Sprintf("%s-%d", topic, partition)]
}

func openLogs(t *testing.T, id [16]byte, names ...string) logs {
	t.Helper()
	all := logs{}
	for _, name := range names {
		log, err := engine.OpenLog(filepath.Join(t.TempDir(), name), engine.LogOptions{TopicID: id})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = log.Close() })
		all[name] = log
	}
	return all
}

func state(name string, id [16]byte, partitions ...PartitionState) TopicState {
	return TopicState{Name: name, ID: id, Policy: Policy{MinInSync: 1}, Partitions: partitions}
}

func led(index, epoch int32) PartitionState {
	return PartitionState{Index: index, Leader: 1, Epoch: epoch, Replicas: []int32{1}, InSync: []int32{1}}
}

func record(t *testing.T) *engine.Append {
	t.Helper()
	b := batch.NewBuilder(batch.None, 0)
	if err := b.Add(batch.Record{Timestamp: time.Now().UnixMilli(), Value: []byte("v")}); err != nil {
		t.Fatal(err)
	}
	records := bytes.Clone(b.Bytes())
	info, err := batch.Check(records, &batch.Rules{})
	if err != nil {
		t.Fatal(err)
	}
	return &engine.Append{Batch: records, Info: info}
}

func produce(t *testing.T, p *Partition) {
	t.Helper()
	a := record(t)
	if err := errors.Join(p.Admit(-1), p.Enqueue(a)); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(p.Write(a), p.Wait(a, -1)); err != nil {
		t.Fatal(err)
	}
}

var idA, idB = [16]byte{1}, [16]byte{2}

// Claim: topics are found by name and by id; one that is made anew is another
// topic, and holders of the old one see that it is gone.
// Method: apply, make anew, remove.
func TestManagerFollowsCoordination(t *testing.T) {
	m := NewManager(1, openLogs(t, idA, "t-0", "t-1"))
	if err := m.Apply([]TopicState{state("t", idA, led(0, 0), led(1, 0))}, nil); err != nil {
		t.Fatal(err)
	}
	topic := m.Topic("t")
	if topic == nil || m.TopicByID(idA) != topic || m.Count() != 2 || topic.Partition(2) != nil || topic.Partition(-1) != nil {
		t.Fatalf("topic %v, count %d", topic, m.Count())
	}
	old := topic.Partition(0)
	if err := m.Apply([]TopicState{state("t", idB, led(0, 0))}, nil); err != nil {
		t.Fatal(err)
	}
	if err := old.Lead(); !errors.Is(err, ErrGone) || m.TopicByID(idA) != nil || m.Topic("t").ID != idB {
		t.Errorf("the old topic: %v", err)
	}
	// The logs are the old topic's: they must not serve the new one.
	if err := m.Topic("t").Partition(0).Lead(); !errors.Is(err, ErrOffline) {
		t.Errorf("another topic's log serves: %v", err)
	}
	if err := m.Apply(nil, []string{"t"}); err != nil || m.Topic("t") != nil || m.Count() != 0 {
		t.Errorf("after removal: %v, %d partitions, error %v", m.Topic("t"), m.Count(), err)
	}
}

// Claim: roles, epochs and the in-sync minimum are kept.
// Method: the same partition as leader, under another leader, with too few in sync.
func TestLeaderRules(t *testing.T) {
	m := NewManager(1, openLogs(t, idA, "t-0"))
	apply := func(s TopicState) *Partition {
		if err := m.Apply([]TopicState{s}, nil); err != nil {
			t.Fatal(err)
		}
		return m.Topic("t").Partition(0)
	}
	p := apply(state("t", idA, led(0, 3)))
	produce(t, p)
	if epoch := p.Log().Epoch(); epoch != 3 {
		t.Errorf("the log is in epoch %d, want 3", epoch)
	}
	var epoch *EpochError
	if err := p.CheckEpoch(2); !errors.As(err, &epoch) || !epoch.Fenced() {
		t.Errorf("older epoch: %v", err)
	}
	if err := p.CheckEpoch(4); !errors.As(err, &epoch) || epoch.Fenced() {
		t.Errorf("newer epoch: %v", err)
	}
	if err := errors.Join(p.CheckEpoch(3), p.CheckEpoch(-1)); err != nil {
		t.Errorf("the same epoch: %v", err)
	}
	few := state("t", idA, PartitionState{Leader: 1, Epoch: 4, Replicas: []int32{1, 2, 3}, InSync: []int32{1}})
	few.Policy.MinInSync = 2
	p = apply(few)
	var notEnough *NotEnoughError
	if err := p.Admit(-1); !errors.As(err, &notEnough) || notEnough.Appended {
		t.Errorf("one of two in sync: %v", err)
	}
	if err := p.Admit(1); err != nil {
		t.Errorf("acks=1 with one in sync: %v", err)
	}
	few.Policy.MinInSync = 5 // more than there are replicas
	few.Partitions[0].InSync = []int32{1, 2, 3}
	if err := apply(few).Admit(-1); err != nil {
		t.Errorf("all in sync: %v", err)
	}
	p = apply(state("t", idA, PartitionState{Leader: 2, Epoch: 5, Replicas: []int32{1, 2}, InSync: []int32{1, 2}}))
	if err := errors.Join(p.Admit(1), p.Enqueue(record(t))); !errors.Is(err, ErrNotLeader) {
		t.Errorf("under another leader: %v", err)
	}
}

// Claim (R1): the watermark never passes what is synced.
// Method: write without waiting, then wait.
func TestWatermarkWaitsForTheSync(t *testing.T) {
	m := NewManager(1, openLogs(t, idA, "t-0"))
	if err := m.Apply([]TopicState{state("t", idA, led(0, 0))}, nil); err != nil {
		t.Fatal(err)
	}
	p := m.Topic("t").Partition(0)
	a := record(t)
	if err := errors.Join(p.Enqueue(a), p.Write(a)); err != nil {
		t.Fatal(err)
	}
	if mark, durable := p.HighWatermark(), p.Log().Durable(); mark > durable {
		t.Errorf("watermark %d before the sync, durable is %d", mark, durable)
	}
	if err := p.Wait(a, -1); err != nil {
		t.Fatal(err)
	}
	if mark := p.ReadLimit(ReadUncommitted); mark != 1 {
		t.Errorf("watermark %d after the ack, want 1", mark)
	}
}

// Claim: whoever waits is woken by a rise, by a deletion, and not after it left.
// Method: one waiter for each.
func TestWaitersAreWoken(t *testing.T) {
	m := NewManager(1, openLogs(t, idA, "t-0"))
	if err := m.Apply([]TopicState{state("t", idA, led(0, 0))}, nil); err != nil {
		t.Fatal(err)
	}
	p := m.Topic("t").Partition(0)
	woken := func(s *Signal) bool {
		select {
		case <-s.C:
			return true
		case <-time.After(5 * time.Second):
			return false
		}
	}
	var w, left Wait
	s, other := NewSignal(), NewSignal()
	p.Await(&w, s)
	p.Await(&left, other)
	left.Cancel()
	left.Cancel() // twice does no harm
	produce(t, p)
	if !woken(s) {
		t.Error("a rise of the watermark woke nobody")
	}
	s.Drain()
	if err := m.Apply(nil, []string{"t"}); err != nil || !woken(s) {
		t.Errorf("the deletion woke nobody (error %v)", err)
	}
	w.Cancel()
	if len(other.C) != 0 || p.waiters.count.Load() != 0 {
		t.Errorf("a waiter that left was woken, or %d are left", p.waiters.count.Load())
	}
}

// Claim: no rise is missed, however waiting and producing interleave.
// Method: a producer, and readers that wait whenever they have seen all.
func TestNoRiseIsMissed(t *testing.T) {
	m := NewManager(1, openLogs(t, idA, "t-0"))
	if err := m.Apply([]TopicState{state("t", idA, led(0, 0))}, nil); err != nil {
		t.Fatal(err)
	}
	p := m.Topic("t").Partition(0)
	const n = 200
	var wait sync.WaitGroup
	for range 4 {
		wait.Go(func() {
			var w Wait
			s := NewSignal()
			for seen := engine.Offset(0); seen < n; {
				p.Await(&w, s)
				if p.HighWatermark() == seen {
					select {
					case <-s.C:
					case <-time.After(10 * time.Second):
						t.Errorf("slept at %d, the watermark is %d", seen, p.HighWatermark())
						seen = n
					}
				}
				w.Cancel()
				seen = max(seen, p.HighWatermark())
			}
		})
	}
	for range n {
		produce(t, p)
	}
	wait.Wait()
}
