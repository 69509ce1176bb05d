package engine

import (
	"errors"
	"testing"
	"time"

	"millrace/engine/batch"
	"millrace/engine/producers"
	"millrace/engine/vfs/faultfs"
)

// Claim: what is appended is read back, at consecutive offsets, across segments
// and in pieces of any size.
// Method: many small batches, read with many limits on bytes.
func TestAppendedBatchesAreReadBack(t *testing.T) {
	l := openTestLog(t, faultfs.New(t), smallLog())
	defer closeLog(t, l)
	putN(t, l, 60)
	requireValues(t, l, 0, 60)
	if n := len(*l.segments.Load()); n < 4 {
		t.Fatalf("only %d segments: the test shows nothing", n)
	}
	for _, max := range []int{1, 100, 130, 200, 999, 5000} {
		got, err := contents(l, 60, max)
		if err != nil || len(got) != 60 {
			t.Fatalf("max %d: %d records, %v", max, len(got), err)
		}
	}
}

// Claim: a log reopened after a clean stop and after a crash is the same log.
// Method: append, close or clone the disk, reopen, append more.
func TestLogSurvivesRestarts(t *testing.T) {
	d := faultfs.New(t)
	l := openTestLog(t, d, smallLog())
	putN(t, l, 30)
	closeLog(t, l)
	l = openTestLog(t, d, smallLog())
	requireValues(t, l, 0, 30)
	putN(t, l, 25)
	d = crash(d)
	l = openTestLog(t, d, smallLog())
	requireValues(t, l, 0, 55)
	putN(t, l, 1)
	closeLog(t, l)
}

// Claim: Read keeps to its limits: never past limit, never more than max unless
// the first batch must come whole, an error only outside [Start, End].
func TestReadKeepsItsLimits(t *testing.T) {
	l := openTestLog(t, faultfs.New(t), DefaultConfig())
	defer closeLog(t, l)
	putN(t, l, 10)
	one := len(newBatch(1000, []string{valueOf(0)}))
	for _, c := range []struct {
		name        string
		from, limit Offset
		max         int
		whole       bool
		want        int
	}{
		{"all", 0, 10, 1 << 20, true, 10 * one},
		{"up to limit", 0, 4, 1 << 20, true, 4 * one},
		{"from the middle", 7, 10, 1 << 20, true, 3 * one},
		{"at limit", 4, 4, 1 << 20, true, 0},
		{"between limit and end", 6, 4, 1 << 20, true, 0},
		{"at end", 10, 10, 1 << 20, true, 0},
		{"cut by max", 2, 10, one + 5, true, one + 5},
		{"first whole", 2, 10, 5, true, one},
		{"first too large", 2, 10, 5, false, 0},
		{"nothing wanted", 2, 10, 0, false, 0},
		{"nothing wanted but one", 2, 10, 0, true, one},
		{"limit beyond end", 9, 99, 1 << 20, true, one},
	} {
		s, err := l.Read(c.from, c.max, c.limit, c.whole)
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		if s.Size() != c.want {
			t.Errorf("%s: %d bytes, want %d", c.name, s.Size(), c.want)
		}
		s.Release()
	}
	for _, from := range []Offset{-1, 11} {
		var out *OutOfRangeError
		if _, err := l.Read(from, 1, 10, true); !errors.As(err, &out) || !errors.Is(err, ErrOutOfRange) || out.End != 10 {
			t.Errorf("read at %d: %v", from, err)
		}
	}
}

// Claim (L1, R2): a follower's batches keep their offsets, epochs and bytes; one
// below the end is refused, and the log is as it was.
func TestFollowerKeepsTheLeadersBytes(t *testing.T) {
	l := openTestLog(t, faultfs.New(t), smallLog())
	defer closeLog(t, l)
	b := newBatch(5, []string{"a", "b"}, batch.Base(100, 7))
	want := string(b)
	a := followerAppend(b)
	if err := l.Append(a, NoEpoch); err != nil {
		t.Fatal(err)
	}
	if l.End() != 102 || l.Epoch() != 7 || a.Base != 100 {
		t.Fatalf("end %d, epoch %d, base %d", l.End(), l.Epoch(), a.Base)
	}
	s, err := l.Read(50, 1000, 102, true) // a gap is skipped
	if err != nil {
		t.Fatal(err)
	}
	got := make([]byte, s.Size())
	if err := s.ReadInto(got); err != nil || string(got) != want {
		t.Fatalf("bytes differ: %v", err)
	}
	s.Release()
	if err := l.Append(followerAppend(newBatch(5, []string{"c"}, batch.Base(101, 7))), NoEpoch); !errors.Is(err, ErrOffsetOrder) {
		t.Fatalf("overlap: %v", err)
	}
	if e, end := l.EpochEnd(7); e != 7 || end != 102 {
		t.Fatalf("epoch end %d, %d", e, end)
	}
}

