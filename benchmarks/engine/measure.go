package main

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"

	"millrace/benchmarks/peers/report"
)

// Names of values beside those of benchmarks/peers/report.
const (
	cpuOp = "cpu_us_per_op"
	disk  = "disk_bytes_per_byte" // allocated on the disk, of each byte of records
)

// bench measures one row on one peer. It is made once a row; rounds are its calls.
type bench struct {
	row
	peer  peer
	dir   string // its own; removed by end
	limit limits

	store   store
	makers  []*recordMaker
	write   []func(int, [][]byte) error
	written []int64 // records, by log
	filled  bool
	round   int
}

// limits bound one measurement.
type limits struct {
	time  time.Duration
	bytes int64 // of records, an append row's round
	read  int64 // what read rows are filled with
	fill  int64 // ... and what reopen rows are
}

func newBench(r row, p peer, dir string, l limits) *bench {
	return &bench{row: r, peer: p, dir: dir, limit: l}
}

func (b *bench) path() string { return filepath.Join(b.dir, "store") }

func (b *bench) open() error {
	if err := os.MkdirAll(b.path(), 0o755); err != nil {
		return err
	}
	var err error
	b.store, err = b.peer.open(b.path(), options{logs: b.logs, synced: b.fillsSynced(b.peer), writers: b.writers})
	if err != nil {
		b.store = nil
		return fmt.Errorf("open: %w", err)
	}
	b.makers, b.write, b.written = nil, nil, make([]int64, b.logs)
	for w := range b.writers {
		b.makers = append(b.makers, newRecordMaker(w, b.batch, b.size))
		b.write = append(b.write, b.store.writer())
	}
	return nil
}

// end closes and removes what open made.
func (b *bench) end() error {
	var err error
	if b.store != nil {
		err = b.store.close()
		b.store = nil
	}
	return errors.Join(err, os.RemoveAll(b.dir))
}

// measure does one round. last says that no other follows: what was written is read back and held against what went in.
func (b *bench) measure(last bool) (report.Values, error) {
	b.round++
	switch b.kind {
	case appends:
		return b.measureAppends(last)
	case reopens:
		return b.measureReopen()
	}
	if !b.filled {
		if err := b.open(); err != nil {
			return nil, err
		}
		if err := b.fill(b.limit.read); err != nil {
			return nil, err
		}
		b.filled = true
	}
	switch b.kind {
	case scans:
		return b.measureScan()
	case randoms:
		return b.measureRandom()
	}
	return b.measureTail()
}

// keepsStore: a thousand logs are opened once for all rounds, one for each.
func (b *bench) keepsStore() bool { return b.logs >= 100 }

func (b *bench) measureAppends(last bool) (_ report.Values, err error) {
	if b.store == nil {
		if err := b.open(); err != nil {
			return nil, err
		}
		if err := b.warmUp(); err != nil {
			return nil, err
		}
	}
	if !b.keepsStore() {
		defer func() { err = errors.Join(err, b.end()) }()
	}
	v, err := b.run(b.limit.time, b.limit.bytes)
	if err != nil || !last {
		return v, err
	}
	for log := range b.logs {
		if err := b.verify(log); err != nil {
			return nil, err
		}
	}
	if !b.keepsStore() {
		used, err := allocated(b.path())
		if err != nil {
			return nil, err
		}
		v[disk] = float64(used) / float64(b.written[0]*int64(b.size))
	}
	return v, nil
}

// warmUp touches every log, files and memory for the first time, and lets the store finish what it does once in its life.
func (b *bench) warmUp() error {
	for log := range b.logs {
		if err := b.write[0](log, b.makers[0].make(log)); err != nil {
			return err
		}
		b.written[log] += int64(b.batch)
	}
	_, err := b.run(b.limit.time/4, b.limit.bytes/8)
	if s, ok := b.store.(interface{ settle() }); ok {
		s.settle()
	}
	return err
}

// run appends with all writers until the time or the bytes are up. Writers have logs of their own as far as there are enough.
func (b *bench) run(d time.Duration, bytes int64) (report.Values, error) {
	share := int(bytes / int64(b.size*b.batch*b.writers))
	counts := make([][]int64, b.writers)
	took := make([][]time.Duration, b.writers)
	failed := make([]error, b.writers)
	var all sync.WaitGroup
	begun, cpu := time.Now(), processorTime()
	for w := range b.writers {
		counts[w] = make([]int64, b.logs)
		all.Go(func() { // ends with the time
			at := begun
			for i := 0; i < max(1, share) && at.Sub(begun) < d; i++ {
				log := (w + i*b.writers) % b.logs
				if err := b.write[w](log, b.makers[w].make(log)); err != nil {
					failed[w] = err
					return
				}
				counts[w][log] += int64(b.batch)
				now := time.Now()
				took[w] = append(took[w], now.Sub(at))
				at = now
			}
		})
	}
	all.Wait()
	wall, used := time.Since(begun), processorTime()-cpu
	if err := errors.Join(failed...); err != nil {
		return nil, err
	}
	for _, c := range counts {
		for log, n := range c {
			b.written[log] += n
		}
	}
	each := slices.Concat(took...)
	slices.Sort(each)
	n := float64(len(each))
	micros := func(share float64) float64 { return float64(each[int(share*(n-1))].Nanoseconds()) / 1e3 }
	return report.Values{
		report.PerSecond: n / wall.Seconds(), report.MBps: n * float64(b.batch*b.size) / 1e6 / wall.Seconds(),
		report.P50: micros(0.5), report.P99: micros(0.99), cpuOp: float64(used.Microseconds()) / n,
	}, nil
}

