// Package embedded reads and writes what consumers of the classic protocol put
// into its opaque fields (protocol type "consumer", Kafka's ConsumerProtocol):
// the subscription that a member sends with JoinGroup, and the assignment that
// it gets from SyncGroup. A coordinator need not look inside, except where
// members of both protocols share a group (KIP-848).
package embedded

import (
	"fmt"
	"slices"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// ProtocolType is the type of the groups whose members speak this.
const ProtocolType = "consumer"

// newest is the newest version that is known. Newer ones are read as this one:
// what they add comes behind.
const newest = 3

// Topic is partitions of one topic.
type Topic struct {
	Name       string
	Partitions []int32
}

// Subscription is what a member tells of itself.
type Subscription struct {
	Version int16
	Topics  []string // that it reads: in order, each once
	Owned   []Topic  // that it uses and has not given up; always empty before version 1
	Rack    *string  // from version 3 on
}

// ParseSubscription reads a subscription. Nothing in it aliases b.
func ParseSubscription(b []byte) (Subscription, error) {
	var v kmsg.ConsumerMemberMetadata
	if err := v.ReadFrom(b); err != nil || v.Version < 0 {
		return Subscription{}, unreadable("subscription", len(b), v.Version, err)
	}
	s := Subscription{Version: v.Version, Topics: v.Topics, Rack: v.Rack}
	slices.Sort(s.Topics)
	s.Topics = slices.Compact(s.Topics)
	for i := range v.OwnedPartitions {
		s.Owned = append(s.Owned, Topic{v.OwnedPartitions[i].Topic, v.OwnedPartitions[i].Partitions})
	}
	return s, nil
}

// Assignment is what a member shall read.
type Assignment struct {
	Topics   []Topic
	UserData []byte // from the leader's assignor
}

// ParseAssignment reads an assignment. Members that got none have no bytes at
// all. Nothing in it aliases b.
func ParseAssignment(b []byte) (Assignment, error) {
	if len(b) == 0 {
		return Assignment{}, nil
	}
	var v kmsg.ConsumerMemberAssignment
	if err := v.ReadFrom(slices.Clone(b)); err != nil || v.Version < 0 {
		return Assignment{}, unreadable("assignment", len(b), v.Version, err)
	}
	a := Assignment{UserData: v.UserData}
	for i := range v.Topics {
		a.Topics = append(a.Topics, Topic{v.Topics[i].Topic, v.Topics[i].Partitions})
	}
	return a, nil
}

// FormatAssignment writes an assignment in the version of the subscription of
// the member that gets it.
func FormatAssignment(version int16, topics []Topic) []byte {
	v := kmsg.NewConsumerMemberAssignment()
	v.Version = min(version, newest)
	for i := range topics {
		v.Topics = append(v.Topics, kmsg.ConsumerMemberAssignmentTopic{Topic: topics[i].Name, Partitions: topics[i].Partitions})
	}
	return v.AppendTo(nil)
}

func unreadable(what string, size int, version int16, err error) error {
	if err == nil {
		return fmt.Errorf("%s of version %d: there is no such version", what, version)
	}
	return fmt.Errorf("%s of %d bytes: %w", what, size, err)
}
