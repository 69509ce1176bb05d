package tree

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"millrace/coord/zk/proto"
)

// model is the tree as one would write it in an afternoon: maps of paths, copied whole
// before a multi. It knows open access lists only, and no quotas.
type model struct {
	nodes    map[string]mnode
	sessions map[int64]bool
	data     map[string]map[Watcher]mwatch // ZooKeeper's two tables
	child    map[string]map[Watcher]mwatch
	zxid     int64
	told     []string // events of the transaction at work
}

type mnode struct {
	data           string
	version        int32
	creates        int32
	kids           int32
	owner          int64
	czxid, mz, pz  int64
	ctime, changed int64
}

type mwatch struct{ once, always, tree bool }

func newModel() *model {
	m := &model{nodes: map[string]mnode{}, sessions: map[int64]bool{}, data: map[string]map[Watcher]mwatch{}, child: map[string]map[Watcher]mwatch{}}
	for _, p := range []string{"/", zkPath, quotaPath, configPath} {
		m.nodes[p] = mnode{}
	}
	m.nodes["/"], m.nodes[zkPath] = mnode{kids: 1}, mnode{kids: 2}
	return m
}

func mparent(path string) string { return orRoot(path[:strings.LastIndexByte(path, '/')]) }

func (m *model) apply(x *Txn) proto.Result {
	m.zxid, m.told = x.Zxid, nil
	res := proto.Result{Op: x.Req.Op}
	switch x.Req.Op {
	case proto.OpCreateSession:
		m.sessions[x.Session] = true
	case proto.OpCloseSession:
		for _, path := range slices.Sorted(maps.Keys(m.nodes)) {
			if m.nodes[path].owner == x.Session && x.Session != 0 {
				m.remove(path)
			}
		}
		delete(m.sessions, x.Session)
	case proto.OpMulti:
		before, data, child := maps.Clone(m.nodes), deep(m.data), deep(m.child)
		for i := range x.Req.Ops {
			one, code := m.one(x, &x.Req.Ops[i])
			if one.Op = x.Req.Ops[i].Op; code == proto.OK {
				res.Results = append(res.Results, one)
				continue
			}
			m.nodes, m.data, m.child, m.told = before, data, child, nil
			res.Results = make([]proto.Result, len(x.Req.Ops))
			for k := range res.Results {
				res.Results[k].Op = proto.OpError
				if k > i {
					res.Results[k].Err = proto.ErrInconsistency
				}
			}
			res.Results[i].Err = code
			break
		}
	default:
		one, code := m.one(x, &x.Req)
		one.Op, one.Err = x.Req.Op, code
		return one
	}
	return res
}

func deep(t map[string]map[Watcher]mwatch) map[string]map[Watcher]mwatch {
	c := map[string]map[Watcher]mwatch{}
	for k, v := range t {
		c[k] = maps.Clone(v)
	}
	return c
}

func (m *model) one(x *Txn, q *proto.Request) (res proto.Result, _ proto.Code) {
	if !m.sessions[x.Session] {
		return res, proto.ErrSessionExpired
	}
	switch q.Op {
	case proto.OpCreate2:
		parent := mparent(q.Path)
		p, ok := m.nodes[parent]
		path := q.Path
		if q.Mode.Sequential() {
			path += fmt.Sprintf("%010d", p.creates)
		}
		if !ok {
			return res, proto.ErrNoNode
		}
		if _, ok := m.nodes[path]; ok {
			return res, proto.ErrNodeExists
		}
		if p.owner != 0 {
			return res, proto.ErrNoChildrenForEph
		}
		n := mnode{data: string(q.Data), czxid: x.Zxid, mz: x.Zxid, pz: x.Zxid, ctime: x.Time, changed: x.Time}
		if q.Mode.Ephemeral() {
			n.owner = x.Session
		}
		p.creates, p.kids, p.pz = p.creates+1, p.kids+1, x.Zxid
		m.nodes[path], m.nodes[parent] = n, p
		m.fire(m.data, path, proto.EventCreated, nil)
		m.fire(m.child, parent, proto.EventChildrenChanged, nil)
		return proto.Result{Path: path, Stat: n.stat()}, proto.OK
	case proto.OpDelete:
		n, ok := m.nodes[q.Path]
		switch {
		case !ok:
			return res, proto.ErrNoNode
		case q.Version != -1 && q.Version != n.version:
			return res, proto.ErrBadVersion
		case n.kids > 0:
			return res, proto.ErrNotEmpty
		}
		m.remove(q.Path)
	case proto.OpSetData, proto.OpCheck:
		n, ok := m.nodes[q.Path]
		switch {
		case !ok:
			return res, proto.ErrNoNode
		case q.Version != -1 && q.Version != n.version:
			return res, proto.ErrBadVersion
		case q.Op == proto.OpCheck:
			return res, proto.OK
		}
		n.data, n.version, n.mz, n.changed = string(q.Data), n.version+1, x.Zxid, x.Time
		m.nodes[q.Path] = n
		m.fire(m.data, q.Path, proto.EventDataChanged, nil)
		return proto.Result{Path: q.Path, Stat: n.stat()}, proto.OK
	}
	return res, proto.OK
}

