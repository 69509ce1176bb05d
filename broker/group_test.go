package broker

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"millrace/engine/batch"
	"millrace/engine/vfs/faultfs"
	"millrace/wire"
)

// quick is for groups whose members come and go within a test.
var quick = []string{"group.initial.rebalance.delay.ms=100", "group.min.session.timeout.ms=500", "offsets.topic.num.partitions=4"}

// consumer is a franz-go client in a group that notes what it sees and owns.
type consumer struct {
	t      testing.TB
	client *kgo.Client
	cancel context.CancelFunc
	ended  chan struct{}

	mu    sync.Mutex
	seen  map[string]int // value → how often
	owned map[int32]bool
	lost  int // how often something was taken away
}

// consume starts a consumer of topic "t" in group "g". It commits what it has
// seen, in the background and when it leaves.
func (b *testBroker) consume(opts ...kgo.Opt) *consumer {
	b.t.Helper()
	c := &consumer{t: b.t, ended: make(chan struct{}), seen: map[string]int{}, owned: map[int32]bool{}}
	note := func(owns bool) func(context.Context, *kgo.Client, map[string][]int32) {
		return func(_ context.Context, _ *kgo.Client, parts map[string][]int32) {
			c.mu.Lock()
			defer c.mu.Unlock()
			for _, p := range parts["t"] {
				if owns {
					c.owned[p] = true
				} else {
					delete(c.owned, p)
					c.lost++
				}
			}
		}
	}
	all := append([]kgo.Opt{
		kgo.SeedBrokers(b.Addr("")), kgo.ConsumerGroup("g"), kgo.ConsumeTopics("t"),
		kgo.SessionTimeout(2 * time.Second), kgo.HeartbeatInterval(100 * time.Millisecond), kgo.RebalanceTimeout(10 * time.Second),
		kgo.AutoCommitInterval(100 * time.Millisecond), kgo.FetchMaxWait(100 * time.Millisecond),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.OnPartitionsAssigned(note(true)), kgo.OnPartitionsRevoked(note(false)), kgo.OnPartitionsLost(note(false)),
	}, opts...)
	var err error
	if c.client, err = kgo.NewClient(all...); err != nil {
		b.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	c.cancel = cancel
	go func() { // owner: c; ends with ctx or the client; close and die wait
		defer close(c.ended)
		for {
			fetches := c.client.PollFetches(ctx)
			if fetches.IsClientClosed() || ctx.Err() != nil {
				return
			}
			c.mu.Lock()
			fetches.EachRecord(func(r *kgo.Record) { c.seen[string(r.Value)]++ })
			c.mu.Unlock()
		}
	}()
	b.t.Cleanup(c.die)
	return c
}

// leave closes the client as a good one does.
func (c *consumer) leave() {
	c.cancel()
	<-c.ended
	if err := c.client.CommitUncommittedOffsets(context.Background()); err != nil {
		c.t.Errorf("commit: %v", err)
	}
	c.client.Close()
}

// die ends the client without telling the group: nothing is committed.
func (c *consumer) die() {
	c.cancel()
	<-c.ended
	c.client.CloseAllowingRebalance()
}

func (c *consumer) owns() []int32 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Sorted(maps.Keys(c.owned))
}

// eventually waits for a condition, not for a time.
func (b *testBroker) eventually(what string, ok func() bool) {
	b.t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			b.t.Fatalf("%s: not within 20 s", what)
		}
	}
}

// fill produces n records to each of the partitions of t, all different.
func (b *testBroker) fill(round, partitions, n int) {
	b.t.Helper()
	for p := range partitions {
		var vs []string
		for i := range n {
			vs = append(vs, fmt.Sprintf("%d/%d/%d", round, p, i))
		}
		b.mustProduce("t", int32(p), values(batch.None, vs...))
	}
}

