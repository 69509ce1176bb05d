package group

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"millrace/coord/group/assign"
	"millrace/coord/group/record"
	"millrace/wire"
)

// namesItself is the first version of ConsumerGroupHeartbeat in which a member
// brings its own id.
const namesItself = 1

// beat is a ConsumerGroupHeartbeat. The request's strings are kept, nothing
// else of it.
type beat struct {
	from     Client
	group    string
	member   string
	epoch    int32
	instance *string
	rack     *string
	timeout  int32    // ms; -1: as before
	topics   []string // in order; nil: as before
	pattern  *string  // nil: as before; "": none
	assignor *string  // nil: as before
	owns     []assign.Place
	tells    bool // what it owns
	whole    bool // tells all, and is told all
}

// ConsumerHeartbeat serves ConsumerGroupHeartbeat: a member joins, lives, acks
// and leaves by it. The answer comes when what it tells is durable.
func (m *Groups) ConsumerHeartbeat(now time.Time, call Call, from Client, req *kmsg.ConsumerGroupHeartbeatRequest) {
	b := beatOf(from, req)
	if code, why := m.malformed(b); code != wire.ErrNone {
		m.answer(call, RefuseConsumer(code, why))
		return
	}
	if b.member == "" {
		b.member = m.newID()
	}
	m.consumerBeat(now, call, b)
}

func beatOf(from Client, req *kmsg.ConsumerGroupHeartbeatRequest) *beat {
	b := &beat{
		from: from, group: req.Group, member: req.MemberID, epoch: req.MemberEpoch, instance: req.InstanceID, rack: req.RackID,
		timeout: req.RebalanceTimeoutMillis, pattern: req.SubscribedTopicRegex, assignor: req.ServerAssignor, tells: req.Topics != nil,
	}
	if req.SubscribedTopicNames != nil {
		b.topics = append([]string{}, req.SubscribedTopicNames...)
		slices.Sort(b.topics)
		b.topics = slices.Compact(b.topics)
	}
	for i := range req.Topics {
		for _, p := range req.Topics[i].Partitions {
			b.owns = append(b.owns, assign.Place{Topic: req.Topics[i].TopicID, Partition: p})
		}
	}
	slices.SortFunc(b.owns, assign.Compare)
	b.whole = b.epoch == epochJoins || b.timeout != -1 && (b.topics != nil || b.pattern != nil) && b.tells
	return b
}

// malformed says what is wrong with a request by itself.
func (m *Groups) malformed(b *beat) (int16, string) {
	empty := func(s *string) bool { return s != nil && strings.TrimSpace(*s) == "" }
	joins := b.epoch == epochJoins
	switch {
	case !m.settings.Consumer.Enabled:
		return wire.ErrUnsupportedVersion, "The consumer group protocol is not enabled: group.coordinator.rebalance.protocols does not name it."
	case strings.TrimSpace(b.group) == "":
		return wire.ErrInvalidRequest, "GroupId can't be empty."
	case strings.TrimSpace(b.member) == "" && (b.from.Version >= namesItself || !joins):
		return wire.ErrInvalidRequest, "MemberId can't be empty."
	case empty(b.instance):
		return wire.ErrInvalidRequest, "InstanceId can't be empty."
	case empty(b.rack):
		return wire.ErrInvalidRequest, "RackId can't be empty."
	case joins && b.timeout == -1:
		return wire.ErrInvalidRequest, "RebalanceTimeoutMs must be provided in first request."
	case joins && (!b.tells || len(b.owns) > 0):
		return wire.ErrInvalidRequest, "TopicPartitions must be empty when (re-)joining."
	case joins && b.topics == nil && b.pattern == nil:
		return wire.ErrInvalidRequest, "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining."
	case b.timeout < -1:
		return wire.ErrInvalidRequest, fmt.Sprintf("RebalanceTimeoutMs is %d.", b.timeout)
	case b.epoch == epochAway && b.instance == nil:
		return wire.ErrInvalidRequest, "InstanceId can't be null."
	case b.epoch < epochAway:
		return wire.ErrInvalidRequest, "MemberEpoch is invalid."
	case len(b.owns) > maxOwns:
		return wire.ErrInvalidRequest, fmt.Sprintf("TopicPartitions names %d partitions, more than %d.", len(b.owns), maxOwns)
	}
	if a := b.assignor; a != nil && !slices.Contains(m.settings.Consumer.Assignors, *a) {
		return wire.ErrUnsupportedAssignor, fmt.Sprintf("ServerAssignor %s is not supported. Supported assignors: %s (group.consumer.assignors).", *a, strings.Join(m.settings.Consumer.Assignors, ", "))
	}
	if b.pattern != nil && *b.pattern != "" {
		if _, err := compile(*b.pattern); err != nil {
			return wire.ErrInvalidRegularExpression, fmt.Sprintf("SubscribedTopicRegex `%s` is not a valid regular expression: %v.", *b.pattern, err)
		}
	}
	return wire.ErrNone, ""
}

