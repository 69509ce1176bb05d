package engine

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"millrace/engine/ring"
	"millrace/engine/ring/ringtest"
	"millrace/engine/vfs"
	"millrace/engine/vfs/faultfs"
)

// deniedEnv makes TestStoreIsDeniedIOUring the child: its value is the way of I/O to open a Store with.
const deniedEnv = "MILLRACE_STORE_DENIED"

// Claim: where the kernel refuses io_uring, auto and pool serve all the same, by plain calls, and ring does not start and says why.
// Method: a child process under a seccomp filter, as container runtimes set it; it appends, reads and starts again.
func TestStoreIsDeniedIOUring(t *testing.T) {
	if way := os.Getenv(deniedEnv); way != "" {
		denied(t, vfs.IO(way))
		return
	}
	for _, way := range []vfs.IO{vfs.IOAuto, vfs.IOPool, vfs.IORing} {
		c := exec.Command(os.Args[0], "-test.run=^TestStoreIsDeniedIOUring$", "-test.v")
		c.Env = append(os.Environ(), deniedEnv+"="+string(way))
		if out, err := c.CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", way, err, out)
		}
	}
}

func denied(t *testing.T, way vfs.IO) {
	if err := ringtest.Deny(unix.EPERM); err != nil {
		t.Fatal(err)
	}
	if way == vfs.IORing {
		_, err := OpenStore(context.Background(), StoreOptions{Dirs: []string{t.TempDir()}, IO: way})
		var refused *ring.SetupError
		if !errors.As(err, &refused) || !errors.Is(err, unix.EPERM) || !strings.HasPrefix(err.Error(), "millrace.io=ring: ") || !strings.Contains(err.Error(), "kernel.io_uring_disabled") {
			t.Fatalf("%v", err)
		}
		return
	}
	if got := useStore(t, way); got != "pool" {
		t.Fatalf("in use: %q", got)
	}
}

// Claim: a Store keeps and gives back what it was given, in every way of I/O, and leaves no descriptor behind.
func TestStoreInEveryWay(t *testing.T) {
	for way, want := range map[vfs.IO]string{"": "ring", vfs.IOAuto: "ring", vfs.IORing: "ring", vfs.IOPool: "pool"} {
		t.Run(string(way), func(t *testing.T) {
			if s, err := vfs.OSWith(vfs.IORing); err != nil {
				t.Skip(err)
			} else {
				s.Close()
			}
			before := rings(t)
			if got := useStore(t, way); got != want {
				t.Errorf("in use: %q, want %q", got, want)
			}
			if after := rings(t); after != before {
				t.Errorf("%d rings are open, %d before", after, before)
			}
		})
	}
}

// rings counts this process's descriptors of io_uring.
func rings(t *testing.T) int {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, e := range entries {
		if to, err := os.Readlink("/proc/self/fd/" + e.Name()); err == nil && strings.Contains(to, "io_uring") {
			n++
		}
	}
	return n
}

// useStore appends to several logs, small and large, syncs, reads it all back from the disk, twice with a restart between, and says which way was in use.
func useStore(t *testing.T, way vfs.IO) (used string) {
	dir, err := os.MkdirTemp(".", ".test-") // on a disk, where a temporary directory may be memory
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	const logs, rounds = 5, 10
	for life := range 2 {
		s, err := OpenStore(context.Background(), StoreOptions{Dirs: []string{dir}, IO: way})
		if err != nil {
			t.Fatal(err)
		}
		used = s.IO()
		for i := range logs {
			name := fmt.Sprint("t", i)
			l := s.Log(name, 0)
			if l == nil {
				if err := s.Create(LogSpec{Topic: name, TopicID: [16]byte{1, byte(i)}, Partitions: []int32{0}, Config: DefaultConfig()}); err != nil {
					t.Fatal(err)
				}
				l = s.Log(name, 0)
			}
			for r := range rounds {
				put(t, l, strings.Repeat(fmt.Sprint(life, i, r), 1+r*20_000))
			}
		}
		for _, l := range s.Logs() {
			for _, seg := range *l.segments.Load() {
				f, err := seg.file()
				if err != nil {
					t.Fatal(err)
				}
				f.Sync()
				f.Advise(0, 0, vfs.AdviseDontNeed)
			}
		}
		for i := range logs {
			l := s.Log(fmt.Sprint("t", i), 0)
			if got, want := int(l.End()), rounds*(life+1); got != want {
				t.Fatalf("log %d ends at %d, want %d", i, got, want)
			}
			readBothWays(t, l)
		}
		if err := s.Close(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
	return used
}

// readBothWays reads a log into memory and sends it to a connection; the bytes must be the same.
func readBothWays(t *testing.T, l *Log) {
	s, err := l.Read(l.Start(), 64<<20, l.End(), true)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Release()
	read := make([]byte, s.Size())
	if err := s.ReadInto(read); err != nil {
		t.Fatal(err)
	}
	ours, theirs := net.Pipe()
	sent := make(chan error, 1)
	go func() { // ends when all is read below
		_, err := s.SendTo(ours)
		sent <- err
		ours.Close()
	}()
	got := make([]byte, 0, len(read))
	buf := make([]byte, 64<<10)
	for {
		n, err := theirs.Read(buf)
		got = append(got, buf[:n]...)
		if err != nil {
			break
		}
	}
	if err := <-sent; err != nil || string(got) != string(read) {
		t.Fatalf("sent %d bytes of %d, %v, or other ones", len(got), len(read), err)
	}
}

// Claim: io_uring cannot be asked for with files that are not the system's.
func TestForeignFilesHaveNoRing(t *testing.T) {
	_, err := OpenStore(context.Background(), StoreOptions{FS: faultfs.New(t), Dirs: []string{"/d"}, IO: vfs.IORing})
	var bad *ConfigError
	if !errors.As(err, &bad) || bad.Key != "millrace.io" {
		t.Errorf("%v", err)
	}
}
