package controller

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/go-zookeeper/zk"

	"millrace/coord"
	"millrace/coord/controller/cluster"
	"millrace/coord/controller/znode"
)

// Fresh says that the tree is a new one that nobody has finished filling: it was made by this Service's Open, or by one that died before Import or Adopt
// was done.
func (s *Service) Fresh() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mu.fresh
}

// markFresh notes in a tree without a cluster's id that it is to be filled: before it gets one, so that no crash makes it look complete. Caller holds mu.
func (s *Service) markFresh() error {
	stat, err := s.mu.conn.Exists(znode.FillingPath, false)
	if err != nil {
		return err
	}
	id, err := s.mu.conn.Exists(znode.ClusterIDPath, false)
	if err != nil {
		return err
	}
	if stat == nil && id == nil {
		if err := s.ensure(znode.FillingPath); err != nil {
			return err
		}
		s.mu.made = true
	}
	s.mu.fresh = stat != nil || id == nil
	return nil
}

// Adopt compares the logs found at a broker's start with the tree. To be called before RegisterBroker, after the logs are open and before retention runs.
//
// A tree that is not fresh is right, and nothing is written. Logs of a topic that is being deleted are leftovers: they are to be deleted now, as the
// broker's answer to the controller will say so once it is registered. Logs that the tree does not know are strays: those of another cluster's or an
// earlier life's directory. What the tree has and the directory has not is made anew when the broker follows the image.
//
// Of a fresh one the logs are all we know: every topic found is taken in, with the ids found. A topic's number of partitions is the greatest found; what
// lies between is made anew. Settings were not in the logs: adopted topics keep everything (retention.ms=-1) until the operator says otherwise, and the
// brokers' own topics are compacted. Producer ids are handed out from producerIDs on, so that none is of another life's.
func (s *Service) Adopt(ctx context.Context, found []coord.Found, producerIDs int64) (a coord.Adoption, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.present(ctx); err != nil {
		return a, err
	}
	tree := s.mu.read
	if s.mu.read = nil; tree == nil {
		if tree, err = s.readTopics(false); err != nil {
			return a, err
		}
	}
	if s.mu.fresh {
		saved, a := adoptable(found, tree)
		saved.NextProducerID = producerIDs
		return a, s.fill(saved, "")
	}
	for _, f := range found {
		t := tree.Topics[f.Topic]
		switch {
		case t == nil || f.ID != t.ID && f.ID != (coord.ID{}) || int(f.Partition) >= len(t.Partitions):
			a.Strays = append(a.Strays, f)
		case t.Deletion != nil:
			a.Leftovers = append(a.Leftovers, f)
		}
	}
	return a, nil
}

// adoptable are the topics that logs are of. What an adoption that was cut off has written of them is in tree.
func adoptable(found []coord.Found, tree *cluster.State) (*coord.Saved, coord.Adoption) {
	var a coord.Adoption
	topics := map[string]*coord.SavedTopic{}
	used := map[coord.ID]string{}
	for _, f := range found {
		if coord.CheckName(f.Topic) != "" || f.Partition < 0 || f.Partition >= coord.MaxPartitions {
			a.Strays = append(a.Strays, f)
			continue
		}
		t := topics[f.Topic]
		if t == nil {
			t = &coord.SavedTopic{Name: f.Topic, Config: adoptedConfig(f.Topic)}
			topics[f.Topic] = t
		}
		if owner := used[f.ID]; f.ID != (coord.ID{}) && t.ID == (coord.ID{}) && owner == "" {
			t.ID, used[f.ID] = f.ID, f.Topic
		} else if f.ID != (coord.ID{}) && t.ID != f.ID {
			a.Strays = append(a.Strays, f) // another topic of that name, or another topic's id
			continue
		}
		for int(f.Partition) >= len(t.Epochs) {
			t.Epochs = append(t.Epochs, 0)
		}
		t.Epochs[f.Partition] = max(t.Epochs[f.Partition], f.Epoch)
	}
	saved := &coord.Saved{}
	for _, name := range slices.Sorted(maps.Keys(topics)) {
		t := topics[name]
		if len(t.Epochs) == 0 {
			continue // nothing but strays
		}
		if known := tree.Topics[name]; known != nil && t.ID == (coord.ID{}) {
			t.ID = known.ID
		}
		saved.Topics = append(saved.Topics, *t)
		a.Adopted = append(a.Adopted, name)
	}
	return saved, a
}

