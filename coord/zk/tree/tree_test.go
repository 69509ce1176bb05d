package tree

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"millrace/coord/zk/proto"
)

// world is a tree and its model, given the same.
type world struct {
	tree  *Tree
	model *model
	zxid  int64

	snap *Snapshot // under way
	then map[string]string
	out  bytes.Buffer
}

var paths = rapid.Custom(func(t *rapid.T) string {
	p := "/" + rapid.SampledFrom([]string{"a", "b"}).Draw(t, "top")
	for range rapid.IntRange(0, 2).Draw(t, "depth") {
		p += "/" + rapid.SampledFrom([]string{"x", "y", "z"}).Draw(t, "name")
	}
	return p
})

var writes = rapid.Custom(func(t *rapid.T) proto.Request {
	q := proto.Request{
		Op:   rapid.SampledFrom([]proto.Op{proto.OpCreate2, proto.OpCreate2, proto.OpDelete, proto.OpSetData, proto.OpCheck}).Draw(t, "op"),
		Path: paths.Draw(t, "path"), Version: rapid.Int32Range(-1, 2).Draw(t, "version"),
		Data: []byte(rapid.StringN(0, 5, 20).Draw(t, "data")), ACL: proto.OpenACL,
	}
	if q.Op == proto.OpCreate2 {
		q.Mode = rapid.SampledFrom([]proto.Mode{0, 0, 0, 1, 2, 3}).Draw(t, "mode")
	}
	return q
})

func (w *world) apply(t *rapid.T, session int64, q proto.Request) {
	w.zxid += rapid.Int64Range(1, 3).Draw(t, "gap")
	x := Txn{Zxid: w.zxid, Time: 1000 + w.zxid, Session: session, Req: q}
	logged, err := ParseTxn(AppendTxn(nil, &x))
	if err != nil {
		t.Fatal(err)
	}
	got, events := w.tree.Apply(&logged, nil)
	want := w.model.apply(&x)
	if d := cmp.Diff(want, got, cmpopts.EquateEmpty()); d != "" {
		t.Fatalf("%v (- model, + tree):\n%s", q, d)
	}
	var told []string
	for _, e := range events {
		told = append(told, fmt.Sprint(e.Watcher, e.Type, e.Path))
		if e.Zxid != w.zxid {
			t.Fatalf("event %+v of transaction %d", e, w.zxid)
		}
	}
	slices.Sort(told)
	slices.Sort(w.model.told)
	if d := cmp.Diff(w.model.told, told, cmpopts.EquateEmpty()); d != "" {
		t.Fatalf("%v: events (- model, + tree):\n%s", q, d)
	}
}

// step goes on with the snapshot that is under way and compares it when it is whole
// with what the tree was when it was begun.
func (w *world) step(t *rapid.T, most int) {
	if w.snap == nil {
		return
	}
	b, done := w.snap.Step(most, nil)
	w.out.Write(b)
	if !done {
		return
	}
	w.snap = nil
	loaded, err := LoadSnapshot(&w.out)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(w.then, dump(loaded)); d != "" {
		t.Fatalf("snapshot (- tree when it was begun, + loaded):\n%s", d)
	}
}

