package controller

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"millrace/coord"
	"millrace/coord/controller/znode"
)

// Claim: a data directory without a tree keeps its topics: partitions, ids and epochs are taken from the logs, nothing is deleted by retention, and the
// result is in the tree; producer ids begin where they are told to.
// Method: logs as Kafka leaves them, old and new, complete and with gaps.
func TestLogsFoundAreAdopted(t *testing.T) {
	tr := newTree()
	id, other := coord.ID{1}, coord.ID{2}
	found := []coord.Found{
		{Topic: "new", ID: id, Partition: 2, Epoch: 7},
		{Topic: "new", ID: id, Partition: 0, Epoch: -1},
		{Topic: "new", ID: other, Partition: 1},
		{Topic: "old", Partition: 0, Epoch: 3},
		{Topic: "__consumer_offsets", ID: other, Partition: 49},
		{Topic: "bad name", Partition: 0},
	}
	for life := range 2 {
		s, err := Open(t.Context(), optionsOf(tr, 1, nil))
		if err != nil {
			t.Fatal(err)
		}
		if s.Fresh() != (life == 0) {
			t.Errorf("life %d: fresh is %v", life, s.Fresh())
		}
		a, err := s.Adopt(t.Context(), found, 1<<32)
		if err != nil || len(a.Strays) != 2 || len(a.Leftovers) != 0 {
			t.Errorf("%+v, %v", a, err)
		}
		if life == 0 && !slices.Equal(a.Adopted, []string{"__consumer_offsets", "new", "old"}) {
			t.Errorf("%+v", a)
		}
		if err := s.RegisterBroker(t.Context(), brokerOf(1)); err != nil {
			t.Fatal(err)
		}
		img := s.Image()
		topic, old, offsets := img.Topic("new"), img.Topic("old"), img.Topic("__consumer_offsets")
		if topic.ID != id || len(topic.Partitions) != 3 || topic.Partitions[2].Epoch != 7 || topic.Partitions[0].Epoch != 0 || topic.Partitions[1].Leader != 1 || topic.Config["retention.ms"] != "-1" {
			t.Errorf("%+v", topic)
		}
		if old.ID == (coord.ID{}) || old.Partitions[0].Epoch != 3 || len(offsets.Partitions) != 50 || offsets.Config["cleanup.policy"] != "compact" {
			t.Errorf("%+v %+v", old, offsets)
		}
		s.settle(t)
		requireWhole(t, tr, img)
		if first, _, err := s.AllocateProducerIDs(t.Context()); err != nil || first != 1<<32+int64(life)*producerBlock {
			t.Errorf("the first producer id is %d (%v)", first, err)
		}
		_ = s.Close()
	}
}

// saved is something of everything.
func saved() *coord.Saved {
	given := func(name string) coord.QuotaPart { return coord.QuotaPart{Given: true, Name: name} }
	return &coord.Saved{
		NextProducerID: 5000, Topics: []coord.SavedTopic{{Name: "a", ID: coord.ID{1}, Epochs: []int32{3, 5}, Config: map[string]string{"k": "v"}}, {Name: "b", ID: coord.ID{2}, Epochs: []int32{0}}},
		Defaults: map[string]string{"k": "w"}, Brokers: map[int32]map[string]string{1: {"l": "x"}}, Groups: coord.NamedConfigs{"g/g": {"k": "1"}}, ClientMetrics: coord.NamedConfigs{"m": {"k": "2"}},
		Quotas: map[coord.QuotaEntity]map[string]float64{
			{User: given("u")}:                        {"producer_byte_rate": 1},
			{User: given("u"), Client: given("c")}:    {"producer_byte_rate": 2},
			{User: given("only"), Client: given("c")}: {"producer_byte_rate": 3},
			{IP: given("")}:                           {"connection_creation_rate": 4},
		},
	}
}

// Claim: wherever an import is cut off, or its answer lost, the next start goes on, and in the end all of it is there, once.
// Method: a kill before and after every call, then a start without faults.
func TestEveryStepOfAnImportMayFail(t *testing.T) {
	for _, batch := range []int{0, 1} {
		want := ""
		for n := -1; ; n++ {
			fired := false
			for _, kind := range []string{"kill before", "kill after"} {
				tr := newTree()
				p := &plan{fault: fault{n, kind}}
				importOnce(t, tr, p, batch)
				fired = fired || p.fired
				s := importOnce(t, tr, nil, batch)
				s.settle(t)
				requireWhole(t, tr, s.Image())
				got := shown(s.Image()) + fmt.Sprint(s.Image().GroupConfigs(), s.Image().ClientMetrics())
				if want == "" {
					want = got
				}
				if first, _, err := s.AllocateProducerIDs(t.Context()); got != want || err != nil || first != 5000 {
					t.Fatalf("%s at call %d, batches of %d: %s\nwant %s\nthe first producer id is %d (%v)", kind, n, batch, got, want, first, err)
				}
				if name, err := s.Imported(); name != "file" || err != nil || slices.Contains(tr.paths(), znode.FillingPath) {
					t.Fatalf("%s at call %d: imported %q, %v", kind, n, name, err)
				}
				_ = s.Close()
			}
			if n >= 0 && !fired {
				t.Logf("batches of %d: %d calls", batch, n)
				break
			}
		}
	}
}

// importOnce is a start over what was saved, which may be cut off.
func importOnce(t *testing.T, tr *tree, p *plan, batch int) *Service {
	t.Helper()
	o := optionsOf(tr, 1, p)
	o.batch = batch
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	s, err := Open(ctx, o)
	if err == nil && s.Fresh() {
		err = s.Import(ctx, saved(), "file")
	}
	if err == nil && (p == nil || !p.isDead()) {
		if p != nil {
			_ = s.Close()
			return nil
		}
		err = s.RegisterBroker(ctx, brokerOf(1))
	}
	if err != nil && p == nil {
		t.Fatal(err)
	}
	if p != nil {
		if s != nil {
			_ = s.Close()
		}
		tr.expireAll()
	}
	return s
}
