package coordinator

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"millrace/coord/group"
	"millrace/engine/batch"
	"millrace/wire"
)

// memoryLog is a Log in memory. A test may hold appends and say how they end.
type memoryLog struct {
	mu      sync.Mutex
	batches [][]byte
	load    chan struct{}        // nil: loads at once
	end     func(int) chan error // how append n ends; nil: well, at once
	broken  error                // of Load
	delay   func() time.Duration // before an append is durable
}

type memoryPending struct {
	end   chan error
	delay time.Duration
}

func (p memoryPending) Wait() error {
	if p.delay > 0 {
		time.Sleep(p.delay)
	}
	if p.end == nil {
		return nil
	}
	return <-p.end
}

func (l *memoryLog) Append(b []byte, _ batch.Info) Pending {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.batches = append(l.batches, b)
	p := memoryPending{}
	if l.end != nil {
		p.end = l.end(len(l.batches))
	}
	if l.delay != nil {
		p.delay = l.delay()
	}
	return p
}

func (l *memoryLog) Load(ctx context.Context, f func([]byte) error) error {
	if l.load != nil {
		select {
		case <-l.load:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, b := range l.batches {
		if err := f(b); err != nil {
			return err
		}
	}
	return l.broken
}

// oneTopic is a cluster with one topic.
type oneTopic struct{}

func (oneTopic) Topic(name string) (group.Topic, bool) {
	return group.Topic{Name: "orders", ID: [16]byte{1}, Partitions: 1000}, name == "orders"
}
func (oneTopic) Names() []string { return []string{"t"} }

func (oneTopic) TopicByID(id [16]byte) (group.Topic, bool) {
	return group.Topic{Name: "orders", ID: [16]byte{1}, Partitions: 1000}, id == [16]byte{1}
}

var errDisk = errors.New("disk")

func newService(logs ...Log) *Service {
	var ids atomic.Int64
	s := New(Options{
		Settings: group.Settings{InitialDelay: 3 * time.Second, SessionMin: time.Second, SessionMax: time.Hour, MaxSize: 1 << 30, MaxMetadata: 4096, Retention: time.Hour, Migration: group.Migration{Upgrade: true, Downgrade: true},
			Consumer: group.ConsumerSettings{Enabled: true, Session: time.Minute, Heartbeat: time.Second, Interval: func() time.Duration { return 0 }, MaxSize: 1 << 30, Assignors: []string{"uniform"}}},
		RetentionCheck: 10 * time.Minute,
		Topics:         func() group.Topics { return oneTopic{} },
		Code:           func(error) int16 { return wire.ErrKafkaStorageError },
		NewID:          func() string { return fmt.Sprint(ids.Add(1)) },
		Now:            time.Now,
		Logger:         slog.New(slog.DiscardHandler),
	})
	s.Lead(logs)
	return s
}

func joinRequest(id string) *kmsg.JoinGroupRequest {
	req := kmsg.NewPtrJoinGroupRequest()
	req.Group, req.ProtocolType, req.SessionTimeoutMillis, req.RebalanceTimeoutMillis = id, "consumer", 10_000, 30_000
	req.Protocols = []kmsg.JoinGroupRequestProtocol{{Name: "range", Metadata: []byte{0, 0, 0, 0, 0, 0}}}
	return req
}

func commitRequest(id string, partition int32, offset int64) *kmsg.OffsetCommitRequest {
	req := kmsg.NewPtrOffsetCommitRequest()
	req.Group, req.Generation = id, -1
	p := kmsg.NewOffsetCommitRequestTopicPartition()
	p.Partition, p.Offset = partition, offset
	req.Topics = []kmsg.OffsetCommitRequestTopic{{Topic: "orders", Partitions: []kmsg.OffsetCommitRequestTopicPartition{p}}}
	return req
}

func commitCode(r kmsg.Response) int16 {
	return r.(*kmsg.OffsetCommitResponse).Topics[0].Partitions[0].ErrorCode
}

func (s *Service) committed(id string, partition int32) (int64, int16) {
	req := kmsg.NewPtrOffsetFetchRequest()
	req.Version = 9
	g := kmsg.NewOffsetFetchRequestGroup()
	g.Group, g.Topics = id, []kmsg.OffsetFetchRequestGroupTopic{{Topic: "orders", Partitions: []int32{partition}}}
	req.Groups = append(req.Groups, g)
	r := s.Fetch(req).(*kmsg.OffsetFetchResponse).Groups[0]
	if r.ErrorCode != 0 {
		return -1, r.ErrorCode
	}
	return r.Topics[0].Partitions[0].Offset, 0
}

// Claim: a group's partition is the one that Kafka would choose.
// Method: what Kafka 4.3.1's Utils.abs(hashCode) % 50 says.
func TestPartitionOfIsKafkas(t *testing.T) {
	for id, want := range map[string]int32{
		"group": 47, "": 0, "Grüße": 1, "日本語-group": 15, "polygenelubricants": 0, "a😀b": 44, "consumer-group-17": 29,
	} {
		if got := PartitionOf(id, 50); got != want {
			t.Errorf("%q: %d, want %d", id, got, want)
		}
	}
}

// Claim: alarms go off by themselves: a join is answered after the initial
// delay, a silent member goes after its session, an old commit expires.
// Method: the service in a bubble where time is simulated.
func TestTimeGoesBy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newService(&memoryLog{})
		defer s.Close()
		synctest.Wait()
		begun := time.Now()
		call := s.Join(group.Client{ID: "app", Version: 3}, joinRequest("g"))
		<-call.Done
		r := call.Response().(*kmsg.JoinGroupResponse)
		if took := time.Since(begun); r.ErrorCode != 0 || took < 3*time.Second || took > 3100*time.Millisecond {
			t.Fatalf("answered after %v: %+v", took, r)
		}
		beat := kmsg.NewPtrHeartbeatRequest()
		beat.Group, beat.MemberID, beat.Generation = "g", r.MemberID, r.Generation
		time.Sleep(9 * time.Second)
		if r := s.Heartbeat(beat).(*kmsg.HeartbeatResponse); r.ErrorCode != 0 {
			t.Fatalf("heartbeat: %s", wire.ErrorName(r.ErrorCode))
		}
		time.Sleep(11 * time.Second)
		if r := s.Heartbeat(beat).(*kmsg.HeartbeatResponse); r.ErrorCode != wire.ErrUnknownMemberID {
			t.Fatalf("heartbeat after the session: %s", wire.ErrorName(r.ErrorCode))
		}
		s.Commit(group.Client{Version: 8}, commitRequest("simple", 0, 5))
		time.Sleep(50 * time.Minute)
		if o, _ := s.committed("simple", 0); o != 5 {
			t.Fatalf("expired early: %d", o)
		}
		time.Sleep(30 * time.Minute)
		if o, _ := s.committed("simple", 0); o != -1 {
			t.Fatalf("not expired: %d", o)
		}
		if r := s.List(kmsg.NewPtrListGroupsRequest()).(*kmsg.ListGroupsResponse); len(r.Groups) != 0 {
			t.Errorf("left: %+v", r.Groups)
		}
	})
}