// Claim: the tree is what its model is, also after multis that failed, and a snapshot is
// the tree as it was when the snapshot was begun, whatever was changed meanwhile.
func TestTreeAgreesWithItsModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := &world{tree: New(), model: newModel()}
		session := func(t *rapid.T) int64 { return rapid.Int64Range(1, 3).Draw(t, "session") }
		who := func(t *rapid.T) Watcher { return Watcher(rapid.Uint64Range(1, 3).Draw(t, "watcher")) }
		t.Repeat(map[string]func(*rapid.T){
			"write": func(t *rapid.T) { w.apply(t, session(t), writes.Draw(t, "q")) },
			"multi": func(t *rapid.T) {
				w.apply(t, session(t), proto.Request{Op: proto.OpMulti, Ops: rapid.SliceOfN(writes, 0, 6).Draw(t, "ops")})
			},
			"open": func(t *rapid.T) {
				if id := session(t); !w.model.sessions[id] {
					w.apply(t, id, proto.Request{Op: proto.OpCreateSession, Timeout: 5000})
				}
			},
			"close": func(t *rapid.T) {
				if rapid.IntRange(0, 3).Draw(t, "really") == 0 {
					w.apply(t, session(t), proto.Request{Op: proto.OpCloseSession})
				}
			},
			"watch": func(t *rapid.T) {
				path, who := paths.Draw(t, "path"), who(t)
				kind := rapid.SampledFrom([]string{"data", "child", "always", "tree"}).Draw(t, "kind")
				bits := map[string]watchKinds{"data": dataOnce, "child": childOnce, "always": persistentBit, "tree": treeAlways}
				w.tree.watches.add(path, who, bits[kind])
				w.model.watch(path, who, kind)
			},
			"unwatch": func(t *rapid.T) {
				who := who(t)
				w.tree.Unwatch(who)
				w.model.unwatch(who)
			},
			"snapshot": func(t *rapid.T) {
				if w.snap == nil {
					w.then, w.snap = dump(w.tree), w.tree.BeginSnapshot()
					w.out.Reset()
				} else if rapid.IntRange(0, 9).Draw(t, "abandon") == 0 {
					w.snap.Abandon()
					w.snap = nil
				}
			},
			"step": func(t *rapid.T) { w.step(t, 1) },
			"": func(t *rapid.T) {
				if n := len(w.model.nodes); w.tree.nodes.count+1 != n {
					t.Fatalf("%d nodes, the model has %d", w.tree.nodes.count+1, n)
				}
			},
		})
		for path, want := range w.model.nodes {
			res, _ := w.tree.Read(&proto.Request{Op: proto.OpGetData, Path: path}, &Reader{}, nil)
			if path == configPath {
				want, res.Stat.Aversion = mnode{}, 0
			}
			if d := cmp.Diff(want.stat(), res.Stat); d != "" || string(res.Data) != want.data {
				t.Fatalf("%s: %q, want %q; stat (- model, + tree):\n%s", path, res.Data, want.data, d)
			}
		}
		w.step(t, math.MaxInt)
	})
}

// start is a tree with one session, 1, at zxid 1.
func start() *Tree {
	t := New()
	t.Apply(&Txn{Zxid: 1, Session: 1, Req: proto.Request{Op: proto.OpCreateSession, Timeout: 4000}}, nil)
	return t
}

func do(t *Tree, q proto.Request) proto.Result {
	if q.ACL == nil {
		q.ACL = proto.OpenACL
	}
	res, _ := t.Apply(&Txn{Zxid: t.zxid + 1, Time: t.zxid, Session: 1, Rules: ExtendedTypes | EnforceQuota, Req: q}, nil)
	return res
}

// Claim: the number of a sequential node is its parent's count of creates, ten digits,
// and wraps into negative numbers as ZooKeeper's does.
func TestSequenceNumbersWrap(t *testing.T) {
	tree := start()
	tree.nodes.at(rootID).more.cversion = math.MaxInt32 - 1
	for _, want := range []string{"/n2147483646", "/n2147483647", "/n-2147483648", "/n-2147483647"} {
		if res := do(tree, proto.Request{Op: proto.OpCreate, Path: "/n", Mode: proto.PersistentSequential}); res.Path != want {
			t.Fatalf("%q, want %q (%v)", res.Path, want, res.Err)
		}
	}
}

func TestPathsAreValidAsInZooKeeper(t *testing.T) {
	good := []string{"/", "/a", "/a/b", "/...", "/.a", "/a.", "/a..b", "/ä", "/漢", "/a b"}
	bad := []string{"", "a", "a/b", "//", "/a/", "/a//b", "/.", "/..", "/a/.", "/a/../b", "/./a", "/\x00", "/a\x1f", "/\x7f", "/\u009f",
		"/\ue000", "/\ufff0", "/\uffff", "/\xff", "/\U0001F600", "/\ufffd"}
	for _, p := range good {
		if !ValidPath(p) {
			t.Errorf("%q is refused", p)
		}
	}
	for _, p := range bad {
		if ValidPath(p) {
			t.Errorf("%q is taken", p)
		}
	}
}

func TestAddressRules(t *testing.T) {
	for _, c := range []struct {
		address, rule string
		want          bool
	}{
		{"10.1.2.3", "10.1.2.3", true}, {"10.1.2.3", "10.0.0.0/8", true}, {"11.1.2.3", "10.0.0.0/8", false}, {"10.1.2.3", "0.0.0.0/0", true},
		{"::1", "::1", true}, {"fe80::1", "fe80::/16", true}, {"10.1.2.3", "::/0", false}, {"10.1.2.3", "10.1.2.3/33", false},
		{"10.1.2.3", "10.1.2", false}, {"10.1.2.3", "", false}, {"10.1.2.3", "10.1.2.3/-1", false},
	} {
		if got := matchesIP(c.address, c.rule); got != c.want {
			t.Errorf("%s in %q: %v", c.address, c.rule, got)
		}
	}
}