func (m *model) remove(path string) {
	parent := mparent(path)
	delete(m.nodes, path)
	p := m.nodes[parent]
	p.kids, p.pz = p.kids-1, m.zxid
	m.nodes[parent] = p
	told := m.fire(m.data, path, proto.EventDeleted, nil)
	m.fire(m.child, path, proto.EventDeleted, told)
	m.fire(m.child, parent, proto.EventChildrenChanged, nil)
}

func (n mnode) stat() proto.Stat {
	return proto.Stat{Czxid: n.czxid, Mzxid: n.mz, Ctime: n.ctime, Mtime: n.changed, Version: n.version, Cversion: n.creates*2 - n.kids,
		EphemeralOwner: n.owner, DataLength: int32(len(n.data)), NumChildren: n.kids, Pzxid: n.pz}
}

// fire is WatchManager.triggerWatch.
func (m *model) fire(table map[string]map[Watcher]mwatch, path string, typ proto.EventType, except map[Watcher]bool) map[Watcher]bool {
	told := map[Watcher]bool{}
	for at := path; ; at = mparent(at) {
		for who, w := range table[at] {
			if at != path {
				if w.tree {
					told[who] = true
				}
				continue
			}
			told[who] = true
			if w.once = false; w == (mwatch{}) {
				delete(table[at], who)
			} else {
				table[at][who] = w
			}
		}
		if at == "/" {
			break
		}
	}
	for who := range told {
		if !except[who] {
			m.told = append(m.told, fmt.Sprint(who, typ, path))
		}
	}
	return told
}

func (m *model) watch(path string, who Watcher, kind string) {
	add := func(table map[string]map[Watcher]mwatch, set func(*mwatch)) {
		if table[path] == nil {
			table[path] = map[Watcher]mwatch{}
		}
		w := table[path][who]
		set(&w)
		table[path][who] = w
	}
	switch kind {
	case "data":
		add(m.data, func(w *mwatch) { w.once = true })
	case "child":
		add(m.child, func(w *mwatch) { w.once = true })
	case "always":
		add(m.data, func(w *mwatch) { w.always = true })
		add(m.child, func(w *mwatch) { w.always = true })
	case "tree":
		add(m.data, func(w *mwatch) { w.tree = true })
	}
}

func (m *model) unwatch(who Watcher) {
	for _, table := range []map[string]map[Watcher]mwatch{m.data, m.child} {
		for path := range table {
			delete(table[path], who)
		}
	}
}

// dump writes out a tree: all nodes with stat, data and access list, and the sessions.
func dump(t *Tree) map[string]string {
	out := map[string]string{}
	for id := rootID; id < t.nodes.end; id++ {
		if n := t.nodes.at(id); n.meta&live != 0 {
			out[t.path(id)] = fmt.Sprintf("%+v %q null=%v owner=%x %v", n.stat(), n.data(), n.data() == nil, n.owner(), t.acls.lists[n.acl])
		}
	}
	for id, s := range t.sessions {
		list := t.ephemerals(id, "/")
		slices.Sort(list)
		out[fmt.Sprint("session ", id)] = fmt.Sprint(s.timeout, list)
	}
	out["tree"] = fmt.Sprint(t.zxid, t.dataBytes, t.nodes.count, len(t.reaped), slices.Sorted(maps.Keys(t.quotas)), len(t.acls.ids))
	return out
}
