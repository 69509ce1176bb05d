package single

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"millrace/coord"
	"millrace/engine/vfs"
	"millrace/engine/vfs/faultfs"
	"millrace/wire"
)

// set is a change that gives a resource one setting, on top of what it has.
func set(r coord.ConfigResource, key, value string) coord.ConfigChange {
	return coord.ConfigChange{Resource: r, Edit: func(before map[string]string) (map[string]string, int16, string) {
		after := map[string]string{key: value}
		for k, v := range before {
			if k != key {
				after[k] = v
			}
		}
		return after, 0, ""
	}}
}

// shown is all that these tests change, as text.
func shown(img *coord.Image) string {
	out := fmt.Sprintf("all %v, 1 %v, 2 %v", img.DefaultConfig(), img.BrokerConfig(1), img.BrokerConfig(2))
	for _, name := range img.Names() {
		t := img.Topic(name)
		out += fmt.Sprintf("; %s %d %v", name, len(t.Partitions), t.Config)
	}
	return out
}

// Claim: settings and numbers of partitions that were answered are there after a
// restart; the images before are as they were (C4), and topics that did not change
// are the same ones.
// Method: change, compare, open again.
func TestChangedSettingsSurviveARestart(t *testing.T) {
	disk := newDisk(t)
	s := open(t, disk)
	create(s, "a", "b")
	before := s.Image()
	first := shown(before)
	results := s.AlterConfigs(t.Context(), []coord.ConfigChange{
		set(coord.ConfigResource{Topic: "a"}, "k", "1"),
		set(coord.ConfigResource{Topic: "none"}, "k", "1"),
		set(coord.ConfigResource{Broker: coord.AllBrokers}, "all", "2"),
		set(coord.ConfigResource{Broker: 1}, "own", "3"),
		set(coord.ConfigResource{Broker: 1}, "more", "4"), // sees what the change before it did
		{Resource: coord.ConfigResource{Topic: "b"}, Edit: func(map[string]string) (map[string]string, int16, string) {
			return nil, wire.ErrInvalidConfig, "no"
		}},
	}, false)
	var codes []int16
	for _, r := range results {
		codes = append(codes, r.Code)
	}
	if !slices.Equal(codes, []int16{0, wire.ErrUnknownTopicOrPartition, 0, 0, 0, wire.ErrInvalidConfig}) || !strings.Contains(results[1].Message, `"none"`) || results[5].Message != "no" {
		t.Errorf("%+v", results)
	}
	if r := s.CreatePartitions(t.Context(), []coord.MorePartitions{{Name: "b", Count: 5}}, false)[0]; r.Code != 0 || len(r.Topic.Partitions) != 5 {
		t.Errorf("%+v", r)
	}
	const want = "all map[all:2], 1 map[more:4 own:3], 2 map[]; a 2 map[k:1 retention.ms:1]; b 5 map[retention.ms:1]"
	if got := shown(s.Image()); got != want || shown(before) != first {
		t.Errorf("%s\nwant %s\nthe image before was %s and is %s", got, want, first, shown(before))
	}
	if b := s.Image().Topic("b"); b.ID != before.Topic("b").ID || b.Partitions[4].Leader != 1 {
		t.Errorf("%+v", b)
	}
	s = open(t, disk)
	if got := shown(s.Image()); got != want {
		t.Errorf("after a restart: %s\nwant %s", got, want)
	}

	// Taking the last setting away leaves nothing behind.
	clear := func(map[string]string) (map[string]string, int16, string) { return nil, 0, "" }
	s.AlterConfigs(t.Context(), []coord.ConfigChange{{Resource: coord.ConfigResource{Broker: 1}, Edit: clear}, {Resource: coord.ConfigResource{Topic: "a"}, Edit: clear}}, false)
	if got := shown(open(t, disk).Image()); got != "all map[all:2], 1 map[], 2 map[]; a 2 map[]; b 5 map[retention.ms:1]" {
		t.Error(got)
	}
}

// Claim: a dry run, and a change that changes nothing, write nothing and publish
// nothing.
// Method: the trace of the disk.
func TestNothingToChangeIsNotWritten(t *testing.T) {
	disk := newDisk(t)
	s := open(t, disk)
	create(s, "a")
	before, ops := s.Image(), disk.Operations()
	for _, dry := range []bool{true, false} {
		change := set(coord.ConfigResource{Topic: "a"}, "retention.ms", map[bool]string{true: "2", false: "1"}[dry])
		if r := s.AlterConfigs(t.Context(), []coord.ConfigChange{change}, dry)[0]; r.Code != 0 {
			t.Errorf("%+v", r)
		}
	}
	prepared := false
	dry := []coord.MorePartitions{{Name: "a", Count: 3, Prepare: func(*coord.Topic) error { prepared = true; return nil }}}
	if r := s.CreatePartitions(t.Context(), dry, true)[0]; r.Code != 0 || len(r.Topic.Partitions) != 3 || prepared {
		t.Errorf("%+v, prepared %v", r, prepared)
	}
	if s.Image() != before || disk.Operations() != ops {
		t.Error("something was written or published")
	}
}

