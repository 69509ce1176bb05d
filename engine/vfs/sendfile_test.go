//go:build linux && (amd64 || arm64)

package vfs

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

const bigBytes = 8 << 20

// bigFile is a file of bigBytes random bytes, more than any socket buffer holds.
func bigFile(t testing.TB) (*osFile, []byte) {
	t.Helper()
	data := make([]byte, bigBytes)
	rand.NewChaCha8([32]byte{7}).Read(data)
	name := filepath.Join(t.TempDir(), "big")
	if err := os.WriteFile(name, data, 0o644); err != nil {
		t.Fatal(err)
	}
	f, err := OS().OpenFile(name, os.O_RDWR)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f.(*osFile), data
}

// loopback returns both ends of a TCP connection with small buffers.
func loopback(t testing.TB) (client, server *net.TCPConn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	s, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	client, server = c.(*net.TCPConn), s.(*net.TCPConn)
	client.SetReadBuffer(16 << 10)
	server.SetWriteBuffer(16 << 10)
	t.Cleanup(func() { client.Close(); server.Close() })
	return client, server
}

// Claim: one file is sent to many connections at once and each gets its own right bytes.
// Method: readers of one 8 MiB file, each of a different range, on small socket
// buffers; if any two shared a position, bytes would be missing or of another place.
func TestManyConnectionsGetTheirOwnRange(t *testing.T) {
	f, data := bigFile(t)
	var wg sync.WaitGroup
	for i := range 6 {
		client, server := loopback(t)
		off := int64(i * 100_003)
		wg.Go(func() {
			n, err := f.SendTo(server, off, bigBytes-off)
			if err != nil || n != bigBytes-off {
				t.Errorf("sender %d: %d bytes, %v", i, n, err)
			}
			server.Close()
		})
		wg.Go(func() {
			got, err := io.ReadAll(client)
			if err != nil || !bytes.Equal(got, data[off:]) {
				t.Errorf("reader %d: %d bytes, right: %v, %v", i, len(got), bytes.Equal(got, data[off:]), err)
			}
		})
	}
	wg.Wait()
}

// Claim: a full socket is reported as "wait", with what it took counted, and the
// rest follows from the right place once the reader reads.
// Method: pump into a socket that nobody reads; it must return undone. Then SendTo
// the rest while the reader reads.
func TestFullSocketIsWaitedFor(t *testing.T) {
	f, data := bigFile(t)
	client, server := loopback(t)
	s := sending{name: f.Name(), left: bigBytes}
	out, err := server.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	calls := 0
	f.hold(func(in int) {
		out.Write(func(fd uintptr) bool {
			calls++
			done, err := s.pump(int(fd), in)
			if done || err != nil {
				t.Errorf("pump: done %v, error %v, want to be told to wait", done, err)
			}
			return true // do not wait: nobody reads yet
		})
	})
	took := bigBytes - s.left
	if calls != 1 || took == 0 || s.left == 0 || s.off != took {
		t.Fatalf("%d calls, %d bytes taken, next offset %d", calls, took, s.off)
	}
	got := make(chan []byte)
	go func() { // ends with the connection; received below
		b, _ := io.ReadAll(client)
		got <- b
	}()
	n, err := f.SendTo(server, s.off, s.left)
	if err != nil || n != s.left {
		t.Fatalf("the rest: %d of %d, %v", n, s.left, err)
	}
	server.Close()
	if !bytes.Equal(<-got, data) {
		t.Fatal("wrong bytes")
	}
}

// Claim: the write deadline ends SendTo, and the count is what the reader can get.
// Method: a reader that reads nothing until the deadline has passed.
func TestSendToHonoursTheWriteDeadline(t *testing.T) {
	f, data := bigFile(t)
	client, server := loopback(t)
	server.SetWriteDeadline(time.Now().Add(20 * time.Millisecond))
	n, err := f.SendTo(server, 0, bigBytes)
	if !errors.Is(err, os.ErrDeadlineExceeded) || n <= 0 || n >= bigBytes {
		t.Fatalf("%d bytes, %v", n, err)
	}
	server.Close()
	got, _ := io.ReadAll(client)
	if int64(len(got)) != n || !bytes.Equal(got, data[:n]) {
		t.Fatalf("the reader got %d bytes, the count is %d", len(got), n)
	}
	if n, err := f.SendTo(server, 0, 1); n != 0 || !errors.Is(err, net.ErrClosed) {
		t.Fatalf("closed connection: %d bytes, %v", n, err)
	}
}

