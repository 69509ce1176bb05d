//go:build linux && (amd64 || arm64)

package vfs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"testing"
)

// Claim: a call on a file that is being closed goes to that file or fails; it never reaches the file that gets the number next, and the
// number is given back once.
// Method: many goroutines write to a file, plainly and as a vector, while it is closed twice and others are opened at once, which get its
// number as soon as it is free. Those must stay empty, and open.
func TestClosedNumberIsNobodysToWriteTo(t *testing.T) {
	dir := t.TempDir()
	block := []byte("x")
	for round := range 300 {
		f, err := OS().OpenFile(filepath.Join(dir, "closed"), os.O_RDWR|os.O_CREATE)
		if err != nil {
			t.Fatal(err)
		}
		var writers, closers sync.WaitGroup
		begun := make(chan struct{}, 4)
		for w := range 4 {
			writers.Go(func() {
				for i := 0; ; i++ {
					if i == 10 {
						begun <- struct{}{}
					}
					var err error
					if w%2 == 0 {
						_, err = f.WriteAt(block, 0)
					} else {
						_, err = f.WriteVAt([][]byte{block, block}, 0)
					}
					if errors.Is(err, fs.ErrClosed) {
						return
					}
					if err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		for range 4 {
			<-begun
		}
		results := make(chan error, 2)
		for range 2 {
			closers.Go(func() { results <- f.Close() })
		}
		var next []File
		for i := range 8 {
			n, err := OS().OpenFile(filepath.Join(dir, fmt.Sprintf("next-%d", i)), os.O_RDWR|os.O_CREATE)
			if err != nil {
				t.Fatal(err)
			}
			next = append(next, n)
		}
		closers.Wait()
		writers.Wait()
		if a, b := <-results, <-results; (a == nil) == (b == nil) {
			t.Fatalf("round %d: closed twice: %v, %v", round, a, b)
		}
		for i, n := range next {
			size, err := n.Size()
			if err != nil || size != 0 {
				t.Fatalf("round %d: file %d has %d bytes, error %v", round, i, size, err)
			}
			if err := n.Close(); err != nil {
				t.Fatalf("round %d: file %d was closed by somebody else: %v", round, i, err)
			}
		}
	}
}
