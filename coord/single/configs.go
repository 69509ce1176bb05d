package single

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"millrace/coord"
	"millrace/wire"
)

// AlterConfigs is coord.Service's: one synced write for all that are accepted.
// Edits that change nothing write nothing.
func (s *Service) AlterConfigs(ctx context.Context, changes []coord.ConfigChange, validateOnly bool) []coord.ConfigResult {
	s.mu.Lock()
	defer s.mu.Unlock()
	results := make([]coord.ConfigResult, len(changes))
	next := s.mu.state.clone()
	changed := map[string]bool{} // topics
	others := false
	for i := range changes {
		c := &changes[i]
		before, found := next.configOf(c.Resource)
		if !found {
			results[i] = coord.ConfigResult{Code: wire.ErrUnknownTopicOrPartition, Message: fmt.Sprintf("topic %q does not exist", c.Resource.Topic)}
			continue
		}
		after, code, message := c.Edit(before)
		if results[i] = (coord.ConfigResult{Code: code, Message: message}); code != wire.ErrNone || maps.Equal(before, after) {
			continue
		}
		next.setConfig(c.Resource, after)
		if c.Resource.Topic != "" {
			changed[c.Resource.Topic] = true
		} else {
			others = true
		}
	}
	if validateOnly || len(changed) == 0 && !others {
		return results
	}
	if err := s.commit(ctx, next); err != nil {
		for i := range results {
			if results[i].Code == wire.ErrNone {
				results[i] = coord.ConfigResult{Code: wire.ErrKafkaStorageError, Message: err.Error()}
			}
		}
		return results
	}
	s.publish(s.imageWith(next, changed, others))
	return results
}

// imageWith is the present image with what changed in the state. Topics that
// did not change stay the same ones, so that subscribers see what did.
func (s *Service) imageWith(next *state, changed map[string]bool, others bool) *coord.Image {
	img := s.image.Load()
	if len(changed) > 0 {
		var put []coord.Topic
		for name := range changed {
			t := *img.Topic(name)
			t.Config, _ = next.configOf(coord.ConfigResource{Topic: name})
			put = append(put, t)
		}
		img = img.With(put, nil)
	}
	if others {
		img = img.WithBrokerConfigs(next.brokerConfigs()).WithNamedConfigs(next.Groups, next.ClientMetrics)
	}
	return img
}

// allBrokers is the key of the settings of all brokers in the file.
const allBrokers = "default"

func brokerKey(id int32) string {
	if id == coord.AllBrokers {
		return allBrokers
	}
	return strconv.Itoa(int(id))
}

// configOf finds the settings of a resource; found is false for a topic that is
// not there.
func (s *state) configOf(r coord.ConfigResource) (config map[string]string, found bool) {
	switch {
	case r.Group != "":
		return s.Groups[r.Group], true
	case r.ClientMetrics != "":
		return s.ClientMetrics[r.ClientMetrics], true
	case r.Topic == "":
		return s.Brokers[brokerKey(r.Broker)], true
	}
	i, found := s.find(r.Topic)
	if !found {
		return nil, false
	}
	return s.Topics[i].Config, true
}

// find is where a topic stands, or would.
func (s *state) find(name string) (int, bool) {
	return slices.BinarySearchFunc(s.Topics, topicState{Name: name}, byName)
}

// setConfig changes a state that clone has made. config is taken over.
func (s *state) setConfig(r coord.ConfigResource, config map[string]string) {
	if len(config) == 0 {
		config = nil
	}
	switch {
	case r.Topic != "":
		i, _ := s.find(r.Topic)
		s.Topics[i].Config = config
	case r.Group != "":
		s.Groups = withNamed(s.Groups, r.Group, config)
	case r.ClientMetrics != "":
		s.ClientMetrics = withNamed(s.ClientMetrics, r.ClientMetrics, config)
	default:
		s.Brokers = withNamed(s.Brokers, brokerKey(r.Broker), config)
	}
}

// withNamed is a copy in which name has these settings; nil takes it out.
func withNamed(all map[string]map[string]string, name string, config map[string]string) map[string]map[string]string {
	next := maps.Clone(all)
	if config == nil {
		delete(next, name)
		return next
	}
	if next == nil {
		next = map[string]map[string]string{}
	}
	next[name] = config
	return next
}

// brokerConfigs turns the state's settings of brokers into the image's.
func (s *state) brokerConfigs() (defaults map[string]string, own map[int32]map[string]string) {
	own = make(map[int32]map[string]string, len(s.Brokers))
	for key, config := range s.Brokers {
		if key == allBrokers {
			defaults = config
			continue
		}
		id, _ := strconv.ParseInt(key, 10, 32) // checked when it was read or made
		own[int32(id)] = config
	}
	return defaults, own
}

// checkBrokers demands keys that brokerKey makes.
func (s *state) checkBrokers() error {
	for key := range s.Brokers {
		if key == allBrokers {
			continue
		}
		if id, err := strconv.ParseInt(key, 10, 32); err != nil || id < 0 || strconv.FormatInt(id, 10) != key {
			return fmt.Errorf("broker_configs: %q is no broker's id", key)
		}
	}
	return nil
}
