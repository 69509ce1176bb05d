// Package raftlog stores the log and the votes of hashicorp/raft with engine: a
// raft.LogStore, raft.MonotonicLogStore and raft.StableStore.
//
// An entry's index is its offset. Each entry is a batch of its own, because a
// truncation cuts between batches; what StoreLogs is given is still written with one
// call and made durable by one sync. Votes and terms are keys of a kvstore.
package raftlog

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"sync"
	"time"

	"github.com/hashicorp/raft"

	"millrace/engine"
	"millrace/engine/batch"
	"millrace/engine/examples/kvstore"
)

// Options of a store; zero values are usable.
type Options struct {
	SegmentBytes int64             // size of a file; an entry must fit; 0: 64 MiB
	Log          engine.LogOptions // its Config is the store's business
}

// Store is what raft.NewRaft takes as log store and as stable store.
type Store struct {
	log    *engine.Log
	stable *kvstore.Store
	mu     sync.Mutex // one change of the log at a time: an index is checked, then used
}

var (
	_ raft.LogStore          = (*Store)(nil)
	_ raft.MonotonicLogStore = (*Store)(nil)
	_ raft.StableStore       = (*Store)(nil)
)

// Open opens the store in a folder, or makes it.
func Open(dir string, o Options) (*Store, error) {
	stable, err := kvstore.Open(filepath.Join(dir, "stable"), kvstore.Options{Log: o.Log})
	if err != nil {
		return nil, err
	}
	c := engine.DefaultConfig()
	c.Delete, c.RetentionAge, c.DeleteDelay = false, -1, 0 // entries go when raft says so, and only then
	c.SegmentBytes, c.IndexBytes = 64<<20, 256<<10
	if o.SegmentBytes > 0 {
		c.SegmentBytes = o.SegmentBytes
	}
	o.Log.Config = c
	log, err := engine.OpenLog(filepath.Join(dir, "log"), o.Log)
	if err != nil {
		return nil, errors.Join(err, stable.Close())
	}
	return &Store{log: log, stable: stable}, nil
}

// Close ends the use of the store.
func (s *Store) Close() error { return errors.Join(s.log.Close(), s.stable.Close()) }

// Metrics are the figures of the log.
func (s *Store) Metrics() engine.Metrics { return s.log.Metrics() }

// IsMonotonic tells raft to empty the log rather than to leave a gap in it.
func (s *Store) IsMonotonic() bool { return true }

// FirstIndex is the index of the oldest entry, 0 if there is none.
func (s *Store) FirstIndex() (uint64, error) {
	first, last := s.log.Start(), s.log.End()
	if first == last {
		return 0, nil
	}
	return uint64(first), nil
}

// LastIndex is the index of the newest entry, 0 if there is none.
func (s *Store) LastIndex() (uint64, error) {
	first, last := s.log.Start(), s.log.End()
	if first == last {
		return 0, nil
	}
	return uint64(last - 1), nil
}

// GetLog reads one entry. raft.ErrLogNotFound if it is not there.
func (s *Store) GetLog(index uint64, entry *raft.Log) error {
	if index > math.MaxInt64 {
		return raft.ErrLogNotFound
	}
	r, err := s.log.Get(engine.Offset(index))
	if errors.Is(err, engine.ErrOutOfRange) {
		return raft.ErrLogNotFound
	}
	if err != nil {
		return err
	}
	return decode(r, entry)
}

// StoreLog stores one entry, as StoreLogs does.
func (s *Store) StoreLog(entry *raft.Log) error { return s.StoreLogs([]*raft.Log{entry}) }

