package broker

import (
	"context"
	"fmt"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"millrace/coord"
	"millrace/wire"
)

func initProducer(c *adminClient, version int16, transactional *string) *kmsg.InitProducerIDResponse {
	req := kmsg.NewPtrInitProducerIDRequest()
	req.Version, req.TransactionalID, req.TransactionTimeoutMillis = version, transactional, 60000
	if version >= 3 {
		req.ProducerID, req.ProducerEpoch = 5, 3 // of a producer that begins anew
	}
	return ask[*kmsg.InitProducerIDResponse](c, req)
}

// Claim: every idempotent producer gets an id that nobody ever had, in every
// version and across restarts, with epoch 0.
// Method: collect ids, restart, collect more.
func TestProducerIDsAreNeverGivenTwice(t *testing.T) {
	dir := t.TempDir()
	seen := map[int64]bool{}
	for range 2 {
		b := adminBroker(t, dir)
		c := dialAdmin(t, b, "")
		for range 3 {
			for version := int16(0); version <= 5; version++ {
				r := initProducer(c, version, nil)
				if r.ErrorCode != 0 || r.ProducerID < 0 || r.ProducerEpoch != 0 || seen[r.ProducerID] {
					t.Errorf("v%d: %+v", version, r)
				}
				seen[r.ProducerID] = true
			}
		}
		stopAdmin(t, b)
	}
}

// Claim: transactional producers are refused with a code that ends their tries.
// Method: an id, and an empty one.
func TestTransactionalProducersAreRefused(t *testing.T) {
	c := dialAdmin(t, adminBroker(t, ""), "")
	for id, want := range map[string]int16{"payments": wire.ErrUnsupportedVersion, "": wire.ErrInvalidRequest} {
		for version := int16(0); version <= 5; version++ {
			if r := initProducer(c, version, &id); r.ErrorCode != want || r.ProducerID != -1 {
				t.Errorf("%q v%d: %+v", id, version, r)
			}
		}
	}
}

// Claim: half an old identity, an id without an epoch or the other way round, is refused.
func TestHalfAnOldProducerIsRefused(t *testing.T) {
	c := dialAdmin(t, adminBroker(t, ""), "")
	for _, half := range []struct {
		id    int64
		epoch int16
	}{{5, -1}, {-1, 5}} {
		for version := int16(3); version <= 5; version++ {
			req := kmsg.NewPtrInitProducerIDRequest()
			req.Version, req.ProducerID, req.ProducerEpoch = version, half.id, half.epoch
			if r := ask[*kmsg.InitProducerIDResponse](c, req); r.ErrorCode != wire.ErrInvalidRequest || r.ProducerID != -1 || r.ProducerEpoch != -1 {
				t.Errorf("%+v v%d: %+v", half, version, r)
			}
		}
	}
}

// Claim: while coordination is away, a producer that needs an id is told to try again, as Kafka tells it.
func TestProducersWaitForCoordination(t *testing.T) {
	ids := producerIDs{}
	_, err := ids.next(t.Context(), func(context.Context) (first, count int64, err error) {
		return 0, 0, fmt.Errorf("no answer: %w", coord.ErrUnavailable)
	})
	if code := noIDCode(err); code != wire.ErrCoordinatorLoadInProgress {
		t.Errorf("code %d for %v", code, err)
	}
}
