package engine

import (
	"testing"

	"millrace/engine/checkpoint"
	"millrace/engine/vfs/faultfs"
)

// Claim: logs of a Kafka that knew no topic ids get ids of their own, one for all partitions of a topic, so that the journal never
// gives one topic's records to another (L6).
// Method: take the id files of two topics away, append to both, cut the power with everything but the journal lost, and read.
func TestLogsWithoutTopicIDsAreNotMixedUp(t *testing.T) {
	disk := faultfs.New(t)
	if err := disk.MkdirAll("/data"); err != nil {
		t.Fatal(err)
	}
	if err := disk.SyncDir("/"); err != nil {
		t.Fatal(err)
	}
	s := openStore(t, quiet(disk.Session(), "/data"))
	create(t, s, spec("a", 1, 2), spec("b", 2, 1))
	closeStore(t, s)
	for _, folder := range []string{"a-0", "b-0"} { // a-1 keeps its own
		if err := disk.Remove("/data/" + folder + "/" + checkpoint.PartitionMetadataName); err != nil {
			t.Fatal(err)
		}
		if err := disk.SyncDir("/data/" + folder); err != nil {
			t.Fatal(err)
		}
	}

	s = openStore(t, quiet(disk.Session(), "/data"))
	for _, v := range []string{"one", "two"} {
		for _, topic := range []string{"a", "b"} {
			if err := add(s.Log(topic, 0), topic+v); err != nil {
				t.Fatal(err)
			}
		}
	}
	a0, a1, b0 := s.Log("a", 0).ID(), s.Log("a", 1).ID(), s.Log("b", 0).ID()
	if a0.Topic != a1.Topic || a0.Topic == b0.Topic || b0.Topic == [16]byte{} {
		t.Errorf("ids: a-0 %x, a-1 %x, b-0 %x", a0.Topic, a1.Topic, b0.Topic)
	}
	disk.CutPower(faultfs.KeepUnsynced(0), faultfs.KeepJournal(100))

	s = openStore(t, quiet(disk.Session(), "/data"))
	defer closeStore(t, s)
	requireHolds(t, s.Log("a", 0), "aone", "atwo")
	requireHolds(t, s.Log("b", 0), "bone", "btwo")
	if again := s.Log("b", 0).ID(); again != b0 {
		t.Errorf("b-0 had id %x and has %x after the crash", b0.Topic, again.Topic)
	}
}