// haveSeen says whether the consumers together have seen all of a round.
func haveSeen(round, partitions, n int, consumers ...*consumer) bool {
	for p := range partitions {
		for i := range n {
			times := 0
			for _, c := range consumers {
				c.mu.Lock()
				times += c.seen[fmt.Sprintf("%d/%d/%d", round, p, i)]
				c.mu.Unlock()
			}
			if times == 0 {
				return false
			}
		}
	}
	return true
}

func (b *testBroker) admin() *kadm.Client {
	b.t.Helper()
	c, err := kgo.NewClient(kgo.SeedBrokers(b.Addr("")))
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(c.Close)
	return kadm.NewClient(c)
}

func (b *testBroker) described(group string) kadm.DescribedGroup {
	b.t.Helper()
	d, err := b.admin().DescribeGroups(context.Background(), group)
	if err != nil {
		b.t.Fatal(err)
	}
	return d[group]
}

// Claim: two consumers of a group split six partitions; when one leaves, or
// dies, the other takes all over, and no record is lost; with eager and with
// cooperative rebalancing.
// Method: real clients; one closes, another has its network cut.
func TestConsumersTakeOver(t *testing.T) {
	for name, balancer := range map[string]kgo.GroupBalancer{"range": kgo.RangeBalancer(), "cooperative-sticky": kgo.CooperativeStickyBalancer()} {
		t.Run(name, func(t *testing.T) {
			b := startBroker(t, quick...)
			b.topic("t", 6)
			b.fill(0, 6, 20)
			wire1, wire2 := newCut(), newCut()
			one := b.consume(kgo.Balancers(balancer), kgo.Dialer(wire1.dial))
			two := b.consume(kgo.Balancers(balancer), kgo.Dialer(wire2.dial))
			b.eventually("they split the partitions", func() bool { return len(one.owns()) == 3 && len(two.owns()) == 3 })
			b.eventually("they see all", func() bool { return haveSeen(0, 6, 20, one, two) })

			wire2.cut() // two dies
			b.fill(1, 6, 20)
			b.eventually("one takes over", func() bool { return len(one.owns()) == 6 })
			b.eventually("one sees all", func() bool { return haveSeen(1, 6, 20, one, two) })

			three := b.consume(kgo.Balancers(balancer))
			b.eventually("a third takes its share", func() bool { return len(one.owns()) == 3 && len(three.owns()) == 3 })
			one.leave()
			b.fill(2, 6, 20)
			b.eventually("it takes over", func() bool { return len(three.owns()) == 6 })
			b.eventually("it sees all", func() bool { return haveSeen(2, 6, 20, one, three) })
		})
	}
}

// Claim: cooperative members keep what does not move: nothing is taken from a
// member that only gains.
func TestCooperativeMembersKeepTheirs(t *testing.T) {
	b := startBroker(t, quick...)
	b.topic("t", 6)
	one := b.consume(kgo.Balancers(kgo.CooperativeStickyBalancer()))
	b.eventually("one has all", func() bool { return len(one.owns()) == 6 })
	two := b.consume(kgo.Balancers(kgo.CooperativeStickyBalancer()))
	b.eventually("two has its share", func() bool { return len(two.owns()) == 3 })
	one.mu.Lock()
	lost := one.lost
	one.mu.Unlock()
	if lost != 3 {
		t.Errorf("%d partitions were taken from one, only 3 had to move", lost)
	}
	two.leave()
	b.eventually("one has all again", func() bool { return len(one.owns()) == 6 })
	one.mu.Lock()
	defer one.mu.Unlock()
	if one.lost != lost {
		t.Errorf("%d partitions were taken from one when another left", one.lost-lost)
	}
}

