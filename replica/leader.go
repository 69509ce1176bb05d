package replica

import (
	"slices"
	"sync"
	"sync/atomic"

	"millrace/engine"
)

// Isolation is how far a reader may see.
type Isolation int8

// The isolation levels of the protocol. Without transactions the last stable
// offset is the high watermark, so both read the same.
const (
	ReadUncommitted Isolation = 0
	ReadCommitted   Isolation = 1
)

// Partition is this broker's replica of one partition, in whatever role it has.
// Safe for concurrent use.
type Partition struct {
	Topic *Topic
	Index int32

	log  *engine.Log // nil: offline
	role atomic.Pointer[role]
	gone atomic.Bool

	mu struct { // changes of role
		sync.Mutex
	}
	waiters waiters
}

// role is what coordination decided last. Never changed once published.
type role struct {
	leads    bool
	leader   int32
	epoch    engine.Epoch
	replicas []int32
	inSync   []int32
}

// Log is the partition's log, nil if it is offline.
func (p *Partition) Log() *engine.Log { return p.log }

// Leader is the broker that leads, as far as we know, and its epoch.
func (p *Partition) Leader() (id, epoch int32) {
	r := p.role.Load()
	return r.leader, int32(r.epoch)
}

// Gone reports that the partition was deleted; whoever keeps it looks again.
func (p *Partition) Gone() bool { return p.gone.Load() }

// HasReplica reports whether a broker is assigned to hold the partition.
func (p *Partition) HasReplica(broker int32) bool {
	return slices.Contains(p.role.Load().replicas, broker)
}

// Lead says whether we may serve the partition's clients: nil, or why not.
func (p *Partition) Lead() error {
	switch {
	case p.gone.Load():
		return ErrGone
	case p.log == nil:
		return ErrOffline
	case !p.role.Load().leads:
		return ErrNotLeader
	}
	return nil
}

// CheckEpoch compares the leader epoch that a client names (-1: none) with ours.
func (p *Partition) CheckEpoch(want int32) error {
	if have := int32(p.role.Load().epoch); want >= 0 && want != have {
		return &EpochError{Want: want, Have: have}
	}
	return nil
}

// Admit says whether a batch with these acks may be appended now: we lead, and
// with acks=-1 the in-sync minimum is met. It comes before the batch is checked,
// so that a client learns first that it is in the wrong place.
func (p *Partition) Admit(acks int16) error {
	if err := p.Lead(); err != nil {
		return err
	}
	if acks == -1 {
		return p.enoughInSync(p.role.Load())
	}
	return nil
}

// Enqueue puts an admitted and checked batch in the log's queue under the
// current epoch. The batch must stay until Write has returned; after an error
// nothing is queued.
func (p *Partition) Enqueue(a *engine.Append) error {
	if err := p.Lead(); err != nil {
		return err
	}
	p.log.Enqueue(a, p.role.Load().epoch)
	return nil
}

// Write has the queued batch written, by us or by whoever holds the log.
func (p *Partition) Write(a *engine.Append) error { return p.log.Write(a) }

// Wait returns when the batch is as safe as acks asks for: on our own disk
// according to the topic's durability, and with acks=-1 on every in-sync replica.
// acks 0 waits too, since nobody else would run the round that makes the batch
// durable and so visible.
func (p *Partition) Wait(a *engine.Append, acks int16) error {
	if err := a.Wait(); err != nil {
		return err
	}
	if acks != -1 {
		return nil
	}
	// The in-sync set is us alone, so our own sync has raised the watermark
	// past the batch. What is left to check is that the set still suffices.
	if err := p.enoughInSync(p.role.Load()); err != nil {
		err.(*NotEnoughError).Appended = true
		return err
	}
	return nil
}

func (p *Partition) enoughInSync(r *role) error {
	minimum := min(p.Topic.Policy().MinInSync, len(r.replicas))
	if len(r.inSync) < minimum {
		return &NotEnoughError{InSync: len(r.inSync), Minimum: minimum}
	}
	return nil
}

// HighWatermark is the offset below which every in-sync replica is known to hold
// everything, in sync mode on disk (R1). It is the minimum over the in-sync set;
// the only member whose state is known is this broker. 0 if the log is offline.
func (p *Partition) HighWatermark() engine.Offset {
	if p.log == nil {
		return 0
	}
	return p.log.Safe()
}

// ReadLimit is the offset (exclusive) up to which a client may read: R1 is what
// makes it safe to show.
func (p *Partition) ReadLimit(Isolation) engine.Offset { return p.HighWatermark() }

// EpochEnd answers OffsetForLeaderEpoch and the divergence check of Fetch: the
// greatest epoch ≤ e that the log knows, and where it ends.
func (p *Partition) EpochEnd(e int32) (epoch int32, end int64) {
	known, at := p.log.EpochEnd(engine.Epoch(e))
	return int32(known), int64(at)
}

// assume takes what coordination decided. Called by the Manager, one at a time
// for each partition.
func (p *Partition) assume(node int32, s *PartitionState) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	next := &role{
		leads:    s.Leader == node,
		leader:   s.Leader,
		epoch:    engine.Epoch(s.Epoch),
		replicas: slices.Clone(s.Replicas),
		inSync:   slices.Clone(s.InSync),
	}
	if next.leads && p.log != nil && next.epoch > p.log.Epoch() {
		// Before anything is appended in it: the epoch begins at the log's end.
		if err := p.log.SetEpoch(next.epoch); err != nil {
			return err
		}
	}
	p.role.Store(next)
	p.waiters.wakeAll()
	return nil
}

// leave ends the partition's life here: it was deleted. Whoever waits is woken
// and sees ErrGone.
func (p *Partition) leave() {
	p.gone.Store(true)
	p.waiters.wakeAll()
}
