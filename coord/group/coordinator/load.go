package coordinator

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"sync"
	"time"

	"millrace/coord/group"
	"millrace/coord/group/record"
	"millrace/engine/batch"
)

// load reads partitions, a few side by side.
func (s *Service) load(shards []*shard) {
	defer s.wait.Done()
	var all sync.WaitGroup
	for _, sh := range shards {
		select {
		case s.loads <- struct{}{}:
		case <-s.ctx.Done():
			all.Wait()
			return
		}
		all.Go(func() { // owner: load; ends when the partition is read; load waits
			defer func() { <-s.loads }()
			sh.load()
		})
	}
	all.Wait()
}

// load reads the shard's partition and begins to serve.
func (sh *shard) load() {
	begun := time.Now()
	s := sh.s
	l := &loader{groups: group.New(s.o.Settings, s.o.NewID), open: map[int64][]record.Record{}}
	l.groups.UseTopics(s.o.Topics)
	err := sh.log.Load(s.ctx, l.batch)

	sh.mu.Lock()
	if sh.mu.state != loading {
		sh.mu.Unlock()
		return
	}
	if err != nil {
		sh.mu.state = failed
		sh.mu.Unlock()
		s.o.Logger.Error("the groups of a partition cannot be read and are not served until the next start", "partition", sh.partition, "error", err)
		return
	}
	now := s.o.Now()
	sh.mu.groups, sh.mu.state = l.groups, active
	l.groups.Loaded(now, s.o.Topics())
	writes := sh.collect(now)
	groups := l.groups.Len()
	sh.mu.Unlock()
	s.behind.add(sh, writes)
	if l.bad > 0 {
		s.o.Logger.Warn("some records of groups cannot be read and were passed over", "partition", sh.partition, "records", l.bad, "first", l.firstBad)
	}
	if l.records > 0 {
		s.o.Logger.Info("groups loaded", "partition", sh.partition, "groups", groups, "records", l.records, "took", time.Since(begun).Round(time.Millisecond))
	}
}

// loader feeds stored batches to a state machine.
type loader struct {
	groups   *group.Groups
	open     map[int64][]record.Record // of transactions not ended so far, by producer
	records  int
	bad      int
	firstBad error
}

// batch takes in one stored batch. Commits in a transaction (a Kafka broker may
// have written such) count when its marker says so.
func (l *loader) batch(b []byte) error {
	transactional, control, producer := false, false, int64(-1)
	if v := batch.View(b); v.Magic() >= 2 {
		transactional, control, producer = v.IsTransactional(), v.IsControl(), v.ProducerID()
	}
	for r, err := range batch.Records(b) {
		if err != nil {
			return fmt.Errorf("a batch at offset %d: %w", batch.View(b).BaseOffset(), err)
		}
		l.records++
		switch {
		case control:
			l.end(producer, r.Key)
		case transactional:
			l.open[producer] = append(l.open[producer], record.Record{Key: bytes.Clone(r.Key), Value: bytes.Clone(r.Value)})
		default:
			l.replay(record.Record{Key: r.Key, Value: r.Value})
		}
	}
	return nil
}

// end takes in a transaction's marker. Its key is a version and 1 for a commit.
func (l *loader) end(producer int64, key []byte) {
	const commit = 1
	if len(key) >= 4 && binary.BigEndian.Uint16(key[2:]) == commit {
		for _, r := range l.open[producer] {
			l.replay(r)
		}
	}
	delete(l.open, producer)
}

func (l *loader) replay(r record.Record) {
	if err := l.groups.Replay(r); err != nil {
		if l.bad++; l.firstBad == nil {
			l.firstBad = err
		}
	}
}
