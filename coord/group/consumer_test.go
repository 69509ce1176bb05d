package group

import (
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"millrace/wire"
)

// is fails the test if a member was answered, or told, something else.
func is(t *testing.T, what string, c *modernClient, code, want int16, has string) {
	t.Helper()
	if code != want || c.has() != has {
		t.Fatalf("%s: %s %q, has %q at epoch %d; want %s, %q", what, wire.ErrorName(code), c.why, c.has(), c.epoch, wire.ErrorName(want), has)
	}
}

// Claim: a new member takes only what must move: the old one keeps using the
// rest, gives up the moving part, and only then the new one gets it; a restart
// in between changes nothing of that.
// Method: two members, step by step, with a crash after each.
func TestOnlyWhatMovesIsPaused(t *testing.T) {
	s := newStory(t)
	a, b := s.modern("a"), s.modern("b")
	is(t, "a joins", a, a.join(), 0, "1:0,1,2,3,4,5")
	a.obey()
	s.restart()
	is(t, "b joins", b, b.join(), 0, "")
	if b.epoch != 2 || a.epoch != 1 {
		t.Fatalf("epochs %d and %d", a.epoch, b.epoch)
	}
	s.restart()
	is(t, "b waits", b, b.beat(), 0, "")
	is(t, "a is told", a, a.beat(), 0, "1:0,1,2")
	is(t, "a still uses all", a, a.beat(), 0, "1:0,1,2")
	is(t, "b waits on", b, b.beat(), 0, "")
	s.restart()
	a.obey()
	is(t, "a has given up", a, a.beat(), 0, "1:0,1,2")
	s.restart()
	is(t, "b gets it", b, b.beat(), 0, "1:3,4,5")
	if a.epoch != 2 || b.epoch != 2 {
		t.Fatalf("epochs %d and %d", a.epoch, b.epoch)
	}
	b.obey()
	if got := s.g.DescribeConsumer("g", s.known).State; got != "Stable" {
		t.Errorf("the group is %s", got)
	}
	if b.leave() != 0 || a.beat() != 0 || a.has() != "1:0,1,2,3,4,5" {
		t.Errorf("a has %s after b left", a.has())
	}
}

// Claim: a member that does not give up in time, or falls silent, is removed,
// and what it had goes to the others; it then finds itself fenced.
// Method: both time-outs, on a fake clock.
func TestSlowAndSilentMembersLoseTheirPlace(t *testing.T) {
	for _, slow := range []bool{true, false} {
		s := newStory(t)
		a, b := s.modern("a"), s.modern("b")
		a.join()
		a.obey()
		b.join()
		for range 9 {
			s.pass(5 * time.Second)
			if slow && a.epoch == 1 { // alive, but keeps all
				a.beat()
				a.epoch = 1
			}
			b.beat()
		}
		is(t, "b", b, b.beat(), 0, "1:0,1,2,3,4,5")
		if code := a.beat(); code != wire.ErrUnknownMemberID {
			t.Errorf("a: %s", wire.ErrorName(code))
		}
	}
}

// Claim: epochs fence. A member that has missed an answer may name the epoch
// before, as long as it claims nothing that is not its own.
// Method: wrong epochs, one by one.
func TestMemberEpochsFence(t *testing.T) {
	s := newStory(t)
	a, b := s.modern("a"), s.modern("b")
	a.join()
	a.obey()
	all := a.owns
	b.join()
	a.beat()
	a.obey()
	a.beat()
	if a.epoch != 2 {
		t.Fatalf("a is at %d", a.epoch)
	}
	a.epoch = 1
	is(t, "the epoch before, with no more than its own", a, a.beat(), 0, "1:0,1,2")
	a.epoch, a.owns = 1, all
	if code := a.beat(); code != wire.ErrFencedMemberEpoch {
		t.Errorf("the epoch before, with another's: %s", wire.ErrorName(code))
	}
	is(t, "a joins again", a, a.join(), 0, "1:0,1,2")
	a.epoch = 9
	if code := a.beat(); code != wire.ErrFencedMemberEpoch {
		t.Errorf("an epoch to come: %s", wire.ErrorName(code))
	}
	b.group = "nothing"
	if code := b.beat(); code != wire.ErrGroupIDNotFound {
		t.Errorf("no group: %s", wire.ErrorName(code))
	}
}

