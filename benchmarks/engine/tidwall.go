package main

import (
	"path/filepath"
	"strconv"

	"github.com/tidwall/wal"
)

// tidwall/wal: an entry is its length and its bytes, without a checksum. The segment that is written is kept in memory as well, and
// reads are answered from there; a closed segment is read whole into a cache of two.
var tidwallPeer = peer{name: "tidwall/wal", module: "github.com/tidwall/wal", open: openTidwall}

type tidwallStore struct{ logs []*tidwallLog }

type tidwallLog struct {
	wal *wal.Log
	combiner
	next  uint64
	batch wal.Batch
}

func openTidwall(dir string, o options) (store, error) {
	logs, err := openAll(o.logs, func(i int) (*tidwallLog, error) {
		w, err := wal.Open(filepath.Join(dir, strconv.Itoa(i)), &wal.Options{NoSync: !o.synced, SegmentSize: wal.DefaultOptions.SegmentSize,
			SegmentCacheSize: wal.DefaultOptions.SegmentCacheSize, NoCopy: true, DirPerms: 0o755, FilePerms: 0o644})
		if err != nil {
			return nil, err
		}
		last, err := w.LastIndex()
		l := &tidwallLog{wal: w, next: last + 1}
		l.alone, l.flush = o.writers == 1, l.write
		return l, err
	})
	return &tidwallStore{logs}, err
}

func (l *tidwallLog) write(records [][]byte) error {
	l.batch.Clear()
	for i, r := range records {
		l.batch.Write(l.next+uint64(i), r)
	}
	if err := l.wal.WriteBatch(&l.batch); err != nil {
		return err
	}
	l.next += uint64(len(records))
	return nil
}

func (l *tidwallLog) close() error { return l.wal.Close() }

func (s *tidwallStore) writer() func(int, [][]byte) error {
	return func(log int, records [][]byte) error { return s.logs[log].append(log, records) }
}

func (s *tidwallStore) scan(log int, each func([]byte) error) error {
	l := s.logs[log]
	return tidwallReader{l.wal}.read(0, int(l.next-1), each)
}

func (s *tidwallStore) reader(bool) (reader, error) { return tidwallReader{s.logs[0].wal}, nil }
func (s *tidwallStore) close() error                { return closeAll(s.logs) }

type tidwallReader struct{ wal *wal.Log }

func (r tidwallReader) read(first int64, n int, each func([]byte) error) error {
	for i := range n {
		data, err := r.wal.Read(uint64(first) + uint64(i) + 1)
		if err != nil {
			return err
		}
		if err := each(data); err != nil {
			return err
		}
	}
	return nil
}

func (r tidwallReader) close() error { return nil }
