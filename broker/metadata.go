package broker

import (
	"fmt"
	"log/slog"
	"math"

	"github.com/twmb/franz-go/pkg/kmsg"

	"millrace/coord"
	"millrace/wire"
)

// Operations that everybody may do while no access control is built, as bit
// sets of Kafka's AclOperation numbers.
const (
	topicOperations   = 1<<3 | 1<<4 | 1<<5 | 1<<6 | 1<<7 | 1<<8 | 1<<10 | 1<<11 // read, write, create, delete, alter, describe, describe configs, alter configs
	clusterOperations = 1<<5 | 1<<7 | 1<<8 | 1<<9 | 1<<10 | 1<<11 | 1<<12       // create, alter, describe, cluster action, describe configs, alter configs, idempotent write
	notAsked          = math.MinInt32                                           // operations were not asked for
)

// handleMetadata serves Metadata: who the brokers are, at the addresses of the
// listener that the request came in on, and where the topics' partitions are.
// Topics named but missing are made first, where that is allowed, so that the
// very first answer has their leaders (F057).
func (b *Broker) handleMetadata(rc *requestContext, request kmsg.Request) kmsg.Response {
	req := request.(*kmsg.MetadataRequest)
	resp := req.ResponseKind().(*kmsg.MetadataResponse)
	resp.AuthorizedOperations = notAsked
	if req.IncludeClusterAuthorizedOperations {
		resp.AuthorizedOperations = clusterOperations
	}
	img := b.coord.Image()
	wanted := wantedTopics(req, img)
	var refused map[string]coord.TopicResult
	if req.Version < 4 || req.AllowAutoTopicCreation {
		if refused = b.autoCreate(rc, wanted); refused != nil {
			img = b.coord.Image()
			for i := range wanted {
				if wanted[i].code == wire.ErrUnknownTopicOrPartition {
					wanted[i].find(img)
				}
			}
		}
	}

	cluster := img.ClusterID()
	resp.ClusterID = &cluster
	resp.ControllerID = img.ControllerID()
	resp.Brokers = metadataBrokers(img, rc.listener)
	resp.Topics = make([]kmsg.MetadataResponseTopic, len(wanted))
	view := metadataView{img: img, listener: rc.listener, version: req.Version}
	for i := range wanted {
		w := &wanted[i]
		t := &resp.Topics[i]
		t.Default()
		if t.AuthorizedOperations = notAsked; req.IncludeTopicAuthorizedOperations && w.topic != nil {
			t.AuthorizedOperations = topicOperations
		}
		t.ErrorCode, t.TopicID = w.code, w.id
		if w.name != "" || w.id == (coord.ID{}) || req.Version < 12 {
			t.Topic = &w.name
		}
		if r, ok := refused[w.name]; ok && w.topic == nil {
			t.ErrorCode = r.Code
		}
		if w.topic != nil {
			t.Topic, t.TopicID, t.IsInternal = &w.topic.Name, w.topic.ID, w.topic.Internal
			t.Partitions = view.partitions(w.topic)
		}
	}
	return resp
}

// wantedTopic is a topic of the request and what was found.
type wantedTopic struct {
	name  string // "" if it was asked for by an id that is not known
	id    coord.ID
	topic *coord.Topic
	code  int16
}

// find looks the topic up and notes the answer.
func (w *wantedTopic) find(img *coord.Image) {
	w.code = wire.ErrNone
	switch {
	case w.id != (coord.ID{}):
		if w.topic = img.TopicByID(w.id); w.topic == nil {
			w.code = wire.ErrUnknownTopicID
		}
	case coord.CheckName(w.name) != "":
		w.code = wire.ErrInvalidTopic
	default:
		if w.topic = img.Topic(w.name); w.topic == nil {
			w.code = wire.ErrUnknownTopicOrPartition
		}
	}
}

// wantedTopics resolves the request's list. "All" is an empty list in version
// 0 and null from 1 on, where empty means none (F035). Ids may be asked for
// from version 12 on; in 10 and 11, where the field is there already, they are
// an error. A topic asked for twice is answered once.
func wantedTopics(req *kmsg.MetadataRequest, img *coord.Image) []wantedTopic {
	if req.Topics == nil || (req.Version == 0 && len(req.Topics) == 0) {
		out := make([]wantedTopic, 0, len(img.Names()))
		for _, name := range img.Names() {
			out = append(out, wantedTopic{name: name, topic: img.Topic(name)})
		}
		return out
	}
	type key struct {
		name string
		id   coord.ID
	}
	seen := make(map[key]bool, len(req.Topics))
	out := make([]wantedTopic, 0, len(req.Topics))
	for i := range req.Topics {
		asked := &req.Topics[i]
		w := wantedTopic{id: asked.TopicID}
		if asked.Topic != nil && (w.id == coord.ID{} || req.Version < 12) {
			w.name = *asked.Topic
		}
		if seen[key{w.name, w.id}] {
			continue
		}
		seen[key{w.name, w.id}] = true
		if req.Version >= 10 && req.Version < 12 && (asked.Topic == nil || w.id != coord.ID{}) {
			w.code = wire.ErrInvalidRequest
		} else {
			w.find(img)
		}
		out = append(out, w)
	}
	return out
}

