package engine

import (
	"fmt"
	"testing"
	"time"

	"millrace/engine/checkpoint"
	"millrace/engine/vfs/faultfs"
)

// Claim: a log whose closed segments have damaged indexes is measured and compacted like any other.
// Method: zeros in the place of all index files of closed segments, as a power cut leaves them in page-cache mode; then a pass.
func TestDamagedIndexesDoNotStopCompaction(t *testing.T) {
	d := faultfs.New(t)
	l := openTestLog(t, d.Session(), compacted())
	for i := range 60 {
		putKeyed(t, l, "k="+valueOf(Offset(i)))
	}
	closeLog(t, l)
	for _, suffix := range []string{indexSuffix, timeSuffix} {
		for _, name := range fileNames(t, d, suffix) {
			writeFile(t, d, name, make([]byte, len(readFile(t, d, name))))
		}
	}
	c := compacted()
	c.CompactAfter = time.Millisecond
	l = openTestLog(t, d.Session(), c)
	if dirt, err := l.Dirt(time.UnixMilli(2000)); err != nil || dirt.Dirty == 0 || dirt.Oldest.UnixMilli() != 1000 {
		t.Fatal(dirt, err)
	}
	if r := mustClean(t, l, cleanAt(time.UnixMilli(2000))); !r.Whole || r.SegmentsIn == 0 {
		t.Fatalf("%+v", r)
	}
	if all := mustReadKeyed(t, l); all[0].offset == 0 || all[len(all)-1].offset != 59 {
		t.Fatal(offsetsOf(all))
	}
	closeLog(t, l)
}

// Claim: a log whose segment.index.bytes was lowered opens after a kill, and look-ups by time are right, in the closed segments too.
// Method: segments with more index entries than the new setting allows, timestamps that ascend; every record is looked up.
func TestSmallerIndexesOpenLargerOnes(t *testing.T) {
	d := faultfs.New(t)
	c := smallLog()
	c.IndexInterval = 0
	l := openTestLog(t, d.Session(), c)
	for i := range 40 {
		if err := l.Append(leaderAppend(newBatch(int64(1000+i), []string{valueOf(Offset(i))})), 0); err != nil {
			t.Fatal(err)
		}
	}
	c.IndexBytes = 24
	for _, clean := range []bool{false, true} {
		if clean {
			closeLog(t, l)
		} else {
			d = crash(d)
			_ = l.Close()
		}
		if !clean { // recovery begins inside a closed segment and keeps the entries below
			writeFile(t, d, logDir+"/"+checkpoint.RecoveryPoints, checkpoint.Offsets{{Topic: "t", Partition: 0}: 30}.Encode())
		}
		l = openTestLog(t, d.Session(), c)
		for i := range 40 {
			if off, _, _, err := l.OffsetForTime(int64(1000 + i)); err != nil || off != Offset(i) {
				t.Fatalf("clean %v: time of %d: %d, %v", clean, i, off, err)
			}
		}
	}
	closeLog(t, l)
}

// Claim (L9): after a swap that ended in its middle no index of an old segment is taken for that of the new one in its place: look-ups by time are right.
// Method: a pass whose n-th change of a name fails, for each n; the process is killed and the next one looks records up by time, before and
// after a loss of power.
func TestIndexesOfAnOldSegmentAreNotTheNewOnes(t *testing.T) {
	base := faultfs.New(nil)
	c := compacted()
	c.IndexInterval = 0
	l := openTestLog(t, base.Session(), c)
	for i := range 60 {
		b := keyedBatch(int64(1000+i), []string{fmt.Sprintf("k%d=%s", i%7, valueOf(Offset(i)))})
		if err := l.Append(leaderAppend(b), 0); err != nil {
			t.Fatal(err)
		}
	}
	closeLog(t, l)
	c.SegmentBytes = 1 << 20 // one new segment for all: the index of the first old one tells of a part of it
	right := func(d *faultfs.Disk, what string) {
		t.Helper() // what lies below the recovery point is not read again
		writeFile(t, d, logDir+"/"+checkpoint.RecoveryPoints, checkpoint.Offsets{{Topic: "t", Partition: 0}: 60}.Encode())
		l := openTestLog(t, d.Session(), c)
		for o := Offset(49); o < 60; o++ { // the newest of each key; nothing is read before, which would find the lie and mend it
			if off, _, _, err := l.OffsetForTime(1000 + int64(o)); err != nil || off != o {
				t.Fatalf("%s: the time of %d: %d, %v", what, o, off, err)
			}
		}
		closeLog(t, l)
	}
	for n, fired := 0, true; fired; n++ {
		d := base.Clone()
		l := openTestLog(t, d.Session(), c)
		d.Fail(faultfs.Fault{Kind: faultfs.OpRename, After: n})
		_, _ = l.Clean(cleanAt(time.UnixMilli(2000)))
		fired = d.Fired()
		killed := crash(d)
		_ = l.Close()
		right(crash(killed), fmt.Sprintf("rename %d", n))
		killed.CutPower(faultfs.KeepUnsynced(100))
		right(killed, fmt.Sprintf("rename %d, a loss of power", n))
	}
}
