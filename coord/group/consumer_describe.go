package group

import (
	"fmt"

	"github.com/twmb/franz-go/pkg/kmsg"

	"millrace/coord/group/assign"
	"millrace/wire"
)

// The types of members, in ConsumerGroupDescribe.
const (
	memberClassic int8 = 0
	memberModern  int8 = 1
)

// DescribeConsumer serves one group of ConsumerGroupDescribe.
func (m *Groups) DescribeConsumer(id string, topics Topics) kmsg.ConsumerGroupDescribeResponseGroup {
	g := m.groups[id]
	if g == nil {
		return ConsumerNotDescribed(id, wire.ErrGroupIDNotFound, fmt.Sprintf("Group %s not found.", id))
	}
	if g.modern == nil {
		return ConsumerNotDescribed(id, wire.ErrGroupIDNotFound, fmt.Sprintf("Group %s is not a consumer group.", id))
	}
	n := g.modern
	r := kmsg.NewConsumerGroupDescribeResponseGroup()
	r.Group, r.State, r.Epoch, r.AssignmentEpoch, r.AssignorName = id, n.stateName(), n.epoch, n.targetEpoch, m.assignorOf(n)
	for _, x := range n.ordered() {
		d := kmsg.NewConsumerGroupDescribeResponseGroupMember()
		d.MemberID, d.InstanceID, d.RackID, d.MemberEpoch = x.id, x.said.Instance, x.said.Rack, x.epoch
		d.ClientID, d.ClientHost, d.SubscribedTopics, d.SubscribedTopicRegex = x.said.ClientID, x.said.ClientHost, x.said.Topics, x.said.Pattern
		d.Assignment.TopicPartitions = named(x.assigned.places(), topics)
		d.TargetAssignment.TopicPartitions = named(n.target[x.id], topics)
		d.MemberType = memberModern
		if x.said.Classic != nil {
			d.MemberType = memberClassic
		}
		r.Members = append(r.Members, d)
	}
	return r
}

// ConsumerNotDescribed says why a group is not described.
func ConsumerNotDescribed(id string, code int16, why string) kmsg.ConsumerGroupDescribeResponseGroup {
	r := kmsg.NewConsumerGroupDescribeResponseGroup()
	r.Group, r.ErrorCode = id, code
	if why != "" {
		r.ErrorMessage = &why
	}
	return r
}

// named groups places by topic; those of topics that are gone are left out.
func named(places []assign.Place, topics Topics) (out []kmsg.AssignmentTopicPartition) {
	for _, p := range places {
		if len(out) == 0 || out[len(out)-1].TopicID != p.Topic {
			t, ok := topics.TopicByID(p.Topic)
			if !ok {
				continue
			}
			out = append(out, kmsg.AssignmentTopicPartition{TopicID: p.Topic, Topic: t.Name})
		}
		last := &out[len(out)-1]
		last.Partitions = append(last.Partitions, p.Partition)
	}
	return out
}
