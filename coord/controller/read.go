package controller

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"millrace/coord"
	"millrace/coord/controller/cluster"
	"millrace/coord/controller/znode"
)

// damaged is a node whose content makes no sense: nothing that waiting would mend.
type damaged struct {
	path string
	err  error
}

func (d *damaged) Error() string { return fmt.Sprintf("%s: %v", d.path, d.err) }
func (d *damaged) Unwrap() error { return d.err }

// each calls f for 0 to n-1, Readers at a time, and returns an error of one that failed.
func (s *Service) each(n int, f func(i int) error) error {
	var next atomic.Int64
	work := func() error {
		for {
			i := int(next.Add(1)) - 1
			if i >= n {
				return nil
			}
			if err := f(i); err != nil {
				next.Store(int64(n))
				return err
			}
		}
	}
	workers := min(s.o.Readers, n)
	if workers <= 1 {
		return work()
	}
	failed := make([]error, workers)
	var wg sync.WaitGroup
	for w := range workers {
		wg.Add(1)
		go func() { // ends when the numbers are used up; each waits for it
			defer wg.Done()
			failed[w] = work()
		}()
	}
	wg.Wait()
	return errors.Join(failed...)
}

// readTopics reads all topics. Their partitions are New: what has been written of leaders is not read. With watch, changes of the list, of the topics
// and of the requests for deletion are told.
func (s *Service) readTopics(watch bool) (*cluster.State, error) {
	state := &cluster.State{Brokers: map[int32]*cluster.Broker{}, Topics: map[string]*cluster.Topic{}}
	names, err := s.mu.conn.Children(znode.Topics, watch)
	if err != nil {
		return nil, err
	}
	deleting, err := s.mu.conn.Children(znode.DeleteTopics, watch)
	if err != nil {
		return nil, err
	}
	topics := make([]*cluster.Topic, len(names))
	err = s.each(len(names), func(i int) (err error) {
		topics[i], err = s.readTopic(names[i], watch)
		return err
	})
	if err != nil {
		return nil, err
	}
	for _, t := range topics {
		if t != nil { // else deleted meanwhile
			state.Topics[t.Name] = t
		}
	}
	for _, name := range deleting {
		if t := state.Topics[name]; t != nil {
			t.Deletion = t.Begin()
		}
	}
	return state, nil
}

// readStates reads the states of all topics' partitions: the controller's business alone. Without live brokers, every partition that has a state is Offline.
func (s *Service) readStates(state *cluster.State) error {
	type place struct {
		topic *cluster.Topic
		index int
	}
	var places []place
	for _, t := range state.Topics {
		for i := range t.Partitions {
			places = append(places, place{t, i})
		}
	}
	var seen seenStates
	return s.each(len(places), func(i int) error {
		return s.readState(places[i].topic, int32(places[i].index), &seen)
	})
}

// seenStates spares decoding what was decoded already: most partitions of a cluster have one of a few contents. The zero value is ready; nil knows none.
type seenStates struct {
	mu    sync.Mutex
	known map[string]znode.State
}

// maxSeen is how many contents are kept in one pass.
const maxSeen = 1000

func (seen *seenStates) decode(data []byte) (znode.State, error) {
	if seen == nil {
		return znode.DecodeState(data)
	}
	seen.mu.Lock()
	defer seen.mu.Unlock()
	if node, ok := seen.known[string(data)]; ok {
		return node, nil
	}
	node, err := znode.DecodeState(data)
	if err != nil {
		return node, err
	}
	if seen.known == nil {
		seen.known = map[string]znode.State{}
	}
	if len(seen.known) < maxSeen {
		seen.known[string(data)] = node
	}
	return node, nil
}

