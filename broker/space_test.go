package broker

import (
	"context"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"

	"millrace/engine/batch"
	"millrace/engine/vfs/faultfs"
	"millrace/wire"
)

// Claim: below millrace.min.free.bytes a producer gets a retriable error that names directory, free bytes and setting, before the disk is full; reads and
// groups' commits go on; as soon as there is space records are taken again.
// Method: a disk with a little less, and then more, than is to be kept free.
func TestLowSpaceStopsProducersOnly(t *testing.T) {
	disk := faultfs.New(t)
	b := startOn(t, disk) // keeps 100 MiB free
	b.topic("t", 1)
	b.mustProduce("t", 0, values(batch.None, "before"))
	b.coordinator(b.dial(), "g") // makes the topic of commits
	disk.SetFree(90 << 20)
	c := b.dial()
	refusal := ""
	b.eventually("producers are refused", func() bool {
		p := b.produce(c, 9, "t", 0, values(batch.None, "late"))
		if p.ErrorCode == wire.ErrKafkaStorageError && p.ErrorMessage != nil {
			refusal = *p.ErrorMessage
		}
		return refusal != ""
	})
	for _, part := range []string{"/data", "millrace.min.free.bytes", "104857600"} {
		if !strings.Contains(refusal, part) {
			t.Errorf("the refusal does not name %s: %s", part, refusal)
		}
	}
	end := b.end("t", 0)
	if got := c.fetch(b.fetchOf(12, want{topic: "t", partition: 0, offset: 0}), 12).Topics[0].Partitions[0]; got.ErrorCode != 0 || len(got.RecordBatches) == 0 {
		t.Errorf("a read: %s, %d bytes", wire.ErrorName(got.ErrorCode), len(got.RecordBatches))
	}
	o := kadm.Offsets{}
	o.AddOffset("t", 0, 1, -1)
	if err := b.admin().CommitAllOffsets(context.Background(), "g", o); err != nil {
		t.Errorf("a commit: %v", err)
	}
	disk.SetFree(1 << 30)
	b.eventually("records are taken again", func() bool {
		return b.produce(c, 9, "t", 0, values(batch.None, "after")).ErrorCode == 0
	})
	if got := b.end("t", 0); got != end+1 {
		t.Errorf("the end went from %d to %d", end, got)
	}
}