// autoCreate makes the topics that were named and are missing, all in one
// change. It returns the ones refused, by name; nil if there was nothing to do.
func (b *Broker) autoCreate(rc *requestContext, wanted []wantedTopic) map[string]coord.TopicResult {
	if !b.config.Topics.AutoCreate {
		return nil
	}
	var missing []coord.NewTopic
	for i := range wanted {
		if w := &wanted[i]; w.code == wire.ErrUnknownTopicOrPartition && !coord.InternalName(w.name) {
			missing = append(missing, coord.NewTopic{Name: w.name, Partitions: b.config.Topics.Partitions, Factor: b.config.Topics.ReplicationFactor})
		}
	}
	if len(missing) == 0 {
		return nil
	}
	refused := map[string]coord.TopicResult{}
	for _, r := range b.createTopics(rc, missing, false) {
		switch r.Code {
		case wire.ErrNone:
			rc.log.Info("topic made on first use", "topic", r.Name, "partitions", len(r.Topic.Partitions), "client", rc.header.ClientID)
		case wire.ErrTopicAlreadyExists: // another connection was faster
		default:
			b.createRefused.log(rc.log, slog.LevelWarn, fmt.Sprintf("topic not made on first use: %s", r.Message), "topic", r.Name, "error", wire.ErrorName(r.Code), "client", rc.header.ClientID)
			refused[r.Name] = r
		}
	}
	return refused
}

// metadataBrokers lists the live brokers that have the listener.
func metadataBrokers(img *coord.Image, listener string) []kmsg.MetadataResponseBroker {
	all := img.Brokers()
	out := make([]kmsg.MetadataResponseBroker, 0, len(all))
	for i := range all {
		e, ok := all[i].Endpoint(listener)
		if !ok {
			continue
		}
		m := kmsg.NewMetadataResponseBroker()
		m.NodeID, m.Host, m.Port = all[i].ID, e.Host, e.Port
		if all[i].Rack != "" {
			m.Rack = &all[i].Rack
		}
		out = append(out, m)
	}
	return out
}

// metadataView is how one request sees partitions.
type metadataView struct {
	img      *coord.Image
	listener string
	version  int16
}

func (v *metadataView) partitions(t *coord.Topic) []kmsg.MetadataResponseTopicPartition {
	return v.partitionsIn(t, 0, len(t.Partitions))
}

// partitionsIn tells of the partitions from one (inclusive) to another (exclusive).
func (v *metadataView) partitionsIn(t *coord.Topic, from, to int) []kmsg.MetadataResponseTopicPartition {
	out := make([]kmsg.MetadataResponseTopicPartition, to-from)
	for i := from; i < to; i++ {
		p, m := &t.Partitions[i], &out[i-from]
		m.Default()
		m.Partition, m.Leader, m.LeaderEpoch = int32(i), p.Leader, p.Epoch
		m.Replicas, m.ISR = p.Replicas, p.ISR
		m.ErrorCode = v.leaderError(p.Leader)
		if m.ErrorCode != wire.ErrNone {
			m.Leader = -1
		}
		for _, id := range p.Replicas {
			if v.img.Broker(id) == nil {
				m.OfflineReplicas = append(m.OfflineReplicas, id)
			}
		}
		if v.version == 0 && m.ErrorCode == wire.ErrNone && len(m.OfflineReplicas) > 0 {
			m.ErrorCode = wire.ErrReplicaNotAvailable // the only way that version has to say it
		}
	}
	return out
}

// leaderError says why clients of this listener cannot reach the leader.
func (v *metadataView) leaderError(leader int32) int16 {
	l := v.img.Broker(leader)
	if l == nil {
		return wire.ErrLeaderNotAvailable
	}
	if _, ok := l.Endpoint(v.listener); ok {
		return wire.ErrNone
	}
	if v.version <= 5 {
		return wire.ErrLeaderNotAvailable
	}
	return wire.ErrListenerNotFound
}
