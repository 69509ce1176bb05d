package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"millrace/benchmarks/peers/report"
	"millrace/engine/ring"
	"millrace/engine/vfs"
)

// doers are the ways to carry out a batch: goroutines, and io_uring where the kernel allows it.
type doers struct {
	pool *ring.Pool
	ring *ring.Ring // nil: not here
}

func newDoers() doers {
	d := doers{pool: ring.NewPool()}
	if r, err := ring.NewRing(); err == nil {
		d.ring = r
	} else {
		fmt.Fprintln(os.Stderr, "crossover:", err)
	}
	return d
}

func (d doers) close() {
	if d.ring != nil {
		d.ring.Close()
	}
}

// times runs one n times and measures each.
func times(n int, before, one func() error) (report.Values, error) {
	took := make([]time.Duration, n)
	for i := range took {
		if before != nil {
			if err := before(); err != nil {
				return nil, err
			}
		}
		begun := time.Now()
		if err := one(); err != nil {
			return nil, err
		}
		took[i] = time.Since(begun)
	}
	return quantiles(took), nil
}

// batch is a way that gives ops to do.
func batch(n int, do func([]ring.Op), ops []ring.Op, before func() error) func() (report.Values, error) {
	return func() (report.Values, error) {
		return times(n, before, func() error {
			do(ops)
			var errs []error
			for i := range ops {
				errs = append(errs, ops[i].Err)
			}
			return errors.Join(errs...)
		})
	}
}

// measureJournal writes blocks one after another into a file as the commit journal's are.
func measureJournal(o options, r *results) error {
	const size = 64 << 20
	name := filepath.Join(o.dir, "journal")
	if err := os.WriteFile(name, make([]byte, size), 0o644); err != nil {
		return err
	}
	unix.Sync()
	fd, err := unix.Open(name, unix.O_RDWR|unix.O_DIRECT|unix.O_DSYNC|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	d := newDoers()
	defer d.close()
	for kib := 4; kib <= 1024; kib *= 2 {
		buf := vfs.AlignedBuffer(kib << 10)
		op := []ring.Op{{Kind: ring.Write, FD: fd, Name: name, Buf: buf}}
		next := func() error {
			if op[0].Off += int64(len(buf)); op[0].Off+int64(len(buf)) > size {
				op[0].Off = 0
			}
			return nil
		}
		ways := []way{{"pwrite", batch(o.n, d.pool.Do, op, next)}}
		if d.ring != nil {
			ways = append(ways, way{"ring", batch(o.n, d.ring.Do, op, next)}, way{"ring, parked", batch(o.n, d.ring.Park, op, next)})
		}
		if err := r.row(o, fmt.Sprint(kib), float64(kib), ways); err != nil {
			return err
		}
		vfs.FreeBuffer(buf)
	}
	return nil
}

// measureSync dirties some files and makes them durable.
func measureSync(o options, r *results) error {
	d := newDoers()
	defer d.close()
	dirfd, err := unix.Open(o.dir, unix.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		return err
	}
	defer unix.Close(dirfd)
	var files []*os.File
	for i := range 64 {
		f, err := os.Create(filepath.Join(o.dir, fmt.Sprintf("log-%d", i)))
		if err != nil {
			return err
		}
		defer f.Close()
		files = append(files, f)
	}
	record := make([]byte, 1<<10)
	for _, n := range []int{1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 16, 32, 64} {
		dirty := files[:n]
		var ops []ring.Op
		for _, f := range dirty {
			ops = append(ops, ring.Op{Kind: ring.Sync, FD: int(f.Fd()), Name: f.Name()})
		}
		write := func() error {
			for _, f := range dirty {
				if _, err := f.Write(record); err != nil {
					return err
				}
			}
			return nil
		}
		few := max(20, o.n/n)
		ways := []way{
			{"one by one", func() (report.Values, error) {
				return times(few, write, func() error {
					for i := range ops {
						if err := unix.Fdatasync(ops[i].FD); err != nil {
							return err
						}
					}
					return nil
				})
			}},
			{"goroutines", batch(few, d.pool.Do, ops, write)},
			{"syncfs", func() (report.Values, error) {
				return times(few, write, func() error { return errors.Join(unix.Syncfs(dirfd), unix.Fdatasync(dirfd)) })
			}},
		}
		if d.ring != nil {
			ways = append(ways, way{"ring", batch(few, d.ring.Do, ops, write)}, way{"ring, parked", batch(few, d.ring.Park, ops, write)})
		}
		if err := r.row(o, fmt.Sprint(n), float64(n), ways); err != nil {
			return err
		}
	}
	return nil
}

// measureCold reads parts of a file that is on the disk only.
func measureCold(o options, r *results) error {
	const size, part = 1 << 30, 64 << 10
	f, err := os.Create(filepath.Join(o.dir, "cold"))
	if err != nil {
		return err
	}
	defer f.Close()
	chunk := make([]byte, 4<<20)
	for range size / len(chunk) {
		if _, err := f.Write(chunk); err != nil {
			return err
		}
	}
	if err := f.Sync(); err != nil {
		return err
	}
	fd := int(f.Fd())
	d := newDoers()
	defer d.close()
	pool := d.pool.Do
	for n := 1; n <= 64; n *= 2 {
		ops := make([]ring.Op, n)
		for i := range ops {
			ops[i] = ring.Op{Kind: ring.Read, FD: fd, Name: f.Name(), Buf: make([]byte, part)}
		}
		scatter := func() error {
			for i := range ops {
				ops[i].Off = rand.Int64N(size/part) * part
			}
			return unix.Fadvise(fd, 0, 0, unix.FADV_DONTNEED)
		}
		one := func(ops []ring.Op) {
			for i := range ops {
				pool(ops[i : i+1])
			}
		}
		few := max(10, o.n/n)
		ways := []way{
			{"pread", batch(few, one, ops, scatter)},
			{"goroutines", batch(few, pool, ops, scatter)},
			{"fadvise, then pread", batch(few, func(ops []ring.Op) {
				for i := range ops {
					_ = unix.Fadvise(fd, ops[i].Off, part, unix.FADV_WILLNEED)
				}
				one(ops)
			}, ops, scatter)},
		}
		if d.ring != nil {
			ways = append(ways, way{"ring", batch(few, d.ring.Do, ops, scatter)}, way{"ring, parked", batch(few, d.ring.Park, ops, scatter)})
		}
		if err := r.row(o, fmt.Sprint(n), float64(n), ways); err != nil {
			return err
		}
	}
	return nil
}
