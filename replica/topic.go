package replica

import "sync/atomic"

// Topic is what this broker holds of one topic. A topic that is deleted and made
// anew is another Topic with another id.
type Topic struct {
	Name string
	ID   [16]byte

	policy     atomic.Pointer[Policy]
	partitions atomic.Pointer[[]*Partition] // by index; nil where we hold no replica
}

// Policy is the topic's current policy. Never nil; not to be changed.
func (t *Topic) Policy() *Policy { return t.policy.Load() }

// Partition is the partition of that index; nil if there is none, or none here.
func (t *Topic) Partition(index int32) *Partition {
	all := *t.partitions.Load()
	if index < 0 || int(index) >= len(all) {
		return nil
	}
	return all[index]
}

// Partitions are all of them by index. Not to be changed; entries may be nil.
func (t *Topic) Partitions() []*Partition { return *t.partitions.Load() }

// TopicState is what coordination says about a topic.
type TopicState struct {
	Name       string
	ID         [16]byte
	Policy     Policy
	Partitions []PartitionState
}

// PartitionState is what coordination says about a partition.
type PartitionState struct {
	Index    int32
	Leader   int32 // broker id, -1 none
	Epoch    int32
	Replicas []int32
	InSync   []int32
}
