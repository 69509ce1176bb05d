package engine

import (
	"errors"
	"fmt"
	"path"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"millrace/engine/vfs"
	"millrace/engine/vfs/faultfs"
)

// countingFS counts the writes to segment files and can hold them up.
type countingFS struct {
	vfs.FS
	writes atomic.Int64
	hold   func() // called before each write
}

type countingFile struct {
	vfs.File
	fs *countingFS
}

func (c *countingFS) OpenFile(name string, flag int) (vfs.File, error) {
	f, err := c.FS.OpenFile(name, flag)
	if err != nil || path.Ext(name) != logSuffix {
		return f, err
	}
	return &countingFile{f, c}, nil
}

func (f *countingFile) WriteAt(p []byte, off int64) (int, error) {
	f.fs.count()
	return f.File.WriteAt(p, off)
}

func (f *countingFile) WriteVAt(b [][]byte, off int64) (int, error) {
	f.fs.count()
	return f.File.WriteVAt(b, off)
}

func (c *countingFS) count() {
	c.writes.Add(1)
	if c.hold != nil {
		c.hold()
	}
}

// Claim (D4): appends that come while a write is under way are written together,
// with one call; nothing is lost, doubled or torn from its neighbours.
// Method: hold the first write up until all others have queued.
func TestAppendsUnderLoadAreCombined(t *testing.T) {
	const writers = 64
	var queued sync.WaitGroup
	queued.Add(writers)
	var once sync.Once
	fs := &countingFS{FS: faultfs.New(t), hold: func() { once.Do(queued.Wait) }}
	l := openTestLog(t, fs, DefaultConfig())
	var done sync.WaitGroup
	bases := make([]Offset, writers)
	for i := range writers {
		done.Add(1)
		go func() {
			defer done.Done()
			a := leaderAppend(newBatch(1000, []string{fmt.Sprint(i)}))
			l.Enqueue(a, 0)
			queued.Done()
			if err := errors.Join(l.Write(a), a.Wait()); err != nil {
				t.Error(err)
			}
			bases[i] = a.Base
		}()
	}
	done.Wait()
	if n := fs.writes.Load(); n > 3 {
		t.Errorf("%d writes for %d appends", n, writers)
	}
	got := mustContents(t, l)
	for i, base := range bases {
		if got[base] != (gotRecord{base, fmt.Sprint(i)}) {
			t.Errorf("offset %d holds %v, want %d", base, got[base], i)
		}
	}
	closeLog(t, l)
}

// Claim: whoever runs the queue hands it over once its own append is written; an
// owner that comes late to Write finds its append done or does it.
// Method: writers that enqueue several appends each, on all logs of chance.
func TestCombiningUnderChance(t *testing.T) {
	for _, durability := range []Durability{Sync, PageCache} {
		c := smallLog()
		c.Durability = durability
		l := openTestLog(t, faultfs.New(t), c)
		var told atomic.Int64
		l.OnDurable(func(o Offset) { raise(&told, int64(o)) })
		var done sync.WaitGroup
		const writers, rounds = 8, 40
		for w := range writers {
			done.Add(1)
			go func() {
				defer done.Done()
				list := make([]*Append, 3)
				for r := range rounds {
					for i := range list {
						list[i] = leaderAppend(newBatch(1000, []string{fmt.Sprint(w, r, i)}))
						l.Enqueue(list[i], 0)
					}
					last := Offset(-1)
					for _, a := range list {
						if err := l.Write(a); err != nil {
							t.Error(err)
							return
						}
						if a.Base <= last {
							t.Errorf("append at %d after %d", a.Base, last)
						}
						last = a.Base
					}
					for _, a := range list {
						if err := a.Wait(); err != nil {
							t.Error(err)
						}
						if l.Safe() <= a.Base {
							t.Errorf("acknowledged %d, safe to %d", a.Base, l.Safe())
						}
					}
				}
			}()
		}
		done.Wait()
		if got := mustContents(t, l); len(got) != writers*rounds*3 {
			t.Fatalf("%d records, want %d", len(got), writers*rounds*3)
		}
		for range 1000 { // Notify comes after the waiters were released
			if told.Load() == int64(l.End()) {
				break
			}
			time.Sleep(time.Millisecond)
		}
		if told.Load() != int64(l.End()) {
			t.Errorf("the observer was told %d, end %d", told.Load(), l.End())
		}
		closeLog(t, l)
	}
}

// Claim: readers, writers, retention and moves of the start go on beside each
// other; what a reader gets is whole and in order.
func TestReadersBesideEverything(t *testing.T) {
	c := smallLog()
	c.Durability, c.RetentionAge, c.RetentionBytes = PageCache, -1, 3000
	l := openTestLog(t, faultfs.New(t), c)
	stop := make(chan struct{})
	var done sync.WaitGroup
	for range 3 {
		done.Add(1)
		go func() {
			defer done.Done()
			for at := Offset(0); ; {
				select {
				case <-stop:
					return
				default:
				}
				s, err := l.Read(at, 500, l.End(), true)
				var out *OutOfRangeError
				if errors.As(err, &out) {
					at = l.Start()
					continue
				}
				if err != nil {
					t.Errorf("read at %d: %v", at, err)
					return
				}
				data := make([]byte, s.Size())
				if err := s.ReadInto(data); err != nil {
					t.Errorf("read at %d: %v", at, err)
				}
				first := s.First
				s.Release()
				for len(data) >= 61 {
					e, ok := parseEntry(data, 0)
					if !ok || e.base != max(at, first) {
						t.Errorf("at %d: %+v", at, e)
						return
					}
					if e.size > len(data) {
						break
					}
					at = e.last + 1
					data = data[e.size:]
				}
			}
		}()
	}
	for i := range 400 {
		put(t, l, valueOf(l.End()))
		if i%20 == 0 {
			if _, err := l.Retain(time.Now()); err != nil {
				t.Error(err)
			}
			if _, _, _, err := l.OffsetForTime(1000); err != nil {
				t.Error(err)
			}
			if _, _, err := l.MaxTimestamp(); err != nil {
				t.Error(err)
			}
		}
	}
	close(stop)
	done.Wait()
	closeLog(t, l)
}

