package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2/record"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/wal"
)

// pebble's wal: one record a batch, as the database writes its batches. It has its own group commit (a queue of those that wait for the sync). Without a
// sync a record is acknowledged in the memory of the process, and a goroutine writes it later: a crash of the process loses it. It is read only
// after it was closed or has crashed, from end to end; opening means reading all of it, and a new file is begun. A record begins with the 12 bytes
// of a batch of the database (sequence number, count), by which the reader drops repetitions.
var pebblePeer = peer{name: "pebble wal", module: "github.com/cockroachdb/pebble/v2", open: openPebble,
	random: "read only from end to end", tail: "read only after it was closed",
	weaker: "acknowledged records may still be in the process's memory"}

type pebbleStore struct {
	dir  string
	logs []*pebbleLog
}

type pebbleLog struct {
	dir     string
	synced  bool
	segment int64
	queue   chan struct{}
	manager wal.Manager

	mu       sync.Mutex
	number   wal.NumWAL
	w        wal.Writer
	size     int64
	sequence uint64
}

func openPebble(dir string, o options) (store, error) {
	s := &pebbleStore{dir: dir}
	var err error
	s.logs, err = openAll(o.logs, func(i int) (*pebbleLog, error) {
		l := &pebbleLog{dir: filepath.Join(dir, strconv.Itoa(i)), synced: o.synced, segment: int64(o.segmentBytes()), queue: make(chan struct{}, record.SyncConcurrency), sequence: 1}
		return l, l.open()
	})
	return s, err
}

func (l *pebbleLog) open() error {
	if err := os.MkdirAll(l.dir, 0o755); err != nil {
		return err
	}
	old, err := wal.Scan(wal.Dir{FS: vfs.Default, Dirname: l.dir})
	if err != nil {
		return err
	}
	for _, log := range old {
		if err := readPebble(log, func([]byte) error { return nil }); err != nil {
			return err
		}
		l.number = log.Num
	}
	l.manager, err = wal.Init(wal.Options{
		Primary: wal.Dir{FS: vfs.Default, Dirname: l.dir}, QueueSemChan: l.queue,
		PreallocateSize:     func() int { return int(l.segment) },
		MinSyncInterval:     func() time.Duration { return 0 },
		WriteWALSyncOffsets: func() bool { return true },
		EventListener:       silent{},
	}, old)
	if err != nil {
		return err
	}
	l.number++
	l.w, err = l.manager.Create(l.number, 0)
	return err
}

// silent listens to nothing; the package insists on a listener.
type silent struct{}

func (silent) LogCreated(wal.CreateInfo) {}

func (s *pebbleStore) writer() func(int, [][]byte) error {
	var payload []byte
	var done sync.WaitGroup
	return func(log int, records [][]byte) error {
		payload = binary.LittleEndian.AppendUint32(append(payload[:0], make([]byte, 8)...), uint32(len(records)))
		for _, r := range records {
			payload = append(binary.AppendUvarint(payload, uint64(len(r))), r...)
		}
		return s.logs[log].append(payload, &done)
	}
}

func (l *pebbleLog) append(payload []byte, done *sync.WaitGroup) error {
	var failed error
	var o wal.SyncOptions
	if l.synced {
		l.queue <- struct{}{}
		done.Add(1)
		o = wal.SyncOptions{Done: done, Err: &failed}
	}
	l.mu.Lock()
	err := l.roll()
	if err == nil {
		binary.LittleEndian.PutUint64(payload, l.sequence)
		l.sequence += uint64(binary.LittleEndian.Uint32(payload[8:]))
		l.size, err = l.w.WriteRecord(payload, o, nil)
	}
	l.mu.Unlock()
	if err != nil {
		return err
	}
	done.Wait()
	return failed
}

func (l *pebbleLog) roll() error {
	if l.size < l.segment {
		return nil
	}
	if _, err := l.w.Close(); err != nil {
		return err
	}
	var err error
	l.number++
	l.w, err = l.manager.Create(l.number, 0)
	return err
}

func (l *pebbleLog) close() error {
	var err error
	if l.w != nil {
		_, err = l.w.Close()
		l.w = nil
	}
	return errors.Join(err, l.manager.Close())
}

// scan ends the log's use for writing first: only then is all of it in the file.
func (s *pebbleStore) scan(log int, each func([]byte) error) error {
	l := s.logs[log]
	if l.w != nil {
		if _, err := l.w.Close(); err != nil {
			return err
		}
		l.w = nil
	}
	logs, err := wal.Scan(wal.Dir{FS: vfs.Default, Dirname: l.dir})
	if err != nil {
		return err
	}
	for _, log := range logs {
		if err := readPebble(log, each); err != nil {
			return err
		}
	}
	return nil
}

const batchHeader = 12

func readPebble(log wal.LogicalLog, each func([]byte) error) error {
	r := log.OpenForRead()
	defer r.Close()
	var buf []byte
	for {
		in, _, err := r.NextRecord()
		if errors.Is(err, io.EOF) || record.IsInvalidRecord(err) {
			return nil
		}
		if err != nil {
			return err
		}
		if buf, err = readInto(buf[:0], in); errors.Is(err, io.EOF) || record.IsInvalidRecord(err) {
			return nil // torn
		} else if err != nil {
			return err
		}
		for b := buf[batchHeader:]; len(b) > 0; {
			size, n := binary.Uvarint(b)
			if n <= 0 || size > uint64(len(b)-n) {
				return fmt.Errorf("pebble: a record of %d bytes is not what was written", len(buf))
			}
			if err := each(b[n : n+int(size)]); err != nil {
				return err
			}
			b = b[n+int(size):]
		}
	}
}

// readInto is io.ReadAll into memory that is used again.
func readInto(b []byte, r io.Reader) ([]byte, error) {
	for {
		if len(b) == cap(b) {
			b = append(b, 0)[:len(b)]
		}
		n, err := r.Read(b[len(b):cap(b)])
		b = b[:len(b)+n]
		if err == io.EOF {
			return b, nil
		}
		if err != nil {
			return b, err
		}
	}
}

func (s *pebbleStore) reader(bool) (reader, error) { return nil, nil }
func (s *pebbleStore) close() error                { return closeAll(s.logs) }
