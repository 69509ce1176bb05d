// Package contract holds the tests that every implementation of coord.Service has to pass: nothing above it may notice a difference. It is for tests.
package contract

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"millrace/coord"
	"millrace/wire"
)

// Cluster is a fresh cluster of one broker.
type Cluster struct {
	Broker  int32
	Open    func(t *testing.T) coord.Service // starts the broker over what is stored, and registers it
	Written func() int                       // counts writes to what is stored
}

// restart ends a life of the broker and begins the next.
func (c *Cluster) restart(t *testing.T, s coord.Service) coord.Service {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return c.Open(t)
}

// Run runs the contract; fresh makes a new cluster.
func Run(t *testing.T, fresh func(t *testing.T) Cluster) {
	for _, test := range []struct {
		name string
		run  func(t *testing.T, c Cluster)
	}{
		{"topics survive a restart", topics},
		{"settings survive a restart", configs},
		{"quotas survive a restart", quotas},
		{"quotas are bounded", bounded},
		{"more partitions are refused by the rules", refusals},
		{"nothing to change is not written", unchanged},
		{"subscribers act before the image is seen", subscribers},
		{"producer ids are handed out once", producers},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, fresh(t)) })
	}
}

func newTopics(names ...string) []coord.NewTopic {
	var out []coord.NewTopic
	for _, name := range names {
		out = append(out, coord.NewTopic{Name: name, Partitions: 2, Factor: 1, Config: map[string]string{"retention.ms": "1"}})
	}
	return out
}

func create(t *testing.T, s coord.Service, names ...string) {
	t.Helper()
	for _, r := range s.CreateTopics(t.Context(), newTopics(names...), false) {
		if r.Code != 0 {
			t.Fatalf("%+v", r)
		}
	}
}

// set is a change that gives a resource one setting, on top of what it has.
func set(r coord.ConfigResource, key, value string) coord.ConfigChange {
	return coord.ConfigChange{Resource: r, Edit: func(before map[string]string) (map[string]string, int16, string) {
		after := maps.Clone(before)
		if after == nil {
			after = map[string]string{}
		}
		after[key] = value
		return after, 0, ""
	}}
}

func clearAll(r coord.ConfigResource) coord.ConfigChange {
	return coord.ConfigChange{Resource: r, Edit: func(map[string]string) (map[string]string, int16, string) { return nil, 0, "" }}
}

func topics(t *testing.T, c Cluster) {
	s := c.Open(t)
	create(t, s, "b", "a", "__consumer_offsets")
	if r := s.CreateTopics(t.Context(), newTopics("a", "a b", "x.y", "x_y"), false); r[0].Code != wire.ErrTopicAlreadyExists || r[1].Code != wire.ErrInvalidTopic || r[2].Code != 0 || r[3].Code != wire.ErrInvalidTopic {
		t.Errorf("%+v", r)
	}
	if r := s.DeleteTopics(t.Context(), []string{"b", "b", "none", "x.y"}); r[0].Code != 0 || r[0].Topic == nil || r[1].Code != wire.ErrUnknownTopicOrPartition || r[2].Code != wire.ErrUnknownTopicOrPartition || r[3].Code != 0 {
		t.Errorf("%+v", r)
	}
	before := s.Image()
	s = c.restart(t, s)
	after := s.Image()
	if after.ClusterID() != before.ClusterID() || !slices.Equal(after.Names(), []string{"__consumer_offsets", "a"}) || after.ControllerID() != c.Broker || after.Broker(c.Broker) == nil {
		t.Errorf("%v of cluster %s, controller %d", after.Names(), after.ClusterID(), after.ControllerID())
	}
	old, now := before.Topic("a"), after.Topic("a")
	if old.ID != now.ID || len(now.Partitions) != 2 || now.Partitions[1].Leader != c.Broker || now.Config["retention.ms"] != "1" || now.Internal || !after.Topic("__consumer_offsets").Internal {
		t.Errorf("%+v became %+v", old, now)
	}
	create(t, s, "b")
	if id := s.Image().Topic("b").ID; id == (coord.ID{}) {
		t.Error("a topic without an id")
	}
}

