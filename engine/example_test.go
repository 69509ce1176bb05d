package engine_test

import (
	"fmt"
	"log"
	"os"
	"path/filepath"

	"millrace/engine"
	"millrace/engine/batch"
)

// A log used with no broker at all: open, append, read, and open it again after
// a crash.
func Example() {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	folder := filepath.Join(dir, "greetings-0")

	l, err := engine.OpenLog(folder, engine.LogOptions{})
	if err != nil {
		log.Fatal(err)
	}
	for _, word := range []string{"hello", "world"} {
		b := batch.NewBuilder(batch.None, 0)
		if err := b.Add(batch.Record{Timestamp: 1, Value: []byte(word)}); err != nil {
			log.Fatal(err)
		}
		a := engine.Append{Batch: b.Bytes()}
		if a.Info, err = batch.Check(a.Batch, &batch.Rules{}); err != nil {
			log.Fatal(err)
		}
		if err := l.Append(&a, 0); err != nil { // when it returns, the batch survives a loss of power
			log.Fatal(err)
		}
		fmt.Println("appended at", a.Base)
	}

	// A crash leaves the files as they are at this moment.
	crashed := filepath.Join(dir, "after-crash-0")
	if err := os.CopyFS(crashed, os.DirFS(folder)); err != nil {
		log.Fatal(err)
	}
	if err := l.Close(); err != nil {
		log.Fatal(err)
	}

	l, err = engine.OpenLog(crashed, engine.LogOptions{})
	if err != nil {
		log.Fatal(err)
	}
	defer l.Close()
	s, err := l.Read(l.Start(), 1<<20, l.End(), true)
	if err != nil {
		log.Fatal(err)
	}
	defer s.Release()
	data := make([]byte, s.Size())
	if err := s.ReadInto(data); err != nil {
		log.Fatal(err)
	}
	for r, err := range batch.Records(data) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%d: %s\n", r.Offset, r.Value)
	}
	// Output:
	// appended at 0
	// appended at 1
	// 0: hello
	// 1: world
}