// Claim: while a partition is loading, its groups are told to wait, heartbeats
// are fine, and other partitions serve; a partition that cannot be read says so.
func TestLoading(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow, broken := &memoryLog{load: make(chan struct{})}, &memoryLog{broken: errDisk}
		s := newService(slow, broken, nil)
		defer s.Close()
		synctest.Wait()
		names := map[int32]string{}
		for i := 0; len(names) < 3; i++ {
			id := fmt.Sprint("g", i)
			names[PartitionOf(id, 3)] = id
		}
		for partition, want := range []int16{wire.ErrCoordinatorLoadInProgress, wire.ErrCoordinatorNotAvailable, wire.ErrNotCoordinator} {
			id := names[int32(partition)]
			if _, code := s.committed(id, 0); code != want {
				t.Errorf("OffsetFetch in partition %d: %s", partition, wire.ErrorName(code))
			}
			if code := commitCode(s.Commit(group.Client{Version: 8}, commitRequest(id, 0, 1))); code != want {
				t.Errorf("OffsetCommit in partition %d: %s", partition, wire.ErrorName(code))
			}
			call := s.Join(group.Client{}, joinRequest(id))
			<-call.Done
			if code := call.Response().(*kmsg.JoinGroupResponse).ErrorCode; code != want {
				t.Errorf("JoinGroup in partition %d: %s", partition, wire.ErrorName(code))
			}
		}
		beat := kmsg.NewPtrHeartbeatRequest()
		beat.Group = names[0]
		if code := s.Heartbeat(beat).(*kmsg.HeartbeatResponse).ErrorCode; code != 0 {
			t.Errorf("Heartbeat while loading: %s", wire.ErrorName(code))
		}
		if code := s.List(kmsg.NewPtrListGroupsRequest()).(*kmsg.ListGroupsResponse).ErrorCode; code != wire.ErrCoordinatorLoadInProgress {
			t.Errorf("ListGroups while loading: %s", wire.ErrorName(code))
		}
		close(slow.load)
		synctest.Wait()
		if code := commitCode(s.Commit(group.Client{Version: 8}, commitRequest(names[0], 0, 1))); code != 0 {
			t.Errorf("OffsetCommit after loading: %s", wire.ErrorName(code))
		}
	})
}