// compile reads a pattern, which must match whole names (RE2, as in Kafka).
func compile(pattern string) (*regexp.Regexp, error) {
	if _, err := regexp.Compile(pattern); err != nil { // by itself first: "a)(b" must not pass
		return nil, err
	}
	return regexp.Compile("^(?:" + pattern + ")$")
}

// RefuseConsumer answers a ConsumerGroupHeartbeat with an error.
func RefuseConsumer(code int16, why string) kmsg.Response {
	r := kmsg.NewPtrConsumerGroupHeartbeatResponse()
	r.ErrorCode = code
	if why != "" {
		r.ErrorMessage = &why
	}
	return r
}

// consumerBeat finds the beat's group, or makes it one of this protocol.
func (m *Groups) consumerBeat(now time.Time, call Call, b *beat) {
	g := m.groups[b.group]
	joins := b.epoch == epochJoins
	if g == nil && !joins {
		m.answer(call, RefuseConsumer(wire.ErrGroupIDNotFound, fmt.Sprintf("Group %s not found.", b.group)))
		return
	}
	if g == nil {
		g = m.find(b.group)
	}
	begin := (*step).endClassic
	switch {
	case g.modern != nil:
	case !joins:
		m.answer(call, RefuseConsumer(wire.ErrGroupIDNotFound, fmt.Sprintf("Group %s is not a consumer group.", b.group)))
		return
	case g.canBecomeModern():
		for id, p := range g.pending {
			m.dropPending(g, id, p)
		}
		g.modern = m.newModern(g)
	default:
		write, code, why := m.upgrade(g, b)
		if code != wire.ErrNone {
			m.answer(call, RefuseConsumer(code, why))
			return
		}
		begin = write
	}
	m.enqueue(now, g, &consumerOp{
		call:   call,
		run:    func(now time.Time, s *step) kmsg.Response { return m.runBeat(now, s, b, begin) },
		refuse: func(code int16) kmsg.Response { return RefuseConsumer(code, "") },
		again:  func(now time.Time) { m.consumerBeat(now, call, b) },
	})
}

// runBeat is the beat itself. begin writes what must be before it if the group
// has just taken up this protocol.
func (m *Groups) runBeat(now time.Time, s *step, b *beat, begin func(*step)) kmsg.Response {
	n := s.g.modern
	if b.epoch < epochJoins {
		return m.consumerLeaves(now, s, b)
	}
	x, code, why := m.claim(n, b)
	if code != wire.ErrNone {
		return RefuseConsumer(code, why)
	}
	begin(s)
	old := x
	if replaced := n.replacedBy(b); replaced != nil {
		// A static member that is back under another id takes over what it had.
		x, old = s.replace(replaced, b.member, epochJoins), replaced
	} else if x == nil {
		x = &consumer{id: b.member, assigned: holding{}, revoking: holding{}}
	}
	y := *x
	b.update(&y.said)
	if old == nil || !equalSaid(&x.said, &y.said) {
		s.setMember(&y)
	}
	m.look(now, s, old == nil || !slices.Equal(old.said.Topics, y.said.Topics) || !same(old.said.Pattern, y.said.Pattern))
	m.target(now, s)
	before := n.members[b.member]
	after := n.reconcile(before, b)
	if after != before {
		s.setMember(after)
	}
	s.touched[b.member] = true
	return m.consumerAnswer(n, b, old, after)
}

// claim checks a member's claim to be one. No member and no error: it is new.
func (m *Groups) claim(n *modern, b *beat) (*consumer, int16, string) {
	joins := b.epoch == epochJoins
	x := n.members[b.member]
	if b.instance != nil {
		switch holder := n.instances[*b.instance]; {
		case holder == nil && !joins:
			return nil, wire.ErrUnknownMemberID, fmt.Sprintf("Instance id %s is unknown.", *b.instance)
		case holder == nil || holder.id == b.member:
		case !joins:
			return nil, wire.ErrFencedInstanceID, fmt.Sprintf("Static member %s with instance id %s was fenced by member %s.", b.member, *b.instance, holder.id)
		case holder.epoch != epochAway && holder.said.Classic == nil:
			return nil, wire.ErrUnreleasedInstanceID, fmt.Sprintf("Static member %s with instance id %s cannot join the group because the instance id is owned by %s member.", b.member, *b.instance, holder.id)
		default:
			return nil, wire.ErrNone, "" // takes its place
		}
	}
	switch {
	case joins && x == nil && len(n.members) >= m.settings.Consumer.MaxSize:
		return nil, wire.ErrGroupMaxSizeReached, fmt.Sprintf("The consumer group has reached its maximum capacity of %d members (group.consumer.max.size).", m.settings.Consumer.MaxSize)
	case joins:
		return x, wire.ErrNone, ""
	case x == nil:
		return nil, wire.ErrUnknownMemberID, fmt.Sprintf("Member %s is not a member of group %s.", b.member, b.group)
	case b.epoch > x.epoch:
		return nil, wire.ErrFencedMemberEpoch, fmt.Sprintf("The consumer group member has a greater member epoch (%d) than the one known by the group coordinator (%d). The member must abandon all its partitions and rejoin.", b.epoch, x.epoch)
	case b.epoch < x.epoch && (b.epoch != x.previous || !b.ownsOnly(x.assigned)):
		return nil, wire.ErrFencedMemberEpoch, fmt.Sprintf("The consumer group member has a smaller member epoch (%d) than the one known by the group coordinator (%d). The member must abandon all its partitions and rejoin.", b.epoch, x.epoch)
	}
	return x, wire.ErrNone, ""
}

