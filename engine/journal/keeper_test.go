package journal

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"millrace/engine/vfs/faultfs"
)

// Claim: a full disk costs the journal its files, not its promises: rounds sync the logs' files, nothing is poisoned, and once there is space
// a file is made without a restart.
func TestFullDiskIsNoFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := faultfs.New(t)
		must(t, disk, disk.WriteFile(dataDir+"/x", nil), "write")
		disk.SetFree(1 << 20)
		var said bytes.Buffer
		j, err := Open(Options{FS: disk, Dir: dataDir, DataDir: dataDir, Logger: slog.New(slog.NewTextHandler(&said, nil))})
		must(t, disk, err, "open")
		log, err := openFake(disk, j, "a")
		must(t, disk, err, "open log")
		must(t, disk, j.Start(), "start")
		put := func(serial uint64) {
			ticket, err := log.append(batch{count: 1, serial: serial, size: 10})
			must(t, disk, err, "append")
			must(t, disk, j.Wait(ticket), "wait")
			synctest.Wait()
		}
		put(1)
		if s := j.Stats(); s.Files != 0 || s.Unplaced != 1 || log.synced.Load() != 1 {
			t.Errorf("%+v, synced to %d", s, log.synced.Load())
		}
		if !strings.Contains(said.String(), "no journal file") {
			t.Errorf("said %q", said.String())
		}
		disk.SetFree(-1)
		put(2)
		if n := j.Stats().Files; n != 0 {
			t.Errorf("%d files at once: every round would try", n)
		}
		time.Sleep(makeRetry)
		put(3) // asks for one
		time.Sleep(time.Second)
		put(4)
		if s := j.Stats(); s.Files != 1 || s.Blocks != 1 {
			t.Errorf("%+v", s)
		}
		must(t, disk, j.Close(), "close")
	})
}

// Claim: the small file that Start made becomes a full one when rounds can spare it, and Close does not wait for that to end.
func TestSmallFileGrows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := faultfs.New(t)
		l := startLife(t, disk, setting{Dir: dataDir, FileBytes: 2 * firstFileBytes, Files: 3, Threshold: 1 << 20})
		sizes := func() (sizes []int64) {
			for _, f := range l.j.files {
				sizes = append(sizes, f.size)
			}
			return sizes
		}
		if s := sizes(); len(s) != 1 || s[0] != firstFileBytes {
			t.Fatalf("sizes %v", s)
		}
		for range 5 {
			l.put(t, "a", 1, 500<<10)
			time.Sleep(time.Second)
			synctest.Wait()
		}
		if s := sizes(); len(s) != 2 || s[0] != s[1] || s[0] != l.j.fileBytes {
			t.Errorf("sizes %v", s)
		}
		closeLife(t, disk, l)
	})
}

// Claim: the hook is called once a file's batches are synced where they belong, without the journal's locks.
func TestRecycleTellsTheStore(t *testing.T) {
	disk := faultfs.New(t)
	l := quietLife(t, disk, small)
	told := 0
	l.j.onRecycle = func() {
		told++
		if got := l.logs["a"].synced.Load(); got < 5 {
			t.Errorf("synced to %d", got)
		}
		must(t, disk, l.j.SyncAll(), "sync all")
	}
	for range 6 {
		l.put(t, "a", 1, 10)
		l.j.maintain()
	}
	if told != 1 {
		t.Errorf("told %d times", told)
	}
	closeLife(t, disk, l)
}

// Claim: a log that cut itself in the middle of being synced holds its file back until the cut is known, and no longer.
func TestFileWaitsForAnAnnouncedCut(t *testing.T) {
	disk := faultfs.New(t)
	l := quietLife(t, disk, small)
	a := l.logs["a"]
	for range 6 {
		l.put(t, "a", 1, 10)
		l.j.makeOne()
	}
	a.end.Store(3) // as in the middle of a truncation
	if l.j.recycleOne() {
		t.Error("recycled though batches 3 and 4 are nowhere else")
	}
	l.j.Cut(a, 3)
	if !l.j.recycleOne() {
		t.Error("still held back")
	}
	l.kill()
}

// Claim (L4): a failed sync in the background, and one that a log reports, end acknowledgements like a failed round; the journal is left as it is.
func TestBackgroundFailurePoisons(t *testing.T) {
	for _, how := range []string{"pass", "log"} {
		disk := faultfs.New(t)
		l := quietLife(t, disk, small)
		for range 5 {
			l.put(t, "a", 1, 10)
		}
		ticket, err := l.logs["a"].append(batch{count: 1, serial: 9})
		must(t, disk, err, "append")
		if how == "pass" {
			disk.Fail(faultfs.Fault{Kind: faultfs.OpSync, Pattern: "a.log"})
			if err := l.j.SyncAll(); !errors.Is(err, ErrPoisoned) {
				t.Errorf("SyncAll: %v", err)
			}
		} else {
			l.j.Fail(faultfs.ErrInjected)
		}
		if err := l.j.Wait(ticket); !errors.Is(err, ErrPoisoned) || !errors.Is(err, faultfs.ErrInjected) {
			t.Errorf("Wait: %v", err)
		}
		if err := l.j.Close(); !errors.Is(err, ErrPoisoned) {
			t.Errorf("Close: %v", err)
		}
		wantLeft(t, disk, "a", "0-1 1-2 2-3 3-4 4-5")
	}
}

// Claim: Wait says what is wrong before Start and after Close.
func TestWaitOutsideOfALife(t *testing.T) {
	disk := faultfs.New(t)
	must(t, disk, disk.MkdirAll(dataDir), "mkdir")
	j, err := Open(small.options(disk))
	must(t, disk, err, "open")
	log, err := openFake(disk, j, "a")
	must(t, disk, err, "open log")
	if err := j.Wait(j.AddSync(log)); !errors.Is(err, ErrNotStarted) {
		t.Errorf("before Start: %v", err)
	}
	must(t, disk, j.Start(), "start")
	kept, err := log.append(batch{count: 1, serial: 1})
	must(t, disk, err, "append")
	must(t, disk, j.Close(), "close")
	must(t, disk, j.Wait(kept), "wait for what Close made durable")
	if err := j.Wait(j.AddSync(log)); !errors.Is(err, ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
	must(t, disk, j.Close(), "close again")
}
