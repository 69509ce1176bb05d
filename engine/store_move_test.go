package engine

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"millrace/engine/batch"
	"millrace/engine/vfs/faultfs"
)

// twoDirs are options of a store in /a and /b whose segments hold a few batches.
func twoDirs(disk *faultfs.Disk) StoreOptions {
	o := quiet(disk, "/a", "/b")
	o.Defaults = smallLog()
	return o
}

// moveAndWait moves t-0 and returns once no move is left.
func moveAndWait(t testing.TB, s *Store, dir string) {
	t.Helper()
	if err := s.Move("t", 0, dir); err != nil {
		t.Fatal(err)
	}
	s.moves.running.Wait()
}

func requireIn(t testing.TB, s *Store, dir string) *Log {
	t.Helper()
	l := s.Log("t", 0)
	if l == nil || s.DirOf(l) != dir || l.Dir() != dir+"/t-0" {
		t.Fatalf("t-0 is %v in %q; want it in %s", l, s.DirOf(l), dir)
	}
	return l
}

// foldersOf lists what a data directory holds of t-0, deleted folders aside.
func foldersOf(t testing.TB, disk *faultfs.Disk, dir string) (names []string) {
	t.Helper()
	entries, err := disk.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.IsDir && strings.HasPrefix(e.Name, "t-0") && !strings.HasSuffix(e.Name, deleteSuffix) {
			names = append(names, e.Name)
		}
	}
	return names
}

// halted begins a move of t-0 to /b that copies one small chunk and then waits for SetMoveRate.
func halted(t testing.TB, s *Store, dir string) {
	t.Helper()
	s.SetMoveRate(0)
	if err := s.Move("t", 0, dir); err != nil {
		t.Fatal(err)
	}
	for len(s.Moves()) == 1 && s.Moves()[0].Bytes == 0 {
		time.Sleep(time.Millisecond)
	}
	if m := s.Moves(); len(m) != 1 || m[0].Dir != dir || m[0].End <= 0 || m[0].Bytes <= 0 {
		t.Fatalf("moves: %+v", m)
	}
}

// Claim: a moved log is what it was: records, start, leader epochs, producers, index; its appends go on; the folder it left
// is gone; and it is so after a clean stop, a crash, and a move back.
// Method: a log of many segments with a start inside one of them is moved there and back, with restarts of both kinds.
func TestMovedLogIsWhatItWas(t *testing.T) {
	for _, durability := range []Durability{Sync, PageCache} {
		t.Run(durability.String(), func(t *testing.T) {
			disk := faultfs.New(t)
			o := twoDirs(disk)
			o.Defaults.Durability = durability
			s := openStore(t, o)
			create(t, s, spec("t", 1, 1))
			l := requireIn(t, s, "/a")
			putN(t, l, 50)
			if err := errors.Join(l.SetEpoch(3), l.SetStart(7)); err != nil {
				t.Fatal(err)
			}
			producer := leaderAppend(newBatch(time.Now().UnixMilli(), []string{"once"}, batch.Producer(77, 0, 0)))
			if err := l.Append(producer, 3); err != nil {
				t.Fatal(err)
			}
			putIn(t, l, 20)
			end := l.End()
			for i, dir := range []string{"/b", "/a", "/b"} {
				moveAndWait(t, s, dir)
				l := requireIn(t, s, dir)
				if e, o := l.EpochEnd(2); l.Start() != 7 || l.End() != end || l.Epoch() != 3 || o != 50 || e != 0 {
					t.Fatalf("start %d, end %d (want %d), epoch %d, the one before ended %d at %d", l.Start(), l.End(), end, l.Epoch(), e, o)
				}
				if got := mustContents(t, l); len(got) != int(end)-7 || got[0].value != valueOf(7) {
					t.Fatalf("%d records from %+v", len(got), got[0])
				}
				again := leaderAppend(newBatch(time.Now().UnixMilli(), []string{"once"}, batch.Producer(77, 0, 0)))
				if err := l.Append(again, 3); err != nil || !again.Duplicate || again.Base != producer.Base {
					t.Fatalf("the producer is not known any more: %v %+v", err, again)
				}
				if off, _, found, err := l.OffsetForTime(1000); err != nil || !found || off != 7 {
					t.Fatal(off, found, err)
				}
				putIn(t, l, 10)
				end += 10
				other := map[string]string{"/a": "/b", "/b": "/a"}[dir]
				if left := foldersOf(t, disk, other); len(left) > 0 {
					t.Fatalf("%s still holds %v", other, left)
				}
				switch i {
				case 0:
					closeStore(t, s)
				case 1:
					if err := l.Sync(); err != nil {
						t.Fatal(err)
					}
					disk.CutPower(faultfs.KeepUnsynced(50))
				default:
					closeStore(t, s)
				}
				s = openStore(t, o.again(disk))
			}
			if l := requireIn(t, s, "/b"); l.Start() != 7 || l.End() != end {
				t.Fatalf("start %d, end %d", l.Start(), l.End())
			}
			closeStore(t, s)
		})
	}
}

