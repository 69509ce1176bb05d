package coordinator

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf16"

	"millrace/coord/group"
	"millrace/engine/batch"
)

// Options are what a Service needs. All but Codec must be given.
type Options struct {
	Settings       group.Settings
	RetentionCheck time.Duration // how often commits are looked at for expiry
	Codec          batch.Codec   // of what is written

	Topics func() group.Topics   // the newest state of the cluster
	Code   func(err error) int16 // the protocol's code of a failed append
	NewID  func() string         // makes a member id unique
	Now    func() time.Time
	Logger *slog.Logger
}

// Service is the coordinator of all groups whose partition this broker leads.
// Safe for concurrent use.
type Service struct {
	o     Options
	begun time.Time // alarms are kept as the time since then

	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	loads  chan struct{} // one token for each partition being read
	wait   sync.WaitGroup

	shards atomic.Pointer[[]*shard] // by partition; nil where somebody else leads
	change sync.Mutex               // held to replace shards

	alarm struct {
		sleep atomic.Int64  // when the alarm goroutine wakes by itself
		wake  chan struct{} // one token: look again
	}
	behind background
}

// New makes a coordinator that leads nothing yet. Close ends it.
func New(o Options) *Service {
	s := &Service{o: o, begun: o.Now(), loads: make(chan struct{}, maxLoads)}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.shards.Store(new([]*shard))
	s.alarm.wake = make(chan struct{}, 1)
	s.behind.wake = make(chan struct{}, 1)
	s.wait.Add(2)
	go s.watch()       // owner: s; ends with ctx; Close waits
	go s.behind.run(s) // owner: s; ends with ctx, once its queue is empty; Close waits
	return s
}

// Lead tells which partitions of __consumer_offsets this broker leads: logs by
// partition, nil where another broker does; none if there is no such topic.
// Partitions led before stay as they are; new ones are read in the background
// and say COORDINATOR_LOAD_IN_PROGRESS meanwhile.
func (s *Service) Lead(logs []Log) {
	s.change.Lock()
	defer s.change.Unlock()
	if s.ctx.Err() != nil {
		return
	}
	old := *s.shards.Load()
	next := make([]*shard, len(logs))
	var begin []*shard
	for i, log := range logs {
		switch {
		case log == nil:
		case i < len(old) && old[i] != nil:
			next[i] = old[i]
		default:
			next[i] = newShard(s, int32(i), log)
			begin = append(begin, next[i])
		}
	}
	s.shards.Store(&next)
	for i, sh := range old {
		if sh != nil && (i >= len(next) || next[i] != sh) {
			sh.resign()
		}
	}
	if len(begin) > 0 {
		s.wait.Add(1)
		go s.load(begin) // owner: s; ends when all are read, or with ctx; Close waits
	}
}

// DropTopics forgets all commits for topics that were deleted. Options.Topics
// must not know them any more.
func (s *Service) DropTopics(names []string) {
	for _, sh := range *s.shards.Load() {
		if sh == nil {
			continue
		}
		writes, _ := sh.step(func(_ time.Time, g *group.Groups) { g.DropTopics(names) })
		s.behind.add(sh, writes)
	}
}

// TopicsChanged tells that Options.Topics knows other topics, or other
// partitions, than before.
func (s *Service) TopicsChanged() {
	for _, sh := range *s.shards.Load() {
		if sh != nil {
			_, _ = sh.step(func(_ time.Time, g *group.Groups) { g.TopicsChanged() }) // which writes nothing
		}
	}
}

// Stop answers everything that waits, so that connections can end; from now on
// this broker is no coordinator. What was being written is still seen through.
func (s *Service) Stop() {
	s.change.Lock()
	defer s.change.Unlock()
	s.cancel()
	for _, sh := range *s.shards.Load() {
		if sh != nil {
			sh.resign()
		}
	}
}

// Close is Stop, and waits for the goroutines.
func (s *Service) Close() {
	s.Stop()
	s.wait.Wait()
}

// Partitions is how many partitions __consumer_offsets has; 0 if there is no
// such topic yet.
func (s *Service) Partitions() int { return len(*s.shards.Load()) }

// PartitionOf is where a group's records go, of a topic with n partitions: as
// Kafka has it, by the hash that Java gives its name.
func PartitionOf(id string, n int) int32 {
	var h int32
	for _, unit := range utf16.Encode([]rune(id)) {
		h = 31*h + int32(unit)
	}
	if h < 0 {
		h = -h
	}
	if h < 0 { // the least number has no positive counterpart; Kafka takes 0
		h = 0
	}
	return h % int32(n)
}

// shardOf finds the shard of a group; nil if another broker has it, or nobody.
func (s *Service) shardOf(id string) *shard {
	shards := *s.shards.Load()
	if len(shards) == 0 {
		return nil
	}
	return shards[PartitionOf(id, len(shards))]
}
