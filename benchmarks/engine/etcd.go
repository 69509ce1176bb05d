package main

import (
	"errors"
	"path/filepath"
	"strconv"

	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.etcd.io/etcd/server/v3/storage/wal/walpb"
	"go.etcd.io/raft/v3/raftpb"
	"go.uber.org/zap"
)

// etcd's wal: Save writes the entries of one round of raft and syncs (fdatasync), or with SetUnsafeNoFsync only writes. It is read once, from one end
// to the other, when it is opened; opening means reading all of it. It reserves its segments, and the next one beside each.
var etcdPeer = peer{name: "etcd wal", module: "go.etcd.io/etcd/server/v3", open: openEtcd,
	random: "no reading but ReadAll when it is opened", tail: "no reading but ReadAll when it is opened"}

type etcdStore struct {
	dir  string
	logs []*etcdLog
}

type etcdLog struct {
	wal *wal.WAL
	combiner
	next    uint64
	entries []*raftpb.Entry
}

func openEtcd(dir string, o options) (store, error) {
	wal.SegmentSizeBytes = int64(o.segmentBytes())
	s := &etcdStore{dir: dir}
	var err error
	s.logs, err = openAll(o.logs, func(i int) (*etcdLog, error) {
		l := &etcdLog{next: 1}
		l.alone, l.flush = o.writers == 1, l.save
		if path := s.path(i); wal.Exist(path) {
			if l.wal, err = wal.Open(zap.NewNop(), path, &walpb.Snapshot{}); err != nil {
				return nil, err
			}
			_, _, entries, err := l.wal.ReadAll()
			if err != nil {
				return nil, errors.Join(err, l.wal.Close())
			}
			l.next += uint64(len(entries))
		} else if l.wal, err = wal.Create(zap.NewNop(), path, nil); err != nil {
			return nil, err
		}
		if !o.synced {
			l.wal.SetUnsafeNoFsync()
		}
		return l, nil
	})
	return s, err
}

func (s *etcdStore) path(i int) string { return filepath.Join(s.dir, strconv.Itoa(i)) }

var etcdTerm = uint64(1)

func (l *etcdLog) save(records [][]byte) error {
	for len(l.entries) < len(records) {
		l.entries = append(l.entries, &raftpb.Entry{Term: &etcdTerm, Index: new(uint64)})
	}
	for i, r := range records {
		*l.entries[i].Index = l.next + uint64(i)
		l.entries[i].Data = r
	}
	if err := l.wal.Save(nil, l.entries[:len(records)]); err != nil {
		return err
	}
	l.next += uint64(len(records))
	return nil
}

func (l *etcdLog) close() error { return l.wal.Close() }

func (s *etcdStore) writer() func(int, [][]byte) error {
	return func(log int, records [][]byte) error { return s.logs[log].append(log, records) }
}

// scan reads beside the open log what Save has written to its file.
func (s *etcdStore) scan(log int, each func([]byte) error) error {
	w, err := wal.OpenForRead(zap.NewNop(), s.path(log), &walpb.Snapshot{})
	if err != nil {
		return err
	}
	defer w.Close()
	_, _, entries, err := w.ReadAll()
	if err != nil {
		return err
	}
	for _, e := range entries {
		if err := each(e.Data); err != nil {
			return err
		}
	}
	return nil
}

func (s *etcdStore) reader(bool) (reader, error) { return nil, nil }
func (s *etcdStore) close() error                { return closeAll(s.logs) }
