package engine

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"millrace/engine/batch"
	"millrace/engine/checkpoint"
	"millrace/engine/producers"
	"millrace/engine/vfs/faultfs"
)

// Claim (L5): whatever operation of a reset or truncation below the start the power is cut at or that fails, what SetStart has removed is never read again.
// Method: a log of several segments whose start was raised within the first of them; both ways, at every operation.
func TestResetBelowTheStartBringsNothingBack(t *testing.T) {
	const start, to = 3, 1
	for name, deed := range map[string]func(*Log) error{
		"reset":    func(l *Log) error { return l.ResetTo(to) },
		"truncate": func(l *Log) error { return l.TruncateTo(to) },
	} {
		t.Run(name, func(t *testing.T) {
			bothWays(t, func(disk *faultfs.Disk) {
				s := tryOpenStore(disk)
				topic := spec("t", 1, 1)
				topic.Config = smallLog()
				s.Create(topic)
				l := s.Log("t", 0)
				putN(t, l, 30)
				l.SetStart(start)
				s.Close(context.Background())
			}, func(disk *faultfs.Disk) bool {
				s := tryOpenStore(disk)
				if s == nil {
					return false
				}
				defer s.Close(context.Background())
				return deed(s.Log("t", 0)) == nil
			}, func(t *testing.T, s *Store, _ *faultfs.Disk, done bool) {
				l := s.Log("t", 0)
				got := mustContents(t, l)
				if done && (l.Start() != to || len(got) > 0) || len(got) > 0 && got[0].offset < start {
					t.Fatalf("done %v: the log is [%d, %d) and holds %d records, the first %+v", done, l.Start(), l.End(), len(got), got[:min(1, len(got))])
				}
			})
		})
	}
}

// Claim (L1): after a truncation that has failed, an append is refused or goes where the truncation has cut.
// Method: each operation of a truncation fails in turn, within a segment and across segments; append, and read what is there.
func TestAppendAfterAFailedTruncation(t *testing.T) {
	for _, to := range []Offset{7, 28} {
		for n, fired := 0, true; fired; n++ {
			disk := faultfs.New(t)
			o := quiet(disk, "/a")
			o.Defaults = smallLog()
			s, l := openOne(t, o)
			putN(t, l, 30)
			disk.FailOperation(n)
			err := l.TruncateTo(to)
			fired = disk.Fired()
			if add(l, "new") == nil {
				got := mustContents(t, l)
				for i, r := range got {
					if want := valueOf(Offset(i)); r.offset != Offset(i) || r.value != want && (i < len(got)-1 || r.value != "new") {
						t.Fatalf("to %d, operation %d (%v): record %d is %+v", to, n, err, i, r)
					}
				}
				if got[len(got)-1].value != "new" {
					t.Fatalf("to %d, operation %d (%v): the log ends with %+v", to, n, err, got[len(got)-1])
				}
			}
			_ = s.Close(context.Background())
		}
	}
}

// Claim (L10): look-ups by time are right after a loss of power also in the segment that was closed just where the recovery point stands.
// Method: a checkpoint, a roll, further appends; nothing unsynced survives, with and without index entries on disk before.
func TestTimesOfTheSegmentBelowTheRecoveryPoint(t *testing.T) {
	for _, interval := range []int{150, 1 << 20} {
		for _, before := range []int{0, 4} {
			t.Run(fmt.Sprintf("interval=%d/before=%d", interval, before), func(t *testing.T) {
				disk := faultfs.New(t)
				o := quiet(disk.Session(), "/a")
				o.Defaults = smallLog()
				o.Defaults.SegmentBytes, o.Defaults.IndexInterval = 1<<20, interval
				s, l := openOne(t, o)
				putTimed(t, l, before)
				if err := l.mu.active.syncIndexes(); err != nil {
					t.Fatal(err)
				}
				putTimed(t, l, 6)
				if err := errors.Join(s.dirs[0].journal.SyncAll(), s.Checkpoint()); err != nil {
					t.Fatal(err)
				}
				l.mu.Lock()
				err := l.roll(l.End())
				l.mu.Unlock()
				if err != nil {
					t.Fatal(err)
				}
				putTimed(t, l, 3)
				disk.CutPower(faultfs.KeepUnsynced(0), faultfs.KeepJournal(100), faultfs.KeepNames(100))
				_ = s.Close(context.Background()) // what it still does goes nowhere
				o.FS = disk.Clone()
				s = openStore(t, o)
				l = s.Log("t", 0)
				if l.End() != Offset(before+9) {
					t.Fatalf("end %d", l.End())
				}
				requireTimes(t, l)
				closeStore(t, s)
			})
		}
	}
}