// Claim: commits whose writes end in another order than they were made are
// answered and take effect in the order in which they were made; a failed one
// takes no effect.
func TestWritesEndInAnyOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ends := map[int]chan error{1: make(chan error, 1), 2: make(chan error, 1), 3: make(chan error, 1)}
		s := newService(&memoryLog{end: func(n int) chan error { return ends[n] }})
		defer s.Close()
		synctest.Wait()
		answers := make([]chan int16, 3)
		for i := range answers {
			answers[i] = make(chan int16, 1)
			go func() {
				answers[i] <- commitCode(s.Commit(group.Client{Version: 8}, commitRequest("g", 0, int64(i+1))))
			}()
			synctest.Wait()
		}
		ends[2] <- nil
		ends[3] <- errDisk
		synctest.Wait()
		if o, _ := s.committed("g", 0); o != -1 || len(answers[1]) != 0 {
			t.Fatalf("committed %d before the first write ended", o)
		}
		ends[1] <- nil
		for i, want := range []int16{0, 0, wire.ErrNotCoordinator} {
			if code := <-answers[i]; code != want {
				t.Errorf("commit %d: %s", i+1, wire.ErrorName(code))
			}
		}
		if o, _ := s.committed("g", 0); o != 2 {
			t.Errorf("committed %d, want 2", o)
		}
	})
}

// Claim: a stop, or the loss of a partition, answers everybody who waits, and
// the goroutines end; a write that hangs keeps nobody but itself.
func TestStopAnswersAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		end := make(chan error)
		s := newService(&memoryLog{end: func(int) chan error { return end }})
		synctest.Wait()
		join := s.Join(group.Client{ID: "app"}, joinRequest("g"))
		committed := make(chan int16, 1)
		go func() { committed <- commitCode(s.Commit(group.Client{Version: 8}, commitRequest("h", 0, 1))) }()
		synctest.Wait()
		s.Lead(nil)
		<-join.Done
		if code := join.Response().(*kmsg.JoinGroupResponse).ErrorCode; code != wire.ErrNotCoordinator {
			t.Errorf("join: %s", wire.ErrorName(code))
		}
		join.Abandon()
		close(end)
		if code := <-committed; code != wire.ErrNotCoordinator {
			t.Errorf("commit: %s", wire.ErrorName(code))
		}
		s.Close()
		s.Lead([]Log{&memoryLog{}})
		if s.Partitions() != 0 {
			t.Error("leads after Close")
		}
	})
}

// Claim: offsets in a transaction that Kafka wrote count if its marker commits,
// and only then.
func TestTransactionalCommitsOfKafka(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		plain := &memoryLog{}
		w := newService(plain)
		synctest.Wait()
		for i := range int64(3) {
			w.Commit(group.Client{Version: 8}, commitRequest("g", int32(i), i+10))
		}
		w.Close()
		var records []batch.Record
		for _, b := range plain.batches {
			for r, err := range batch.Records(b) {
				if err != nil {
					t.Fatal(err)
				}
				records = append(records, batch.Record{Key: append([]byte{}, r.Key...), Value: append([]byte{}, r.Value...)})
			}
		}
		build := func(r batch.Record, opts ...batch.Option) []byte {
			b := batch.NewBuilder(batch.Zstd, batch.DefaultLevel)
			if err := b.Add(r); err != nil {
				t.Fatal(err)
			}
			return b.Bytes(opts...)
		}
		marker := func(kind byte) batch.Record {
			return batch.Record{Key: []byte{0, 0, 0, kind}, Value: []byte{0, 0, 0, 0, 0, 0}}
		}
		kafka := &memoryLog{batches: [][]byte{
			build(records[0], batch.Producer(1, 0, 0), batch.Transactional()),
			build(records[1], batch.Producer(2, 0, 0), batch.Transactional()),
			build(records[2], batch.Producer(3, 0, 0), batch.Transactional()),
			build(marker(1), batch.Producer(1, 0, -1), batch.Transactional(), batch.Control()),
			build(marker(0), batch.Producer(2, 0, -1), batch.Transactional(), batch.Control()),
		}}
		s := newService(kafka)
		defer s.Close()
		synctest.Wait()
		for partition, want := range []int64{10, -1, -1} {
			if o, _ := s.committed("g", int32(partition)); o != want {
				t.Errorf("partition %d: %d, want %d", partition, o, want)
			}
		}
	})
}

