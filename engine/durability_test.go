package engine

import (
	"testing"
	"time"

	"millrace/engine/vfs/faultfs"
)

// Claim: what page-cache mode has acknowledged stays readable when the topic is switched to sync, and is synced without another append; the
// mark that says so goes with a truncation, so that an offset given out again is not shown before its sync (L5).
// Method: records, the switch, the marks at once and after a while; a truncation and an append that nobody has synced.
func TestSwitchToSyncHidesNothing(t *testing.T) {
	for _, flush := range []time.Duration{noLimit, time.Hour} { // without and with a timer of flush.ms that the switch overtakes
		c := smallLog()
		c.Durability, c.FlushEvery = PageCache, flush
		l := openTestLog(t, faultfs.New(t).Session(), c)
		putN(t, l, 10)
		for range 3 {
			c.Durability = Sync
			l.SetConfig(c)
			if l.Safe() != l.End() {
				t.Fatalf("after the switch readers end at %d, before at %d", l.Safe(), l.End())
			}
			c.Durability = PageCache
			l.SetConfig(c)
		}
		c.Durability = Sync
		l.SetConfig(c)
		for begun := time.Now(); l.Durable() != l.End(); time.Sleep(time.Millisecond) {
			if time.Since(begun) > 20*time.Second {
				t.Fatalf("durable %d of %d long after the switch", l.Durable(), l.End())
			}
		}
		l.flushes.Wait() // of the other switches
		if err := l.TruncateTo(5); err != nil {
			t.Fatal(err)
		}
		a := leaderAppend(newBatch(1000, []string{"unsynced"}))
		l.Enqueue(a, 0)
		if err := l.Write(a); err != nil {
			t.Fatal(err)
		}
		if l.End() != 6 || l.Safe() != 5 {
			t.Fatalf("an append that is not synced is shown: end %d, readers end at %d", l.End(), l.Safe())
		}
		if err := a.Wait(); err != nil {
			t.Fatal(err)
		}
		closeLog(t, l)
	}
}
