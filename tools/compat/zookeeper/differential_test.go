package zookeeper

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"millrace/coord/zk/proto"
	"millrace/coord/zk/tree"
	"millrace/tools/compat/harness"
)

const rules = tree.EnforceQuota | tree.ExtendedTypes

// pair is a session of the real server and what the tree knows of it.
type pair struct {
	*Client
	auth []proto.ID
	who  tree.Watcher
}

// twin drives both sides.
type twin struct {
	t     *testing.T
	rng   *rand.Rand
	tree  *tree.Tree
	addr  string
	pairs []*pair
	next  tree.Watcher
	zxid  int64
}

// Claim: whatever sequence of requests is given to ZooKeeper 3.9 and to our tree, both
// give the same results, stats (but for times), zxids and watch events.
// Method: random requests of several sessions, one at a time, over few paths so that
// they collide; after each, every session is asked for the events it got.
func TestSameAsZooKeeper(t *testing.T) {
	if os.Getenv("MILLRACE_ZOOKEEPER") == "" {
		t.Skip("opt-in: set MILLRACE_ZOOKEEPER=1; it runs a real ZooKeeper (java)")
	}
	server, err := Start("../../../.cache", t.TempDir())
	var skip harness.Skip
	if errors.As(err, &skip) {
		t.Skip(skip)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer server.Stop()
	seed := uint64(1)
	if s := os.Getenv("MILLRACE_SEED"); s != "" {
		seed, _ = strconv.ParseUint(s, 10, 64)
	}
	steps := 6000
	if s := os.Getenv("MILLRACE_STEPS"); s != "" {
		steps, _ = strconv.Atoi(s)
	}
	w := &twin{t: t, rng: rand.New(rand.NewPCG(seed, 0)), tree: tree.New(), addr: server.Addr, zxid: 2} // as Start leaves the server
	for range 3 {
		w.open()
	}
	for step := range steps {
		p := w.pairs[w.rng.IntN(len(w.pairs))]
		q := w.request(p)
		if !w.step(p, &q) {
			t.Fatalf("seed %d, step %d: %+v", seed, step, q)
		}
	}
}

func (w *twin) open() {
	c, err := Dial(w.addr)
	if err != nil {
		w.t.Fatal(err)
	}
	w.next++
	p := &pair{Client: c, auth: []proto.ID{{Scheme: "ip", ID: "127.0.0.1"}}, who: w.next}
	w.pairs = append(w.pairs, p)
	w.apply(p, &proto.Request{Op: proto.OpCreateSession, Timeout: c.Timeout})
}

func (w *twin) apply(p *pair, q *proto.Request) (proto.Result, []tree.Event) {
	w.zxid++
	x := tree.Txn{Zxid: w.zxid, Time: 1, Session: p.Session, Rules: rules, Auth: p.auth, Req: *q}
	parsed, err := proto.ParseRequest(q.Op, proto.AppendBody(nil, q))
	if x.Req = parsed; err != nil {
		x.Refused = proto.ErrMarshalling
	}
	b := tree.AppendTxn(nil, &x)
	again, err := tree.ParseTxn(b)
	if err != nil {
		w.t.Fatal(err)
	}
	return w.tree.Apply(&again, nil)
}

// step gives q to both and compares. False: they differ, and how was reported.
func (w *twin) step(p *pair, q *proto.Request) bool {
	var want, got proto.Result
	var events []tree.Event
	h, want, err := p.Do(q)
	if err != nil {
		w.t.Error(err)
		return false
	}
	switch {
	case q.Op == proto.OpAuth:
		got = proto.Result{Op: q.Op}
		p.auth, got.Err = tree.Prove(p.auth, q.Scheme, q.Data, superDigest)
		h.Zxid = w.zxid // auth answers with 0
	case q.Op.Writes():
		got, events = w.apply(p, q)
	default:
		got, events = w.tree.Read(q, &tree.Reader{Session: p.Session, Watcher: p.who, Auth: p.auth}, nil)
	}
	ok := true
	if h.Zxid != w.zxid {
		w.t.Errorf("zxid %d, ZooKeeper's is %d", w.zxid, h.Zxid)
		ok = false
	}
	// Through the codec, as a client would see it.
	_, body, err := proto.ParseReply(proto.AppendReply(nil, 1, 0, &got))
	if err == nil && got.Err == proto.OK {
		got, err = proto.ParseResult(q.Op, body)
	} else {
		got = proto.Result{Op: q.Op, Err: got.Err}
	}
	if err != nil {
		w.t.Error(err)
		return false
	}
	normal(&want)
	normal(&got)
	if d := gocmp.Diff(want, got); d != "" {
		w.t.Errorf("result (- ZooKeeper, + ours):\n%s", d)
		ok = false
	}
	if q.Op == proto.OpCloseSession {
		p.Close()
		w.tree.Unwatch(p.who)
		w.pairs = slices.DeleteFunc(w.pairs, func(o *pair) bool { return o == p })
	}
	for _, o := range w.pairs {
		if !w.sameEvents(o, p, events, q.Op == proto.OpCloseSession) {
			ok = false
		}
	}
	if q.Op == proto.OpCloseSession {
		w.open()
	}
	return ok
}

// sameEvents compares what o was told. The order of what happened to one session's
// nodes is nobody's promise; it is a hash table's in ZooKeeper.
func (w *twin) sameEvents(o, asker *pair, events []tree.Event, anyOrder bool) bool {
	if o != asker {
		if _, _, err := o.Do(&proto.Request{Op: proto.OpPing}); err != nil {
			w.t.Error(err)
			return false
		}
	}
	var got []Note
	for _, e := range events {
		if e.Watcher == o.who && tree.Allows(e.ACL, proto.PermRead, o.auth) {
			got = append(got, Note{e.Zxid, proto.WatchEvent{Type: e.Type, State: proto.StateConnected, Path: e.Path}})
		}
	}
	want := o.Events
	o.Events = nil
	if anyOrder {
		order := func(a, b Note) int { return cmp.Compare(fmt.Sprint(a), fmt.Sprint(b)) }
		slices.SortFunc(want, order)
		slices.SortFunc(got, order)
	}
	if d := gocmp.Diff(want, got); d != "" {
		w.t.Errorf("events of session 0x%x (- ZooKeeper, + ours):\n%s", o.Session, d)
		return false
	}
	return true
}

// normal takes out what may differ: times, and the order of what are sets in ZooKeeper:
// children, and what a client has proven, also where "auth" stands for it.
func normal(res *proto.Result) {
	slices.SortFunc(res.Clients, func(a, b proto.ClientInfo) int { return cmp.Compare(a.Scheme+a.User, b.Scheme+b.User) })
	slices.SortFunc(res.ACL, func(a, b proto.ACL) int { return cmp.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
	res.Stat.Ctime, res.Stat.Mtime = 0, 0
	slices.Sort(res.Children)
	if len(res.Children) == 0 {
		res.Children = nil
	}
	for i := range res.Results {
		normal(&res.Results[i])
	}
}