// Claim: under many clients at once each commit that was answered is there, the
// last of each partition wins, and a reload of the log finds the same.
// Method: 8 committers over 20 groups with a log that takes its time; run it
// with -race.
func TestManyAtOnce(t *testing.T) {
	logs := make([]Log, 4)
	var n atomic.Int64
	for i := range logs {
		logs[i] = &memoryLog{delay: func() time.Duration { return time.Duration(n.Add(1)%7) * 50 * time.Microsecond }}
	}
	s := newService(logs...)
	for s.List(kmsg.NewPtrListGroupsRequest()).(*kmsg.ListGroupsResponse).ErrorCode != 0 {
		time.Sleep(time.Millisecond)
	}
	var all sync.WaitGroup
	for worker := range 8 {
		all.Go(func() {
			for i := range int64(200) {
				id := fmt.Sprint("group-", i%20)
				if code := commitCode(s.Commit(group.Client{Version: 8}, commitRequest(id, int32(worker), i))); code != 0 {
					t.Errorf("commit: %s", wire.ErrorName(code))
				}
				if o, _ := s.committed(id, int32(worker)); o != i {
					t.Errorf("%s: reads %d after the answer to %d", id, o, i)
				}
			}
		})
	}
	all.Wait()
	s.Close()
	again := newService(logs...)
	defer again.Close()
	for again.List(kmsg.NewPtrListGroupsRequest()).(*kmsg.ListGroupsResponse).ErrorCode != 0 {
		time.Sleep(time.Millisecond)
	}
	for i := range int64(20) {
		for worker := range int32(8) {
			if o, _ := again.committed(fmt.Sprint("group-", i), worker); o != 180+i {
				t.Errorf("group %d, partition %d: %d after a reload", i, worker, o)
			}
		}
	}
}

// BenchmarkHeartbeats is 2,000 groups of 5 over 50 partitions, beaten from as
// many goroutines as there are processors.
func BenchmarkHeartbeats(b *testing.B) {
	logs := make([]Log, 50)
	for i := range logs {
		logs[i] = &memoryLog{}
	}
	s := newService(logs...)
	defer s.Close()
	for s.List(kmsg.NewPtrListGroupsRequest()).(*kmsg.ListGroupsResponse).ErrorCode != 0 {
		time.Sleep(time.Millisecond)
	}
	var calls []*Call
	var beats []*kmsg.HeartbeatRequest
	for i := range 10_000 {
		req := joinRequest(fmt.Sprint("group-", i/5))
		req.SessionTimeoutMillis, req.RebalanceTimeoutMillis = 3_600_000, 3_600_000
		calls = append(calls, s.Join(group.Client{ID: "app"}, req))
		beat := kmsg.NewPtrHeartbeatRequest()
		beat.Group = req.Group
		beats = append(beats, beat)
	}
	for i, c := range calls {
		<-c.Done
		r := c.Response().(*kmsg.JoinGroupResponse)
		beats[i].MemberID, beats[i].Generation = r.MemberID, r.Generation
	}
	var next atomic.Int64
	b.ReportAllocs()
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			beat := beats[next.Add(1)%int64(len(beats))]
			if code := s.Heartbeat(beat).(*kmsg.HeartbeatResponse).ErrorCode; code != 0 {
				b.Fatal(wire.ErrorName(code))
			}
		}
	})
}