// Claim: closing the file while it is being sent neither stops the transfer nor
// lets another file's bytes into it.
// Method: close it once the first byte has arrived, open others (which would get its
// descriptor's number), then read on.
func TestCloseDuringSendToKeepsTheFile(t *testing.T) {
	f, data := bigFile(t)
	other := filepath.Join(t.TempDir(), "other")
	os.WriteFile(other, make([]byte, bigBytes), 0o644)
	client, server := loopback(t)
	result := make(chan error, 1)
	go func() { // ends when the reader below has read all
		n, err := f.SendTo(server, 0, bigBytes)
		if err == nil && n != bigBytes {
			err = io.ErrShortWrite
		}
		server.Close()
		result <- err
	}()
	first := make([]byte, 1)
	if _, err := io.ReadFull(client, first); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	for range 20 {
		o, err := OS().OpenFile(other, os.O_RDWR)
		if err != nil {
			t.Fatal(err)
		}
		defer o.Close()
	}
	rest, err := io.ReadAll(client)
	if err != nil || !bytes.Equal(append(first, rest...), data) {
		t.Fatalf("%d bytes, %v", len(rest)+1, err)
	}
	if err := <-result; err != nil {
		t.Fatal(err)
	}
	if _, err := f.SendTo(server, 0, 1); !errors.Is(err, os.ErrClosed) {
		t.Fatalf("closed file: %v", err)
	}
}

// Claim: bytes given to WriteMore and the range after them arrive in order, whole,
// also when the socket is full.
// Method: a header larger than the buffers, then a range, by turns.
func TestWriteMoreThenSendTo(t *testing.T) {
	f, data := bigFile(t)
	client, server := loopback(t)
	header := bytes.Repeat([]byte("header "), 100_000)
	var want []byte
	for i := range 3 {
		want = append(append(want, header...), data[i:i+200_000]...)
	}
	got := make(chan []byte)
	go func() { // ends with the connection; received below
		b, _ := io.ReadAll(client)
		got <- b
	}()
	for i := range 3 {
		if err := WriteMore(server, header); err != nil {
			t.Fatal(err)
		}
		if _, err := f.SendTo(server, int64(i), 200_000); err != nil {
			t.Fatal(err)
		}
	}
	server.Close()
	if !bytes.Equal(<-got, want) {
		t.Fatal("wrong bytes")
	}
	if err := WriteMore(server, header); !errors.Is(err, net.ErrClosed) {
		t.Fatalf("closed connection: %v", err)
	}
	a, b := net.Pipe()
	go func() { WriteMore(a, []byte("plain")); a.Close() }() // ends with the read below
	if p, _ := io.ReadAll(b); string(p) != "plain" {
		t.Fatalf("pipe got %q", p)
	}
}

// Claim: WriteMore does honour the write deadline.
// Method: nobody reads.
func TestWriteMoreHonoursTheWriteDeadline(t *testing.T) {
	_, server := loopback(t)
	server.SetWriteDeadline(time.Now().Add(20 * time.Millisecond))
	if err := WriteMore(server, make([]byte, bigBytes)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatal(err)
	}
}

func BenchmarkSendTo(b *testing.B) {
	f, _ := bigFile(b)
	for _, size := range []int64{16 << 10, 1 << 20} {
		for _, how := range []string{"sendfile", "copy"} {
			b.Run("size="+byteName(size)+"/how="+how, func(b *testing.B) {
				client, server := loopback(b)
				client.SetReadBuffer(1 << 20)
				server.SetWriteBuffer(1 << 20)
				go io.Copy(io.Discard, struct{ io.Reader }{client}) // ends with the connection
				b.SetBytes(size)
				b.ReportAllocs()
				for b.Loop() {
					var err error
					if how == "sendfile" {
						_, err = f.SendTo(server, 0, size)
					} else {
						_, err = CopyTo(server, f, 0, size)
					}
					if err != nil {
						b.Fatal(err)
					}
				}
				server.Close()
			})
		}
	}
}

func byteName(n int64) string {
	if n >= 1<<20 {
		return "1MiB"
	}
	return "16KiB"
}
