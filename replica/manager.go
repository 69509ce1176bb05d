package replica

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"millrace/engine"
)

// Logs is where the Manager finds the logs of partitions; engine.Store is one.
type Logs interface {
	Log(topic string, partition int32) *engine.Log // nil if there is none
}

// Manager knows every partition that this broker has a replica of.
type Manager struct {
	node int32
	logs Logs

	mu    sync.Mutex // serialises Apply
	index atomic.Pointer[index]
}

// index is replaced whole by every change.
type index struct {
	byName map[string]*Topic
	byID   map[[16]byte]*Topic
	count  int // partitions
}

// NewManager makes an empty Manager for the broker with id node.
func NewManager(node int32, logs Logs) *Manager {
	m := &Manager{node: node, logs: logs}
	m.index.Store(&index{byName: map[string]*Topic{}, byID: map[[16]byte]*Topic{}})
	return m
}

// Topic finds a topic by name; nil if it is not here. The name is not kept.
func (m *Manager) Topic(name string) *Topic { return m.index.Load().byName[name] }

// TopicByID finds a topic by id; nil if it is not here.
func (m *Manager) TopicByID(id [16]byte) *Topic { return m.index.Load().byID[id] }

// Topics are all topics by name. Not to be changed.
func (m *Manager) Topics() map[string]*Topic { return m.index.Load().byName }

// Count is how many partitions are here.
func (m *Manager) Count() int { return m.index.Load().count }

// Apply takes over what coordination says of the changed topics and drops those
// named in removed. The logs of new partitions must be there already; one that
// is not leaves its partition offline. Errors name the partitions that could
// not take their role, all others have taken it.
func (m *Manager) Apply(changed []TopicState, removed []string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	old := m.index.Load()
	next := &index{byName: maps.Clone(old.byName), byID: maps.Clone(old.byID)}
	for _, name := range removed {
		next.drop(name)
	}
	var failed []error
	for i := range changed {
		s := &changed[i]
		t := next.byName[s.Name]
		if t != nil && t.ID != s.ID {
			next.drop(s.Name) // deleted and made anew
			t = nil
		}
		if t == nil {
			t = newTopic(s)
		}
		if err := m.update(t, s); err != nil {
			failed = append(failed, err)
		}
		next.byName[s.Name], next.byID[s.ID] = t, t
	}
	for _, t := range next.byName {
		next.count += len(t.Partitions())
	}
	m.index.Store(next)
	return errors.Join(failed...)
}

func (x *index) drop(name string) {
	t := x.byName[name]
	if t == nil {
		return
	}
	delete(x.byName, name)
	delete(x.byID, t.ID)
	for _, p := range t.Partitions() {
		if p != nil {
			p.leave()
		}
	}
}

func newTopic(s *TopicState) *Topic {
	t := &Topic{Name: s.Name, ID: s.ID}
	t.partitions.Store(new([]*Partition))
	return t
}

// update brings a topic to what coordination says. Partitions are only ever
// added: they go with their topic.
func (m *Manager) update(t *Topic, s *TopicState) error {
	policy := s.Policy
	t.policy.Store(&policy)
	size := len(t.Partitions())
	for _, ps := range s.Partitions {
		size = max(size, int(ps.Index)+1)
	}
	all := make([]*Partition, size)
	copy(all, t.Partitions())
	var failed []error
	for i := range s.Partitions {
		ps := &s.Partitions[i]
		p := all[ps.Index]
		if p == nil && !slices.Contains(ps.Replicas, m.node) {
			continue
		}
		if p == nil {
			p = &Partition{Topic: t, Index: ps.Index, log: m.logOf(s, ps.Index)}
			p.role.Store(&role{leader: -1, epoch: -1})
			if p.log != nil {
				p.log.OnDurable(p.durable)
			}
			all[ps.Index] = p
		}
		if err := p.assume(m.node, ps); err != nil {
			failed = append(failed, fmt.Errorf("%s-%d: %w", s.Name, ps.Index, err))
		}
	}
	t.partitions.Store(&all)
	return errors.Join(failed...)
}

// logOf finds a partition's log. One that belongs to another topic of the same
// name (deleted long ago, or copied here) is not it: the partition is offline.
func (m *Manager) logOf(s *TopicState, partition int32) *engine.Log {
	log := m.logs.Log(s.Name, partition)
	if log == nil {
		return nil
	}
	if id := log.ID().Topic; id != s.ID && id != [16]byte{} {
		return nil
	}
	return log
}
