package group

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"millrace/coord/group/record"
	"millrace/wire"
)

// F016: after a broker restart the group had no committed offset.
// Claim: what was answered is there after a crash; what was not durable is
// neither answered nor read before, and not there after.
// Method: hold the writes of two commits, end one, crash.
func TestField_F016_CommitsSurvive(t *testing.T) {
	s := newStory(t)
	a := s.client("g")
	s.gather(a)
	s.want("commit", s.commitCode(a.commit(8, 100)), 0)
	s.restart()
	if got := s.committed("g", 0); got != 100 {
		t.Fatalf("after a crash: %d", got)
	}
	s.want("heartbeat after a crash", a.heartbeat(), 0)

	s.hold = true
	first, second := a.commit(8, 200), a.commit(8, 300)
	if got := s.committed("g", 0); got != 100 || s.commitCode(first) != -100 {
		t.Fatalf("before it is durable: %d, answer %d", got, s.commitCode(first))
	}
	s.release()
	s.settle()
	s.want("first", s.commitCode(first), 0)
	s.want("second", s.commitCode(second), -100)
	if got := s.committed("g", 0); got != 200 {
		t.Fatalf("after the first: %d", got)
	}
	s.hold = false
	s.restart()
	if got := s.committed("g", 0); got != 200 {
		t.Errorf("after a crash: %d", got)
	}
	s.fail = wire.ErrKafkaStorageError
	s.want("a commit that fails", s.commitCode(a.commit(8, 400)), wire.ErrNotCoordinator)
	if got := s.committed("g", 0); got != 200 {
		t.Errorf("after a failed commit: %d", got)
	}
}

// F063: a commit that names a deleted or never existing topic failed the whole
// request or was stored as a ghost.
// Claim: each partition is answered for itself, and only the good are stored.
// Method: one OffsetCommit v8 with a good partition, one beyond the topic's, a
// topic that is not there, and metadata of 5,000 bytes.
func TestField_F063_CommitRules(t *testing.T) {
	s := newStory(t)
	long := strings.Repeat("m", 5000)
	req := kmsg.NewPtrOffsetCommitRequest()
	req.Group, req.Generation = "g", -1
	for _, p := range []struct {
		topic     string
		partition int32
		metadata  *string
	}{{"orders", 0, nil}, {"orders", 999, nil}, {"ghost", 0, nil}, {"orders", 1, &long}} {
		topic := kmsg.NewOffsetCommitRequestTopic()
		topic.Topic = p.topic
		part := kmsg.NewOffsetCommitRequestTopicPartition()
		part.Partition, part.Offset, part.Metadata = p.partition, 7, p.metadata
		topic.Partitions = append(topic.Partitions, part)
		req.Topics = append(req.Topics, topic)
	}
	r := s.done[s.commit(8, req)].(*kmsg.OffsetCommitResponse)
	for i, want := range []int16{0, wire.ErrUnknownTopicOrPartition, wire.ErrUnknownTopicOrPartition, wire.ErrOffsetMetadataTooLarge} {
		s.want(fmt.Sprint("partition ", i), r.Topics[i].Partitions[0].ErrorCode, want)
	}
	all := kmsg.NewOffsetFetchRequestGroup()
	all.Group = "g"
	got := s.g.Fetch(8, &all, s.known)
	if len(got.Topics) != 1 || len(got.Topics[0].Partitions) != 1 || got.Topics[0].Partitions[0].Offset != 7 {
		t.Errorf("stored: %+v", got)
	}
}