// Claim: containers go when they had children and have none, TTL nodes when they have
// none and have not been changed for their time; nothing else does.
func TestReapable(t *testing.T) {
	tree := start()
	for _, q := range []proto.Request{
		{Op: proto.OpCreateContainer, Path: "/never", Mode: proto.Container},
		{Op: proto.OpCreateContainer, Path: "/had", Mode: proto.Container},
		{Op: proto.OpCreateContainer, Path: "/has", Mode: proto.Container},
		{Op: proto.OpCreate, Path: "/had/x"},
		{Op: proto.OpCreate, Path: "/has/x"},
		{Op: proto.OpDelete, Path: "/had/x", Version: -1},
		{Op: proto.OpCreateTTL, Path: "/short", Mode: proto.PersistentTTL, TTL: 10},
		{Op: proto.OpCreateTTL, Path: "/long", Mode: proto.PersistentTTL, TTL: 1000},
		{Op: proto.OpCreate, Path: "/plain"},
	} {
		if res := do(tree, q); res.Err != proto.OK {
			t.Fatal(q.Path, res.Err)
		}
	}
	got := tree.Reapable(100, 10)
	slices.Sort(got)
	if want := []string{"/had", "/short"}; !slices.Equal(got, want) {
		t.Fatalf("%q, want %q", got, want)
	}
	for path, want := range map[string]proto.Code{"/had": proto.OK, "/has": proto.ErrNotEmpty, "/plain": proto.ErrBadVersion, "/gone": proto.ErrNoNode, "/": proto.ErrNoNode} {
		if res := do(tree, proto.Request{Op: proto.OpDeleteContainer, Path: path}); res.Err != want {
			t.Errorf("%s: %v, want %v", path, res.Err, want)
		}
	}
}

// Claim: a hundred thousand watchers of one path, and one watcher of a hundred thousand
// paths, are told, and forgotten, without anybody looking through all of them each time.
func TestManyWatches(t *testing.T) {
	const many = 100_000
	tree := start()
	do(tree, proto.Request{Op: proto.OpCreate, Path: "/herd"})
	for i := range many {
		tree.watches.add("/herd", Watcher(i+1), dataOnce)
		tree.watches.add(fmt.Sprint("/p", i), 1, childOnce)
	}
	if n := tree.Size().Watches; n != 2*many {
		t.Fatalf("%d watches", n)
	}
	_, events := tree.Apply(&Txn{Zxid: tree.zxid + 1, Session: 1, Req: proto.Request{Op: proto.OpSetData, Path: "/herd", Version: -1}}, nil)
	if len(events) != many {
		t.Fatalf("%d events", len(events))
	}
	tree.Unwatch(1)
	if s := tree.Size(); s.Watches != 0 || s.WatchedPaths != 0 || s.Watchers != 0 {
		t.Fatalf("left: %+v", s)
	}
}

// Claim: hard quotas hold, and the counters are right also when a multi is taken back.
func TestQuotas(t *testing.T) {
	tree := start()
	for _, q := range []proto.Request{
		{Op: proto.OpCreate, Path: "/q"},
		{Op: proto.OpCreate, Path: "/q/1", Data: []byte("12345")},
		{Op: proto.OpCreate, Path: "/zookeeper/quota/q"},
		{Op: proto.OpCreate, Path: "/zookeeper/quota/q/zookeeper_limits", Data: []byte("count=-1,bytes=-1=;byteHardLimit=20;countHardLimit=4")},
		{Op: proto.OpCreate, Path: "/zookeeper/quota/q/zookeeper_stats", Data: []byte("x")},
	} {
		if res := do(tree, q); res.Err != proto.OK {
			t.Fatal(q.Path, res.Err)
		}
	}
	stats := func(want string) {
		t.Helper()
		res, _ := tree.Read(&proto.Request{Op: proto.OpGetData, Path: "/zookeeper/quota/q/zookeeper_stats"}, &Reader{}, nil)
		if string(res.Data) != want {
			t.Fatalf("%q, want %q", res.Data, want)
		}
	}
	stats("count=2,bytes=5")
	res := do(tree, proto.Request{Op: proto.OpMulti, Ops: []proto.Request{
		{Op: proto.OpCreate, Path: "/q/2", Data: []byte("123"), ACL: proto.OpenACL}, {Op: proto.OpDelete, Path: "/q/1", Version: 7}}})
	if res.Results[1].Err != proto.ErrBadVersion {
		t.Fatal(res.Results)
	}
	stats("count=2,bytes=5")
	if res := do(tree, proto.Request{Op: proto.OpSetData, Path: "/q/1", Version: -1, Data: make([]byte, 21)}); res.Err != proto.ErrQuotaExceeded {
		t.Fatal(res.Err)
	}
	do(tree, proto.Request{Op: proto.OpCreate, Path: "/q/3"})
	do(tree, proto.Request{Op: proto.OpCreate, Path: "/q/4"})
	if res := do(tree, proto.Request{Op: proto.OpCreate, Path: "/q/5"}); res.Err != proto.ErrQuotaExceeded {
		t.Fatal(res.Err)
	}
	stats("count=4,bytes=5")
}

