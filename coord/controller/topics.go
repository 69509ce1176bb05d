package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"millrace/coord"
	"millrace/coord/controller/cluster"
	"millrace/coord/controller/znode"
	"millrace/wire"
)

// failed answers for a topic whose change was not made, or perhaps was.
func (s *Service) failed(name string, err error) coord.TopicResult {
	code, message := s.code(err)
	return coord.TopicResult{Name: name, Code: code, Message: message}
}

// CreateTopics is coord.Service's. A topic is in one multi where it fits, and as many topics as fit are in one: their settings, their assignments, their
// partitions with their leaders.
func (s *Service) CreateTopics(ctx context.Context, topics []coord.NewTopic, validateOnly bool) []coord.TopicResult {
	s.mu.Lock()
	defer s.mu.Unlock()
	results := make([]coord.TopicResult, len(topics))
	if err := s.leading(ctx); err != nil {
		for i := range topics {
			results[i] = s.failed(topics[i].Name, err)
		}
		return results
	}
	planner := coord.NewPlanner(s.Image(), topics)
	o := s.newOrders()
	var drafts []*draft
	size := 0
	for i, t := range topics {
		r := planner.Plan(t)
		if old := s.topic(t.Name); r.Code == 0 && old != nil {
			r = coord.TopicResult{Name: t.Name, Code: wire.ErrTopicAlreadyExists, Message: fmt.Sprintf("topic %q already exists", t.Name)}
			if old.Deletion != nil {
				r.Message = fmt.Sprintf("topic %q is marked for deletion", t.Name)
			}
		}
		results[i] = r
		if r.Code != 0 || validateOnly {
			continue
		}
		d, r := s.draftTopic(r.Topic)
		if results[i] = r; r.Code != 0 {
			continue
		}
		if d.at = i; size+d.size > s.o.batch {
			s.writeDrafts(drafts, results, o)
			drafts, size = nil, 0
		}
		drafts, size = append(drafts, d), size+d.size
	}
	s.writeDrafts(drafts, results, o)
	s.watchMade(results)
	s.sendFor(results, o)
	return results
}

// watchMade asks to be told of changes by others of the topics that were made: all at once.
func (s *Service) watchMade(results []coord.TopicResult) {
	if s.mu.lead == nil {
		return
	}
	err := s.each(len(results), func(i int) error {
		if results[i].Topic == nil || s.topic(results[i].Name) == nil {
			return nil // not made
		}
		return s.watchTopic(results[i].Name)
	})
	if err != nil {
		s.doubt(err) // the topics are there all the same
	}
}

// sendFor sends what follows from changes that are written. If it cannot be sent, none of them is answered as done. Caller holds mu.
func (s *Service) sendFor(results []coord.TopicResult, o *orders) {
	if s.mu.lead == nil {
		return
	}
	err := o.send()
	if err == nil {
		return
	}
	for i := range results {
		if results[i].Code == 0 {
			results[i] = s.failed(results[i].Name, err)
		}
	}
}

// draft is a topic that is about to be written.
type draft struct {
	at      int // in the request
	topic   *cluster.Topic
	config  map[string]string
	changes []change
	ops     []any // the first makes the settings, the second the topic
	size    int   // bytes of a multi
}

// tooLarge refuses a topic whose assignment coordination could not hold.
func tooLarge(name string, bytes int) coord.TopicResult {
	return coord.TopicResult{Name: name, Code: wire.ErrPolicyViolation, Message: fmt.Sprintf("topic %q: its assignment takes %d bytes, a node may have %d", name, bytes, maxNode)}
}

// topic is what the controller knows of a topic; nil if there is none.
func (s *Service) topic(name string) *cluster.Topic {
	if s.mu.lead == nil {
		return nil
	}
	return s.mu.lead.state.Topics[name]
}

