package proto

import (
	"bytes"
	"encoding/hex"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

var stat = Stat{Czxid: 1, Mzxid: 2, Ctime: 3, Mtime: 4, Version: 5, Cversion: 6, Aversion: 7, EphemeralOwner: 8, DataLength: 9, NumChildren: 10, Pzxid: 11}

// requests is one of each.
func requests() []Request {
	acl := []ACL{{PermAll, ID{"world", "anyone"}}, {PermRead, ID{"digest", "u:x"}}}
	list := []Request{
		{Op: OpCreate, Path: "/a", Data: []byte("x"), ACL: acl, Mode: Ephemeral, TTL: -1},
		{Op: OpCreate2, Path: "/a", ACL: acl, TTL: -1},
		{Op: OpCreateContainer, Path: "/c", Data: []byte{}, ACL: acl, Mode: Container, TTL: -1},
		{Op: OpCreateTTL, Path: "/t", ACL: acl, Mode: PersistentTTL, TTL: 1000},
		{Op: OpDelete, Path: "/a", Version: 3},
		{Op: OpSetData, Path: "/a", Data: []byte("yy"), Version: -1},
		{Op: OpCheck, Path: "/a", Version: 1},
	}
	reads := []Request{{Op: OpGetData, Path: "/a"}, {Op: OpGetChildren, Path: "/a", Watch: true}}
	sets := &SetWatches{RelativeZxid: 9, Data: []string{"/d"}, Exist: []string{"/e", "/f"}, Child: []string{"/c"}}
	sets2 := &SetWatches{RelativeZxid: 9, Persistent: []string{"/p"}, Recursively: []string{"/r", "/s"}}
	all := append([]Request{{Op: OpMulti, Ops: list}, {Op: OpMulti}, {Op: OpMultiRead, Ops: reads}}, list...)
	return append(append(all, reads...),
		Request{Op: OpExists, Path: "/e", Watch: true}, Request{Op: OpGetChildren2, Path: "/"}, Request{Op: OpGetACL, Path: "/a"},
		Request{Op: OpSetACL, Path: "/a", ACL: acl, Version: 2}, Request{Op: OpSync, Path: "/"}, Request{Op: OpPing}, Request{Op: OpDeleteContainer, Path: "/c"},
		Request{Op: OpGetEphemerals, Path: "/"}, Request{Op: OpGetChildrenNum, Path: "/"}, Request{Op: OpCheckWatches, Path: "/a", Kind: WatcherData},
		Request{Op: OpRemoveWatches, Path: "/a", Kind: WatcherAny}, Request{Op: OpAddWatch, Path: "/a", Kind: WatchPersistentRecursive},
		Request{Op: OpAuth, Scheme: "digest", Data: []byte("u:p")}, Request{Op: OpSASL, Data: []byte("t")}, Request{Op: OpSetWatches, SetWatches: sets},
		Request{Op: OpSetWatches2, SetWatches: sets2}, Request{Op: OpReconfig, Reconfig: &Reconfig{"j", "l", "m", 7}}, Request{Op: OpWhoAmI},
		Request{Op: OpCloseSession}, Request{Op: OpCreateSession, Timeout: 4000})
}

func results() []Result {
	return []Result{
		{Op: OpCreate, Path: "/a"}, {Op: OpCreate2, Path: "/a", Stat: stat}, {Op: OpExists, Stat: stat}, {Op: OpSetData, Stat: stat}, {Op: OpSetACL, Stat: stat},
		{Op: OpGetData, Data: []byte("x"), Stat: stat}, {Op: OpGetData, Stat: stat}, {Op: OpGetACL, ACL: OpenACL, Stat: stat}, {Op: OpGetChildren, Children: []string{"a", "b"}},
		{Op: OpGetChildren2, Children: []string{"a"}, Stat: stat}, {Op: OpGetChildrenNum, Count: 5}, {Op: OpGetEphemerals, Children: []string{"/e"}}, {Op: OpSync, Path: "/"},
		{Op: OpAddWatch}, {Op: OpDelete}, {Op: OpCloseSession}, {Op: OpWhoAmI, Clients: []ClientInfo{{"ip", "::1"}}},
		{Op: OpMulti, Results: []Result{{Op: OpCreate, Path: "/a"}, {Op: OpCreate2, Path: "/b", Stat: stat}, {Op: OpDelete}, {Op: OpSetData, Stat: stat}, {Op: OpCheck}}},
		{Op: OpMulti, Results: []Result{{Op: OpError}, {Op: OpError, Err: ErrNoNode}, {Op: OpError, Err: ErrInconsistency}}},
		{Op: OpMultiRead, Results: []Result{{Op: OpGetData, Data: []byte("x"), Stat: stat}, {Op: OpError, Err: ErrNoNode}, {Op: OpGetChildren, Children: []string{"c"}}}},
	}
}

func TestRequestsComeBack(t *testing.T) {
	for _, q := range requests() {
		h, body, err := ParseHeader(AppendRequest(nil, 77, &q))
		if err != nil || h != (Header{77, q.Op}) {
			t.Fatal(q.Op, h, err)
		}
		got, err := ParseRequest(h.Op, body)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(q, got, cmpopts.EquateEmpty()); d != "" {
			t.Errorf("%v:\n%s", q.Op, d)
		}
	}
}

func TestResultsComeBack(t *testing.T) {
	for _, res := range results() {
		h, body, err := ParseReply(AppendReply(nil, 5, 6, &res))
		if err != nil || h != (Reply{5, 6, OK}) {
			t.Fatal(res.Op, h, err)
		}
		got, err := ParseResult(res.Op, body)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(res, got, cmpopts.EquateEmpty()); d != "" {
			t.Errorf("%v:\n%s", res.Op, d)
		}
	}
	h, body, err := ParseReply(AppendReply(nil, 5, 6, &Result{Op: OpExists, Err: ErrNoNode}))
	if err != nil || h.Err != ErrNoNode || len(body) != 0 {
		t.Fatal(h, body, err)
	}
}

// Claim: null and empty data are not the same, in both directions.
func TestNullIsNotEmpty(t *testing.T) {
	for _, data := range [][]byte{nil, {}} {
		_, body, _ := ParseHeader(AppendRequest(nil, 1, &Request{Op: OpSetData, Path: "/a", Data: data}))
		q, err := ParseRequest(OpSetData, body)
		if err != nil || (q.Data == nil) != (data == nil) {
			t.Fatal(q.Data == nil, data == nil, err)
		}
	}
}

// Claim: the handshake is understood with and without the readOnly flag (3.4 added it).
func TestHandshake(t *testing.T) {
	pass := bytes.Repeat([]byte{7}, PasswdSize)
	for _, q := range []ConnectRequest{
		{LastZxidSeen: 3, Timeout: 4000, Session: 5, Passwd: pass}, {Timeout: 4000, Passwd: pass, HasReadOnly: true}, {Passwd: pass, ReadOnly: true, HasReadOnly: true},
	} {
		b := AppendConnect(nil, &q)
		if want := 44; !q.HasReadOnly && len(b) != want {
			t.Fatalf("%d bytes, old clients send %d", len(b), want)
		}
		got, err := ParseConnect(b)
		if d := cmp.Diff(q, got); d != "" || err != nil {
			t.Fatal(d, err)
		}
		a := ConnectResponse{Timeout: q.Timeout, Session: 9, Passwd: pass, ReadOnly: q.ReadOnly, HasReadOnly: q.HasReadOnly}
		back, err := ParseConnected(AppendConnected(nil, &a))
		if d := cmp.Diff(a, back); d != "" || err != nil {
			t.Fatal(d, err)
		}
	}
	if _, err := ParseConnect(AppendConnect(nil, &ConnectRequest{Passwd: make([]byte, 17)})); err == nil {
		t.Fatal("a password of 17 bytes is taken")
	}
}

// Claim: the bytes are ZooKeeper's: a create, a watch event and a failed multi as Java
// writes them.
func TestGoldenBytes(t *testing.T) {
	multi := Result{Op: OpMulti, Results: []Result{{Op: OpError, Err: ErrNodeExists}}}
	for _, c := range []struct {
		got  []byte
		want string
	}{
		{AppendRequest(nil, 1, &Request{Op: OpCreate, Path: "/a", Data: []byte("x"), ACL: OpenACL, Mode: Ephemeral}),
			"00000001" + "00000001" + "000000022f61" + "0000000178" + "00000001" + "0000001f" + "00000005776f726c64" + "00000006616e796f6e65" + "00000001"},
		{AppendEvent(nil, -1, &WatchEvent{EventDeleted, StateConnected, "/a"}), "ffffffff" + "ffffffffffffffff" + "00000000" + "00000002" + "00000003" + "000000022f61"},
		{AppendReply(nil, 3, 9, &multi), "00000003" + "0000000000000009" + "00000000" + "ffffffff" + "00" + "ffffff92" + "ffffff92" + "ffffffff" + "01" + "ffffffff"},
	} {
		if got := hex.EncodeToString(c.got); got != c.want {
			t.Errorf("\n%s, want\n%s", got, c.want)
		}
	}
}

// Claim: what a multi may not hold is refused while it is parsed, as by ZooKeeper.
func TestMultisThatCannotBe(t *testing.T) {
	for _, ops := range [][]Request{
		{{Op: OpCreate, Path: "/a", Mode: 9}}, {{Op: OpCreate2, Path: "/a", Mode: PersistentTTL}}, {{Op: OpDelete, Path: "/a"}, {Op: OpGetData, Path: "/a"}},
		{{Op: OpSetACL, Path: "/a"}}, {{Op: OpMulti}}, {{Op: OpCloseSession}},
	} {
		if _, err := ParseRequest(OpMulti, AppendBody(nil, &Request{Op: OpMulti, Ops: ops})); err == nil {
			t.Errorf("%v is taken", ops)
		}
	}
	if _, err := ParseRequest(Op(99), nil); !errors.Is(err, ErrUnimplemented) {
		t.Fatal(err)
	}
}

// Claim W1: a length or count that the body does not have allocates nothing for it.
func TestHostileCountsAllocateNothing(t *testing.T) {
	huge := []byte{0x7f, 0xff, 0xff, 0xff}
	bodies := map[Op][]byte{
		OpSetWatches: append(make([]byte, 8), huge...), OpSetData: append([]byte{0, 0, 0, 1, '/'}, huge...), OpGetACL: huge,
		OpSetACL: append([]byte{0, 0, 0, 1, '/'}, huge...),
	}
	for op, body := range bodies {
		n := testing.AllocsPerRun(10, func() {
			if _, err := ParseRequest(op, body); err == nil {
				t.Error(op, "is taken")
			}
		})
		if n > 10 {
			t.Errorf("%v: %v allocations", op, n)
		}
	}
}

func FuzzRequest(f *testing.F) {
	for _, q := range requests() {
		f.Add(int32(q.Op), AppendBody(nil, &q))
	}
	f.Fuzz(func(t *testing.T, op int32, body []byte) {
		q, err := ParseRequest(Op(op), body)
		if err != nil {
			return
		}
		again, err := ParseRequest(q.Op, AppendBody(nil, &q))
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(q, again, cmpopts.EquateEmpty()); d != "" {
			t.Fatal(d)
		}
	})
}

func FuzzResult(f *testing.F) {
	for _, res := range results() {
		f.Add(int32(res.Op), appendResult(nil, &res))
	}
	f.Fuzz(func(t *testing.T, op int32, body []byte) {
		res, err := ParseResult(Op(op), body)
		if err != nil {
			return
		}
		again, err := ParseResult(res.Op, appendResult(nil, &res))
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(res, again, cmpopts.EquateEmpty()); d != "" {
			t.Fatal(d)
		}
	})
}

func FuzzConnect(f *testing.F) {
	f.Add(AppendConnect(nil, &ConnectRequest{Passwd: make([]byte, 16), HasReadOnly: true}))
	f.Fuzz(func(t *testing.T, b []byte) {
		q, err := ParseConnect(b)
		if err != nil {
			return
		}
		if again, err := ParseConnect(AppendConnect(nil, &q)); err != nil || cmp.Diff(q, again, cmpopts.EquateEmpty()) != "" {
			t.Fatal(q, again, err)
		}
	})
}
