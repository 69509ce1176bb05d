package group

import (
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"millrace/coord/group/record"
	"millrace/wire"
)

// story plays a script against the state machine: it is the clock, the log and
// all clients. Writes become durable at once, unless hold is set.
type story struct {
	t    testing.TB
	g    *Groups
	now  time.Time
	ids  int
	next Call
	done map[Call]kmsg.Response

	hold  bool
	fail  int16 // what becomes of writes
	held  []Write
	log   []record.Record // durable
	known fakeTopics

	answered func(Call, kmsg.Response) // nil: nobody looks
}

var start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func testSettings() Settings {
	return Settings{InitialDelay: 3 * time.Second, SessionMin: 6 * time.Second, SessionMax: 30 * time.Minute, MaxSize: 1 << 30, MaxMetadata: 4096, Retention: 7 * 24 * time.Hour,
		Consumer: ConsumerSettings{Enabled: true, Session: 45 * time.Second, Heartbeat: 5 * time.Second, Interval: func() time.Duration { return 0 }, MaxSize: 1 << 30, Assignors: []string{"uniform", "range"}}}
}

func newStory(t testing.TB, change ...func(*Settings)) *story {
	s := &story{t: t, now: start, done: map[Call]kmsg.Response{}, known: fakeTopics{}}
	settings := testSettings()
	for _, f := range change {
		f(&settings)
	}
	s.g = New(settings, s.newID)
	s.g.UseTopics(func() Topics { return s.known })
	s.known["orders"] = Topic{Name: "orders", ID: [16]byte{1}, Partitions: 6}
	return s
}

func (s *story) newID() string {
	s.ids++
	return fmt.Sprint(s.ids)
}

// fakeTopics are the topics that exist.
type fakeTopics map[string]Topic

func (f fakeTopics) Topic(name string) (Topic, bool) { t, ok := f[name]; return t, ok }
func (f fakeTopics) Names() []string                 { return slices.Sorted(maps.Keys(f)) }
func (f fakeTopics) TopicByID(id [16]byte) (Topic, bool) {
	for _, t := range f {
		if t.ID == id {
			return t, true
		}
	}
	return Topic{}, false
}

// settle takes what has come out.
func (s *story) settle() {
	for {
		out := s.g.Take()
		for _, a := range out.Answers {
			if s.done[a.Call] != nil {
				s.t.Fatalf("call %d is answered twice", a.Call)
			}
			s.done[a.Call] = a.Response
			if s.answered != nil {
				s.answered(a.Call, a.Response)
			}
		}
		s.held = append(s.held, out.Writes...)
		if s.hold || len(s.held) == 0 {
			return
		}
		s.release()
	}
}

// release ends the first held write.
func (s *story) release() {
	w := s.held[0]
	s.held = s.held[1:]
	if s.fail == 0 {
		s.log = append(s.log, w.Records...)
	}
	s.g.Written(s.now, w.ID, s.fail)
}

// flow ends all held writes.
func (s *story) flow() {
	s.hold = false
	s.settle()
}

// pass lets time go by, alarm for alarm.
func (s *story) pass(d time.Duration) {
	end := s.now.Add(d)
	for {
		due, ok := s.g.Due()
		if !ok || due.After(end) {
			break
		}
		if due.After(s.now) {
			s.now = due
		}
		s.g.Advance(s.now)
		s.settle()
	}
	s.now = end
}

// restart is a crash: what is not durable is lost, with all waiting requests.
func (s *story) restart() {
	s.t.Helper()
	settings := s.g.settings
	s.g = New(settings, s.newID)
	s.g.UseTopics(func() Topics { return s.known })
	s.held, s.done = nil, map[Call]kmsg.Response{}
	for _, r := range s.log {
		if err := s.g.Replay(r); err != nil {
			s.t.Fatal(err)
		}
	}
	s.g.Loaded(s.now, s.known)
	s.settle()
}

