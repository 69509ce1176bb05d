package vfs_test

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"millrace/engine/ring"
	"millrace/engine/vfs"
	"millrace/engine/vfs/faultfs"
)

// place is a file system and a directory in it to work in.
type place struct {
	vfs.FS
	dir string
}

func (p place) path(name string) string { return filepath.Join(p.dir, name) }

func (p place) create(t *testing.T, name string, data []byte) vfs.File {
	t.Helper()
	f, err := p.OpenFile(p.path(name), os.O_RDWR|os.O_CREATE)
	must(t, err)
	if len(data) > 0 {
		n, err := f.WriteAt(data, 0)
		must(t, err)
		equal(t, "bytes written", n, len(data))
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// onBoth runs a claim on the real file system and on the one that tests use: what
// the second lets pass, the first must too, and the other way round.
func onBoth(t *testing.T, claim func(t *testing.T, p place)) {
	t.Run("fs=os", func(t *testing.T) { claim(t, place{vfs.OS(), t.TempDir()}) })
	for _, io := range []vfs.IO{vfs.IORing, vfs.IOPool} {
		t.Run("fs=os/io="+string(io), func(t *testing.T) { claim(t, place{system(t, io), t.TempDir()}) })
	}
	t.Run("fs=faultfs", func(t *testing.T) {
		disk := faultfs.New(t)
		must(t, disk.MkdirAll("/data"))
		claim(t, place{disk, "/data"})
	})
}

// system opens the system's files in a way that is closed, with all its descriptors, at the end.
func system(t testing.TB, io vfs.IO) *vfs.System {
	t.Helper()
	s, err := vfs.OSWith(io)
	if refused := new(ring.SetupError); errors.As(err, &refused) {
		t.Skip(err)
	}
	must(t, err)
	t.Cleanup(func() { s.Close() })
	return s
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func equal[T comparable](t testing.TB, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Fatalf("%s: got %v, want %v", what, got, want)
	}
}

func failsWith(t testing.TB, what string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Fatalf("%s: got error %v, want %v", what, err, want)
	}
}

func noise(n int) []byte {
	b := make([]byte, n)
	r := rand.NewChaCha8([32]byte{1})
	r.Read(b)
	return b
}

func contents(t testing.TB, f vfs.File) []byte {
	t.Helper()
	size, err := f.Size()
	must(t, err)
	b := make([]byte, size)
	_, err = f.ReadAt(b, 0)
	must(t, err)
	return b
}

// Claim: bytes are read back where they were written, and holes read as zeros.
// Method: write with a gap, read across it and past the end.
func TestBytesAreReadBackWhereTheyWereWritten(t *testing.T) {
	onBoth(t, func(t *testing.T, p place) {
		f := p.create(t, "f", []byte("head"))
		_, err := f.WriteAt([]byte("tail"), 10_000)
		must(t, err)
		want := append(append([]byte("head"), make([]byte, 9_996)...), "tail"...)
		if !bytes.Equal(contents(t, f), want) {
			t.Fatal("contents differ")
		}
		b := make([]byte, 100)
		n, err := f.ReadAt(b, 10_002)
		equal(t, "bytes at the end", string(b[:n]), "il")
		failsWith(t, "short read", err, io.EOF)
		n, err = f.ReadAt(b, 20_000)
		equal(t, "bytes past the end", n, 0)
		failsWith(t, "read past the end", err, io.EOF)
		_, err = f.WriteAt(b, -1)
		if err == nil {
			t.Fatal("a negative position was taken")
		}
	})
}

// Claim: WriteVAt writes any number of buffers, of any lengths, as if they were one.
// Method: counts around the system call's bound of 1024, empty buffers among them.
func TestWriteVAtWritesAllBuffersAsOne(t *testing.T) {
	onBoth(t, func(t *testing.T, p place) {
		for _, count := range []int{0, 1, 2, 1023, 1024, 1025, 5000} {
			f := p.create(t, "v", nil)
			must(t, f.Truncate(0))
			all := noise(count * 20)
			var bufs [][]byte
			for i, rest := 0, all; i < count; i++ {
				n := min(len(rest), i%40)
				bufs = append(bufs, rest[:n:n])
				rest = rest[n:]
			}
			want := bytes.Join(bufs, nil)
			n, err := f.WriteVAt(bufs, 77)
			must(t, err)
			equal(t, "bytes written", n, len(want))
			got := contents(t, f)
			if len(want) > 0 && !bytes.Equal(got[77:], want) {
				t.Fatalf("%d buffers: contents differ", count)
			}
		}
	})
}

// Claim: what Truncate cut off never comes back.
// Method: cut, extend, expect zeros.
func TestTruncateCutsAndExtendsWithZeros(t *testing.T) {
	onBoth(t, func(t *testing.T, p place) {
		f := p.create(t, "f", noise(9000))
		must(t, f.Truncate(5000))
		must(t, f.Truncate(9000))
		got := contents(t, f)
		if !bytes.Equal(got[:5000], noise(9000)[:5000]) || !bytes.Equal(got[5000:], make([]byte, 4000)) {
			t.Fatal("contents differ")
		}
	})
}

// Claim: open flags mean what they mean to open(2), and errors are those of io/fs.
// Method: each flag against a present and a missing name.
func TestOpenFlags(t *testing.T) {
	onBoth(t, func(t *testing.T, p place) {
		open := func(name string, flag int) error {
			f, err := p.OpenFile(p.path(name), flag)
			if err == nil {
				f.Close()
			}
			return err
		}
		p.create(t, "here", []byte("x"))
		failsWith(t, "missing", open("gone", os.O_RDWR), fs.ErrNotExist)
		failsWith(t, "missing directory", open("gone/f", os.O_RDWR|os.O_CREATE), fs.ErrNotExist)
		failsWith(t, "exclusive", open("here", os.O_RDWR|os.O_CREATE|os.O_EXCL), fs.ErrExist)
		must(t, open("new", os.O_RDWR|os.O_CREATE|os.O_EXCL))
		if open("here", os.O_RDWR|os.O_APPEND) == nil {
			t.Fatal("append mode was taken")
		}
		must(t, open("here", os.O_RDWR|os.O_CREATE))
		info, err := p.Stat(p.path("here"))
		must(t, err)
		equal(t, "size", info.Size, 1)
		must(t, open("here", os.O_RDWR|os.O_TRUNC))
		info, err = p.Stat(p.path("here"))
		must(t, err)
		equal(t, "size", info.Size, 0)

		r, err := p.OpenFile(p.path("here"), os.O_RDONLY)
		must(t, err)
		defer r.Close()
		if _, err := r.WriteAt([]byte("x"), 0); err == nil {
			t.Fatal("wrote to a file opened for reading")
		}
		equal(t, "name", r.Name(), p.path("here"))
	})
}

// Claim: after Close every method says so.
// Method: call them all.
func TestClosedFilesSaySo(t *testing.T) {
	onBoth(t, func(t *testing.T, p place) {
		f := p.create(t, "f", noise(5000))
		must(t, f.Close())
		_, size := f.Size()
		_, read := f.ReadAt(make([]byte, 1), 0)
		_, write := f.WriteAt(make([]byte, 1), 0)
		_, writev := f.WriteVAt([][]byte{{1}, {2}}, 0)
		_, mapped := f.Map(1)
		for name, err := range map[string]error{
			"Close": f.Close(), "Size": size, "ReadAt": read, "WriteAt": write, "WriteVAt": writev,
			"Map": mapped, "Sync": f.Sync(), "Truncate": f.Truncate(0),
			"Preallocate": f.Preallocate(0, 1), "Advise": f.Advise(0, 0, vfs.AdviseRandom),
		} {
			failsWith(t, name, err, fs.ErrClosed)
		}
	})
}

// Claim: Rename replaces the target in one step and follows the file, not the name.
// Method: rename over a file, across directories, a directory, and what must fail.
func TestRename(t *testing.T) {
	onBoth(t, func(t *testing.T, p place) {
		p.create(t, "a", []byte("first"))
		b := p.create(t, "b", []byte("second"))
		must(t, p.Rename(p.path("a"), p.path("b")))
		equal(t, "the replaced file, still open", string(contents(t, b)), "second")
		equal(t, "the name", string(contents(t, p.create(t, "b", nil))), "first")
		failsWith(t, "missing", p.Rename(p.path("a"), p.path("c")), fs.ErrNotExist)

		must(t, p.MkdirAll(p.path("d1/sub")))
		must(t, p.MkdirAll(p.path("d2")))
		must(t, p.Rename(p.path("b"), p.path("d1/sub/b")))
		must(t, p.Rename(p.path("d1/sub"), p.path("d2/moved")))
		equal(t, "moved", string(contents(t, p.create(t, "d2/moved/b", nil))), "first")
		must(t, p.Rename(p.path("d1"), p.path("d1"))) // onto itself: nothing
		if p.Rename(p.path("d1"), p.path("d2")) == nil {
			t.Fatal("replaced a directory that is not empty")
		}
		if p.Rename(p.path("d2"), p.path("d2/moved/d2")) == nil {
			t.Fatal("moved a directory into itself")
		}
		must(t, p.Rename(p.path("d2/moved"), p.path("d1"))) // onto an empty one: taken
		list, err := p.ReadDir(p.path("d1"))
		must(t, err)
		if !slices.Equal(list, []vfs.DirEntry{{Name: "b"}}) {
			t.Fatalf("d1 holds %v", list)
		}
	})
}

// Claim: a removed file lives on for those who have it open; directories go only when empty.
// Method: remove under an open handle; Remove and RemoveAll of a full directory.
func TestRemove(t *testing.T) {
	onBoth(t, func(t *testing.T, p place) {
		f := p.create(t, "f", []byte("still here"))
		must(t, p.Remove(p.path("f")))
		equal(t, "contents", string(contents(t, f)), "still here")
		failsWith(t, "again", p.Remove(p.path("f")), fs.ErrNotExist)
		_, err := p.Stat(p.path("f"))
		failsWith(t, "stat", err, fs.ErrNotExist)

		must(t, p.MkdirAll(p.path("x/y/z")))
		p.create(t, "x/y/f", nil)
		if p.Remove(p.path("x/y")) == nil {
			t.Fatal("removed a directory that is not empty")
		}
		must(t, p.RemoveAll(p.path("x")))
		must(t, p.RemoveAll(p.path("x")))
		_, err = p.ReadDir(p.path("x"))
		failsWith(t, "list", err, fs.ErrNotExist)
	})
}

// Claim: directories list sorted; Stat and Chtimes agree.
// Method: make names out of order, read them and their times back.
func TestListsAndTimes(t *testing.T) {
	onBoth(t, func(t *testing.T, p place) {
		for _, name := range []string{"b", "a", "c"} {
			p.create(t, name, []byte(name))
		}
		must(t, p.MkdirAll(p.path("ab")))
		must(t, p.MkdirAll(p.path("ab"))) // there already
		if p.MkdirAll(p.path("a/x")) == nil {
			t.Fatal("made a directory under a file")
		}
		list, err := p.ReadDir(p.dir)
		must(t, err)
		want := []vfs.DirEntry{{Name: "a"}, {Name: "ab", IsDir: true}, {Name: "b"}, {Name: "c"}}
		if !slices.Equal(list, want) {
			t.Fatalf("got %v", list)
		}
		when := time.Unix(1_600_000_000, 0)
		must(t, p.Chtimes(p.path("a"), when))
		info, err := p.Stat(p.path("a"))
		must(t, err)
		if !info.ModTime.Equal(when) || info.Size != 1 || info.IsDir {
			t.Fatalf("got %+v", info)
		}
		info, err = p.Stat(p.path("ab"))
		must(t, err)
		equal(t, "is a directory", info.IsDir, true)
		failsWith(t, "missing", p.Chtimes(p.path("gone"), when), fs.ErrNotExist)
	})
}

// Claim: every kind of sync succeeds on what is there and fails on what is not.
// Method: call them; what they keep is faultfs's own test.
func TestSyncs(t *testing.T) {
	onBoth(t, func(t *testing.T, p place) {
		f := p.create(t, "f", noise(100))
		must(t, f.Sync())
		must(t, p.SyncDir(p.dir))
		must(t, p.SyncFS(p.dir))
		failsWith(t, "missing", p.SyncDir(p.path("gone")), fs.ErrNotExist)
		failsWith(t, "missing", p.SyncFS(p.path("gone")), fs.ErrNotExist)
		if p.SyncDir(p.path("f")) == nil {
			t.Fatal("a file passed for a directory")
		}
		free, err := p.Free(p.dir)
		must(t, err)
		if free <= 0 {
			t.Fatalf("free: %d", free)
		}
		_, err = p.Free(p.path("gone"))
		failsWith(t, "missing", err, fs.ErrNotExist)
	})
}

// Claim: Preallocate does not change the size, and Truncate and writes work after it.
// Method: reserve, look, write, cut.
func TestPreallocateKeepsTheSize(t *testing.T) {
	onBoth(t, func(t *testing.T, p place) {
		f := p.create(t, "f", []byte("abc"))
		err := f.Preallocate(0, 1<<20)
		if errors.Is(err, vfs.ErrUnsupported) {
			t.Skip("not on this file system")
		}
		must(t, err)
		equal(t, "contents", string(contents(t, f)), "abc")
		must(t, f.Truncate(3))
		must(t, f.Advise(0, 0, vfs.AdviseWillNeed))
		if f.Advise(0, 0, vfs.Advice(99)) == nil {
			t.Fatal("an unknown advice was taken")
		}
	})
}

// Claim: a mapping and the file are the same bytes, both ways, and the mapping
// outlives the file's Close.
// Method: store and write by turns.
func TestMapping(t *testing.T) {
	onBoth(t, func(t *testing.T, p place) {
		f := p.create(t, "f", nil)
		must(t, f.Truncate(10_000))
		if _, err := f.Map(10_001); err == nil {
			t.Fatal("mapped past the end")
		}
		if _, err := f.Map(0); err == nil {
			t.Fatal("mapped nothing")
		}
		m, err := f.Map(10_000)
		must(t, err)
		equal(t, "length", len(m.Bytes()), 10_000)
		copy(m.Bytes()[4090:], "stored across a page")
		got := contents(t, f)
		equal(t, "read", string(got[4090:4110]), "stored across a page")
		_, err = f.WriteAt([]byte("written"), 9_000)
		must(t, err)
		equal(t, "seen in the mapping", string(m.Bytes()[9000:9007]), "written")
		must(t, f.Truncate(5_000))
		must(t, f.Truncate(10_000))
		if !bytes.Equal(m.Bytes()[5000:], make([]byte, 5000)) {
			t.Fatal("what was cut off shows in the mapping")
		}
		must(t, m.Flush())
		must(t, f.Close())
		m.Bytes()[0] = 'x'
		must(t, m.Close())
		equal(t, "after close", contents(t, p.create(t, "f", nil))[0], byte('x'))
		failsWith(t, "second Close", m.Close(), fs.ErrClosed)
		failsWith(t, "Flush after Close", m.Flush(), fs.ErrClosed)
	})
}

// Claim: one holder per lock; the refusal names the file.
// Method: take it twice, give it back, take it again.
func TestLockExcludes(t *testing.T) {
	onBoth(t, func(t *testing.T, p place) {
		name := p.path(".lock")
		l, err := p.Lock(name)
		must(t, err)
		_, err = p.Lock(name)
		failsWith(t, "second", err, vfs.ErrLocked)
		var le *vfs.LockError
		if !errors.As(err, &le) || le.Name != name {
			t.Fatalf("the error does not name the file: %v", err)
		}
		must(t, p.SyncFS(p.dir)) // goes through the lock file
		must(t, l.Close())
		failsWith(t, "closed twice", l.Close(), os.ErrClosed)
		l, err = p.Lock(name)
		must(t, err)
		must(t, l.Close())
		_, err = p.Lock(p.path("gone/.lock"))
		failsWith(t, "no directory", err, fs.ErrNotExist)
	})
}

// Claim: aligned direct writes are there for every reader of the file.
// Method: pre-write a file, write in its middle and past its end, read plainly.
func TestDirectWrites(t *testing.T) {
	onBoth(t, func(t *testing.T, p place) {
		_, _, err := p.OpenDirect(p.path("gone"))
		failsWith(t, "missing", err, fs.ErrNotExist)
		plain := p.create(t, "j", make([]byte, 4*4096))
		must(t, plain.Sync())
		f, direct, err := p.OpenDirect(p.path("j"))
		must(t, err)
		defer f.Close()
		t.Logf("direct: %v", direct)
		b := vfs.AlignedBuffer(8192)
		defer vfs.FreeBuffer(b)
		copy(b, noise(8192))
		for _, off := range []int64{4096, 4 * 4096} {
			n, err := f.WriteAt(b, off)
			must(t, err)
			equal(t, "bytes", n, 8192)
		}
		n, err := f.WriteVAt([][]byte{b[:4096], b[4096:]}, 12*4096)
		must(t, err)
		equal(t, "bytes", n, 8192)
		got := contents(t, plain)
		for _, off := range []int{4096, 4 * 4096, 12 * 4096} {
			if !bytes.Equal(got[off:off+8192], b) {
				t.Fatalf("contents at %d differ", off)
			}
		}
		clear(b)
		_, err = f.ReadAt(b, 4096)
		must(t, err)
		if !bytes.Equal(b, noise(8192)) {
			t.Fatal("read back differs")
		}
	})
}

// Claim: SendTo sends exactly the range, and a file too short is said so, with the
// count of what went out.
// Method: over a pipe (copied) and over TCP and a Unix socket (sendfile).
func TestSendToSendsTheRange(t *testing.T) {
	data := noise(300_000)
	onBoth(t, func(t *testing.T, p place) {
		f := p.create(t, "f", data)
		for _, kind := range []string{"pipe", "tcp", "unix"} {
			t.Run("conn="+kind, func(t *testing.T) {
				for _, r := range []struct{ off, n, want int64 }{
					{0, 0, 0}, {0, 1, 1}, {17, 100_000, 100_000}, {0, 300_000, 300_000},
					{299_000, 5_000, 1_000}, {400_000, 10, 0},
				} {
					n, got, err := sent(t, kind, func(c net.Conn) (int64, error) { return f.SendTo(c, r.off, r.n) })
					if r.want == r.n {
						must(t, err)
					} else {
						failsWith(t, "short file", err, io.ErrUnexpectedEOF)
					}
					equal(t, "count", n, r.want)
					if r.want > 0 && !bytes.Equal(got, data[r.off:r.off+r.want]) || int64(len(got)) != r.want {
						t.Fatalf("[%d,+%d): wrong bytes", r.off, r.n)
					}
				}
				_, _, err := sent(t, kind, func(c net.Conn) (int64, error) { return f.SendTo(c, -1, 5) })
				if err == nil {
					t.Fatal("a negative position was taken")
				}
			})
		}
	})
}

// sent runs send on one end of a new connection and returns what came out of the other.
func sent(t *testing.T, kind string, send func(net.Conn) (int64, error)) (int64, []byte, error) {
	t.Helper()
	client, server := connect(t, kind)
	received := make(chan []byte)
	go func() { // ends when the server side is closed, received below
		b, _ := io.ReadAll(client)
		client.Close()
		received <- b
	}()
	n, err := send(server)
	server.Close()
	return n, <-received, err
}

func connect(t testing.TB, kind string) (client, server net.Conn) {
	t.Helper()
	if kind == "pipe" {
		return net.Pipe()
	}
	address := "127.0.0.1:0"
	if kind == "unix" {
		dir, err := os.MkdirTemp("", "sock") // t.TempDir is too long for a socket's name
		must(t, err)
		defer os.RemoveAll(dir)
		address = filepath.Join(dir, "s")
	}
	l, err := net.Listen(kind, address)
	must(t, err)
	defer l.Close()
	client, err = net.Dial(kind, l.Addr().String())
	must(t, err)
	server, err = l.Accept()
	must(t, err)
	t.Cleanup(func() { client.Close(); server.Close() })
	return client, server
}