// Claim: a start that is interrupted while it takes away a log that ends below its start leaves no damage for the next one.
// Method: a start that a reset has written before it failed; every operation of the next start fails in turn, and the power is cut.
func TestTakingAwayMayBeInterrupted(t *testing.T) {
	for n, fired := 0, true; fired; n++ {
		disk := faultfs.New(t)
		o := quiet(disk.Session(), "/a")
		o.Defaults = smallLog()
		s := openStore(t, o)
		create(t, s, spec("t", 1, 1))
		putN(t, s.Log("t", 0), 30)
		if err := errors.Join(s.dirs[0].journal.SyncAll(), s.Checkpoint()); err != nil {
			t.Fatal(err)
		}
		putN(t, s.Log("t", 0), 2) // these are in the journal
		disk.CutPower(faultfs.KeepUnsynced(100), faultfs.KeepJournal(100), faultfs.KeepNames(100))
		_ = s.Close(context.Background())
		disk = disk.Clone()
		writeFile(t, disk, "/a/"+checkpoint.LogStarts, checkpoint.Offsets{{Topic: "t", Partition: 0}: 40}.Encode())
		disk.FailOperation(n)
		o.FS = disk.Session()
		if s, err := OpenStore(context.Background(), o); err == nil {
			disk.CutPower(faultfs.KeepUnsynced(0), faultfs.KeepJournal(100), faultfs.KeepNames(100))
			_ = s.Close(context.Background())
		} else {
			disk.CutPower(faultfs.KeepUnsynced(0), faultfs.KeepJournal(100), faultfs.KeepNames(100))
		}
		fired = disk.Fired()
		o.FS = disk.Clone()
		s = openStore(t, o)
		if bad := s.Damaged(); len(bad) > 0 {
			t.Fatalf("operation %d: %+v", n, bad)
		}
		if l := s.Log("t", 0); l.Start() != 40 || l.End() != 40 {
			t.Fatalf("operation %d: [%d, %d)", n, l.Start(), l.End())
		}
		closeStore(t, s)
	}
}

// Claim (L5): a log's start stays after retention and a loss of power that takes the deletion back, also where a segment begins just there.
// Method: the start is raised to where the third segment begins; the segments below go; a checkpoint; the names come back.
func TestStartAtASegmentStays(t *testing.T) {
	disk := faultfs.New(t)
	o := quiet(disk.Session(), "/a")
	o.Defaults = smallLog()
	s, l := openOne(t, o)
	putN(t, l, 30)
	start := (*l.segments.Load())[2].base
	if err := l.SetStart(start); err != nil {
		t.Fatal(err)
	}
	if n, err := l.Retain(time.UnixMilli(2000)); n != 2 || err != nil {
		t.Fatal(n, err)
	}
	if err := s.Checkpoint(); err != nil {
		t.Fatal(err)
	}
	disk.CutPower(faultfs.KeepUnsynced(0), faultfs.KeepJournal(100), faultfs.KeepNames(0))
	_ = s.Close(context.Background()) // what it still does goes nowhere
	o.FS = disk.Clone()
	s = openStore(t, o)
	if l = s.Log("t", 0); l.Start() != start {
		t.Fatalf("start %d, want %d", l.Start(), start)
	}
	requireValues(t, l, start, 30)
	closeStore(t, s)
}

// Claim: a larger segment.index.bytes on an open log holds from the next segment on; the files of the open one keep their size, and no append
// or repair fails for it.
// Method: indexes of few entries; the setting is raised; appends beyond what they hold, and the indexes made anew.
func TestLargerIndexesOnAnOpenLog(t *testing.T) {
	c := smallLog()
	c.SegmentBytes, c.IndexBytes, c.IndexInterval = 1<<20, 64, 0
	l := openTestLog(t, faultfs.New(t).Session(), c)
	putTimed(t, l, 2)
	c.IndexBytes = 4096
	l.SetConfig(c)
	putTimed(t, l, 3)
	l.mu.Lock()
	err := l.mu.active.rebuild(&c)
	l.mu.Unlock()
	if err != nil {
		t.Fatal(err)
	}
	putTimed(t, l, 60)
	requireTimes(t, l)
	closeLog(t, l)
}