// client is one member as a client sees it.
type client struct {
	s          *story
	group      string
	id         string
	instance   string
	protocols  []string
	topics     []string
	session    time.Duration
	rebalance  time.Duration
	version    int16 // of JoinGroup; of the others what goes with it
	generation int32
	leader     string
	members    []kmsg.JoinGroupResponseMember
	skip       bool
	share      string
	tell       func() []byte                                                  // its metadata; nil: as a client of old that owns nothing
	lead       func(members []kmsg.JoinGroupResponseMember) map[string][]byte // its assignor; nil: one that cannot be read
}

func (s *story) client(group string) *client {
	return &client{s: s, group: group, protocols: []string{"range"}, topics: []string{"orders"}, session: 10 * time.Second, rebalance: 30 * time.Second, version: 3}
}

func (s *story) static(group, instance string) *client {
	c := s.client(group)
	c.instance, c.version = instance, 9
	return c
}

func (c *client) instanceID() *string {
	if c.instance == "" {
		return nil
	}
	return &c.instance
}

func (s *story) call() Call { s.next++; return s.next }

// join sends JoinGroup.
func (c *client) join() Call {
	req := kmsg.NewPtrJoinGroupRequest()
	req.Group, req.MemberID, req.InstanceID, req.ProtocolType = c.group, c.id, c.instanceID(), consumers
	req.SessionTimeoutMillis, req.RebalanceTimeoutMillis = int32(c.session.Milliseconds()), int32(c.rebalance.Milliseconds())
	for _, p := range c.protocols {
		metadata := metadataOf(c.topics)
		if c.tell != nil {
			metadata = c.tell()
		}
		req.Protocols = append(req.Protocols, kmsg.JoinGroupRequestProtocol{Name: p, Metadata: metadata})
	}
	call := c.s.call()
	c.s.g.Join(c.s.now, call, Client{ID: "app", Host: "/10.0.0.1", Version: c.version}, req)
	c.s.settle()
	return call
}

func metadataOf(topics []string) []byte {
	b := []byte{0, 1}
	b = binary.BigEndian.AppendUint32(b, uint32(len(topics)))
	for _, t := range topics {
		b = binary.BigEndian.AppendUint16(b, uint16(len(t)))
		b = append(b, t...)
	}
	return append(b, 0, 0, 0, 0, 0, 0, 0, 0) // no user data, nothing owned
}

// joined takes the answer to JoinGroup; -100 if there is none yet.
func (c *client) joined(call Call) int16 {
	r, ok := c.s.done[call].(*kmsg.JoinGroupResponse)
	if !ok {
		return -100
	}
	if r.MemberID != "" {
		c.id = r.MemberID
	}
	if r.ErrorCode == 0 {
		c.generation, c.leader, c.members, c.skip = r.Generation, r.LeaderID, r.Members, r.SkipAssignment
	}
	return r.ErrorCode
}

// sync sends SyncGroup; as the leader, with a share for each member.
func (c *client) sync() Call {
	req := kmsg.NewPtrSyncGroupRequest()
	req.Group, req.MemberID, req.InstanceID, req.Generation = c.group, c.id, c.instanceID(), c.generation
	if c.leader == c.id && !c.skip && c.lead != nil {
		for id, share := range c.lead(c.members) {
			req.GroupAssignment = append(req.GroupAssignment, kmsg.SyncGroupRequestGroupAssignment{MemberID: id, MemberAssignment: share})
		}
	} else if c.leader == c.id && !c.skip {
		for _, m := range c.members {
			req.GroupAssignment = append(req.GroupAssignment, kmsg.SyncGroupRequestGroupAssignment{MemberID: m.MemberID, MemberAssignment: []byte(fmt.Sprintf("%s in %d", m.MemberID, c.generation))})
		}
	}
	call := c.s.call()
	c.s.g.Sync(c.s.now, call, Client{ID: "app", Version: 5}, req)
	c.s.settle()
	return call
}

func (c *client) synced(call Call) int16 {
	r, ok := c.s.done[call].(*kmsg.SyncGroupResponse)
	if !ok {
		return -100
	}
	if r.ErrorCode == 0 {
		c.share = string(r.MemberAssignment)
	}
	return r.ErrorCode
}

func (c *client) heartbeat() int16 {
	req := kmsg.NewPtrHeartbeatRequest()
	req.Group, req.MemberID, req.InstanceID, req.Generation = c.group, c.id, c.instanceID(), c.generation
	code := c.s.g.Heartbeat(c.s.now, req)
	c.s.settle()
	return code
}

