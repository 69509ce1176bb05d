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
	"millrace/engine/vfs/faultfs"
)

// Claim (L5): whatever operation of a reset the power is cut at or that fails, the log of a Store begins afterwards where it began before or
// where it was told to, never at 0 with offsets that were given out before; also where the new start is below the first segment, or at it.
// Method: a log of the offsets 50 to 52, reset or truncated to offsets around them, at every operation.
func TestResetLogNeverBeginsAtZero(t *testing.T) {
	for _, to := range []Offset{40, 50, 51, 60} {
		for _, how := range []string{"reset", "truncate"} {
			if how == "truncate" && to > 50 {
				continue
			}
			prepare := func(disk *faultfs.Disk) {
				s := tryOpenStore(disk)
				s.Create(spec("t", 1, 1))
				s.Log("t", 0).ResetTo(50)
				for range 2 {
					add(s.Log("t", 0), "old")
				}
				s.Close(context.Background())
			}
			t.Run(fmt.Sprintf("%s/to=%d", how, to), func(t *testing.T) {
				bothWays(t, prepare, func(disk *faultfs.Disk) bool {
					s := tryOpenStore(disk)
					if s == nil {
						return false
					}
					defer s.Close(context.Background())
					if how == "reset" {
						return s.Log("t", 0).ResetTo(to) == nil
					}
					return s.Log("t", 0).TruncateTo(to) == nil
				}, func(t *testing.T, s *Store, _ *faultfs.Disk, done bool) {
					l := s.Log("t", 0)
					if l.Start() != to && (done || l.Start() != 50) || l.End() < min(to, 50) {
						t.Fatalf("done %v: [%d, %d)", done, l.Start(), l.End())
					}
					if err := add(l, "new"); err != nil {
						t.Fatal(err)
					}
				})
			})
		}
	}
}

// Claim (L5): a topic made anew begins at 0, also where a crash left the former's start in the checkpoint file and nothing else of it.
// Method: a start checkpoint that tells of a log that is not there; create, append, lose power.
func TestTopicMadeAnewForgetsTheFormersStart(t *testing.T) {
	disk := faultfs.New(t)
	closeStore(t, openStore(t, quiet(disk, "/a")))
	disk.WriteFile("/a/"+checkpoint.LogStarts, checkpoint.Offsets{{Topic: "t", Partition: 0}: 3}.Encode())
	s := openStore(t, quiet(disk, "/a"))
	create(t, s, spec("t", 1, 1))
	putN(t, s.Log("t", 0), 1)
	disk.CutPower(faultfs.KeepUnsynced(50))
	s = openStore(t, quiet(disk, "/a"))
	requireValues(t, s.Log("t", 0), 0, 1)
	closeStore(t, s)
}

// Claim: a log whose reset has failed half-way answers look-ups (none spins, none finds what was taken back), refuses appends, and can be deleted.
// Method: each operation of a reset and of a truncation below the start fails in turn; ask; delete.
func TestLogOfAFailedResetAnswersAndGoes(t *testing.T) {
	for _, to := range []Offset{3, 70} {
		for n, fired := 0, true; fired; n++ {
			disk := faultfs.New(t)
			o := quiet(disk, "/a")
			o.Defaults = smallLog()
			s, l := openOne(t, o)
			putN(t, l, 30)
			if err := l.SetStart(10); err != nil {
				t.Fatal(err)
			}
			disk.FailOperation(n)
			err := l.TruncateTo(to)
			if to > 30 {
				err = l.ResetTo(to)
			}
			fired = disk.Fired()
			done := make(chan string, 1)
			go func() { // ends with the look-up; one that spins ends with the test
				off, _, found, err := l.OffsetForTime(1)
				_, _, err2 := l.MaxTimestamp()
				done <- fmt.Sprint(found && off >= l.End(), " ", off, " ", err, " ", err2)
			}()
			select {
			case told := <-done:
				if strings.HasPrefix(told, "true") {
					t.Fatalf("operation %d (%v): found %s; the log is [%d, %d)", n, err, told, l.Start(), l.End())
				}
			case <-time.After(10 * time.Second):
				t.Fatalf("operation %d (%v): a look-up hangs", n, err)
			}
			_ = s.Delete("t")
			_ = s.Close(context.Background())
		}
	}
}