// Claim: what was acknowledged behind a gap that recovery has let pass in a compacted log stays when the log is compacted no more.
// Method: a page-cache log loses the tail of its closed segment; the next start lets that pass; other settings; an append in sync mode; the
// power is lost again.
func TestGapOfACompactedLogStaysOne(t *testing.T) {
	disk := faultfs.New(t)
	o := quiet(disk.Session(), "/a")
	topic := spec("t", 1, 1)
	topic.Config = smallLog()
	topic.Config.Compact, topic.Config.Durability = true, PageCache
	o.ConfigFor = func(string) Config { return topic.Config }
	s := openStore(t, o)
	create(t, s, topic)
	l := s.Log("t", 0)
	keyed := func(value string) {
		t.Helper()
		if err := l.Append(leaderAppend(keyedBatch(1000, []string{"k=" + value})), 0); err != nil {
			t.Fatal(err)
		}
	}
	for len(*l.segments.Load()) < 2 {
		keyed(valueOf(l.End()))
	}
	disk.CutPower(faultfs.KeepUnsynced(100), faultfs.KeepNames(100))
	_ = s.Close(context.Background()) // what it still does goes nowhere
	disk = disk.Clone()
	first := "/a/t-0/" + baseName(0) + logSuffix
	b := readFile(t, disk, first)
	writeFile(t, disk, first, b[:len(b)-len(b)/int((*l.segments.Load())[1].base)]) // all batches are of one size
	o.FS = disk.Session()
	s = openStore(t, o)
	l = s.Log("t", 0)
	end := l.End()
	if end <= (*l.segments.Load())[1].base {
		t.Fatalf("end %d: there is no gap to let pass", end)
	}
	topic.Config.Compact, topic.Config.Durability = false, Sync
	l.SetConfig(topic.Config)
	keyed("new")
	disk.CutPower(faultfs.KeepUnsynced(0), faultfs.KeepJournal(100), faultfs.KeepNames(100))
	_ = s.Close(context.Background())
	o.FS = disk.Clone()
	s = openStore(t, o)
	if bad := s.Damaged(); len(bad) > 0 {
		t.Fatalf("%+v", bad)
	}
	if l = s.Log("t", 0); l.End() != end+1 {
		t.Fatalf("end %d, want %d", l.End(), end+1)
	}
	closeStore(t, s)
}

// Claim: the state of producers is right after a truncation, or a reset, and a loss of power, whatever comes back of former snapshots.
// Method: snapshots of a first life; the log is cut below them and grows anew, with a producer, to above them; no removed name stays removed.
func TestFormerSnapshotsDoNotComeBack(t *testing.T) {
	for name, deed := range map[string]func(*Log) error{
		"truncate": func(l *Log) error { return l.TruncateTo(2) },
		"reset":    func(l *Log) error { return l.ResetTo(2) },
	} {
		t.Run(name, func(t *testing.T) {
			disk := faultfs.New(t)
			o := quiet(disk.Session(), "/a")
			o.Defaults = smallLog()
			o.Defaults.SegmentBytes = 1 << 20 // a roll would sync the folder
			s, l := openOne(t, o)
			for range 3 {
				putN(t, l, 4)
				if err := s.Checkpoint(); err != nil {
					t.Fatal(err)
				}
			}
			if err := l.syncDir(); err != nil {
				t.Fatal(err)
			}
			if err := deed(l); err != nil {
				t.Fatal(err)
			}
			if err := l.Append(leaderAppend(newBatch(1, []string{"one"}, batch.Producer(7, 0, 0))), 0); err != nil {
				t.Fatal(err)
			}
			putN(t, l, 12)
			disk.CutPower(faultfs.KeepUnsynced(100), faultfs.KeepJournal(100), faultfs.KeepNames(0))
			_ = s.Close(context.Background()) // what it still does goes nowhere
			o.FS = disk.Clone()
			s = openStore(t, o)
			if id, err := s.Log("t", 0).NewestProducer(); id != 7 || err != nil {
				t.Fatalf("the newest producer is %d, %v, want 7", id, err)
			}
			closeStore(t, s)
		})
	}
}

// Claim: a snapshot whose bytes a loss of power has taken is never one of a former life of the log.
// Method: a snapshot's bytes reach the disk and its rename does not; the log is cut below it and grows to the same end anew, with a producer; of
// the snapshot of the clean stop there the rename reaches the disk and the bytes do not.
func TestSnapshotIsNotWrittenOverAFormerOne(t *testing.T) {
	disk := faultfs.New(t)
	l := openTestLog(t, disk.Session(), smallLog(), soon)
	putN(t, l, 4)
	name := l.file(producers.SnapshotName(4))
	fail(t, l.snapshot())
	fail(t, disk.Rename(name, name+".tmp"))
	fail(t, disk.SyncFS(l.Dir())) // as if the rename had never been
	fail(t, l.TruncateTo(0))
	fail(t, l.Append(silent(), 0))
	putN(t, l, 3)
	closeLog(t, l)
	disk.CutPower(faultfs.KeepUnsynced(0), faultfs.KeepNames(100))
	l = openTestLog(t, disk.Session(), smallLog(), soon)
	requireDuplicate(t, l)
	closeLog(t, l)
}

