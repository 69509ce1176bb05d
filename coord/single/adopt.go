package single

import (
	"context"
	"slices"

	"millrace/coord"
)

// Found and Adoption are coord's.
type (
	Found    = coord.Found
	Adoption = coord.Adoption
)

// Adopt compares the logs found at start with the state.
//
// If there was no state file, the logs are all we know: every topic found is
// taken in, with the ids found, and the state is written. A topic's number of
// partitions is the greatest found; what lies between is made anew. Settings
// were not in the logs: adopted topics keep everything (retention.ms=-1) until
// the operator says otherwise, and the brokers' own topics are compacted. Producer
// ids are handed out from producerIDs on, so that none is of another life's.
//
// If there was a file, it is right: logs it does not know are leftovers of a
// deletion that a crash cut off, or strays. To be called once, before the
// service is used, after the logs are open and before retention runs.
func (s *Service) Adopt(ctx context.Context, found []Found, producerIDs int64) (Adoption, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fresh {
		return s.adoptAll(ctx, found, producerIDs)
	}
	var a Adoption
	img := s.image.Load()
	left := map[string]bool{} // ids of topics that still have logs
	for _, f := range found {
		t := img.Topic(f.Topic)
		switch {
		case t != nil && (f.ID == t.ID || f.ID == coord.ID{}) && int(f.Partition) < len(t.Partitions):
		case s.mu.state.isDeleting(f):
			a.Leftovers = append(a.Leftovers, f)
			left[coord.IDText(f.ID)] = true
		default:
			a.Strays = append(a.Strays, f)
		}
	}
	// The other deletions are done; the next change will say so on disk.
	next := s.mu.state.clone()
	next.Deleting = slices.DeleteFunc(next.Deleting, func(t topicState) bool { return !left[t.ID] })
	s.mu.state = next
	return a, nil
}

func (s *state) isDeleting(f Found) bool {
	id := coord.IDText(f.ID)
	return slices.ContainsFunc(s.Deleting, func(t topicState) bool { return t.Name == f.Topic && t.ID == id })
}

func (s *Service) adoptAll(ctx context.Context, found []Found, producerIDs int64) (a Adoption, err error) {
	next := s.mu.state.clone()
	next.NextProducerID = max(next.NextProducerID, producerIDs)
	topics := map[string]*topicState{}
	used := map[coord.ID]string{}
	for _, f := range found {
		if coord.CheckName(f.Topic) != "" || f.Partition < 0 || f.Partition >= coord.MaxPartitions {
			a.Strays = append(a.Strays, f)
			continue
		}
		t := topics[f.Topic]
		if t == nil {
			t = &topicState{Name: f.Topic, Config: adoptedConfig(f.Topic)}
			topics[f.Topic] = t
		}
		if owner := used[f.ID]; f.ID != (coord.ID{}) && t.ID == "" && owner == "" {
			t.ID, used[f.ID] = coord.IDText(f.ID), f.Topic
		} else if f.ID != (coord.ID{}) && t.ID != coord.IDText(f.ID) {
			a.Strays = append(a.Strays, f) // another topic of that name, or another topic's id
			continue
		}
		for int(f.Partition) >= len(t.Epochs) {
			t.Epochs = append(t.Epochs, 0)
		}
		t.Epochs[f.Partition] = max(t.Epochs[f.Partition], f.Epoch)
	}
	for _, t := range topics {
		if len(t.Epochs) == 0 {
			continue // nothing but strays
		}
		if t.ID == "" {
			id, err := s.newID()
			if err != nil {
				return a, err
			}
			t.ID = coord.IDText(id)
		}
		next.Topics = append(next.Topics, *t)
		a.Adopted = append(a.Adopted, t.Name)
	}
	slices.Sort(a.Adopted)
	slices.SortFunc(next.Topics, byName)
	if err := s.commit(ctx, next); err != nil {
		return a, err
	}
	s.fresh = false
	s.publish(s.image.Load().With(s.topics(next), nil))
	return a, nil
}

// adoptedConfig is what an adopted topic is given in place of settings that
// nobody can know any more: nothing that would delete records.
func adoptedConfig(name string) map[string]string {
	if coord.InternalName(name) {
		return map[string]string{"cleanup.policy": "compact", "segment.bytes": "104857600"}
	}
	return map[string]string{"retention.ms": "-1"}
}