// Claim (L4): after a failed sync nothing is acknowledged until the log is
// opened again; reading goes on.
func TestNothingIsAcknowledgedAfterAFailedSync(t *testing.T) {
	d := faultfs.New(t)
	l := openTestLog(t, d, smallLog())
	putN(t, l, 3)
	d.Fail(faultfs.Fault{Kind: faultfs.OpDirectWrite, Times: 1})
	for range 4 {
		var p *PoisonedError
		err := l.Append(leaderAppend(newBatch(1, []string{"x"})), 0)
		if !errors.As(err, &p) || !errors.Is(err, ErrPoisoned) || !errors.Is(err, faultfs.ErrInjected) {
			t.Fatalf("append: %v", err)
		}
	}
	if got, err := contents(l, 3, 1<<20); len(got) != 3 || err != nil {
		t.Fatalf("read: %v, %v", got, err)
	}
	if l.Durable() != 3 {
		t.Fatalf("durable %d", l.Durable())
	}
	if err := l.Close(); !errors.Is(err, ErrPoisoned) {
		t.Fatalf("close: %v", err)
	}
	l = openTestLog(t, d, smallLog())
	if l.End() < 3 {
		t.Fatalf("end %d", l.End())
	}
	putN(t, l, 1)
	closeLog(t, l)
}

// Claim: a full disk fails the appends that it fails, leaves nothing of them, and
// the log goes on when there is space again.
func TestFullDiskFailsAppendsAndNothingElse(t *testing.T) {
	d := faultfs.New(t)
	l := openTestLog(t, d, smallLog())
	putN(t, l, 4)
	for _, fault := range []faultfs.Fault{
		{Kind: faultfs.OpWrite, Pattern: "*.log", Err: syscall.ENOSPC},
		{Kind: faultfs.OpCreate, Pattern: "*.log", Err: syscall.ENOSPC},
		{Kind: faultfs.OpPreallocate, Pattern: "*.index", Err: syscall.ENOSPC},
	} {
		d.Fail(fault)
		failed := 0
		for range 30 { // until the operation comes by
			a := leaderAppend(newBatch(1000, []string{valueOf(l.End())}))
			before := l.End()
			err := l.Append(a, 0)
			if err == nil {
				continue
			}
			failed++
			if !errors.Is(err, ErrStorage) || !errors.Is(err, syscall.ENOSPC) || l.End() != before {
				t.Fatalf("%v: %v, end %d, was %d", fault.Kind, err, l.End(), before)
			}
		}
		if failed != 1 && fault.Kind != faultfs.OpPreallocate {
			t.Fatalf("%v: %d appends failed", fault.Kind, failed)
		}
	}
	end := l.End()
	requireValues(t, l, 0, end)
	d = crash(d)
	l = openTestLog(t, d, smallLog())
	requireValues(t, l, 0, end)
	closeLog(t, l)
}

// Claim: in page-cache mode flush.messages makes the append that fills it wait
// for a sync, and flush.ms bounds the age of unsynced bytes.
func TestPageCacheFlushes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := pageCache()
		c.FlushMessages = 5
		l := openTestLog(t, faultfs.New(t), c)
		putN(t, l, 4)
		if l.Durable() != 0 || l.Safe() != 4 {
			t.Fatalf("durable %d, safe %d", l.Durable(), l.Safe())
		}
		putN(t, l, 1)
		if l.Durable() != 5 || l.RecoveryPoint() != 5 {
			t.Fatalf("durable %d, recovery point %d", l.Durable(), l.RecoveryPoint())
		}
		c.FlushMessages, c.FlushEvery = noLimit, time.Minute
		l.SetConfig(c)
		putN(t, l, 3)
		time.Sleep(59 * time.Second)
		synctest.Wait()
		if l.Durable() != 5 {
			t.Fatalf("durable %d before its time", l.Durable())
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if l.Durable() != 8 {
			t.Fatalf("durable %d, want 8", l.Durable())
		}
		// From page-cache to sync: an ack covers what was appended before.
		putN(t, l, 2)
		c.Durability, c.FlushEvery = Sync, noLimit
		l.SetConfig(c)
		putN(t, l, 1)
		if l.Durable() != 11 {
			t.Fatalf("durable %d, want 11", l.Durable())
		}
		closeLog(t, l)
	})
}

// Claim: a steady append allocates nothing.
func TestAppendAllocatesNothing(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector empties pools at random")
	}
	for _, durability := range []Durability{PageCache, Sync} {
		c := DefaultConfig()
		c.Durability = durability
		l, err := OpenLog(t.TempDir()+"/t-0", LogOptions{Config: c})
		if err != nil {
			t.Fatal(err)
		}
		a := leaderAppend(newBatch(1000, []string{valueOf(0)}))
		once := func() {
			if err := l.Append(a, 0); err != nil {
				t.Fatal(err)
			}
		}
		for range 300 {
			once()
		}
		if n := testing.AllocsPerRun(300, once); n >= 1 {
			t.Errorf("%v: %v allocations an append", durability, n)
		}
		closeLog(t, l)
	}
}