// putIn is putN in whatever epoch the log is.
func putIn(t testing.TB, l *Log, n int) {
	t.Helper()
	for range n {
		if err := l.Append(leaderAppend(newBatch(1000, []string{valueOf(l.End())})), NoEpoch); err != nil {
			t.Fatal(err)
		}
	}
}

// again are the same options for the next life of the disk.
func (o StoreOptions) again(disk *faultfs.Disk) StoreOptions {
	o.FS = disk.Session()
	return o
}

// Claim: L8, L6: whatever operation of a move the power is cut at or that fails, the log is in one directory with every record that
// was acknowledged before, during and after it; and it can be moved again.
// Method: a log of several segments is moved at every operation; records are acknowledged on each side of it.
func TestMoveSurvivesAnyFault(t *testing.T) {
	base := faultfs.New(t)
	s := openStore(t, twoDirs(base))
	create(t, s, spec("t", 1, 1))
	putN(t, s.Log("t", 0), 30)
	if err := s.Log("t", 0).SetStart(3); err != nil {
		t.Fatal(err)
	}
	closeStore(t, s)
	for _, fail := range []bool{false, true} {
		for n := 0; ; n++ {
			fired := false
			t.Run(fmt.Sprintf("fail=%v/operation=%d", fail, n), func(t *testing.T) { fired = moveWithFault(t, base.Clone(), fail, n) })
			if !fired || t.Failed() {
				break
			}
		}
	}
}

func moveWithFault(t *testing.T, disk *faultfs.Disk, fail bool, n int) (fired bool) {
	s := openStore(t, twoDirs(disk))
	l := s.Log("t", 0)
	acked := l.End()
	try := func() {
		if l.End() == acked && l.Append(leaderAppend(newBatch(1000, []string{valueOf(acked)})), 0) == nil {
			acked++
		}
	}
	if fail {
		disk.FailOperation(n)
	} else {
		disk.CutAtOperation(n)
	}
	try()
	moved := s.Move("t", 0, "/b") == nil
	try()
	s.moves.running.Wait()
	for range 12 { // rolls
		try()
	}
	fired = disk.Fired()
	if !fired && (!moved || s.DirOf(l) != "/b") {
		t.Fatal("not moved, and no fault")
	}
	disk.CutPower(faultfs.Mixes()[n%len(faultfs.Mixes())].Options()...)
	s = openStore(t, twoDirs(disk))
	if len(s.OfflineDirs()) > 0 || len(s.Damaged()) > 0 {
		t.Fatal(s.OfflineDirs(), s.Damaged())
	}
	l = s.Log("t", 0)
	if l.Start() != 3 || l.End() < acked {
		t.Fatalf("log [%d, %d), acknowledged up to %d", l.Start(), l.End(), acked)
	}
	requireValues(t, l, 3, l.End())
	s.moves.running.Wait() // what was resumed
	moveAndWait(t, s, "/a")
	moveAndWait(t, s, "/b")
	l = requireIn(t, s, "/b")
	putN(t, l, 5)
	requireValues(t, l, 3, l.End())
	s.background.idle.Wait()
	if a, b := foldersOf(t, disk, "/a"), foldersOf(t, disk, "/b"); len(a) != 0 || len(b) != 1 {
		t.Fatalf("/a holds %v, /b holds %v", a, b)
	}
	closeStore(t, s)
	return fired
}

