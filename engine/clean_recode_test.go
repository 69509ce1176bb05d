package engine

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"millrace/engine/batch"
	"millrace/engine/vfs/faultfs"
)

// batchOnDisk is a batch as it lies in a segment.
type batchOnDisk struct {
	segment Offset
	bytes   []byte
}

func batchesOnDisk(t logTB, l *Log) (all []batchOnDisk) {
	t.Helper()
	for _, s := range *l.segments.Load() {
		f, err := s.file()
		if err != nil {
			t.Fatalf("%v", err)
		}
		data := make([]byte, s.size.Load())
		if err := readFull(f, data, 0); err != nil {
			t.Fatalf("%v", err)
		}
		for len(data) > 0 {
			n, err := batch.Split(data)
			if err != nil {
				t.Fatalf("%v", err)
			}
			if _, err := batch.CheckStored(data[:n]); err != nil {
				t.Fatalf("%v", err)
			}
			all = append(all, batchOnDisk{s.base, data[:n]})
			data = data[n:]
		}
	}
	return all
}

// mixedLog fills a log with batches of every codec, of producers, of transactions with their markers, and a null value.
func mixedLog(t logTB, c Config) *Log {
	t.Helper()
	l := openTestLog(t, faultfs.New(nil, faultfs.Seed(1)).Session(), c)
	add := func(codec batch.Codec, pairs []string, opts ...batch.Option) {
		t.Helper()
		b := batch.NewBuilder(codec, batch.DefaultLevel)
		for i, p := range pairs {
			k, v, _ := strings.Cut(p, "=")
			r := batch.Record{Timestamp: 1000 + int64(i), Key: []byte(k), Value: []byte(v), Headers: []batch.Header{{Key: "h", Value: []byte(p)}}}
			if v == "" {
				r.Value = nil
			}
			if err := b.Add(r); err != nil {
				t.Fatalf("%v", err)
			}
		}
		a := leaderAppend(b.Bytes(opts...))
		leave(t, l, a)
	}
	for i := range 30 {
		codec := batch.Codec(i % 5)
		pairs := []string{fmt.Sprintf("a%d=%s", i%4, valueOf(Offset(i))), fmt.Sprintf("b%d=%s", i, strings.Repeat("text ", 30)), fmt.Sprintf("c%d=%s", i, valueOf(Offset(i)))}
		switch i % 3 {
		case 0:
			add(codec, pairs)
		case 1:
			add(codec, pairs, batch.Producer(int64(100+codec), 2, int32(i/15*3)))
		case 2:
			add(codec, append(pairs, fmt.Sprintf("a%d=", (i+1)%4)))
		}
	}
	add(batch.LZ4, []string{"t=1", "u=2"}, batch.Producer(7, 1, 0), batch.Transactional())
	marker := batch.NewBuilder(batch.None, 0)
	if err := marker.Add(batch.Record{Timestamp: 1000, Key: []byte{0, 0, 0, 1}, Value: []byte{0, 0, 0, 0, 0, 0}}); err != nil {
		t.Fatalf("%v", err)
	}
	leave(t, l, leaderAppend(marker.Bytes(batch.Producer(7, 1, -1), batch.Transactional(), batch.Control())))
	for i := range 8 {
		add(batch.None, []string{fmt.Sprintf("filler%d=%s", i, valueOf(0))})
	}
	return l
}

func recompressed(t logTB, b []byte, to batch.Codec, level int) []byte {
	t.Helper()
	if to == batch.None {
		level = batch.DefaultLevel
	}
	out, err := batch.Recompress(b, to, level)
	if err != nil {
		t.Fatalf("%v", err)
	}
	return out
}

// leave appends.
func leave(t logTB, l *Log, a *Append) {
	t.Helper()
	if err := l.Append(a, 0); err != nil {
		t.Fatalf("append: %v", err)
	}
}

