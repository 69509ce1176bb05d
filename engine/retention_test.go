package engine

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"millrace/engine/vfs/faultfs"
)

// Claim (F018): a record from the future that keeps its segment from expiring is
// reported once, with topic, partition and segment; retention by size still works.
func TestField_F018_FutureTimestamps(t *testing.T) {
	var lines said
	c := smallLog()
	c.RetentionAge = time.Second
	l := openTestLog(t, faultfs.New(t), c, withLogger(lines.logger()))
	now := time.Now()
	future := newBatch(now.Add(24*time.Hour).UnixMilli(), []string{"tomorrow"})
	if err := l.Append(leaderAppend(future), 0); err != nil {
		t.Fatal(err)
	}
	putN(t, l, 40)
	for range 3 {
		if n, err := l.Retain(now); n != 0 || err != nil {
			t.Fatalf("%d segments went, %v", n, err)
		}
	}
	for _, want := range []string{"from the future", "topic=t", "partition=0", "segment=00000000000000000000.log"} {
		if n := lines.count(want); n != 1 {
			t.Errorf("%q was said %d times:\n%s", want, n, lines.b.String())
		}
	}
	c.RetentionBytes = 1
	l.SetConfig(c)
	if n, err := l.Retain(now); n == 0 || err != nil {
		t.Fatalf("by size %d segments went, %v", n, err)
	}
	closeLog(t, l)
}

// Claim (F020): after retention by size, retention.bytes <= size <
// retention.bytes + segment.bytes, and Start is the base of the oldest file.
func TestField_F020_RetentionBounds(t *testing.T) {
	d := faultfs.New(t)
	c := smallLog()
	c.RetentionAge, c.RetentionBytes = -1, 3000
	l := openTestLog(t, d, c)
	for range 10 {
		putN(t, l, 20)
		if _, err := l.Retain(time.Now()); err != nil {
			t.Fatal(err)
		}
		if l.End() < 60 {
			continue
		}
		if s := l.Size(); s < c.RetentionBytes || s >= c.RetentionBytes+c.SegmentBytes {
			t.Fatalf("size %d, want [%d, %d)", s, c.RetentionBytes, c.RetentionBytes+c.SegmentBytes)
		}
		if oldest := fileNames(t, d, logSuffix)[0]; oldest != logDir+"/"+baseName(l.Start())+logSuffix {
			t.Fatalf("start %d, oldest file %s", l.Start(), oldest)
		}
	}
	requireValues(t, l, l.Start(), 200)
	closeLog(t, l)
}

// Claim (L5): when its newest record has expired the active segment goes too; End
// stays, before and after a restart of any kind.
func TestRetentionThatEmptiesALogKeepsItsEnd(t *testing.T) {
	d := faultfs.New(t)
	c := smallLog()
	c.RetentionAge = time.Minute
	l := openTestLog(t, d, c)
	putN(t, l, 33) // timestamps of 1970
	if n, err := l.Retain(time.Now()); n == 0 || err != nil {
		t.Fatalf("%d segments went, %v", n, err)
	}
	for range 3 {
		if l.Start() != 33 || l.End() != 33 || l.Size() != 0 {
			t.Fatalf("log is [%d, %d) with %d bytes", l.Start(), l.End(), l.Size())
		}
		d.CutPower(faultfs.KeepUnsynced(0))
		_ = l.Close()
		l = openTestLog(t, d, c)
	}
	put(t, l, valueOf(33))
	requireValues(t, l, 33, 34)
	closeLog(t, l)
}

// Claim: nothing at or above the bound that replication has told is removed.
func TestRetentionKeepsWhatIsNotReplicated(t *testing.T) {
	c := smallLog()
	c.RetentionAge = time.Minute
	l := openTestLog(t, faultfs.New(t), c)
	putN(t, l, 40)
	bound := (*l.segments.Load())[2].base + 1
	l.RetainBelow(bound)
	if n, err := l.Retain(time.Now()); n != 2 || err != nil {
		t.Fatalf("%d segments went, %v", n, err)
	}
	requireValues(t, l, bound-1, 40)
	closeLog(t, l)
}

// Claim: whole segments below a raised start go, whatever cleanup.policy says.
func TestSegmentsBelowStartAreDeleted(t *testing.T) {
	c := smallLog()
	c.Delete, c.Compact = false, true
	l := openTestLog(t, faultfs.New(t), c)
	putN(t, l, 40)
	start := (*l.segments.Load())[2].base + 2
	if err := l.SetStart(start); err != nil {
		t.Fatal(err)
	}
	if n, err := l.Retain(time.Now()); n != 2 || err != nil {
		t.Fatalf("%d segments went, %v", n, err)
	}
	requireValues(t, l, start, 40)
	closeLog(t, l)
}

// Claim: files are renamed at once and unlinked after file.delete.delay.ms, and
// a slice taken before can be read to its end all the same.
func TestDeletionWaitsAndSpareReaders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := faultfs.New(t)
		c := smallLog()
		c.RetentionAge, c.DeleteDelay = time.Minute, time.Hour
		l := openTestLog(t, d, c)
		putN(t, l, 20)
		s, err := l.Read(0, 1<<20, 20, true)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := l.Retain(time.Now()); err != nil {
			t.Fatal(err)
		}
		deleted := fileNames(t, d, deletedSuffix)
		if len(deleted) < 6 || !slices.Contains(deleted, logDir+"/"+baseName(0)+logSuffix+deletedSuffix) {
			t.Fatalf("deleted: %v", deleted)
		}
		time.Sleep(c.DeleteDelay - time.Second)
		synctest.Wait()
		if n := len(fileNames(t, d, deletedSuffix)); n != len(deleted) {
			t.Fatalf("%d files before their time", n)
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if left := fileNames(t, d, deletedSuffix); len(left) != 0 {
			t.Fatalf("left: %v", left)
		}
		data := make([]byte, s.Size())
		if err := s.ReadInto(data); err != nil || len(data) == 0 {
			t.Fatalf("read of a deleted segment: %d bytes, %v", len(data), err)
		}
		s.Release()
		closeLog(t, l)
	})
}