// Claim: a log that moves to and fro is read and written all the time: no ack is lost, no reader misses or repeats a record.
// Method: real files; four writers, two readers from the start and at the tail, retention, and a log that never rests.
func TestMoveWhileItServes(t *testing.T) {
	dirs := []string{t.TempDir(), t.TempDir()}
	c := smallLog()
	c.SegmentBytes = 64 << 10
	s := openStore(t, StoreOptions{Dirs: dirs, RetentionCheck: -1, CheckpointEvery: 5 * time.Millisecond, Defaults: c})
	create(t, s, spec("t", 1, 1))
	l := s.Log("t", 0)
	var stop atomic.Bool
	var acked atomic.Int64
	var work sync.WaitGroup
	for w := range 4 {
		work.Go(func() { // ends with stop, or the first error
			for i := 0; !stop.Load(); i++ {
				a := leaderAppend(newBatch(1000, []string{fmt.Sprintf("%d %d", w, i)}))
				if err := l.Append(a, 0); err != nil {
					t.Errorf("append: %v", err)
					return
				}
				raise(&acked, int64(a.Base)+1)
			}
		})
	}
	for r := range 2 {
		work.Go(func() { // ends with stop, or the first error
			for !stop.Load() {
				from := l.Start()
				if r == 0 {
					from = l.Durable()
				}
				if err := readOn(l, from, 300); err != nil {
					t.Errorf("read: %v", err)
					return
				}
				if _, _, _, err := l.OffsetForTime(1000); err != nil {
					t.Errorf("offset for time: %v", err)
					return
				}
				if _, _, err := l.MaxTimestamp(); err != nil {
					t.Errorf("max timestamp: %v", err)
					return
				}
			}
		})
	}
	held, err := l.Read(0, 1<<20, noLimit, true)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 12 {
		for before := acked.Load(); acked.Load() < before+50 && !t.Failed(); {
			time.Sleep(time.Millisecond)
		}
		dir := dirs[(i+1)%2]
		if err := s.Move("t", 0, dir); err != nil {
			t.Fatal(err)
		}
		s.moves.running.Wait()
		if s.DirOf(l) != dir {
			t.Fatalf("move %d: not in %s; %+v", i, dir, s.MoveStats())
		}
		if i == 5 { // the front goes while it is copied
			if err := l.SetStart(l.Durable() / 2); err != nil {
				t.Fatal(err)
			}
			go l.Retain(time.Now()) // ends by itself
		}
	}
	stop.Store(true)
	work.Wait()
	if held.Size() > 0 {
		if err := held.ReadInto(make([]byte, held.Size())); err != nil {
			t.Errorf("a slice from before twelve moves: %v", err)
		}
	}
	held.Release()
	start, end := l.Start(), l.End()
	if end < Offset(acked.Load()) {
		t.Fatalf("end %d, acknowledged %d", end, acked.Load())
	}
	closeStore(t, s)
	s = openStore(t, StoreOptions{Dirs: dirs, RetentionCheck: -1, CheckpointEvery: -1, Defaults: c})
	l = s.Log("t", 0)
	if l.Start() < start || l.End() != end {
		t.Fatalf("[%d, %d) after the restart; was [%d, %d)", l.Start(), l.End(), start, end)
	}
	requireOrdered(t, mustContents(t, l))
	closeStore(t, s)
}

// readOn reads at most most records from offset from and demands that none is missing.
func readOn(l *Log, from Offset, most int) error {
	limit := min(l.Durable(), from+Offset(most))
	got, err := contents(l, limit, 4096)
	if errors.Is(err, ErrOutOfRange) {
		return nil // the start has risen meanwhile
	}
	for i, r := range got {
		if i > 0 && r.offset != got[i-1].offset+1 {
			return fmt.Errorf("offset %d after %d", r.offset, got[i-1].offset)
		}
	}
	return err
}

