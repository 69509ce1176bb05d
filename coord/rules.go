package coord

import (
	"fmt"
	"strings"

	"millrace/wire"
)

// Limits on what one request may create.
const (
	MaxNameLength           = 249    // with "-<partition>" behind it a folder name stays under 255 bytes
	MaxPartitionsPerRequest = 10_000 // as Kafka's controller has it
	MaxPartitions           = 200_000
)

// internalTopics are written by brokers only.
var internalTopics = map[string]bool{
	"__consumer_offsets":  true,
	"__transaction_state": true,
	"__share_group_state": true,
}

// InternalName says whether a topic of that name belongs to the brokers.
func InternalName(name string) bool { return internalTopics[name] }

// CheckName returns what is wrong with a topic name, "" if nothing is.
func CheckName(name string) string {
	switch {
	case name == "":
		return "topic name is empty"
	case name == "." || name == "..":
		return fmt.Sprintf("topic name %q is a folder's name of its own", name)
	case len(name) > MaxNameLength:
		return fmt.Sprintf("topic name has %d characters, at most %d are allowed", len(name), MaxNameLength)
	}
	for i, c := range name {
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '.', c == '_', c == '-':
		default:
			return fmt.Sprintf("topic name %q has %q at %d; allowed are letters a-z and A-Z, digits, '.', '_' and '-'", name, c, i)
		}
	}
	return ""
}

// ReservedName is no topic's: the folder of its first partition would be that of the built-in coordination.
const ReservedName = "__millrace_coordination"

// collisionKey is equal for names that would give equal metric names: '.' and
// '_' are one there.
func collisionKey(name string) string { return strings.ReplaceAll(name, ".", "_") }

// Planner checks the topics of one request one after another and turns each
// into a Topic. It knows what the earlier ones of the same request took.
type Planner struct {
	img     *Image
	keys    map[string]string // collision key → name; existing topics and this request
	room    int               // partitions this request may still make
	twice   map[string]bool   // names that the request holds more than once
	replica int               // where the next assignment starts
}

// NewPlanner prepares for a request of these topics.
func NewPlanner(img *Image, request []NewTopic) *Planner {
	p := &Planner{
		img: img, keys: make(map[string]string, len(img.names)),
		room: min(MaxPartitionsPerRequest, MaxPartitions-img.partitions), twice: map[string]bool{},
	}
	for _, name := range img.names {
		p.keys[collisionKey(name)] = name
	}
	seen := make(map[string]bool, len(request))
	for i := range request {
		if seen[request[i].Name] {
			p.twice[request[i].Name] = true
		}
		seen[request[i].Name] = true
	}
	return p
}

// Plan checks one topic of the request. In the result Topic has no ID yet, and
// is nil if Code is not 0.
func (p *Planner) Plan(t NewTopic) TopicResult {
	refuse := func(code int16, format string, args ...any) TopicResult {
		return TopicResult{Name: t.Name, Code: code, Message: fmt.Sprintf(format, args...)}
	}
	if wrong := CheckName(t.Name); wrong != "" {
		return refuse(wire.ErrInvalidTopic, "%s", wrong)
	}
	if t.Name == ReservedName {
		return refuse(wire.ErrInvalidTopic, "topic name %q is reserved for the folder of coordination", t.Name)
	}
	if p.twice[t.Name] {
		return refuse(wire.ErrInvalidRequest, "topic %q is in the request more than once", t.Name)
	}
	if p.img.Topic(t.Name) != nil {
		return refuse(wire.ErrTopicAlreadyExists, "topic %q already exists", t.Name)
	}
	if other := p.keys[collisionKey(t.Name)]; other != "" {
		return refuse(wire.ErrInvalidTopic, "topic name %q collides with %q: they differ only in '.' and '_'", t.Name, other)
	}
	assignment := t.Assignment
	if assignment != nil {
		if wrong := p.checkAssignment(assignment); wrong != "" {
			return refuse(wire.ErrInvalidReplicaAssignment, "topic %q: %s", t.Name, wrong)
		}
	} else {
		switch alive := len(p.img.brokers); {
		case t.Partitions < 1:
			return refuse(wire.ErrInvalidPartitions, "topic %q: number of partitions is %d, it must be at least 1, or -1 for num.partitions", t.Name, t.Partitions)
		case t.Factor < 1:
			return refuse(wire.ErrInvalidReplicationFactor, "topic %q: replication factor is %d, it must be at least 1, or -1 for default.replication.factor", t.Name, t.Factor)
		case int(t.Factor) > alive:
			return refuse(wire.ErrInvalidReplicationFactor, "topic %q: replication factor is %d, but only %d broker(s) are alive", t.Name, t.Factor, alive)
		}
	}
	n := int(t.Partitions)
	if assignment != nil {
		n = len(assignment)
	}
	if n > p.room {
		if n > MaxPartitionsPerRequest {
			return refuse(wire.ErrPolicyViolation, "topic %q: %d partitions are too many, one request may make %d", t.Name, n, MaxPartitionsPerRequest)
		}
		return refuse(wire.ErrPolicyViolation, "topic %q: %d partitions are too many, this request may make %d more (%d per request, %d in the cluster, which has %d)", t.Name, n, p.room, MaxPartitionsPerRequest, MaxPartitions, p.img.partitions)
	}
	p.room -= n
	p.keys[collisionKey(t.Name)] = t.Name
	if assignment == nil {
		assignment = p.assign(n, int(t.Factor))
	}
	return TopicResult{Name: t.Name, Topic: newTopic(t, assignment)}
}

func newTopic(t NewTopic, assignment [][]int32) *Topic {
	topic := &Topic{Name: t.Name, Config: t.Config, Internal: t.Internal || InternalName(t.Name), Partitions: make([]Partition, len(assignment))}
	for i, replicas := range assignment {
		topic.Partitions[i] = Partition{Leader: replicas[0], Replicas: replicas, ISR: replicas}
	}
	return topic
}

// checkAssignment returns what is wrong with a manual assignment.
func (p *Planner) checkAssignment(assignment [][]int32) string {
	if len(assignment) == 0 {
		return "the assignment is empty"
	}
	for i, replicas := range assignment {
		switch {
		case len(replicas) == 0:
			return fmt.Sprintf("partition %d has no replicas", i)
		case len(replicas) != len(assignment[0]):
			return fmt.Sprintf("partition %d has %d replicas, partition 0 has %d", i, len(replicas), len(assignment[0]))
		}
		seen := make(map[int32]bool, len(replicas))
		for _, id := range replicas {
			if seen[id] {
				return fmt.Sprintf("partition %d names broker %d twice", i, id)
			}
			if seen[id] = true; p.img.Broker(id) == nil {
				return fmt.Sprintf("partition %d names broker %d, which is not alive", i, id)
			}
		}
	}
	return ""
}

// assign spreads replicas over the live brokers, each partition starting one
// broker further. (Racks come with clusters.)
func (p *Planner) assign(partitions, factor int) [][]int32 {
	brokers := p.img.brokers
	out := make([][]int32, partitions)
	for i := range out {
		replicas := make([]int32, factor)
		for r := range replicas {
			replicas[r] = brokers[(p.replica+r)%len(brokers)].ID
		}
		p.replica++
		out[i] = replicas
	}
	return out
}
