package controller

import (
	"context"
	"errors"
	"fmt"
	"math"

	"millrace/coord"
	"millrace/coord/controller/znode"
)

// producerBlock is how many producer ids are taken at once, as Kafka does.
const producerBlock = 1000

func unavailable(err error) error {
	return fmt.Errorf("no block of producer ids: %w: %w", coord.ErrUnavailable, err)
}

// AllocateProducerIDs is coord.Service's: the next block, written against the version of the last. A block whose answer is lost is never used: ids need
// only be new.
func (s *Service) AllocateProducerIDs(ctx context.Context) (first, count int64, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		if err := s.present(ctx); err != nil {
			return 0, 0, unavailable(err)
		}
		data, stat, err := s.mu.conn.Get(znode.ProducerIDBlock, false)
		if err != nil {
			return 0, 0, unavailable(err)
		}
		last := znode.ProducerBlock{Last: -1}
		if len(data) > 0 {
			if last, err = znode.DecodeProducerBlock(data); err != nil {
				return 0, 0, fmt.Errorf("%s: %w", znode.ProducerIDBlock, err)
			}
		}
		if last.Last > math.MaxInt64-producerBlock {
			return 0, 0, errors.New("producer ids are used up")
		}
		next := znode.ProducerBlock{Broker: s.o.BrokerID, First: last.Last + 1, Last: last.Last + producerBlock}
		_, err = multi(s.mu.conn, set(znode.ProducerIDBlock, next.Encode(), stat.Version))
		if isBadVersion(err) {
			continue // another broker was faster, which cannot go on for ever
		}
		if err != nil {
			return 0, 0, unavailable(err)
		}
		return next.First, producerBlock, nil
	}
}
