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

// Millrace: a Store whose logs share one commit journal. Synced rows wait for the journal, unsynced rows for the page cache. The batch is
// built from the records and checked inside the measured time, as the others encode theirs.
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
	b := batch.NewBuilder(batch.None, 0)
	var a engine.Append
	return func(log int, records [][]byte) error {
		b.Reset()
		now := time.Now().UnixMilli()
		for _, r := range records {
			if err := b.Add(batch.Record{Timestamp: now, Value: r}); err != nil {
				return err
			}
		}
		a.Batch = b.Bytes()
		var err error
		if a.Info, err = batch.Check(a.Batch, &batch.Rules{}); err != nil {
			return err
		}
		return m.logs[log].Append(&a, engine.NoEpoch)
	}
}

func (m *millrace) scan(log int, each func([]byte) error) error {
	l := m.logs[log]
	r := &millraceReader{log: l, most: 1 << 20}
	for at := l.Start(); at < l.End(); {
		n, err := r.batches(at, l.End(), each)
		if err != nil {
			return err
		}
		at = n
	}
	return nil
}

func (m *millrace) reader() (reader, error) { return &millraceReader{log: m.logs[0], most: 1}, nil }

func (m *millrace) close() error { return m.store.Close(context.Background()) }

type millraceReader struct {
	log  *engine.Log
	most int // bytes wanted; the first batch comes whole in any case
	buf  []byte
}

// batches reads once and hands out the records of [from, to); it returns the offset to go on with.
func (r *millraceReader) batches(from, to engine.Offset, each func([]byte) error) (engine.Offset, error) {
	s, err := r.log.Read(from, r.most, r.log.End(), true)
	if err != nil {
		return from, err
	}
	defer s.Release()
	if cap(r.buf) < s.Size() {
		r.buf = make([]byte, s.Size())
	}
	r.buf = r.buf[:s.Size()]
	if err := s.ReadInto(r.buf); err != nil {
		return from, err
	}
	at := from
	for rec, err := range batch.Records(r.buf) {
		if errors.Is(err, batch.ErrShort) || at >= to {
			break
		}
		if err != nil {
			return at, err
		}
		if engine.Offset(rec.Offset) < at {
			continue
		}
		if err := each(rec.Value); err != nil {
			return at, err
		}
		at = engine.Offset(rec.Offset) + 1
	}
	if at == from {
		return at, fmt.Errorf("nothing at offset %d", from)
	}
	return at, nil
}

func (r *millraceReader) read(first int64, n int, each func([]byte) error) error {
	for at, to := engine.Offset(first), engine.Offset(first)+engine.Offset(n); at < to; {
		var err error
		if at, err = r.batches(at, to, each); err != nil {
			return err
		}
	}
	return nil
}

func (r *millraceReader) close() error { return nil }