// StoreLogs appends entries, whose indexes follow one another and the newest entry's; in an empty log they may begin
// anywhere. It returns when they survive a loss of power. After an error none of them is there, unless the disk
// has failed altogether.
func (s *Store) StoreLogs(entries []*raft.Log) error {
	if len(entries) == 0 {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	appends := make([]*engine.Append, len(entries))
	first := engine.Offset(entries[0].Index)
	for i, e := range entries {
		if e.Index != uint64(first)+uint64(i) || e.Index > math.MaxInt64 {
			return fmt.Errorf("raftlog: index %d is number %d behind %d", e.Index, i, first)
		}
		var err error
		if appends[i], err = s.log.NewAppend(batch.None, encode(e)); err != nil {
			return fmt.Errorf("raftlog: index %d: %w", e.Index, err)
		}
	}
	if end := s.log.End(); first != end {
		if end != s.log.Start() {
			return fmt.Errorf("raftlog: index %d does not follow %d", first, end-1)
		}
		if err := s.log.ResetTo(first); err != nil {
			return err
		}
	}
	if err := s.append(appends); err != nil {
		return errors.Join(err, s.log.TruncateTo(first))
	}
	return nil
}

// append writes all with one call and waits for one sync.
func (s *Store) append(appends []*engine.Append) error {
	for _, a := range appends {
		s.log.Enqueue(a, engine.NoEpoch)
	}
	var failed error
	for _, a := range appends {
		failed = errors.Join(failed, s.log.Write(a))
	}
	for _, a := range appends {
		failed = errors.Join(failed, a.Wait())
	}
	return failed
}

// DeleteRange removes the entries from low to high, both included: the oldest, the newest, or all. It is durable when
// it returns. Entries that are not there are no error.
func (s *Store) DeleteRange(low, high uint64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	first, end := uint64(s.log.Start()), uint64(s.log.End())
	switch {
	case low > high || high < first || low >= end:
		return nil
	case low <= first && high >= end-1:
		return s.log.ResetTo(engine.Offset(end))
	case low <= first:
		if err := s.log.SetStart(engine.Offset(high + 1)); err != nil {
			return err
		}
		_, err := s.log.Retain(time.Now()) // gives back whole segments
		return err
	case high >= end-1:
		return s.log.TruncateTo(engine.Offset(low))
	}
	return fmt.Errorf("raftlog: [%d, %d] lies in the middle of [%d, %d)", low, high, first, end)
}

// encode makes a record of an entry: its data is the value, what is of fixed size the key, its extensions a header.
func encode(e *raft.Log) engine.Record {
	k := binary.BigEndian.AppendUint64(make([]byte, 0, keySize), e.Term)
	k = append(k, byte(e.Type))
	at := int64(math.MinInt64) // the zero time
	if !e.AppendedAt.IsZero() {
		at = e.AppendedAt.UnixNano()
	}
	r := engine.Record{Timestamp: -1, Key: binary.BigEndian.AppendUint64(k, uint64(at)), Value: e.Data}
	if e.Extensions != nil {
		r.Headers = []engine.Header{{Key: "extensions", Value: e.Extensions}}
	}
	return r
}

const keySize = 17 // term, type, time

func decode(r engine.Record, e *raft.Log) error {
	if len(r.Key) != keySize {
		return fmt.Errorf("raftlog: index %d: a key of %d bytes is no entry's", r.Offset, len(r.Key))
	}
	*e = raft.Log{Index: uint64(r.Offset), Term: binary.BigEndian.Uint64(r.Key), Type: raft.LogType(r.Key[8]), Data: r.Value}
	if at := int64(binary.BigEndian.Uint64(r.Key[9:])); at != math.MinInt64 {
		e.AppendedAt = time.Unix(0, at)
	}
	for _, h := range r.Headers {
		e.Extensions = h.Value
	}
	return nil
}

// Set stores a value under a key, durably.
func (s *Store) Set(key, value []byte) error {
	if err := s.stable.Put(string(key), value); err != nil {
		return err
	}
	return s.stable.Compact()
}

// Get returns the value of a key; nil if there is none.
func (s *Store) Get(key []byte) ([]byte, error) {
	v, _ := s.stable.Get(string(key))
	return v, nil
}

// SetUint64 is Set for a number.
func (s *Store) SetUint64(key []byte, n uint64) error {
	return s.Set(key, binary.BigEndian.AppendUint64(nil, n))
}

// GetUint64 returns the number of a key; 0 if there is none.
func (s *Store) GetUint64(key []byte) (uint64, error) {
	v, ok := s.stable.Get(string(key))
	if !ok {
		return 0, nil
	}
	if len(v) != 8 {
		return 0, fmt.Errorf("raftlog: the value of %s is no number: %d bytes", key, len(v))
	}
	return binary.BigEndian.Uint64(v), nil
}