// Claim: who may commit follows the protocol's table (error-codes §5).
func TestWhoMayCommit(t *testing.T) {
	s := newStory(t)
	stranger := s.client("none")
	stranger.generation = 3
	s.want("unknown group, v8", s.commitCode(stranger.commit(8, 1)), wire.ErrIllegalGeneration)
	s.want("unknown group, v9", s.commitCode(stranger.commit(9, 1)), wire.ErrGroupIDNotFound)
	s.want("simple consumer", s.commitCode(s.simple("simple").commit(8, 1)), 0)

	a, b := s.client("g"), s.client("g")
	ja, jb := a.join(), b.join()
	s.pass(7 * time.Second)
	a.joined(ja)
	b.joined(jb)
	s.want("before the assignment", s.commitCode(a.commit(8, 1)), wire.ErrRebalanceInProgress)
	sa, sb := a.sync(), b.sync()
	s.want("sync", a.synced(sa)+b.synced(sb), 0)
	s.want("member", s.commitCode(a.commit(8, 1)), 0)
	s.want("simple consumer in a live group", s.commitCode(s.simple("g").commit(8, 1)), wire.ErrUnknownMemberID)
	a.join()
	s.want("during a rebalance", s.commitCode(b.commit(8, 2)), 0)
	noName := s.simple("")
	s.want("no group", s.commitCode(noName.commit(8, 2)), wire.ErrInvalidGroupID)

	byID := kmsg.NewPtrOffsetCommitRequest()
	byID.Group, byID.Generation = "simple", -1
	part := kmsg.NewOffsetCommitRequestTopicPartition()
	part.Partition, part.Offset = 2, 9
	byID.Topics = []kmsg.OffsetCommitRequestTopic{{TopicID: [16]byte{9}, Partitions: []kmsg.OffsetCommitRequestTopicPartition{part}}}
	s.want("unknown id", s.commitCode(s.commit(10, byID)), wire.ErrUnknownTopicID)
	byID.Topics[0].TopicID = [16]byte{1}
	s.want("known id", s.commitCode(s.commit(10, byID)), 0)
	if got := s.committed("simple", 2); got != 9 {
		t.Errorf("committed by id: %d", got)
	}
}

// F065: offsets vanished after a weekend, or never.
// Claim: a live group loses nothing however old its commits; the clock starts
// when a group becomes Empty, or at the commit for manual assignment; then
// offsets and group are gone.
// Method: a retention of one minute; a live group, a stopped one, a simple one
// and one that subscribes to other topics than it committed.
func TestField_F065_OffsetExpiry(t *testing.T) {
	s := newStory(t, func(c *Settings) { c.Retention = time.Minute })
	live, stopped, simple, moved := s.client("live"), s.client("stopped"), s.simple("simple"), s.client("moved")
	s.gather(live, moved)
	s.gather(stopped)
	for _, c := range []*client{live, stopped, simple, moved} {
		s.want("commit", s.commitCode(c.commit(8, 5)), 0)
	}
	moved.topics = []string{"elsewhere"}
	s.assign(map[*client]Call{moved: moved.join()})
	beat := func(d time.Duration) {
		for ; d > 0; d -= 5 * time.Second {
			s.pass(5 * time.Second)
			live.heartbeat()
			moved.heartbeat()
			if stopped.id != "" {
				stopped.heartbeat()
			}
			s.g.Expire(s.now)
			s.settle()
		}
	}
	has := func(group string) bool { return s.committed(group, 0) == 5 }
	beat(55 * time.Second)
	if !has("live") || !has("stopped") || !has("simple") || !has("moved") {
		t.Fatal("something expired too early")
	}
	beat(10 * time.Second)
	if !has("live") || !has("stopped") || has("simple") || has("moved") {
		t.Fatalf("live %v, stopped %v, simple %v, moved %v", has("live"), has("stopped"), has("simple"), has("moved"))
	}
	stopped.leave()
	stopped.id = ""
	beat(55 * time.Second)
	if !has("stopped") {
		t.Fatal("expired by its commit, not by when it became Empty")
	}
	beat(10 * time.Second)
	if has("stopped") || s.g.groups["stopped"] != nil || s.g.groups["simple"] != nil || !has("live") || s.g.groups["moved"] == nil {
		t.Fatalf("%v", s.states())
	}
	for i := range 20_000 {
		s.simple(fmt.Sprint("throw-away-", i)).commit(8, 1)
	}
	beat(70 * time.Second)
	if s.g.Len() != 2 {
		t.Errorf("%d groups are left", s.g.Len())
	}
	s.restart()
	if s.g.Len() != 2 || !has("live") {
		t.Errorf("after a restart: %v", s.states())
	}
}

