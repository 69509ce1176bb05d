package record

import (
	"cmp"
	"fmt"
)

// Versions of keys of the next-generation protocol (KIP-848). All their values
// have version 0, which is flexible. What 4 was is written no more.
const (
	epochKey       int16 = 3
	consumerKey    int16 = 5
	targetEpochKey int16 = 6
	targetKey      int16 = 7
	currentKey     int16 = 8
	patternKey     int16 = 16

	consumerValue int16 = 0
)

// Epoch is the state of a consumer group itself.
type Epoch struct {
	Epoch int32
	Hash  int64 // of the topics that its members read; 0: not known
}

// Consumer is what a member has said.
type Consumer struct {
	Instance    *string
	Rack        *string
	ClientID    string
	ClientHost  string
	Topics      []string
	Pattern     *string
	RebalanceMs int32
	Assignor    *string
	Classic     *Classic // nil: it speaks the next-generation protocol
}

// Classic is what a member has said that speaks the classic protocol in a group
// of the next-generation one.
type Classic struct {
	SessionMs int32
	Protocols []Protocol // in its order of preference
}

// Protocol is one that a member of the classic protocol can speak.
type Protocol struct {
	Name     string
	Metadata []byte
}

// TargetEpoch is the group epoch that the target assignment was made for.
type TargetEpoch struct {
	Epoch int32
	At    int64 // when, in ms; 0: not told
}

// Partitions are some of one topic.
type Partitions struct {
	Topic      [16]byte
	Partitions []int32
	Epochs     []int32 // at which each was assigned; nil: not told, or a target
}

// Current is what a member has.
type Current struct {
	Epoch    int32
	Previous int32
	State    int8
	Assigned []Partitions
	Revoking []Partitions
}

// Pattern is what a pattern of topic names came to.
type Pattern struct {
	Topics  []string
	Version int64 // of the cluster's state
	At      int64 // ms
}

// OfConsumerEpoch is the record of a group.
func OfConsumerEpoch(group string, e Epoch) Record {
	w := value()
	w.int32(e.Epoch)
	if e.Hash == 0 {
		w.tags()
	} else {
		var t writer
		t.int64(e.Hash)
		w.tags(t.b)
	}
	return Record{keyOf(epochKey, group), w.b}
}

// classic is a nullable struct in a tagged field. Left out, it would say that a
// member speaks the classic protocol, and has told nothing: found in what Kafka
// 4.3.1 writes.
func (w *writer) classic(c *Classic) {
	if c == nil {
		w.b = append(w.b, 0)
		return
	}
	w.b = append(w.b, 1)
	w.int32(c.SessionMs)
	w.length(len(c.Protocols))
	for i := range c.Protocols {
		w.text(&c.Protocols[i].Name)
		w.length(len(c.Protocols[i].Metadata))
		w.b = append(w.b, c.Protocols[i].Metadata...)
		w.tags()
	}
	w.tags()
}

func (r *reader) classic() *Classic {
	if r.byte() == 0 {
		return nil
	}
	c := &Classic{SessionMs: r.int32()}
	const least = 1 + 1 + 1 // name, metadata, tags
	for range max(r.length(least), 0) {
		c.Protocols = append(c.Protocols, Protocol{Name: text(r.text()), Metadata: r.bytes()})
		r.tags(nil)
	}
	r.tags(nil)
	return c
}

// OfConsumer is the record of what a member has said.
func OfConsumer(group, member string, c *Consumer) Record {
	w := value()
	w.text(c.Instance)
	w.text(c.Rack)
	w.text(&c.ClientID)
	w.text(&c.ClientHost)
	w.texts(c.Topics)
	none := ""
	w.text(cmp.Or(c.Pattern, &none)) // as Kafka has it
	w.int32(c.RebalanceMs)
	w.text(c.Assignor)
	var t writer
	t.classic(c.Classic)
	w.tags(t.b)
	return Record{keyOf(consumerKey, group, member), w.b}
}

// OfTargetEpoch is the record of a target assignment as a whole.
func OfTargetEpoch(group string, e TargetEpoch) Record {
	w := value()
	w.int32(e.Epoch)
	if e.At == 0 {
		w.tags()
	} else {
		var t writer
		t.int64(e.At)
		w.tags(t.b)
	}
	return Record{keyOf(targetEpochKey, group), w.b}
}

// OfTarget is the record of a member's part of the target assignment.
func OfTarget(group, member string, target []Partitions) Record {
	w := value()
	w.partitions(target)
	w.tags()
	return Record{keyOf(targetKey, group, member), w.b}
}