// F061: static members, over the wire.
// Claim: a static member that restarts within its session gets its partitions
// back, and the group's generation stays; an administrator can remove it.
func TestField_F061_StaticRestart(t *testing.T) {
	b := startBroker(t, quick...)
	b.topic("t", 6)
	static := func(id string) *consumer {
		return b.consume(kgo.InstanceID(id), kgo.SessionTimeout(30*time.Second), kgo.Balancers(kgo.RangeBalancer()))
	}
	one, two := static("one"), static("two")
	b.eventually("they split the partitions", func() bool { return len(one.owns()) == 3 && len(two.owns()) == 3 })
	before := two.owns()
	_, generation := two.client.GroupMetadata()
	two.leave() // a static member does not tell the group
	again := static("two")
	b.eventually("it is back", func() bool { return slices.Equal(again.owns(), before) })
	if _, now := again.client.GroupMetadata(); now != generation || b.described("g").State != "Stable" {
		t.Errorf("generation %d before, %d after, %s", generation, now, b.described("g").State)
	}
	again.leave()
	remove := kadm.LeaveGroup("g").InstanceIDs("two")
	if left, err := b.admin().LeaveGroup(context.Background(), remove); err != nil || left.Error() != nil {
		t.Fatalf("%v, %v", err, left.Error())
	}
	b.eventually("one has all", func() bool { return len(one.owns()) == 6 })
}

// F016: after a broker restart the group had no committed offset.
// Claim: a commit that was answered is there after a clean stop, after a kill,
// and after the power failed.
// Method: commit on a disk that forgets what was not synced; look at copies of
// the disk in each of the three conditions.
func TestField_F016_CommitsOutliveTheBroker(t *testing.T) {
	disk := faultfs.New(t)
	b := startOn(t, disk)
	b.topic("t", 1)
	b.fill(0, 1, 100)
	commit := kadm.Offsets{}
	commit.AddOffset("t", 0, 100, -1)
	if err := b.admin().CommitAllOffsets(context.Background(), "g", commit); err != nil {
		t.Fatal(err)
	}
	killed, dark := disk.Clone(), disk.Clone()
	dark.CutPower(faultfs.KeepUnsynced(0))
	b.halt()
	for name, disk := range map[string]*faultfs.Disk{"stopped": disk, "killed": killed, "power cut": dark} {
		t.Run(name, func(t *testing.T) {
			b := startOn(t, disk)
			var offsets kadm.OffsetResponses
			b.eventually("the groups are loaded", func() (ok bool) {
				var err error
				offsets, err = b.admin().FetchOffsets(context.Background(), "g")
				return err == nil
			})
			if o, ok := offsets.Lookup("t", 0); !ok || o.At != 100 {
				t.Fatalf("committed: %+v", offsets)
			}
			b.mustProduce("t", 0, values(batch.None, "next"))
			c := b.consume()
			b.eventually("the next record comes", func() bool { return haveSeenOnly(c, "next") })
		})
	}
}

func haveSeenOnly(c *consumer, value string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.seen) > 1 {
		c.t.Errorf("seen: %v", c.seen)
	}
	return c.seen[value] == 1
}

// startOn starts a broker with its data on a disk of the test's.
func startOn(t *testing.T, disk *faultfs.Disk) *testBroker {
	t.Helper()
	config, _, err := LoadConfig("", append([]string{"listeners=PLAINTEXT://127.0.0.1:0", "log.dirs=/data"}, quick...))
	if err != nil {
		t.Fatal(err)
	}
	lines := &logLines{}
	config.Logger, config.FS = slog.New(slog.NewTextHandler(lines, nil)), disk
	b, err := Start(context.Background(), config)
	if err != nil {
		t.Fatal(err)
	}
	tb := &testBroker{Broker: b, t: t, log: lines}
	t.Cleanup(tb.halt)
	return tb
}

// F053: a topic deleted and made anew had its group's old offset.
// Claim: a group that committed 10 reads all 5 records of the new topic; also
// over a restart of the broker.
// Method: the same names over and over, one restart in between.
func TestField_F053_RecreatedTopic(t *testing.T) {
	dir := t.TempDir()
	b := startBrokerIn(t, dir, quick...)
	for round := range 6 {
		b.topic("t", 1)
		b.fill(round, 1, 5)
		c := b.consume()
		b.eventually("all 5 come", func() bool { return haveSeen(round, 1, 5, c) })
		c.leave()
		if round == 3 {
			b.halt()
			b = startBrokerIn(t, dir, quick...)
		}
		var committed kadm.OffsetResponses
		b.eventually("the groups are loaded", func() (ok bool) {
			var err error
			committed, err = b.admin().FetchOffsets(context.Background(), "g")
			return err == nil
		})
		if o, ok := committed.Lookup("t", 0); !ok || o.At != 5 {
			t.Fatalf("round %d: committed %+v", round, committed)
		}
		b.delete("t")
		if o, _ := b.admin().FetchOffsets(context.Background(), "g"); len(o) != 0 {
			t.Fatalf("round %d: committed after the deletion: %+v", round, o)
		}
	}
}

