package engine

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"millrace/engine/vfs"
	"millrace/engine/vfs/faultfs"
)

// Claim: what logs and stores promise under faults, truncation, retention, moves and compaction does not depend on how many segment files may be open.
// Method: the tests that attack these promises once more, with one file.
func TestFewOpenFiles(t *testing.T) {
	if openFilesOfTests > 0 {
		t.Skip("the whole run is with few files")
	}
	openFilesOfTests = 1
	defer func() { openFilesOfTests = 0 }()
	quick := map[string]func(*testing.T){
		"shape": TestShapeDoesNotMatter, "create": TestCreateIsWholeOrAbsent, "delete": TestDeletedStaysDeleted,
		"sync": TestNothingIsAcknowledgedAfterAFailedSync, "dir": TestLogsOwnFailedSyncEndsTheDirectorysAcks,
		"readers": TestReadersBesideEverything, "deletion": TestDeletionWaitsAndSpareReaders, "cleaned": TestCleanedLogsReadRight,
		"swap": TestWideSwapSurvivesAnyFault, "pass": TestReadersOutliveAFailedPass, "copy": TestCopyFollowsTheLog, "fence": TestFailedRenameIsFenced,
	}
	for name, test := range quick {
		t.Run(name, test)
	}
	if testing.Short() {
		return
	}
	for name, test := range map[string]func(*testing.T){
		"faults": TestAcknowledgedBatchesSurviveAnyFault, "recovery": TestAcknowledgedBatchesSurviveFaultsOfRecovery, "close": TestCloseLosesNothing,
		"clean": TestCleaningSurvivesAnyFault, "move": TestMoveSurvivesAnyFault, "moving": TestMoveWhileItServes,
	} {
		t.Run(name, test)
	}
}

// Claim: a log that rolls often keeps no more files open than it may.
// Method: one log, two files, a hundred segments; then all of them are read.
func TestRollingLogKeepsFewFiles(t *testing.T) {
	for _, durability := range []Durability{Sync, PageCache} {
		o := quiet(faultfs.New(t), "/a")
		o.OpenFiles, o.Defaults.SegmentBytes, o.Defaults.Durability = 2, 110, durability
		s := openStore(t, o)
		create(t, s, spec("t", 1, 1))
		l := s.Log("t", 0)
		most := 0
		for i := range 100 {
			fail(t, add(l, fmt.Sprint("a record that fills a segment: ", i)))
			most = max(most, s.FileStats().Open)
		}
		if n := l.Stats().Segments; n != 100 || most > 3 {
			t.Errorf("%d segments, %d files open", n, most)
		}
		if got := values(t, l); len(got) != 100 {
			t.Errorf("read %d records", len(got))
		}
		if st := s.FileStats(); st.Open > 3 {
			t.Errorf("%+v", st)
		}
		closeStore(t, s)
	}
}

// Claim: a file that somebody reads from stays open, however many others are wanted.
// Method: slices of five logs, and one file; five other logs are used until their files have been closed for others; the slices are read.
func TestFilesInUseStayOpen(t *testing.T) {
	o := quiet(faultfs.New(t), "/a")
	o.OpenFiles = 1
	s := openStore(t, o)
	create(t, s, spec("t", 1, 10))
	var held []*Slice
	for p := range int32(5) {
		l := s.Log("t", p)
		fail(t, add(l, fmt.Sprint("value of ", p)))
		r, err := l.Read(0, 1000, l.End(), true)
		if err != nil {
			t.Fatal(err)
		}
		held = append(held, r)
	}
	for s.FileStats().Evicted < 20 {
		for p := int32(5); p < 10; p++ {
			fail(t, add(s.Log("t", p), "other"))
		}
	}
	for p, r := range held {
		b := make([]byte, r.Size())
		if err := r.ReadInto(b); err != nil || !strings.Contains(string(b), fmt.Sprint("value of ", p)) {
			t.Errorf("log %d: %v", p, err)
		}
		r.Release()
	}
	closeStore(t, s)
}

// openFilesOn counts the segment files that a disk's users have open, and the most so far.
type openFilesOn struct {
	vfs.FS
	mu        sync.Mutex
	now, most int
	fail      func(name string) error // asked before a segment is opened; nil: no
}

type countedFile struct {
	vfs.File
	of *openFilesOn
}

