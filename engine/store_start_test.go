package engine

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"millrace/engine/checkpoint"
	"millrace/engine/vfs"
	"millrace/engine/vfs/faultfs"
)

// startFS counts what a start does to the files of logs.
type startFS struct {
	vfs.FS
	opens, stats, lists, bytes atomic.Int64 // of segments and indexes; folders; read
	segmentBytes               atomic.Int64
}

func segmentFileName(name string) bool {
	return strings.HasSuffix(name, logSuffix) || strings.HasSuffix(name, indexSuffix) || strings.HasSuffix(name, timeSuffix)
}

func (c *startFS) OpenFile(name string, flag int) (vfs.File, error) {
	f, err := c.FS.OpenFile(name, flag)
	if err != nil {
		return nil, err
	}
	if segmentFileName(name) {
		c.opens.Add(1)
	}
	return &startFile{f, c, segmentFileName(name)}, nil
}

func (c *startFS) Stat(name string) (vfs.Info, error) {
	c.stats.Add(1)
	return c.FS.Stat(name)
}

func (c *startFS) ReadDir(name string) ([]vfs.DirEntry, error) {
	c.lists.Add(1)
	return c.FS.ReadDir(name)
}

type startFile struct {
	vfs.File
	c       *startFS
	segment bool
}

func (f *startFile) ReadAt(b []byte, off int64) (int, error) {
	if !strings.HasPrefix(filepath.Base(f.Name()), "millrace-journal-") {
		f.c.bytes.Add(int64(len(b)))
	}
	if f.segment {
		f.c.segmentBytes.Add(int64(len(b)))
	}
	return f.File.ReadAt(b, off)
}

// Claim: F012 a clean start opens and reads no segment and no index: one listing a log, one stat a segment and folder, and some bytes of two small
// files; a read afterwards costs an index page and the batch. Progress is told.
// Method: 30 logs of several segments each, counted.
func TestField_F012_StartCost(t *testing.T) {
	disk := faultfs.New(t)
	c := &startFS{FS: disk}
	var lines said
	o := quiet(c, "/a")
	o.Defaults = smallLog()
	o.Logger = lines.logger()
	s := openStore(t, o)
	const logs = 30
	create(t, s, spec("t", 1, logs))
	for i := range 40 {
		for p := range int32(logs) {
			if err := add(s.Log("t", p), fmt.Sprintf("a value of some length, number %d", i)); err != nil {
				t.Fatal(err)
			}
		}
	}
	closeStore(t, s)
	segments := 0
	for p := range logs {
		names, _ := disk.ReadDir(fmt.Sprintf("/a/t-%d", p))
		for _, n := range names {
			if strings.HasSuffix(n.Name, logSuffix) {
				segments++
			}
		}
	}
	if segments < 3*logs {
		t.Fatalf("only %d segments", segments)
	}
	for _, n := range []*atomic.Int64{&c.opens, &c.stats, &c.lists, &c.bytes, &c.segmentBytes} {
		n.Store(0)
	}
	s = openStore(t, o)
	t.Logf("%d logs, %d segments: %d opens, %d stats, %d listings, %d bytes", logs, segments, c.opens.Load(), c.stats.Load(), c.lists.Load(), c.bytes.Load())
	if c.opens.Load() != 0 || c.segmentBytes.Load() != 0 {
		t.Fatalf("%d segment files opened, %d bytes of them read", c.opens.Load(), c.segmentBytes.Load())
	}
	if got := c.stats.Load(); got > int64(segments)+logs+10 {
		t.Fatalf("%d stats for %d segments", got, segments)
	}
	if got := c.lists.Load(); got > logs+10 {
		t.Fatalf("%d listings for %d logs", got, logs)
	}
	if got := c.bytes.Load(); got > 200*logs+8192 {
		t.Fatalf("%d bytes read for %d logs", got, logs)
	}
	if lines.count("logs loaded") == 0 || lines.count("of=30") == 0 {
		t.Fatal("no progress line")
	}
	if got := values(t, s.Log("t", 7)); len(got) != 40 {
		t.Fatalf("%d records", len(got))
	}
	before := disk.Operations()
	closeStore(t, s) // an idle log costs a stop nothing
	if n := disk.Operations() - before; n > 20 {
		t.Fatalf("%d operations to close a store that nobody wrote to", n)
	}
}

