package vfs_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"sync"
	"testing"

	"millrace/engine/vfs"
)

// onAllWays runs a claim about the system's files in each way of I/O.
func onAllWays(t *testing.T, claim func(t *testing.T, p place)) {
	for _, io := range []vfs.IO{vfs.IOAuto, vfs.IORing, vfs.IOPool} {
		t.Run("io="+string(io), func(t *testing.T) { claim(t, place{system(t, io), t.TempDir()}) })
	}
}

// Claim: an unknown way of I/O is refused by name.
func TestUnknownWaysAreRefused(t *testing.T) {
	if _, err := vfs.OSWith("fast"); err == nil || err.Error() != `no such way of I/O: "fast", only auto, ring and pool` {
		t.Errorf("%v", err)
	}
}

// guarded is a file that counts who syncs it, as a segment's does.
type guarded struct {
	vfs.File
	mu           sync.Mutex
	failed       error
	begun, ended int
}

func (g *guarded) Sync() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.failed == nil {
		g.failed = g.File.Sync()
	}
	return g.failed
}

func (g *guarded) BeginSync() (vfs.File, bool) {
	if !g.mu.TryLock() {
		return nil, false
	}
	if g.failed != nil {
		g.mu.Unlock()
		return nil, false
	}
	g.begun++
	return g.File, true
}

func (g *guarded) EndSync(err error) error {
	defer g.mu.Unlock()
	g.ended++
	g.failed = err
	return err
}

// Claim: SyncMany syncs every file once, through its guard, whatever their number; a closed one fails, by name, and the others are synced.
func TestSyncManyInEveryWay(t *testing.T) {
	onAllWays(t, func(t *testing.T, p place) {
		for n := range 12 {
			for _, bad := range []int{-1, 0, n - 1} {
				if n >= 8 && bad >= 0 || bad >= n {
					continue // SyncFS asks no file
				}
				var files []vfs.File
				var guards []*guarded
				for i := range n {
					g := &guarded{File: p.create(t, fmt.Sprintf("f%d-%d-%d", n, bad, i), noise(100))}
					guards = append(guards, g)
					files = append(files, g)
				}
				if bad >= 0 {
					files[bad].Close()
				}
				err := vfs.SyncMany(p, p.dir, files)
				var e *fs.PathError
				switch {
				case bad < 0 && err != nil:
					t.Fatalf("%d files: %v", n, err)
				case bad >= 0 && (!errors.As(err, &e) || e.Op != "fdatasync" || e.Path != files[bad].Name() || !errors.Is(err, fs.ErrClosed)):
					t.Fatalf("%d files, number %d closed: %v", n, bad, err)
				}
				for i, g := range guards {
					if g.begun != g.ended || (g.failed != nil) != (i == bad) {
						t.Errorf("%d files: number %d begun %d times, ended %d, failed %v", n, i, g.begun, g.ended, g.failed)
					}
				}
			}
		}
	})
}