// readTopic reads a topic's node; nil if there is none. Its partitions are New.
func (s *Service) readTopic(name string, watch bool) (*cluster.Topic, error) {
	data, stat, err := s.mu.conn.Get(znode.TopicPath(name), watch)
	if isNoNode(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if wrong := coord.CheckName(name); wrong != "" {
		return nil, &damaged{znode.TopicPath(name), errors.New(wrong)}
	}
	node, err := znode.DecodeTopic(data)
	if err != nil {
		return nil, &damaged{znode.TopicPath(name), err}
	}
	t := &cluster.Topic{Name: name, ID: node.ID, Version: stat.Version}
	for i := range int32(len(node.Partitions)) {
		t.Partitions = append(t.Partitions, &cluster.Partition{Replicas: node.Partitions[i], Adding: node.Adding[i], Removing: node.Removing[i], Phase: cluster.New, Leader: cluster.NoLeader, Version: -1})
	}
	return t, nil
}

// readState reads a partition's state, if it has one.
func (s *Service) readState(t *cluster.Topic, index int32, seen *seenStates) error {
	path := znode.StatePath(t.Name, index)
	data, stat, err := s.mu.conn.Get(path, false)
	if isNoNode(err) {
		return nil
	}
	if err != nil {
		return err
	}
	node, err := seen.decode(data)
	if err != nil {
		return &damaged{path, err}
	}
	p := t.Partitions[index]
	p.Phase, p.Version = cluster.Offline, stat.Version
	p.Leader, p.LeaderEpoch, p.ControllerEpoch, p.ISR, p.Recovering = node.Leader, node.LeaderEpoch, node.ControllerEpoch, node.ISR, node.Recovering
	return nil
}

// readBrokers reads the live brokers and asks to be told of changes.
func (s *Service) readBrokers() (map[int32]*cluster.Broker, error) {
	names, err := s.mu.conn.Children(znode.BrokerIDs, true)
	if err != nil {
		return nil, err
	}
	out := map[int32]*cluster.Broker{}
	for _, name := range names {
		id, err := znode.Number(znode.BrokerIDs, []byte(name))
		if err != nil {
			return nil, err
		}
		data, stat, err := s.mu.conn.Get(znode.BrokerPath(id), true)
		if isNoNode(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		node, err := znode.DecodeBroker(data)
		if err != nil {
			return nil, &damaged{znode.BrokerPath(id), err}
		}
		out[id] = &cluster.Broker{Broker: coord.Broker{ID: id, Rack: node.Rack, Endpoints: node.Endpoints}, Epoch: stat.Czxid}
	}
	return out, nil
}

// readEntity reads the settings of an entity. version is that of the node, -1 if there is none.
func readEntity(conn Conn, entity string) (config map[string]string, version int32, err error) {
	data, stat, err := conn.Get(znode.ConfigPath(entity), false)
	if isNoNode(err) {
		return nil, -1, nil
	}
	if err != nil {
		return nil, -1, err
	}
	if config, err = znode.DecodeConfig(data); err != nil {
		return nil, -1, &damaged{znode.ConfigPath(entity), err}
	}
	return config, stat.Version, nil
}

// readSettings reads the settings of these topics and of everything else.
func (s *Service) readSettings(topics []string) (*settings, error) {
	var entities []string
	for _, name := range topics {
		entities = append(entities, topicEntity(name))
	}
	for _, kind := range []string{znode.EntityBrokers, znode.EntityClients, znode.EntityIPs, znode.EntityUsers, znode.EntityGroups, znode.EntityClientMetrics} {
		names, err := s.mu.conn.Children(znode.ConfigPath(kind), false)
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			entities = append(entities, kind+"/"+name)
			if kind != znode.EntityUsers {
				continue
			}
			clients, err := s.mu.conn.Children(znode.ConfigPath(kind+"/"+name+"/clients"), false)
			if err != nil && !isNoNode(err) {
				return nil, err
			}
			for _, client := range clients {
				entities = append(entities, kind+"/"+name+"/clients/"+client)
			}
		}
	}
	configs := make([]map[string]string, len(entities))
	err := s.each(len(entities), func(i int) (err error) {
		configs[i], _, err = readEntity(s.mu.conn, entities[i])
		return err
	})
	if err != nil {
		return nil, err
	}
	out := newSettings()
	for i, entity := range entities {
		if err := out.set(entity, configs[i]); err != nil {
			s.o.Logger.Warn("settings in the tree are passed over", "error", err)
		}
	}
	return out, nil
}