// adoptedConfig is what an adopted topic is given in place of settings that nobody can know any more: nothing that would delete records.
func adoptedConfig(name string) map[string]string {
	if coord.InternalName(name) {
		return map[string]string{"cleanup.policy": "compact", "segment.bytes": "104857600"}
	}
	return map[string]string{"retention.ms": "-1"}
}

// Import fills a fresh tree with what was saved elsewhere, under a name by which Imported knows it. To be called before RegisterBroker. If it is cut off,
// the tree stays fresh, and the next Import of the same goes on.
func (s *Service) Import(ctx context.Context, saved *coord.Saved, name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.present(ctx); err != nil {
		return err
	}
	if !s.mu.fresh {
		return errors.New("the tree is in use already")
	}
	return s.fill(saved, name)
}

// Imported says under which name the tree was imported; "" if it was not.
func (s *Service) Imported() (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.conn == nil {
		return "", errNoSession
	}
	data, _, err := s.mu.conn.Get(znode.ImportedPath, false)
	if isNoNode(err) {
		return "", nil
	}
	return string(data), err
}

// fill writes what was saved and then that the tree is complete. Nodes that are there already were written by a try that was cut off. Caller holds mu.
func (s *Service) fill(saved *coord.Saved, name string) error {
	ops, err := s.savedNodes(saved)
	if err != nil {
		return err
	}
	if !s.mu.made {
		if ops, err = s.missing(ops); err != nil {
			return err
		}
	}
	var last []any
	if saved.NextProducerID > 0 {
		block := znode.ProducerBlock{Broker: s.o.BrokerID, First: max(0, saved.NextProducerID-producerBlock), Last: saved.NextProducerID - 1}
		last = append(last, set(znode.ProducerIDBlock, block.Encode(), -1))
	}
	if name != "" {
		last = append(last, create(znode.ImportedPath, []byte(name)))
	}
	last = append(last, remove(znode.FillingPath))
	for len(ops) > 0 {
		n, size := 0, 0
		for n < len(ops) && (n == 0 || size+sizeOf(ops[n]) <= s.o.batch) {
			size += sizeOf(ops[n])
			n++
		}
		if err := s.fillSome(ops[:n]); err != nil {
			return err
		}
		ops = ops[n:]
	}
	if err := s.fillSome(last); err != nil {
		return err
	}
	s.mu.fresh = false
	return s.first()
}

// fillSome writes while nobody else has finished filling the tree.
func (s *Service) fillSome(ops []any) error {
	_, err := multi(s.mu.conn, append([]any{&zk.CheckVersionRequest{Path: znode.FillingPath, Version: -1}}, ops...)...)
	if err != nil {
		return fmt.Errorf("fill the new tree: %w", err)
	}
	return nil
}

// fillNothing ends the filling of a fresh tree that nobody has anything for. Caller holds mu.
func (s *Service) fillNothing(ctx context.Context) error {
	if !s.mu.fresh {
		return nil
	}
	if err := s.present(ctx); err != nil {
		return err
	}
	stat, err := s.mu.conn.Exists(znode.FillingPath, false)
	if err == nil && stat != nil {
		err = s.fillSome([]any{remove(znode.FillingPath)})
	}
	if err == nil {
		s.mu.fresh = false
	}
	return err
}