func (o *openFilesOn) OpenFile(name string, flag int) (vfs.File, error) {
	if !strings.HasSuffix(name, logSuffix) {
		return o.FS.OpenFile(name, flag)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.fail != nil {
		if err := o.fail(name); err != nil {
			return nil, err
		}
	}
	f, err := o.FS.OpenFile(name, flag)
	if err != nil {
		return nil, err
	}
	o.now++
	o.most = max(o.most, o.now)
	return &countedFile{f, o}, nil
}

func (f *countedFile) Close() error {
	f.of.mu.Lock()
	f.of.now--
	f.of.mu.Unlock()
	return f.File.Close()
}

// Claim: the set bounds what is open, counts right, and closes what was not used for longest before what was.
// Method: thirty logs and eight files: all are appended to and read, in turn and from many goroutines, beside rolls, truncation, retention and deletion;
// the files that the file system has seen open are counted, and at the end all are closed.
func TestOpenFilesAreBounded(t *testing.T) {
	const logs, files = 30, 8
	fs := &openFilesOn{FS: faultfs.New(t).Session()}
	o := quiet(fs, "/a")
	o.OpenFiles = files
	o.Defaults.SegmentBytes, o.Defaults.RetentionBytes = 500, 1500
	s := openStore(t, o)
	create(t, s, spec("t", 1, logs))
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Go(func() {
			for i := range 60 {
				for p := w; p < logs; p += 4 {
					l := s.Log("t", int32(p))
					if err := add(l, fmt.Sprintf("%d of %d", i, p)); err != nil {
						t.Error(err)
						return
					}
					from := l.Start()
					if r, err := l.Read(from, 100, l.End(), true); err == nil {
						b := make([]byte, r.Size())
						if err := r.ReadInto(b); err != nil {
							t.Error(err)
						}
						r.Release()
					} else if !errors.Is(err, ErrOutOfRange) {
						t.Error(err)
					}
					switch {
					case i%20 == 7:
						_, err := l.Retain(time.Now())
						fail(t, err)
					case i%20 == 13:
						fail(t, l.TruncateTo(l.End()-1))
						fail(t, add(l, "again"))
					}
				}
			}
		})
	}
	wg.Wait()
	// Four writers may each pin one, and hold the one they are about to read.
	if limit := files + 2*4; fs.most > limit {
		t.Errorf("%d segment files were open at once, want at most %d", fs.most, limit)
	}
	st := s.FileStats()
	if st.Open != fs.now || st.Max != files || st.Evicted == 0 || st.Reopened == 0 || st.Opened < st.Reopened {
		t.Errorf("%+v with %d open", st, fs.now)
	}
	for p := range int32(logs) {
		if l := s.Log("t", p); len(values(t, l)) == 0 || l.End() != 60 {
			t.Errorf("log %d ends at %d", p, l.End())
		}
	}
	if err := s.Delete("t", 3, 4, 5); err != nil {
		t.Fatal(err)
	}
	closeStore(t, s)
	if st := s.FileStats(); fs.now != 0 || st.Open != 0 {
		t.Errorf("%d files open at the end, %d in the set", fs.now, st.Open)
	}
	s = openStore(t, o)
	if len(values(t, s.Log("t", 29))) == 0 {
		t.Error("nothing left")
	}
	closeStore(t, s)
}

func fail(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Error(err)
	}
}

// Claim: what was unsynced in a file that was closed for others is synced by the file system's sync, whatever its file opened again would say; where
// that sync fails, it ends all acks (L4), and a power cut after one that did not fail loses nothing.
// Method: page-cache logs and one file. Syncs of segments report success and the file system's are counted, then fail.
func TestUnsyncedFilesAreSyncedByTheirFileSystem(t *testing.T) {
	disk := faultfs.New(t)
	o := quiet(disk, "/a")
	o.OpenFiles, o.Defaults.Durability = 1, PageCache
	s := openStore(t, o)
	create(t, s, spec("t", 1, 10))
	for p := range int32(10) {
		fail(t, add(s.Log("t", p), "kept"))
	}
	if st := s.FileStats(); st.Unsynced != 9 || st.Open != 1 {
		t.Errorf("%+v", st)
	}
	count := func() (files, systems int) {
		for _, op := range disk.Trace() {
			switch {
			case op.Kind == faultfs.OpSync && strings.HasSuffix(op.Name, logSuffix):
				files++
			case op.Kind == faultfs.OpSyncFS:
				systems++
			}
		}
		return files, systems
	}
	files, systems := count()
	fail(t, add(s.Log("t", 3), "kept")) // it is open again, and has been closed
	fail(t, s.Log("t", 3).Sync())
	if f, n := count(); f != files || n != systems+1 {
		t.Errorf("%d syncs of segments and %d of the file system, want 0 and 1", f-files, n-systems)
	}
	fail(t, add(s.Log("t", 3), "kept")) // and was not closed since it was synced
	fail(t, s.Log("t", 3).Sync())
	if f, n := count(); f != files+1 || n != systems+1 {
		t.Errorf("%d syncs of segments and %d of the file system, want 1 and 1", f-files, n-systems)
	}
	fail(t, s.Log("t", 5).Sync())
	disk.CutPower(faultfs.KeepUnsynced(0))
	_ = s.Close(t.Context())
	s = openStore(t, o2(disk, o))
	requireHolds(t, s.Log("t", 3), "kept", "kept", "kept")
	requireHolds(t, s.Log("t", 5), "kept")

	for p := range int32(10) {
		fail(t, add(s.Log("t", p), "may be lost"))
	}
	disk.Fail(faultfs.Fault{Kind: faultfs.OpSyncFS, Times: -1})
	if err := s.Log("t", 3).Sync(); !errors.Is(err, ErrPoisoned) {
		t.Errorf("a sync that has failed: %v, want ErrPoisoned", err)
	}
	if err := s.Log("t", 4).Sync(); !errors.Is(err, ErrPoisoned) {
		t.Errorf("another log's sync after it: %v, want ErrPoisoned", err)
	}
	if got := values(t, s.Log("t", 3)); len(got) == 0 || got[0] != "kept" {
		t.Errorf("read %v", got)
	}
	closeStore(t, s)
}

