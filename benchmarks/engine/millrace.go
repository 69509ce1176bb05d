package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"millrace/engine"
	"millrace/engine/batch"
)

// Millrace: a Store whose logs share one commit journal. Synced rows wait for the journal, unsynced rows for the page cache. The records of an
// append are one batch. Readers check the checksum of every batch that they hand out records of.
var millracePeer = peer{name: "millrace", module: "millrace", open: openMillrace}

type millrace struct {
	store *engine.Store
	logs  []*engine.Log
}

func openMillrace(dir string, o options) (store, error) {
	c := engine.DefaultConfig()
	if !o.synced {
		c.Durability = engine.PageCache
	}
	s, err := engine.OpenStore(context.Background(), engine.StoreOptions{Dirs: []string{filepath.Join(dir, "store")}, Defaults: c,
		Logger: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError}))})
	if err != nil {
		return nil, err
	}
	m := &millrace{store: s}
	spec := engine.LogSpec{Topic: "bench", TopicID: [16]byte{1}, New: s.Log("bench", 0) == nil}
	for i := range o.logs {
		spec.Partitions = append(spec.Partitions, int32(i))
	}
	if err := s.Create(spec); err != nil {
		return nil, errors.Join(err, m.close())
	}
	for i := range o.logs {
		m.logs = append(m.logs, s.Log("bench", int32(i)))
	}
	return m, nil
}

// settle waits until the journal has the files that it makes once, when it is first used: they are written in the background beside the
// first appends, and afterwards used again and again.
func (m *millrace) settle() {
	files, since := -1, time.Now()
	for begun := time.Now(); time.Since(begun) < 5*time.Second && time.Since(since) < 300*time.Millisecond; time.Sleep(10 * time.Millisecond) {
		for _, j := range m.store.JournalStats() {
			if now := j.Files*100 + j.FreeFiles*10 + j.SealedFiles; now != files {
				files, since = now, time.Now()
			}
		}
	}
}

func (m *millrace) writer() func(int, [][]byte) error {
	var list []engine.Record
	return func(log int, records [][]byte) error {
		list = list[:0]
		for _, r := range records {
			list = append(list, engine.Record{Value: r})
		}
		_, err := m.logs[log].AppendRecords(list...)
		return err
	}
}

func (m *millrace) scan(log int, each func([]byte) error) error {
	l := m.logs[log]
	for r, err := range l.Records(l.Start(), l.End()) {
		if err != nil {
			return err
		}
		if err := each(r.Value); err != nil {
			return err
		}
	}
	return nil
}

func (m *millrace) reader(random bool) (reader, error) {
	l := m.logs[0]
	if random {
		return millraceGetter{l}, nil
	}
	return &millraceTail{l.NewReader(l.End())}, nil
}

func (m *millrace) close() error { return m.store.Close(context.Background()) }

// millraceGetter gets one record at a time.
type millraceGetter struct{ log *engine.Log }

func (g millraceGetter) read(first int64, n int, each func([]byte) error) error {
	for i := range n {
		r, err := g.log.Get(engine.Offset(first) + engine.Offset(i))
		if err != nil {
			return err
		}
		if err := each(r.Value); err != nil {
			return err
		}
	}
	return nil
}

func (millraceGetter) close() error { return nil }

// millraceTail follows the log.
type millraceTail struct{ r *engine.Reader }

func (t *millraceTail) read(first int64, n int, each func([]byte) error) error {
	for at := first; at < first+int64(n); {
		data, err := t.r.Next(context.Background())
		if err != nil {
			return err
		}
		for r, err := range batch.Records(data) {
			if err != nil {
				return err
			}
			if r.Offset != at {
				return fmt.Errorf("offset %d, want %d", r.Offset, at)
			}
			if err := each(r.Value); err != nil {
				return err
			}
			at++
		}
	}
	return nil
}

func (*millraceTail) close() error { return nil }