// Claim: the largest timestamp is that of a record, also where compaction has kept a batch with nothing in it whose header tells a larger one.
// Method: the last record of a closed segment is the newest by time, and superseded.
func TestMaxTimestampIsThatOfARecord(t *testing.T) {
	l := openTestLog(t, faultfs.New(t).Session(), compacted())
	appendKeyed := func(ts int64, key string, opts ...batch.Option) {
		t.Helper()
		if err := l.Append(leaderAppend(keyedBatch(ts, []string{key + "=value"}, opts...)), 0); err != nil {
			t.Fatal(err)
		}
	}
	roll := func() {
		t.Helper()
		l.mu.Lock()
		defer l.mu.Unlock()
		if err := l.roll(l.End()); err != nil {
			t.Fatal(err)
		}
	}
	appendKeyed(7000, "a")
	appendKeyed(9000, "b", batch.Producer(7, 0, 0))
	roll()
	appendKeyed(5000, "b")
	roll()
	appendKeyed(6000, "c")
	if off, ts, err := l.MaxTimestamp(); off != 1 || ts != 9000 || err != nil {
		t.Fatal(off, ts, err)
	}
	if _, err := l.Clean(cleanAt(time.UnixMilli(20_000_000))); err != nil {
		t.Fatal(err)
	}
	if off, ts, err := l.MaxTimestamp(); off != 0 || ts != 7000 || err != nil {
		t.Fatalf("offset %d, timestamp %d, %v; want 0, 7000", off, ts, err)
	}
	closeLog(t, l)
}

// Claim (L3): a torn tail that a start has cut does not come back below what the same start has replayed into a new segment, wherever the power is lost.
// Method: garbage behind the recovery point; the journal goes on there; the segment is full by the setting of the next start, which is
// interrupted at every operation; names survive, bytes do not.
func TestCutTailStaysCutBelowAReplayedRoll(t *testing.T) {
	for n, fired := 0, true; fired; n++ {
		disk := faultfs.New(t)
		o := quiet(disk.Session(), "/a")
		o.Defaults = smallLog()
		o.Defaults.SegmentBytes = 1 << 20
		s := openStore(t, o)
		create(t, s, spec("t", 1, 1))
		putN(t, s.Log("t", 0), 10)
		if err := errors.Join(s.dirs[0].journal.SyncAll(), s.Checkpoint()); err != nil {
			t.Fatal(err)
		}
		putN(t, s.Log("t", 0), 2) // these are in the journal
		disk.CutPower(faultfs.KeepUnsynced(0), faultfs.KeepJournal(100), faultfs.KeepNames(100))
		_ = s.Close(context.Background()) // what it still does goes nowhere
		disk = disk.Clone()
		first := "/a/t-0/" + baseName(0) + logSuffix
		writeFile(t, disk, first, append(readFile(t, disk, first), make([]byte, 97)...))

		o.FS, o.Defaults = disk.Session(), smallLog()
		o.Defaults.SegmentBytes = 600
		disk.CutAtOperation(n)
		s, err := OpenStore(context.Background(), o)
		fired = disk.Fired()
		disk.CutPower(faultfs.KeepUnsynced(0), faultfs.KeepJournal(100), faultfs.KeepNames(100))
		if err == nil {
			_ = s.Close(context.Background())
		}
		o.FS = disk.Clone()
		s = openStore(t, o)
		if bad := s.Damaged(); len(bad) > 0 {
			t.Fatalf("operation %d: %+v", n, bad)
		}
		l := s.Log("t", 0)
		requireValues(t, l, 0, 12)
		if n := len(*l.segments.Load()); n < 2 {
			t.Fatalf("%d segments: the replay did not roll", n)
		}
		closeStore(t, s)
	}
}

