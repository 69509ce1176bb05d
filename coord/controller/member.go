package controller

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"

	"millrace/coord"
)

// member is the half of a Service that every broker has: the image, built once for each change, and whoever waits for it.
type member struct {
	s     *Service
	conn  atomic.Pointer[Conn] // of the present session; for orders, which come without Service.mu
	image atomic.Pointer[coord.Image]
	life  atomic.Int64 // the broker epoch of the present registration

	mu struct { // one image at a time, subscribers' calls included
		sync.Mutex
		subscribers []*subscriber
		epoch       int32                        // of the controller whose orders were taken last
		configs     map[string]map[string]string // of topics that are about to be in the image
	}
}

type subscriber struct{ f func(*coord.Image) }

var _ Peer = (*member)(nil)

func newMember(s *Service) *member {
	m := &member{s: s}
	m.mu.configs = map[string]map[string]string{}
	return m
}

// Member takes the orders of whoever is controller.
func (s *Service) Member() Peer { return s.member }

// begin publishes the first image.
func (m *member) begin(cluster string, topics []coord.Topic, all *settings) {
	m.image.Store(coord.NewImage(cluster, -1, nil, topics).WithBrokerConfigs(all.defaults, all.own).WithNamedConfigs(all.groups, all.metrics).WithQuotas(all.quotas))
}

func (m *member) subscribe(f func(*coord.Image)) (cancel func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	sub := &subscriber{f}
	m.mu.subscribers = append(m.mu.subscribers, sub)
	f(m.image.Load())
	return func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.mu.subscribers = slices.DeleteFunc(m.mu.subscribers, func(x *subscriber) bool { return x == sub })
	}
}

func (m *member) close() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.mu.subscribers = nil
}

// publish calls the subscribers, then shows the image, if it is another. Caller holds mu.
func (m *member) publish(img *coord.Image) {
	if img == m.image.Load() {
		return
	}
	for _, sub := range m.mu.subscribers {
		sub.f(img)
	}
	m.image.Store(img)
}

// fence refuses orders that have been overtaken. Caller holds mu.
func (m *member) fence(o Order) error {
	if o.ControllerEpoch < m.mu.epoch {
		return fmt.Errorf("%w: controller epoch %d, known is %d", ErrStaleOrder, o.ControllerEpoch, m.mu.epoch)
	}
	if life := m.life.Load(); o.BrokerEpoch < life {
		return fmt.Errorf("%w: broker epoch %d, this life's is %d", ErrStaleOrder, o.BrokerEpoch, life)
	}
	m.mu.epoch = o.ControllerEpoch
	return nil
}

// LeaderAndISR checks the order. What it says takes effect with the image of the UpdateMetadata that follows it: roles come from the image.
func (m *member) LeaderAndISR(o *LeaderAndISR) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.fence(o.Order)
}

// StopReplica confirms that replicas have gone, which they did when the image without them was published.
func (m *member) StopReplica(o *StopReplica) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.fence(o.Order); err != nil {
		return err
	}
	img := m.image.Load()
	for _, r := range o.Replicas {
		t := img.Topic(r.Topic)
		if t != nil && t.ID == r.ID && int(r.Partition) < len(t.Partitions) && r.Delete && slices.Contains(t.Partitions[r.Partition].Replicas, m.s.o.BrokerID) {
			return fmt.Errorf("partition %d of topic %q is still in use", r.Partition, r.Topic)
		}
		if r.Delete && m.s.o.Stopped != nil {
			if err := m.s.o.Stopped(r); err != nil {
				return err
			}
		}
	}
	return nil
}

// UpdateMetadata publishes an image with what has changed.
func (m *member) UpdateMetadata(o *UpdateMetadata) error {
	configs, err := m.configsFor(o.Topics)
	if err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.fence(o.Order); err != nil {
		return err
	}
	img := m.image.Load()
	var put []coord.Topic
	var drop []string
	for i := range o.Topics {
		t := &o.Topics[i]
		old := img.Topic(t.Name)
		if t.Deleted {
			if old != nil {
				drop = append(drop, t.Name)
			}
			continue
		}
		next, err := merge(old, t, configs[t.Name])
		if err != nil {
			return err
		}
		if old == nil || !reflect.DeepEqual(*old, next) {
			put = append(put, next)
		}
	}
	if o.Full {
		drop = absent(img.Names(), o.Topics)
	}
	if len(put) > 0 || len(drop) > 0 {
		img = img.With(put, drop)
	}
	if img.ControllerID() != o.Controller || !slices.EqualFunc(img.Brokers(), o.Live, sameBroker) {
		img = img.WithBrokers(o.Controller, o.Live)
	}
	m.publish(img)
	for i := range o.Topics {
		delete(m.mu.configs, o.Topics[i].Name)
	}
	return nil
}

