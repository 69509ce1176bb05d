package broker

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"millrace/engine/batch"
	"millrace/wire"
)

// newProducer asks for a producer id and writes one batch with sequence 0 under it, as a client that has just started does.
func (b *testBroker) newProducer(topic, value string) (id, offset int64) {
	b.t.Helper()
	c := b.dial()
	init := kmsg.NewPtrInitProducerIDRequest()
	init.ProducerID, init.ProducerEpoch = -1, -1
	got := c.ask(init, 4).(*kmsg.InitProducerIDResponse)
	if got.ErrorCode != 0 {
		b.t.Fatalf("init: %s", wire.ErrorName(got.ErrorCode))
	}
	builder := batch.NewBuilder(batch.None, batch.DefaultLevel)
	if err := builder.Add(batch.Record{Timestamp: b.now().UnixMilli(), Value: []byte(value)}); err != nil {
		b.t.Fatal(err)
	}
	p := b.produce(c, 9, topic, 0, builder.Bytes(batch.Producer(got.ProducerID, got.ProducerEpoch, 0)))
	if p.ErrorCode != 0 {
		b.t.Fatalf("produce: %s", wire.ErrorName(p.ErrorCode))
	}
	return got.ProducerID, p.BaseOffset
}

// Claim: over logs that were found without a state of ours (another cluster's, a state file that was lost) no producer id is handed out that a
// log knows: its new owner begins at sequence 0, and its records would be acknowledged as ones that are there already, and lost.
// Method: a producer in each of two lives, the state file removed in between, after a clean stop and after none.
func TestAdoptedLogsKeepTheirProducers(t *testing.T) {
	for _, clean := range []bool{true, false} {
		dir := t.TempDir()
		b := startBrokerIn(t, dir)
		b.topic("t", 1)
		old, at := b.newProducer("t", "first life")
		if at != 0 {
			t.Fatalf("offset %d", at)
		}
		b.halt()
		if err := os.RemoveAll(filepath.Join(dir, coordinationFolder)); err != nil {
			t.Fatal(err)
		}
		if !clean {
			if err := os.Remove(filepath.Join(dir, ".kafka_cleanshutdown")); err != nil {
				t.Fatal(err)
			}
		}
		b = startBrokerIn(t, dir)
		id, at := b.newProducer("t", "second life")
		if id == old || at != 1 || b.end("t", 0) != 2 {
			t.Errorf("clean stop %v: producer id %d, %d was used before; its record is at %d, the log ends at %d", clean, id, old, at, b.end("t", 0))
		}
	}
}
