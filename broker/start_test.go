package broker

import (
	"os"
	"path/filepath"
	"testing"

	"millrace/engine/batch"
	"millrace/engine/checkpoint"
)

// Claim: after an unclean stop, topics that may have shown records which are
// lost begin a new leader epoch; a clean stop changes none; the records are
// there either way, under the same ids.
// Method: restart twice, the second time without the marker of a clean stop.
func TestUncleanStartBeginsNewEpochs(t *testing.T) {
	dir := t.TempDir()
	b := startBrokerIn(t, dir)
	b.topic("t", 1, "millrace.durability=page-cache")
	b.mustProduce("t", 0, values(batch.None, "a", "b"))
	id, cluster := b.replicas.Topic("t").ID, b.Ready().ClusterID
	_, before := b.replicas.Topic("t").Partition(0).Leader()
	b.halt()
	for restart, rise := range []int32{0, 1} {
		if restart == 1 {
			if err := os.Remove(filepath.Join(dir, checkpoint.CleanName)); err != nil {
				t.Fatal(err)
			}
		}
		b = startBrokerIn(t, dir)
		p := b.replicas.Topic("t").Partition(0)
		if _, epoch := p.Leader(); epoch != before+rise || int32(p.Log().Epoch()) < epoch {
			t.Errorf("restart %d: epoch %d (log %d), want %d", restart, epoch, p.Log().Epoch(), before+rise)
		}
		if b.replicas.Topic("t").ID != id || b.Ready().ClusterID != cluster || b.end("t", 0) != 2 {
			t.Errorf("restart %d: another topic, cluster or end (%d)", restart, b.end("t", 0))
		}
		b.halt()
	}
}

// Claim: a topic's settings are in force after a restart.
// Method: a small limit on batches, restart, one batch above it.
func TestSettingsSurviveARestart(t *testing.T) {
	dir := t.TempDir()
	b := startBrokerIn(t, dir)
	b.topic("t", 1, "max.message.bytes=1000", "retention.ms=-1")
	b.halt()
	b = startBrokerIn(t, dir)
	if p := b.produce(b.dial(), 9, "t", 0, sized(1001)); p.ErrorCode != 10 {
		t.Errorf("code %d, want 10", p.ErrorCode)
	}
	if age := b.replicas.Topic("t").Partition(0).Log().Config().RetentionAge; age >= 0 {
		t.Errorf("retention %v, want none", age)
	}
}
