package queue

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"testing"

	"millrace/engine"
	"millrace/engine/vfs"
	"millrace/engine/vfs/faultfs"
)

const dir = "/data/queue"

func open(t *testing.T, fs vfs.FS, o Options) *Queue {
	t.Helper()
	o.Log.FS, o.Log.JournalBytes = fs, 64<<10
	q, err := Open(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	return q
}

func put(t *testing.T, q *Queue, from, to int) {
	t.Helper()
	for i := from; i < to; i++ {
		if err := q.Put(fmt.Appendf(nil, "%d", i)); err != nil {
			t.Fatal(err)
		}
	}
}

func get(t *testing.T, q *Queue) Message {
	t.Helper()
	m, err := q.Get(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// Claim: several consumers share the messages: each is done once, also those that were given back; then their segments go.
func TestConsumersShareTheMessages(t *testing.T) {
	q := open(t, faultfs.New(t), Options{AckEvery: 20, SegmentBytes: 2000})
	const messages = 400
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var mu sync.Mutex
	done, refused := map[string]int{}, map[string]bool{}
	var consumers sync.WaitGroup
	for range 4 {
		consumers.Go(func() { // ends when all is done
			for {
				m, err := q.Get(ctx)
				if err != nil {
					return
				}
				mu.Lock()
				if v := string(m.Value); len(v)%2 == 0 && !refused[v] {
					refused[v] = true
					m.Nack()
				} else if err := m.Ack(); err != nil {
					t.Error(err)
				} else if done[v]++; len(done) == messages {
					cancel()
				}
				mu.Unlock()
			}
		})
	}
	put(t, q, 0, messages)
	consumers.Wait()
	for v, n := range done {
		if n != 1 {
			t.Errorf("message %s was done %d times", v, n)
		}
	}
	if len(done) != messages || len(refused) != 90 || q.Len() != 0 {
		t.Errorf("%d done, %d came twice, %d left", len(done), len(refused), q.Len())
	}
	if m := q.log.Metrics(); m.Segments > 3 || m.Start != messages {
		t.Errorf("%d segments, start %d: what is done was not deleted", m.Segments, m.Start)
	}
	if err := q.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := q.Get(t.Context()); !errors.Is(err, engine.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
}

// Claim: after a loss of power every message that was put and not done comes again, in order, and none that was noted as done.
func TestCrashBringsBackWhatIsNotDone(t *testing.T) {
	d := faultfs.New(t)
	q := open(t, d.Session(), Options{AckEvery: 10})
	put(t, q, 0, 50)
	for i := range 30 {
		m := get(t, q)
		if i == 25 {
			m.Nack()
			m = get(t, q)
			if string(m.Value) != "25" {
				t.Fatalf("%s follows the Nack of 25", m.Value)
			}
		}
		if i != 22 { // one consumer is slow
			if err := m.Ack(); err != nil {
				t.Fatal(err)
			}
		}
	}
	d.CutPower(faultfs.KeepUnsynced(0))
	_ = q.Close() // its disk is gone
	q = open(t, d.Session(), Options{})
	defer q.Close()
	if q.Len() != 30 { // 20 were noted
		t.Fatalf("%d messages are left, want 30", q.Len())
	}
	for want := 20; want < 50; want++ {
		if m := get(t, q); string(m.Value) != fmt.Sprint(want) {
			t.Fatalf("got %s, want %d", m.Value, want)
		}
	}
}

// Claim: wherever the power is cut, no message that Put has acknowledged and nobody has done is lost.
func TestNothingIsLostAnywhere(t *testing.T) {
	for n := 0; ; n++ {
		d := faultfs.New(nil, faultfs.Seed(uint64(n))).CutAtOperation(n)
		left := live(d)
		fired := d.Fired()
		d.CutPower(faultfs.KeepUnsynced(n * 31 % 101))
		q := open(t, d.Session(), Options{})
		for range q.Len() {
			m := get(t, q)
			delete(left, string(m.Value))
		}
		if len(left) > 0 {
			t.Fatalf("operation %d: lost %v", n, maps.Collect(maps.All(left)))
		}
		if err := q.Close(); err != nil {
			t.Fatal(err)
		}
		if !fired {
			return
		}
	}
}

// live puts and takes until the power goes, and returns what was put and not done.
func live(d *faultfs.Disk) map[string]bool {
	left := map[string]bool{}
	o := Options{AckEvery: 4, SegmentBytes: 500}
	o.Log.FS, o.Log.JournalBytes = d.Session(), 64<<10
	q, err := Open(dir, o)
	if err != nil {
		return left
	}
	defer q.Close()
	for i := range 40 {
		v := fmt.Sprint(i)
		if q.Put([]byte(v)) != nil {
			return left
		}
		left[v] = true
		if i%3 > 0 {
			continue
		}
		m, err := q.Get(context.Background())
		if err != nil {
			return left
		}
		delete(left, string(m.Value))
		if m.Ack() != nil {
			return left
		}
	}
	return left
}
