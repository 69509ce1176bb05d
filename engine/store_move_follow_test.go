package engine

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"millrace/engine/vfs/faultfs"
)

// Claim: L8 whatever is done to a log while it is copied (appends, rolls, truncation and appends in its place, a reset, a moved start,
// retention), the log reads the same after the move as before, and again after a restart.
// Method: random deeds between steps of a copier that a test drives; each step copies a few bytes.
func TestCopyFollowsTheLog(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		disk := faultfs.New(nil)
		o := twoDirs(disk)
		o.MoveThreads = -1 // no worker: this test is it
		o.Defaults.Durability = rapid.SampledFrom([]Durability{Sync, PageCache}).Draw(rt, "durability")
		o.Defaults.SegmentBytes = rapid.SampledFrom([]int64{300, 1000, 1 << 20}).Draw(rt, "segment.bytes")
		s := openStore(t, o)
		defer s.Close(t.Context())
		create(t, s, spec("t", 1, 1))
		l := s.Log("t", 0)
		life := 0
		add := func(n int) {
			for range n {
				life++ // no two batches are alike: stale ones are seen
				if err := l.Append(leaderAppend(newBatch(time.Now().UnixMilli(), []string{fmt.Sprint("life ", life)})), NoEpoch); err != nil {
					rt.Fatal(err)
				}
			}
		}
		add(rapid.IntRange(0, 30).Draw(rt, "at first"))
		if err := s.Move("t", 0, "/b"); err != nil {
			rt.Fatal(err)
		}
		v := s.moveOf(l)
		v.copier.buf = make([]byte, 200)
		for range rapid.IntRange(0, 25).Draw(rt, "deeds") {
			n := rapid.IntRange(1, 20).Draw(rt, "n")
			back := max(l.Start(), l.End()-Offset(n))
			var err error
			switch rapid.SampledFrom([]string{"step", "step", "step", "add", "add", "truncate", "reset", "start", "retain", "epoch", "sync"}).Draw(rt, "deed") {
			case "step":
				_, _, err = v.copier.step(int64(n * 50))
			case "add":
				add(n)
			case "truncate":
				err = l.TruncateTo(back)
			case "reset":
				err = l.ResetTo(l.End() + Offset(n))
			case "start":
				err = l.SetStart(min(l.Start()+Offset(n), l.Safe()))
			case "retain":
				_, err = l.Retain(time.Now())
			case "epoch":
				err = l.SetEpoch(l.Epoch() + 1)
			case "sync":
				err = s.prepareSwap(v)
			}
			if err != nil {
				rt.Fatal(err)
			}
		}
		before, start, end, epochs := mustContents(rt, l), l.Start(), l.End(), l.epochs.All()
		moves := 0
		for done := false; !done; moves++ {
			if moves == 1000 {
				rt.Fatal("never done")
			}
			_, _, err := v.copier.step(math.MaxInt64)
			if err == nil {
				err = s.prepareSwap(v)
			}
			if err == nil {
				done, err = s.swap(v, moveRest)
			}
			if err != nil {
				rt.Fatal(err)
			}
		}
		check := func(l *Log) {
			if l.Start() != start || l.End() != end || !slices.Equal(mustContents(rt, l), before) || !slices.Equal(l.epochs.All(), epochs) {
				rt.Fatalf("[%d, %d) %v\n%v\nwas [%d, %d) %v\n%v", l.Start(), l.End(), l.epochs.All(), mustContents(rt, l), start, end, epochs, before)
			}
		}
		check(requireIn(t, s, "/b"))
		if rapid.Bool().Draw(rt, "crash") {
			disk.CutPower(faultfs.KeepUnsynced(50), faultfs.KeepNames(50)) // the move has synced it all, also in page-cache mode
		} else {
			closeStore(t, s)
		}
		s = openStore(t, o.again(disk))
		l = requireIn(t, s, "/b")
		check(l)
		add(3)
		if got := mustContents(rt, l); len(got) != len(before)+3 {
			rt.Fatalf("%d records and 3 more are %d", len(before), len(got))
		}
		s.Close(t.Context())
	})
}
