package controller

import (
	"errors"

	"millrace/coord"
)

// Peer is how the controller reaches a live broker: its member in the same process, or whoever carries these orders as requests. Orders of one controller
// come one at a time, in order. An order of an older controller, or for an older life of the broker, must be refused.
type Peer interface {
	LeaderAndISR(*LeaderAndISR) error
	StopReplica(*StopReplica) error
	UpdateMetadata(*UpdateMetadata) error
}

// Order says who commands, and which life of the broker is meant.
type Order struct {
	Controller      int32
	ControllerEpoch int32
	BrokerEpoch     int64
}

// LeaderAndISR tells a broker who leads partitions that it has replicas of.
type LeaderAndISR struct {
	Order
	Topics []TopicState
	Live   []coord.Broker
}

// UpdateMetadata tells a broker of brokers and partitions: what it tells clients. Topics holds what changed, or, if it is Full, all there are.
type UpdateMetadata struct {
	Order
	Full   bool
	Topics []TopicState
	Live   []coord.Broker
}

// StopReplica has a broker give up replicas.
type StopReplica struct {
	Order
	Replicas []StoppedReplica
}

// StoppedReplica is one of them; Delete also takes the log.
type StoppedReplica struct {
	Topic     string
	ID        coord.ID
	Partition int32
	Delete    bool
}

// TopicState is a topic with some or all of its partitions.
type TopicState struct {
	Name       string
	ID         coord.ID
	Deleted    bool // it is about to go; Partitions is empty
	Partitions []PartitionState
}

// PartitionState is a partition as it is written. Its lists are not to be changed.
type PartitionState struct {
	Partition        int32
	Leader           int32
	LeaderEpoch      int32
	ControllerEpoch  int32
	PartitionEpoch   int32
	Replicas, ISR    []int32
	Adding, Removing []int32
	Recovering       bool
}

// ErrStaleOrder refuses an order of a controller that has been replaced, or for an earlier life of the broker (C1: the second wall, for what a
// deposed controller may still say).
var ErrStaleOrder = errors.New("order of an earlier controller, or for an earlier life of this broker")