func configs(t *testing.T, c Cluster) {
	s := c.Open(t)
	create(t, s, "a", "b")
	before := s.Image()
	text := func(img *coord.Image) string {
		return fmt.Sprint(img.DefaultConfig(), img.BrokerConfig(1), img.BrokerConfig(2), img.Topic("a").Config, img.Topic("b").Config, img.GroupConfigs(), img.ClientMetrics())
	}
	first := text(before)
	results := s.AlterConfigs(t.Context(), []coord.ConfigChange{
		set(coord.ConfigResource{Topic: "a"}, "k", "1"),
		set(coord.ConfigResource{Topic: "none"}, "k", "1"),
		set(coord.ConfigResource{Broker: coord.AllBrokers}, "all", "2"),
		set(coord.ConfigResource{Broker: 1}, "own", "3"),
		set(coord.ConfigResource{Broker: 1}, "more", "4"), // sees what the change before it did
		{Resource: coord.ConfigResource{Topic: "b"}, Edit: func(map[string]string) (map[string]string, int16, string) { return nil, wire.ErrInvalidConfig, "no" }},
		set(coord.ConfigResource{Group: "a"}, "g", "5"),
		set(coord.ConfigResource{ClientMetrics: "a/* +%"}, "m", "6"),
	}, false)
	var codes []int16
	for _, r := range results {
		codes = append(codes, r.Code)
	}
	if !slices.Equal(codes, []int16{0, wire.ErrUnknownTopicOrPartition, 0, 0, 0, wire.ErrInvalidConfig, 0, 0}) || !strings.Contains(results[1].Message, `"none"`) || results[5].Message != "no" {
		t.Errorf("%+v", results)
	}
	const want = "map[all:2] map[more:4 own:3] map[] map[k:1 retention.ms:1] map[retention.ms:1] map[a:map[g:5]] map[a/* +%:map[m:6]]"
	if got := text(s.Image()); got != want || text(before) != first {
		t.Errorf("%s\nwant %s\nthe image before was %s and is %s", got, want, first, text(before))
	}
	if s.Image().Topic("b") != before.Topic("b") {
		t.Error("a topic that did not change is another one")
	}
	s = c.restart(t, s)
	if got := text(s.Image()); got != want {
		t.Errorf("after a restart: %s\nwant %s", got, want)
	}
	s.AlterConfigs(t.Context(), []coord.ConfigChange{clearAll(coord.ConfigResource{Broker: 1}), clearAll(coord.ConfigResource{Topic: "a"}), clearAll(coord.ConfigResource{Group: "a"})}, false)
	s = c.restart(t, s)
	if got := text(s.Image()); got != "map[all:2] map[] map[] map[] map[retention.ms:1] map[] map[a/* +%:map[m:6]]" {
		t.Error(got)
	}
}

func user(name string) coord.QuotaEntity {
	return coord.QuotaEntity{User: coord.QuotaPart{Given: true, Name: name}}
}

// rate is a change that gives an entity one quota, on top of what it has; 0 takes it.
func rate(e coord.QuotaEntity, key string, value float64) coord.QuotaChange {
	return coord.QuotaChange{Entity: e, Edit: func(before map[string]float64) (map[string]float64, int16, string) {
		after := maps.Clone(before)
		if after == nil {
			after = map[string]float64{}
		}
		if after[key] = value; value == 0 {
			delete(after, key)
		}
		return after, 0, ""
	}}
}

func quotas(t *testing.T, c Cluster) {
	s := c.Open(t)
	create(t, s, "a")
	text := func(img *coord.Image) string {
		var out []string
		for _, e := range slices.SortedFunc(maps.Keys(img.Quotas()), coord.CompareQuotaEntities) {
			out = append(out, fmt.Sprint(e, img.Quotas()[e]))
		}
		return strings.Join(out, "; ")
	}
	both := user("u")
	both.Client = coord.QuotaPart{Given: true}
	other := user("new/ü") // made together with the node above it
	other.Client = coord.QuotaPart{Given: true, Name: "c*"}
	address := coord.QuotaEntity{IP: coord.QuotaPart{Given: true, Name: "::1"}}
	before := s.Image()
	results := s.AlterQuotas(t.Context(), []coord.QuotaChange{
		rate(user("u"), "k", 0.1), rate(user("u"), "l", 2), rate(user(""), "k", math.MaxFloat64), rate(both, "k", 3), rate(other, "k", 1e21), rate(user("new/ü"), "k", 5), rate(address, "k", 6),
		{Entity: user("x"), Edit: func(map[string]float64) (map[string]float64, int16, string) { return nil, wire.ErrInvalidConfig, "no" }},
	}, false)
	for i, r := range results {
		if refused := i == 7; (r.Code != 0) != refused || refused && r.Message != "no" {
			t.Errorf("%d: %+v", i, r)
		}
	}
	const want = "{{false } {false } {true ::1}} map[k:6]; {{true } {false } {false }} map[k:1.7976931348623157e+308]; {{true new/ü} {false } {false }} map[k:5]; " +
		"{{true new/ü} {true c*} {false }} map[k:1e+21]; {{true u} {false } {false }} map[k:0.1 l:2]; {{true u} {true } {false }} map[k:3]"
	if got := text(s.Image()); got != want || len(before.Quotas()) != 0 {
		t.Errorf("%s\nwant %s, and the image before has %v", got, want, before.Quotas())
	}
	if s.Image().Topic("a") != before.Topic("a") {
		t.Error("a topic changed with the quotas")
	}
	s = c.restart(t, s)
	if got := text(s.Image()); got != want {
		t.Errorf("after a restart: %s\nwant %s", got, want)
	}
	s.AlterQuotas(t.Context(), []coord.QuotaChange{rate(user("u"), "k", 0), rate(user("u"), "l", 0), rate(user(""), "k", 0), rate(both, "k", 0), rate(other, "k", 0), rate(user("new/ü"), "k", 0), rate(address, "k", 0)}, false)
	s = c.restart(t, s)
	if got := s.Image().Quotas(); len(got) != 0 {
		t.Errorf("left behind: %v", got)
	}
}

