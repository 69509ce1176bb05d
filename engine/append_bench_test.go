package engine

import (
	"fmt"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// BenchmarkAppend is the engine alone, on real files: b.N appends spread over
// writers. Besides bytes/s and allocations it reports p99 of one append.
// TMPDIR chooses the disk.
func BenchmarkAppend(b *testing.B) {
	for _, size := range []int{170, 16 << 10, 1 << 20} {
		for _, mode := range []string{"page-cache", "journal", "files"} {
			for _, writers := range []int{1, 8, 64} {
				if size == 1<<20 && writers == 64 {
					continue // 64 MiB in flight measures the memory
				}
				b.Run(fmt.Sprintf("batch=%d/sync=%s/writers=%d", size, mode, writers), func(b *testing.B) {
					benchmarkAppend(b, size, mode, writers)
				})
			}
		}
	}
}

func benchmarkAppend(b *testing.B, size int, mode string, writers int) {
	c := DefaultConfig()
	c.DeleteDelay = 0
	if mode == "page-cache" {
		c.Durability = PageCache
	}
	dir, err := os.MkdirTemp("", "bench")
	if err != nil {
		b.Fatal(err)
	}
	defer os.RemoveAll(dir)
	l, err := OpenLog(dir+"/t-0", LogOptions{Config: c, JournalOff: mode == "files"})
	if err != nil {
		b.Fatal(err)
	}
	value := make([]byte, size-75)
	b.SetBytes(int64(size))
	b.ReportAllocs()
	var left atomic.Int64
	left.Store(int64(b.N))
	took := make([][]time.Duration, writers)
	var done sync.WaitGroup
	b.ResetTimer()
	for w := range writers {
		a := leaderAppend(newBatch(1000, []string{string(value)}))
		took[w] = make([]time.Duration, 0, b.N/writers+1)
		done.Add(1)
		go func() {
			defer done.Done()
			for left.Add(-1) >= 0 {
				begun := time.Now()
				if err := l.Append(a, 0); err != nil {
					b.Error(err)
					return
				}
				took[w] = append(took[w], time.Since(begun))
			}
		}()
	}
	done.Wait()
	b.StopTimer()
	all := slices.Concat(took...)
	slices.Sort(all)
	b.ReportMetric(float64(all[len(all)*99/100].Microseconds()), "p99-µs")
	if err := l.Close(); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkWriteOverhead is what Write costs beside the system call: the file
// takes everything at once.
func BenchmarkWriteOverhead(b *testing.B) {
	c := DefaultConfig()
	c.Durability = PageCache
	l := openTestLog(b, &countingFS{FS: newNullFS(b)}, c, func(o *LogOptions) { o.JournalOff = true })
	a := leaderAppend(newBatch(1000, []string{valueOf(0)}))
	b.ReportAllocs()
	b.ResetTimer()
	for range b.N {
		l.Enqueue(a, 0)
		if err := l.Write(a); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkReadTail is the look-up of a read at the end of a log.
func BenchmarkReadTail(b *testing.B) {
	c := DefaultConfig()
	c.Durability = PageCache
	l, err := OpenLog(b.TempDir()+"/t-0", LogOptions{Config: c, JournalOff: true})
	if err != nil {
		b.Fatal(err)
	}
	putN(b, l, 1000)
	b.ReportAllocs()
	b.ResetTimer()
	for range b.N {
		s, err := l.Read(999, 1<<20, 1000, true)
		if err != nil {
			b.Fatal(err)
		}
		s.Release()
	}
	b.StopTimer()
	closeLog(b, l)
}

// BenchmarkGet is one record anywhere in a log, from the page cache.
func BenchmarkGet(b *testing.B) {
	c := DefaultConfig()
	c.Durability = PageCache
	l, err := OpenLog(b.TempDir()+"/t-0", LogOptions{Config: c, JournalOff: true})
	if err != nil {
		b.Fatal(err)
	}
	const records = 50_000
	putN(b, l, records)
	b.ReportAllocs()
	b.ResetTimer()
	for i := range b.N {
		if _, err := l.Get(Offset(i) * 7919 % records); err != nil {
			b.Fatal(err)
		}
	}
	b.StopTimer()
	closeLog(b, l)
}
