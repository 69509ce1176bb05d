package engine

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"millrace/engine/checkpoint"
	"millrace/engine/vfs/faultfs"
)

// everyOperation runs life on a disk prepared alike each time, with the power cut, or a failure, at operation 0, then 1, then 2,
// until none is left; check looks at the store opened after the power is back.
func everyOperation(t *testing.T, fail bool, prepare func(*faultfs.Disk), life func(*faultfs.Disk) (done bool), check func(*testing.T, *Store, *faultfs.Disk, bool)) {
	t.Helper()
	const most = 400
	for n := range most {
		tried := false
		t.Run(fmt.Sprintf("operation=%d", n), func(t *testing.T) {
			disk := faultfs.New(t)
			prepare(disk)
			if fail {
				disk.FailOperation(n)
			} else {
				disk.CutAtOperation(n)
			}
			done := life(disk)
			tried = disk.Fired()
			disk.CutPower(faultfs.Mixes()[n%len(faultfs.Mixes())].Options()...)
			s := openStore(t, quiet(disk, "/a"))
			if len(s.OfflineDirs()) > 0 {
				t.Fatal(s.OfflineDirs())
			}
			check(t, s, disk, done)
			closeStore(t, s)
		})
		if t.Failed() || !tried {
			return
		}
	}
	t.Fatalf("still failing after %d operations", most)
}

func bothWays(t *testing.T, prepare func(*faultfs.Disk), life func(*faultfs.Disk) bool, check func(*testing.T, *Store, *faultfs.Disk, bool)) {
	for _, fail := range []bool{false, true} {
		t.Run(map[bool]string{false: "cut", true: "fail"}[fail], func(t *testing.T) {
			everyOperation(t, fail, prepare, life, check)
		})
	}
}

// tryOpenStore is nil if the fault came while opening.
func tryOpenStore(disk *faultfs.Disk) *Store {
	s, err := OpenStore(context.Background(), quiet(disk, "/a"))
	if err != nil {
		return nil
	}
	return s
}

// Claim: whatever operation the power is cut at or that fails, Create leaves each log whole or absent; all of them are there if it
// returned nil; and it can be repeated.
// Method: a topic of three, at every operation.
func TestCreateIsWholeOrAbsent(t *testing.T) {
	prepare := func(disk *faultfs.Disk) {
		s := tryOpenStore(disk)
		s.Create(spec("old", 7, 1))
		add(s.Log("old", 0), "kept")
		s.Close(context.Background())
	}
	bothWays(t, prepare, func(disk *faultfs.Disk) bool {
		s := tryOpenStore(disk)
		if s == nil {
			return false
		}
		defer s.Close(context.Background())
		err := s.Create(spec("t", 1, 3))
		if err == nil {
			return true
		}
		if s.Log("t", 0) != nil || s.Log("t", 1) != nil || s.Log("t", 2) != nil {
			t.Error("a log of a failed Create can be found")
		}
		return false
	}, func(t *testing.T, s *Store, disk *faultfs.Disk, done bool) {
		requireHolds(t, s.Log("old", 0), "kept")
		for p := range int32(3) {
			if l := s.Log("t", p); l == nil && done || l != nil && l.ID().Topic != topicID(1) {
				t.Fatalf("done %v: %v", done, l)
			}
		}
		create(t, s, spec("t", 1, 3))
		for p := range int32(3) {
			if err := add(s.Log("t", p), "works"); err != nil {
				t.Fatal(err)
			}
		}
		s.background.idle.Wait()
		names, _ := disk.ReadDir("/a")
		for _, n := range names {
			if strings.HasSuffix(n.Name, deleteSuffix) {
				t.Fatalf("%s is left", n.Name)
			}
		}
	})
}

