package group

import (
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"millrace/coord/group/record"
	"millrace/wire"
)

// DeleteGroup serves DeleteGroups for one group, which must have no members:
// the answer is about it alone. It comes when the group is durably gone.
func (m *Groups) DeleteGroup(call Call, id string) {
	g := m.groups[id]
	switch {
	case id == "":
		m.answer(call, Deleted(id, wire.ErrInvalidGroupID))
	case g == nil:
		m.answer(call, Deleted(id, wire.ErrGroupIDNotFound))
	case !g.vacant():
		m.answer(call, Deleted(id, wire.ErrNonEmptyGroup))
	default:
		m.removeGroup(g, func(code int16) { m.answer(call, Deleted(id, code)) })
	}
}

// Deleted is the answer of DeleteGroups about one group.
func Deleted(id string, code int16) *kmsg.DeleteGroupsResponse {
	r := kmsg.NewPtrDeleteGroupsResponse()
	r.Groups = []kmsg.DeleteGroupsResponseGroup{{Group: id, ErrorCode: code}}
	return r
}

// removeGroup takes back all that the log holds of the group, with what is on
// its way there. Should someone join or commit before that is durable, the
// group lives on with what came later.
func (m *Groups) removeGroup(g *group, done func(code int16)) {
	gone := g.keys()
	records := make([]record.Record, 0, len(gone)+1)
	for _, at := range gone {
		records = append(records, record.CommitEnd(g.id, at.topic, at.partition))
	}
	if g.recorded {
		records = append(records, record.StateEnd(g.id))
	}
	was := g.modern
	if was != nil {
		records = append(records, g.consumerEnds()...)
		was.writing = true // who comes now, waits
	}
	if len(records) == 0 {
		m.forgetIfIdle(g)
		done(wire.ErrNone)
		return
	}
	generation := g.generation
	m.write(records, func(now time.Time, code int16) {
		if code == wire.ErrNone {
			for _, at := range gone {
				g.drop(at)
			}
			if g.generation == generation && g.state == Empty {
				g.recorded = false
			}
		}
		m.removedModern(now, g, was, code)
		m.forgetIfIdle(g)
		done(code)
	})
}

// keys are the partitions that the log has, or will have, a commit for.
func (g *group) keys() []topicPartition {
	var out []topicPartition
	for topic, partitions := range g.commits {
		for index := range partitions {
			out = append(out, topicPartition{topic, index})
		}
	}
	for at := range g.inflight {
		if g.commits[at.topic][at.partition] == nil {
			out = append(out, at)
		}
	}
	return out
}

// DeleteOffsets serves OffsetDelete. A topic that a member reads is refused.
func (m *Groups) DeleteOffsets(call Call, req *kmsg.OffsetDeleteRequest) {
	r := kmsg.NewPtrOffsetDeleteResponse()
	g := m.groups[req.Group]
	switch {
	case req.Group == "":
		r.ErrorCode = wire.ErrInvalidGroupID
	case g == nil:
		r.ErrorCode = wire.ErrGroupIDNotFound
	case g.modern == nil && g.state != Empty && g.protocolType != consumers:
		r.ErrorCode = wire.ErrNonEmptyGroup
	}
	if r.ErrorCode != wire.ErrNone {
		m.answer(call, r)
		return
	}
	subscribed := g.subscribes()
	var records []record.Record
	var gone []topicPartition
	for i := range req.Topics {
		t := &req.Topics[i]
		out := kmsg.OffsetDeleteResponseTopic{Topic: t.Topic}
		taken := subscribed(t.Topic)
		for j := range t.Partitions {
			p := kmsg.OffsetDeleteResponseTopicPartition{Partition: t.Partitions[j].Partition}
			at := topicPartition{t.Topic, p.Partition}
			switch {
			case taken:
				p.ErrorCode = wire.ErrGroupSubscribedToTopic
			case g.commits[at.topic][at.partition] != nil || g.inflight[at] > 0:
				gone = append(gone, at)
				records = append(records, record.CommitEnd(g.id, at.topic, at.partition))
			}
			out.Partitions = append(out.Partitions, p)
		}
		r.Topics = append(r.Topics, out)
	}
	if len(records) == 0 {
		m.answer(call, r)
		return
	}
	m.write(records, func(_ time.Time, code int16) {
		if code != wire.ErrNone {
			r.ErrorCode, r.Topics = code, nil
		} else {
			for _, at := range gone {
				g.drop(at)
			}
		}
		m.answer(call, r)
	})
}