// requireOrdered demands that each writer's values ascend without a gap.
func requireOrdered(t testing.TB, got []gotRecord) {
	t.Helper()
	next := map[int]int{}
	for _, r := range got {
		var w, i int
		fmt.Sscanf(r.value, "%d %d", &w, &i)
		if want, seen := next[w]; seen && i != want {
			t.Fatalf("writer %d: %d, want %d", w, i, want)
		}
		next[w] = i + 1
	}
}

// Claim: a stop interrupts a move and the next start begins it again, after a clean stop and after a crash; an unfinished copy
// is never taken for the log.
// Method: halted moves.
func TestMoveIsResumed(t *testing.T) {
	for _, crashed := range []bool{false, true} {
		disk := faultfs.New(t)
		s := openStore(t, twoDirs(disk))
		create(t, s, spec("t", 1, 1))
		putN(t, s.Log("t", 0), 40)
		halted(t, s, "/b")
		putN(t, s.Log("t", 0), 10)
		if crashed {
			disk.CutPower(faultfs.KeepUnsynced(50), faultfs.KeepNames(50))
		} else {
			closeStore(t, s)
		}
		var lines said
		o := twoDirs(disk)
		o.Logger = lines.logger()
		s = openStore(t, o)
		s.moves.running.Wait()
		requireValues(t, requireIn(t, s, "/b"), 0, 50)
		s.background.idle.Wait()
		if a, b := foldersOf(t, disk, "/a"), foldersOf(t, disk, "/b"); len(a) != 0 || len(b) != 1 || lines.count("log is being moved") != 1 {
			t.Fatalf("/a holds %v, /b holds %v\n%s", a, b, lines.b.String())
		}
		closeStore(t, s)
	}
}

// Claim: a move is ended by a move to where the log is, and replaced by one to a third directory; what it copied is gone for good
// when the answer is given, also after a crash right then.
// Method: halted moves.
func TestMoveIsCancelledOrReplaced(t *testing.T) {
	disk := faultfs.New(t)
	o := twoDirs(disk)
	o.Dirs = []string{"/a", "/b", "/c"}
	s := openStore(t, o)
	create(t, s, spec("t", 1, 1))
	putN(t, s.Log("t", 0), 40)
	halted(t, s, "/b")
	if err := s.Move("t", 0, "/b"); err != nil || len(s.Moves()) != 1 { // the same again
		t.Fatal(err, s.Moves())
	}
	if err := s.Move("t", 0, "/a"); err != nil || len(s.Moves()) != 0 {
		t.Fatal(err, s.Moves())
	}
	crashed := disk.Clone()
	crashed.CutPower(faultfs.KeepUnsynced(0), faultfs.KeepNames(0))
	after := openStore(t, o.again(crashed))
	after.moves.running.Wait()
	requireValues(t, requireIn(t, after, "/a"), 0, 40)
	closeStore(t, after)

	halted(t, s, "/b")
	halted(t, s, "/c")
	if left := foldersOf(t, disk, "/b"); len(left) != 0 {
		t.Fatal(left)
	}
	s.SetMoveRate(math.MaxInt64)
	s.moves.running.Wait()
	requireValues(t, requireIn(t, s, "/c"), 0, 40)
	if err := s.Move("t", 0, "/c"); err != nil || len(s.Moves()) != 0 {
		t.Fatal(err)
	}
	if got := s.MoveStats(); got.Done != 1 || got.Failed != 0 || got.Bytes < s.Log("t", 0).Size() {
		t.Fatalf("%+v, the log has %d bytes", got, s.Log("t", 0).Size())
	}
	closeStore(t, s)
}

