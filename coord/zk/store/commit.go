package store

import (
	"errors"
	"fmt"
	"time"

	"millrace/coord/zk/proto"
	"millrace/coord/zk/tree"
	"millrace/engine"
	"millrace/engine/batch"
)

// Commit makes txns durable, applies them in order and calls answer for each, with the
// tree held: what answer hands to a connection's queue comes before any read that could
// see the change (C3). It gives them their zxids, which follow those before. All of them
// share a sync, so whoever has many requests commits them together.
//
// It returns how many were applied. If that is fewer than there are, the others were not
// stored and the error says whether to try again (package comment).
func (s *Store) Commit(txns []tree.Txn, answer func(i int, res proto.Result, events []tree.Event)) (int, error) {
	done := 0
	for done < len(txns) {
		if s.commit.failed != nil {
			return done, s.commit.failed
		}
		n, err := s.commitGroup(txns[done:], func(i int, res proto.Result, events []tree.Event) { answer(done+i, res, events) })
		if err != nil {
			if !errors.Is(err, engine.ErrStorage) {
				s.commit.failed = err
			}
			return done, err
		}
		done += n
	}
	s.maybeSnapshot()
	return done, nil
}

// commitGroup commits as many of txns as one batch takes.
func (s *Store) commitGroup(txns []tree.Txn, answer func(int, proto.Result, []tree.Event)) (int, error) {
	c := &s.commit
	zxid := s.zxid()
	c.builder.Reset()
	n := 0
	for n < len(txns) && n < groupTxns && (n == 0 || c.builder.Size() < groupBytes) {
		x := &txns[n]
		x.Zxid = zxid + int64(n) + 1
		c.buf = tree.AppendTxn(c.buf[:0], x)
		if err := c.builder.Add(batch.Record{Timestamp: x.Time, Value: c.buf}); err != nil {
			return 0, fmt.Errorf("transaction 0x%x: %w", x.Zxid, err)
		}
		n++
	}
	size, begun := c.builder.Size(), time.Now()
	if err := s.append(c.builder.Bytes()); err != nil {
		return 0, err
	}
	s.stats.stored(n, time.Since(begun))
	c.next += int64(n)
	c.txns += n
	c.bytes += int64(size)
	if cap(c.buf) > groupBytes {
		c.buf = nil // one huge transaction is no reason to keep its memory
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var events []tree.Event
	for i := range txns[:n] {
		var res proto.Result
		res, events = s.tree.Apply(&txns[i], events[:0])
		answer(i, res, events)
	}
	return n, nil
}

// zxid is the tree's; the one caller of Commit is the only one that changes it.
func (s *Store) zxid() int64 {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.tree.Zxid()
}

// append returns when the batch has survived a sync.
func (s *Store) append(b []byte) error {
	a := engine.Append{Batch: b}
	var err error
	if a.Info, err = batch.Check(b, &batch.Rules{}); err != nil {
		return err
	}
	if err := s.log.Append(&a, engine.NoEpoch); err != nil {
		return err
	}
	if int64(a.Base) != s.commit.next {
		panic(fmt.Sprintf("zookeeper store: C2: transactions at offset %d, expected at %d: somebody else appends to %s", a.Base, s.commit.next, s.log.Dir()))
	}
	return nil
}

// Failed is why the store takes no more commits, or nil. It is for the one caller of Commit.
func (s *Store) Failed() error { return s.commit.failed }
