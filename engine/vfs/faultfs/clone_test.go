package faultfs

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// Claim: a clone is the disk at that instant, unsynced state included, and the two
// do not touch each other afterwards.
// Method: change each after cloning; let both lose power.
func TestClonesAreIndependent(t *testing.T) {
	d := newDisk(t)
	f := durable(t, d, "/d/f", sectors(2, 1))
	m, err := f.Map(2 * sectorBytes)
	must(t, err)
	write(t, f, sectors(1, 2), 0)
	copy(m.Bytes()[sectorBytes:], sectors(1, 3)) // unsynced, unsampled
	create(t, d, "/d/unsynced")

	killed, cut := d.Clone(), d.Clone()
	must(t, d.Damage("/d/f", 0, 1)) // of an unsynced write that all three know
	write(t, f, sectors(2, 4), 0)
	must(t, f.Sync())
	must(t, d.Remove("/d/unsynced"))
	must(t, d.SyncDir("/d"))
	write(t, create(t, killed, "/d/f"), sectors(1, 5), 2*sectorBytes)
	cut.CutPower(KeepUnsynced(0))

	if got := sectorsOf(read(t, killed, "/d/f")); !slices.Equal(got, []int{2, 3, 5}) || list(t, killed, "/d") != "f unsynced" {
		t.Errorf("killed: %v, %s", got, list(t, killed, "/d"))
	}
	if got := sectorsOf(read(t, cut, "/d/f")); !slices.Equal(got, []int{1, 1}) || list(t, cut, "/d") != "f" {
		t.Errorf("cut: %v, %s", got, list(t, cut, "/d"))
	}
	if got := sectorsOf(read(t, d, "/d/f")); !slices.Equal(got, []int{4, 4}) || list(t, d, "/d") != "f" {
		t.Errorf("the original: %v", got)
	}
	killed.CutPower(KeepUnsynced(100))
	if got := sectorsOf(read(t, killed, "/d/f")); !slices.Equal(got, []int{2, 3, 5}) {
		t.Errorf("killed, then cut: %v", got)
	}
}

// Claim: a clone can be taken after each operation from the hook, and each is the
// disk with exactly the operations so far.
// Method: appends of one sector; the clone after the n-th has n sectors.
func TestCloneAfterEachOperation(t *testing.T) {
	d := newDisk(t)
	f := durable(t, d, "/d/f", nil)
	var clones []*Disk
	d.AfterOperation(func(op Op) {
		if op.Kind == OpWrite {
			clones = append(clones, d.Clone())
		}
	})
	var before []Kind
	d.BeforeOperation(func(kind Kind, name string) { before = append(before, kind) })
	for i := range 5 {
		write(t, f, sectors(1, byte(i+1)), int64(i)*sectorBytes)
	}
	must(t, f.Sync())
	for i, c := range clones {
		if got := sectorsOf(read(t, c, "/d/f")); len(got) != i+1 {
			t.Errorf("clone %d: %v", i, got)
		}
	}
	if len(clones) != 5 || !slices.Equal(before[4:], []Kind{OpWrite, OpSync}) {
		t.Errorf("%d clones, before %v", len(clones), before)
	}
}

// Claim: a hook may hold an operation up without stopping the disk.
// Method: a sync that waits for a write of another file.
func TestBeforeOperationMayBlock(t *testing.T) {
	d := newDisk(t)
	f, g := durable(t, d, "/d/f", nil), durable(t, d, "/d/g", nil)
	reached, release := make(chan bool), make(chan bool)
	d.BeforeOperation(func(kind Kind, name string) {
		if kind == OpSync {
			close(reached)
			<-release
		}
	})
	done := make(chan error)
	go func() { done <- f.Sync() }() // ends after release; received below
	<-reached
	write(t, g, []byte("x"), 0)
	close(release)
	must(t, <-done)
}