// fill appends that many bytes. What cannot do without syncs gets a thousand records a call, which it stores one by one in any case.
func (b *bench) fill(bytes int64) error {
	if b.peer.unsynced != "" && b.kind != reopens {
		small := b.makers[0]
		defer func(batch int) { b.batch, b.makers[0] = batch, small }(b.batch)
		b.batch = 1000
		b.makers[0] = newRecordMaker(0, b.batch, b.size)
		b.makers[0].next = small.next
	}
	_, err := b.run(time.Hour, bytes)
	return err
}

func (b *bench) verify(log int) error {
	c := newChecker(b.size)
	if err := b.store.scan(log, c.add); err != nil {
		return fmt.Errorf("log %d: %w", log, err)
	}
	if c.count != b.written[log] {
		return fmt.Errorf("log %d: %d records came back, %d were acknowledged", log, c.count, b.written[log])
	}
	return nil
}

func (b *bench) measureScan() (report.Values, error) {
	begun, cpu := time.Now(), processorTime()
	if err := b.verify(0); err != nil {
		return nil, err
	}
	return reads(b.written[0], b.size, time.Since(begun), processorTime()-cpu), nil
}

func (b *bench) measureRandom() (report.Values, error) {
	r, err := b.store.reader(true)
	if err != nil {
		return nil, err
	}
	defer r.close()
	random := rand.New(rand.NewPCG(1, uint64(b.round)))
	each := func(record []byte) error { return whole(record, b.size) }
	var n int64
	begun, cpu := time.Now(), processorTime()
	for time.Since(begun) < b.limit.time {
		for range 16 {
			if err := r.read(random.Int64N(b.written[0]), 1, each); err != nil {
				return nil, err
			}
			n++
		}
	}
	return reads(n, b.size, time.Since(begun), processorTime()-cpu), nil
}

// measureTail appends and reads in turn. A library without unsynced appends spends its time on those; the reads are counted.
func (b *bench) measureTail() (report.Values, error) {
	r, err := b.store.reader(false)
	if err != nil {
		return nil, err
	}
	defer r.close()
	each := func(record []byte) error { return whole(record, b.size) }
	var n int64
	var reading time.Duration
	for begun := time.Now(); time.Since(begun) < b.limit.time; n++ {
		first := b.written[0]
		if err := b.write[0](0, b.makers[0].make(0)); err != nil {
			return nil, err
		}
		b.written[0] += int64(b.batch)
		from := time.Now()
		if err := r.read(first, b.batch, each); err != nil {
			return nil, err
		}
		reading += time.Since(from)
	}
	v := reads(n, b.size*b.batch, reading, 0)
	delete(v, cpuOp)
	return v, nil
}

func reads(n int64, bytes int, wall, cpu time.Duration) report.Values {
	return report.Values{report.PerSecond: float64(n) / wall.Seconds(), report.MBps: float64(n*int64(bytes)) / 1e6 / wall.Seconds(),
		cpuOp: float64(cpu.Microseconds()) / float64(n)}
}

// measureReopen copies the files of a store that is open, as a crash of the process would leave them, and opens the copy.
func (b *bench) measureReopen() (_ report.Values, err error) {
	if !b.filled {
		if err := b.open(); err != nil {
			return nil, err
		}
		if err := b.fill(b.limit.fill); err != nil {
			return nil, err
		}
		b.filled = true
	}
	crashed := filepath.Join(b.dir, "crashed")
	if err := os.CopyFS(crashed, os.DirFS(b.path())); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(crashed)) }()
	if b.synced { // as the originals are; the copies of unsynced files are left to the system, as theirs
		if err := syncFiles(crashed); err != nil {
			return nil, err
		}
	}
	begun, cpu := time.Now(), processorTime()
	s, err := b.peer.open(crashed, options{logs: b.logs, synced: b.fillsSynced(b.peer), writers: b.writers})
	if err != nil {
		return nil, err
	}
	wall, used := time.Since(begun), processorTime()-cpu
	c := newChecker(b.size)
	err = s.scan(0, c.add)
	if err == nil && c.count != b.written[0] {
		err = fmt.Errorf("%d records came back, %d were acknowledged", c.count, b.written[0])
	}
	return report.Values{report.Seconds: wall.Seconds(), cpuOp: float64(used.Microseconds())}, errors.Join(err, s.close())
}

func processorTime() time.Duration {
	var u syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func syncFiles(dir string) error {
	return filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		defer f.Close()
		return f.Sync()
	})
}

// allocated is what a folder's files take on the disk.
func allocated(dir string) (bytes int64, err error) {
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err == nil {
			bytes += info.Sys().(*syscall.Stat_t).Blocks * 512
		}
		return err
	})
	return bytes, err
}
