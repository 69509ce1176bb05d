package engine

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"millrace/engine/batch"
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

// Claim: what each cleanup.policy lets go: by age and by size with delete in it, nothing with compact alone; what lies below the start always; and a change of
// retention.ms or retention.bytes counts at the next look, also one that keeps more.
func TestRetentionOfEveryPolicy(t *testing.T) {
	day := 24 * time.Hour
	for _, x := range []struct {
		name            string
		delete, compact bool
		age             time.Duration
		bytes           int64
		start           bool // raised to the third segment
		goes            func(segments int) int
	}{
		{"delete, no limits", true, false, -1, -1, false, func(int) int { return 0 }},
		{"delete, by age", true, false, time.Minute, -1, false, func(n int) int { return n }},
		{"delete, by size", true, false, -1, 0, false, func(n int) int { return n - 1 }},
		{"delete, by size, larger than all", true, false, -1, 1 << 40, false, func(int) int { return 0 }},
		{"compact, limits do not count", false, true, time.Minute, 0, false, func(int) int { return 0 }},
		{"compact, below the start", false, true, time.Minute, 0, true, func(int) int { return 2 }},
		{"compact,delete, by age", true, true, time.Minute, -1, false, func(n int) int { return n }},
		{"compact,delete, by size", true, true, -1, 0, false, func(n int) int { return n - 1 }},
		{"neither", false, false, time.Minute, 0, false, func(int) int { return 0 }},
		{"neither, below the start", false, false, time.Minute, 0, true, func(int) int { return 2 }},
	} {
		c := smallLog()
		c.RetentionAge, c.RetentionBytes = -1, -1
		l := openTestLog(t, faultfs.New(t).Session(), c)
		putN(t, l, 40) // timestamps of 1970
		segments := len(*l.segments.Load())
		if n, err := l.Retain(time.Now()); n != 0 || err != nil {
			t.Fatalf("%s: before the change %d went, %v", x.name, n, err)
		}
		if x.start {
			if err := l.SetStart((*l.segments.Load())[2].base); err != nil {
				t.Fatal(err)
			}
		}
		c.Delete, c.Compact, c.RetentionAge, c.RetentionBytes = x.delete, x.compact, x.age, x.bytes
		l.SetConfig(c)
		if n, err := l.Retain(time.Now()); n != x.goes(segments) || err != nil {
			t.Errorf("%s: %d of %d segments went, want %d (%v)", x.name, n, segments, x.goes(segments), err)
		}
		if l.End() != 40 {
			t.Errorf("%s: the end is %d", x.name, l.End())
		}
		c.RetentionAge, c.RetentionBytes = 100*365*day, -1
		l.SetConfig(c)
		if n, err := l.Retain(time.Now()); n != 0 || err != nil {
			t.Errorf("%s: with more to be kept %d went, %v", x.name, n, err)
		}
		closeLog(t, l)
	}
}

// Claim: a start inside a batch is what readers see: below it is out of range, the first read brings the batch whole; it stays where it is over a stop, a kill and a
// pass of compaction, which drops the records below it; a truncation to below it leaves an empty log that begins there.
func TestStartInsideABatch(t *testing.T) {
	d := faultfs.New(t)
	c := compacted()
	l := openTestLog(t, d.Session(), c)
	for i := range 20 {
		putKeyed(t, l, fmt.Sprintf("a%d=%s", i, valueOf(0)), fmt.Sprintf("b%d=%s", i, valueOf(0)), fmt.Sprintf("c%d=%s", i, valueOf(0)))
	}
	const start = 31 // b10
	if err := l.SetStart(start); err != nil {
		t.Fatal(err)
	}
	look := func(l *Log, first string, base int64) {
		t.Helper()
		if _, err := l.Read(start-1, 1000, l.End(), true); !errors.Is(err, ErrOutOfRange) {
			t.Fatalf("below the start: %v", err)
		}
		s, err := l.Read(start, 1, l.End(), true)
		if err != nil {
			t.Fatal(err)
		}
		data := make([]byte, s.Size())
		if err := s.ReadInto(data); err != nil {
			t.Fatal(err)
		}
		s.Release()
		if v := batch.View(data); l.Start() != start || v.BaseOffset() != base || v.LastOffset() != 32 {
			t.Fatalf("start %d; the first batch is [%d, %d]", l.Start(), v.BaseOffset(), v.LastOffset())
		}
		if all := mustReadKeyed(t, l); len(all) != 29 || all[0].key != first || all[0].offset != start {
			t.Fatalf("%d records from %+v", len(all), all[0])
		}
	}
	look(l, "b10", 30)
	killed := crash(d)
	k := openTestLog(t, killed.Session(), c)
	look(k, "b10", 30)
	closeLog(t, k)
	closeLog(t, l)
	l = openTestLog(t, d.Session(), c)
	look(l, "b10", 30)
	for i := range 10 {
		putKeyed(t, l, fmt.Sprintf("filler%d=%s", i, valueOf(0)))
	}
	end := l.End()
	mustClean(t, l, cleanAt(time.UnixMilli(2000)))
	if all := mustReadKeyed(t, l); len(all) != 39 || all[0].key != "b10" || l.Start() != start || l.End() != end {
		t.Fatalf("%d records from %+v of [%d, %d)", len(all), all[0], l.Start(), l.End())
	}
	below := 0
	for _, b := range batchesOnDisk(t, l) {
		for r, err := range batch.Records(b.bytes) {
			if err != nil {
				t.Fatal(err)
			}
			if r.Offset < start {
				below++
			}
		}
	}
	if below > 0 {
		t.Errorf("compaction kept %d records below the start", below)
	}
	if err := l.TruncateTo(start); err != nil {
		t.Fatal(err)
	}
	if l.Start() != start || l.End() != start {
		t.Fatalf("cut to the start: [%d, %d)", l.Start(), l.End())
	}
	closeLog(t, l)
}

// Claim: SetStart is durable when it returns also where retention has raised the start as far already: the names of what it deleted come back with
// a loss of power, and the records with them (L5).
// Method: retention by size, a start at or below where it has come to, and a power cut that takes all unsynced names back.
func TestStartThatRetentionHasReachedIsDurable(t *testing.T) {
	for back := range Offset(2) {
		disk := faultfs.New(t)
		c := smallLog()
		c.RetentionBytes = 2000
		l := openTestLog(t, disk.Session(), c)
		for range 60 { // without an epoch: the folder would be synced when the history is cut
			if err := l.Append(leaderAppend(newBatch(1000, []string{valueOf(l.End())})), NoEpoch); err != nil {
				t.Fatal(err)
			}
		}
		if n, err := l.Retain(time.UnixMilli(2000)); n == 0 || err != nil {
			t.Fatalf("%d segments deleted, %v", n, err)
		}
		start := l.Start() - back
		if err := l.SetStart(start); err != nil {
			t.Fatal(err)
		}
		disk.CutPower(faultfs.KeepUnsynced(100), faultfs.KeepNames(0))
		_ = l.Close() // what it still does goes nowhere
		if l = openTestLog(t, disk.Session(), c); l.Start() < start {
			t.Errorf("the log starts at %d, %d was acknowledged", l.Start(), start)
		}
	}
}