func bounded(t *testing.T, c Cluster) {
	s := c.Open(t)
	changes := make([]coord.QuotaChange, coord.MaxQuotaEntities+1)
	for i := range changes {
		changes[i] = rate(user(fmt.Sprint(i)), "k", 1)
	}
	results := s.AlterQuotas(t.Context(), changes, false)
	last := results[len(results)-1]
	if results[0].Code != 0 || last.Code != wire.ErrPolicyViolation || !strings.Contains(last.Message, "10000") || len(s.Image().Quotas()) != coord.MaxQuotaEntities {
		t.Errorf("%+v, %+v, %d entities", results[0], last, len(s.Image().Quotas()))
	}
}

func refusals(t *testing.T, c Cluster) {
	s := c.Open(t)
	create(t, s, "a", "b", "c", "h", "twice", "__consumer_offsets")
	requests := []coord.MorePartitions{
		{Name: "a", Count: 3, Assignment: [][]int32{{c.Broker}}},
		{Name: "b", Count: 2},
		{Name: "c", Count: 3, Assignment: [][]int32{{99}}},
		{Name: "h", Count: 3, Prepare: func(*coord.Topic) error { return errors.New("no room") }},
		{Name: "none", Count: 3},
		{Name: "twice", Count: 3}, {Name: "twice", Count: 4},
		{Name: "__consumer_offsets", Count: 60},
	}
	want := []struct {
		code int16
		text string
	}{
		{0, ""}, {wire.ErrInvalidPartitions, "has 2 partition(s) already"}, {wire.ErrInvalidReplicaAssignment, "broker 99"}, {wire.ErrKafkaStorageError, "no room"},
		{wire.ErrUnknownTopicOrPartition, `"none"`}, {wire.ErrInvalidRequest, "more than once"}, {wire.ErrInvalidRequest, "more than once"}, {wire.ErrInvalidRequest, "belongs to the brokers"},
	}
	for i, r := range s.CreatePartitions(t.Context(), requests, false) {
		if r.Code != want[i].code || !strings.Contains(r.Message, want[i].text) || r.Name != requests[i].Name {
			t.Errorf("%s: %d %s, want %d %s", requests[i].Name, r.Code, r.Message, want[i].code, want[i].text)
		}
	}
	for _, img := range []*coord.Image{s.Image(), c.restart(t, s).Image()} {
		if a, h := len(img.Topic("a").Partitions), len(img.Topic("h").Partitions); a != 3 || h != 2 {
			t.Errorf("a has %d partitions, h %d", a, h)
		}
	}
}

func unchanged(t *testing.T, c Cluster) {
	s := c.Open(t)
	create(t, s, "a")
	s.AlterQuotas(t.Context(), []coord.QuotaChange{rate(user("u"), "k", 1)}, false)
	before, written := s.Image(), c.Written()
	for _, dry := range []bool{true, false} {
		change := set(coord.ConfigResource{Topic: "a"}, "retention.ms", map[bool]string{true: "2", false: "1"}[dry])
		if r := s.AlterConfigs(t.Context(), []coord.ConfigChange{change}, dry)[0]; r.Code != 0 {
			t.Errorf("%+v", r)
		}
	}
	s.AlterQuotas(t.Context(), []coord.QuotaChange{rate(user("u"), "k", 1), rate(user("none"), "k", 0)}, false)
	s.AlterQuotas(t.Context(), []coord.QuotaChange{rate(user("u"), "k", 2)}, true)
	prepared := false
	if r := s.CreatePartitions(t.Context(), []coord.MorePartitions{{Name: "a", Count: 3, Prepare: func(*coord.Topic) error { prepared = true; return nil }}}, true)[0]; r.Code != 0 || len(r.Topic.Partitions) != 3 || prepared {
		t.Errorf("%+v, prepared %v", r, prepared)
	}
	if r := s.CreateTopics(t.Context(), newTopics("b"), true)[0]; r.Code != 0 || len(r.Topic.Partitions) != 2 {
		t.Errorf("%+v", r)
	}
	if s.Image() != before || c.Written() != written {
		t.Error("something was written or published")
	}
}

func subscribers(t *testing.T, c Cluster) {
	s := c.Open(t)
	var seen []string
	cancel := s.Subscribe(func(img *coord.Image) {
		seen = append(seen, strings.Join(img.Names(), ","))
		if len(seen) > 1 && s.Image() == img {
			t.Error("the image was visible before the subscriber had acted")
		}
	})
	create(t, s, "a")
	create(t, s, "b", "c")
	s.DeleteTopics(t.Context(), []string{"a"})
	cancel()
	create(t, s, "d")
	if want := []string{"", "a", "a,b,c", "b,c"}; !slices.Equal(seen, want) {
		t.Errorf("seen %q, want %q", seen, want)
	}
}

func producers(t *testing.T, c Cluster) {
	s := c.Open(t)
	end := int64(0)
	for range 3 {
		first, count, err := s.AllocateProducerIDs(t.Context())
		if err != nil || first < end || count < 1 {
			t.Errorf("%d ids from %d on, below %d (%v)", count, first, end, err)
		}
		end = first + count
		s = c.restart(t, s)
	}
}