// Claim: a static member that says it will be back keeps its partitions for its
// session, and its next self takes them over without a rebalance; while it is
// there, nobody takes its place, and its old self is fenced.
// Method: leave with -2, join under another id; twins.
func TestStaticConsumers(t *testing.T) {
	s := newStory(t)
	a, b := s.modern("a").twin("x"), s.modern("b")
	a.join()
	a.obey()
	b.join()
	a.beat()
	a.obey()
	a.beat()
	b.beat()
	twin := s.modern("a2").twin("x")
	if code := twin.join(); code != wire.ErrUnreleasedInstanceID {
		t.Fatalf("a twin: %s", wire.ErrorName(code))
	}
	a.epoch = epochAway
	if code := a.beat(); code != 0 {
		t.Fatalf("away: %s", wire.ErrorName(code))
	}
	s.pass(10 * time.Second)
	is(t, "b keeps its share", b, b.beat(), 0, "1:3,4,5")
	s.restart()
	epoch := s.g.groups["g"].modern.epoch
	is(t, "back", twin, twin.join(), 0, "1:0,1,2")
	if now := s.g.groups["g"].modern.epoch; now != epoch {
		t.Errorf("the group went from epoch %d to %d", epoch, now)
	}
	a.epoch = 2
	if code := a.beat(); code != wire.ErrFencedInstanceID {
		t.Errorf("the old self: %s", wire.ErrorName(code))
	}
	twin.epoch = epochAway
	twin.beat()
	for range 10 {
		s.pass(5 * time.Second)
		b.beat()
	}
	is(t, "b gets all when the session is over", b, b.beat(), 0, "1:0,1,2,3,4,5")
}

// Claim: what is wrong with a request is said with Kafka's code and in words.
// Method: one mistake after the other.
func TestMalformedConsumerHeartbeats(t *testing.T) {
	s := newStory(t, func(st *Settings) { st.Consumer.MaxSize = 1 })
	s.modern("a").join()
	for what, c := range map[string]struct {
		change func(r *kmsg.ConsumerGroupHeartbeatRequest)
		code   int16
	}{
		"no group":    {func(r *kmsg.ConsumerGroupHeartbeatRequest) { r.Group = "" }, wire.ErrInvalidRequest},
		"no member":   {func(r *kmsg.ConsumerGroupHeartbeatRequest) { r.MemberID = "" }, wire.ErrInvalidRequest},
		"no instance": {func(r *kmsg.ConsumerGroupHeartbeatRequest) { r.InstanceID = new(string) }, wire.ErrInvalidRequest},
		"no rack":     {func(r *kmsg.ConsumerGroupHeartbeatRequest) { r.RackID = new(string) }, wire.ErrInvalidRequest},
		"no time-out": {func(r *kmsg.ConsumerGroupHeartbeatRequest) { r.RebalanceTimeoutMillis = -1 }, wire.ErrInvalidRequest},
		"no topics":   {func(r *kmsg.ConsumerGroupHeartbeatRequest) { r.SubscribedTopicNames = nil }, wire.ErrInvalidRequest},
		"owns":        {func(r *kmsg.ConsumerGroupHeartbeatRequest) { r.Topics = nil }, wire.ErrInvalidRequest},
		"epoch":       {func(r *kmsg.ConsumerGroupHeartbeatRequest) { r.MemberEpoch = -3 }, wire.ErrInvalidRequest},
		"away":        {func(r *kmsg.ConsumerGroupHeartbeatRequest) { r.MemberEpoch = -2 }, wire.ErrInvalidRequest},
		"assignor":    {func(r *kmsg.ConsumerGroupHeartbeatRequest) { x := "sticky"; r.ServerAssignor = &x }, wire.ErrUnsupportedAssignor},
		"pattern":     {func(r *kmsg.ConsumerGroupHeartbeatRequest) { x := "a)(b"; r.SubscribedTopicRegex = &x }, wire.ErrInvalidRegularExpression},
		"full":        {func(*kmsg.ConsumerGroupHeartbeatRequest) {}, wire.ErrGroupMaxSizeReached},
	} {
		b := s.modern("b")
		r := b.request(true)
		c.change(r)
		if code := b.took(b.send(r)); code != c.code || b.why == "" {
			t.Errorf("%s: %s %q, want %s", what, wire.ErrorName(code), b.why, wire.ErrorName(c.code))
		}
	}
}

