//go:build !race

package zk

import (
	"errors"
	"net"
	"sync"
	"testing"
	"time"

	client "github.com/go-zookeeper/zk"
)

// Not under the race detector: go-zookeeper 1.0.4 reads its last zxid beside its own receiver when it connects again (sendSetWatches).

// Claim: a client that comes back in the same session is told once of what changed while it was away, and its other watches stay armed.
// Method: data, exists and child watches over a connection that is cut; one node changes meanwhile, the others afterwards.
func TestField_F095_WatchesOutliveAConnection(t *testing.T) {
	s := start(t, t.TempDir())
	var mu sync.Mutex
	var conns []net.Conn
	away := false
	c, session, err := client.Connect([]string{"127.0.0.1:1"}, 30*time.Second, client.WithLogInfo(false), client.WithDialer(func(string, string, time.Duration) (net.Conn, error) {
		mu.Lock()
		defer mu.Unlock()
		if away {
			return nil, errors.New("cut")
		}
		nc, err := s.Dial()
		conns = append(conns, nc)
		return nc, err
	}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	await := func(want client.State) {
		t.Helper()
		for e := range session {
			if e.Type == client.EventSession && e.State == want {
				return
			}
		}
	}
	await(client.StateHasSession)
	id := c.SessionID()
	other := connect(t, s)
	for _, path := range []string{"/data", "/data2", "/parent"} {
		if _, err := other.Create(path, nil, 0, client.WorldACL(client.PermAll)); err != nil {
			t.Fatal(err)
		}
	}
	watched := map[string]<-chan client.Event{}
	if _, _, watched["/data"], err = c.GetW("/data"); err != nil {
		t.Fatal(err)
	}
	if _, _, watched["/data2"], err = c.GetW("/data2"); err != nil {
		t.Fatal(err)
	}
	if _, _, watched["/later"], err = c.ExistsW("/later"); err != nil {
		t.Fatal(err)
	}
	if _, _, watched["/parent"], err = c.ChildrenW("/parent"); err != nil {
		t.Fatal(err)
	}
	mu.Lock()
	away = true
	for _, nc := range conns {
		nc.Close()
	}
	mu.Unlock()
	await(client.StateDisconnected)
	if _, err := other.Set("/data", []byte("changed"), -1); err != nil {
		t.Fatal(err)
	}
	mu.Lock()
	away = false
	mu.Unlock()
	await(client.StateHasSession)
	told := func(path string, want client.EventType) {
		t.Helper()
		select {
		case e := <-watched[path]:
			if e.Type != want || e.Path != path {
				t.Errorf("%s: %+v", path, e)
			}
		case <-time.After(30 * time.Second):
			t.Errorf("%s: not told of %v", path, want)
		}
	}
	told("/data", client.EventNodeDataChanged)
	if c.SessionID() != id {
		t.Error("it is another session")
	}
	for path, events := range watched {
		if n := len(events); n != 0 {
			t.Errorf("%s: %d events of nothing", path, n)
		}
	}
	if _, err := other.Set("/data2", []byte("x"), -1); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/later", "/parent/child"} {
		if _, err := other.Create(path, nil, 0, client.WorldACL(client.PermAll)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := other.Set("/data", []byte("again"), -1); err != nil { // nobody asked to be told of it
		t.Fatal(err)
	}
	told("/data2", client.EventNodeDataChanged)
	told("/later", client.EventNodeCreated)
	told("/parent", client.EventNodeChildrenChanged)
	if _, _, err := c.Get("/data"); err != nil { // behind every event before it
		t.Fatal(err)
	}
	if e, open := <-watched["/data"]; open {
		t.Errorf("told a second time: %+v", e)
	}
}