// Claim: more partitions are refused by the rules of creation, and by whoever
// prepares them; one topic's refusal is not another's.
// Method: a table in one request.
func TestMorePartitionsAreRefused(t *testing.T) {
	s := open(t, newDisk(t))
	create(s, "a", "b", "c", "d", "e", "f", "g", "h", "twice", "__consumer_offsets")
	full := errors.New("no room")
	requests := []coord.MorePartitions{
		{Name: "a", Count: 3, Assignment: [][]int32{{1}}},
		{Name: "b", Count: 2},
		{Name: "c", Count: 1},
		{Name: "d", Count: coord.MaxPartitionsPerRequest + 10},
		{Name: "e", Count: 4, Assignment: [][]int32{{1}}},
		{Name: "f", Count: 3, Assignment: [][]int32{{9}}},
		{Name: "g", Count: 3, Assignment: [][]int32{{1, 1}}},
		{Name: "h", Count: 3, Prepare: func(*coord.Topic) error { return full }},
		{Name: "none", Count: 3},
		{Name: "twice", Count: 3}, {Name: "twice", Count: 4},
		{Name: "__consumer_offsets", Count: 60},
	}
	want := []struct {
		code int16
		text string
	}{
		{0, ""},
		{wire.ErrInvalidPartitions, "has 2 partition(s) already"},
		{wire.ErrInvalidPartitions, "1 would not be more"},
		{wire.ErrPolicyViolation, "10000 per request"},
		{wire.ErrInvalidReplicaAssignment, "2 partition(s) are to be added, but 1 are assigned"},
		{wire.ErrInvalidReplicaAssignment, "broker 9"},
		{wire.ErrInvalidReplicaAssignment, "broker 1 twice"},
		{wire.ErrKafkaStorageError, "no room"},
		{wire.ErrUnknownTopicOrPartition, `"none"`},
		{wire.ErrInvalidRequest, "more than once"}, {wire.ErrInvalidRequest, "more than once"},
		{wire.ErrInvalidRequest, "belongs to the brokers"},
	}
	for i, r := range s.CreatePartitions(t.Context(), requests, false) {
		if r.Code != want[i].code || !strings.Contains(r.Message, want[i].text) || r.Name != requests[i].Name {
			t.Errorf("%s: %d %s, want %d %s", requests[i].Name, r.Code, r.Message, want[i].code, want[i].text)
		}
	}
	if n := len(s.Image().Topic("a").Partitions); n != 3 {
		t.Errorf("a has %d partitions", n)
	}
	if n := len(s.Image().Topic("h").Partitions); n != 2 {
		t.Errorf("h has %d partitions", n)
	}
}

// settingsLife changes settings and partitions and stops at the first error.
// answered is what was promised last; attempted what the change that failed would
// have led to.
func settingsLife(fsys vfs.FS) (answered, attempted string) {
	s, err := Open(Options{FS: fsys, Path: path, BrokerID: 1, Logger: quiet})
	if err != nil {
		return
	}
	_ = s.RegisterBroker(context.Background(), coord.Broker{ID: 1})
	answered = shown(s.Image())
	for _, step := range []struct {
		after string
		do    func() int16
	}{
		{"all map[], 1 map[], 2 map[]; a 2 map[retention.ms:1]", func() int16 { return create(s, "a")[0].Code }},
		{"all map[k:1], 1 map[], 2 map[]; a 2 map[retention.ms:2]", func() int16 {
			return s.AlterConfigs(context.Background(), []coord.ConfigChange{set(coord.ConfigResource{Topic: "a"}, "retention.ms", "2"), set(coord.ConfigResource{Broker: coord.AllBrokers}, "k", "1")}, false)[1].Code
		}},
		{"all map[k:1], 1 map[], 2 map[]; a 4 map[retention.ms:2]", func() int16 {
			return s.CreatePartitions(context.Background(), []coord.MorePartitions{{Name: "a", Count: 4}}, false)[0].Code
		}},
		{"all map[k:1], 1 map[own:2], 2 map[]; a 4 map[retention.ms:2]", func() int16 {
			return s.AlterConfigs(context.Background(), []coord.ConfigChange{set(coord.ConfigResource{Broker: 1}, "own", "2")}, false)[0].Code
		}},
	} {
		attempted = step.after
		if step.do() != 0 {
			return
		}
		answered = step.after
		if got := shown(s.Image()); got != answered {
			panic(got) // the script of this test is wrong
		}
	}
	return
}

