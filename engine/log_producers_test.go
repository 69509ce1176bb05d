package engine

import (
	"errors"
	"fmt"
	"syscall"
	"testing"
	"time"

	"millrace/engine/batch"
	"millrace/engine/vfs/faultfs"
)

// silent is the one batch of a producer that then sends nothing any more.
func silent() *Append { return leaderAppend(newBatch(1000, []string{"once"}, batch.Producer(7, 0, 0))) }

// soon is a clock by which its producer has not expired.
func soon(o *LogOptions) { o.Now = func() time.Time { return time.UnixMilli(2000) } }

// requireDuplicate sends it again.
func requireDuplicate(t *testing.T, l *Log) {
	t.Helper()
	a := silent()
	if err := l.Append(a, 0); err != nil || !a.Duplicate || a.Base != 0 {
		t.Fatalf("%v, duplicate %v, base %d; want a duplicate of 0", err, a.Duplicate, a.Base)
	}
}

// retainFrom makes o the start and has the segments below deleted.
func retainFrom(t *testing.T, l *Log, o Offset) {
	t.Helper()
	if err := l.SetStart(o); err != nil {
		t.Fatal(err)
	}
	if n, err := l.Retain(time.UnixMilli(2000)); n == 0 || err != nil {
		t.Fatal(n, err)
	}
}

// Claim: a producer's last batch is known again after any restart, also when retention has deleted it and a loss of power the snapshot of
// the roll before.
// Method: the snapshots of a log's rolls are lost, or its second life begins with a clean stop; the first segments go, with the start at a
// segment's base and within a segment; then a kill, or a loss of all that is unsynced.
func TestProducersOutliveTheirBatches(t *testing.T) {
	lives := map[string]func(*testing.T, *faultfs.Disk, *Log){
		"power cut": func(t *testing.T, disk *faultfs.Disk, _ *Log) {
			disk.CutPower(faultfs.KeepUnsynced(0), faultfs.KeepJournal(100), faultfs.KeepNames(100))
		},
		"clean stop": func(t *testing.T, _ *faultfs.Disk, l *Log) { closeLog(t, l) },
		"none":       nil,
	}
	for life, end := range lives {
		for _, into := range []Offset{0, 1} {
			for _, kill := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s/into=%d/kill=%v", life, into, kill), func(t *testing.T) {
					disk := faultfs.New(t)
					l := openTestLog(t, disk.Session(), smallLog(), soon)
					if err := l.Append(silent(), 0); err != nil {
						t.Fatal(err)
					}
					putN(t, l, 40)
					if end != nil {
						end(t, disk, l)
						l = openTestLog(t, disk.Session(), smallLog(), soon)
					}
					retainFrom(t, l, l.segmentBase(1)+into)
					retainFrom(t, l, l.mu.active.base+into)
					if kill {
						disk = crash(disk)
					} else {
						disk.CutPower(faultfs.KeepUnsynced(0), faultfs.KeepJournal(100), faultfs.KeepNames(100))
					}
					l = openTestLog(t, disk.Session(), smallLog(), soon)
					requireDuplicate(t, l)
					closeLog(t, l)
				})
			}
		}
	}
}

// Claim: what the newest snapshot alone knows is not passed over for a snapshot before it that turns out damaged.
// Method: the snapshot of the first segment left is damaged, and a newer one is whole; appends behind it; a kill.
func TestNewestSnapshotWhereTheOneBeforeIsDamaged(t *testing.T) {
	disk := faultfs.New(t)
	l := openTestLog(t, disk.Session(), smallLog(), soon)
	if err := l.Append(silent(), 0); err != nil {
		t.Fatal(err)
	}
	for len(*l.segments.Load()) < 2 {
		putN(t, l, 1)
	}
	retainFrom(t, l, l.segmentBase(1))
	if err := l.snapshot(); err != nil {
		t.Fatal(err)
	}
	putN(t, l, 1)
	disk = crash(disk)
	names := fileNames(t, disk, snapshotSuffix)
	if len(names) != 2 {
		t.Fatal(names)
	}
	writeFile(t, disk, names[0], nil)
	l = openTestLog(t, disk.Session(), smallLog(), soon)
	requireDuplicate(t, l)
	closeLog(t, l)
}

// Claim: a write that fails takes back what it noted of producers, and nothing of an earlier write.
// Method: after a producer's batch is stored, a write without a producer fails on a full disk, then one with another producer.
func TestFailedWriteForgetsItsOwnProducers(t *testing.T) {
	d := faultfs.New(t)
	l := openTestLog(t, d, smallLog(), soon)
	fail(t, l.Append(silent(), 0))
	other := func() *Append { return leaderAppend(newBatch(1000, []string{"two"}, batch.Producer(8, 0, 0))) }
	for _, a := range []*Append{leaderAppend(newBatch(1000, []string{"none"})), other()} {
		d.Fail(faultfs.Fault{Kind: faultfs.OpWrite, Pattern: "*.log", Err: syscall.ENOSPC, Times: 1})
		if err := l.Append(a, 0); !errors.Is(err, syscall.ENOSPC) {
			t.Fatalf("a full disk: %v", err)
		}
		requireDuplicate(t, l)
	}
	a := other()
	if err := l.Append(a, 0); err != nil || a.Duplicate || a.Base != 1 {
		t.Fatalf("sent again after it failed: %v, duplicate %v, base %d", err, a.Duplicate, a.Base)
	}
	closeLog(t, l)
}