// Claim: a topic deleted while it moves is gone from both directories, also after a crash; made anew it begins at 0.
// Method: a halted move.
func TestDeleteEndsAMove(t *testing.T) {
	disk := faultfs.New(t)
	s := openStore(t, twoDirs(disk))
	create(t, s, spec("t", 1, 1))
	putN(t, s.Log("t", 0), 40)
	halted(t, s, "/b")
	if err := s.Delete("t"); err != nil {
		t.Fatal(err)
	}
	disk.CutPower(faultfs.KeepUnsynced(0), faultfs.KeepNames(0))
	s = openStore(t, twoDirs(disk))
	s.background.idle.Wait()
	if a, b := foldersOf(t, disk, "/a"), foldersOf(t, disk, "/b"); len(a) != 0 || len(b) != 0 || len(s.Moves()) != 0 {
		t.Fatalf("/a holds %v, /b holds %v", a, b)
	}
	create(t, s, LogSpec{Topic: "t", TopicID: topicID(2), Partitions: []int32{0}})
	if end := s.Log("t", 0).End(); end != 0 {
		t.Fatal(end)
	}
	closeStore(t, s)
}

// Claim: what fails in the new directory ends the move and leaves the log serving where it is: no space costs only the move, a
// failed sync the directory. What fails in the old one is not carried over.
// Method: writes and syncs of one directory fail while a log is moved to the other.
func TestMoveThatFailsLeavesTheLog(t *testing.T) {
	for name, x := range map[string]struct {
		fault   faultfs.Fault
		offline string
	}{
		"full":        {faultfs.Fault{Kind: faultfs.OpWrite, Pattern: "/b/*/*.log", Err: syscall.ENOSPC, Times: -1}, ""},
		"failed sync": {faultfs.Fault{Kind: faultfs.OpSync, Pattern: "/b/*/*.log", Times: -1}, "/b"},
		"failed name": {faultfs.Fault{Kind: faultfs.OpRename, Pattern: "/b/*-future", Times: 1}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			disk := faultfs.New(t)
			s := openStore(t, twoDirs(disk))
			create(t, s, spec("t", 1, 1))
			putN(t, s.Log("t", 0), 40)
			disk.Fail(x.fault)
			moveAndWait(t, s, "/b")
			l := requireIn(t, s, "/a")
			putN(t, l, 10)
			requireValues(t, l, 0, 50)
			if got := s.OfflineDirs(); x.offline == "" && len(got) > 0 || x.offline != "" && got[x.offline] == nil {
				t.Fatal(got)
			}
			if got := s.MoveStats(); got.Failed != 1 || len(s.Moves()) != 0 {
				t.Fatalf("%+v %v", got, s.Moves())
			}
			s.background.idle.Wait()
			if left := foldersOf(t, disk, "/b"); x.offline == "" && len(left) > 0 {
				t.Fatal(left)
			}
			s.Close(context.Background())
			disk.CutPower()
			s = openStore(t, twoDirs(disk))
			s.moves.running.Wait()
			requireValues(t, s.Log("t", 0), 0, 50)
			closeStore(t, s)
		})
	}
}

// Claim: a log whose directory has failed is not moved away: what it acknowledged is in a journal that only a start reads. Moves to
// a directory that is offline or not ours are refused, with the reason.
// Method: the journal of /a fails while a move is halted.
func TestFailedDirectoryIsNotMovedFrom(t *testing.T) {
	disk := faultfs.New(t)
	s := openStore(t, twoDirs(disk))
	create(t, s, spec("t", 1, 1), spec("u", 2, 1))
	putN(t, s.Log("t", 0), 40)
	halted(t, s, "/b")
	disk.Fail(faultfs.Fault{Kind: faultfs.OpDirectWrite, Pattern: "/a/*", Times: -1})
	err := error(nil)
	for i := 0; i < 20 && err == nil; i++ { // an append that rolls syncs the segment and needs no journal
		err = add(s.Log("t", 0), "lost")
	}
	if !errors.Is(err, ErrPoisoned) {
		t.Fatal(err)
	}
	s.SetMoveRate(math.MaxInt64)
	s.moves.running.Wait()
	requireIn(t, s, "/a")
	for dir, want := range map[string]error{"/a": ErrStorage, "/b": ErrStorage, "/x": ErrNoDir, "/a/../x": ErrNoDir} {
		if err := s.Move("t", 0, dir); !errors.Is(err, want) {
			t.Errorf("%s: %v", dir, err)
		}
	}
	if err := s.Move("u", 0, "/a"); !errors.Is(err, ErrStorage) || s.DirOf(s.Log("u", 0)) != "/b" {
		t.Errorf("to an offline directory: %v", err)
	}
	s.Close(context.Background())
	if err := s.Move("t", 0, "/b"); err == nil {
		t.Error("moved after Close")
	}
	disk.CutPower()
	s = openStore(t, twoDirs(disk))
	s.moves.running.Wait()
	if got := mustContents(t, s.Log("t", 0)); len(got) < 40 {
		t.Fatal(len(got))
	}
	s.Close(context.Background())
}

