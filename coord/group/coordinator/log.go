package coordinator

import (
	"context"
	"fmt"
	"time"

	"millrace/coord/group/record"
	"millrace/engine/batch"
)

// Log is one partition of __consumer_offsets as its coordinator needs it.
type Log interface {
	// Append puts a batch in line and never blocks: the order of calls is the
	// order in the log. b is the log's until Wait has returned. Wait is called
	// exactly once for each, at once.
	Append(b []byte, info batch.Info) Pending

	// Load hands out everything that is durable, from the start, as whole
	// stored batches in order. b is f's until it returns.
	Load(ctx context.Context, f func(b []byte) error) error
}

// Pending is a batch on its way into the log.
type Pending interface {
	// Wait returns when the batch is durable on all in-sync replicas, or has
	// failed: then it is not in the log, or the log takes no more.
	Wait() error
}

// batchOf makes one batch of the records.
func batchOf(codec batch.Codec, now time.Time, records []record.Record) ([]byte, batch.Info, error) {
	b := batch.NewBuilder(codec, batch.DefaultLevel)
	for _, r := range records {
		if err := b.Add(batch.Record{Timestamp: now.UnixMilli(), Key: r.Key, Value: r.Value}); err != nil {
			return nil, batch.Info{}, fmt.Errorf("%d records for __consumer_offsets: %w", len(records), err)
		}
	}
	out := b.Bytes()
	info, err := batch.CheckStored(out)
	return out, info, err
}