// F063: a commit that names a deleted or never existing topic failed the whole
// request or was stored as a ghost.
// Claim: over the wire, each partition is answered for itself.
// Method: one OffsetCommit v8: good, beyond the topic, no such topic, metadata
// of 5,000 bytes.
func TestField_F063_CommitRules(t *testing.T) {
	b := startBroker(t, quick...)
	b.topic("good", 2)
	c := b.dial()
	b.coordinator(c, "g")
	long := strings.Repeat("m", 5000)
	req := kmsg.NewPtrOffsetCommitRequest()
	req.Group, req.Generation = "g", -1
	add := func(topic string, partition int32, metadata *string) {
		p := kmsg.NewOffsetCommitRequestTopicPartition()
		p.Partition, p.Offset, p.Metadata = partition, 7, metadata
		req.Topics = append(req.Topics, kmsg.OffsetCommitRequestTopic{Topic: topic, Partitions: []kmsg.OffsetCommitRequestTopicPartition{p}})
	}
	add("good", 0, nil)
	add("good", 999, nil)
	add("ghost", 0, nil)
	add("good", 1, &long)
	resp := c.ask(req, 8).(*kmsg.OffsetCommitResponse)
	var codes []int16
	for _, t := range resp.Topics {
		codes = append(codes, t.Partitions[0].ErrorCode)
	}
	if want := []int16{0, wire.ErrUnknownTopicOrPartition, wire.ErrUnknownTopicOrPartition, wire.ErrOffsetMetadataTooLarge}; !slices.Equal(codes, want) {
		t.Errorf("codes %v, want %v", codes, want)
	}
	offsets, err := b.admin().FetchOffsets(context.Background(), "g")
	if o, ok := offsets.Lookup("good", 0); err != nil || !ok || o.At != 7 || len(offsets) != 1 || len(offsets["good"]) != 1 {
		t.Errorf("stored: %+v, %v", offsets, err)
	}
}

// coordinator makes sure that the group's coordinator is there and loaded.
func (b *testBroker) coordinator(c *client, group string) {
	b.t.Helper()
	req := kmsg.NewPtrFindCoordinatorRequest()
	req.CoordinatorKey = group
	if r := c.ask(req, 3).(*kmsg.FindCoordinatorResponse); r.ErrorCode != 0 || r.NodeID != b.node {
		b.t.Fatalf("FindCoordinator: %+v", r)
	}
	b.eventually("the groups are loaded", func() bool {
		return c.ask(kmsg.NewPtrListGroupsRequest(), 4).(*kmsg.ListGroupsResponse).ErrorCode == 0
	})
}

