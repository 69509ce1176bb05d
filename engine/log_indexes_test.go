package engine

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"millrace/engine/checkpoint"
	"millrace/engine/vfs/faultfs"
)

// putTimed appends n records, one a batch, whose timestamps rise from the offset times 1000.
func putTimed(t testing.TB, l *Log, n int) {
	t.Helper()
	for range n {
		at := int64(l.End())
		if err := l.Append(leaderAppend(newBatch(at*1000, []string{valueOf(Offset(at))})), 0); err != nil {
			t.Fatal(err)
		}
	}
}

func requireTimes(t testing.TB, l *Log) {
	t.Helper()
	for o := l.Start(); o < l.End(); o++ {
		if off, _, found, err := l.OffsetForTime(int64(o) * 1000); err != nil || !found || off != o {
			t.Errorf("look-up of %d: offset %d, %v, %v", int64(o)*1000, off, found, err)
		}
	}
	list := *l.segments.Load()
	for i, s := range list {
		if ts, err := s.largestTimestamp(); err != nil || s.size.Load() > 0 && ts != int64(l.endOf(s)-1)*1000 {
			t.Errorf("segment %d of %d: largest timestamp %d, %v; it ends at %d", i, len(list), ts, err, l.endOf(s))
		}
	}
}

// Claim (L10): after a loss of power look-ups by time are right and no segment is taken for older than it is, wherever the recovery point stands,
// and it does pass closed segments: their indexes are on disk by then.
// Method: segments are closed, the checkpoint is written in each of the ways there are, and nothing unsynced survives.
func TestTimesAreRightAfterAPowerCut(t *testing.T) {
	for _, mode := range []Durability{Sync, PageCache} {
		for name, save := range map[string]func(s *Store) error{
			"in its time": (*Store).Checkpoint,
			"by the journal": func(s *Store) error {
				return errors.Join(s.dirs[0].journal.SyncAll(), s.checkpointPoints())
			},
			"by a truncation": func(s *Store) error {
				return errors.Join(s.dirs[0].journal.SyncAll(), s.dirs[0].checkpoint())
			},
		} {
			t.Run(fmt.Sprint(mode, " ", name), func(t *testing.T) {
				disk := faultfs.New(t)
				o := quiet(disk.Session(), "/a")
				o.Defaults = smallLog()
				o.Defaults.Durability = mode
				s := openStore(t, o)
				create(t, s, spec("t", 1, 1))
				for range 7 { // index files have reached the disk in the middle of segments, as the system writes them out
					putTimed(t, s.Log("t", 0), 5)
					if err := s.Log("t", 0).mu.active.syncIndexes(); err != nil {
						t.Fatal(err)
					}
				}
				if err := save(s); err != nil {
					t.Fatal(err)
				}
				points, err := checkpoint.ReadOffsets(disk, "/a/"+checkpoint.RecoveryPoints)
				if err != nil {
					t.Fatal(err)
				}
				point := Offset(points[checkpoint.TopicPartition{Topic: "t"}])
				if closed := s.Log("t", 0).mu.active.base; name != "by a truncation" && mode == Sync && point < closed {
					t.Errorf("recovery point %d, the closed segments end at %d", point, closed)
				}
				disk.CutPower(faultfs.KeepUnsynced(0), faultfs.KeepJournal(100), faultfs.KeepNames(100))
				_ = s.Close(context.Background()) // what it still does goes nowhere
				o.FS = disk.Clone()
				s = openStore(t, o)
				if end := s.Log("t", 0).End(); mode == Sync && end != 35 {
					t.Fatalf("end %d", end)
				}
				requireTimes(t, s.Log("t", 0))
				closeStore(t, s)
			})
		}
	}
}