// Claim: where all logs are used in turn and one in eight has no place, about as few appends open a file.
// Method: 160 logs and 140 files, thirty times each in the same order; a place drawn by lot alone would open one in four.
func TestFilesUsedInTurn(t *testing.T) {
	const logs, places, turns = 160, 140, 30
	o := quiet(faultfs.New(t), "/a")
	o.OpenFiles, o.Defaults.Durability = places, PageCache
	s := openStore(t, o)
	create(t, s, spec("t", 1, logs))
	all := func() {
		for p := range int32(logs) {
			fail(t, add(s.Log("t", p), "x"))
		}
	}
	all()
	before := s.FileStats().Opened
	for range turns {
		all()
	}
	if share := float64(s.FileStats().Opened-before) / (logs * turns); share > 0.19 {
		t.Errorf("%.2f of the appends opened a file", share)
	} else {
		t.Logf("%.2f of the appends opened a file", share)
	}
	closeStore(t, s)
}

// Claim: what stands for files that were closed with unsynced bytes answers all that a pass beside the rounds asks of a file.
// Method: logs with one file for all; what each hands to a pass is asked and synced in the pass's order.
func TestClosedFilesInAPass(t *testing.T) {
	o := quiet(faultfs.New(t), "/a")
	o.OpenFiles = 1
	s := openStore(t, o)
	create(t, s, spec("t", 1, 3))
	for p := range int32(3) {
		fail(t, add(s.Log("t", p), "kept"))
	}
	closed := 0
	for p := range int32(3) {
		owner := &s.Log("t", p).home.Load().owner
		files := owner.SyncTargets()
		for _, f := range files {
			dirty, err := f.Dirty()
			if err == nil && dirty > 0 {
				err = f.WriteOut(0, dirty, true)
			}
			if err != nil && !errors.Is(err, vfs.ErrUnsupported) {
				t.Error(err)
			}
			fail(t, f.Sync())
			if _, ok := f.(wholeSync); ok {
				closed++
			}
		}
		owner.ReleaseTargets(files)
	}
	if closed != 2 {
		t.Errorf("%d logs were synced by their file system, want 2", closed)
	}
	closeStore(t, s)
}

// o2 is o for the machine that is started after a power cut.
func o2(disk *faultfs.Disk, o StoreOptions) StoreOptions {
	o.FS = disk.Session()
	return o
}