// Claim: a SetStart that returns nil is durable, also the one that is tried again after the disk was full.
// Method: no byte free; try twice, which must fail twice; space; try again; lose power.
func TestStartTriedAgainIsDurable(t *testing.T) {
	disk := faultfs.New(t)
	s := openStore(t, quiet(disk, "/a"))
	create(t, s, spec("t", 1, 1))
	putN(t, s.Log("t", 0), 5)
	disk.SetFree(0)
	for range 2 {
		if err := s.Log("t", 0).SetStart(3); err == nil {
			t.Fatal("a start was acknowledged on a full disk")
		}
	}
	disk.SetFree(-1)
	if err := s.Log("t", 0).SetStart(3); err != nil {
		t.Fatal(err)
	}
	disk.CutPower(faultfs.KeepUnsynced(0))
	s = openStore(t, quiet(disk, "/a"))
	requireValues(t, s.Log("t", 0), 3, 5)
	closeStore(t, s)
}

// Claim: whatever operation of a truncation or reset fails, and however the Store is stopped then, the leader epochs that the log tells of
// are those of its batches, also of what is appended after the failure, if that is taken, and after the restart.
// Method: epochs 0 and 2; each operation fails in turn; append; stop or lose power; start; append; look up the epoch of each batch.
func TestEpochsAfterAFailedTruncation(t *testing.T) {
	for _, stop := range []string{"close", "cut"} {
		for _, to := range []Offset{0, 3, 7, 17} {
			for n, fired := 0, true; fired; n++ {
				disk := faultfs.New(t)
				o := quiet(disk, "/a")
				o.Defaults = smallLog()
				s, l := openOne(t, o)
				putN(t, l, 10)
				if err := errors.Join(l.SetEpoch(2), l.SetStart(5)); err != nil {
					t.Fatal(err)
				}
				for l.End() < 20 {
					if err := l.Append(leaderAppend(newBatch(1000, []string{valueOf(l.End())})), 2); err != nil {
						t.Fatal(err)
					}
				}
				disk.FailOperation(n)
				failed := l.TruncateTo(to)
				fired = disk.Fired()
				disk.Disarm()
				what := fmt.Sprintf("%s, to %d, operation %d (%v)", stop, to, n, failed)
				appended := l.Append(leaderAppend(newBatch(1000, []string{"after"})), max(l.Epoch(), 0))
				if appended == nil {
					requireEpochs(t, l, what)
				}
				if stop == "close" {
					_ = s.Close(context.Background())
				} else {
					disk.CutPower(faultfs.KeepUnsynced(50))
				}
				s = openStore(t, quiet(disk, "/a"))
				l = s.Log("t", 0)
				if err := l.Append(leaderAppend(newBatch(1000, []string{"again"})), max(l.Epoch(), 0)); err != nil {
					t.Fatalf("%s: %v", what, err)
				}
				requireEpochs(t, l, what)
				closeStore(t, s)
			}
		}
	}
}

// requireEpochs holds the history of a log against the epoch in each batch.
func requireEpochs(t *testing.T, l *Log, what string) {
	t.Helper()
	for _, s := range *l.segments.Load() {
		err := s.walk(0, s.size.Load(), func(e entry) bool {
			if e.base < l.Start() {
				return true
			}
			if got, ok := l.epochs.At(int64(e.base)); !ok || got != e.epoch {
				t.Fatalf("%s: the batch at %d is of epoch %d, the history %v says %d", what, e.base, e.epoch, l.epochs.All(), got)
			}
			return true
		})
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
	}
}