// Claim: whatever operation the power is cut at or that fails, a log that Delete returned nil for stays away, its records never come back,
// not even under a topic made anew; one that is still there has all its records; other logs lose nothing.
// Method: delete one of two topics with unsynced records, at every operation.
func TestDeletedStaysDeleted(t *testing.T) {
	prepare := func(disk *faultfs.Disk) {}
	bothWays(t, prepare, func(disk *faultfs.Disk) bool {
		s := tryOpenStore(disk)
		if s == nil || s.Create(spec("t", 1, 2), spec("other", 2, 1)) != nil {
			return false
		}
		defer s.Close(context.Background())
		for p := range int32(2) {
			if add(s.Log("t", p), "old") != nil {
				return false
			}
		}
		if add(s.Log("other", 0), "kept") != nil {
			return false
		}
		err := s.Delete("t")
		s.background.idle.Wait()
		return err == nil
	}, func(t *testing.T, s *Store, disk *faultfs.Disk, done bool) {
		for p := range int32(2) {
			l := s.Log("t", p)
			if done && l != nil {
				t.Fatalf("t-%d is back", p)
			}
			if done {
				create(t, s, LogSpec{Topic: "t", TopicID: topicID(3), Partitions: []int32{p}})
				if l = s.Log("t", p); l.End() != 0 {
					t.Fatalf("t-%d made anew ends at %d", p, l.End())
				}
				if err := add(l, "new"); err != nil {
					t.Fatal(err)
				}
				requireHolds(t, l, "new")
			}
		}
		if done {
			requireHolds(t, s.Log("other", 0), "kept")
		}
	})
}