// draftTopic makes what is to be written of one planned topic.
func (s *Service) draftTopic(planned *coord.Topic) (*draft, coord.TopicResult) {
	id, err := s.newTopicID()
	if err != nil {
		return nil, s.failed(planned.Name, err)
	}
	if s.mu.lead == nil || s.mu.stale {
		return nil, s.failed(planned.Name, errMoved)
	}
	t := &cluster.Topic{Name: planned.Name, ID: id}
	for _, p := range planned.Partitions {
		t.Partitions = append(t.Partitions, &cluster.Partition{Replicas: p.Replicas, Phase: cluster.New, Leader: cluster.NoLeader, Version: -1})
	}
	if n := len(encodeTopic(t)); n > maxNode {
		return nil, tooLarge(t.Name, n)
	}
	d := &draft{topic: t, config: planned.Config}
	changes, states := s.firstStates(t, false, nil)
	d.changes, d.ops = changes, append([]any{create(znode.ConfigPath(topicEntity(t.Name)), znode.EncodeConfig(planned.Config)), create(znode.TopicPath(t.Name), encodeTopic(t))}, states...)
	for _, op := range d.ops {
		d.size += sizeOf(op)
	}
	return d, coord.TopicResult{Name: t.Name}
}

// writeDrafts writes topics that fit into one multi together; each for itself if one of them is refused, or there is only one.
func (s *Service) writeDrafts(drafts []*draft, results []coord.TopicResult, o *orders) {
	if len(drafts) > 1 {
		var ops []any
		for _, d := range drafts {
			ops = append(ops, d.ops...)
		}
		_, err := s.fenced(ops...)
		if !errors.As(err, new(*refused)) {
			for _, d := range drafts {
				if err != nil {
					results[d.at] = s.failed(d.topic.Name, err)
				} else {
					results[d.at] = s.made(d, o)
				}
			}
			return
		}
	}
	for _, d := range drafts {
		results[d.at] = s.createTopic(d, o)
	}
}

// createTopic writes one topic.
func (s *Service) createTopic(d *draft, o *orders) coord.TopicResult {
	t, ops := d.topic, d.ops
	if s.mu.lead == nil || s.mu.stale {
		return s.failed(t.Name, errMoved)
	}
	err := s.fencedInBatches(ops, 2, 0, nil)
	if r := (*refused)(nil); errors.As(err, &r) && r.op == ops[0] {
		// Settings without a topic: a tool was cut off between the two. They are nobody's, as for Kafka.
		ops[0] = set(znode.ConfigPath(topicEntity(t.Name)), znode.EncodeConfig(d.config), -1)
		err = s.fencedInBatches(ops, 2, 0, nil)
	}
	if isNodeExists(err) {
		s.events.add(znode.Topics) // a tool has just made it
		return coord.TopicResult{Name: t.Name, Code: wire.ErrTopicAlreadyExists, Message: fmt.Sprintf("topic %q already exists", t.Name)}
	}
	if err != nil {
		return s.failed(t.Name, err)
	}
	return s.made(d, o)
}

// made takes over a topic that is written.
func (s *Service) made(d *draft, o *orders) coord.TopicResult {
	t := d.topic
	s.mu.lead.state.Topics[t.Name] = t
	take(d.changes, o)
	o.topic(t)
	s.member.expect(t.Name, d.config)
	made := t.Coord(d.config)
	return coord.TopicResult{Name: t.Name, Topic: &made}
}

// watchTopic asks to be told of changes of a topic's node by others.
func (s *Service) watchTopic(name string) error {
	_, err := s.mu.conn.Exists(znode.TopicPath(name), true)
	return err
}

// CreatePartitions is coord.Service's.
func (s *Service) CreatePartitions(ctx context.Context, topics []coord.MorePartitions, validateOnly bool) []coord.TopicResult {
	s.mu.Lock()
	defer s.mu.Unlock()
	results := make([]coord.TopicResult, len(topics))
	if err := s.leading(ctx); err != nil {
		for i := range topics {
			results[i] = s.failed(topics[i].Name, err)
		}
		return results
	}
	request := make([]coord.NewTopic, len(topics))
	for i := range topics {
		request[i].Name = topics[i].Name
	}
	planner := coord.NewPlanner(s.Image(), request)
	o := s.newOrders()
	for i := range topics {
		m := &topics[i]
		r := planner.PlanMore(*m)
		if r.Code == 0 && !validateOnly && m.Prepare != nil {
			if err := m.Prepare(r.Topic); err != nil {
				r = coord.TopicResult{Name: m.Name, Code: wire.ErrKafkaStorageError, Message: err.Error()}
			}
		}
		if r.Code == 0 && !validateOnly {
			r = s.growTopic(r.Topic, o)
		}
		results[i] = r
	}
	s.sendFor(results, o)
	return results
}

