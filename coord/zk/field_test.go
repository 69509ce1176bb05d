package zk

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	client "github.com/go-zookeeper/zk"

	"millrace/coord/zk/server"
)

// startAt serves a folder at an address.
func startAt(t *testing.T, dir, address string) *Service {
	t.Helper()
	s, err := Start(Options{Dir: dir, Address: address, Config: server.Config{Tick: 100 * time.Millisecond}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// Claim: a client of a service that has lost its data is told that its session has expired, and gets another: it does not try for ever.
// Method: a client that has seen more transactions than the service that comes after will have.
func TestField_F097_SessionOfLostData(t *testing.T) {
	first := startAt(t, t.TempDir(), "127.0.0.1:0")
	address := first.Addr().String()
	c, events, err := client.Connect([]string{address}, 10*time.Second, client.WithLogInfo(false))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	await := func(want client.State) {
		t.Helper()
		for deadline := time.After(30 * time.Second); ; {
			select {
			case e := <-events:
				if e.Type == client.EventSession && e.State == want {
					return
				}
			case <-deadline:
				t.Fatalf("not told within 30 s: %v", want)
			}
		}
	}
	await(client.StateHasSession)
	for i := range 20 {
		if _, err := c.Create(fmt.Sprintf("/n%d", i), nil, 0, client.WorldACL(client.PermAll)); err != nil {
			t.Fatal(err)
		}
	}
	old := c.SessionID()
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	startAt(t, t.TempDir(), address)
	await(client.StateExpired)
	await(client.StateHasSession)
	if c.SessionID() == old {
		t.Error("it goes on with the old session")
	}
	if _, err := c.Create("/new", nil, 0, client.WorldACL(client.PermAll)); err != nil {
		t.Error(err)
	}
}

// Claim: a log whose newest file is empty, has a few bytes, or lost its last ones begins again by itself, with all that is whole.
// Method: 1,000 writes, the folder as a kill -9 leaves it, each damage in turn over the same folder.
func TestField_F099_NewestLogFile(t *testing.T) {
	const writes = 1000
	living := t.TempDir()
	s := startAt(t, living, "127.0.0.1:0")
	c := connect(t, s)
	for i := range writes {
		if _, err := c.Create(fmt.Sprintf("/n%04d", i), []byte("value"), 0, client.WorldACL(client.PermAll)); err != nil {
			t.Fatal(err)
		}
	}
	dir := filepath.Join(t.TempDir(), "killed")
	if err := os.CopyFS(dir, os.DirFS(living)); err != nil {
		t.Fatal(err)
	}
	newest := func() string {
		files, err := filepath.Glob(filepath.Join(dir, logName, "*.log"))
		if err != nil || len(files) == 0 {
			t.Fatalf("%q, %v", files, err)
		}
		return slices.Max(files)
	}
	next := func() string { return filepath.Join(dir, logName, fmt.Sprintf("%020d.log", s.log.End())) }
	lost := 0 // at most
	for _, damage := range []struct {
		what string
		do   func() error
		lost int // writes that may be gone
	}{
		{"none", func() error { return nil }, 0},
		{"an empty next file", func() error { return os.WriteFile(next(), nil, 0o644) }, 0},
		{"a next file of 5 bytes", func() error { return os.WriteFile(next(), []byte{1, 0, 0, 0, 9}, 0o644) }, 0},
		{"the last 10 bytes cut off", func() error {
			name := newest()
			info, err := os.Stat(name)
			if err != nil {
				return err
			}
			return os.Truncate(name, info.Size()-10)
		}, 1},
	} {
		if err := damage.do(); err != nil {
			t.Fatal(err)
		}
		var err error
		s, err = Start(Options{Dir: dir})
		if err != nil {
			t.Fatalf("%s: %v", damage.what, err)
		}
		c, _, err := client.Connect([]string{"127.0.0.1:1"}, time.Minute, client.WithLogInfo(false), client.WithDialer(func(string, string, time.Duration) (net.Conn, error) { return s.Dial() }))
		if err != nil {
			t.Fatal(err)
		}
		names, _, err := c.Children("/")
		if err != nil {
			t.Fatal(err)
		}
		names = slices.DeleteFunc(names, func(name string) bool { return name[0] != 'n' })
		slices.Sort(names)
		if lost += damage.lost; len(names) < writes-lost {
			t.Errorf("%s: %d of %d writes are there", damage.what, len(names), writes)
		}
		for i, name := range names {
			if want := fmt.Sprintf("n%04d", i); name != want {
				t.Fatalf("%s: %s where %s should be", damage.what, name, want)
			}
		}
		c.Close()
		after := filepath.Join(t.TempDir(), "killed") // again as a kill leaves it
		if err := os.CopyFS(after, os.DirFS(dir)); err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		dir = after
	}
}
