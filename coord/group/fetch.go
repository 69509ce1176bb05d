package group

import (
	"cmp"
	"maps"
	"slices"

	"github.com/twmb/franz-go/pkg/kmsg"

	"millrace/coord/group/record"
	"millrace/wire"
)

// fetchByTopicID is the first version of OffsetFetch that names topics by id.
const fetchByTopicID = 10

// Fetch serves one group of OffsetFetch, from version 8 on as it stands; for
// older versions the caller makes a group of the request. What was never
// committed is offset -1 and no error.
func (m *Groups) Fetch(version int16, asked *kmsg.OffsetFetchRequestGroup, topics Topics) kmsg.OffsetFetchResponseGroup {
	r := kmsg.NewOffsetFetchResponseGroup()
	r.Group = asked.Group
	byID := version >= fetchByTopicID
	g := m.groups[asked.Group]
	if g != nil && g.modern != nil {
		if r.ErrorCode = g.modern.mayFetch(asked.MemberID, asked.MemberEpoch); r.ErrorCode != wire.ErrNone {
			return r
		}
	}
	if asked.Topics == nil { // all
		if g != nil {
			r.Topics = g.allCommits(topics, byID)
		}
		return r
	}
	for i := range asked.Topics {
		t := &asked.Topics[i]
		out := kmsg.OffsetFetchResponseGroupTopic{Topic: t.Topic, TopicID: t.TopicID, Partitions: make([]kmsg.OffsetFetchResponseGroupTopicPartition, len(t.Partitions))}
		name, code := t.Topic, wire.ErrNone
		if byID {
			var topic Topic
			topic, code = findTopic(topics, "", t.TopicID, true)
			name = topic.Name
		}
		for j, index := range t.Partitions {
			var c *record.Commit
			if g != nil && code == wire.ErrNone {
				c = g.commits[name][index]
			}
			out.Partitions[j] = fetched(index, c)
			out.Partitions[j].ErrorCode = code
		}
		r.Topics = append(r.Topics, out)
	}
	return r
}

func fetched(partition int32, c *record.Commit) kmsg.OffsetFetchResponseGroupTopicPartition {
	p := kmsg.NewOffsetFetchResponseGroupTopicPartition()
	p.Partition, p.Offset, p.LeaderEpoch = partition, -1, -1
	metadata := ""
	if c != nil {
		p.Offset, p.LeaderEpoch, metadata = c.Offset, c.LeaderEpoch, c.Metadata
	}
	p.Metadata = &metadata
	return p
}

// allCommits lists everything the group has committed. By id, topics that are
// gone cannot be named and are left out.
func (g *group) allCommits(topics Topics, byID bool) []kmsg.OffsetFetchResponseGroupTopic {
	out := make([]kmsg.OffsetFetchResponseGroupTopic, 0, len(g.commits))
	for _, name := range slices.Sorted(maps.Keys(g.commits)) {
		t := kmsg.OffsetFetchResponseGroupTopic{Topic: name}
		if byID {
			topic, ok := topics.Topic(name)
			if !ok {
				continue
			}
			t.TopicID = topic.ID
		}
		for index, c := range g.commits[name] {
			t.Partitions = append(t.Partitions, fetched(index, c))
		}
		slices.SortFunc(t.Partitions, func(a, b kmsg.OffsetFetchResponseGroupTopicPartition) int {
			return cmp.Compare(a.Partition, b.Partition)
		})
		out = append(out, t)
	}
	return out
}
