// Package kvstore is an event-sourced key-value store on one compacted engine.Log:
// the log is the truth, the map in memory is made from it by reading it.
//
// Put and Delete return when the change survives a loss of power and shows in Get.
// Many callers share one sync. Compact drops changes that newer ones have replaced, so a start reads
// about as much as there are keys. Watch lets others build what they want of the same changes.
package kvstore

import (
	"context"
	"errors"
	"iter"
	"maps"
	"path/filepath"
	"sync"
	"time"

	"millrace/engine"
	"millrace/engine/compact"
)

// Options of a store; zero values are usable.
type Options struct {
	SegmentBytes int64             // size of a file; the newest is never compacted; 0: 1 MiB
	KeyMemory    int64             // bytes for the keys that one pass of compaction looks at, 24 a key; 0: 16 MiB
	Log          engine.LogOptions // its Config is the store's business
}

// Store is open for use by any number of goroutines.
type Store struct {
	log       *engine.Log
	positions *engine.Positions
	keys      int64
	stop      context.CancelFunc
	applying  sync.WaitGroup

	mu      sync.Mutex
	news    *sync.Cond // applied or failed has changed
	values  map[string][]byte
	applied engine.Offset // all changes below it are in values
	failed  error         // what ended the reading of the log
}

const (
	positionsFile = "positions"
	cleaned       = "cleaned" // compaction has looked at everything below
)

// Open opens the store in a folder, or makes it, and reads it.
func Open(dir string, o Options) (*Store, error) {
	c := engine.DefaultConfig()
	c.Compact, c.Delete, c.RetentionAge, c.DeleteDelay = true, false, -1, 0
	c.SegmentBytes, c.IndexBytes = 1<<20, 16<<10
	if o.SegmentBytes > 0 {
		c.SegmentBytes = o.SegmentBytes
	}
	if o.KeyMemory == 0 {
		o.KeyMemory = 16 << 20
	}
	o.Log.Config = c
	log, err := engine.OpenLog(dir, o.Log)
	if err != nil {
		return nil, err
	}
	s := &Store{log: log, keys: o.KeyMemory, values: map[string][]byte{}}
	s.news = sync.NewCond(&s.mu)
	if s.positions, err = engine.OpenPositions(o.Log.FS, filepath.Join(dir, positionsFile)); err == nil {
		err = s.load()
	}
	if err != nil {
		return nil, errors.Join(err, log.Close())
	}
	ctx, stop := context.WithCancel(context.Background())
	s.stop = stop
	s.applying.Go(func() { s.follow(ctx, s.applied) }) // ends with ctx: Close
	return s, nil
}

// load reads what is there.
func (s *Store) load() error {
	if o, ok := s.positions.Get(cleaned); ok {
		s.log.SetFirstDirty(o)
	}
	end := s.log.End()
	for r, err := range s.log.Records(s.log.Start(), end) {
		if err != nil {
			return err
		}
		s.apply(r)
	}
	s.applied = end
	return nil
}

// follow applies changes in the order of the log, which is the same for all who read it.
func (s *Store) follow(ctx context.Context, from engine.Offset) {
	for r, err := range s.log.Tail(ctx, from) {
		s.mu.Lock()
		if err != nil {
			s.failed = errors.Join(engine.ErrClosed, err)
		} else {
			s.apply(r)
			s.applied = engine.Offset(r.Offset) + 1
		}
		s.mu.Unlock()
		s.news.Broadcast()
	}
}

func (s *Store) apply(r engine.Record) {
	if r.Value == nil {
		delete(s.values, string(r.Key))
		return
	}
	s.values[string(r.Key)] = r.Clone().Value
}

// Get returns a key's value, which must not be changed; ok is false if there is none.
func (s *Store) Get(key string) (value []byte, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	value, ok = s.values[key]
	return value, ok
}

// Put sets a key's value.
func (s *Store) Put(key string, value []byte) error {
	if value == nil {
		value = []byte{} // nil would delete
	}
	return s.change(engine.Record{Key: []byte(key), Value: value})
}

// Delete removes a key. That there was one is forgotten a day later, by compaction.
func (s *Store) Delete(key string) error { return s.change(engine.Record{Key: []byte(key)}) }

func (s *Store) change(r engine.Record) error {
	o, err := s.log.AppendRecords(r)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.applied <= o && s.failed == nil {
		s.news.Wait()
	}
	if s.applied <= o {
		return s.failed
	}
	return nil
}

// Snapshot returns all keys and values, and the position from which Watch tells what came after.
func (s *Store) Snapshot() (map[string][]byte, engine.Offset) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.values), s.applied
}

// Watch iterates over changes from a position on and waits for more until ctx ends. Changes that newer ones have replaced may
// be left out. A record with a nil value is a Delete; records are valid until the next step.
func (s *Store) Watch(ctx context.Context, from engine.Offset) iter.Seq2[engine.Record, error] {
	return s.log.Tail(ctx, from)
}

// Compact drops changes that newer ones have replaced, when they are likely to be half of the closed files or more.
// It runs beside everything else and may be called as often as one likes, say once a minute.
func (s *Store) Compact() error {
	now := time.Now()
	dirt, err := s.log.Dirt(now)
	if err != nil || dirt.Ratio() < 0.5 && !dirt.Expired {
		return err
	}
	r, err := s.log.Clean(engine.Cleaning{Keys: compact.NewMap(s.keys), Now: now})
	if err != nil || r.NothingDirty {
		return err
	}
	return s.positions.Set(cleaned, r.To)
}

// Metrics are the figures of the log.
func (s *Store) Metrics() engine.Metrics { return s.log.Metrics() }

// Close ends the use of the store.
func (s *Store) Close() error {
	s.stop()
	s.applying.Wait()
	return s.log.Close()
}
