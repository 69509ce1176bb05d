//go:build linux && (amd64 || arm64)

package vfs

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Claim: after a short write the vector goes on exactly where the kernel stopped.
// Method: all lengths of a first write over a vector with uneven parts.
func TestConsumeGoesOnWhereTheKernelStopped(t *testing.T) {
	parts := []string{"a", "bcd", "ef", "ghijk"}
	whole := "abcdefghijk"
	for n := 0; n <= len(whole); n++ {
		var v []unix.Iovec
		for _, p := range parts {
			v = append(v, unix.Iovec{Base: unsafe.StringData(p), Len: uint64(len(p))})
		}
		rest := ""
		for _, left := range consume(v, n) {
			if left.Len == 0 {
				t.Fatalf("after %d: an empty part", n)
			}
			rest += unsafe.String(left.Base, int(left.Len))
		}
		if rest != whole[n:] {
			t.Fatalf("after %d: %q left", n, rest)
		}
	}
}

// Claim: a write that the system stops half-way says how far it came and why.
// Method: a child process with a bound on file sizes (the one way without a full
// disk) writes past it, and reports.
func TestPartialWriteIsCountedAndExplained(t *testing.T) {
	if name := os.Getenv("VFS_TEST_PARTIAL"); name != "" {
		partialWriter(name)
		return
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestPartialWriteIsCountedAndExplained$")
	name := filepath.Join(t.TempDir(), "f")
	cmd.Env = append(os.Environ(), "VFS_TEST_PARTIAL="+name)
	out, err := cmd.CombinedOutput()
	if err != nil || !bytes.Contains(out, []byte("n=100000 efbig=true")) {
		t.Fatalf("%v: %s", err, out)
	}
}

func partialWriter(name string) {
	// The Go runtime ignores SIGXFSZ, so the write gets EFBIG.
	unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: 100_000, Max: 100_000})
	f, err := OS().OpenFile(name, os.O_RDWR|os.O_CREATE)
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	n, err := f.WriteVAt([][]byte{make([]byte, 60_000), make([]byte, 60_000), make([]byte, 60_000)}, 0)
	fmt.Printf("n=%d efbig=%v\n", n, errors.Is(err, unix.EFBIG))
	os.Exit(0)
}

// Claim: another process that locks as the JVM does is kept out.
// Method: a child process tries a POSIX record lock on the locked file.
func TestLockKeepsOutRecordLocks(t *testing.T) {
	if name := os.Getenv("VFS_TEST_LOCK"); name != "" {
		f, _ := os.OpenFile(name, os.O_RDWR, 0)
		err := unix.FcntlFlock(f.Fd(), unix.F_SETLK, &unix.Flock_t{Type: unix.F_WRLCK})
		fmt.Println("child:", err)
		os.Exit(0)
	}
	name := filepath.Join(t.TempDir(), ".lock")
	try := func() string {
		cmd := exec.Command(os.Args[0], "-test.run=^TestLockKeepsOutRecordLocks$")
		cmd.Env = append(os.Environ(), "VFS_TEST_LOCK="+name)
		out, _ := cmd.CombinedOutput()
		return string(out)
	}
	l, err := OS().Lock(name)
	if err != nil {
		t.Fatal(err)
	}
	if out := try(); out != "child: "+unix.EAGAIN.Error()+"\n" {
		t.Fatalf("held: %s", out)
	}
	l.Close()
	if out := try(); out != "child: <nil>\n" {
		t.Fatalf("released: %s", out)
	}
}

