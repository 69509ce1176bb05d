package engine_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"time"

	"millrace/engine"
	"millrace/engine/batch"
	"millrace/engine/compact"
)

// temporary opens a log in a folder of its own; remove ends both.
func temporary(c engine.Config) (l *engine.Log, remove func()) {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		log.Fatal(err)
	}
	l, err = engine.OpenLog(filepath.Join(dir, "events-0"), engine.LogOptions{Config: c})
	if err != nil {
		log.Fatal(err)
	}
	return l, func() {
		l.Close()
		os.RemoveAll(dir)
	}
}

// Append records, and read them back: a range, one of them, or all and whatever comes.
func ExampleLog_AppendRecords() {
	l, remove := temporary(engine.DefaultConfig())
	defer remove()
	first, err := l.AppendRecords(
		engine.Record{Key: []byte("fruit"), Value: []byte("apple")},
		engine.Record{Key: []byte("tree"), Value: []byte("oak"), Headers: []engine.Header{{Key: "colour", Value: []byte("green")}}},
	)
	if err != nil {
		log.Fatal(err)
	}
	for r, err := range l.Records(first, l.End()) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%d: %s=%s, %d headers\n", r.Offset, r.Key, r.Value, len(r.Headers))
	}
	r, err := l.Get(1)
	fmt.Println(string(r.Value), err)
	// Output:
	// 0: fruit=apple, 0 headers
	// 1: tree=oak, 1 headers
	// oak <nil>
}

// One goroutine begins many appends and waits once: they share one write and one sync.
func ExampleLog_NewAppend() {
	l, remove := temporary(engine.DefaultConfig())
	defer remove()
	var begun []*engine.Append
	for i := range 100 {
		a, err := l.NewAppend(batch.None, engine.Record{Value: fmt.Appendf(nil, "event %d", i)})
		if err != nil {
			log.Fatal(err)
		}
		l.Enqueue(a, engine.NoEpoch)
		begun = append(begun, a)
	}
	for _, a := range begun { // each must be written and waited for
		if err := l.Write(a); err != nil {
			log.Fatal(err)
		}
		if err := a.Wait(); err != nil {
			log.Fatal(err)
		}
	}
	m := l.Metrics()
	fmt.Println(m.Batches, "batches,", m.Writes, "write; durable up to", m.Durable)
	// Output:
	// 100 batches, 1 write; durable up to 100
}

// A tail waits at the end for what others append.
func ExampleLog_Tail() {
	l, remove := temporary(engine.DefaultConfig())
	defer remove()
	go func() { // ends after three appends
		for _, word := range []string{"one", "two", "three"} {
			if _, err := l.AppendRecords(engine.Record{Value: []byte(word)}); err != nil {
				log.Fatal(err)
			}
		}
	}()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for r, err := range l.Tail(ctx, 0) {
		if err != nil {
			log.Fatal(err) // ctx's error, engine.ErrClosed, engine.ErrOutOfRange, ...
		}
		fmt.Printf("%s\n", r.Value)
		if r.Offset == 2 {
			break
		}
	}
	// Output:
	// one
	// two
	// three
}

// Whole batches are copied from one log to another, offsets and all, without being taken apart.
func ExampleReader() {
	from, remove := temporary(engine.DefaultConfig())
	defer remove()
	to, removeCopy := temporary(engine.DefaultConfig())
	defer removeCopy()
	for _, word := range []string{"one", "two", "three"} {
		if _, err := from.AppendRecords(engine.Record{Value: []byte(word)}); err != nil {
			log.Fatal(err)
		}
	}
	r := from.NewReader(to.End())
	for to.End() < from.End() {
		data, err := r.Next(context.Background())
		if err != nil {
			log.Fatal(err)
		}
		for len(data) > 0 {
			size, err := batch.Split(data)
			if err != nil {
				log.Fatal(err)
			}
			a := engine.Append{Batch: data[:size], Follower: true}
			if a.Info, err = batch.CheckStored(a.Batch); err != nil {
				log.Fatal(err)
			}
			if err := to.Append(&a, engine.NoEpoch); err != nil {
				log.Fatal(err)
			}
			data = data[size:]
		}
	}
	last, err := to.Get(2)
	fmt.Println(string(last.Value), err)
	// Output:
	// three <nil>
}

// Both ends can be cut: the old one as far as nobody needs it, the new one to take something back.
func ExampleLog_SetStart() {
	l, remove := temporary(engine.DefaultConfig())
	defer remove()
	for i := range 10 {
		if _, err := l.AppendRecords(engine.Record{Value: fmt.Appendf(nil, "%d", i)}); err != nil {
			log.Fatal(err)
		}
	}
	if err := l.SetStart(3); err != nil { // durable; nobody reads what is below
		log.Fatal(err)
	}
	if _, err := l.Retain(time.Now()); err != nil { // gives back the space of whole segments
		log.Fatal(err)
	}
	if err := l.TruncateTo(7); err != nil { // durable
		log.Fatal(err)
	}
	_, err := l.Get(7)
	fmt.Println(l.Start(), l.End(), err)
	// Output:
	// 3 7 engine: offset 7 is outside [3, 7]
}

// A consumer notes now and then how far it is, and goes on from there after a restart.
func ExamplePositions() {
	l, remove := temporary(engine.DefaultConfig())
	defer remove()
	if _, err := l.AppendRecords(engine.Record{Value: []byte("a")}, engine.Record{Value: []byte("b")}); err != nil {
		log.Fatal(err)
	}
	file := filepath.Join(l.Dir(), "positions")
	p, err := engine.OpenPositions(nil, file)
	if err != nil {
		log.Fatal(err)
	}
	if err := p.Set("mailer", 1); err != nil { // a was mailed
		log.Fatal(err)
	}
	if p, err = engine.OpenPositions(nil, file); err != nil {
		log.Fatal(err)
	}
	from, _ := p.Get("mailer")
	for r, err := range l.Records(from, l.End()) {
		fmt.Println(string(r.Value), err)
	}
	// Output:
	// b <nil>
}

// Compaction leaves the newest record of each key in the closed segments.
func ExampleLog_Clean() {
	c := engine.DefaultConfig()
	c.Compact, c.Delete, c.SegmentBytes = true, false, 4096
	l, remove := temporary(c)
	defer remove()
	for i := range 1000 {
		if _, err := l.AppendRecords(engine.Record{Key: fmt.Appendf(nil, "key %d", i%3), Value: fmt.Appendf(nil, "%d", i)}); err != nil {
			log.Fatal(err)
		}
	}
	before := l.Size()
	r, err := l.Clean(engine.Cleaning{Keys: compact.NewMap(1 << 20), Now: time.Now()})
	fmt.Println(r.Whole, err, l.Size() < before/10)
	values := map[string]string{}
	for r, err := range l.Records(l.Start(), l.End()) {
		if err != nil {
			log.Fatal(err)
		}
		values[string(r.Key)] = string(r.Value)
	}
	fmt.Println(values)
	// Output:
	// true <nil> true
	// map[key 0:999 key 1:997 key 2:998]
}