// Claim: one seed, one outcome; other seeds, others.
// Method: the same life and cut on several disks, compared by all they hold.
func TestSeedDecidesEverything(t *testing.T) {
	outcome := func(seed uint64) string {
		d := New(t, Seed(seed), Now(func() time.Time { return time.Unix(1, 0) }))
		must(t, d.MkdirAll("/d/e"))
		must(t, d.SyncFS("/"))
		f := create(t, d, "/d/f")
		must(t, f.Truncate(5000))
		m, err := f.Map(5000)
		must(t, err)
		for i := range 40 {
			write(t, f, sectors(3, byte(i)), int64(i*700))
			m.Bytes()[i*100] = byte(i)
			create(t, d, fmt.Sprintf("/d/e/%d", i))
		}
		d.FailKind(OpSync, 0)
		_ = f.Sync()
		write(t, f, sectors(9, 99), 100)
		must(t, d.SyncDir("/d"))
		c := d.Clone()
		d.CutPower(KeepUnsynced(50))
		c.CutPower(KeepUnsynced(50))
		return fmt.Sprint(read(t, d, "/d/f"), list(t, d, "/d/e"), read(t, c, "/d/f"), list(t, c, "/d/e"), d.Ops())
	}
	different := map[string]bool{}
	for seed := range uint64(10) {
		if outcome(seed) != outcome(seed) {
			t.Errorf("seed %d has two outcomes", seed)
		}
		different[outcome(seed)] = true
	}
	if len(different) != 10 {
		t.Errorf("10 seeds, %d outcomes", len(different))
	}
}

// Claim: a failed test is told the seed and the last operations; a passed one nothing.
// Method: a tb that fails, with the seed from the environment.
func TestSeedIsPrintedOnFailure(t *testing.T) {
	t.Setenv(SeedVariable, "4711")
	for _, failed := range []bool{true, false} {
		tb := &fakeTB{failed: failed}
		d := New(tb)
		must(t, d.MkdirAll("/one-of-the-last"))
		tb.cleanup()
		log := strings.Join(tb.lines, "\n")
		if got := strings.Contains(log, "seed 4711") && strings.Contains(log, "one-of-the-last"); got != failed {
			t.Errorf("failed %v: logged %q", failed, log)
		}
	}
}

type fakeTB struct {
	failed  bool
	cleanup func()
	lines   []string
}

func (f *fakeTB) Helper()                      {}
func (f *fakeTB) Failed() bool                 { return f.failed }
func (f *fakeTB) Cleanup(do func())            { f.cleanup = do }
func (f *fakeTB) Logf(format string, a ...any) { f.lines = append(f.lines, fmt.Sprintf(format, a...)) }

// Claim: the helpers for tests tell the truth: ReadSynced what a cut must leave,
// WriteFile makes durable and is not counted, Dump writes what is there.
// Method: each against a cut or the real file system.
func TestInspection(t *testing.T) {
	d := New(t)
	must(t, d.WriteFile("/a/b/f", []byte("durable")))
	must(t, d.WriteFile("/a/b/f", []byte("replaced")))
	if d.Operations() != 0 {
		t.Errorf("counted %d", d.Operations())
	}
	if d.WriteFile("/a/b", nil) == nil || d.WriteFile("/a/b/f/g", nil) == nil {
		t.Error("a directory and a file changed places")
	}
	write(t, create(t, d, "/a/b/f"), []byte("REP"), 0)
	create(t, d, "/a/new")
	synced, err := d.ReadSynced("/a/b/f")
	must(t, err)
	if string(synced) != "replaced" || string(read(t, d, "/a/b/f")) != "REPlaced" {
		t.Errorf("synced %q", synced)
	}
	if _, err := d.ReadSynced("/a/new"); !isAbsent(err) {
		t.Errorf("an unsynced name: %v", err)
	}
	dir := t.TempDir()
	must(t, d.Dump(dir))
	got, err := os.ReadFile(filepath.Join(dir, "a/b/f"))
	must(t, err)
	if !bytes.Equal(got, []byte("REPlaced")) {
		t.Errorf("dumped %q", got)
	}
	d.CutPower(KeepUnsynced(0))
	if !bytes.Equal(read(t, d, "/a/b/f"), synced) {
		t.Error("ReadSynced was wrong")
	}
}

// Claim: a disk may be used, inspected, cloned and cut from many goroutines.
// Method: writers, a mapping, clones and cuts at once, under the race detector.
func TestDiskIsSafeForManyGoroutines(t *testing.T) {
	d := newDisk(t)
	var wg sync.WaitGroup
	for i := range 4 {
		f := durable(t, d, fmt.Sprintf("/d/%d", i), make([]byte, 8192))
		m, err := f.Map(8192)
		must(t, err)
		wg.Go(func() {
			for k := range 200 {
				m.Bytes()[k*40] = byte(k)
				if _, err := f.WriteAt([]byte("data"), int64(4*k)); err != nil {
					return // the power is off
				}
				_ = f.Sync()
				_ = d.SyncDir("/d")
				_, _ = f.ReadAt(make([]byte, 10), 0)
			}
		})
	}
	for range 20 {
		d.Clone().CutPower(KeepUnsynced(50))
	}
	d.Freeze()
	d.CutPower(KeepUnsynced(50))
	wg.Wait()
	must(t, d.SyncFS("/"))
}
