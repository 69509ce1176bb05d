package engine

import (
	"fmt"
	"testing"
	"time"

	"millrace/engine/batch"
	"millrace/engine/vfs/faultfs"
)

// Claim: a segment is closed by size, by the time its records span, by the clock
// if they have no time, by a full index, and by offset span; not earlier.
func TestSegmentsRollByEveryRule(t *testing.T) {
	now := time.Now()
	clock := func(o *LogOptions) { o.Now = func() time.Time { return now } }
	one := int64(len(newBatch(1000, []string{valueOf(0)})))
	bases := func(l *Log) string {
		var list []Offset
		for _, s := range *l.segments.Load() {
			list = append(list, s.base)
		}
		return fmt.Sprint(list)
	}
	at := func(t *testing.T, l *Log, ts int64) {
		t.Helper()
		if err := l.Append(leaderAppend(newBatch(ts, []string{valueOf(0)})), 0); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		name   string
		change func(c *Config)
		life   func(t *testing.T, l *Log)
		want   string
	}{
		{"size", func(c *Config) { c.SegmentBytes = 3 * one },
			func(t *testing.T, l *Log) { putN(t, l, 7) }, "[0 3 6]"},
		{"time of records", func(c *Config) { c.SegmentAge = time.Second },
			func(t *testing.T, l *Log) { at(t, l, 5000); at(t, l, 6000); at(t, l, 6001); at(t, l, 6002) }, "[0 2]"},
		{"clock", func(c *Config) { c.SegmentAge = time.Second },
			func(t *testing.T, l *Log) {
				at(t, l, -1)
				at(t, l, -1)
				now = now.Add(1001 * time.Millisecond)
				at(t, l, -1)
				at(t, l, -1)
			}, "[0 2]"},
		{"index full", func(c *Config) { c.IndexBytes, c.IndexInterval = 24, 0 },
			func(t *testing.T, l *Log) {
				for i := range int64(5) {
					at(t, l, 1000+i)
				}
			}, "[0 2 4]"}, // 24 bytes hold one time entry and the spare one
		{"offset span", func(c *Config) {},
			func(t *testing.T, l *Log) {
				for _, base := range []int64{0, 1<<31 - 1, 1 << 31} {
					b := newBatch(1, []string{"x"}, batch.Base(base, 0))
					if err := l.Append(followerAppend(b), NoEpoch); err != nil {
						t.Fatal(err)
					}
				}
			}, "[0 2147483648]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			config := DefaultConfig()
			c.change(&config)
			l := openTestLog(t, faultfs.New(t), config, clock)
			c.life(t, l)
			if got := bases(l); got != c.want {
				t.Errorf("segments %s, want %s", got, c.want)
			}
			closeLog(t, l)
		})
	}
}

// Claim: every segment has a snapshot of the producers at its base, and the
// newest two besides; the rest are removed.
func TestSnapshotsAreKeptAsKafkaDoes(t *testing.T) {
	d := faultfs.New(t)
	l := openTestLog(t, d, smallLog())
	putN(t, l, 20)
	want := map[string]bool{}
	for _, s := range (*l.segments.Load())[1:] {
		want[logDir+"/"+baseName(s.base)+snapshotSuffix] = true
	}
	for range 3 {
		put(t, l, "x")
		if err := l.snapshot(); err != nil {
			t.Fatal(err)
		}
	}
	want[logDir+"/"+baseName(22)+snapshotSuffix], want[logDir+"/"+baseName(23)+snapshotSuffix] = true, true
	for _, s := range (*l.segments.Load())[1:] {
		want[logDir+"/"+baseName(s.base)+snapshotSuffix] = true
	}
	got := fileNames(t, d, snapshotSuffix)
	for _, name := range got {
		if !want[name] {
			t.Errorf("%s is left", name)
		}
	}
	if len(got) != len(want) {
		t.Errorf("have %v, want %v", got, want)
	}
	closeLog(t, l)
}

// Claim: what Sync has returned for in page-cache mode survives a loss of power whatever becomes of names, and so does
// what is acknowledged once the topic is a synced one.
// Method: a log that rolls, synced; then one that rolls, switched to sync and appended to; only what is synced survives.
func TestSyncOfPageCacheLogCoversNames(t *testing.T) {
	for _, change := range []bool{false, true} {
		disk := faultfs.New(t)
		c := smallLog()
		c.Durability = PageCache
		l := openTestLog(t, disk.Session(), c)
		putN(t, l, 30) // rolls
		if change {
			c.Durability = Sync
			l.SetConfig(c)
			putN(t, l, 1)
		} else if err := l.Sync(); err != nil {
			t.Fatal(err)
		}
		end := l.End()
		disk.CutPower(faultfs.KeepUnsynced(0), faultfs.KeepNames(0))
		requireValues(t, openTestLog(t, disk.Session(), c), 0, end)
	}
}
