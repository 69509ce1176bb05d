package single

import (
	"context"
	"slices"

	"millrace/coord"
	"millrace/wire"
)

// CreatePartitions is coord.Service's: one synced write for all that are
// accepted.
func (s *Service) CreatePartitions(ctx context.Context, topics []coord.MorePartitions, validateOnly bool) []coord.TopicResult {
	s.mu.Lock()
	defer s.mu.Unlock()
	img := s.image.Load()
	request := make([]coord.NewTopic, len(topics))
	for i := range topics {
		request[i].Name = topics[i].Name
	}
	planner := coord.NewPlanner(img, request)
	results := make([]coord.TopicResult, len(topics))
	next := s.mu.state.clone()
	var put []coord.Topic
	for i := range topics {
		m := &topics[i]
		r := planner.PlanMore(*m)
		if r.Code == wire.ErrNone && !validateOnly && m.Prepare != nil {
			if err := m.Prepare(r.Topic); err != nil {
				r = storageFailed(m.Name, err)
			}
		}
		if results[i] = r; r.Code != wire.ErrNone {
			continue
		}
		put = append(put, *r.Topic)
		at, _ := next.find(m.Name)
		t := &next.Topics[at]
		t.Epochs = slices.Concat(t.Epochs, make([]int32, len(r.Topic.Partitions)-len(t.Epochs)))
	}
	if validateOnly || len(put) == 0 {
		return results
	}
	if err := s.commit(ctx, next); err != nil {
		for i := range results {
			if results[i].Code == wire.ErrNone {
				results[i] = storageFailed(results[i].Name, err)
			}
		}
		return results
	}
	s.publish(img.With(put, nil))
	return results
}