func (c *client) leave() int16 {
	req := kmsg.NewPtrLeaveGroupRequest()
	req.Group, req.MemberID = c.group, c.id
	call := c.s.call()
	c.s.g.Leave(c.s.now, call, Client{Version: 2}, req)
	c.s.settle()
	if r, ok := c.s.done[call].(*kmsg.LeaveGroupResponse); ok {
		return r.ErrorCode
	}
	return -100
}

// commit sends OffsetCommit for partitions 0, 1, … of orders; it returns the
// call, for when writes are held.
func (c *client) commit(version int16, offsets ...int64) Call {
	req := kmsg.NewPtrOffsetCommitRequest()
	req.Group, req.MemberID, req.InstanceID, req.Generation = c.group, c.id, c.instanceID(), c.generation
	topic := kmsg.NewOffsetCommitRequestTopic()
	topic.Topic = "orders"
	for i, o := range offsets {
		p := kmsg.NewOffsetCommitRequestTopicPartition()
		p.Partition, p.Offset = int32(i), o
		topic.Partitions = append(topic.Partitions, p)
	}
	req.Topics = append(req.Topics, topic)
	return c.s.commit(version, req)
}

func (s *story) commit(version int16, req *kmsg.OffsetCommitRequest) Call {
	call := s.call()
	s.g.Commit(s.now, call, Client{ID: "app", Version: version}, req, s.known)
	s.settle()
	return call
}

// simple is a client that only commits.
func (s *story) simple(group string) *client {
	c := s.client(group)
	c.generation = -1
	return c
}

func (s *story) commitCode(call Call) int16 {
	r, ok := s.done[call].(*kmsg.OffsetCommitResponse)
	if !ok {
		return -100
	}
	return r.Topics[0].Partitions[0].ErrorCode
}

// committed is what a group has for a partition of orders; -1 for nothing.
func (s *story) committed(group string, partition int32) int64 {
	req := kmsg.NewOffsetFetchRequestGroup()
	req.Group = group
	req.Topics = []kmsg.OffsetFetchRequestGroupTopic{{Topic: "orders", Partitions: []int32{partition}}}
	r := s.g.Fetch(9, &req, s.known)
	s.settle()
	p := r.Topics[0].Partitions[0]
	if p.ErrorCode != 0 {
		s.t.Fatalf("OffsetFetch: %s", wire.ErrorName(p.ErrorCode))
	}
	return p.Offset
}

func (s *story) state(group string) string {
	return s.g.Describe(5, group).State
}

// gather lets clients join a group together and brings it to Stable.
func (s *story) gather(clients ...*client) {
	s.t.Helper()
	calls := map[*client]Call{}
	for _, c := range clients {
		calls[c] = c.join()
		if c.joined(calls[c]) == wire.ErrMemberIDRequired {
			calls[c] = c.join()
		}
	}
	s.pass(7 * time.Second)
	s.assign(calls)
}

// assign takes the answers to JoinGroup and plays SyncGroup.
func (s *story) assign(joins map[*client]Call) {
	s.t.Helper()
	syncs := map[*client]Call{}
	for c, call := range joins {
		s.want("JoinGroup", c.joined(call), 0)
		syncs[c] = c.sync()
	}
	for c, call := range syncs {
		s.want("SyncGroup", c.synced(call), 0)
		if want := fmt.Sprintf("%s in %d", c.id, c.generation); c.share != want {
			s.t.Fatalf("share is %q, want %q", c.share, want)
		}
	}
}

func (s *story) want(what string, got, want int16) {
	s.t.Helper()
	if got != want {
		name := wire.ErrorName(got)
		if got == -100 {
			name = "no answer yet"
		}
		s.t.Fatalf("%s: %s, want %s (groups %v)", what, name, wire.ErrorName(want), maps.Collect(maps.All(s.states())))
	}
}

func (s *story) states() map[string]string {
	out := map[string]string{}
	for id, g := range s.g.groups {
		out[id] = fmt.Sprintf("%v generation %d, %d members, %d parked", g.state, g.generation, len(g.members), g.joining)
	}
	return out
}