// Claim: SyncFS through a lock and the lock's Close do not disturb each other.
// Method: sync from several goroutines while the lock comes and goes.
func TestSyncFSWhileLocksComeAndGo(t *testing.T) {
	dir := t.TempDir()
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			for range 5 {
				if err := OS().SyncFS(dir); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for range 50 {
		l, err := OS().Lock(filepath.Join(dir, ".lock"))
		if err != nil {
			t.Fatal(err)
		}
		if f, release := theOS.lockFile(dir + "/."); f == nil {
			t.Fatal("the lock file is not used")
		} else {
			release()
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
	wg.Wait()
	if len(theOS.locks) != 0 {
		t.Fatalf("left: %v", theOS.locks)
	}
}

// Claim: who got a lock's file to sync through can use it until he is done.
// Method: close the lock between the two.
func TestLockWaitsForSyncs(t *testing.T) {
	dir := t.TempDir()
	l, err := OS().Lock(filepath.Join(dir, ".lock"))
	if err != nil {
		t.Fatal(err)
	}
	f, release := theOS.lockFile(dir)
	closed := make(chan error)
	go func() { closed <- l.Close() }() // ends after release; received below
	for {
		if again, done := theOS.lockFile(dir); again == nil {
			break // Close has begun: it waits for release
		} else {
			done()
		}
	}
	time.Sleep(time.Millisecond) // lets a Close that does not wait go wrong
	if err := f.control("fdatasync", unix.Fdatasync); err != nil {
		t.Error(err)
	}
	release()
	if err := <-closed; err != nil {
		t.Error(err)
	}
}

// Claim: a file system without direct I/O gives a plain file, and says so.
// Method: /dev/shm, which is tmpfs where it exists. (Kernels from 6.6 on let tmpfs
// take O_DIRECT; then there is nothing to fall back from, and writes must work.)
func TestOpenDirectFallsBack(t *testing.T) {
	dir, err := os.MkdirTemp("/dev/shm", "vfs")
	if err != nil {
		t.Skip("no tmpfs:", err)
	}
	defer os.RemoveAll(dir)
	name := filepath.Join(dir, "j")
	os.WriteFile(name, make([]byte, 8192), 0o644)
	f, direct, err := OS().OpenDirect(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	t.Log("direct:", direct)
	if !direct {
		if _, err := f.WriteAt([]byte("any"), 3); err != nil {
			t.Fatal(err)
		}
	}
	b := AlignedBuffer(4096)
	defer FreeBuffer(b)
	if _, err := f.WriteAt(b, 4096); err != nil {
		t.Fatal(err)
	}
}

// Claim: aligned buffers are aligned, zero and independent.
// Method: several sizes; a refused size panics.
func TestAlignedBuffer(t *testing.T) {
	for _, n := range []int{4096, 3 * 4096, 1 << 20} {
		b := AlignedBuffer(n)
		if uintptr(unsafe.Pointer(&b[0]))%DirectAlign != 0 || len(b) != n || !bytes.Equal(b, make([]byte, n)) {
			t.Fatalf("%d: not aligned, or not zero", n)
		}
		b[n-1] = 1
		FreeBuffer(b)
	}
	FreeBuffer(make([]byte, 100)) // not ours: left alone
	defer func() {
		if recover() == nil {
			t.Fatal("5000 was taken")
		}
	}()
	AlignedBuffer(5000)
}

// Claim: the runtime's poller and the descriptor's flags are left alone by opening.
// Method: the descriptor is in blocking mode and close-on-exec.
func TestFilesAreNotPolled(t *testing.T) {
	f, err := OS().OpenFile(filepath.Join(t.TempDir(), "f"), os.O_RDWR|os.O_CREATE)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	o := f.(*osFile)
	o.control("fcntl", func(fd int) error {
		status, _ := unix.FcntlInt(uintptr(fd), unix.F_GETFL, 0)
		flags, _ := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0)
		if status&unix.O_NONBLOCK != 0 || flags&unix.FD_CLOEXEC == 0 {
			t.Errorf("flags %#x %#x", status, flags)
		}
		return nil
	})
}

// counted is a file that counts and fails its syncs.
type counted struct {
	File
	syncs *int
	err   error
	mu    *sync.Mutex
}

func (c counted) Sync() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	*c.syncs++
	return c.err
}

type countedFS struct {
	FS
	syncs int
	dir   string
}

func (c *countedFS) SyncFS(dir string) error {
	c.syncs++
	c.dir = dir
	return fs.ErrPermission
}

// Claim: SyncMany syncs each of few files, the file system for many, and nothing
// for none; it waits for all and returns the first file's error.
// Method: count the syncs for 0 to 12 files, some failing.
func TestSyncManyChoosesByNumber(t *testing.T) {
	for n := range 13 {
		var syncs int
		var mu sync.Mutex
		fsys := &countedFS{}
		first, second := errors.New("first"), errors.New("second")
		files := make([]File, n)
		for i := range files {
			c := counted{syncs: &syncs, mu: &mu}
			switch i {
			case n - 2:
				c.err = first
			case n - 1:
				c.err = second
			}
			files[i] = c
		}
		err := SyncMany(fsys, "d", files)
		var want error
		wantSyncs, wantFS := n, 0
		switch {
		case n == 1:
			want = second
		case n > 1 && n < 8:
			want = first
		case n >= 8:
			want, wantSyncs, wantFS = fs.ErrPermission, 0, 1
		}
		if err != want || syncs != wantSyncs || fsys.syncs != wantFS {
			t.Errorf("%d files: %v, %d syncs, %d of the file system", n, err, syncs, fsys.syncs)
		}
	}
}

func BenchmarkWriteVAt(b *testing.B) {
	f, err := OS().OpenFile(filepath.Join(b.TempDir(), "f"), os.O_RDWR|os.O_CREATE)
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	for _, count := range []int{1, 16, 64} {
		b.Run(fmt.Sprintf("batch=1KiB/buffers=%d", count), func(b *testing.B) {
			bufs := make([][]byte, count)
			for i := range bufs {
				bufs[i] = make([]byte, 1024)
			}
			b.SetBytes(int64(count) * 1024)
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				if _, err := f.WriteVAt(bufs, int64(i%1000)*int64(count)*1024); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
