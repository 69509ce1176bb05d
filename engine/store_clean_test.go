package engine

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"millrace/engine/vfs/faultfs"
)

// cleanStore opens a Store on d whose logs are compacted.
func cleanStore(t *testing.T, d *faultfs.Disk, change func(*StoreOptions)) *Store {
	t.Helper()
	c := compacted()
	o := StoreOptions{FS: d.Session(), Dirs: []string{"/a", "/b"}, Defaults: c, Cleaner: CleanerConfig{Threads: 1, Memory: 1 << 20, Backoff: time.Second}}
	if change != nil {
		change(&o)
	}
	s, err := OpenStore(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func fillKeyed(t *testing.T, l *Log, keys, n int) {
	t.Helper()
	for i := range n {
		putKeyed(t, l, fmt.Sprintf("key-%d=%d-%s", i%keys, i, strings.Repeat("v", 60)))
	}
}

func mustCreate(t *testing.T, s *Store, topic string, c Config) *Log {
	t.Helper()
	if err := s.Create(LogSpec{Topic: topic, TopicID: [16]byte{byte(len(topic)), topic[0]}, Partitions: []int32{0}, Config: c}); err != nil {
		t.Fatal(err)
	}
	return s.Log(topic, 0)
}

// Claim: a Store compacts the logs that have the policy, and only those, by itself; how far it got, and when null values go, is known
// after a stop and after a kill.
func TestStoreCompacts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := faultfs.New(t)
		s := cleanStore(t, d, nil)
		l := mustCreate(t, s, "compacted", compacted())
		plain := compacted()
		plain.Delete, plain.Compact = true, false
		other := mustCreate(t, s, "plain", plain)
		fillKeyed(t, l, 5, 60)
		putKeyed(t, l, "key-0=")
		fillKeyed(t, l, 5, 10)
		fillKeyed(t, other, 5, 60)
		size := other.Size()
		time.Sleep(3 * time.Second)
		synctest.Wait()
		st := s.CleanerStats()
		if st.Passes == 0 || st.RecordsKept >= st.RecordsRead || st.Running != 1 || st.Uncleanable != 0 {
			t.Fatalf("%+v", st)
		}
		if other.Size() != size || l.FirstDirty() == 0 {
			t.Fatalf("size of the other log %d, was %d; first dirty %d", other.Size(), size, l.FirstDirty())
		}
		want, first, horizon := mustReadKeyed(t, l), l.FirstDirty(), l.cleaning.horizon.Load()
		killed := cleanStore(t, d.Clone(), nil)
		if got := killed.Log("compacted", 0); got.FirstDirty() != first || got.cleaning.horizon.Load() != horizon || len(mustReadKeyed(t, got)) != len(want) {
			t.Fatalf("after a kill: first dirty %d, horizon %d; want %d, %d", got.FirstDirty(), got.cleaning.horizon.Load(), first, horizon)
		}
		for _, s := range []*Store{killed, s} {
			if err := s.Close(context.Background()); err != nil {
				t.Fatal(err)
			}
		}
		again := cleanStore(t, d, nil)
		if got := again.Log("compacted", 0); got.FirstDirty() != first || got.cleaning.horizon.Load() != horizon {
			t.Fatalf("after a stop: first dirty %d, horizon %d; want %d, %d", got.FirstDirty(), got.cleaning.horizon.Load(), first, horizon)
		}
		if err := again.Close(context.Background()); err != nil {
			t.Fatal(err)
		}
	})
}