// Claim (L10): a time index that has lost its last entries in a loss of power, where the other index has not, is made again.
// Method: the last entries are cut off the time index of the segment that the recovery point lies in.
func TestShortTimeIndexIsMadeAgain(t *testing.T) {
	disk := faultfs.New(t)
	o := quiet(disk.Session(), "/a")
	o.Defaults = smallLog()
	o.Defaults.SegmentBytes = 1 << 20
	s, l := openOne(t, o)
	putTimed(t, l, 20) // the largest timestamp lies in the middle
	for range 20 {
		if err := l.Append(leaderAppend(newBatch(5, []string{valueOf(0)})), 0); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(s.dirs[0].journal.SyncAll(), s.Checkpoint(), l.mu.active.syncIndexes()); err != nil {
		t.Fatal(err)
	}
	disk.CutPower(faultfs.KeepUnsynced(100), faultfs.KeepJournal(100), faultfs.KeepNames(100))
	_ = s.Close(context.Background()) // what it still does goes nowhere
	disk = disk.Clone()
	o.FS = disk
	const name = "/a/t-0/00000000000000000000.timeindex"
	writeFile(t, disk, name, readFile(t, disk, name)[:2*timeEntryBytes])
	s = openStore(t, o)
	l = s.Log("t", 0)
	l.mu.Lock()
	err := l.roll(l.End())
	l.mu.Unlock()
	if err != nil {
		t.Fatal(err)
	}
	closeStore(t, s)
	s = openStore(t, o)
	if ts, err := (*s.Log("t", 0).segments.Load())[0].largestTimestamp(); err != nil || ts != 19000 {
		t.Errorf("largest timestamp of the segment: %d, %v, want 19000", ts, err)
	}
	if off, _, found, err := s.Log("t", 0).OffsetForTime(19000); err != nil || !found || off != 19 {
		t.Errorf("look-up: %d, %v, %v", off, found, err)
	}
	closeStore(t, s)
}

// Claim: deleting a log in a directory that is offline is an error, for the log may come back; it is gone for this run.
// Method: the directory fails before the deletion.
func TestDeletingOfflineIsAnError(t *testing.T) {
	s := openStore(t, quiet(faultfs.New(t), "/a"))
	create(t, s, spec("t", 1, 1))
	s.dirs[0].fail(errors.New("unplugged"))
	if err := s.Delete("t"); !errors.Is(err, ErrStorage) {
		t.Fatalf("%v, want ErrStorage", err)
	}
	if s.Log("t", 0) != nil {
		t.Fatal("it can still be found")
	}
	_ = s.Close(context.Background())
}

// Claim: names of a page-cache log's folder are not synced under a name that a deletion has just taken away.
// Method: the round's sync comes between the rename and the log's knowing of it.
func TestNamesAreNotSyncedUnderAFormerName(t *testing.T) {
	disk := faultfs.New(t)
	o := quiet(disk, "/a")
	o.Defaults = smallLog()
	o.Defaults.Durability = PageCache
	s, l := openOne(t, o)
	putTimed(t, l, 20)
	names := &l.home.Load().names
	if names.made.Load() == names.done.Load() {
		t.Fatal("nothing to sync")
	}
	met := make(chan error, 1)
	disk.AfterOperation(func(op faultfs.Op) {
		if op.Kind == faultfs.OpRename && op.Name == "/a/t-0" {
			go func() { met <- names.Sync() }() // ends with the sync
			for begun := time.Now(); len(met) == 0 && time.Since(begun) < 50*time.Millisecond; {
				time.Sleep(time.Millisecond) // it must wait for the rename's end; what does not fails by now
			}
		}
	})
	if err := s.Delete("t"); err != nil {
		t.Fatal(err)
	}
	if err := <-met; err != nil {
		t.Fatal(err)
	}
	closeStore(t, s)
}

// Claim: a pass of the journal can ask what was closed for other files for its unwritten bytes, as it does of any file before it syncs it.
// Method: the file of an append that only the journal has synced is closed, and the pass's questions are asked.
func TestPassesSyncWhatWasClosed(t *testing.T) {
	files := NewFileSet(1)
	l := openTestLog(t, faultfs.New(t).Session(), smallLog(), func(o *LogOptions) { o.Files = files })
	put(t, l, "one")
	if files.relieve(1) != 1 {
		t.Fatal("nothing was closed")
	}
	owner := &l.home.Load().owner
	targets := owner.SyncTargets()
	defer owner.ReleaseTargets(targets)
	if len(targets) == 0 {
		t.Fatal("nothing to sync")
	}
	for _, f := range targets {
		if _, err := f.Dirty(); err != nil {
			t.Error(err)
		}
		if err := f.Sync(); err != nil {
			t.Error(err)
		}
	}
	closeLog(t, l)
}
