package group

import (
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"millrace/coord/group/assign"
	"millrace/coord/group/record"
	"millrace/wire"
)

// Versions of OffsetCommit at which something changed.
const (
	commitByTopicID     = 10
	commitUnknownGroup  = 9 // the first that can be told so
	commitOwnTimestamps = 1
)

// pendingCommit is a commit that is being written.
type pendingCommit struct {
	group   string
	at      topicPartition
	commit  *record.Commit
	dropped bool // its topic was deleted meanwhile
}

// Commit serves OffsetCommit. Each partition is accepted or refused for itself
// (F063); the answer comes when the accepted ones are durable.
func (m *Groups) Commit(now time.Time, call Call, from Client, req *kmsg.OffsetCommitRequest, topics Topics) {
	r := kmsg.NewPtrOffsetCommitResponse()
	g, refused := m.mayCommit(now, from, req)
	var owner *consumer
	if g != nil && g.modern != nil && refused == wire.ErrNone {
		owner, refused = g.modern.mayCommit(from, req)
	}
	var records []record.Record
	var commits []*pendingCommit
	for i := range req.Topics {
		t := &req.Topics[i]
		topic, unknown := findTopic(topics, t.Topic, t.TopicID, from.Version >= commitByTopicID)
		out := kmsg.OffsetCommitResponseTopic{Topic: t.Topic, TopicID: t.TopicID, Partitions: make([]kmsg.OffsetCommitResponseTopicPartition, len(t.Partitions))}
		for j := range t.Partitions {
			p, answer := &t.Partitions[j], &out.Partitions[j]
			answer.Partition = p.Partition
			switch {
			case refused != wire.ErrNone:
				answer.ErrorCode = refused
			case unknown != wire.ErrNone:
				answer.ErrorCode = unknown
			case p.Partition < 0 || int(p.Partition) >= topic.Partitions:
				answer.ErrorCode = wire.ErrUnknownTopicOrPartition
			case owner != nil && !owner.mayCommitAt(assign.Place{Topic: topic.ID, Partition: p.Partition}, req.Generation):
				answer.ErrorCode = wire.ErrStaleMemberEpoch
			case p.Metadata != nil && len(*p.Metadata) > m.settings.MaxMetadata:
				answer.ErrorCode = wire.ErrOffsetMetadataTooLarge
			default:
				c := commitOf(now, from.Version, req, p, topic.ID)
				commits = append(commits, &pendingCommit{group: req.Group, at: topicPartition{topic.Name, p.Partition}, commit: c})
				records = append(records, record.OfCommitted(req.Group, topic.Name, p.Partition, c))
			}
		}
		r.Topics = append(r.Topics, out)
	}
	if len(commits) == 0 {
		m.answer(call, r)
		return
	}
	if g == nil {
		g = m.find(req.Group) // without members: it only keeps its offsets here
	}
	for _, c := range commits {
		g.inflight[c.at]++
	}
	w := m.write(records, func(_ time.Time, code int16) {
		m.committed(commits, code)
		if code != wire.ErrNone {
			failCommits(r, code)
		}
		m.answer(call, r)
	})
	w.commits = commits
}

// mayCommit says whether a request may commit at all. The group is nil if it
// is not there and may be made.
func (m *Groups) mayCommit(now time.Time, from Client, req *kmsg.OffsetCommitRequest) (*group, int16) {
	if req.Group == "" {
		return nil, wire.ErrInvalidGroupID
	}
	g := m.groups[req.Group]
	switch {
	case g == nil && req.Generation < 0:
		return nil, wire.ErrNone
	case g == nil && from.Version >= commitUnknownGroup:
		return nil, wire.ErrGroupIDNotFound
	case g == nil:
		return nil, wire.ErrIllegalGeneration
	case g.modern != nil:
		return g, wire.ErrNone // it says more
	case req.Generation < 0 && g.state == Empty:
		return g, wire.ErrNone // an administrator, or a consumer that assigns its partitions itself
	case req.Generation < 0 && req.MemberID == "" && req.InstanceID == nil:
		return g, wire.ErrUnknownMemberID // would disturb those who are members
	}
	if code := g.validate(req.MemberID, req.InstanceID); code != wire.ErrNone {
		return g, code
	}
	switch {
	case !g.isCurrent(g.members[req.MemberID], req.Generation):
		return g, wire.ErrIllegalGeneration
	case g.state == Completing:
		// The member was told of a new generation and may not own the partition
		// in it; the commit would be one of the old generation.
		return g, wire.ErrRebalanceInProgress
	}
	m.alive(now, g.members[req.MemberID])
	return g, wire.ErrNone
}

func commitOf(now time.Time, version int16, req *kmsg.OffsetCommitRequest, p *kmsg.OffsetCommitRequestTopicPartition, topic [16]byte) *record.Commit {
	c := &record.Commit{Offset: p.Offset, LeaderEpoch: p.LeaderEpoch, At: now.UnixMilli(), Expires: record.None, TopicID: topic}
	if p.Metadata != nil {
		c.Metadata = *p.Metadata
	}
	if version == commitOwnTimestamps && p.Timestamp >= 0 {
		c.At = p.Timestamp
	}
	if req.RetentionTimeMillis >= 0 {
		c.Expires = c.At + req.RetentionTimeMillis
	}
	return c
}

// committed ends the write of commits: what is durable can be read from now on.
func (m *Groups) committed(commits []*pendingCommit, code int16) {
	for _, p := range commits {
		g := m.groups[p.group]
		if g == nil { // cannot be: a group with commits in flight is kept
			panic("group: a group went while its commits were being written")
		}
		if g.inflight[p.at]--; g.inflight[p.at] == 0 {
			delete(g.inflight, p.at)
		}
		if code == wire.ErrNone && !p.dropped {
			g.put(p.at, p.commit)
		}
	}
	m.forgetIfIdle(m.groups[commits[0].group])
}

func (g *group) put(at topicPartition, c *record.Commit) {
	partitions := g.commits[at.topic]
	if partitions == nil {
		partitions = map[int32]*record.Commit{}
		g.commits[at.topic] = partitions
	}
	partitions[at.partition] = c
}

func (g *group) drop(at topicPartition) {
	partitions := g.commits[at.topic]
	delete(partitions, at.partition)
	if len(partitions) == 0 {
		delete(g.commits, at.topic)
	}
}

func failCommits(r *kmsg.OffsetCommitResponse, code int16) {
	for i := range r.Topics {
		for j := range r.Topics[i].Partitions {
			if p := &r.Topics[i].Partitions[j]; p.ErrorCode == wire.ErrNone {
				p.ErrorCode = code
			}
		}
	}
}

// findTopic finds a topic as a version of the protocol names it.
func findTopic(topics Topics, name string, id [16]byte, byID bool) (Topic, int16) {
	if byID {
		t, ok := topics.TopicByID(id)
		if !ok {
			return t, wire.ErrUnknownTopicID
		}
		return t, wire.ErrNone
	}
	t, ok := topics.Topic(name)
	if !ok {
		return t, wire.ErrUnknownTopicOrPartition
	}
	return t, wire.ErrNone
}
