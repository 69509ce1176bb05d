package broker

import (
	"context"
	"errors"
	"log/slog"
	"sync"

	"github.com/twmb/franz-go/pkg/kmsg"

	"millrace/coord"
	"millrace/wire"
)

// What a producer without an id sends and a refused one gets.
const (
	noProducerID    = -1
	noProducerEpoch = -1
)

// handleInitProducerID serves InitProducerId: idempotent producers get an id
// that nobody had before, with epoch 0. A producer that asks again, with its
// old id and epoch, gets a new id too: without a transactional id nothing ties
// it to the old one. An id without an epoch, or the other way round, is refused.
//
// Transactions are not built. A transactional id is refused with
// UNSUPPORTED_VERSION, which every client takes for final, where "coordinator
// not available" would keep it trying for ever (F067).
func (b *Broker) handleInitProducerID(rc *requestContext, request kmsg.Request) kmsg.Response {
	req := request.(*kmsg.InitProducerIDRequest)
	resp := req.ResponseKind().(*kmsg.InitProducerIDResponse)
	resp.ProducerID, resp.ProducerEpoch = noProducerID, noProducerEpoch
	switch {
	case (req.ProducerID == noProducerID) != (req.ProducerEpoch == noProducerEpoch):
		resp.ErrorCode = wire.ErrInvalidRequest
		return resp
	case req.TransactionalID == nil:
	case *req.TransactionalID == "":
		resp.ErrorCode = wire.ErrInvalidRequest
		return resp
	default:
		b.txnRefused.log(rc.log, slog.LevelWarn, "transactional producer refused: transactions are not built yet; leave transactional.id unset for an idempotent producer",
			"transactional_id", *req.TransactionalID, "client", rc.header.ClientID)
		resp.ErrorCode = wire.ErrUnsupportedVersion
		return resp
	}
	id, err := b.producerIDs.next(rc.ctx, b.coord.AllocateProducerIDs)
	if err != nil {
		rc.log.Error("no producer id", "error", err)
		resp.ErrorCode = noIDCode(err)
		return resp
	}
	resp.ProducerID, resp.ProducerEpoch = id, 0
	return resp
}

// noIDCode is what a producer is told that got no id for err: producers try again.
func noIDCode(err error) int16 {
	if errors.Is(err, coord.ErrUnavailable) {
		return wire.ErrCoordinatorLoadInProgress // as Kafka says it
	}
	return wire.ErrKafkaStorageError
}

// producerIDs hands out the ids of the block this broker holds. What is left
// of a block when the broker stops is never used: ids need only be new.
type producerIDs struct {
	mu         sync.Mutex // held while a block is fetched: the others would need it too
	first, end int64
}

func (p *producerIDs) next(ctx context.Context, fetch func(context.Context) (first, count int64, err error)) (int64, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.first == p.end {
		first, count, err := fetch(ctx)
		if err != nil {
			return -1, err
		}
		p.first, p.end = first, first+count
	}
	id := p.first
	p.first++
	return id, nil
}