// growTopic writes the new assignment and the new partitions.
func (s *Service) growTopic(planned *coord.Topic, o *orders) coord.TopicResult {
	t := s.topic(planned.Name)
	if t == nil || s.mu.stale {
		return s.failed(planned.Name, errMoved)
	}
	for _, p := range t.Partitions {
		if cluster.Moving(p) {
			return coord.TopicResult{Name: t.Name, Code: wire.ErrReassignmentInProgress, Message: fmt.Sprintf("topic %q: replicas are being moved", t.Name)}
		}
	}
	next := *t
	next.Partitions = slices.Clone(t.Partitions)
	for _, p := range planned.Partitions[len(t.Partitions):] {
		next.Partitions = append(next.Partitions, &cluster.Partition{Replicas: p.Replicas, Phase: cluster.New, Leader: cluster.NoLeader, Version: -1})
	}
	if n := len(encodeTopic(&next)); n > maxNode {
		return tooLarge(t.Name, n)
	}
	changes, states := s.firstStates(&next, true, nil)
	err := s.fencedInBatches(append([]any{set(znode.TopicPath(t.Name), encodeTopic(&next), t.Version)}, states...), 0, 0, nil)
	if err != nil {
		if errors.As(err, new(*refused)) {
			s.doubt(err) // a tool has changed the topic
		}
		return s.failed(t.Name, err)
	}
	next.Version++
	*t = next
	for _, c := range changes {
		t.Partitions[c.index] = c.next
		o.partition(t, c.index)
	}
	made := t.Coord(planned.Config)
	return coord.TopicResult{Name: t.Name, Topic: &made}
}

// DeleteTopics is coord.Service's. A topic whose replicas are not all on live brokers is answered for and out of the image once its deletion is written;
// the rest of it goes when they are back.
func (s *Service) DeleteTopics(ctx context.Context, names []string) []coord.TopicResult {
	s.mu.Lock()
	defer s.mu.Unlock()
	results := make([]coord.TopicResult, len(names))
	if err := s.leading(ctx); err != nil {
		for i := range names {
			results[i] = s.failed(names[i], err)
		}
		return results
	}
	img := s.Image()
	var asked []int
	var ops []any
	for i, name := range names {
		t, seen := s.topic(name), img.Topic(name)
		if t == nil || t.Deletion != nil || seen == nil {
			results[i] = coord.TopicResult{Name: name, Code: wire.ErrUnknownTopicOrPartition, Message: fmt.Sprintf("topic %q does not exist", name)}
			continue
		}
		t.Deletion = t.Begin()
		asked = append(asked, i)
		ops = append(ops, create(znode.DeletePath(name), nil))
		results[i] = coord.TopicResult{Name: name, Topic: seen}
	}
	err := s.fencedInBatches(ops, 0, 0, nil)
	if isNodeExists(err) {
		// A tool has asked for one of them. Those before it are written or not: each is looked at.
		err = s.askOneByOne(ops)
	}
	if err != nil {
		if s.mu.lead != nil {
			s.doubt(err) // some may be written
		}
		for _, i := range asked {
			results[i] = s.failed(names[i], err)
		}
		return results
	}
	if len(asked) == 0 {
		return results
	}
	if err := s.deletions(); err != nil {
		for _, i := range asked {
			results[i] = s.failed(names[i], err)
		}
	}
	return results
}

// askOneByOne makes the requests that are not there yet.
func (s *Service) askOneByOne(ops []any) error {
	for _, op := range ops {
		if _, err := s.fenced(op); err != nil && !isNodeExists(err) {
			return err
		}
	}
	return nil
}
