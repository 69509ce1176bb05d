package main

import (
	"os"
	"path/filepath"
	"strconv"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
	raftwal "github.com/hashicorp/raft-wal"
)

// hashicorp/raft-wal: StoreLogs syncs every call; there is no other mode. It reserves its segments.
var raftwalPeer = peer{name: "raft-wal", module: "github.com/hashicorp/raft-wal", open: openRaftWAL,
	unsynced: "every StoreLogs syncs"}

type raftWAL struct{ logs []*raftLog }

type raftLog struct {
	wal *raftwal.WAL
	combiner
	next    uint64
	entries []raft.Log
	list    []*raft.Log
}

func openRaftWAL(dir string, o options) (store, error) {
	logs, err := openAll(o.logs, func(i int) (*raftLog, error) {
		path := filepath.Join(dir, strconv.Itoa(i))
		if err := os.MkdirAll(path, 0o755); err != nil {
			return nil, err
		}
		w, err := raftwal.Open(path, raftwal.WithSegmentSize(o.segmentBytes()), raftwal.WithLogger(hclog.NewNullLogger()))
		if err != nil {
			return nil, err
		}
		last, err := w.LastIndex()
		l := &raftLog{wal: w, next: last + 1}
		l.alone, l.flush = o.writers == 1, l.store
		return l, err
	})
	return &raftWAL{logs}, err
}

func (l *raftLog) store(records [][]byte) error {
	for len(l.entries) < len(records) {
		l.entries = make([]raft.Log, max(len(records), 2*len(l.entries)))
		l.list = nil
		for i := range l.entries {
			l.list = append(l.list, &l.entries[i])
		}
	}
	for i, r := range records {
		l.entries[i] = raft.Log{Index: l.next + uint64(i), Term: 1, Data: r}
	}
	if err := l.wal.StoreLogs(l.list[:len(records)]); err != nil {
		return err
	}
	l.next += uint64(len(records))
	return nil
}

func (l *raftLog) close() error { return l.wal.Close() }

func (s *raftWAL) writer() func(int, [][]byte) error {
	return func(log int, records [][]byte) error { return s.logs[log].append(log, records) }
}

func (s *raftWAL) scan(log int, each func([]byte) error) error {
	l := s.logs[log]
	return (&raftReader{wal: l.wal}).read(0, int(l.next-1), each)
}

func (s *raftWAL) reader(bool) (reader, error) { return &raftReader{wal: s.logs[0].wal}, nil }
func (s *raftWAL) close() error                { return closeAll(s.logs) }

type raftReader struct {
	wal *raftwal.WAL
	log raft.Log
}

func (r *raftReader) read(first int64, n int, each func([]byte) error) error {
	for i := range n {
		if err := r.wal.GetLog(uint64(first)+uint64(i)+1, &r.log); err != nil {
			return err
		}
		if err := each(r.log.Data); err != nil {
			return err
		}
	}
	return nil
}

func (r *raftReader) close() error { return nil }
