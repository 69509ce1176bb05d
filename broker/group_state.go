package broker

import (
	"context"
	"crypto/rand"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"

	"millrace/coord"
	"millrace/coord/group"
	"millrace/coord/group/coordinator"
	"millrace/engine/batch"
	"millrace/wire"
)

// offsetsTopic is where groups are kept.
const offsetsTopic = "__consumer_offsets"

// groupState is what the broker has for groups.
type groupState struct {
	groups       *coordinator.Service
	groupCluster atomic.Pointer[coord.Image] // the newest that groups have acted on
	groupRefused logLimit
}

// startGroups begins to coordinate groups and to follow the image. The roles of
// partitions must follow it already: a partition must lead before its groups
// are loaded.
func (b *Broker) startGroups() {
	b.groups = coordinator.New(coordinator.Options{
		Settings:       b.groupSettings(),
		RetentionCheck: b.config.Groups.RetentionCheck,
		Codec:          batch.Codec(b.config.Groups.TopicCodec),
		Topics:         func() group.Topics { return groupTopics{b.groupCluster.Load()} },
		Code:           func(err error) int16 { f := failureOf(err); return f.code },
		NewID:          newUUID,
		Now:            b.now,
		Logger:         b.levels.logger(logGroup),
	})
	follow := &groupImages{b: b}
	b.coord.Subscribe(follow.apply)
}

// newUUID is a random UUID's text (version 4).
func newUUID() string {
	var u [16]byte
	_, _ = rand.Read(u[:]) // never fails
	u[6], u[8] = u[6]&0x0f|0x40, u[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", u[:4], u[4:6], u[6:8], u[8:10], u[10:])
}

// groupTopics is an image as groups see it.
type groupTopics struct{ img *coord.Image }

func (t groupTopics) Topic(name string) (group.Topic, bool) { return groupTopic(t.img.Topic(name)) }

func (t groupTopics) Names() []string { return t.img.Names() }

func (t groupTopics) TopicByID(id [16]byte) (group.Topic, bool) {
	return groupTopic(t.img.TopicByID(id))
}

func groupTopic(t *coord.Topic) (group.Topic, bool) {
	if t == nil {
		return group.Topic{}, false
	}
	return group.Topic{Name: t.Name, ID: t.ID, Partitions: len(t.Partitions)}, true
}

// groupImages follows coordination: who leads the partitions of groups, and
// which topics went.
type groupImages struct{ b *Broker }

// apply is the subscriber. Calls come one at a time. A deletion is not answered
// before the commits for the topic are out of sight (F053).
func (s *groupImages) apply(img *coord.Image) {
	last := s.b.groupCluster.Swap(img)
	var before *coord.Topic
	if last != nil {
		before = last.Topic(offsetsTopic)
	}
	now := img.Topic(offsetsTopic)
	if before != now {
		if before != nil && (now == nil || now.ID != before.ID) {
			s.b.groups.Lead(nil)
		}
		s.b.groups.Lead(s.logs(now))
	}
	s.b.groups.TopicsChanged()
	if last == nil {
		return
	}
	var gone []string
	for _, name := range last.Names() {
		if t := img.Topic(name); t == nil || t.ID != last.Topic(name).ID {
			gone = append(gone, name)
		}
	}
	if len(gone) > 0 {
		s.b.groups.DropTopics(gone)
	}
}

// logs are the partitions that this broker leads; nil for the others.
func (s *groupImages) logs(t *coord.Topic) []coordinator.Log {
	if t == nil {
		return nil
	}
	held := s.b.replicas.Topic(t.Name)
	out := make([]coordinator.Log, len(t.Partitions))
	for i := range t.Partitions {
		if t.Partitions[i].Leader != s.b.node || held == nil {
			continue
		}
		if p := held.Partition(int32(i)); p != nil {
			out[i] = &groupLog{p}
		}
	}
	return out
}

// offsetsConfig is what __consumer_offsets is made with. Its commits are synced
// whatever other topics' default is.
func (b *Broker) offsetsConfig() map[string]string {
	return map[string]string{
		"cleanup.policy":      "compact",
		"compression.type":    "producer",
		"segment.bytes":       strconv.Itoa(b.config.Groups.TopicSegment),
		"millrace.durability": "sync",
	}
}

// keepOffsets makes sure that retention leaves __consumer_offsets alone when it
// was found in a data directory of Kafka's: its settings are not there.
func (b *Broker) keepOffsets(ctx context.Context) error {
	t := b.coord.Image().Topic(offsetsTopic)
	if t == nil || t.Config["cleanup.policy"] != "" {
		return nil
	}
	r := b.coord.AlterConfigs(ctx, []coord.ConfigChange{{
		Resource: coord.ConfigResource{Topic: offsetsTopic},
		Edit: func(before map[string]string) (map[string]string, int16, string) {
			after := b.offsetsConfig()
			for key, value := range before {
				after[key] = value
			}
			return after, wire.ErrNone, ""
		},
	}}, false)
	if r[0].Code != wire.ErrNone {
		return fmt.Errorf("settings of %s: %s", offsetsTopic, r[0].Message)
	}
	return nil
}

// makeOffsets returns the topic that groups are kept in, made if it is not
// there; or a code and why it cannot be.
func (b *Broker) makeOffsets(rc *requestContext) (*coord.Topic, int16, string) {
	img := b.coord.Image()
	if t := img.Topic(offsetsTopic); t != nil {
		return t, wire.ErrNone, ""
	}
	factor := b.config.Groups.TopicFactor
	if _, given := b.config.Get("offsets.topic.replication.factor"); !given {
		factor = min(factor, int16(min(len(img.Brokers()), 1<<15-1))) // F067
	}
	begun := time.Now()
	r := b.createTopics(rc, []coord.NewTopic{{
		Name: offsetsTopic, Partitions: b.config.Groups.TopicPartitions, Factor: max(factor, 1), Config: b.offsetsConfig(), Internal: true,
	}}, false)[0]
	switch r.Code {
	case wire.ErrNone:
		rc.log.Info("topic made for consumer groups", "topic", offsetsTopic, "partitions", len(r.Topic.Partitions), "took", time.Since(begun).Round(time.Millisecond))
	case wire.ErrTopicAlreadyExists: // another connection was faster
	default:
		return nil, wire.ErrCoordinatorNotAvailable, fmt.Sprintf("the topic for consumer groups cannot be made: %s (see offsets.topic.replication.factor and offsets.topic.num.partitions)", r.Message)
	}
	if t := b.coord.Image().Topic(offsetsTopic); t != nil {
		return t, wire.ErrNone, ""
	}
	return nil, wire.ErrCoordinatorNotAvailable, "the topic for consumer groups was deleted"
}
