package zookeeper

import (
	"cmp"
	"fmt"

	"millrace/coord/zk/proto"
)

func pick[T any](w *twin, list ...T) T { return list[w.rng.IntN(len(list))] }

// path is mostly one of few, so that requests meet; sometimes a bad one.
func (w *twin) path() string {
	if w.rng.IntN(30) == 0 {
		return pick(w, "", "/", "a", "//", "/a/", "/a//b", "/a/./b", "/..", "/a/..", "/a\x00b", "/a\x01", "/\u007f", "/\ue000",
			"/zookeeper", "/zookeeper/quota", "/zookeeper/config", "/a/.hidden", "/...", "/zookeeper/x")
	}
	p := "/" + pick(w, "a", "b", "c")
	for range w.rng.IntN(3) {
		p += "/" + pick(w, "x", "y", "z")
	}
	return p
}

func (w *twin) data() []byte {
	switch w.rng.IntN(6) {
	case 0:
		return nil
	case 1:
		return []byte{}
	}
	return fmt.Appendf(nil, "%0*d", 1+w.rng.IntN(40), w.rng.IntN(1000))
}

func (w *twin) version() int32 { return pick[int32](w, -1, -1, -1, 0, 0, 1, 2, 3) }

func (w *twin) acl() []proto.ACL {
	if w.rng.IntN(3) > 0 {
		return proto.OpenACL
	}
	id := func(scheme, id string) proto.ID { return proto.ID{Scheme: scheme, ID: id} }
	all := proto.PermAll
	return pick(w, nil, []proto.ACL{{Perms: all, ID: id("auth", "")}}, []proto.ACL{{Perms: all, ID: id("world", "everyone")}},
		[]proto.ACL{{Perms: all, ID: id("ip", "127.0.0.1")}}, []proto.ACL{{Perms: all, ID: id("ip", "127.0.0.0/8")}},
		[]proto.ACL{{Perms: proto.PermRead | proto.PermWrite, ID: id("ip", "10.0.0.0/8")}}, []proto.ACL{{Perms: all, ID: id("ip", "nowhere/8")}},
		[]proto.ACL{{Perms: all, ID: id("digest", "u:abc")}}, []proto.ACL{{Perms: all, ID: id("digest", "u")}}, []proto.ACL{{Perms: all, ID: id("digest", "u:")}},
		[]proto.ACL{{Perms: all, ID: id("foo", "bar")}}, proto.ReadACL,
		[]proto.ACL{{Perms: all, ID: id("auth", "")}, {Perms: 1, ID: id("world", "anyone")}, {Perms: 1, ID: id("world", "anyone")}},
		[]proto.ACL{{Perms: 1 | 2 | 4 | 8, ID: id("world", "anyone")}, {Perms: 16, ID: id("digest", "u:abc")}},
		[]proto.ACL{{Perms: 2 | 4 | 8 | 16, ID: id("world", "anyone")}})
}

// create makes any of the four kinds, mostly in order.
func (w *twin) create() proto.Request {
	q := proto.Request{Op: pick(w, proto.OpCreate, proto.OpCreate2), Path: w.path(), Data: w.data(), ACL: w.acl(),
		Mode: pick(w, proto.Persistent, proto.Persistent, proto.Persistent, proto.Ephemeral, proto.PersistentSequential, proto.EphemeralSequential)}
	switch w.rng.IntN(12) {
	case 0:
		q.Op, q.Mode = proto.OpCreateContainer, proto.Container
	case 1:
		q.Op, q.Mode, q.TTL = proto.OpCreateTTL, pick(w, proto.PersistentTTL, proto.PersistentSequentialTTL), pick[int64](w, 1e6, 1e9, 0, -1, 1<<40-1, 1<<40)
	case 2:
		q.Mode = pick(w, proto.Mode(7), proto.Mode(-1), proto.PersistentTTL, proto.Container)
	}
	return q
}

func (w *twin) write() proto.Request {
	switch w.rng.IntN(10) {
	case 0, 1, 2, 3:
		return w.create()
	case 4, 5, 6:
		return proto.Request{Op: proto.OpDelete, Path: w.path(), Version: w.version()}
	}
	return proto.Request{Op: proto.OpSetData, Path: w.path(), Data: w.data(), Version: w.version()}
}

func (w *twin) multi() proto.Request {
	q := proto.Request{Op: proto.OpMulti}
	for range w.rng.IntN(6) {
		op := w.write()
		if w.rng.IntN(5) == 0 {
			op = proto.Request{Op: proto.OpCheck, Path: w.path(), Version: w.version()}
		}
		q.Ops = append(q.Ops, op)
	}
	return q
}