// Claim: a pattern follows the topics that there are, also over a restart; a
// topic that grows or goes is noticed at the next heartbeat.
// Method: topics come, grow and go under one member.
func TestPatternsFollowTopics(t *testing.T) {
	s := newStory(t)
	a := s.modern("a")
	p := "ord.*|more"
	a.topics, a.pattern = nil, &p
	is(t, "joins", a, a.join(), 0, "1:0,1,2,3,4,5")
	s.known["order"] = Topic{Name: "order", ID: [16]byte{2}, Partitions: 1}
	s.known["disorder"] = Topic{Name: "disorder", ID: [16]byte{3}, Partitions: 1}
	s.g.TopicsChanged()
	is(t, "another", a, a.beat(), 0, "1:0,1,2,3,4,5 2:0")
	s.restart()
	s.known["order"] = Topic{Name: "order", ID: [16]byte{2}, Partitions: 2}
	s.g.TopicsChanged()
	is(t, "it grows", a, a.beat(), 0, "1:0,1,2,3,4,5 2:0,1")
	delete(s.known, "orders")
	s.g.TopicsChanged()
	a.obey()
	is(t, "one goes", a, a.beat(), 0, "2:0,1")
	a.obey()
	a.beat()
	if a.leave(); len(s.g.groups["g"].modern.patterns) != 0 {
		t.Error("the pattern stays")
	}
}

// Claim: an assignor runs at most once in group.consumer.assignment.interval.ms,
// and then without being asked.
// Method: three members at once, a slow interval.
func TestAssignorsRunNowAndThen(t *testing.T) {
	s := newStory(t, func(st *Settings) { st.Consumer.Interval = func() time.Duration { return time.Second } })
	a, b, c := s.modern("a"), s.modern("b"), s.modern("c")
	a.join()
	a.obey()
	b.join()
	c.join()
	is(t, "a has all", a, a.beat(), 0, "1:0,1,2,3,4,5")
	if g := s.g.groups["g"].modern; g.targetEpoch != 1 || g.epoch != 3 || g.stateName() != "Assigning" {
		t.Errorf("epochs %d, %d: %s", g.epoch, g.targetEpoch, g.stateName())
	}
	s.pass(time.Second)
	is(t, "a is told", a, a.beat(), 0, "1:0,1")
	a.obey()
	a.beat()
	is(t, "b", b, b.beat(), 0, "1:2,3")
	is(t, "c", c, c.beat(), 0, "1:4,5")
}

// Claim: a member commits at its epoch, or at an older one since which it has
// had the partition; nobody else does; who asks for commits as a member is
// checked too.
// Method: commits and fetches with right and wrong epochs.
func TestCommitsAreBoundToTheEpoch(t *testing.T) {
	s := newStory(t)
	a, b := s.modern("a"), s.modern("b")
	a.join()
	a.obey()
	b.join()
	a.beat()
	a.obey()
	a.beat()
	b.beat()
	for _, c := range []struct {
		what             string
		member           *modernClient
		version          int16
		epoch, partition int32
		want             int16
	}{
		{"its epoch", a, 9, 2, 0, 0},
		{"an older one, partition kept", a, 9, 1, 0, 0},
		{"an older one, partition gone", a, 9, 1, 3, wire.ErrStaleMemberEpoch},
		{"older than the assignment", b, 9, 1, 3, wire.ErrStaleMemberEpoch},
		{"one to come", a, 9, 3, 0, wire.ErrStaleMemberEpoch},
		{"too old a version", a, 8, 2, 0, wire.ErrUnsupportedVersion},
		{"by id", b, 10, 2, 3, 0},
		{"nobody", s.modern("z"), 9, -1, 0, wire.ErrUnknownMemberID},
	} {
		if code := c.member.commit(c.version, c.epoch, c.partition); code != c.want {
			t.Errorf("%s: %s, want %s", c.what, wire.ErrorName(code), wire.ErrorName(c.want))
		}
	}
	fetch := func(member *string, epoch int32) int16 {
		asked := kmsg.NewOffsetFetchRequestGroup()
		asked.Group, asked.MemberID, asked.MemberEpoch = "g", member, epoch
		return s.g.Fetch(9, &asked, s.known).ErrorCode
	}
	z := "z"
	if got := []int16{fetch(nil, -1), fetch(&a.id, 2), fetch(&a.id, 1), fetch(&z, 2)}; !slices.Equal(got, []int16{0, 0, wire.ErrStaleMemberEpoch, wire.ErrUnknownMemberID}) {
		t.Errorf("OffsetFetch: %v", got)
	}
}