// Claim: F125 closing many logs with unsynced data costs a handful of syncs, not one a log, and leaves the marker.
// Method: 200 logs with data; the trace of the stop.
func TestField_F125_OpenCloseCost(t *testing.T) {
	disk := faultfs.New(t)
	s := openStore(t, quiet(disk, "/a"))
	create(t, s, spec("t", 1, 200))
	for p := range int32(200) {
		if err := add(s.Log("t", p), "x"); err != nil {
			t.Fatal(err)
		}
	}
	before := disk.Operations()
	closeStore(t, s)
	syncs := 0
	for _, op := range disk.Trace()[before:] {
		if strings.HasPrefix(filepath.Base(op.Name), "millrace-journal-") {
			continue // the journal grows by itself, however many logs there are
		}
		switch op.Kind {
		case faultfs.OpSync, faultfs.OpSyncDir, faultfs.OpSyncFS, faultfs.OpFlush:
			syncs++
		}
	}
	if syncs > 12 {
		t.Fatalf("%d syncs to close 200 logs", syncs)
	}
	if _, err := disk.ReadSynced("/a/" + checkpoint.CleanName); err != nil {
		t.Fatal(err)
	}
	disk.CutPower(faultfs.KeepUnsynced(0), faultfs.KeepNames(0))
	var lines said
	o := quiet(disk, "/a")
	o.Logger = lines.logger()
	s = openStore(t, o)
	for _, l := range s.Logs() {
		requireHolds(t, l, "x")
	}
	if len(s.Logs()) != 200 || lines.count("not stopped cleanly") > 0 {
		t.Fatal(len(s.Logs()))
	}
	closeStore(t, s)
}

