package broker

import (
	"context"
	"slices"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"millrace/wire"
)

// brisk is for groups of the next-generation protocol that move within a test.
var brisk = []string{"offsets.topic.num.partitions=4", "group.consumer.heartbeat.interval.ms=100", "group.consumer.session.timeout.ms=2000", "group.consumer.assignment.interval.ms=50"}

// consumeNext starts a consumer with the next-generation protocol.
func (b *testBroker) consumeNext(opts ...kgo.Opt) *consumer {
	b.t.Helper()
	return b.consume(append([]kgo.Opt{kgo.ServerSideBalancer(), kgo.Balancers(kgo.StickyBalancer())}, opts...)...)
}

func (b *testBroker) describedNext(group string) kmsg.ConsumerGroupDescribeResponseGroup {
	b.t.Helper()
	req := kmsg.NewPtrConsumerGroupDescribeRequest()
	req.Groups = []string{group}
	return b.dial().ask(req, 1).(*kmsg.ConsumerGroupDescribeResponse).Groups[0]
}

// Claim: with the next-generation protocol two consumers split six partitions;
// the first keeps the three that do not move; when one dies or leaves, the
// other takes over and no record is lost.
// Method: franz-go with its server-side balancer; a network cut, a leave.
func TestNextGenerationConsumers(t *testing.T) {
	b := startBroker(t, brisk...)
	b.topic("t", 6)
	b.fill(0, 6, 20)
	wire2 := newCut()
	one := b.consumeNext()
	b.eventually("one has all", func() bool { return len(one.owns()) == 6 })
	two := b.consumeNext(kgo.Dialer(wire2.dial))
	b.eventually("they split the partitions", func() bool { return len(one.owns()) == 3 && len(two.owns()) == 3 })
	b.eventually("they see all", func() bool { return haveSeen(0, 6, 20, one, two) })
	one.mu.Lock()
	if one.lost != 3 {
		t.Errorf("one has lost %d partitions, want 3: only what moves", one.lost)
	}
	one.mu.Unlock()
	b.eventually("the group is Stable", func() bool {
		d := b.describedNext("g")
		return d.State == "Stable" && len(d.Members) == 2 && d.AssignorName == "uniform" && d.Members[0].Assignment.TopicPartitions[0].Topic == "t"
	})

	wire2.cut() // two dies
	b.fill(1, 6, 20)
	b.eventually("one takes over", func() bool { return len(one.owns()) == 6 })
	b.eventually("one sees all", func() bool { return haveSeen(1, 6, 20, one, two) })

	three := b.consumeNext()
	b.eventually("a third takes its share", func() bool { return len(one.owns()) == 3 && len(three.owns()) == 3 })
	one.leave()
	b.fill(2, 6, 20)
	b.eventually("it takes over", func() bool { return len(three.owns()) == 6 })
	b.eventually("it sees all", func() bool { return haveSeen(2, 6, 20, one, three) })
	listed, err := b.admin().ListGroupsByType(context.Background(), []string{"consumer"})
	if err != nil || len(listed) != 1 || listed["g"].State != "Stable" {
		t.Errorf("listed: %+v, %v", listed, err)
	}
	three.leave()
	b.eventually("the group is Empty", func() bool { return b.describedNext("g").State == "Empty" })
}

// Claim: a pattern of topics is resolved by the broker and follows new topics.
// Method: franz-go with a pattern; a topic is made while it consumes.
func TestNextGenerationPatterns(t *testing.T) {
	b := startBroker(t, brisk...)
	b.topic("t", 2)
	c := b.consumeNext(kgo.ConsumeTopics("^t.*"), kgo.ConsumeRegex())
	b.eventually("it has t", func() bool { return len(c.owns()) == 2 })
	b.topic("t2", 1)
	b.eventually("it has t2", func() bool {
		d := b.describedNext("g")
		return len(d.Members) == 1 && len(d.Members[0].Assignment.TopicPartitions) == 2
	})
}

// Claim: the protocol can be switched off: nothing of it is served then, with
// Kafka's code; franz-go's clients are told so.
// Method: raw requests to a broker that speaks classic alone.
func TestNextGenerationSwitchedOff(t *testing.T) {
	b := startBroker(t, append(slices.Clone(brisk), "group.coordinator.rebalance.protocols=classic")...)
	c := b.dial()
	b.coordinator(c, "g")
	beat := kmsg.NewPtrConsumerGroupHeartbeatRequest()
	beat.Group, beat.MemberID = "g", "m"
	for version := range int16(2) {
		if r := c.ask(beat, version).(*kmsg.ConsumerGroupHeartbeatResponse); r.ErrorCode != wire.ErrUnsupportedVersion || r.ErrorMessage == nil {
			t.Errorf("version %d: %+v", version, r)
		}
	}
	if d := b.describedNext("g"); d.ErrorCode != wire.ErrUnsupportedVersion {
		t.Errorf("%+v", d)
	}
}

// Claim: a group of the next-generation protocol is there after a restart, with
// its members, epochs and offsets; both versions of the API serve it.
// Method: raw requests, a stop and a start between them.
func TestNextGenerationGroupsSurviveARestart(t *testing.T) {
	dir := t.TempDir()
	b := startBrokerIn(t, dir, brisk...)
	b.topic("t", 2)
	c := b.dial()
	b.coordinator(c, "g")
	beat := kmsg.NewPtrConsumerGroupHeartbeatRequest()
	beat.Group, beat.RebalanceTimeoutMillis, beat.SubscribedTopicNames, beat.Topics = "g", 1000, []string{"t"}, []kmsg.ConsumerGroupHeartbeatRequestTopic{}
	r := c.ask(beat, 0).(*kmsg.ConsumerGroupHeartbeatResponse)
	if r.ErrorCode != 0 || r.MemberID == nil || *r.MemberID == "" || r.MemberEpoch != 1 || r.Assignment == nil || len(r.Assignment.Topics) != 1 {
		t.Fatalf("%+v", r)
	}
	b.halt()
	b = startBrokerIn(t, dir, brisk...)
	c = b.dial()
	again := kmsg.NewPtrConsumerGroupHeartbeatRequest()
	again.Group, again.MemberID, again.MemberEpoch = "g", *r.MemberID, 1
	b.eventually("it is loaded", func() bool {
		r = c.ask(again, 1).(*kmsg.ConsumerGroupHeartbeatResponse)
		return r.ErrorCode != wire.ErrCoordinatorLoadInProgress
	})
	if r.ErrorCode != 0 || r.MemberEpoch != 1 || r.Assignment != nil {
		t.Errorf("%+v", r)
	}
	if d := b.describedNext("g"); len(d.Members) != 1 || len(d.Members[0].Assignment.TopicPartitions[0].Partitions) != 2 {
		t.Errorf("%+v", d)
	}
}