// Claim: a crash or a failed operation leaves settings and partitions as before or
// as after the change that was cut off, never in between (a request that changes a
// topic and a broker changes both or neither).
// Method: the same short life, failing operation 0, 1, 2 …, then cutting power there.
func TestACrashLeavesSettingsBeforeOrAfter(t *testing.T) {
	crashAnywhere(t, settingsLife, shown)
}

// crashAnywhere lives a short life, failing operation 0, 1, 2 …, then cutting power there, and demands that the next start shows what was
// answered last or what was attempted then.
func crashAnywhere(t *testing.T, life func(vfs.FS) (answered, attempted string), shown func(*coord.Image) string) {
	t.Helper()
	for _, how := range []string{"fail", "cut"} {
		for n := 0; ; n++ {
			disk := newDisk(t)
			if how == "fail" {
				disk.FailOperation(n)
			} else {
				disk.CutAtOperation(n)
			}
			answered, attempted := life(disk)
			if !disk.Fired() {
				break
			}
			disk.CutPower(faultfs.KeepUnsynced(50))
			s, err := Open(Options{FS: disk, Path: path, BrokerID: 1, Logger: quiet})
			if err != nil {
				t.Fatalf("%s at %d: %v", how, n, err)
			}
			if got := shown(s.Image()); got != answered && got != attempted {
				t.Fatalf("%s at %d: %s\nwant %s\nor %s", how, n, got, answered, attempted)
			}
		}
	}
}

// Claim: a file whose settings of brokers name no broker stops the start.
// Method: write such a state.
func TestWrongBrokersStopTheStart(t *testing.T) {
	for _, key := range []string{"x", "-1", "01", ""} {
		disk := newDisk(t)
		s := open(t, disk)
		create(s, "a")
		bad := s.mu.state.clone()
		bad.Brokers = map[string]map[string]string{key: {"k": "v"}}
		if _, err := save(disk, path, bad); err != nil {
			t.Fatal(err)
		}
		var damaged *FileError
		if _, err := Open(Options{FS: disk, Path: path, BrokerID: 1, Logger: quiet}); !errors.As(err, &damaged) {
			t.Errorf("%q: %v", key, err)
		}
	}
}

// Claim: settings of groups and of subscriptions to clients' metrics are there after a
// restart, apart from each other and from a topic of the same name; the last one that
// is taken away leaves nothing; images before stay as they were.
// Method: change, compare, open again; a file with an empty name stops the start.
func TestNamedSettingsSurviveARestart(t *testing.T) {
	disk := newDisk(t)
	s := open(t, disk)
	create(s, "x")
	group, metrics := coord.ConfigResource{Group: "x"}, coord.ConfigResource{ClientMetrics: "x"}
	before := s.Image()
	for i, r := range s.AlterConfigs(t.Context(), []coord.ConfigChange{set(group, "k", "1"), set(metrics, "k", "2"), set(metrics, "l", "3")}, false) {
		if r.Code != 0 {
			t.Errorf("%d: %+v", i, r)
		}
	}
	const want = "map[x:map[k:1]] map[x:map[k:2 l:3]] map[retention.ms:1]"
	named := func(img *coord.Image) string {
		return fmt.Sprint(img.GroupConfigs(), " ", img.ClientMetrics(), " ", img.Topic("x").Config)
	}
	if got := named(s.Image()); got != want || len(before.GroupConfigs()) != 0 {
		t.Error(got)
	}
	s = open(t, disk)
	if got := named(s.Image()); got != want {
		t.Error("after a restart:", got)
	}
	clear := func(map[string]string) (map[string]string, int16, string) { return nil, 0, "" }
	s.AlterConfigs(t.Context(), []coord.ConfigChange{{Resource: group, Edit: clear}}, false)
	if got := named(open(t, disk).Image()); got != "map[] map[x:map[k:2 l:3]] map[retention.ms:1]" {
		t.Error(got)
	}
	bad := s.mu.state.clone()
	bad.Groups = coord.NamedConfigs{"": {"k": "v"}}
	if _, err := save(disk, path, bad); err != nil {
		t.Fatal(err)
	}
	var damaged *FileError
	if _, err := Open(Options{FS: disk, Path: path, BrokerID: 1, Logger: quiet}); !errors.As(err, &damaged) {
		t.Error(err)
	}
}
