// Package record is the schema of __consumer_offsets: keys and values of the
// records that a group coordinator keeps its state in, as Kafka writes and
// reads them. A Kafka broker can take over a partition written with it, and we
// one of Kafka's.
//
// Every group has commits (one group, one partition of a topic). A classic group
// is one record (its generation and members); one of the next-generation
// protocol is several, see consumer.go. All are overwritten by a later record
// with the same key and ended by one without a value. Everything else a Kafka
// partition may hold (share and streams groups) is [Other].
package record

import (
	"encoding/binary"
	"fmt"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// Record is one record of the topic. A nil Value ends what the key stood for.
type Record struct {
	Key, Value []byte
}

// Size is roughly what the record takes in a batch, in bytes.
func (r Record) Size() int { return len(r.Key) + len(r.Value) + 16 }

// Kind is what a record is about.
type Kind int8

// The kinds of records.
const (
	Other Kind = iota // of another protocol, or from the future
	OfCommit
	OfGroup         // a classic group
	OfEpoch         // a consumer group (KIP-848)
	OfMember        // what its member said
	OfWholeTarget   // its target assignment as a whole
	OfMemberTarget  // a member's part of that
	OfMemberCurrent // what a member has
	OfTopicPattern  // what a pattern of topic names came to
)

// Versions of keys, which say what a record is about, and of the values that
// Kafka 4.3 writes. Values are read in versions 0 to 4.
const (
	commitKeyOld    int16 = 0 // the same bytes as version 1
	commitKey       int16 = 1
	groupKey        int16 = 2
	groupValue      int16 = 3
	commitValue     int16 = 4
	expiringValue   int16 = 1 // the only version that has an expiry time
	lastGroupValue  int16 = 4
	lastCommitValue int16 = 4
)

// None stands for a time that is not set.
const None int64 = -1

// Key says what a record is about.
type Key struct {
	Kind      Kind
	Group     string
	Topic     string // of a commit
	Partition int32  // of a commit
	Member    string // of a consumer group; or the pattern
}

// ParseKey reads a key. What is not ours is Other and no error.
func ParseKey(b []byte) (Key, error) {
	version, err := versionOf(b)
	if err != nil {
		return Key{}, fmt.Errorf("record key: %w", err)
	}
	switch version {
	case commitKeyOld, commitKey:
		var k kmsg.OffsetCommitKey
		if err := k.ReadFrom(b); err != nil {
			return Key{}, fmt.Errorf("key of a commit: %w", err)
		}
		return Key{Kind: OfCommit, Group: k.Group, Topic: k.Topic, Partition: k.Partition}, nil
	case groupKey:
		var k kmsg.GroupMetadataKey
		if err := k.ReadFrom(b); err != nil {
			return Key{}, fmt.Errorf("key of a group: %w", err)
		}
		return Key{Kind: OfGroup, Group: k.Group}, nil
	}
	return parseConsumerKey(version, b)
}

func versionOf(b []byte) (int16, error) {
	if len(b) < 2 {
		return 0, fmt.Errorf("%d bytes, too few for a version", len(b))
	}
	return int16(binary.BigEndian.Uint16(b)), nil
}

func readable(what string, b []byte, last int16) error {
	version, err := versionOf(b)
	switch {
	case err != nil:
		return fmt.Errorf("value of a %s: %w", what, err)
	case version < 0 || version > last:
		return fmt.Errorf("value of a %s: version %d is not known, only 0 to %d", what, version, last)
	}
	return nil
}

// Commit is what a group has committed for one partition.
type Commit struct {
	Offset      int64
	LeaderEpoch int32 // -1: not said
	Metadata    string
	At          int64    // when, in ms
	Expires     int64    // in ms, if the client said when; None: by the broker's rule
	TopicID     [16]byte // zero: not known
}

// OfCommitted is the record of a commit.
func OfCommitted(group, topic string, partition int32, c *Commit) Record {
	v := kmsg.OffsetCommitValue{Version: commitValue, Offset: c.Offset, LeaderEpoch: c.LeaderEpoch, Metadata: c.Metadata, CommitTimestamp: c.At, TopicID: c.TopicID}
	if c.Expires != None {
		v.Version, v.ExpireTimestamp = expiringValue, c.Expires
	}
	return Record{Key: keyOfCommit(group, topic, partition), Value: v.AppendTo(nil)}
}

// CommitEnd ends a commit.
func CommitEnd(group, topic string, partition int32) Record {
	return Record{Key: keyOfCommit(group, topic, partition)}
}

func keyOfCommit(group, topic string, partition int32) []byte {
	k := kmsg.OffsetCommitKey{Version: commitKey, Group: group, Topic: topic, Partition: partition}
	return k.AppendTo(nil)
}

// ParseCommit reads the value of a commit.
func ParseCommit(b []byte) (Commit, error) {
	if err := readable("commit", b, lastCommitValue); err != nil {
		return Commit{}, err
	}
	v := kmsg.NewOffsetCommitValue()
	if err := v.ReadFrom(b); err != nil {
		return Commit{}, fmt.Errorf("value of a commit: %w", err)
	}
	c := Commit{Offset: v.Offset, LeaderEpoch: -1, Metadata: v.Metadata, At: v.CommitTimestamp, Expires: None, TopicID: v.TopicID}
	if v.Version >= 3 {
		c.LeaderEpoch = v.LeaderEpoch
	}
	if v.Version == expiringValue {
		c.Expires = v.ExpireTimestamp // -1 there too: not set
	}
	return c, nil
}

// Group is a classic group as of its last finished rebalance.
type Group struct {
	ProtocolType string // "" for a group without members ever
	Generation   int32
	Protocol     string // "" if there are no members
	Leader       string // "" if there are no members
	Since        int64  // when it came into its state, in ms; None in versions 0 and 1
	Members      []Member
}

// Member is one member of a Group.
type Member struct {
	ID           string
	Instance     *string // nil: not static
	ClientID     string
	ClientHost   string
	RebalanceMs  int32
	SessionMs    int32
	Subscription []byte
	Assignment   []byte
}

// OfState is the record of a group.
func OfState(group string, g *Group) Record {
	v := kmsg.NewGroupMetadataValue()
	v.Version, v.ProtocolType, v.Generation, v.CurrentStateTimestamp = groupValue, g.ProtocolType, g.Generation, g.Since
	if g.Protocol != "" {
		v.Protocol = &g.Protocol
	}
	if g.Leader != "" {
		v.Leader = &g.Leader
	}
	v.Members = make([]kmsg.GroupMetadataValueMember, len(g.Members))
	for i := range g.Members {
		m := &g.Members[i]
		v.Members[i] = kmsg.GroupMetadataValueMember{
			MemberID: m.ID, InstanceID: m.Instance, ClientID: m.ClientID, ClientHost: m.ClientHost,
			RebalanceTimeoutMillis: m.RebalanceMs, SessionTimeoutMillis: m.SessionMs,
			Subscription: m.Subscription, Assignment: m.Assignment,
		}
	}
	return Record{Key: keyOfGroup(group), Value: v.AppendTo(nil)}
}

// StateEnd ends a group.
func StateEnd(group string) Record { return Record{Key: keyOfGroup(group)} }

func keyOfGroup(group string) []byte {
	k := kmsg.GroupMetadataKey{Version: groupKey, Group: group}
	return k.AppendTo(nil)
}

// ParseGroup reads the value of a group. Nothing in it aliases b.
func ParseGroup(b []byte) (Group, error) {
	if err := readable("group", b, lastGroupValue); err != nil {
		return Group{}, err
	}
	v := kmsg.NewGroupMetadataValue()
	if err := v.ReadFrom(append([]byte(nil), b...)); err != nil {
		return Group{}, fmt.Errorf("value of a group: %w", err)
	}
	g := Group{ProtocolType: v.ProtocolType, Generation: v.Generation, Protocol: text(v.Protocol), Leader: text(v.Leader), Since: None}
	if v.Version >= 2 {
		g.Since = v.CurrentStateTimestamp
	}
	for i := range v.Members {
		m := &v.Members[i]
		r := Member{
			ID: m.MemberID, Instance: m.InstanceID, ClientID: m.ClientID, ClientHost: m.ClientHost,
			RebalanceMs: m.RebalanceTimeoutMillis, SessionMs: m.SessionTimeoutMillis,
			Subscription: m.Subscription, Assignment: m.Assignment,
		}
		if v.Version == 0 {
			r.RebalanceMs = r.SessionMs // as the protocol of that time had it
		}
		g.Members = append(g.Members, r)
	}
	return g, nil
}

func text(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
