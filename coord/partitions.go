package coord

import (
	"fmt"

	"millrace/wire"
)

// PlanMore checks a wish for more partitions and returns the topic as it would
// be. Like Plan it counts against what one request may make.
func (p *Planner) PlanMore(m MorePartitions) TopicResult {
	refuse := func(code int16, format string, args ...any) TopicResult {
		return TopicResult{Name: m.Name, Code: code, Message: fmt.Sprintf(format, args...)}
	}
	if p.twice[m.Name] {
		return refuse(wire.ErrInvalidRequest, "topic %q is in the request more than once", m.Name)
	}
	topic := p.img.Topic(m.Name)
	if topic == nil {
		return refuse(wire.ErrUnknownTopicOrPartition, "topic %q does not exist", m.Name)
	}
	if topic.Internal {
		// A group's partition of the offsets topic follows from their number:
		// with another number, the groups would not find what they committed.
		return refuse(wire.ErrInvalidRequest, "topic %q belongs to the brokers; what is in it is found by its number of partitions, which stays %d", m.Name, len(topic.Partitions))
	}
	have := len(topic.Partitions)
	switch {
	case int(m.Count) == have:
		return refuse(wire.ErrInvalidPartitions, "topic %q has %d partition(s) already", m.Name, have)
	case int(m.Count) < have:
		return refuse(wire.ErrInvalidPartitions, "topic %q has %d partition(s), %d would not be more; partitions cannot be taken away", m.Name, have, m.Count)
	}
	more := int(m.Count) - have
	if more > p.room {
		return refuse(wire.ErrPolicyViolation, "topic %q: %d more partitions are too many, this request may make %d more (%d per request, %d in the cluster, which has %d)", m.Name, more, p.room, MaxPartitionsPerRequest, MaxPartitions, p.img.partitions)
	}
	factor := len(topic.Partitions[0].Replicas)
	assignment := m.Assignment
	if assignment == nil {
		if alive := len(p.img.brokers); factor > alive {
			return refuse(wire.ErrInvalidReplicationFactor, "topic %q has %d replicas of each partition, but only %d broker(s) are alive", m.Name, factor, alive)
		}
		p.replica = have
		assignment = p.assign(more, factor)
	} else if wrong := p.checkMore(assignment, more, factor); wrong != "" {
		return refuse(wire.ErrInvalidReplicaAssignment, "topic %q: %s", m.Name, wrong)
	}
	p.room -= more
	next := *topic
	next.Partitions = append(make([]Partition, 0, m.Count), topic.Partitions...)
	for _, replicas := range assignment {
		next.Partitions = append(next.Partitions, Partition{Leader: replicas[0], Replicas: replicas, ISR: replicas})
	}
	return TopicResult{Name: m.Name, Topic: &next}
}

// checkMore returns what is wrong with a manual assignment of new partitions.
func (p *Planner) checkMore(assignment [][]int32, more, factor int) string {
	if len(assignment) != more {
		return fmt.Sprintf("%d partition(s) are to be added, but %d are assigned", more, len(assignment))
	}
	if wrong := p.checkAssignment(assignment); wrong != "" {
		return "of the new ones, " + wrong
	}
	if n := len(assignment[0]); n != factor {
		return fmt.Sprintf("the new partitions have %d replica(s) each, the others have %d", n, factor)
	}
	return ""
}
