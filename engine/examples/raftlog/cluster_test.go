package raftlog

import (
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"

	"millrace/engine"
)

// words is a state machine: the list of what was applied.
type words struct {
	mu   sync.Mutex
	list []string
}

func (w *words) Apply(l *raft.Log) any {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.list = append(w.list, string(l.Data))
	return nil
}

func (w *words) Snapshot() (raft.FSMSnapshot, error) { return nil, fmt.Errorf("not in this test") }
func (w *words) Restore(io.ReadCloser) error         { return fmt.Errorf("not in this test") }

func (w *words) all() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.list)
}

// node is one member of the cluster, with its files on the real disk.
type node struct {
	store *Store
	raft  *raft.Raft
	fsm   *words
	trans *raft.InmemTransport
	addr  raft.ServerAddress
}

func startCluster(t *testing.T, dir string, bootstrap bool) []*node {
	t.Helper()
	var nodes []*node
	var members raft.Configuration
	for i := range 3 {
		name := fmt.Sprintf("n%d", i)
		n := &node{fsm: new(words)}
		var err error
		if n.store, err = Open(filepath.Join(dir, name), Options{SegmentBytes: 4000, Log: engine.LogOptions{JournalBytes: 1 << 20}}); err != nil {
			t.Fatal(err)
		}
		n.addr, n.trans = raft.NewInmemTransport(raft.ServerAddress(name))
		members.Servers = append(members.Servers, raft.Server{ID: raft.ServerID(name), Address: n.addr})
		nodes = append(nodes, n)
	}
	for i, n := range nodes {
		for _, other := range nodes {
			n.trans.Connect(other.addr, other.trans)
		}
		c := raft.DefaultConfig()
		c.LocalID, c.Logger = members.Servers[i].ID, hclog.NewNullLogger()
		c.HeartbeatTimeout, c.ElectionTimeout, c.LeaderLeaseTimeout = 300*time.Millisecond, 300*time.Millisecond, 300*time.Millisecond
		snaps := raft.NewInmemSnapshotStore()
		if bootstrap {
			if err := raft.BootstrapCluster(c, n.store, n.store, snaps, n.trans, members); err != nil {
				t.Fatal(err)
			}
		}
		var err error
		if n.raft, err = raft.NewRaft(c, n.fsm, n.store, n.store, snaps, n.trans); err != nil {
			t.Fatal(err)
		}
	}
	return nodes
}

func (n *node) stop(t *testing.T) {
	t.Helper()
	if err := n.raft.Shutdown().Error(); err != nil {
		t.Fatal(err)
	}
	if err := n.store.Close(); err != nil {
		t.Fatal(err)
	}
}

// apply has the cluster apply a word, however often its leader changes.
func apply(t *testing.T, nodes []*node, word string) {
	t.Helper()
	for {
		for _, n := range nodes {
			if n.raft.State() == raft.Leader && n.raft.Apply([]byte(word), 5*time.Second).Error() == nil {
				return
			}
		}
		select {
		case <-t.Context().Done():
			t.Fatal("no leader took the word")
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// Claim: three real raft nodes on this store agree, go on without one of them, and after restarts of all apply the same words
// in the same order again.
func TestClusterSurvivesRestarts(t *testing.T) {
	dir := t.TempDir()
	var sent []string
	for life := range 3 {
		nodes := startCluster(t, dir, life == 0)
		for i := range 20 {
			word := fmt.Sprintf("%d-%d", life, i)
			if i == 10 {
				nodes[life].stop(t) // perhaps the leader: the others go on
				nodes = slices.Delete(nodes, life, life+1)
			}
			apply(t, nodes, word)
			sent = append(sent, word)
		}
		for _, n := range nodes {
			for !slices.Equal(distinct(n.fsm.all()), sent) {
				if t.Context().Err() != nil {
					t.Fatalf("life %d: %s has applied %v, sent were %v", life, n.addr, n.fsm.all(), sent)
				}
				time.Sleep(10 * time.Millisecond) // until it has caught up
			}
		}
		for _, n := range nodes {
			n.stop(t)
		}
	}
}

// distinct drops repetitions: a word whose leader lost its office while it was applied is sent again.
func distinct(list []string) []string {
	var out []string
	for _, w := range list {
		if !slices.Contains(out, w) {
			out = append(out, w)
		}
	}
	return out
}
