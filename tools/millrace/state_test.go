package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// brokerState is what the transcripts were taken from, built on the broker at hand.
type brokerState struct {
	admin *kadm.Client
	has   map[string]bool // the APIs that the broker tells of, by name
}

// firstStamp is the timestamp of the first record of every topic; the others follow
// a second apart.
var firstStamp = time.Date(2024, 1, 2, 3, 4, 5, 0, time.UTC)

// liveState makes topics, records and, where the broker has them, groups. What an
// earlier run left is removed first.
func liveState(t *testing.T, address string) *brokerState {
	t.Helper()
	cl, err := kgo.NewClient(kgo.SeedBrokers(address), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cl.Close)
	s := &brokerState{admin: kadm.NewClient(cl), has: map[string]bool{}}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	versions, err := s.admin.ApiVersions(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range versions {
		v.EachKeySorted(func(key, _, _ int16) { s.has[kmsg.NameForKey(key)] = true })
	}
	s.removeOld(t, ctx)
	forever, day := "-1", "86400000"
	for _, topic := range []struct {
		name    string
		records []int
		configs map[string]*string
	}{
		{"cli-orders", []int{10, 20, 30}, map[string]*string{"retention.ms": &forever, "segment.bytes": kadm.StringPtr("1048576")}},
		{"cli-events", []int{100}, map[string]*string{"retention.ms": &forever}},
		{"cli-hundred", []int{100}, map[string]*string{"retention.ms": &forever}},
		{"cli-four", []int{25, 25, 25, 25}, map[string]*string{"retention.ms": &forever}},
		{"cli-empty", []int{0, 0}, nil},
		{"cli-input", []int{0}, map[string]*string{"retention.ms": &day}},
	} {
		s.create(t, ctx, topic.name, int32(len(topic.records)), topic.configs)
		if err := awaitTopic(ctx, s.admin, topic.name); err != nil {
			t.Fatal(err)
		}
		for p, n := range topic.records {
			var list []*kgo.Record
			for i := range n {
				list = append(list, &kgo.Record{
					Topic: topic.name, Partition: int32(p), Timestamp: firstStamp.Add(time.Duration(i) * time.Second),
					Key: fmt.Appendf(nil, "k%d", i), Value: fmt.Appendf(nil, "v%d-%d", p, i),
				})
			}
			if err := cl.ProduceSync(ctx, list...).FirstErr(); err != nil {
				t.Fatal(topic.name, err)
			}
		}
	}
	if s.has["DeleteRecords"] {
		s.must(t, func() error {
			_, err := s.admin.DeleteRecords(ctx, kadm.Offsets{"cli-events": {0: {Topic: "cli-events", At: 40}}})
			return err
		})
	}
	if s.has["OffsetCommit"] {
		s.groups(t, ctx)
		s.member(t, address, "cli-live", "cli-orders", "cli-i1")
	}
	return s
}

// create makes a topic. A topic that was just deleted may still be there for a while
// in a cluster, so it tries again until the time is up.
func (s *brokerState) create(t *testing.T, ctx context.Context, name string, partitions int32, configs map[string]*string) {
	t.Helper()
	for {
		_, err := s.admin.CreateTopic(ctx, partitions, 1, configs, name)
		if err == nil {
			return
		}
		if !errors.Is(err, kerr.TopicAlreadyExists) || ctx.Err() != nil {
			t.Fatal(name, err)
		}
		time.Sleep(awaitPoll)
	}
}

func (s *brokerState) must(t *testing.T, f func() error) {
	t.Helper()
	if err := f(); err != nil {
		t.Fatal(err)
	}
}

func (s *brokerState) removeOld(t *testing.T, ctx context.Context) {
	topics, err := s.admin.ListTopics(ctx)
	if err != nil {
		t.Fatal(err)
	}
	var old []string
	for _, name := range topics.Names() {
		if strings.HasPrefix(name, "cli-") || strings.HasPrefix(name, "cli_") {
			old = append(old, name)
		}
	}
	if len(old) > 0 {
		if _, err := s.admin.DeleteTopics(ctx, old...); err != nil {
			t.Fatal(err)
		}
	}
	if !s.has["DeleteGroups"] {
		return
	}
	// A static member stays for a session's time unless it is taken out by name.
	_, _ = s.admin.LeaveGroup(ctx, kadm.LeaveGroup("cli-live").InstanceIDs("cli-i1"))
	groups, err := s.admin.ListGroups(ctx)
	if err != nil {
		t.Fatal(err)
	}
	ours := slices.DeleteFunc(groups.Groups(), func(name string) bool {
		return !strings.HasPrefix(name, "cli-") && !strings.HasPrefix(name, "console-consumer-")
	})
	_, _ = s.admin.DeleteGroups(ctx, ours...) // one that lives stays, and will show
}

// groups commits for three groups without members, as F113 has them, for one whose
// offsets are reset, as in F111, and for one that gets a member afterwards.
func (s *brokerState) groups(t *testing.T, ctx context.Context) {
	for group, at := range map[string]kadm.Offsets{
		"cli-g1":    offsetsAt("cli-hundred", 10),
		"cli-g2":    offsetsAt("cli-hundred", 90),
		"cli-g3":    offsetsAt("cli-four", 5, 25),
		"cli-reset": offsetsAt("cli-events", 50),
		"cli-live":  offsetsAt("cli-orders", 3, 20),
	} {
		s.must(t, func() error { return s.admin.CommitAllOffsets(ctx, group, at) })
	}
}

func offsetsAt(topic string, at ...int64) kadm.Offsets {
	o := kadm.Offsets{}
	for p, offset := range at {
		o.AddOffset(topic, int32(p), offset, -1)
	}
	return o
}

// member joins a group and stays until the test ends.
func (s *brokerState) member(t *testing.T, address, group, topic, instance string) {
	t.Helper()
	o := []kgo.Opt{
		kgo.SeedBrokers(address), kgo.ClientID("cli-member"), kgo.ConsumerGroup(group), kgo.ConsumeTopics(topic),
		kgo.Balancers(kgo.RangeBalancer()), kgo.DisableAutoCommit(), kgo.ConsumeResetOffset(kgo.NewOffset().AtEnd()),
	}
	if instance != "" {
		o = append(o, kgo.InstanceID(instance))
	}
	assigned := make(chan struct{}, 8)
	o = append(o, kgo.OnPartitionsAssigned(func(context.Context, *kgo.Client, map[string][]int32) { assigned <- struct{}{} }))
	cl, err := kgo.NewClient(o...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cl.Close)
	go func() { // ends with the client
		for !cl.PollFetches(t.Context()).IsClientClosed() && t.Context().Err() == nil {
		}
	}()
	select {
	case <-assigned:
	case <-time.After(20 * time.Second):
		t.Fatal("no assignment")
	}
}

// require skips a test whose APIs the broker does not have yet.
func (s *brokerState) require(t *testing.T, apis []string) {
	t.Helper()
	if i := slices.IndexFunc(apis, func(name string) bool { return !s.has[name] }); i >= 0 {
		t.Skipf("this broker has no %s", apis[i])
	}
}

// contextWithStop is a context that a test ends itself.
func contextWithStop(t *testing.T) (context.Context, context.CancelFunc) {
	ctx, stop := context.WithTimeout(t.Context(), 30*time.Second)
	t.Cleanup(stop)
	return ctx, stop
}

// countedLines is a writer that calls stop after enough writes.
type countedLines struct {
	n, enough int
	last      string
	stop      func()
}

func (c *countedLines) Write(b []byte) (int, error) {
	c.n++
	c.last = string(b)
	if c.n >= c.enough {
		c.stop()
	}
	return len(b), nil
}

func keyOf(key int16) kmsg.Key { return kmsg.Key(key) }