// Claim: L8 of two folders of one log a start takes the one with the higher move number, whichever directory is listed first, and
// removes the other; of two that no move made it sets the second aside, as ever.
// Method: folders copied by hand, with numbers.
func TestStartTakesTheNewerOfTwoFolders(t *testing.T) {
	for _, x := range []struct {
		a, b string // move numbers; "": none
		want string
		left int // folders of t-0 in the end
	}{{"", "1", "/b", 1}, {"1", "", "/a", 1}, {"3", "2", "/a", 1}, {"2", "3", "/b", 1}, {"", "", "/a", 2}, {"4", "4", "/a", 2}, {"1", "nonsense", "/a", 2}} {
		disk := faultfs.New(t)
		s := openStore(t, twoDirs(disk))
		create(t, s, spec("t", 1, 1))
		putN(t, s.Log("t", 0), 20)
		closeStore(t, s)
		copyFolder(t, disk, "/a/t-0", "/b/t-0")
		for dir, number := range map[string]string{"/a": x.a, "/b": x.b} {
			if number != "" {
				disk.WriteFile(dir+"/t-0/"+moveNumberName, []byte(number))
			}
		}
		s = openStore(t, twoDirs(disk))
		requireValues(t, requireIn(t, s, x.want), 0, 20)
		s.background.idle.Wait()
		if n := len(foldersOf(t, disk, "/a")) + len(foldersOf(t, disk, "/b")); n != x.left || len(s.Damaged()) != x.left-1 {
			t.Errorf("%+v: %d folders left, damaged %v", x, n, s.Damaged())
		}
		s.Close(context.Background())
	}
}

func copyFolder(t testing.TB, disk *faultfs.Disk, from, to string) {
	t.Helper()
	disk.MkdirAll(to)
	entries, err := disk.ReadDir(from)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		writeFile(t, disk, to+"/"+e.Name, readFile(t, disk, from+"/"+e.Name))
	}
}

// Claim: a log that does not exist yet is made in the directory that it was asked for.
// Method: three partitions that would all go elsewhere.
func TestMoveBeforeCreation(t *testing.T) {
	disk := faultfs.New(t)
	s := openStore(t, twoDirs(disk))
	for p := range int32(3) {
		if err := s.Move("t", p, "/b"); !errors.Is(err, ErrNoLog) {
			t.Fatal(err)
		}
	}
	create(t, s, spec("t", 1, 4))
	for p, want := range []string{"/b", "/b", "/b", "/a"} {
		if got := s.DirOf(s.Log("t", int32(p))); got != want {
			t.Errorf("t-%d is in %s", p, got)
		}
	}
	closeStore(t, s)
}