// Claim (F026): a log that cannot be cleaned is named, left alone, and stops no other; it is tried again later.
func TestField_F026_OneLogStopsNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := faultfs.New(t)
		var lines said
		s := cleanStore(t, d, func(o *StoreOptions) {
			o.Cleaner.Threads = 0
			o.Logger = lines.logger()
		})
		bad, good := mustCreate(t, s, "bad", compacted()), mustCreate(t, s, "good", compacted())
		fillKeyed(t, bad, 5, 80)
		fillKeyed(t, good, 5, 60)
		if err := d.Damage(bad.Dir()+"/"+baseName(0)+logSuffix, 100, 4); err != nil {
			t.Fatal(err)
		}
		if err := s.SetCleaner(CleanerConfig{Threads: 1, Memory: 1 << 20, Backoff: time.Second}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Second)
		synctest.Wait()
		st := s.CleanerStats()
		if st.Uncleanable != 1 || good.FirstDirty() == 0 || bad.FirstDirty() != 0 || lines.count("log cannot be compacted") != 1 || lines.count("topic=bad") == 0 {
			t.Fatalf("%+v, good %d, bad %d\n%s", st, good.FirstDirty(), bad.FirstDirty(), lines.b.String())
		}
		time.Sleep(cleanRetry)
		synctest.Wait()
		if n := lines.count("log cannot be compacted"); n != 2 {
			t.Fatalf("tried %d times", n)
		}
		if err := s.Delete("bad"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Second)
		synctest.Wait()
		if st := s.CleanerStats(); st.Uncleanable != 0 {
			t.Fatalf("a log that is gone still counts: %+v", st)
		}
		if err := s.Close(context.Background()); err != nil {
			t.Fatal(err)
		}
	})
}

// Claim: the limit on bytes a second holds, a change of settings counts at once, and a Store closes in the middle of a slow pass.
func TestCleanerIsThrottled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := cleanStore(t, faultfs.New(t), func(o *StoreOptions) {
			o.Cleaner.Backoff, o.Cleaner.BytesPerSecond = time.Hour, 100
		})
		l := mustCreate(t, s, "t", compacted())
		fillKeyed(t, l, 5, 60)
		begun := time.Now()
		if err := s.SetCleaner(CleanerConfig{Threads: 1, Memory: 1 << 20, Backoff: time.Second, BytesPerSecond: 1000}); err != nil {
			t.Fatal(err)
		}
		for l.FirstDirty() == 0 {
			time.Sleep(time.Second)
			if time.Since(begun) > time.Hour {
				t.Fatal("no pass")
			}
		}
		st := s.CleanerStats()
		// Read twice, written once: as many bytes at that rate, less the last piece.
		if took, least := time.Since(begun), time.Duration(2*st.BytesRead+st.BytesWritten-2000)*time.Millisecond; took < least {
			t.Fatalf("%d bytes took %s, at least %s at the limit", 2*st.BytesRead+st.BytesWritten, took, least)
		}
		fillKeyed(t, l, 5, 600)
		time.Sleep(2 * time.Second)
		begun = time.Now()
		if err := s.Close(context.Background()); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(begun); took > time.Second {
			t.Fatalf("closing waited %s for the pass", took)
		}
	})
}

// Claim: a log that moves back and forth between directories while it is written and compacted loses nothing: the newest record of every key
// is there at every moment, and after a restart.
func TestMovingLogsAreCompacted(t *testing.T) {
	d := faultfs.New(t)
	s := cleanStore(t, d, func(o *StoreOptions) { o.Cleaner.Backoff = time.Millisecond })
	l := mustCreate(t, s, "t", compacted())
	newest := map[string]string{}
	verify := func(l *Log) {
		t.Helper()
		got := map[string]string{}
		for _, k := range mustReadKeyed(t, l) {
			got[k.key] = k.value
		}
		for key, value := range newest {
			if got[key] != value {
				t.Fatalf("%s is %q, was last written as %q", key, got[key], value)
			}
		}
	}
	dirs := []string{"/a", "/b"}
	begun := time.Now()
	for i := 0; s.MoveStats().Done < 6 || s.CleanerStats().Passes < 6; i++ {
		if time.Since(begun) > time.Minute {
			t.Fatalf("%+v, %+v after a minute", s.MoveStats(), s.CleanerStats())
		}
		key, value := fmt.Sprint("key-", i%9), fmt.Sprint(i, strings.Repeat("v", 60))
		putKeyed(t, l, key+"="+value)
		newest[key] = value
		if len(s.Moves()) == 0 && i%20 == 0 {
			if err := s.Move("t", 0, dirs[i/20%2]); err != nil {
				t.Fatal(err)
			}
		}
		if i%50 == 0 {
			verify(l)
		}
	}
	verify(l)
	if err := s.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	again := cleanStore(t, d, nil)
	verify(again.Log("t", 0))
	if err := again.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
}
