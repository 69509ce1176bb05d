package engine

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"millrace/engine/batch"
	"millrace/engine/vfs/faultfs"
)

// Claim: whatever operation of a pass fails, readers of the running log go on: they find the newest record of every key, and none hangs.
// Method: a log of many keys; the pass's operation 0 fails, then 1, until none is left; read everything in the same process.
func TestReadersOutliveAFailedPass(t *testing.T) {
	for n := 0; ; n++ {
		d := faultfs.New(nil, faultfs.Seed(uint64(n)))
		l := openTestLog(t, d.Session(), compacted())
		newest := map[string]string{}
		for i := range 60 {
			key, value := fmt.Sprint("k", i%7), valueOf(Offset(i))
			putKeyed(t, l, key+"="+value)
			newest[key] = value
		}
		d.FailOperation(n)
		_, err := l.Clean(cleanAt(time.UnixMilli(2000)))
		fired := d.Fired()
		got := map[string]string{}
		done := make(chan error, 1)
		go func() { // ends with the read; a reader that spins ends with the test
			all, err := readKeyed(l, l.Start(), l.End())
			for _, k := range all {
				got[k.key] = k.value
			}
			done <- err
		}()
		select {
		case rerr := <-done:
			if rerr != nil {
				t.Fatalf("operation %d failed the pass (%v); reading then: %v", n, err, rerr)
			}
		case <-time.After(10 * time.Second):
			t.Fatalf("operation %d failed the pass (%v); a reader hangs", n, err)
		}
		for k, v := range newest {
			if got[k] != v {
				t.Fatalf("operation %d: %s is %q, want %q", n, k, got[k], v)
			}
		}
		_ = l.Close()
		if !fired {
			t.Logf("%d operations", n)
			return
		}
	}
}

// Claim (L9): a group that becomes two segments is swapped whole or not at all, whatever operation fails or is cut off, also one of the start that
// takes the swap back.
// Method: a ready-made segment too wide for one (F005), a pass, then a second start, with operation 0, 1, 2 … failing or cutting the power in each.
func TestWideSwapSurvivesAnyFault(t *testing.T) {
	const far = 2_200_000_000
	want := []string{"b=1", "c=2"}
	mixes := faultfs.Mixes()
	base := faultfs.New(nil, faultfs.Seed(1))
	if err := base.MkdirAll(logDir); err != nil {
		t.Fatal(err)
	}
	wide := slices.Concat(keyedBatch(1000, []string{"a=1", "b=1"}, batch.Base(0, 0)), keyedBatch(1000, []string{"c=2"}, batch.Base(far, 0)))
	writeFile(t, base, logDir+"/"+baseName(0)+logSuffix, wide)
	l := openTestLog(t, base.Session(), compacted())
	for range 8 {
		putKeyed(t, l, "a=9")
		putKeyed(t, l, "filler="+valueOf(0)+valueOf(0)+valueOf(0))
	}
	closeLog(t, l)
	check := func(d *faultfs.Disk, what string) {
		t.Helper()
		l, err := tryOpen(d.Session(), compacted())
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		var got []string
		for _, k := range mustReadKeyed(t, l) {
			if k.key != "a" && k.key != "filler" {
				got = append(got, k.key+"="+k.value)
			}
		}
		if !slices.Equal(got, want) {
			t.Fatalf("%s: %v, want %v", what, got, want)
		}
		last := Offset(-1)
		for _, s := range *l.segments.Load() {
			err := s.walk(0, s.size.Load(), func(e entry) bool {
				if e.base <= last {
					t.Errorf("%s: L1: offset %d in segment %d, after %d", what, e.base, s.base, last)
				}
				last = e.last
				return true
			})
			if err != nil || t.Failed() {
				t.Fatal(what, err)
			}
		}
		_ = l.Close()
	}
	step := 1
	if testing.Short() {
		step = 5
	}
	for n, fired := 0, true; fired; n += step {
		for _, cut := range []bool{false, true} {
			d := base.Clone()
			l := openTestLog(t, d.Session(), compacted())
			fault(d, cut, n)
			_, _ = l.Clean(cleanAt(time.UnixMilli(2000)))
			fired = d.Fired()
			mix := mixes[n%len(mixes)]
			d.CutPower(mix.Options()...)
			_ = l.Close()
			for m, again := 0, true; again; m += step {
				e := d.Clone()
				fault(e, m%2 == 0, m/2)
				if l, err := tryOpen(e.Session(), compacted()); err == nil {
					_ = l.Close()
				}
				again = e.Fired()
				e.CutPower(mixes[(n+m)%len(mixes)].Options()...)
				check(e, fmt.Sprintf("pass: operation %d, cut %v, %v; start: operation %d", n, cut, mix, m))
			}
		}
	}
}

func fault(d *faultfs.Disk, cut bool, n int) {
	if cut {
		d.CutAtOperation(n)
	} else {
		d.FailOperation(n)
	}
}

// Claim: a log that is not to be compacted is not, whoever asks: its records without keys would be lost.
func TestOnlyCompactedLogsAreCleaned(t *testing.T) {
	c := compacted()
	c.Compact, c.Delete = false, true
	l := openTestLog(t, faultfs.New(t).Session(), c)
	putN(t, l, 40)
	if r := mustClean(t, l, cleanAt(time.UnixMilli(2000))); !r.NothingDirty {
		t.Fatalf("%+v", r)
	}
	requireValues(t, l, 0, 40)
	closeLog(t, l)
}
