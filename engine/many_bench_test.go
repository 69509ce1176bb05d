package engine

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"millrace/engine/vfs"
)

// BenchmarkManyLogs is one append to each of many logs in turn, in page-cache mode, beside
// bare: the same bytes written by pwrite to as many files, and nothing else. The last count
// has places for seven of eight files open on either side, as a broker with 20,000 partitions
// under a limit of 20,000 descriptors. All take turns in one run; the figures are medians, of
// processor time, since others' work on the machine hardly shows in it.
//
//	go test ./engine -run '^$' -bench ManyLogs -benchtime 1x
func BenchmarkManyLogs(b *testing.B) {
	const rounds, appends = 9, 20_000
	counts := []struct{ logs, places int }{{1, 10}, {1000, 1000}, {10_000, 8750}}
	msg := newBatch(1000, slices.Repeat([]string{string(make([]byte, 100))}, 10))
	type side struct {
		name  string
		write func(i int)
		took  []time.Duration
		next  int
		order []int
	}
	var sides []*side
	for _, c := range counts {
		if m := os.Getenv("MANY"); m != "" && m != fmt.Sprint(c.logs) {
			continue
		}
		order := rand.Perm(c.logs)
		write, done := manyLogsOf(b, c.logs, c.places, msg)
		defer done()
		sides = append(sides, &side{name: fmt.Sprintf("engine-%d", c.logs), write: write, order: order})
		write, done = manyFilesOf(b, c.logs, c.places, msg)
		defer done()
		sides = append(sides, &side{name: fmt.Sprintf("bare-%d", c.logs), write: write, order: order})
	}
	for range b.N {
		for round := range rounds + 2 { // the first two are not kept
			for i := range sides {
				s := sides[(i+round)%len(sides)]
				begun := processorTime()
				for range max(appends, len(s.order)) {
					s.write(s.order[s.next])
					s.next = (s.next + 1) % len(s.order)
				}
				took := (processorTime() - begun) / time.Duration(max(appends, len(s.order)))
				if round > 1 {
					s.took = append(s.took, took)
				}
			}
		}
	}
	for _, s := range sides {
		slices.Sort(s.took)
		b.ReportMetric(float64(s.took[len(s.took)/2]), "ns/"+s.name)
	}
}

func processorTime() time.Duration {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func manyLogsOf(b *testing.B, n, places int, msg []byte) (write func(i int), done func()) {
	dir, err := os.MkdirTemp("", "many")
	if err != nil {
		b.Fatal(err)
	}
	o := quiet(vfs.OS(), dir)
	o.OpenFiles, o.IndexMaps, o.Defaults = places, 1000, DefaultConfig()
	o.Defaults.Durability = PageCache
	s := openStore(b, o)
	for first := 0; first < n; first += 500 {
		create(b, s, spec(fmt.Sprint("t", first/500), 1, min(500, n-first)))
	}
	logs := s.Logs()
	a := leaderAppend(slices.Clone(msg))
	write = func(i int) {
		if err := logs[i].Append(a, 0); err != nil {
			b.Fatal(err)
		}
	}
	for i := range logs {
		write(i)
	}
	return write, func() {
		b.Logf("%d logs: %+v", n, s.FileStats())
		_ = s.Close(context.Background())
		os.RemoveAll(dir)
	}
}

func manyFilesOf(b *testing.B, n, places int, msg []byte) (write func(i int), done func()) {
	dir, err := os.MkdirTemp("", "many")
	if err != nil {
		b.Fatal(err)
	}
	type bare struct {
		name string
		fd   int
		slot int
		size int64
	}
	files, open := make([]*bare, n), []*bare(nil)
	write = func(i int) {
		f := files[i]
		if f.fd < 0 {
			if f.fd, err = unix.Open(f.name, unix.O_RDWR|unix.O_CREAT|unix.O_CLOEXEC, 0o644); err != nil {
				b.Fatal(err)
			}
			if len(open) == places {
				v := open[rand.IntN(places)]
				unix.Close(v.fd)
				v.fd, f.slot, open[v.slot] = -1, v.slot, f
			} else {
				f.slot = len(open)
				open = append(open, f)
			}
		}
		if _, err := unix.Pwrite(f.fd, msg, f.size); err != nil {
			b.Fatal(err)
		}
		f.size += int64(len(msg))
	}
	for i := range files {
		folder := fmt.Sprintf("%s/%d", dir, i) // a folder each, as a log has
		if err := os.Mkdir(folder, 0o755); err != nil {
			b.Fatal(err)
		}
		files[i] = &bare{name: folder + "/00000000000000000000.log", fd: -1}
		write(i)
	}
	return write, func() {
		for _, f := range open {
			unix.Close(f.fd)
		}
		os.RemoveAll(dir)
	}
}