// Claim: F125 a stop that runs out of time leaves no marker and loses nothing.
// Method: Close with a context that has ended.
func TestField_F125_CloseOutOfTime(t *testing.T) {
	disk := faultfs.New(t)
	s := openStore(t, quiet(disk, "/a"))
	create(t, s, spec("t", 1, 5))
	for _, l := range s.Logs() {
		if err := add(l, "kept"); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := s.Close(ctx); err == nil {
		t.Fatal("closed in no time")
	}
	if _, err := disk.Stat("/a/" + checkpoint.CleanName); err == nil {
		t.Fatal("marked clean")
	}
	disk.CutPower(faultfs.KeepUnsynced(0))
	s = openStore(t, quiet(disk, "/a"))
	for _, l := range s.Logs() {
		requireHolds(t, l, "kept")
	}
	closeStore(t, s)
}

// Claim: the checkpoint files say what Kafka's would: recovery points, starts inside a segment only, and the high
// watermarks that the hook tells.
// Method: three logs, one with a moved start; the files as text.
func TestCheckpointFiles(t *testing.T) {
	disk := faultfs.New(t)
	o := quiet(disk, "/a")
	o.HighWatermark = func(l *Log) Offset { return l.End() - 1 }
	s := openStore(t, o)
	page := spec("page", 2, 1)
	page.Config = o.Defaults
	page.Config.Durability = PageCache
	create(t, s, spec("t", 1, 2), page)
	for range 3 {
		for _, l := range s.Logs() {
			if err := add(l, "x"); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := s.Log("t", 1).SetStart(2); err != nil {
		t.Fatal(err)
	}
	if err := s.dirs[0].journal.SyncAll(); err != nil {
		t.Fatal(err)
	}
	if err := s.Checkpoint(); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		checkpoint.RecoveryPoints: "0\n3\npage 0 3\nt 0 3\nt 1 3\n",
		checkpoint.LogStarts:      "0\n1\nt 1 2\n",
		checkpoint.HighWatermarks: "0\n3\npage 0 2\nt 0 2\nt 1 2\n",
	} {
		if got, err := disk.ReadSynced("/a/" + name); err != nil || string(got) != want {
			t.Errorf("%s: %q, %v; want %q", name, got, err, want)
		}
	}
	for try := 0; ; try++ { // the journal may be at work on its next file beside it, once
		before := disk.Operations()
		err := s.Checkpoint()
		if err == nil && disk.Operations() == before {
			break
		}
		if err != nil || try == 20 {
			t.Errorf("%d operations to write the same again, %v", disk.Operations()-before, err)
			break
		}
		time.Sleep(time.Millisecond)
	}
	if err := s.Delete("t", 1); err != nil {
		t.Fatal(err)
	}
	closeStore(t, s)
	s = openStore(t, o)
	if mark, ok := s.HighWatermark(s.Log("t", 0)); mark != 2 || !ok {
		t.Error(mark, ok)
	}
	closeStore(t, s)
	if got, _ := disk.ReadFile("/a/" + checkpoint.RecoveryPoints); string(got) != "0\n2\npage 0 3\nt 0 3\n" {
		t.Errorf("after deletion: %q", got)
	}
}

// Claim: many logs that ask for a checkpoint at once share writes of the file.
// Method: 50 SetStart side by side; the file is written less often than that and says all.
func TestCheckpointsAreShared(t *testing.T) {
	disk := faultfs.New(t)
	s := openStore(t, quiet(disk, "/a"))
	create(t, s, spec("t", 1, 50))
	for _, l := range s.Logs() {
		for range 2 {
			if err := add(l, "x"); err != nil {
				t.Fatal(err)
			}
		}
	}
	var all sync.WaitGroup
	for _, l := range s.Logs() {
		all.Go(func() {
			if err := l.SetStart(1); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	o, err := checkpoint.ReadOffsets(disk, "/a/"+checkpoint.LogStarts)
	if err != nil || len(o) != 50 {
		t.Fatal(len(o), err)
	}
	disk.CutPower(faultfs.KeepUnsynced(0))
	s.Close(context.Background())
	s = openStore(t, quiet(disk, "/a"))
	for _, l := range s.Logs() {
		if l.Start() != 1 || l.End() != 2 {
			t.Fatalf("%s: [%d, %d)", l.Dir(), l.Start(), l.End())
		}
	}
	closeStore(t, s)
}

// Claim: retention and checkpoints run by themselves in their time, deleted files go after their delay, and the
// goroutines end with Close.
// Method: fake time; records of an hour ago, a retention of half an hour, a minute's delay.
func TestBackgroundWorkKeepsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := faultfs.New(t)
		o := quiet(disk, "/a")
		o.RetentionCheck, o.CheckpointEvery = 5*time.Minute, time.Minute
		o.Defaults = smallLog()
		o.Defaults.RetentionAge = 30 * time.Minute
		o.Defaults.DeleteDelay = time.Minute
		s := openStore(t, o)
		create(t, s, spec("t", 1, 1))
		l := s.Log("t", 0)
		for range 30 { // their timestamps are of 2023, synctest begins in 2000: from the future
			if err := add(l, "a value of some length, for several segments"); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(90 * time.Second)
		if o, _ := checkpoint.ReadOffsets(disk, "/a/"+checkpoint.HighWatermarks); o[checkpoint.TopicPartition{Topic: "t"}] != 30 {
			t.Errorf("no checkpoint after 90 seconds: %v", o)
		}
		if l.Start() != 0 {
			t.Errorf("start %d", l.Start())
		}
		c := l.Config()
		c.RetentionBytes = 1000
		l.SetConfig(c)
		time.Sleep(4 * time.Minute)
		synctest.Wait()
		if l.Start() == 0 {
			t.Error("no retention after five minutes")
		}
		first := baseName(0) + logSuffix
		if _, err := disk.Stat(filepath.Join(l.Dir(), first+deletedSuffix)); err != nil {
			t.Error("not renamed", err)
		}
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if _, err := disk.Stat(filepath.Join(l.Dir(), first+deletedSuffix)); err == nil {
			t.Error("still there after its delay")
		}
		closeStore(t, s)
	})
}

// BenchmarkStart is the time of a clean start and of a clean stop.
func BenchmarkStart(b *testing.B) {
	for _, n := range []int{1000} {
		for _, state := range []string{"empty", "filled"} {
			b.Run(fmt.Sprintf("logs=%d/state=%s", n, state), func(b *testing.B) {
				dir := b.TempDir()
				s := openStore(b, quiet(nil, dir))
				create(b, s, spec("t", 1, n))
				for p := range int32(n) {
					if state == "empty" {
						break
					}
					if err := add(s.Log("t", p), "hello"); err != nil {
						b.Fatal(err)
					}
				}
				begun := time.Now()
				closeStore(b, s)
				b.ReportMetric(float64(time.Since(begun).Microseconds())/1000, "first-stop-ms")
				var opening, closing time.Duration
				for b.Loop() {
					begun := time.Now()
					s := openStore(b, quiet(nil, dir))
					opening += time.Since(begun)
					begun = time.Now()
					closeStore(b, s)
					closing += time.Since(begun)
				}
				b.ReportMetric(float64(opening.Microseconds())/1000/float64(b.N), "start-ms")
				b.ReportMetric(float64(closing.Microseconds())/1000/float64(b.N), "stop-ms")
			})
		}
	}
}