// Claim: a client that names a retention time (OffsetCommit 2 to 4) gets it.
func TestExplicitRetention(t *testing.T) {
	s := newStory(t)
	req := kmsg.NewPtrOffsetCommitRequest()
	req.Group, req.Generation, req.RetentionTimeMillis = "g", -1, 5000
	topic := kmsg.NewOffsetCommitRequestTopic()
	topic.Topic = "orders"
	topic.Partitions = append(topic.Partitions, kmsg.NewOffsetCommitRequestTopicPartition())
	req.Topics = append(req.Topics, topic)
	s.commit(4, req)
	if v := s.log[0].Value[1]; v != 1 {
		t.Errorf("value version %d, only 1 can hold an expiry time", v)
	}
	s.restart()
	s.pass(6 * time.Second)
	s.g.Expire(s.now)
	s.settle()
	if s.g.Len() != 0 {
		t.Errorf("%v", s.states())
	}
}

// F053: a topic deleted and made anew had its group's old offset.
// Claim: deletion drops commits at once, also those in flight; and also if the
// broker stopped before their end was written.
// Method: commit, hold another commit, delete the topic, make it anew.
func TestField_F053_DeletionDropsCommits(t *testing.T) {
	s := newStory(t)
	s.simple("g").commit(8, 10, 11)
	s.hold = true
	late := s.simple("g").commit(8, 20)
	delete(s.known, "orders")
	s.g.DropTopics([]string{"orders"})
	s.settle()
	if a, b := s.committed("g", 0), s.committed("g", 1); a != -1 || b != -1 {
		t.Fatalf("after the deletion: %d, %d", a, b)
	}
	s.known["orders"] = Topic{Name: "orders", ID: [16]byte{2}, Partitions: 6}
	s.flow()
	s.want("the commit in flight", s.commitCode(late), 0)
	if a := s.committed("g", 0); a != -1 {
		t.Fatalf("the commit in flight came back: %d", a)
	}
	s.restart()
	if a, b := s.committed("g", 0), s.committed("g", 1); a != -1 || b != -1 {
		t.Fatalf("after a restart: %d, %d", a, b)
	}

	s.simple("g").commit(8, 30)
	s.known["orders"] = Topic{Name: "orders", ID: [16]byte{3}, Partitions: 6} // and a crash before DropTopics
	s.restart()
	if a := s.committed("g", 0); a != -1 {
		t.Errorf("a topic made anew inherits %d", a)
	}
	s.restart()
	if s.g.Len() != 0 {
		t.Errorf("the dropped commit is still in the log: %v", s.states())
	}
}

// Claim: DeleteGroups takes only groups without members, with all their
// offsets, for good; a commit that comes meanwhile lives.
func TestDeletingGroups(t *testing.T) {
	s := newStory(t)
	a := s.client("g")
	s.gather(a)
	a.commit(8, 5, 6)
	remove := func(id string) int16 {
		call := s.call()
		s.g.DeleteGroup(call, id)
		s.settle()
		return s.done[call].(*kmsg.DeleteGroupsResponse).Groups[0].ErrorCode
	}
	s.want("a live group", remove("g"), wire.ErrNonEmptyGroup)
	s.want("an unknown group", remove("none"), wire.ErrGroupIDNotFound)
	s.want("no group", remove(""), wire.ErrInvalidGroupID)
	a.leave()
	s.hold = true
	before := s.simple("g").commit(8, 7)
	call := s.call()
	s.g.DeleteGroup(call, "g")
	s.settle()
	after := s.simple("g").commit(8, 8)
	s.flow()
	s.want("commit before", s.commitCode(before), 0)
	s.want("commit after", s.commitCode(after), 0)
	check := func() {
		t.Helper()
		if a, b := s.committed("g", 0), s.committed("g", 1); a != 8 || b != -1 {
			t.Fatalf("%d, %d", a, b)
		}
	}
	check()
	s.restart()
	check()
	s.want("delete", remove("g"), 0)
	s.restart()
	if s.g.Len() != 0 {
		t.Errorf("%v", s.states())
	}
}

