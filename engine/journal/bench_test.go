package journal

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"millrace/engine/vfs"
)

// benchLog appends bytes that nobody will read.
type benchLog struct {
	mu   sync.Mutex
	file vfs.File
	size int64
	end  atomic.Int64
	id   LogID
}

func (l *benchLog) ID() LogID                    { return l.id }
func (l *benchLog) End() int64                   { return l.end.Load() }
func (l *benchLog) Synced(int64)                 {}
func (l *benchLog) SegmentSynced(int64)          {}
func (l *benchLog) Notify()                      {}
func (l *benchLog) SyncTargets() []vfs.File      { return []vfs.File{l.file} }
func (l *benchLog) ReleaseTargets(fs []vfs.File) {}
func (l *benchLog) add(j *Journal, data []byte) (t Ticket, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, err := l.file.WriteAt(data, l.size); err != nil {
		return t, err
	}
	l.size += int64(len(data))
	end := l.end.Add(1)
	if j == nil {
		return t, nil
	}
	return j.Add(l, 1, end-1, end, [][]byte{data}), nil
}

// benchDir is a directory beside the source: on a disk, where the temporary directory may be memory.
func benchDir(b *testing.B) string {
	dir, err := os.MkdirTemp(".", "journal-bench-")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

func benchLogs(b *testing.B, dir string, n int) []*benchLog {
	logs := make([]*benchLog, n)
	for i := range logs {
		f, err := vfs.OS().OpenFile(filepath.Join(dir, fmt.Sprintf("log-%d", i)), os.O_RDWR|os.O_CREATE)
		if err != nil {
			b.Fatal(err)
		}
		logs[i] = &benchLog{file: f, id: LogID{Partition: int32(i)}}
		b.Cleanup(func() { f.Close() })
	}
	return logs
}

func benchJournal(b *testing.B, o Options) *Journal {
	o.FS = vfs.OS()
	o.DataDir = o.Dir
	j, err := Open(o)
	if err == nil {
		err = j.Start()
	}
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := j.Close(); err != nil {
			b.Error(err)
		}
	})
	return j
}

// warm brings the journal into the state of a broker that has run for a few seconds: in a full-sized file, another one free, the keeper at rest.
func warm(b *testing.B, j *Journal, log *benchLog) {
	for !j.off {
		t, err := log.add(j, make([]byte, 64<<10))
		if err == nil {
			err = j.Wait(t)
		}
		if err != nil {
			b.Fatal(err)
		}
		j.mu.Lock()
		ready := j.current != nil && j.current.size == j.fileBytes && len(j.free) > 0
		for _, f := range j.free {
			ready = ready && f.size == j.fileBytes
		}
		j.mu.Unlock()
		if ready {
			return
		}
		time.Sleep(time.Millisecond)
	}
}

// spread runs b.N acknowledgements over writers and reports their latency. Writer i uses log i modulo their number.
func spread(b *testing.B, j *Journal, logs []*benchLog, writers, size int) {
	took := make([]time.Duration, b.N)
	var next atomic.Int64
	var wg sync.WaitGroup
	b.SetBytes(int64(size))
	b.ResetTimer()
	for w := range writers {
		wg.Go(func() {
			log := logs[w%len(logs)]
			data := make([]byte, size)
			for {
				n := next.Add(1) - 1
				if n >= int64(b.N) {
					return
				}
				begun := time.Now()
				t, err := log.add(j, data)
				if err == nil && j != nil {
					err = j.Wait(t)
				} else if err == nil {
					err = log.file.Sync()
				}
				if err != nil {
					b.Error(err)
					return
				}
				took[n] = time.Since(begun)
			}
		})
	}
	wg.Wait()
	b.StopTimer()
	slices.SortFunc(took, cmp.Compare[time.Duration])
	b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-µs")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-µs")
}

