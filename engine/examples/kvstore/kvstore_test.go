package kvstore

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"

	"millrace/engine"
	"millrace/engine/vfs/faultfs"
)

const dir = "/data/kv"

func options(d *faultfs.Disk) Options {
	return Options{SegmentBytes: 2000, KeyMemory: 64 << 10, Log: engine.LogOptions{FS: d.Session(), JournalBytes: 64 << 10}}
}

func open(t *testing.T, d *faultfs.Disk) *Store {
	t.Helper()
	s, err := Open(dir, options(d))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func value(n int) []byte { return fmt.Appendf(nil, "%d-%s", n, strings.Repeat("v", 50)) }

// Claim: many writers, deletions and compactions later, the store holds of each key what was put last, before and after a
// restart; the log is small; a watcher that began with an old snapshot has the same.
func TestTheNewestOfEachKeyStays(t *testing.T) {
	d := faultfs.New(t)
	s := open(t, d)
	if err := s.Put("first", nil); err != nil {
		t.Fatal(err)
	}
	copied, from := s.Snapshot()
	const writers, keys, rounds = 4, 5, 20
	var all sync.WaitGroup
	for w := range writers {
		all.Go(func() { // ends after its rounds
			for i := range rounds * keys {
				key := fmt.Sprintf("%d/%d", w, i%keys)
				if err := s.Put(key, value(i)); err != nil {
					t.Error(err)
					return
				}
				if got, _ := s.Get(key); string(got) != string(value(i)) {
					t.Errorf("%s is %.10q after a Put of %d", key, got, i)
				}
				if i%50 == 0 {
					if err := s.Compact(); err != nil && !errors.Is(err, engine.ErrCleaning) {
						t.Error(err)
					}
				}
			}
			if err := s.Delete(fmt.Sprintf("%d/0", w)); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if err := s.Compact(); err != nil {
		t.Fatal(err)
	}
	want, end := s.Snapshot()
	if len(want) != 1+writers*(keys-1) {
		t.Fatalf("%d keys", len(want))
	}
	if m := s.Metrics(); m.Bytes > m.Appended/3 {
		t.Errorf("%d bytes are left of %d", m.Bytes, m.Appended)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for r, err := range s.Watch(ctx, from) {
		if err != nil {
			t.Fatal(err)
		}
		if copied[string(r.Key)] = r.Clone().Value; r.Value == nil {
			delete(copied, string(r.Key))
		}
		if engine.Offset(r.Offset)+1 == end {
			break
		}
	}
	if !reflect.DeepEqual(copied, want) {
		t.Errorf("the watcher has %d keys, the store %d", len(copied), len(want))
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(t, d)
	defer s.Close()
	if got, _ := s.Snapshot(); !reflect.DeepEqual(got, want) {
		t.Errorf("after a restart there are %d keys, want %d", len(got), len(want))
	}
	if got, ok := s.Get("first"); !ok || len(got) != 0 {
		t.Errorf("an empty value came back as %q, %v", got, ok)
	}
}

// Claim: wherever the power is cut, in changes and in compaction, each key is as the last acknowledged change left it, or as the one that was
// under way.
func TestChangesSurviveAnyPowerCut(t *testing.T) {
	for n := 0; ; n += 2 {
		d := faultfs.New(nil, faultfs.Seed(uint64(n))).CutAtOperation(n)
		acked, tried := live(d)
		fired := d.Fired()
		d.CutPower(faultfs.KeepUnsynced(n * 31 % 101))
		s := open(t, d)
		for k, v := range acked {
			got, ok := s.Get(k)
			if now := string(got); now != v && (now != tried[k] || !ok && tried[k] != "") {
				t.Fatalf("operation %d: %s is %.10q, acknowledged %.10q, tried %.10q", n, k, now, v, tried[k])
			}
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if !fired {
			return
		}
	}
}

// live changes keys until the power goes; "" is deleted.
func live(d *faultfs.Disk) (acked, tried map[string]string) {
	acked, tried = map[string]string{}, map[string]string{}
	s, err := Open(dir, options(d))
	if err != nil {
		return acked, tried
	}
	defer s.Close()
	for i := range 100 {
		k := fmt.Sprint(i % 7)
		tried[k] = string(value(i))
		if i%11 == 0 {
			tried[k] = ""
			err = s.Delete(k)
		} else {
			err = s.Put(k, value(i))
		}
		if err != nil {
			return acked, tried
		}
		acked[k] = tried[k]
		if i%40 == 39 && s.Compact() != nil {
			return acked, tried
		}
	}
	return acked, tried
}