// Claim: a transaction that comes twice, or late, is never applied (C2).
func TestZxidsRise(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Fatal("the same zxid was applied twice")
		}
	}()
	tree := start()
	tree.Apply(&Txn{Zxid: 1, Session: 1, Req: proto.Request{Op: proto.OpCreate, Path: "/a"}}, nil)
}

// fuzzSeed is a snapshot with one of everything.
func fuzzSeed() []byte {
	tree := start()
	for _, q := range []proto.Request{
		{Op: proto.OpCreate, Path: "/e", Mode: proto.Ephemeral}, {Op: proto.OpCreate, Path: "/a", Data: []byte("x")},
		{Op: proto.OpCreate, Path: "/a/b", ACL: proto.ReadACL}, {Op: proto.OpCreateContainer, Path: "/c", Mode: proto.Container},
		{Op: proto.OpSetData, Path: "/a", Version: -1},
	} {
		do(tree, q)
	}
	b, _ := tree.BeginSnapshot().Step(math.MaxInt, nil)
	return b
}

// Claim: whatever a snapshot holds, it is read as a whole tree or refused by name.
func FuzzLoadSnapshot(f *testing.F) {
	f.Add(fuzzSeed())
	f.Fuzz(func(t *testing.T, b []byte) {
		tree, err := LoadSnapshot(bytes.NewReader(b))
		if err != nil {
			var bad *SnapshotError
			if !errors.As(err, &bad) && err.Error() != "binary: varint overflows a 64-bit integer" {
				t.Fatal(err)
			}
			return
		}
		out, _ := tree.BeginSnapshot().Step(math.MaxInt, nil)
		again, err := LoadSnapshot(bytes.NewReader(out))
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(dump(tree), dump(again)); d != "" {
			t.Fatal(d)
		}
	})
}

// Claim: every cut and every flipped bit of a snapshot is refused or read as some whole tree.
func TestDamagedSnapshots(t *testing.T) {
	whole := fuzzSeed()
	for n := range whole {
		if _, err := LoadSnapshot(bytes.NewReader(whole[:n])); err == nil {
			t.Fatalf("cut to %d of %d bytes it is read", n, len(whole))
		}
		for bit := range 8 {
			b := slices.Clone(whole)
			b[n] ^= 1 << bit
			LoadSnapshot(bytes.NewReader(b)) // must come back
		}
	}
}

// Claim: whatever the log holds is a transaction, which reads the same again, or is refused.
func FuzzParseTxn(f *testing.F) {
	x := Txn{Zxid: 5, Time: 6, Session: 7, Cxid: 8, Auth: []proto.ID{{Scheme: "ip", ID: "::1"}}, Req: proto.Request{Op: proto.OpMulti, Ops: []proto.Request{
		{Op: proto.OpCreate, Path: "/a", ACL: proto.OpenACL, TTL: -1}, {Op: proto.OpDelete, Path: "/b", Version: 3}}}}
	f.Add(AppendTxn(nil, &x))
	f.Add(AppendTxn(nil, &Txn{Zxid: 1, Refused: proto.ErrNoAuth}))
	f.Fuzz(func(t *testing.T, b []byte) {
		x, err := ParseTxn(b)
		if err != nil {
			return
		}
		again, err := ParseTxn(AppendTxn(nil, &x))
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(x, again, cmpopts.EquateEmpty()); d != "" {
			t.Fatal(d)
		}
		tree := start()
		if x.Zxid = 2; x.Session != 0 {
			tree.Apply(&x, nil)
		}
	})
}