// savedNodes are the operations that make everything, parents first.
func (s *Service) savedNodes(saved *coord.Saved) (ops []any, err error) {
	made := map[string]bool{}
	entity := func(entity string, config map[string]string) {
		if len(config) > 0 {
			ops = append(ops, parentsOf(entity, made)...)
			ops = append(ops, create(znode.ConfigPath(entity), znode.EncodeConfig(config)))
			made[znode.ConfigPath(entity)] = true
		}
	}
	entity(entityOf(coord.ConfigResource{Broker: coord.AllBrokers}), saved.Defaults)
	for _, id := range slices.Sorted(maps.Keys(saved.Brokers)) {
		entity(entityOf(coord.ConfigResource{Broker: id}), saved.Brokers[id])
	}
	for _, name := range slices.Sorted(maps.Keys(saved.Groups)) {
		entity(entityOf(coord.ConfigResource{Group: name}), saved.Groups[name])
	}
	for _, name := range slices.Sorted(maps.Keys(saved.ClientMetrics)) {
		entity(entityOf(coord.ConfigResource{ClientMetrics: name}), saved.ClientMetrics[name])
	}
	for _, e := range slices.SortedFunc(maps.Keys(saved.Quotas), byPath) {
		entity(quotaPath(e), withQuotas(nil, saved.Quotas[e]))
	}
	for i := range saved.Topics {
		more, err := s.savedTopic(&saved.Topics[i])
		if err != nil {
			return nil, err
		}
		ops = append(ops, more...)
	}
	return ops, nil
}

// byPath orders entities so that a user comes before the user's clients.
func byPath(a, b coord.QuotaEntity) int {
	return strings.Compare(quotaPath(a), quotaPath(b))
}

// savedTopic are the operations that make a topic, led by this broker.
func (s *Service) savedTopic(t *coord.SavedTopic) ([]any, error) {
	id, err := t.ID, error(nil)
	if id == (coord.ID{}) {
		if id, err = s.newTopicID(); err != nil {
			return nil, err
		}
	}
	self := []int32{s.o.BrokerID}
	topic := &cluster.Topic{Name: t.Name, ID: id}
	var states []any
	for i, epoch := range t.Epochs {
		p := &cluster.Partition{Replicas: self, ISR: self, Leader: s.o.BrokerID, LeaderEpoch: epoch}
		topic.Partitions = append(topic.Partitions, p)
		states = append(states, create(znode.PartitionPath(t.Name, int32(i)), nil), create(znode.StatePath(t.Name, int32(i)), encodeState(p)))
	}
	node := encodeTopic(topic)
	if len(node) > maxNode {
		return nil, fmt.Errorf("topic %q: its assignment takes %d bytes, a node may have %d", t.Name, len(node), maxNode)
	}
	return append([]any{
		create(znode.ConfigPath(topicEntity(t.Name)), znode.EncodeConfig(t.Config)),
		create(znode.TopicPath(t.Name), node),
		create(znode.PartitionsPath(t.Name), nil),
	}, states...), nil
}

// parentsOf are the operations that make the nodes above an entity (users/U and users/U/clients) that are not made yet.
func parentsOf(entity string, made map[string]bool) (ops []any) {
	parts := strings.Split(entity, "/")
	for n := 2; n < len(parts); n++ {
		above := znode.ConfigPath(strings.Join(parts[:n], "/"))
		if !made[above] {
			made[above] = true
			ops = append(ops, create(above, nil))
		}
	}
	return ops
}

// missing are those of ops whose nodes are not there. Children of one node are looked at with one request.
func (s *Service) missing(ops []any) ([]any, error) {
	parents := map[string]map[string]bool{}
	var order []string
	for _, op := range ops {
		above := path.Dir(op.(*zk.CreateRequest).Path)
		if parents[above] == nil {
			parents[above] = map[string]bool{}
			order = append(order, above)
		}
	}
	names := make([][]string, len(order))
	err := s.each(len(order), func(i int) (err error) {
		if names[i], err = s.mu.conn.Children(order[i], false); isNoNode(err) {
			err = nil
		}
		return err
	})
	for i, above := range order {
		for _, name := range names[i] {
			parents[above][name] = true
		}
	}
	return slices.DeleteFunc(ops, func(op any) bool {
		above, name := path.Split(op.(*zk.CreateRequest).Path)
		return parents[path.Clean(above)][name]
	}), err
}