// replacedBy is the static member whose place the beat's member takes.
func (n *modern) replacedBy(b *beat) *consumer {
	if b.instance == nil {
		return nil
	}
	if x := n.instances[*b.instance]; x != nil && x.id != b.member {
		return x
	}
	return nil
}

// replace puts a member that is new in the place of a static one, with all that
// it had.
func (s *step) replace(old *consumer, id string, epoch int32) *consumer {
	target := s.g.modern.target[old.id]
	s.dropMember(old)
	x := &consumer{id: id, said: old.said, epoch: epoch, assigned: old.assigned, revoking: old.revoking, state: old.state}
	s.setMember(x)
	s.setTarget(x.id, target)
	return x
}

// ownsOnly says whether the member tells that it owns nothing else: then it has
// missed our last answer, and nothing is lost.
func (b *beat) ownsOnly(h holding) bool {
	for _, p := range b.owns {
		if _, ok := h[p]; !ok {
			return false
		}
	}
	return b.tells
}

// update takes over what a beat tells anew.
func (b *beat) update(c *record.Consumer) {
	c.ClientID, c.ClientHost, c.Classic = b.from.ID, b.from.Host, nil
	if b.instance != nil {
		c.Instance = b.instance
	}
	if b.rack != nil {
		c.Rack = b.rack
	}
	if b.timeout != -1 {
		c.RebalanceMs = b.timeout
	}
	if b.topics != nil {
		c.Topics = b.topics
	}
	if b.epoch == epochJoins {
		c.Topics, c.Pattern = b.topics, nil
	}
	switch {
	case b.pattern == nil:
	case *b.pattern == "":
		c.Pattern = nil
	default:
		c.Pattern = b.pattern
	}
	if b.assignor != nil {
		c.Assignor = b.assignor
	}
}

func same(a, b *string) bool { return a == nil && b == nil || a != nil && b != nil && *a == *b }

func equalSaid(a, b *record.Consumer) bool {
	return same(a.Instance, b.Instance) && same(a.Rack, b.Rack) && a.ClientID == b.ClientID && a.ClientHost == b.ClientHost &&
		slices.Equal(a.Topics, b.Topics) && same(a.Pattern, b.Pattern) && a.RebalanceMs == b.RebalanceMs && same(a.Assignor, b.Assignor) && equalClassic(a.Classic, b.Classic)
}

// consumerAnswer tells a member its epoch, and its partitions if that is news,
// or if it has missed an answer.
func (m *Groups) consumerAnswer(n *modern, b *beat, old, x *consumer) kmsg.Response {
	r := kmsg.NewPtrConsumerGroupHeartbeatResponse()
	id := x.id
	r.MemberID, r.MemberEpoch, r.HeartbeatIntervalMillis = &id, x.epoch, int32(m.settings.Consumer.times(b.group).Heartbeat.Milliseconds())
	if !b.whole && old != nil && old.epoch == b.epoch && sameHolding(old.assigned, x.assigned) {
		return r
	}
	r.Assignment = &kmsg.ConsumerGroupHeartbeatResponseAssignment{Topics: []kmsg.ConsumerGroupHeartbeatResponseAssignmentTopic{}}
	for _, p := range partitionsOf(x.assigned) {
		r.Assignment.Topics = append(r.Assignment.Topics, kmsg.ConsumerGroupHeartbeatResponseAssignmentTopic{TopicID: p.Topic, Partitions: p.Partitions})
	}
	return r
}

// sameHolding compares partitions, not the epochs of their assignment.
func sameHolding(a, b holding) bool {
	if len(a) != len(b) {
		return false
	}
	for p := range a {
		if _, ok := b[p]; !ok {
			return false
		}
	}
	return true
}
