package broker

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"millrace/wire"
)

// steady is for groups that move within a test, and whose members are not lost
// though the machine is busy.
var steady = append(slices.Clone(quick), "group.consumer.heartbeat.interval.ms=100", "group.consumer.assignment.interval.ms=50")

// consumeClassic starts a consumer with the classic protocol that rebalances
// cooperatively.
func (b *testBroker) consumeClassic() *consumer {
	b.t.Helper()
	return b.consume(kgo.Balancers(kgo.CooperativeStickyBalancer()), kgo.SessionTimeout(time.Minute), kgo.RebalanceTimeout(time.Minute))
}

// flow is a producer that writes to all partitions of t until it is stopped.
type flow struct {
	mu   sync.Mutex
	sent []string // acked
	stop context.CancelFunc
	done chan struct{}
}

func (b *testBroker) flow(partitions int) *flow {
	b.t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(b.Addr("")), kgo.DefaultProduceTopic("t"), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		b.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	f := &flow{stop: cancel, done: make(chan struct{})}
	go func() { // owner: f; ends with ctx; end waits
		defer close(f.done)
		defer client.Close()
		for i := 0; ctx.Err() == nil; i++ {
			r := &kgo.Record{Partition: int32(i % partitions), Value: fmt.Appendf(nil, "flow/%d", i)}
			if err := client.ProduceSync(ctx, r).FirstErr(); err == nil {
				f.mu.Lock()
				f.sent = append(f.sent, string(r.Value))
				f.mu.Unlock()
			}
		}
	}()
	b.t.Cleanup(f.end)
	return f
}

func (f *flow) end() {
	f.stop()
	<-f.done
}

// reach waits until the consumers have seen all that was acked until now.
func (b *testBroker) reach(f *flow, what string, consumers ...*consumer) {
	b.t.Helper()
	f.mu.Lock()
	want := slices.Clone(f.sent)
	f.mu.Unlock()
	b.eventually(what+": all that was acked is seen", func() bool {
		want = slices.DeleteFunc(want, func(v string) bool {
			return slices.ContainsFunc(consumers, func(c *consumer) bool {
				c.mu.Lock()
				defer c.mu.Unlock()
				return c.seen[v] > 0
			})
		})
		return len(want) == 0
	})
}

// taken is how often partitions were taken from a consumer.
func (c *consumer) taken() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.lost
}

// groupType is what ListGroups says of group g.
func (b *testBroker) groupType() string {
	listed, err := b.admin().ListGroups(context.Background())
	if err != nil {
		return err.Error()
	}
	return listed["g"].GroupType
}

// Claim: consumers of a group go from the classic protocol to the next
// generation one after the other, and back, while records flow: the group is
// converted under them, no record is lost, and from those that stay nothing is
// taken but what moves to another.
// Method: franz-go, cooperative-sticky against its server-side balancer; six
// partitions; each stage waits for its shares and for all records.
func TestRollToTheNextGenerationAndBack(t *testing.T) {
	b := startBroker(t, steady...)
	b.topic("t", 6)
	f := b.flow(6)
	var all []*consumer
	roll := func(stays, leaves *consumer, start func() *consumer, kind string) *consumer {
		t.Helper()
		before := stays.taken()
		leaves.leave()
		b.eventually("the one that stays has all", func() bool { return len(stays.owns()) == 6 })
		if n := stays.taken() - before; n != 0 {
			t.Errorf("%d partitions were taken from the one that stays when the other left", n)
		}
		comes := start()
		all = append(all, comes)
		b.eventually("they split the partitions", func() bool { return len(stays.owns()) == 3 && len(comes.owns()) == 3 })
		if n := stays.taken() - before; n != 3 {
			t.Errorf("%d partitions were taken from the one that stays, want the 3 that move", n)
		}
		if got := b.groupType(); got != kind {
			t.Errorf("the group is %s, want %s", got, kind)
		}
		b.reach(f, kind, all...)
		return comes
	}
	classic := func() *consumer { return b.consumeClassic() }
	next := func() *consumer { return b.consumeNext(kgo.RebalanceTimeout(time.Minute)) }

	one, two := classic(), classic()
	all = append(all, one, two)
	b.eventually("two classic ones split the partitions", func() bool { return len(one.owns()) == 3 && len(two.owns()) == 3 })
	three := roll(two, one, next, "consumer") // two is classic in a next-generation group
	if d := b.describedNext("g"); len(d.Members) != 2 || d.Members[0].MemberType+d.Members[1].MemberType != 1 {
		t.Errorf("described: %+v", d)
	}
	four := roll(three, two, next, "consumer")
	five := roll(four, three, classic, "consumer")
	six := roll(five, four, classic, "classic") // four was the last of the next generation
	f.end()
	b.reach(f, "in the end", all...)
	five.leave()
	six.leave()
}

