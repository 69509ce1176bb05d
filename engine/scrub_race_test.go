package engine

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"millrace/engine/vfs/faultfs"
)

// Claim: a healthy store gives no alarm, whatever takes segments away, cuts them, moves them or writes them anew under the scrub.
// Method: passes without end beside appends, retention, compaction, truncation, resets, moves, deletions and look-ups that make indexes again;
// two seconds, which MILLRACE_FAULT_EFFORT multiplies. At the end a real damage is found, so the scrub was not asleep.
func TestScrubGivesNoFalseAlarm(t *testing.T) {
	effort, err := strconv.Atoi(os.Getenv("MILLRACE_FAULT_EFFORT"))
	if err != nil {
		effort = 1
	}
	var found findings
	disk := faultfs.New(t)
	o := scrubbed(disk, &found)
	o.Cleaner = CleanerConfig{Threads: 2, Memory: 2 << 20, Backoff: time.Millisecond}
	s := openStore(t, o)
	s.scrub.every = time.Millisecond
	plain, compact := o.Defaults, compacted()
	plain.RetentionBytes = 20_000
	configs := map[string]Config{"plain": plain, "cut": o.Defaults, "compacted": compact, "deleted": o.Defaults}
	for topic, c := range configs {
		mustCreate(t, s, topic, c)
	}
	s.SetScrubRate(1 << 40)
	stop := make(chan struct{})
	var actors sync.WaitGroup
	act := func(every time.Duration, do func(r *rand.Rand, i int)) {
		actors.Go(func() { // ends with stop, which the test closes
			r := rand.New(rand.NewPCG(disk.Seed(), uint64(every)))
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				case <-time.After(time.Duration(r.Int64N(int64(every)))):
				}
				do(r, i)
			}
		})
	}
	for topic := range configs {
		act(200*time.Microsecond, func(r *rand.Rand, i int) {
			if l := s.Log(topic, 0); l != nil {
				_ = l.Append(leaderAppend(keyedBatch(time.Now().UnixMilli(), []string{fmt.Sprintf("k%d=%d%s", r.IntN(20), i, strings.Repeat("v", r.IntN(200)))})), 0)
			}
		})
	}
	act(time.Millisecond, func(*rand.Rand, int) { _ = s.Retain() })
	act(3*time.Millisecond, func(r *rand.Rand, i int) {
		l := s.Log("cut", 0)
		if l == nil {
			return
		}
		switch at := l.Start() + Offset(r.Int64N(int64(l.End()-l.Start())+1)); i % 10 {
		case 0:
			_ = l.ResetTo(at + 5)
		case 1, 2:
			_ = l.SetStart(at)
		default:
			_ = l.TruncateTo(at)
		}
	})
	act(10*time.Millisecond, func(r *rand.Rand, i int) {
		_ = s.Move([]string{"plain", "cut", "compacted", "deleted"}[r.IntN(4)], 0, []string{"/a", "/b"}[i%2])
	})
	act(30*time.Millisecond, func(r *rand.Rand, i int) {
		if s.Delete("deleted") == nil {
			_ = s.Create(LogSpec{Topic: "deleted", TopicID: topicID(byte(i)), Partitions: []int32{0}, Config: o.Defaults})
		}
	})
	act(5*time.Millisecond, func(r *rand.Rand, i int) { // somebody finds an index that is said to be damaged
		l := s.Log([]string{"plain", "cut", "compacted"}[r.IntN(3)], 0)
		list := *l.segments.Load()
		if err := l.repairIndex(list[r.IntN(len(list))], errIndexLies); err != nil {
			t.Error("repair:", err)
		}
		_, _, _, _ = l.OffsetForTime(time.Now().UnixMilli())
	})
	time.Sleep(time.Duration(effort) * 2 * time.Second)
	close(stop)
	actors.Wait()
	s.moves.running.Wait()
	st := s.ScrubStats()
	t.Logf("%+v; %d moves, %d passes of compaction", st, s.MoveStats().Done, s.CleanerStats().Passes)
	if got := found.all(); len(got) > 0 {
		t.Fatalf("%d false alarms, the first one %+v", len(got), got[0])
	}
	if st.Segments == 0 || s.MoveStats().Done == 0 || s.CleanerStats().Passes == 0 {
		t.Fatal("too little has happened")
	}
	l := s.Log("plain", 0)
	for range 50 {
		put(t, l, strings.Repeat("x", 100))
	}
	if err := disk.Damage((*l.segments.Load())[1].path(logSuffix), 30, 1); err != nil {
		t.Fatal(err)
	}
	for begun := time.Now(); len(found.all()) == 0; time.Sleep(time.Millisecond) {
		if time.Since(begun) > time.Minute {
			t.Fatal("a damage was not found")
		}
	}
	if err := s.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
}

// Claim: a truncation under a pass of compaction ends the pass, also if the segment that was cut is full and closed again by the time of the swap:
// what was appended since is kept. What lies above the cut is dirty again.
// Method: the log is cut and filled within the pass, when it is told of its first bytes.
func TestTruncationUnderAPassIsNotUndone(t *testing.T) {
	l := openTestLog(t, faultfs.New(t).Session(), compacted())
	for i := range 40 {
		putKeyed(t, l, fmt.Sprintf("k%d=%s", i%5, valueOf(Offset(i))))
	}
	c := cleanAt(time.UnixMilli(2000))
	done := false
	c.Throttle = func(int) error {
		if !done {
			done = true
			if err := l.TruncateTo(2); err != nil {
				t.Fatal(err)
			}
			for i := range 40 {
				putKeyed(t, l, fmt.Sprintf("n%d=%s", i, valueOf(Offset(i))))
			}
		}
		return nil
	}
	if _, err := l.Clean(c); err != errCut {
		t.Errorf("the pass ended with %v", err)
	}
	if l.FirstDirty() > 2 {
		t.Errorf("first dirty %d, cut at 2", l.FirstDirty())
	}
	got := mustReadKeyed(t, l)
	if len(got) != 42 || got[2].key != "n0" || got[41].key != "n39" {
		t.Fatalf("%d records: %+v", len(got), got[:3])
	}
	mustClean(t, l, cleanAt(time.UnixMilli(2000)))
	if err := l.TruncateTo(1); err != nil {
		t.Fatal(err)
	}
	if l.FirstDirty() > 1 {
		t.Fatalf("first dirty %d after a cut at 1", l.FirstDirty())
	}
	closeLog(t, l)
}