// OfCurrent is the record of what a member has.
func OfCurrent(group, member string, c *Current) Record {
	w := value()
	w.int32(c.Epoch)
	w.int32(c.Previous)
	w.b = append(w.b, byte(c.State))
	w.partitions(c.Assigned)
	w.partitions(c.Revoking)
	w.tags()
	return Record{keyOf(currentKey, group, member), w.b}
}

// OfPattern is the record of a pattern of topic names.
func OfPattern(group, pattern string, p *Pattern) Record {
	w := value()
	w.texts(p.Topics)
	w.int64(p.Version)
	w.int64(p.At)
	w.tags()
	return Record{keyOf(patternKey, group, pattern), w.b}
}

// ConsumerEnd ends all that the log has of a member, in the order in which
// Kafka wants to read that.
func ConsumerEnd(group, member string) []Record {
	return []Record{{Key: keyOf(currentKey, group, member)}, {Key: keyOf(targetKey, group, member)}, {Key: keyOf(consumerKey, group, member)}}
}

// ConsumersEnd ends all that the log has of a group without members.
func ConsumersEnd(group string) []Record {
	return []Record{{Key: keyOf(targetEpochKey, group)}, {Key: keyOf(epochKey, group)}}
}

// PatternEnd ends a pattern.
func PatternEnd(group, pattern string) Record { return Record{Key: keyOf(patternKey, group, pattern)} }

// ParseEpoch reads the value of a group.
func ParseEpoch(b []byte) (e Epoch, err error) {
	r, err := open("consumer group", b)
	e.Epoch = r.int32()
	r.tags(func(tag uint64, r *reader) {
		if tag == 0 {
			e.Hash = r.int64()
		}
	})
	return e, r.end("consumer group", err)
}

// ParseConsumer reads the value of a member. Nothing in it aliases b.
func ParseConsumer(b []byte) (c Consumer, err error) {
	r, err := open("consumer", b)
	c.Instance, c.Rack, c.ClientID, c.ClientHost = r.text(), r.text(), text(r.text()), text(r.text())
	c.Topics, c.Pattern, c.RebalanceMs, c.Assignor = r.texts(), r.text(), r.int32(), r.text()
	if text(c.Pattern) == "" {
		c.Pattern = nil
	}
	r.tags(func(tag uint64, r *reader) {
		if tag == 0 {
			c.Classic = r.classic()
		}
	})
	return c, r.end("consumer", err)
}

// ParseTargetEpoch reads the value of a target assignment as a whole.
func ParseTargetEpoch(b []byte) (e TargetEpoch, err error) {
	r, err := open("target assignment", b)
	e.Epoch = r.int32()
	r.tags(func(tag uint64, r *reader) {
		if tag == 0 {
			e.At = r.int64()
		}
	})
	return e, r.end("target assignment", err)
}

// ParseTarget reads the value of a member's target.
func ParseTarget(b []byte) ([]Partitions, error) {
	r, err := open("member's target", b)
	t := r.partitions()
	r.tags(nil)
	return t, r.end("member's target", err)
}

// ParseCurrent reads the value of what a member has.
func ParseCurrent(b []byte) (c Current, err error) {
	r, err := open("member's assignment", b)
	c.Epoch, c.Previous, c.State = r.int32(), r.int32(), int8(r.byte())
	c.Assigned, c.Revoking = r.partitions(), r.partitions()
	r.tags(nil)
	return c, r.end("member's assignment", err)
}

// ParsePattern reads the value of a pattern.
func ParsePattern(b []byte) (p Pattern, err error) {
	r, err := open("pattern", b)
	p.Topics, p.Version, p.At = r.texts(), r.int64(), r.int64()
	r.tags(nil)
	return p, r.end("pattern", err)
}

// parseConsumerKey reads a key of the versions above; Other for all else.
func parseConsumerKey(version int16, b []byte) (Key, error) {
	kind, parts := Other, 0
	switch version {
	case epochKey:
		kind, parts = OfEpoch, 1
	case targetEpochKey:
		kind, parts = OfWholeTarget, 1
	case consumerKey:
		kind, parts = OfMember, 2
	case targetKey:
		kind, parts = OfMemberTarget, 2
	case currentKey:
		kind, parts = OfMemberCurrent, 2
	case patternKey:
		kind, parts = OfTopicPattern, 2
	}
	if parts == 0 {
		return Key{}, nil
	}
	r := &reader{b: b[2:]}
	k := Key{Kind: kind, Group: r.string16()}
	if parts == 2 {
		k.Member = r.string16()
	}
	if r.bad || len(r.b) > 0 {
		return Key{}, fmt.Errorf("key of version %d: %d bytes do not fit", version, len(b))
	}
	return k, nil
}