// Claim: after a pass over a topic whose compression.type names a codec all batches with records in the cleaned part have it, at the topic's level;
// nothing else of them differs from what a pass leaves that keeps the codecs: records, offsets, times, producer, epoch, sequence and flags.
// Markers and bare headers stay as they are, and a second pass changes nothing.
// Method: the same log of all codecs is compacted with each codec and without; batches are compared once both are taken to one codec.
func TestCompactionRecompresses(t *testing.T) {
	c := compacted()
	c.SegmentBytes = 2000
	plain := mixedLog(t, c)
	mustClean(t, plain, cleanAt(time.UnixMilli(2000)))
	want, end := batchesOnDisk(t, plain), plain.FirstDirty()
	for codec, level := range map[batch.Codec]int{batch.None: 0, batch.Gzip: 9, batch.Snappy: 0, batch.LZ4: 12, batch.Zstd: 19} {
		c := c
		c.Recompress, c.Codec, c.CodecLevel = true, codec, level
		if err := c.Validate(); err != nil {
			t.Fatal(err)
		}
		l := mixedLog(t, c)
		r := mustClean(t, l, cleanAt(time.UnixMilli(2000)))
		got := batchesOnDisk(t, l)
		if l.FirstDirty() != end || len(got) != len(want) {
			t.Fatalf("%v: %d batches to %d, want %d to %d", codec, len(got), l.FirstDirty(), len(want), end)
		}
		size := int64(0)
		for i, g := range got {
			v, w := batch.View(g.bytes), batch.View(want[i].bytes)
			if Offset(v.BaseOffset()) >= end {
				continue
			}
			size += int64(len(g.bytes))
			if v.IsControl() || v.Count() == 0 {
				if !bytes.Equal(g.bytes, want[i].bytes) {
					t.Fatalf("%v: the marker at %d has changed", codec, v.BaseOffset())
				}
				continue
			}
			if v.Codec() != codec {
				t.Fatalf("%v: batch at %d has %v", codec, v.BaseOffset(), v.Codec())
			}
			to, is := codec, g.bytes
			if w.Codec() == codec { // made anew at the topic's level if records went, or as it was sent
				to, is = batch.None, recompressed(t, g.bytes, batch.None, 0)
			}
			if again := recompressed(t, w, to, level); !bytes.Equal(is, again) {
				t.Fatalf("%v: batch at %d is\n%x, want\n%x", codec, v.BaseOffset(), is, again)
			}
		}
		if r.BytesOut != size {
			t.Errorf("%v: the pass says %d bytes, %d are there", codec, r.BytesOut, size)
		}
		if all, err := readKeyed(l, 0, l.End()); err != nil || !slices.Equal(all, mustReadKeyed(t, plain)) {
			t.Fatalf("%v: %v, or other records", codec, err)
		}
		for _, s := range *l.segments.Load() {
			if s.size.Load() > c.SegmentBytes {
				t.Errorf("%v: segment %d has %d bytes", codec, s.base, s.size.Load())
			}
		}
		mustClean(t, l, cleanAt(time.UnixMilli(2000))) // it may join segments
		if again := batchesOnDisk(t, l); !slices.EqualFunc(again, got, func(a, b batchOnDisk) bool { return bytes.Equal(a.bytes, b.bytes) }) {
			t.Errorf("%v: a second pass has changed batches", codec)
		}
		closeLog(t, l)
	}
	closeLog(t, plain)
}

// Claim: a batch is left with its codec if it would become larger than max.message.bytes or a segment may be; all others are not.
func TestRecompressionKeepsToTheLimits(t *testing.T) {
	c := compacted()
	c.Recompress, c.Codec, c.SegmentBytes, c.MaxBatch = true, batch.None, 10_000, 700
	for _, limit := range []string{"max.message.bytes", "segment.bytes"} {
		if limit == "segment.bytes" {
			c.SegmentBytes, c.MaxBatch = 700, 0
		}
		l := openTestLog(t, faultfs.New(t).Session(), c)
		put := func(key string, n int) {
			b := batch.NewBuilder(batch.Gzip, batch.DefaultLevel)
			if err := b.Add(batch.Record{Timestamp: 1000, Key: []byte(key), Value: bytes.Repeat([]byte("x"), n)}); err != nil {
				t.Fatal(err)
			}
			leave(t, l, leaderAppend(b.Bytes()))
		}
		put("small", 500)
		put("large", 2000)
		for i := range 40 {
			putKeyed(t, l, fmt.Sprintf("filler%d=%s", i, strings.Repeat("y", 500)))
		}
		mustClean(t, l, cleanAt(time.UnixMilli(2000)))
		all := batchesOnDisk(t, l)
		if small, large := batch.View(all[0].bytes).Codec(), batch.View(all[1].bytes).Codec(); small != batch.None || large != batch.Gzip {
			t.Fatalf("%s: %v and %v", limit, small, large)
		}
		closeLog(t, l)
	}
}

// Claim: TestCleaningSurvivesAnyFault's, of passes that recompress.
func TestRecompressionSurvivesAnyFault(t *testing.T) {
	cleaningSurvivesAnyFault(t, Sync, func(c *Config) { c.Recompress, c.Codec, c.CodecLevel = true, batch.Zstd, 3 })
}