// Claim: two batches that share files in opposite order end both.
func TestSyncManyOfTheSameFilesAtOnce(t *testing.T) {
	onAllWays(t, func(t *testing.T, p place) {
		a, b := &guarded{File: p.create(t, "a", noise(10))}, &guarded{File: p.create(t, "b", noise(10))}
		var wg sync.WaitGroup
		for _, files := range [][]vfs.File{{a, b}, {b, a}, {a, a}} {
			wg.Go(func() { // ends after its turns
				for range 50 {
					if err := vfs.SyncMany(p, p.dir, files); err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
	})
}

// Claim: what is not in memory is read and sent as what is: whole, from any position, over window bounds, to the end of the file and no further.
func TestColdBytesAreTheSameBytes(t *testing.T) {
	onAllWays(t, func(t *testing.T, p place) {
		dir, err := os.MkdirTemp(".", ".test-") // on a disk, where a temporary directory may be memory
		must(t, err)
		t.Cleanup(func() { os.RemoveAll(dir) })
		p.dir = dir
		data := noise(3<<20 + 77)
		f := p.create(t, "cold", data)
		must(t, f.Sync())
		drop := func() { must(t, f.Advise(0, 0, vfs.AdviseDontNeed)) }
		for _, r := range []struct{ off, n int }{{0, len(data)}, {1, 10}, {512<<10 - 1, 2}, {100_000, 2 << 20}, {len(data) - 5, 5}, {512 << 10, 512 << 10}} {
			want := data[r.off : r.off+r.n]
			drop()
			got := make([]byte, r.n)
			if n, err := f.ReadCold(got, int64(r.off)); n != r.n || err != nil || !bytes.Equal(got, want) {
				t.Fatalf("read %d at %d: %d, %v, or other bytes", r.n, r.off, n, err)
			}
			for range 2 { // cold, then hot
				if r.n > 1000 {
					drop()
				}
				sent, err := sendTo(t, f, int64(r.off), int64(r.n))
				if err != nil || !bytes.Equal(sent, want) {
					t.Fatalf("send %d at %d: %d bytes, %v", r.n, r.off, len(sent), err)
				}
			}
		}
		drop()
		got := make([]byte, 10)
		if n, err := f.ReadCold(got, int64(len(data)-4)); n != 4 || err != io.EOF {
			t.Errorf("read over the end: %d, %v", n, err)
		}
		if n, err := f.ReadCold(got, -1); n != 0 || err == nil {
			t.Errorf("read before the beginning: %d, %v", n, err)
		}
		drop()
		if sent, err := sendTo(t, f, int64(len(data)-4), 1<<20); len(sent) != 4 || err != io.ErrUnexpectedEOF {
			t.Errorf("send over the end: %d bytes, %v", len(sent), err)
		}
		f.Close()
		if _, err := f.ReadCold(got, 0); !errors.Is(err, fs.ErrClosed) {
			t.Errorf("read of a closed file: %v", err)
		}
	})
}

// sendTo sends to a TCP connection and returns what came out of it.
func sendTo(t *testing.T, f vfs.File, off, n int64) ([]byte, error) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer l.Close()
	got := make(chan []byte)
	go func() { // ends with the connection
		var b []byte
		if c, err := l.Accept(); err == nil {
			b, _ = io.ReadAll(c)
			c.Close()
		}
		got <- b
	}()
	c, err := net.Dial("tcp", l.Addr().String())
	must(t, err)
	_, err = f.SendTo(c, off, n)
	c.Close()
	return <-got, err
}

// Claim: files go on after their System was closed, also in the middle of what they do.
func TestFilesOutliveTheirSystem(t *testing.T) {
	onAllWays(t, func(t *testing.T, p place) {
		data := noise(1 << 20)
		f := p.create(t, "f", data)
		g := p.create(t, "g", data)
		var wg sync.WaitGroup
		begun := make(chan struct{}, 4)
		for range 4 {
			wg.Go(func() { // ends after its turns
				for i := range 50 {
					got := make([]byte, len(data))
					f.Advise(0, 0, vfs.AdviseDontNeed)
					_, err := f.ReadCold(got, 0)
					if err = errors.Join(err, vfs.SyncMany(p, p.dir, []vfs.File{f, g})); err != nil || !bytes.Equal(got, data) {
						t.Errorf("%v, or other bytes", err)
					}
					if i == 0 {
						begun <- struct{}{}
					}
				}
			})
		}
		for range 4 {
			<-begun
		}
		must(t, p.FS.(*vfs.System).Close())
		wg.Wait()
	})
}

// Claim: dirty bytes are told and WriteOut leaves none.
func TestWriteOutLeavesNothingDirty(t *testing.T) {
	onAllWays(t, func(t *testing.T, p place) {
		dir, err := os.MkdirTemp(".", ".test-")
		must(t, err)
		t.Cleanup(func() { os.RemoveAll(dir) })
		p.dir = dir
		f := p.create(t, "f", noise(1<<20))
		dirty, err := f.Dirty()
		if errors.Is(err, vfs.ErrUnsupported) {
			t.Skip(err)
		}
		must(t, err)
		if dirty == 0 {
			t.Skip("the system has written it already")
		}
		must(t, f.WriteOut(0, 1<<19, true))
		must(t, f.WriteOut(1<<19, 0, false))
		must(t, f.WriteOut(1<<19, 0, true))
		dirty, err = f.Dirty()
		must(t, err)
		equal(t, "dirty bytes", dirty, 0)
		must(t, f.Sync())
	})
}
