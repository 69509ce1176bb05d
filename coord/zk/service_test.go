package zk

import (
	"bytes"
	"encoding/hex"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	client "github.com/go-zookeeper/zk"

	"millrace/coord/zk/server"
	"millrace/engine/vfs"
)

func start(t *testing.T, dir string) *Service {
	t.Helper()
	s, err := Start(Options{Dir: dir, Address: "127.0.0.1:0", Config: server.Config{Tick: 100 * time.Millisecond}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func connect(t *testing.T, s *Service) *client.Conn {
	t.Helper()
	c, events, err := client.Connect([]string{s.Addr().String()}, time.Minute, client.WithLogInfo(false))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	for e := range events {
		if e.State == client.StateHasSession {
			return c
		}
	}
	t.Fatal("no session")
	return nil
}

// Claim: a folder keeps the tree over a restart, and the secret, which nobody else may read.
func TestStartKeepsTheTree(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "coordination")
	s := start(t, dir)
	if _, err := connect(t, s).Create("/a", []byte("x"), 0, client.WorldACL(client.PermAll)); err != nil {
		t.Fatal(err)
	}
	secret, err := os.ReadFile(filepath.Join(dir, secretName))
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(filepath.Join(dir, secretName)); err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("%v, %v", info, err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = start(t, dir)
	if got, _, err := connect(t, s).Get("/a"); err != nil || string(got) != "x" {
		t.Fatalf("%q, %v", got, err)
	}
	if again, err := secretOf(vfs.OS(), filepath.Join(dir, secretName)); err != nil || !strings.HasPrefix(string(secret), hex.EncodeToString(again)) {
		t.Fatalf("the secret is another one: %v", err)
	}
}

// Claim: a folder has one service at a time, and who comes second is told which folder it is.
func TestStartTwice(t *testing.T) {
	dir := t.TempDir()
	start(t, dir)
	s, err := Start(Options{Dir: dir, Address: "127.0.0.1:0"})
	if err == nil {
		s.Close()
		t.Fatal("a second service started")
	}
	if !strings.Contains(err.Error(), dir) {
		t.Fatal(err)
	}
}

// Claim: a secret that is none is an error that names the file; nothing stays locked.
func TestStartWithoutASecret(t *testing.T) {
	dir := t.TempDir()
	if err := start(t, dir).Close(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, secretName)
	if err := os.WriteFile(path, []byte("00ff\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Start(Options{Dir: dir, Address: "127.0.0.1:0"}); err == nil || !strings.Contains(err.Error(), path) {
		t.Fatal(err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	start(t, dir)
}

// Claim: a session can be ended by its service, and what is bound to it goes with it.
func TestEndSession(t *testing.T) {
	s := start(t, t.TempDir())
	gone, other := connect(t, s), connect(t, s)
	if _, err := gone.Create("/e", nil, client.FlagEphemeral, client.WorldACL(client.PermAll)); err != nil {
		t.Fatal(err)
	}
	if err := s.EndSession(gone.SessionID()); err != nil {
		t.Fatal(err)
	}
	if there, _, err := other.Exists("/e"); err != nil || there {
		t.Fatalf("%v, %v", there, err)
	}
}

// Claim: a client in the same process needs no listener.
func TestDialInProcess(t *testing.T) {
	s, err := Start(Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	c, _, err := client.Connect([]string{"127.0.0.1:1"}, time.Minute, client.WithLogInfo(false), client.WithDialer(func(string, string, time.Duration) (net.Conn, error) { return s.Dial() }))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	if _, err := c.Create("/a", bytes.Repeat([]byte("x"), 900_000), 0, client.WorldACL(client.PermAll)); err != nil {
		t.Fatal(err)
	}
	if data, _, err := c.Get("/a"); err != nil || len(data) != 900_000 {
		t.Fatalf("%d bytes, %v", len(data), err)
	}
}