// BenchmarkRound: an append of some bytes, acknowledged. how=journal is this package; how=rounds the same with the journal off (rounds that
// sync the file); how=each an append and a sync of the file for every acknowledgement.
func BenchmarkRound(b *testing.B) {
	for _, writers := range []int{1, 8, 64} {
		for _, size := range []int{200, 4 << 10, 64 << 10} {
			for _, how := range []string{"journal", "rounds", "each"} {
				b.Run(fmt.Sprintf("writers=%d/bytes=%d/how=%s", writers, size, how), func(b *testing.B) {
					dir := benchDir(b)
					logs := benchLogs(b, dir, 1)
					var j *Journal
					if how != "each" {
						j = benchJournal(b, Options{Dir: dir, Off: how == "rounds"})
						warm(b, j, logs[0])
					}
					spread(b, j, logs, writers, size)
				})
			}
		}
	}
}

// BenchmarkThreshold finds the size from which syncing the file beats writing the bytes twice. The background syncing and the reuse of files
// are part of it, if b.N is large enough: 1 MiB 300 times fills the default journal once.
func BenchmarkThreshold(b *testing.B) {
	for _, logs := range []int{1, 4} {
		for size := 16 << 10; size <= 1<<20; size *= 2 {
			for _, how := range []string{"journal", "sync"} {
				b.Run(fmt.Sprintf("logs=%d/bytes=%d/how=%s", logs, size, how), func(b *testing.B) {
					dir := benchDir(b)
					all := benchLogs(b, dir, logs)
					threshold := -1
					if how == "sync" {
						threshold = 1
					}
					j := benchJournal(b, Options{Dir: dir, Threshold: threshold})
					if how == "journal" {
						warm(b, j, all[0])
					}
					spread(b, j, all, logs, size)
				})
			}
		}
	}
}

// BenchmarkAdd is what a log pays under its lock: rounds are run often enough that the buffer stays as it is in use.
func BenchmarkAdd(b *testing.B) {
	for _, size := range []int{200, 16 << 10} {
		b.Run(fmt.Sprintf("bytes=%d", size), func(b *testing.B) {
			dir := benchDir(b)
			log := benchLogs(b, dir, 1)[0]
			j := benchJournal(b, Options{Dir: dir})
			data := [][]byte{make([]byte, size)}
			b.ReportAllocs()
			b.SetBytes(int64(size))
			for n := 0; b.Loop(); n++ {
				end := log.end.Add(1)
				t := j.Add(log, 1, end-1, end, data)
				if n%(256<<10/(size+recordBytes)) == 0 {
					b.StopTimer()
					if err := j.Wait(t); err != nil {
						b.Fatal(err)
					}
					b.StartTimer()
				}
			}
		})
	}
}

// BenchmarkWaitDone is a Wait for what is durable already.
func BenchmarkWaitDone(b *testing.B) {
	dir := benchDir(b)
	log := benchLogs(b, dir, 1)[0]
	j := benchJournal(b, Options{Dir: dir})
	t, err := log.add(j, make([]byte, 200))
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if err := j.Wait(t); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkRoundBesideSyncing: rounds of 4 KiB while files with 32 MiB unwritten each are synced beside them, as a pass does it (gently), all at once
// (as passes once did), or not at all (alone).
func BenchmarkRoundBesideSyncing(b *testing.B) {
	for _, how := range []string{"alone", "gently", "at-once"} {
		b.Run("how="+how, func(b *testing.B) {
			dir := benchDir(b)
			logs := benchLogs(b, dir, 5)
			j := benchJournal(b, Options{Dir: dir})
			warm(b, j, logs[0])
			stop, ended := make(chan struct{}), make(chan error)
			go func() { ended <- syncBeside(j, logs[1:], how, stop) }() // ends when stop is closed
			spread(b, j, logs[:1], 1, 4<<10)
			close(stop)
			if err := <-ended; err != nil {
				b.Error(err)
			}
		})
	}
}

func syncBeside(j *Journal, logs []*benchLog, how string, stop chan struct{}) error {
	data := make([]byte, 1<<20)
	var files []vfs.File
	for _, l := range logs {
		files = append(files, l.file)
	}
	for how != "alone" {
		for _, f := range files {
			for i := range int64(32) {
				select {
				case <-stop:
					return nil
				default:
				}
				if _, err := f.WriteAt(data, i<<20); err != nil {
					return err
				}
			}
		}
		err := error(nil)
		if how == "gently" {
			err = j.syncGently(files)
		} else {
			err = vfs.SyncMany(j.fs, j.dataDir, files)
		}
		if err != nil {
			return err
		}
	}
	<-stop
	return nil
}