// DropTopics forgets all commits for topics that were deleted (F053). They are
// gone at once for readers, also those still being written: a topic made anew
// under the name must not inherit them. Should the write of that be lost,
// Loaded finds them again.
func (m *Groups) DropTopics(names []string) {
	gone := make(map[string]bool, len(names))
	for _, name := range names {
		gone[name] = true
	}
	for _, w := range m.writes.queue {
		for _, p := range w.commits {
			p.dropped = p.dropped || gone[p.at.topic]
		}
	}
	for _, g := range m.groups {
		var ended []topicPartition
		for _, name := range names {
			for index := range g.commits[name] {
				ended = append(ended, topicPartition{name, index})
			}
		}
		for at := range g.inflight {
			if gone[at.topic] && g.commits[at.topic][at.partition] == nil {
				ended = append(ended, at)
			}
		}
		m.endCommits(g, ended)
	}
}

// endCommits takes commits back, without waiting for the write.
func (m *Groups) endCommits(g *group, ended []topicPartition) {
	if len(ended) == 0 {
		return
	}
	records := make([]record.Record, 0, len(ended))
	for _, at := range ended {
		g.drop(at)
		records = append(records, record.CommitEnd(g.id, at.topic, at.partition))
	}
	m.write(records, func(time.Time, int16) { m.forgetIfIdle(g) })
}

// Expire drops commits whose time is over (KIP-211, F065), and groups that
// then hold nothing. Call it now and then.
func (m *Groups) Expire(now time.Time) {
	for _, g := range m.groups {
		expired := g.expired(now.UnixMilli(), m.settings.Retention.Milliseconds())
		if g.vacant() && len(g.pending) == 0 && len(g.inflight) == 0 && len(expired) == g.count() {
			m.removeGroup(g, func(int16) {})
			continue
		}
		if len(expired) == 0 {
			continue
		}
		records := make([]record.Record, 0, len(expired))
		for _, at := range expired {
			records = append(records, record.CommitEnd(g.id, at.topic, at.partition))
		}
		m.write(records, func(_ time.Time, code int16) {
			if code == wire.ErrNone {
				for _, at := range expired {
					g.drop(at)
				}
			}
		})
	}
}

func (g *group) count() (n int) {
	for _, partitions := range g.commits {
		n += len(partitions)
	}
	return n
}

// expired lists the commits whose time is over. When the clock starts:
//
//	commits only, never members ..... at the commit
//	Empty ........................... at the commit or when it became Empty, whichever is later
//	Stable, of consumers ............ at the commit, only for topics that nobody reads
//	of the next-generation protocol . at the commit, only for topics that nobody reads
//	anything else ................... never
//
// A client that named a time of its own (OffsetCommit 2 to 4) gets it where
// commits can expire at all.
func (g *group) expired(now, retention int64) (out []topicPartition) {
	since := record.None
	var subscribed func(string) bool
	switch {
	case g.modern != nil:
		subscribed = g.modern.subscribes
	case g.protocolType == "":
	case g.state == Empty:
		since = g.since
	case g.state == Stable && g.protocolType == consumers:
		subscribed = g.subscribes()
	default:
		return nil
	}
	for topic, partitions := range g.commits {
		if subscribed != nil && subscribed(topic) {
			continue
		}
		for index, c := range partitions {
			at := topicPartition{topic, index}
			end := c.Expires
			if end == record.None {
				end = max(c.At, since) + retention
			}
			if now >= end && g.inflight[at] == 0 {
				out = append(out, at)
			}
		}
	}
	return out
}
