package znode

import (
	"fmt"

	"millrace/coord"
)

// Topic is /brokers/topics/T: what a topic consists of. Version 3 has the id, 2 has adding and removing, 1 has neither.
type Topic struct {
	ID         coord.ID // zero: a tool of an older version made the topic; the controller gives it one
	Partitions map[int32][]int32
	Adding     map[int32][]int32
	Removing   map[int32][]int32
}

type topicJSON struct {
	Partitions replicaMap `json:"partitions"`
	ID         string     `json:"topic_id,omitempty"`
	Adding     replicaMap `json:"adding_replicas"`
	Removing   replicaMap `json:"removing_replicas"`
	Version    int        `json:"version"`
}

// Encode is version 3; without an id where the topic has none yet.
func (t *Topic) Encode() []byte {
	j := topicJSON{Partitions: t.Partitions, Adding: t.Adding, Removing: t.Removing, Version: 3}
	if t.ID != (coord.ID{}) {
		j.ID = coord.IDText(t.ID)
	}
	return encode(j)
}

// DecodeTopic reads versions 1 to 3. Partitions must be numbered from 0 on without gaps, each with replicas.
func DecodeTopic(data []byte) (t Topic, err error) {
	var j topicJSON
	if err := decode("topic", data, &j, "version", "partitions"); err != nil {
		return t, err
	}
	if err := checkVersion("topic", j.Version, 1, 3); err != nil {
		return t, err
	}
	if j.ID != "" {
		id, ok := coord.ParseID(j.ID)
		if !ok {
			return t, fmt.Errorf("topic: id %q is malformed", j.ID)
		}
		t.ID = id
	}
	if len(j.Partitions) > coord.MaxPartitions {
		return t, fmt.Errorf("topic: %d partitions, at most %d are allowed", len(j.Partitions), coord.MaxPartitions)
	}
	for p := range int32(len(j.Partitions)) {
		if len(j.Partitions[p]) == 0 {
			return t, fmt.Errorf("topic: partition %d of %d has no replicas", p, len(j.Partitions))
		}
	}
	t.Partitions, t.Adding, t.Removing = j.Partitions, j.Adding, j.Removing
	return t, nil
}

// State is /brokers/topics/T/partitions/P/state: who leads a partition and who is in sync.
type State struct {
	Leader          int32 // -1: none
	LeaderEpoch     int32
	ControllerEpoch int32
	ISR             []int32
	Recovering      bool // elected uncleanly and not yet in order (KIP-704)
}

type stateJSON struct {
	ControllerEpoch int32   `json:"controller_epoch"`
	Leader          int32   `json:"leader"`
	Version         int     `json:"version"`
	LeaderEpoch     int32   `json:"leader_epoch"`
	ISR             intList `json:"isr"`
	Recovery        int8    `json:"leader_recovery_state,omitempty"`
}

// Encode is version 1.
func (s *State) Encode() []byte {
	j := stateJSON{s.ControllerEpoch, s.Leader, 1, s.LeaderEpoch, s.ISR, 0}
	if s.Recovering {
		j.Recovery = 1
	}
	return encode(j)
}

// DecodeState reads a partition's state.
func DecodeState(data []byte) (s State, err error) {
	var j stateJSON
	if err := decode("partition state", data, &j, "leader", "leader_epoch", "controller_epoch", "isr"); err != nil {
		return s, err
	}
	if j.Leader < -1 || j.LeaderEpoch < 0 || j.Recovery < 0 || j.Recovery > 1 {
		return s, fmt.Errorf("partition state: leader %d, epoch %d, recovery state %d", j.Leader, j.LeaderEpoch, j.Recovery)
	}
	return State{j.Leader, j.LeaderEpoch, j.ControllerEpoch, j.ISR, j.Recovery == 1}, nil
}

// PartitionOf names a partition in triggers and notifications; Replicas only in reassignments.
type PartitionOf struct {
	Topic     string  `json:"topic"`
	Partition int32   `json:"partition"`
	Replicas  []int32 `json:"replicas,omitempty"`
}

type partitionsJSON struct {
	Version    int           `json:"version"`
	Partitions []PartitionOf `json:"partitions"`
}

// EncodePartitions is the content of /admin/reassign_partitions, /admin/preferred_replica_election and of ISR notifications.
func EncodePartitions(list []PartitionOf) []byte {
	if list == nil {
		list = []PartitionOf{}
	}
	return encode(partitionsJSON{1, list})
}

// DecodePartitions reads it.
func DecodePartitions(data []byte) ([]PartitionOf, error) {
	var j partitionsJSON
	if err := decode("list of partitions", data, &j, "partitions"); err != nil {
		return nil, err
	}
	return j.Partitions, nil
}