// Claim: when the system has no descriptor left, files are closed and it goes on; where there is none to close, the error names the limit, is one of
// storage, and the log works again once there is one.
// Method: opens of segments fail with EMFILE, once and for longer.
func TestOpenFilesRunOut(t *testing.T) {
	fs := &openFilesOn{FS: faultfs.New(t).Session()}
	s := openStore(t, quiet(fs, "/a"))
	create(t, s, spec("t", 1, 3))
	fail(t, add(s.Log("t", 0), "kept"))
	if err := s.dirs[0].journal.SyncAll(); err != nil {
		t.Fatal(err)
	}
	s.Log("t", 0).mu.active.open.Load().used.Store(false)
	refusals := 0
	set := func(f func(string) error) {
		fs.mu.Lock()
		fs.fail = f
		fs.mu.Unlock()
	}
	set(func(name string) error {
		if refusals++; refusals == 1 {
			return &os.PathError{Op: "open", Path: name, Err: syscall.EMFILE}
		}
		return nil
	})
	fail(t, add(s.Log("t", 1), "kept"))
	if st := s.FileStats(); refusals != 2 || st.Evicted != 1 || st.Open != 1 {
		t.Errorf("%d opens, %+v", refusals, st)
	}
	set(func(name string) error { return &os.PathError{Op: "open", Path: name, Err: syscall.ENFILE} })
	if _, err := s.Log("t", 0).Read(0, 100, 1, true); err == nil || !strings.Contains(err.Error(), "RLIMIT_NOFILE") {
		t.Errorf("a read without a descriptor: %v", err)
	}
	if err := add(s.Log("t", 0), "refused"); !errors.Is(err, ErrStorage) || !strings.Contains(err.Error(), "RLIMIT_NOFILE") {
		t.Errorf("an append without a descriptor: %v", err)
	}
	set(nil)
	fail(t, add(s.Log("t", 0), "again"))
	requireHolds(t, s.Log("t", 0), "kept", "again")
	closeStore(t, s)
}

// Claim: F127 a store of 300 logs works whole with 100 open files.
// Method: a process of its own with that limit, on the real file system: create, append, read, restart, delete.
func TestField_F127_MoreLogsThanOpenFiles(t *testing.T) {
	const child = "MILLRACE_TEST_CHILD_DIR"
	if dir := os.Getenv(child); dir != "" {
		manyLogs(t, dir)
		return
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestField_F127_MoreLogsThanOpenFiles$", "-test.v")
	cmd.Env = append(os.Environ(), child+"="+t.TempDir())
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

func manyLogs(t *testing.T, dir string) {
	const logs = 300
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 100, Max: 100}); err != nil {
		t.Fatal(err)
	}
	o := quiet(vfs.OS(), dir)
	s := openStore(t, o)
	create(t, s, spec("t", 1, logs))
	all := func(f func(l *Log) error) {
		t.Helper()
		for p := range int32(logs) {
			if err := f(s.Log("t", p)); err != nil {
				t.Fatalf("log %d: %v", p, err)
			}
		}
	}
	for round := range 3 {
		all(func(l *Log) error { return add(l, fmt.Sprint(round)) })
		all(func(l *Log) error {
			if got := values(t, l); len(got) != round+1 || got[round] != fmt.Sprint(round) {
				return fmt.Errorf("read %v", got)
			}
			return nil
		})
		if round == 1 {
			closeStore(t, s)
			s = openStore(t, o)
		}
	}
	if st := s.FileStats(); st.Open > 100 || st.Reopened == 0 {
		t.Errorf("%+v", st)
	}
	if n := runtime.NumGoroutine(); n > 30 {
		t.Errorf("%d goroutines for %d logs", n, logs)
	}
	if err := s.Delete("t"); err != nil {
		t.Fatal(err)
	}
	create(t, s, spec("t", 2, logs))
	all(func(l *Log) error { return add(l, "anew") })
	closeStore(t, s)
}

// Claim: F127 a start after a crash goes through any number of segments of a log with the descriptors it may have.
// Method: a page-cache log of many segments, none of them synced, is opened after a kill with few places; its records are whole, and so they are
// after a loss of power.
func TestField_F127_RecoveryOfManySegments(t *testing.T) {
	const places = 4
	disk := faultfs.New(t)
	c := smallLog()
	c.Durability = PageCache
	files := NewFileSet(places)
	few := func(o *LogOptions) { o.Files = files }
	l := openTestLog(t, disk.Session(), c, few)
	putN(t, l, 200)
	if n := len(*l.segments.Load()); n < 5*places {
		t.Fatalf("%d segments", n)
	}
	end := l.End()
	disk.CutPower(faultfs.KeepUnsynced(100), faultfs.KeepNames(100))
	_ = l.Close() // what it still does goes nowhere
	files = NewFileSet(places)
	l = openTestLog(t, disk.Session(), c, few)
	files.mu.Lock()
	open := len(files.open)
	files.mu.Unlock()
	if open > places+2 { // the last one, and the one that is looked at
		t.Errorf("%d segment files are open after recovery, with places for %d", open, places)
	}
	requireValues(t, l, 0, end)
	disk.CutPower(faultfs.KeepUnsynced(0), faultfs.KeepNames(0))
	_ = l.Close()
	requireValues(t, openTestLog(t, disk.Session(), c), 0, end)
}