// Claim: whatever operation of a clean stop the power is cut at or that fails, every acknowledged record is there; and where
// the marker is, the stop was whole.
// Method: three logs with records, one of them in page-cache mode and checkpointed, closed at every operation.
func TestCloseLosesNothing(t *testing.T) {
	prepare := func(disk *faultfs.Disk) {}
	bothWays(t, prepare, func(disk *faultfs.Disk) bool {
		s := tryOpenStore(disk)
		if s == nil || s.Create(spec("t", 1, 3)) != nil {
			return false
		}
		for p := range int32(3) {
			if add(s.Log("t", p), "kept") != nil {
				s.Close(context.Background())
				return false
			}
		}
		s.Checkpoint()
		for p := range int32(2) {
			if add(s.Log("t", p), "too") != nil {
				s.Close(context.Background())
				return false
			}
		}
		s.Close(context.Background())
		return true
	}, func(t *testing.T, s *Store, disk *faultfs.Disk, done bool) {
		if !done {
			return
		}
		requireHolds(t, s.Log("t", 0), "kept", "too")
		requireHolds(t, s.Log("t", 1), "kept", "too")
		requireHolds(t, s.Log("t", 2), "kept")
		for _, l := range s.Logs() {
			if err := add(l, "goes on"); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// Claim: F010 the marker of a clean stop is gone, durably, before any log's folder is looked at; a crash while loading makes the
// next start recover, and a log with garbage at its end then ends where it should.
// Method: a clean stop, then the power is cut at every operation of a start; garbage is appended; the second start is watched.
func TestField_F010_RestartMarker(t *testing.T) {
	base := faultfs.New(t)
	s := openStore(t, quiet(base, "/a"))
	create(t, s, spec("t", 1, 20))
	for p := range int32(20) {
		if err := add(s.Log("t", p), "kept"); err != nil {
			t.Fatal(err)
		}
	}
	closeStore(t, s)
	for n := 0; ; n++ {
		disk := base.Clone()
		disk.CutAtOperation(n)
		if s, err := OpenStore(context.Background(), quiet(disk, "/a")); err == nil && !disk.Fired() {
			disk.CutPower()
			s.Close(context.Background())
			if n < 2 {
				t.Fatalf("a start in %d operations", n)
			}
			return
		}
		disk.CutPower(faultfs.KeepUnsynced(50))
		_, err := disk.Stat("/a/" + checkpoint.CleanName)
		if n >= 2 && err == nil { // removal and its sync
			t.Fatalf("the marker is still there at operation %d", n)
		}
		if err == nil {
			continue
		}
		log, err := disk.ReadFile("/a/t-3/00000000000000000000.log")
		if err != nil {
			t.Fatal(err)
		}
		disk.WriteFile("/a/t-3/00000000000000000000.log", append(log, "garbage that is no batch"...))
		var lines said
		o := quiet(disk, "/a")
		o.Logger = lines.logger()
		s := openStore(t, o)
		if lines.count("not stopped cleanly") != 1 {
			t.Fatalf("no recovery was announced:\n%s", lines.b.String())
		}
		for _, l := range s.Logs() {
			requireHolds(t, l, "kept")
		}
		if err := add(s.Log("t", 3), "after"); err != nil {
			t.Fatal(err)
		}
		requireHolds(t, s.Log("t", 3), "kept", "after")
		closeStore(t, s)
	}
}

// Claim: L7 a journal that is older than a clean stop is not replayed, not even when the start that finds it crashes.
// Method: a crash of ours, then another program cuts the log and leaves its own marker and checkpoint; a start cut at every operation, and one more.
func TestStaleJournalIsNotReplayed(t *testing.T) {
	base := faultfs.New(t)
	s := openStore(t, quiet(base, "/a"))
	create(t, s, spec("t", 1, 1))
	for _, v := range []string{"one", "two"} {
		if err := add(s.Log("t", 0), v); err != nil {
			t.Fatal(err)
		}
	}
	base.CutPower(faultfs.KeepUnsynced(100), faultfs.KeepNames(100))
	log, _ := base.ReadFile("/a/t-0/00000000000000000000.log")
	base.WriteFile("/a/t-0/00000000000000000000.log", log[:len(log)/2])
	base.WriteFile("/a/"+checkpoint.RecoveryPoints, []byte("0\n1\nt 0 1\n"))
	base.WriteFile("/a/"+checkpoint.CleanName, nil)
	for n := 0; ; n++ {
		disk := base.Clone()
		disk.CutAtOperation(n)
		OpenStore(context.Background(), quiet(disk, "/a"))
		fired := disk.Fired()
		disk.CutPower(faultfs.KeepUnsynced(50))
		s := openStore(t, quiet(disk, "/a"))
		requireHolds(t, s.Log("t", 0), "one")
		closeStore(t, s)
		if !fired {
			return
		}
	}
}

// Claim: after a clean stop a damaged tail is not taken for the end: the log is read up to it and refuses appends.
// Method: bytes cut off, and garbage in the place of the last batch, behind the Store's back.
func TestDamageAfterCleanStopIsNotTheEnd(t *testing.T) {
	disk := faultfs.New(t)
	s := openStore(t, quiet(disk, "/a"))
	create(t, s, spec("t", 1, 2))
	for range 2 {
		for p := range int32(2) {
			if err := add(s.Log("t", p), "a record"); err != nil {
				t.Fatal(err)
			}
		}
	}
	closeStore(t, s)
	log, _ := disk.ReadFile("/a/t-0/00000000000000000000.log")
	disk.WriteFile("/a/t-0/00000000000000000000.log", log[:len(log)-5])
	s = openStore(t, quiet(disk, "/a"))
	if end := s.Log("t", 0).End(); end != 2 {
		t.Fatalf("end %d", end)
	}
	var corrupt *CorruptError
	if err := add(s.Log("t", 0), "x"); !errors.As(err, &corrupt) || !errors.Is(err, ErrStorage) {
		t.Fatal(err)
	}
	if err := add(s.Log("t", 1), "x"); err != nil {
		t.Fatal(err)
	}
	s.Close(context.Background())
}

// Claim (L5, L6): a log whose deletion failed half-way comes back whole or not at all: nothing of it is removed while its name may still come back.
// Method: the directory is offline when the log is deleted; the process is killed, the next start has its power cut once the folder is gone, and any
// first part of each directory's changes of names is kept.
func TestHalfDeletedLogComesBackWhole(t *testing.T) {
	for seed := range uint64(30) {
		disk := faultfs.New(t, faultfs.Seed(seed))
		s := openStore(t, quiet(disk, "/a"))
		create(t, s, spec("t", 1, 1), spec("other", 2, 1))
		if err := add(s.Log("t", 0), "kept"); err != nil {
			t.Fatal(err)
		}
		disk.Fail(faultfs.Fault{Kind: faultfs.AnySync, Times: -1})
		disk.Fail(faultfs.Fault{Kind: faultfs.OpDirectWrite, Times: -1})
		_ = add(s.Log("other", 0), "lost")
		if s.OfflineDirs()["/a"] == nil || s.Delete("t") == nil {
			t.Fatal("the directory is not offline")
		}
		disk = crash(disk)
		removed := make(chan struct{})
		disk.AfterOperation(func(op faultfs.Op) {
			if op.Kind == faultfs.OpRemove && strings.HasSuffix(op.Name, deleteSuffix) {
				close(removed)
			}
		})
		disk.BeforeOperation(func(kind faultfs.Kind, name string) {
			if kind == faultfs.OpSyncFS {
				<-removed
			}
		})
		disk.Fail(faultfs.Fault{Kind: faultfs.OpSyncFS, Err: faultfs.ErrPowerCut})
		if s, err := OpenStore(context.Background(), quiet(disk, "/a")); err == nil {
			_ = s.Close(context.Background())
		}
		disk.CutPower(faultfs.KeepUnsynced(50))
		s = openStore(t, quiet(disk.Clone(), "/a"))
		if l := s.Log("t", 0); l != nil {
			requireHolds(t, l, "kept")
		}
		closeStore(t, s)
	}
}