// Claim: a batch that was stored once is not stored again, also when both
// copies stand in one run; a gap is refused and the log is as it was.
func TestDuplicatesAndGapsOfProducers(t *testing.T) {
	l := openTestLog(t, faultfs.New(t), smallLog())
	defer closeLog(t, l)
	seq := func(n int32) *Append {
		return leaderAppend(newBatch(9, []string{"x", "y"}, batch.Producer(42, 0, n)))
	}
	first, again, next := seq(0), seq(0), seq(2)
	for _, a := range []*Append{first, next, again} {
		l.Enqueue(a, 0)
	}
	for _, a := range []*Append{first, next, again} {
		if err := l.Write(a); err != nil {
			t.Fatal(err)
		}
		if err := a.Wait(); err != nil {
			t.Fatal(err)
		}
	}
	if !again.Duplicate || again.Base != 0 || next.Duplicate || next.Base != 2 || l.End() != 4 {
		t.Fatalf("duplicate %v at %d, next at %d, end %d", again.Duplicate, again.Base, next.Base, l.End())
	}
	var gap *producers.SequenceError
	if err := l.Append(seq(8), 0); !errors.As(err, &gap) || gap.Want != 4 || gap.Got != 8 {
		t.Fatalf("gap: %v", err)
	}
	if l.End() != 4 {
		t.Fatalf("end %d after a refusal", l.End())
	}
}

// Claim: refusals say why and change nothing: an old epoch, a batch beyond
// segment.bytes, a closed log. Others in the same run are not touched by it.
func TestRefusedAppendsDoNotFailTheirRun(t *testing.T) {
	l := openTestLog(t, faultfs.New(t), smallLog())
	if err := l.SetEpoch(3); err != nil {
		t.Fatal(err)
	}
	big := make([]string, 40)
	for i := range big {
		big[i] = valueOf(0)
	}
	good, old, large, last := leaderAppend(newBatch(1, []string{"a"})), leaderAppend(newBatch(1, []string{"b"})),
		leaderAppend(newBatch(1, big)), leaderAppend(newBatch(1, []string{"c"}))
	l.Enqueue(good, 3)
	l.Enqueue(old, 2)
	l.Enqueue(large, 3)
	l.Enqueue(last, 4)
	for a, want := range map[*Append]error{good: nil, old: ErrStaleEpoch, large: ErrTooLarge, last: nil} {
		if err := l.Write(a); !errors.Is(err, want) {
			t.Errorf("got %v, want %v", err, want)
		}
	}
	if good.Base != 0 || last.Base != 1 || l.End() != 2 || l.Epoch() != 4 {
		t.Fatalf("bases %d, %d, end %d, epoch %d", good.Base, last.Base, l.End(), l.Epoch())
	}
	closeLog(t, l)
	if err := l.Append(leaderAppend(newBatch(1, []string{"d"})), 4); !errors.Is(err, ErrClosed) {
		t.Fatalf("append to a closed log: %v", err)
	}
	if _, err := l.Read(0, 1, 1, true); !errors.Is(err, ErrClosed) {
		t.Fatalf("read of a closed log: %v", err)
	}
}

// Claim: epochs, producers and the start are the same after a restart, clean or not.
func TestStateSurvivesRestarts(t *testing.T) {
	now := time.Now().UnixMilli() // producers of long ago would be forgotten
	for _, clean := range []bool{true, false} {
		d := faultfs.New(t)
		l := openTestLog(t, d, smallLog())
		for i := range 20 {
			if i%5 == 0 {
				if err := l.SetEpoch(Epoch(i)); err != nil {
					t.Fatal(err)
				}
			}
			a := leaderAppend(newBatch(now, []string{valueOf(Offset(i))}, batch.Producer(7, 1, int32(i))))
			if err := l.Append(a, NoEpoch); err != nil {
				t.Fatal(err)
			}
		}
		if err := l.SetStart(6); err != nil {
			t.Fatal(err)
		}
		if clean {
			closeLog(t, l)
		} else {
			d = crash(d)
		}
		l = openTestLog(t, d, smallLog())
		requireValues(t, l, 6, 20)
		if l.Start() != 6 || l.Epoch() != 15 {
			t.Fatalf("clean %v: start %d, epoch %d", clean, l.Start(), l.Epoch())
		}
		if e, end := l.EpochEnd(7); e != 5 || end != 10 {
			t.Fatalf("clean %v: epoch 7 ended in %d at %d", clean, e, end)
		}
		// The last five are known after a crash, the last one after a clean stop.
		for i := 19; i >= 15; i-- {
			a := leaderAppend(newBatch(now, []string{valueOf(Offset(i))}, batch.Producer(7, 1, int32(i))))
			if err := l.Append(a, NoEpoch); err != nil || !a.Duplicate || a.Base != Offset(i) {
				t.Fatalf("clean %v: sequence %d again: %v, duplicate %v at %d", clean, i, err, a.Duplicate, a.Base)
			}
			if clean {
				break
			}
		}
		closeLog(t, l)
	}
}