// absent are those of names that are not among topics.
func absent(names []string, topics []TopicState) (out []string) {
	told := make(map[string]bool, len(topics))
	for i := range topics {
		told[topics[i].Name] = !topics[i].Deleted
	}
	for _, name := range names {
		if !told[name] {
			out = append(out, name)
		}
	}
	return out
}

func sameBroker(a, b coord.Broker) bool {
	return a.ID == b.ID && a.Rack == b.Rack && slices.Equal(a.Endpoints, b.Endpoints)
}

// expect gives the settings of a topic that this broker is about to be told of.
func (m *member) expect(topic string, config map[string]string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.mu.configs[topic] = config
}

// configsFor finds the settings of topics that the image does not have: orders do not carry them.
func (m *member) configsFor(topics []TopicState) (map[string]map[string]string, error) {
	out := map[string]map[string]string{}
	img := m.image.Load()
	for i := range topics {
		t := &topics[i]
		if old := img.Topic(t.Name); t.Deleted || old != nil && old.ID == t.ID {
			continue
		}
		m.mu.Lock()
		config, ok := m.mu.configs[t.Name]
		m.mu.Unlock()
		if !ok {
			var err error
			if config, _, err = readEntity(*m.conn.Load(), topicEntity(t.Name)); err != nil {
				return nil, err
			}
		}
		out[t.Name] = config
	}
	return out, nil
}

// merge is the topic with the partitions that were told; the others stay.
func merge(old *coord.Topic, t *TopicState, config map[string]string) (coord.Topic, error) {
	next := coord.Topic{Name: t.Name, ID: t.ID, Config: config, Internal: coord.InternalName(t.Name)}
	if old != nil && old.ID == t.ID {
		next.Config, next.Partitions = old.Config, slices.Clone(old.Partitions)
	}
	for _, p := range t.Partitions {
		for int(p.Partition) >= len(next.Partitions) {
			next.Partitions = append(next.Partitions, coord.Partition{Leader: -1})
		}
		next.Partitions[p.Partition] = coord.Partition{Leader: p.Leader, Epoch: p.LeaderEpoch, Replicas: p.Replicas, ISR: p.ISR}
	}
	for i := range next.Partitions {
		if len(next.Partitions[i].Replicas) == 0 {
			return next, fmt.Errorf("topic %q: partition %d was never told", t.Name, i)
		}
	}
	return next, nil
}

// adopt publishes an image with other settings of these entities. All at once.
func (m *member) adopt(changed map[string]map[string]string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	img := m.image.Load()
	next := &settings{defaults: img.DefaultConfig(), own: maps.Clone(img.BrokerConfigs()), groups: maps.Clone(img.GroupConfigs()), metrics: maps.Clone(img.ClientMetrics()), quotas: maps.Clone(img.Quotas()), topics: map[string]map[string]string{}}
	for entity, config := range changed {
		if err := next.set(entity, config); err != nil {
			return err
		}
	}
	m.publish(withSettings(img, next))
	return nil
}

// replace publishes an image with these settings and no others, if any differ.
func (m *member) replace(all *settings) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.publish(withSettings(m.image.Load(), all))
}

// withSettings is img with these settings; topics that are not named keep theirs. It is img itself if nothing differs, and what does not differ is shared.
func withSettings(img *coord.Image, all *settings) *coord.Image {
	var put []coord.Topic
	for name, config := range all.topics {
		if t := img.Topic(name); t != nil && !maps.Equal(t.Config, config) {
			changed := *t
			changed.Config = config
			put = append(put, changed)
		}
	}
	if len(put) > 0 {
		img = img.With(put, nil)
	}
	same := func(a, b coord.NamedConfigs) bool {
		return maps.EqualFunc(a, b, maps.Equal[map[string]string, map[string]string])
	}
	if !maps.Equal(img.DefaultConfig(), all.defaults) || !maps.EqualFunc(img.BrokerConfigs(), all.own, maps.Equal[map[string]string, map[string]string]) {
		img = img.WithBrokerConfigs(all.defaults, all.own)
	}
	if !same(img.GroupConfigs(), all.groups) || !same(img.ClientMetrics(), all.metrics) {
		img = img.WithNamedConfigs(all.groups, all.metrics)
	}
	if quotas := img.WithQuotas(all.quotas); !coord.SameQuotas(img, quotas) {
		img = quotas
	}
	return img
}