// Claim: a group goes from one protocol to the other when it is empty, with its
// commits, and is refused while it is not; each kind is shown as what it is, and
// deleted wholly. A restart after each step finds the same.
// Method: classic, next-generation, classic, deleted.
func TestEmptyGroupsChangeTheirProtocol(t *testing.T) {
	s := newStory(t)
	old := s.client("g")
	call := old.join()
	s.pass(3 * time.Second)
	if old.joined(call) != 0 || old.synced(old.sync()) != 0 {
		t.Fatal("no classic group")
	}
	old.commit(7, 5)
	a := s.modern("a")
	if code := a.join(); code != wire.ErrGroupIDNotFound {
		t.Fatalf("a joins a classic group: %s", wire.ErrorName(code))
	}
	old.leave()
	s.restart()
	is(t, "a joins", a, a.join(), 0, "1:0,1,2,3,4,5")
	s.restart()
	old.id = ""
	if code := old.joined(old.join()); code != wire.ErrInconsistentGroupProtocol {
		t.Fatalf("a classic member joins: %s", wire.ErrorName(code))
	}
	if l := s.g.List(nil, []string{"Consumer"}); len(l) != 1 || l[0].GroupState != "Stable" || l[0].GroupType != "consumer" || len(s.g.List(nil, []string{"classic"})) != 0 {
		t.Errorf("listed: %+v", l)
	}
	if d := s.g.Describe(6, "g"); d.ErrorCode != wire.ErrGroupIDNotFound || d.State != dead {
		t.Errorf("DescribeGroups: %+v", d)
	}
	call = s.call()
	s.g.DeleteGroup(call, "g")
	s.settle()
	if r := s.done[call].(*kmsg.DeleteGroupsResponse); r.Groups[0].ErrorCode != wire.ErrNonEmptyGroup {
		t.Errorf("deleted with a member: %+v", r)
	}
	a.leave()
	s.restart()
	if c := s.g.groups["g"].commits["orders"][0]; c == nil || c.Offset != 5 {
		t.Errorf("the commit is %+v", c)
	}
	call = old.join()
	s.pass(3 * time.Second)
	if code := old.joined(call); code != 0 || old.synced(old.sync()) != 0 {
		t.Fatalf("classic again: %s", wire.ErrorName(code))
	}
	s.restart()
	if g := s.g.groups["g"]; g.modern != nil || g.state != Stable {
		t.Error("it is not classic after a restart")
	}
	old.leave()
	a.join()
	a.leave()
	call = s.call()
	s.g.DeleteGroup(call, "g")
	a.join() // while that is on its way or after
	s.settle()
	s.restart()
	a.leave()
	a.join()
	a.leave()
	s.g.DeleteGroup(s.call(), "g")
	s.settle()
	s.restart()
	if len(s.g.groups) != 0 {
		t.Error("the group is back")
	}
}

// Claim: all that is described is what was said and is so.
// Method: one group with all a member can say.
func TestConsumersAreDescribed(t *testing.T) {
	s := newStory(t)
	a := s.modern("a").twin("x")
	assignor := "range"
	a.assignor = &assignor
	a.join()
	want := kmsg.NewConsumerGroupDescribeResponseGroup()
	want.Group, want.State, want.Epoch, want.AssignmentEpoch, want.AssignorName = "g", "Stable", 1, 1, "range"
	share := kmsg.Assignment{TopicPartitions: []kmsg.AssignmentTopicPartition{{TopicID: [16]byte{1}, Topic: "orders", Partitions: []int32{0, 1, 2, 3, 4, 5}}}}
	instance := "x"
	want.Members = []kmsg.ConsumerGroupDescribeResponseGroupMember{{
		MemberID: "a", InstanceID: &instance, MemberEpoch: 1, ClientID: "app", ClientHost: "/10.0.0.1", SubscribedTopics: []string{"orders"},
		Assignment: share, TargetAssignment: share, MemberType: 1,
	}}
	if got := s.g.DescribeConsumer("g", s.known); !reflect.DeepEqual(got, want) {
		t.Errorf("got\n%+v, want\n%+v", got, want)
	}
	if d := s.g.DescribeConsumer("h", s.known); d.ErrorCode != wire.ErrGroupIDNotFound {
		t.Errorf("%+v", d)
	}
}
