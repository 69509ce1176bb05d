package controller

import (
	"context"

	"millrace/coord"
)

// Adopt compares the logs found at a broker's start with the tree, which is right. Logs of a topic that is being deleted are leftovers: they are to be
// deleted now, as the broker's answer to the controller will say so once it is registered. Logs that the tree does not know are strays: those of another
// cluster's or an earlier life's directory. What the tree has and the directory has not is made anew when the broker follows the image. Nothing is
// written. To be called before RegisterBroker.
func (s *Service) Adopt(ctx context.Context, found []coord.Found) (a coord.Adoption, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.present(ctx); err != nil {
		return a, err
	}
	tree, err := s.readTopics(false)
	if err != nil {
		return a, err
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
