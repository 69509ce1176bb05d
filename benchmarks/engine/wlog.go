package main

import (
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"

	"github.com/prometheus/prometheus/tsdb/wlog"
	"github.com/prometheus/prometheus/util/compression"
)

// Prometheus' wlog: Log writes pages, one write a call; Prometheus itself never waits for a sync, so synced rows call Sync after each Log, which
// covers the segment in use only. It must be read from start to end before it is appended to again. A LiveReader follows it.
var wlogPeer = peer{name: "prometheus wlog", module: "github.com/prometheus/prometheus", open: openWlog, random: "records have no numbers"}

type wlogStore struct {
	dir  string
	logs []*wlogLog
}

type wlogLog struct {
	wal *wlog.WL
	combiner
	synced bool
}

func openWlog(dir string, o options) (store, error) {
	s := &wlogStore{dir: dir}
	var err error
	s.logs, err = openAll(o.logs, func(i int) (*wlogLog, error) {
		path := s.path(i)
		_, statErr := os.Stat(path)
		w, err := wlog.New(slog.New(slog.DiscardHandler), nil, path, compression.None)
		if err != nil {
			return nil, err
		}
		l := &wlogLog{wal: w, synced: o.synced}
		l.alone, l.flush = o.writers == 1, l.log
		if statErr == nil {
			err = replayWlog(w, path)
		}
		return l, err
	})
	return s, err
}

// replayWlog does what its documentation demands of an opening: read all, and repair behind the last whole record.
func replayWlog(w *wlog.WL, path string) error {
	err := readWlog(path, func([]byte) error { return nil })
	var damage *wlog.CorruptionErr
	if errors.As(err, &damage) {
		return w.Repair(err)
	}
	return err
}

func readWlog(path string, each func([]byte) error) error {
	r, err := wlog.NewSegmentsReader(path)
	if err != nil {
		return err
	}
	defer r.Close()
	records := wlog.NewReader(r)
	for records.Next() {
		if err := each(records.Record()); err != nil {
			return err
		}
	}
	return records.Err()
}

func (s *wlogStore) path(i int) string { return filepath.Join(s.dir, strconv.Itoa(i)) }

func (l *wlogLog) log(records [][]byte) error {
	if err := l.wal.Log(records...); err != nil || !l.synced {
		return err
	}
	return l.wal.Sync()
}

func (l *wlogLog) close() error { return l.wal.Close() }

func (s *wlogStore) writer() func(int, [][]byte) error {
	return func(log int, records [][]byte) error { return s.logs[log].append(log, records) }
}

func (s *wlogStore) scan(log int, each func([]byte) error) error { return readWlog(s.path(log), each) }
func (s *wlogStore) close() error                                { return closeAll(s.logs) }

func (s *wlogStore) reader(bool) (reader, error) {
	f := &wlogFollower{path: s.path(0)}
	_, last, err := wlog.Segments(f.path)
	if err == nil {
		err = f.next(last)
	}
	if err != nil {
		return nil, err
	}
	for f.live.Next() { // to the end
	}
	if err := f.live.Err(); err != nil && !errors.Is(err, io.EOF) {
		return nil, errors.Join(err, f.close())
	}
	return f, nil
}

// wlogFollower reads the segments in order with a LiveReader, as Prometheus' remote write does.
type wlogFollower struct {
	path    string
	at      int
	segment *wlog.Segment
	live    *wlog.LiveReader
}

func (f *wlogFollower) next(segment int) error {
	if f.segment != nil {
		f.segment.Close()
	}
	var err error
	f.at = segment
	if f.segment, err = wlog.OpenReadSegment(wlog.SegmentName(f.path, segment)); err == nil {
		f.live = wlog.NewLiveReader(slog.New(slog.DiscardHandler), wlog.NewLiveReaderMetrics(nil), f.segment)
	}
	return err
}

func (f *wlogFollower) read(_ int64, n int, each func([]byte) error) error {
	for range n {
		for !f.live.Next() {
			if err := f.live.Err(); err != nil && !errors.Is(err, io.EOF) {
				return err
			}
			if err := f.next(f.at + 1); err != nil { // the record is there, so the segment must be over
				return err
			}
		}
		if err := each(f.live.Record()); err != nil {
			return err
		}
	}
	return nil
}

func (f *wlogFollower) close() error { return f.segment.Close() }