// Claim: the policy is a setting of the broker's that it acts on; a heartbeat
// that may not convert a group is refused with Kafka's code and the setting's
// name.
// Method: each word, in any case; a word that is none.
func TestMigrationPolicyIsActedOn(t *testing.T) {
	if _, _, err := LoadConfig("", []string{"group.consumer.migration.policy=sideways"}); err == nil {
		t.Error("a policy that is none is taken")
	}
	for policy, want := range map[string]int16{"Disabled": wire.ErrGroupIDNotFound, "downgrade": wire.ErrGroupIDNotFound, "UPGRADE": 0, "bidirectional": 0} {
		b := startBroker(t, append(slices.Clone(steady), "group.consumer.migration.policy="+policy)...)
		b.topic("t", 2)
		one := b.consumeClassic()
		b.eventually("the classic one has all", func() bool { return len(one.owns()) == 2 })
		beat := kmsg.NewPtrConsumerGroupHeartbeatRequest()
		beat.Group, beat.MemberID, beat.RebalanceTimeoutMillis, beat.SubscribedTopicNames, beat.Topics = "g", "m", 1000, []string{"t"}, []kmsg.ConsumerGroupHeartbeatRequestTopic{}
		r := b.dial().ask(beat, 1).(*kmsg.ConsumerGroupHeartbeatResponse)
		if r.ErrorCode != want || (want != 0) != (r.ErrorMessage != nil) {
			t.Errorf("%s: %+v", policy, r)
		}
	}
}

// Claim: a mixed group is there after a restart: who its members are, of which
// protocol, and what they have; each goes on in its own protocol.
// Method: raw requests of both protocols, a stop and a start between them.
func TestMixedGroupsSurviveARestart(t *testing.T) {
	dir := t.TempDir()
	b := startBrokerIn(t, dir, steady...)
	b.topic("t", 2)
	c := b.dial()
	b.coordinator(c, "g")
	join := kmsg.NewPtrJoinGroupRequest()
	join.Group, join.ProtocolType, join.SessionTimeoutMillis, join.RebalanceTimeoutMillis = "g", "consumer", 60_000, 60_000
	told := kmsg.ConsumerMemberMetadata{Topics: []string{"t"}}
	join.Protocols = []kmsg.JoinGroupRequestProtocol{{Name: "range", Metadata: told.AppendTo(nil)}}
	joined := c.ask(join, 3).(*kmsg.JoinGroupResponse)
	join.MemberID = joined.MemberID
	share := kmsg.ConsumerMemberAssignment{Topics: []kmsg.ConsumerMemberAssignmentTopic{{Topic: "t", Partitions: []int32{0, 1}}}}
	sync := kmsg.NewPtrSyncGroupRequest()
	sync.Group, sync.MemberID, sync.Generation = "g", joined.MemberID, joined.Generation
	sync.GroupAssignment = []kmsg.SyncGroupRequestGroupAssignment{{MemberID: joined.MemberID, MemberAssignment: share.AppendTo(nil)}}
	if r := c.ask(sync, 3).(*kmsg.SyncGroupResponse); joined.ErrorCode != 0 || r.ErrorCode != 0 {
		t.Fatalf("no classic group: %+v, %+v", joined, r)
	}
	beat := kmsg.NewPtrConsumerGroupHeartbeatRequest()
	beat.Group, beat.MemberID, beat.RebalanceTimeoutMillis, beat.SubscribedTopicNames, beat.Topics = "g", "m", 60_000, []string{"t"}, []kmsg.ConsumerGroupHeartbeatRequestTopic{}
	if r := c.ask(beat, 1).(*kmsg.ConsumerGroupHeartbeatResponse); r.ErrorCode != 0 || r.MemberEpoch != joined.Generation+1 || len(r.Assignment.Topics) != 0 {
		t.Fatalf("%+v", r)
	}
	before := b.describedNext("g")
	b.halt()

	b = startBrokerIn(t, dir, steady...)
	c = b.dial()
	alive := kmsg.NewPtrHeartbeatRequest()
	alive.Group, alive.MemberID, alive.Generation = "g", joined.MemberID, joined.Generation
	b.eventually("it is loaded, and the classic member is told to join", func() bool {
		return c.ask(alive, 3).(*kmsg.HeartbeatResponse).ErrorCode == wire.ErrRebalanceInProgress
	})
	after := b.describedNext("g")
	if len(after.Members) != 2 || !slices.EqualFunc(before.Members, after.Members, func(x, y kmsg.ConsumerGroupDescribeResponseGroupMember) bool {
		return x.MemberID == y.MemberID && x.MemberType == y.MemberType && x.MemberEpoch == y.MemberEpoch && len(x.Assignment.TopicPartitions) == len(y.Assignment.TopicPartitions)
	}) {
		t.Errorf("described: %+v, was %+v", after, before)
	}
	joined = c.ask(join, 3).(*kmsg.JoinGroupResponse) // of an eager member: it has given up all
	sync.Generation, sync.GroupAssignment = joined.Generation, nil
	r := c.ask(sync, 3).(*kmsg.SyncGroupResponse)
	var got kmsg.ConsumerMemberAssignment
	if err := got.ReadFrom(r.MemberAssignment); err != nil || r.ErrorCode != 0 || joined.Generation != before.Epoch || len(got.Topics) != 1 || len(got.Topics[0].Partitions) != 1 {
		t.Errorf("joined %+v, synced %+v: %+v, %v", joined, r, got, err)
	}
}