// Claim: an unsynced log that is dormant, one that is empty, and one of only old records move like any other.
// Method: an empty log, and one opened after a clean stop that nobody has changed.
func TestDormantAndEmptyLogsMove(t *testing.T) {
	disk := faultfs.New(t)
	s := openStore(t, twoDirs(disk))
	create(t, s, spec("t", 1, 1))
	moveAndWait(t, s, "/b")
	putN(t, requireIn(t, s, "/b"), 25)
	if _, err := s.Log("t", 0).Retain(time.Now()); err != nil { // all of them: they are from 1970
		t.Fatal(err)
	}
	moveAndWait(t, s, "/a")
	l := requireIn(t, s, "/a")
	if l.Start() != 25 || l.End() != 25 {
		t.Fatalf("[%d, %d)", l.Start(), l.End())
	}
	putN(t, l, 5)
	closeStore(t, s)
	s = openStore(t, twoDirs(disk))
	moveAndWait(t, s, "/b")
	l = requireIn(t, s, "/b")
	putN(t, l, 5)
	requireValues(t, l, 25, 35)
	closeStore(t, s)
}

// Claim: L8 a copy that may have got the log's name on disk when its move failed is not taken by a start, however much of the
// failed directory's names survives: what the log acknowledged since is there.
// Method: every sync of the new directory's names fails from the n-th on; then records, and a loss of power of each kind.
func TestFailedRenameIsFenced(t *testing.T) {
	for _, dirs := range [][]string{{"/a", "/b"}, {"/b", "/a"}} {
		for n := range 8 {
			for _, names := range []int{0, 50, 100} {
				disk := faultfs.New(t)
				o := twoDirs(disk)
				o.Dirs = dirs
				s := openStore(t, o)
				create(t, s, spec("t", 1, 1))
				l, to := s.Log("t", 0), dirs[1]
				putN(t, l, 20)
				disk.Fail(faultfs.Fault{Kind: faultfs.OpSyncDir, Pattern: to, After: n, Times: -1})
				s.Move("t", 0, to)
				s.moves.running.Wait()
				acked := l.End()
				for range 5 {
					if l.Append(leaderAppend(newBatch(1000, []string{valueOf(acked)})), 0) == nil {
						acked = l.End()
					}
				}
				if s.DirOf(l) == dirs[0] && acked != 25 {
					t.Fatalf("n=%d: the log stayed and takes no appends", n)
				}
				disk.CutPower(faultfs.KeepUnsynced(100), faultfs.KeepNames(names))
				s = openStore(t, o.again(disk))
				s.moves.running.Wait()
				if len(s.Damaged()) > 0 || s.Log("t", 0).End() < acked {
					t.Fatalf("dirs=%v n=%d names=%d: damaged %v, end %d, acknowledged %d", dirs, n, names, s.Damaged(), s.Log("t", 0).End(), acked)
				}
				requireValues(t, s.Log("t", 0), 0, s.Log("t", 0).End())
				s.Close(context.Background())
			}
		}
	}
}

// Claim (L8): the folder that a log has moved from is not put away before the name of the new one is on disk.
// Method: the process is killed between the new name and its sync; the power is cut in the next start, before it syncs all, and takes unsynced names.
func TestFormerFolderStaysUntilTheNewNameIsSynced(t *testing.T) {
	disk := faultfs.New(t)
	var killed *faultfs.Disk
	disk.AfterOperation(func(op faultfs.Op) {
		if op.Kind == faultfs.OpRename && op.To == "/b/t-0" {
			killed = crash(disk)
		}
	})
	s := openStore(t, twoDirs(disk))
	create(t, s, spec("t", 1, 1))
	putN(t, requireIn(t, s, "/a"), 20)
	moveAndWait(t, s, "/b")
	closeStore(t, s)
	killed.Fail(faultfs.Fault{Kind: faultfs.OpSyncFS, Err: faultfs.ErrPowerCut})
	if s, err := OpenStore(context.Background(), twoDirs(killed)); err == nil {
		_ = s.Close(context.Background())
	}
	if !killed.Fired() {
		t.Fatal("the start synced nothing")
	}
	killed.CutPower(faultfs.KeepNames(0))
	s = openStore(t, twoDirs(killed))
	l := s.Log("t", 0)
	if l == nil {
		t.Fatal("t-0 is gone")
	}
	requireValues(t, l, 0, 20)
	closeStore(t, s)
}