// Claim: OffsetDelete refuses topics that a member reads, and groups of other
// types while they live.
func TestDeletingOffsets(t *testing.T) {
	s := newStory(t)
	s.known["old"] = Topic{Name: "old", ID: [16]byte{5}, Partitions: 1}
	a := s.client("g")
	a.topics = []string{"old", "orders"}
	s.gather(a)
	a.commit(8, 5)
	a.topics = []string{"old"}
	s.assign(map[*client]Call{a: a.join()})
	remove := func(group string, topics ...string) *kmsg.OffsetDeleteResponse {
		req := kmsg.NewPtrOffsetDeleteRequest()
		req.Group = group
		for _, t := range topics {
			req.Topics = append(req.Topics, kmsg.OffsetDeleteRequestTopic{Topic: t, Partitions: []kmsg.OffsetDeleteRequestTopicPartition{{Partition: 0}}})
		}
		call := s.call()
		s.g.DeleteOffsets(call, req)
		s.settle()
		return s.done[call].(*kmsg.OffsetDeleteResponse)
	}
	s.want("unknown group", remove("none", "orders").ErrorCode, wire.ErrGroupIDNotFound)
	r := remove("g", "old", "orders")
	s.want("subscribed", r.Topics[0].Partitions[0].ErrorCode, wire.ErrGroupSubscribedToTopic)
	s.want("not subscribed", r.Topics[1].Partitions[0].ErrorCode, 0)
	if got := s.committed("g", 0); got != -1 {
		t.Errorf("still %d", got)
	}
	s.g.groups["g"].protocolType = "connect"
	s.want("another type", remove("g", "orders").ErrorCode, wire.ErrNonEmptyGroup)
}

// Claim: groups are described and listed as Kafka does, by state and type.
func TestDescribingGroups(t *testing.T) {
	s := newStory(t)
	a := s.client("live")
	s.gather(a)
	s.simple("simple").commit(8, 1)
	d := s.g.Describe(5, "live")
	if d.State != "Stable" || d.Protocol != "range" || d.ProtocolType != "consumer" || len(d.Members) != 1 || string(d.Members[0].MemberAssignment) != a.share || d.Members[0].ClientHost != "/10.0.0.1" {
		t.Errorf("%+v", d)
	}
	if d := s.g.Describe(5, "none"); d.State != "Dead" || d.ErrorCode != 0 {
		t.Errorf("%+v", d)
	}
	if d := s.g.Describe(6, "none"); d.State != "Dead" || d.ErrorCode != wire.ErrGroupIDNotFound || d.ErrorMessage == nil {
		t.Errorf("%+v", d)
	}
	for _, c := range []struct {
		states, types []string
		want          string
	}{
		{nil, nil, "live simple"}, {[]string{"stable"}, nil, "live"}, {[]string{"Empty", "Dead"}, []string{"Classic"}, "simple"}, {nil, []string{"consumer"}, ""},
	} {
		var names []string
		for _, l := range s.g.List(c.states, c.types) {
			names = append(names, l.Group)
		}
		if got := strings.Join(names, " "); got != c.want {
			t.Errorf("%v %v: %q, want %q", c.states, c.types, got, c.want)
		}
	}
}

// Claim: a restart keeps a group as it was when it was last Stable: members,
// generation, shares; and their sessions.
func TestGroupsSurviveARestart(t *testing.T) {
	s := newStory(t)
	a, b := s.client("g"), s.static("g", "b")
	s.gather(a, b)
	s.restart()
	s.want("heartbeat", a.heartbeat()+b.heartbeat(), 0)
	s.want("sync", b.synced(b.sync()), 0)
	if b.share != b.id+" in 1" || s.state("g") != "Stable" || s.g.groups["g"].leader != a.id {
		t.Errorf("%+v, %v", b, s.states())
	}
	s.pass(11 * time.Second)
	if s.state("g") != "Empty" {
		t.Errorf("%v", s.states())
	}
	s.restart()
	if s.state("g") != "Empty" || s.g.groups["g"].generation != 2 {
		t.Errorf("%v", s.states())
	}
	if err := s.g.Replay(record.Record{Key: []byte{0}}); err == nil {
		t.Error("a broken key is no error")
	}
	if err := s.g.Replay(record.Record{Key: []byte{0, 17, 0, 1, 'g'}, Value: []byte{0, 0}}); err != nil {
		t.Errorf("a record of another protocol: %v", err)
	}
}
