package coordinator

import (
	"math"
	"sync"
	"time"

	"millrace/coord/group"
)

// watch waits for the next alarm of all shards, and for the next look at
// expired commits.
func (s *Service) watch() {
	defer s.wait.Done()
	timer := time.NewTimer(maxSleep)
	defer timer.Stop()
	expire := s.o.RetentionCheck
	for {
		// From here on a shard whose alarm comes nearer wakes us; so none that
		// is set while we look can be missed.
		s.alarm.sleep.Store(math.MaxInt64)
		now := s.o.Now().Sub(s.begun)
		if now >= expire {
			s.each(func(now time.Time, g *group.Groups) { g.Expire(now) })
			expire = now + s.o.RetentionCheck
		}
		next := min(now+maxSleep, expire)
		for _, sh := range *s.shards.Load() {
			if sh == nil {
				continue
			}
			at := time.Duration(sh.due.Load())
			if at != 0 && at <= now {
				writes, _ := sh.step(func(now time.Time, g *group.Groups) { g.Advance(now) })
				s.behind.add(sh, writes)
				at = time.Duration(sh.due.Load())
			}
			if at != 0 {
				next = min(next, at)
			}
		}
		s.alarm.sleep.Store(int64(next))
		timer.Reset(max(next-s.o.Now().Sub(s.begun), 0))
		select {
		case <-s.ctx.Done():
			return
		case <-s.alarm.wake:
		case <-timer.C:
		}
	}
}

// mind makes sure that an alarm is not slept through.
func (s *Service) mind(at int64) {
	if at == 0 || at >= s.alarm.sleep.Load() {
		return
	}
	select {
	case s.alarm.wake <- struct{}{}:
	default: // it will look anyway
	}
}

// each takes a step in every shard.
func (s *Service) each(f func(now time.Time, g *group.Groups)) {
	for _, sh := range *s.shards.Load() {
		if sh != nil {
			writes, _ := sh.step(f)
			s.behind.add(sh, writes)
		}
	}
}

// background sees through the writes that no request waits for, so that a slow
// disk does not hold up alarms. Its queue holds at most a few writes for each
// group: what alarms and deletions cause.
type background struct {
	mu    sync.Mutex
	queue []behindWrites
	wake  chan struct{}
}

type behindWrites struct {
	shard  *shard
	writes []*writing
}

func (b *background) add(sh *shard, writes []*writing) {
	if len(writes) == 0 {
		return
	}
	b.mu.Lock()
	b.queue = append(b.queue, behindWrites{sh, writes})
	b.mu.Unlock()
	select {
	case b.wake <- struct{}{}:
	default:
	}
}

func (b *background) take() []behindWrites {
	b.mu.Lock()
	defer b.mu.Unlock()
	q := b.queue
	b.queue = nil
	return q
}

func (b *background) run(s *Service) {
	defer s.wait.Done()
	for {
		for _, w := range b.take() {
			w.shard.seeThrough(w.writes)
		}
		select {
		case <-b.wake:
		case <-s.ctx.Done():
			// What came until now is in line in the log and must be written.
			for _, w := range b.take() {
				w.shard.seeThrough(w.writes)
			}
			return
		}
	}
}