// Claim: a log that was switched from page-cache to sync mode is not taken for damaged by what a loss of power tears before anything was promised;
// and once a segment was closed in sync mode nothing is excused any more.
// Method: several segments in page-cache mode; the setting changes; the contents are lost and the names kept, at once, or after a roll in
// sync mode, after which all has to be there.
func TestSwitchToSyncExcusesWhatWasTornBefore(t *testing.T) {
	for _, rolled := range []bool{false, true} {
		disk := faultfs.New(t)
		l := openTestLog(t, disk.Session(), pageCache())
		putN(t, l, 40)
		c := smallLog()
		l.SetConfig(c)
		end := Offset(0)
		if rolled {
			for n := len(*l.segments.Load()); len(*l.segments.Load()) == n; {
				putN(t, l, 1)
			}
			end = l.End()
		}
		if got := len(fileNames(t, disk, looseName)); (got == 0) != rolled {
			t.Fatalf("rolled %v: %d files %s", rolled, got, looseName)
		}
		disk.CutPower(faultfs.KeepUnsynced(0), faultfs.KeepJournal(100), faultfs.KeepNames(100))
		l = openTestLog(t, disk.Session(), c)
		requireValues(t, l, 0, end)
		putN(t, l, 20)
		closeLog(t, l)
		if got := fileNames(t, disk, looseName); len(got) > 0 {
			t.Fatal(got)
		}
	}
}

// Claim (L6): what is acknowledged after a roll that failed half-way stays, in the segment that goes on, whether the disk ever knew of the new one or not.
// Method: a log without a journal; every operation of a roll fails in turn, and the removal of what it made too; smaller appends follow, which
// fit; power cuts that keep the synced bytes and any part of the names.
func TestAppendsAfterAFailedRollStay(t *testing.T) {
	for _, removed := range []bool{true, false} {
		for n, fired := 0, true; fired; n++ {
			for seed := range uint64(12) {
				disk := faultfs.New(nil, faultfs.Seed(seed))
				c := smallLog()
				c.Preallocate = true
				off := func(o *LogOptions) { o.JournalOff = true }
				l := openTestLog(t, disk.Session(), c, off)
				acked := map[Offset]string{}
				put := func(value string) error {
					a := leaderAppend(newBatch(1000, []string{value}))
					err := l.Append(a, 0)
					if err == nil {
						acked[a.Base] = value
					}
					return err
				}
				for l.mu.active.size.Load() < c.SegmentBytes*3/4 {
					if err := put("first"); err != nil {
						t.Fatal(err)
					}
				}
				if !removed {
					disk.Fail(faultfs.Fault{Kind: faultfs.OpRemove, Pattern: "*" + logSuffix, Times: -1})
				}
				disk.FailOperation(n)
				err := put(strings.Repeat("x", int(c.SegmentBytes)/2))
				fired = disk.Fired() && (removed || err != nil)
				put("small")
				disk.CutPower(faultfs.KeepUnsynced(100), faultfs.KeepNames(50))
				l.Close()
				l = openTestLog(t, disk.Session(), c, off)
				got := map[Offset]string{}
				for _, r := range mustContents(t, l) {
					got[r.offset] = r.value
				}
				for o, value := range acked {
					if got[o] != value {
						t.Fatalf("operation %d (%v), removed %v, seed %d: %d holds %.10q, acknowledged %.10q; the log is [%d, %d)", n, err, removed, seed, o, got[o], value, l.Start(), l.End())
					}
				}
				closeLog(t, l)
			}
		}
	}
}

// Claim: the largest timestamp is that of a record, whatever the time index had no room for.
// Method: more batches in one write than a small time index holds, and not more than the offset index does; the last two are older. Truncate by one.
func TestTruncationKnowsTimesThatHadNoEntry(t *testing.T) {
	c := smallLog()
	c.SegmentBytes, c.IndexBytes, c.IndexInterval = 1<<20, 64, 0
	l := openTestLog(t, faultfs.New(t), c)
	for n := range 3 * 8 {
		at := l.End()
		list := make([]*Append, 3+n%6)
		newest := len(list) - 3
		for i := range list {
			ts := 1000 + int64(at) + int64(i)
			if i > newest {
				ts = 1
			}
			list[i] = leaderAppend(newBatch(ts, []string{"v"}))
			l.Enqueue(list[i], 0)
		}
		for _, a := range list {
			if err := errors.Join(l.Write(a), a.Wait()); err != nil {
				t.Fatal(err)
			}
		}
		if err := l.TruncateTo(l.End() - 1); err != nil {
			t.Fatal(err)
		}
		want := at + Offset(newest)
		o, ts, err := l.MaxTimestamp()
		if err != nil || ts != 1000+int64(want) || o != want {
			t.Fatalf("after a write of %d: %d at %d, %v; want %d at %d", len(list), ts, o, err, 1000+want, want)
		}
	}
	closeLog(t, l)
}
