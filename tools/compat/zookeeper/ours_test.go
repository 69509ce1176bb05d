package zookeeper

import (
	"math/rand/v2"
	"net"
	"path/filepath"
	"testing"

	"millrace/coord/zk/server"
	"millrace/coord/zk/store"
	"millrace/coord/zk/tree"
	"millrace/engine"
)

// Claim: our service, over its connections, answers and tells as the tree does that
// TestSameAsZooKeeper compares with ZooKeeper, in the same order.
// Method: the same random requests, of a real client to a real listener.
func TestOurServiceIsTheTree(t *testing.T) {
	dir := t.TempDir()
	log, err := engine.OpenLog(filepath.Join(dir, "log-0"), engine.LogOptions{Config: store.LogConfig()})
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	s, err := store.Open(log, store.Options{Dir: filepath.Join(dir, "snapshots"), SnapshotEvery: 200})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ours, err := server.Start(s, []byte("x"), server.Config{Listener: l, Rules: rules, SuperDigest: superDigest})
	if err != nil {
		t.Fatal(err)
	}
	defer ours.Close()
	w := &twin{t: t, rng: rand.New(rand.NewPCG(42, 0)), tree: tree.New(), addr: l.Addr().String()}
	for range 3 {
		w.open()
	}
	steps := 3000
	if testing.Short() {
		steps = 500
	}
	for step := range steps {
		p := w.pairs[w.rng.IntN(len(w.pairs))]
		if q := w.request(p); !w.step(p, &q) {
			t.Fatalf("step %d: %+v", step, q)
		}
	}
}
