package single

import (
	"slices"
	"testing"

	"millrace/coord"
)

// Claim: a data directory without a state file keeps its topics: partitions,
// ids and epochs are taken from the logs, nothing is deleted by retention, and
// the result is durable.
// Method: logs as Kafka leaves them, old and new, complete and with gaps.
func TestLogsFoundAreAdopted(t *testing.T) {
	disk := newDisk(t)
	s := open(t, disk)
	id, other := coord.ID{1}, coord.ID{2}
	adoption, err := s.Adopt(t.Context(), []Found{
		{Topic: "new", ID: id, Partition: 2, Epoch: 7},
		{Topic: "new", ID: id, Partition: 0, Epoch: -1},
		{Topic: "new", ID: other, Partition: 1},
		{Topic: "old", Partition: 0, Epoch: 3},
		{Topic: "__consumer_offsets", ID: other, Partition: 49},
		{Topic: "bad name", Partition: 0},
	}, 1<<32)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(adoption.Adopted, []string{"__consumer_offsets", "new", "old"}) || len(adoption.Strays) != 2 || len(adoption.Leftovers) != 0 {
		t.Errorf("%+v", adoption)
	}
	if first, _, err := open(t, disk).AllocateProducerIDs(t.Context()); err != nil || first != 1<<32 {
		t.Errorf("the first producer id is %d (%v)", first, err)
	}
	for _, img := range []*coord.Image{s.Image(), open(t, disk).Image()} {
		topic, old, offsets := img.Topic("new"), img.Topic("old"), img.Topic("__consumer_offsets")
		if topic.ID != id || len(topic.Partitions) != 3 || topic.Partitions[2].Epoch != 7 || topic.Partitions[0].Epoch != 0 || topic.Config["retention.ms"] != "-1" {
			t.Errorf("%+v", topic)
		}
		if old.ID == (coord.ID{}) || old.Partitions[0].Epoch != 3 {
			t.Errorf("%+v", old)
		}
		if len(offsets.Partitions) != 50 || offsets.Config["cleanup.policy"] != "compact" {
			t.Errorf("%+v", offsets)
		}
	}
}

// Claim: where there is a state file it is right: logs of a deletion that was
// cut off are named for deletion, logs of no topic are strays, and neither
// becomes a topic.
// Method: delete a topic, make it anew, and open again without its logs having
// gone; then once more when they have.
func TestLogsTheStateDoesNotKnowAreNotAdopted(t *testing.T) {
	disk := newDisk(t)
	s := open(t, disk)
	create(s, "gone", "kept")
	gone, kept := s.Image().Topic("gone").ID, s.Image().Topic("kept").ID
	s.DeleteTopics(t.Context(), []string{"gone"})
	create(s, "gone")

	s = open(t, disk)
	found := []Found{
		{Topic: "gone", ID: gone, Partition: 0},
		{Topic: "gone", ID: coord.ID{9}, Partition: 0},
		{Topic: "kept", ID: kept, Partition: 1},
		{Topic: "kept", ID: kept, Partition: 2},
		{Topic: "kept", ID: coord.ID{9}, Partition: 0},
		{Topic: "never", ID: coord.ID{8}, Partition: 0},
	}
	adoption, err := s.Adopt(t.Context(), found, 0)
	if err != nil || len(adoption.Adopted) != 0 || !slices.Equal(adoption.Leftovers, found[:1]) || len(adoption.Strays) != 4 {
		t.Errorf("%+v, %v", adoption, err)
	}
	if !slices.Equal(s.Image().Names(), []string{"gone", "kept"}) {
		t.Errorf("%v", s.Image().Names())
	}
	if _, err := s.Adopt(t.Context(), nil, 0); err != nil || len(s.mu.state.Deleting) != 0 {
		t.Errorf("still noted as being deleted: %v", s.mu.state.Deleting)
	}
}