// F067: one broker with the internal topics' replication factor at 3: subscribe
// hung for ever.
// Claim: a fresh node with default settings serves a group within 10 s; with
// the factor set to 3 on purpose the answer and the log say what is wrong.
func TestField_F067_FreshSingleNode(t *testing.T) {
	b := startBroker(t) // default settings
	b.topic("t", 3)
	b.fill(0, 3, 5)
	begun := time.Now()
	c := b.consume(kgo.SessionTimeout(45*time.Second), kgo.HeartbeatInterval(3*time.Second))
	b.eventually("records come", func() bool { return haveSeen(0, 3, 5, c) })
	if took := time.Since(begun); took > 10*time.Second {
		t.Errorf("the first record came after %v", took)
	}
	topic := b.coord.Image().Topic(offsetsTopic)
	if len(topic.Partitions) != 50 || !topic.Internal || topic.Config["cleanup.policy"] != "compact" || topic.Config["segment.bytes"] != "104857600" || len(topic.Partitions[0].Replicas) != 1 {
		t.Errorf("%+v", topic)
	}

	strict := startBroker(t, "offsets.topic.replication.factor=3")
	for version := range int16(7) {
		req := kmsg.NewPtrFindCoordinatorRequest()
		req.CoordinatorKey, req.CoordinatorKeys = "g", []string{"g"}
		r := strict.dial().ask(req, version).(*kmsg.FindCoordinatorResponse)
		code, message := r.ErrorCode, r.ErrorMessage
		if version >= findsMany {
			code, message = r.Coordinators[0].ErrorCode, r.Coordinators[0].ErrorMessage
		}
		if code != wire.ErrCoordinatorNotAvailable || version > 0 && (message == nil || !strings.Contains(*message, "replication factor is 3")) {
			t.Errorf("v%d: %+v", version, r)
		}
	}
	if strict.log.count("replication factor is 3") == 0 {
		t.Error("the log does not say what is wrong")
	}
}

// Claim: groups found in a data directory that another broker wrote (Kafka's
// has no file of ours) are taken over, and retention is told to leave them.
// Method: commit, stop, take our own file of topics away, start.
func TestGroupsAreAdopted(t *testing.T) {
	dir := t.TempDir()
	b := startBrokerIn(t, dir, quick...)
	b.topic("t", 1)
	commit := kadm.Offsets{}
	commit.AddOffset("t", 0, 7, -1)
	if err := b.admin().CommitAllOffsets(context.Background(), "g", commit); err != nil {
		t.Fatal(err)
	}
	b.halt()
	if err := os.RemoveAll(filepath.Join(dir, coordinationFolder)); err != nil {
		t.Fatal(err)
	}
	b = startBrokerIn(t, dir, quick...)
	if policy := b.coord.Image().Topic(offsetsTopic).Config["cleanup.policy"]; policy != "compact" {
		t.Errorf("cleanup.policy of the adopted topic: %q", policy)
	}
	var offsets kadm.OffsetResponses
	b.eventually("the groups are loaded", func() (ok bool) {
		var err error
		offsets, err = b.admin().FetchOffsets(context.Background(), "g")
		return err == nil
	})
	if o, ok := offsets.Lookup("t", 0); !ok || o.At != 7 {
		t.Errorf("committed: %+v", offsets)
	}
}

// Claim: a client that waits in JoinGroup and goes away leaves no member, and a
// stop of the broker does not wait for those who wait.
// Method: raw connections; the harness fails if the stop takes too long.
func TestWaitingMembersGo(t *testing.T) {
	b := startBroker(t, "group.initial.rebalance.delay.ms=60000", "offsets.topic.num.partitions=1")
	gone, stays := b.dial(), b.dial()
	b.coordinator(gone, "g")
	join := kmsg.NewPtrJoinGroupRequest()
	join.Group, join.SessionTimeoutMillis, join.RebalanceTimeoutMillis, join.ProtocolType = "g", 10_000, 60_000, "consumer"
	join.Protocols = []kmsg.JoinGroupRequestProtocol{{Name: "range", Metadata: []byte{0, 0, 0, 0, 0, 0}}}
	for _, c := range []*client{gone, stays} {
		c.write(c.frame(join, 3))
	}
	b.eventually("both wait", func() bool { return len(b.described("g").Members) == 2 })
	gone.nc.Close()
	b.eventually("one is forgotten", func() bool { return len(b.described("g").Members) == 1 })
	begun := time.Now()
	b.halt()
	if took := time.Since(begun); took > time.Second {
		t.Errorf("the stop took %v", took)
	}
	if r := stays.answer(join, 3).(*kmsg.JoinGroupResponse); r.ErrorCode != wire.ErrNotCoordinator {
		t.Errorf("the other is told %s", wire.ErrorName(r.ErrorCode))
	}
}