// Claim: an epoch whose first append has failed begins where the next batch of it lies, not where the failed one would have; the same if the
// next comes from a former leader, or the epoch is set without a batch.
// Method: a write fails that would have brought epoch 1 to an offset above the end: a follower's with a gap, or one behind a batch of epoch 0
// in the same write. Go on in four ways; hold the history against the batches, before and after a restart.
func TestEpochOfAFailedAppend(t *testing.T) {
	sent := func(a *Append, l *Log, e Epoch) error { return l.Append(a, e) }
	follower := func(base Offset, e Epoch) *Append {
		b := newBatch(1000, []string{"followed"})
		batch.Stamp(b, int64(base), int32(e))
		return followerAppend(b)
	}
	failing := map[string]func(l *Log) error{
		"a gap": func(l *Log) error { return sent(follower(5, 1), l, NoEpoch) },
		"a run": func(l *Log) error {
			first, second := leaderAppend(newBatch(1000, []string{"first"})), leaderAppend(newBatch(1000, []string{"second"}))
			l.Enqueue(first, 0)
			l.Enqueue(second, 1)
			return errors.Join(l.Write(first), l.Write(second))
		},
	}
	next := map[string]func(l *Log) error{
		"leader":        func(l *Log) error { return sent(leaderAppend(newBatch(1000, []string{"next"})), l, 1) },
		"follower":      func(l *Log) error { return sent(follower(2, 1), l, NoEpoch) },
		"former leader": func(l *Log) error { return sent(follower(2, 0), l, NoEpoch) },
		"set": func(l *Log) error {
			return errors.Join(l.SetEpoch(1), sent(leaderAppend(newBatch(1000, []string{"next"})), l, 1))
		},
	}
	for how, fail := range failing {
		for then, goOn := range next {
			t.Run(how+", "+then, func(t *testing.T) {
				disk := faultfs.New(t)
				l := openTestLog(t, disk, smallLog())
				putN(t, l, 2)
				disk.Fail(faultfs.Fault{Kind: faultfs.OpWrite, Pattern: "*.log", Times: 1})
				if err := fail(l); err == nil || l.End() != 2 {
					t.Fatalf("%v, end %d", err, l.End())
				}
				if _, end := l.EpochEnd(0); end != 2 {
					t.Errorf("epoch 0 ends at %d, behind the log", end)
				}
				for range 6 {
					if err := goOn(l); err != nil {
						t.Fatal(err)
					}
					goOn = func(l *Log) error {
						return sent(follower(l.End(), min(1, max(l.Epoch(), 0))), l, NoEpoch)
					}
				}
				requireEpochs(t, l, "before the restart")
				closeLog(t, l)
				l = openTestLog(t, disk, smallLog())
				requireEpochs(t, l, "after the restart")
				closeLog(t, l)
			})
		}
	}
}

// Claim: an epoch that has no batch yet outlives the replay of what lies below it.
// Method: batches of epoch 0, epoch 1 set; the page cache is lost, the journal kept.
func TestEpochAboveWhatIsReplayed(t *testing.T) {
	disk := faultfs.New(t)
	s := openStore(t, quiet(disk, "/a"))
	create(t, s, spec("t", 1, 1))
	putN(t, s.Log("t", 0), 3)
	if err := s.Log("t", 0).SetEpoch(1); err != nil {
		t.Fatal(err)
	}
	disk.CutPower(faultfs.KeepUnsynced(0), faultfs.KeepJournal(100))
	s = openStore(t, quiet(disk, "/a"))
	l := s.Log("t", 0)
	requireValues(t, l, 0, 3)
	if e, end := l.EpochEnd(0); l.Epoch() != 1 || e != 0 || end != 3 {
		t.Fatalf("epoch %d; epoch %d ended at %d", l.Epoch(), e, end)
	}
	closeStore(t, s)
}

// Claim (L6): the replay of a batch that tells no epoch leaves the epoch alone that was on disk before the power was cut.
// Method: the only batch of the first epoch lies behind one without an epoch; both are lost but for the journal; truncate to where the epoch had not begun.
func TestReplayOfABatchWithoutAnEpoch(t *testing.T) {
	disk := faultfs.New(t)
	l := openTestLog(t, disk.Session(), smallLog())
	if err := l.Append(leaderAppend(newBatch(1000, []string{"none"})), NoEpoch); err != nil {
		t.Fatal(err)
	}
	b := newBatch(1000, []string{"first"})
	batch.Stamp(b, 4, 0)
	if err := l.Append(followerAppend(b), NoEpoch); err != nil {
		t.Fatal(err)
	}
	disk.CutPower(faultfs.KeepUnsynced(0), faultfs.KeepJournal(100), faultfs.KeepNames(100))
	_ = l.Close()
	l = openTestLog(t, disk.Session(), smallLog())
	if got := l.epochs.All(); l.End() != 5 || len(got) != 1 || got[0].Start != 4 {
		t.Fatalf("the log ends at %d; epochs %v, want one from 4 on", l.End(), got)
	}
	closeLog(t, l)
}