// quota makes, fills and removes the nodes that limit /a or /a/x.
func (w *twin) quota() proto.Request {
	base := pick(w, "/zookeeper/quota/a", "/zookeeper/quota/a", "/zookeeper/quota/a/x")
	switch w.rng.IntN(8) {
	case 0, 1:
		return proto.Request{Op: proto.OpCreate2, Path: base, ACL: proto.OpenACL}
	case 2, 3:
		return proto.Request{Op: proto.OpCreate2, Path: base + "/zookeeper_stats", ACL: proto.OpenACL, Data: []byte("count=0,bytes=0")}
	case 4, 5:
		return proto.Request{Op: proto.OpCreate2, Path: base + "/zookeeper_limits", ACL: proto.OpenACL,
			Data: []byte(pick(w, "count=3,bytes=40", "count=-1,bytes=-1=;byteHardLimit=60;countHardLimit=6", "count=2,bytes=-1=;countHardLimit=4"))}
	case 6:
		return proto.Request{Op: proto.OpDelete, Path: base + "/" + pick(w, "zookeeper_limits", "zookeeper_stats"), Version: -1}
	}
	return proto.Request{Op: proto.OpGetData, Path: base + "/" + pick(w, "zookeeper_limits", "zookeeper_stats")}
}

func (w *twin) watching() proto.Request {
	kind := func(list ...int32) int32 { return pick(w, list...) }
	paths := func() (list []string) {
		for range w.rng.IntN(3) {
			list = append(list, w.path())
		}
		return list
	}
	switch w.rng.IntN(7) {
	case 0, 1:
		return proto.Request{Op: proto.OpAddWatch, Path: w.path(), Kind: kind(0, 1, 1, 2)}
	case 2, 3:
		return proto.Request{Op: proto.OpRemoveWatches, Path: w.path(), Kind: kind(1, 2, 3, 4, 5, 6)}
	case 4:
		return proto.Request{Op: proto.OpCheckWatches, Path: w.path(), Kind: kind(1, 2, 3, 4, 5, 0)}
	}
	s := &proto.SetWatches{RelativeZxid: w.zxid - w.rng.Int64N(200), Data: paths(), Exist: paths(), Child: paths()}
	if w.rng.IntN(2) == 0 {
		return proto.Request{Op: proto.OpSetWatches, SetWatches: s}
	}
	s.Persistent, s.Recursively = paths(), paths()
	return proto.Request{Op: proto.OpSetWatches2, SetWatches: s}
}

func (w *twin) read() proto.Request {
	watch := w.rng.IntN(2) == 0
	switch w.rng.IntN(12) {
	case 0, 1:
		return proto.Request{Op: proto.OpGetACL, Path: w.path()}
	case 2:
		// The root has a second name in ZooKeeper, "", by which it counts itself.
		return proto.Request{Op: proto.OpGetChildrenNum, Path: cmp.Or(w.path(), "/")}
	case 3:
		return proto.Request{Op: proto.OpGetEphemerals, Path: pick(w, "/", "", "/a", "/b")}
	case 4:
		return proto.Request{Op: proto.OpWhoAmI}
	case 5:
		q := proto.Request{Op: proto.OpMultiRead}
		for range w.rng.IntN(4) {
			q.Ops = append(q.Ops, proto.Request{Op: pick(w, proto.OpGetData, proto.OpGetChildren), Path: w.path()})
		}
		return q
	case 6:
		return proto.Request{Op: proto.OpSync, Path: w.path()}
	}
	return proto.Request{Op: pick(w, proto.OpExists, proto.OpGetData, proto.OpGetChildren, proto.OpGetChildren2), Path: w.path(), Watch: watch}
}

// request is any request that a client may send.
func (w *twin) request(p *pair) proto.Request {
	switch n := w.rng.IntN(100); {
	case n < 40:
		return w.write()
	case n < 50:
		return w.multi()
	case n < 53:
		return proto.Request{Op: proto.OpSetACL, Path: w.path(), ACL: w.acl(), Version: w.version()}
	case n < 58:
		return w.quota()
	case n < 66:
		return w.watching()
	case n < 67 && len(p.auth) < 4:
		return proto.Request{Op: proto.OpAuth, Scheme: "digest", Data: []byte(pick(w, "u:p", "v:q", SuperPassword))}
	case n < 69:
		return proto.Request{Op: proto.OpCloseSession}
	}
	return w.read()
}
