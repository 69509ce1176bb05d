package tree

import (
	"strings"

	"millrace/coord/zk/proto"
)

// Watcher is who is told: the service gives every connection a number of its own.
type Watcher uint64

// Event is something that one watcher is told. It reaches only who may read what it is
// about: the service asks Allows with ACL and the connection's identities; nil is for all.
type Event struct {
	Watcher Watcher
	Type    proto.EventType
	Path    string
	Zxid    int64 // of the change; -1 for what a client missed while it was away
	ACL     []proto.ACL
}

// watchKinds are the watches that one watcher has on one path. ZooKeeper keeps two
// tables, of data watches and of child watches; here they are bits of one entry.
type watchKinds uint8

const (
	dataOnce      watchKinds = 1 << iota // getData, exists: gone when fired
	childOnce                            // getChildren
	dataAlways                           // persistent: this and the next together
	childAlways                          //
	treeAlways                           // persistent and recursive
	inDataTable   = dataOnce | dataAlways | treeAlways
	inChildTable  = childOnce | childAlways
	persistentBit = dataAlways | childAlways
)

type watchKey struct {
	path    uint32 // index in table.infos
	watcher Watcher
}

// watch is one watcher on one path: in a list of the path's and in one of the watcher's.
type watch struct {
	watchKey
	kinds                    watchKinds
	pathNext, pathPrev       uint32
	watcherNext, watcherPrev uint32
}

type watchedPath struct {
	path  string
	first uint32
}

// watchTable holds all watches of a server: about 200 bytes for one with a path of its
// own (BenchmarkMillion); each path is kept once.
// Entry 0 of watches and of infos is none; as a neighbour it takes writes nobody reads.
type watchTable struct {
	paths     map[string]uint32
	infos     []watchedPath
	freeInfos []uint32
	watchers  map[Watcher]*watcher
	byKey     map[watchKey]uint32
	watches   []watch
	free      []uint32
	count     int
	recursive int    // watches with treeAlways: while there are none, nobody looks at ancestors
	round     uint64 // of telling: nobody is told twice in one
}

// watcher is one that has watches.
type watcher struct {
	first uint32 // of its watches
	told  uint64 // the last round in which it was told something
}

func newWatchTable() watchTable {
	return watchTable{
		paths: map[string]uint32{}, infos: make([]watchedPath, 1), watchers: map[Watcher]*watcher{},
		byKey: map[watchKey]uint32{}, watches: make([]watch, 1),
	}
}

func (w *watchTable) get(path string, who Watcher) (uint32, *watch) {
	p, ok := w.paths[path]
	if !ok {
		return 0, nil
	}
	id, ok := w.byKey[watchKey{p, who}]
	if !ok {
		return 0, nil
	}
	return id, &w.watches[id]
}

func (w *watchTable) add(path string, who Watcher, kinds watchKinds) {
	_, at := w.get(path, who)
	if at == nil {
		at = w.insert(path, who)
	}
	if kinds&^at.kinds&treeAlways != 0 {
		w.recursive++
	}
	at.kinds |= kinds
}

func (w *watchTable) insert(path string, who Watcher) *watch {
	p, ok := w.paths[path]
	if !ok {
		path = strings.Clone(path)
		if n := len(w.freeInfos); n > 0 {
			p, w.freeInfos = w.freeInfos[n-1], w.freeInfos[:n-1]
		} else {
			p = uint32(len(w.infos))
			w.infos = append(w.infos, watchedPath{})
		}
		w.infos[p].path, w.paths[path] = path, p
	}
	var id uint32
	if n := len(w.free); n > 0 {
		id, w.free = w.free[n-1], w.free[:n-1]
	} else {
		id = uint32(len(w.watches))
		w.watches = append(w.watches, watch{})
	}
	owner := w.watchers[who]
	if owner == nil {
		owner = &watcher{}
		w.watchers[who] = owner
	}
	key := watchKey{p, who}
	at := &w.watches[id]
	*at = watch{watchKey: key, pathNext: w.infos[p].first, watcherNext: owner.first}
	w.watches[at.pathNext].pathPrev, w.watches[at.watcherNext].watcherPrev = id, id
	w.infos[p].first, owner.first, w.byKey[key] = id, id, id
	w.count++
	return at
}

// drop takes kinds from a watch and removes it when none is left.
func (w *watchTable) drop(id uint32, kinds watchKinds) {
	at := &w.watches[id]
	if at.kinds&kinds&treeAlways != 0 {
		w.recursive--
	}
	if at.kinds &^= kinds; at.kinds != 0 {
		return
	}
	if info := &w.infos[at.path]; at.pathPrev != 0 {
		w.watches[at.pathPrev].pathNext = at.pathNext
	} else if info.first = at.pathNext; info.first == 0 {
		delete(w.paths, info.path)
		info.path = ""
		w.freeInfos = append(w.freeInfos, at.path)
	}
	if at.watcherPrev != 0 {
		w.watches[at.watcherPrev].watcherNext = at.watcherNext
	} else if w.watchers[at.watcher].first = at.watcherNext; at.watcherNext == 0 {
		delete(w.watchers, at.watcher)
	}
	w.watches[at.pathNext].pathPrev, w.watches[at.watcherNext].watcherPrev = at.pathPrev, at.watcherPrev
	delete(w.byKey, at.watchKey)
	*at = watch{}
	w.free = append(w.free, id)
	w.count--
}

// Unwatch forgets all watches of a watcher: its connection has ended.
func (t *Tree) Unwatch(who Watcher) {
	for w := t.watches.watchers[who]; w != nil && w.first != 0; {
		t.watches.drop(w.first, ^watchKinds(0))
	}
}

// Watched calls f with every watch, path by path, in no order.
func (t *Tree) Watched(f func(path string, who Watcher)) {
	for path, p := range t.watches.paths {
		for id := t.watches.infos[p].first; id != 0; id = t.watches.watches[id].pathNext {
			f(path, t.watches.watches[id].watcher)
		}
	}
}

// fire tells the watchers of what a trigger is about, each at most once for the node
// and once for its parent.
func (t *Tree) fire(g *trigger, zxid int64, events []Event) []Event {
	if t.watches.count == 0 {
		return events
	}
	e := Event{Type: g.typ, Path: g.path, Zxid: zxid, ACL: g.acl}
	t.watches.round++
	events = t.watches.notify(e, inDataTable, events)
	if g.typ == proto.EventDeleted {
		events = t.watches.notify(e, inChildTable, events)
	}
	if g.parent != "" {
		t.watches.round++
		e.Type, e.Path, e.ACL = proto.EventChildrenChanged, g.parent, g.parentACL
		events = t.watches.notify(e, inChildTable, events)
	}
	return events
}

// notify makes an event for everybody who watches e.Path in a table, or all below one
// of its ancestors, and was not told yet.
func (w *watchTable) notify(e Event, table watchKinds, events []Event) []Event {
	tell := func(who Watcher) {
		if at := w.watchers[who]; at.told != w.round {
			at.told, e.Watcher = w.round, who
			events = append(events, e)
		}
	}
	for id := w.infos[w.paths[e.Path]].first; id != 0; {
		at := &w.watches[id]
		next := at.pathNext
		if at.kinds&table != 0 {
			tell(at.watcher)
			w.drop(id, table&(dataOnce|childOnce))
		}
		id = next
	}
	if table != inDataTable || w.recursive == 0 {
		return events
	}
	for path := e.Path; path != rootPath; {
		path = orRoot(path[:strings.LastIndexByte(path, '/')])
		for id := w.infos[w.paths[path]].first; id != 0; id = w.watches[id].pathNext {
			if w.watches[id].kinds&treeAlways != 0 {
				tell(w.watches[id].watcher)
			}
		}
	}
	return events
}

// addWatch is the request of that name.
func (t *Tree) addWatch(q *proto.Request, who Watcher) proto.Code {
	switch q.Kind {
	case proto.WatchPersistent:
		t.watches.add(q.Path, who, persistentBit)
	case proto.WatchPersistentRecursive:
		t.watches.add(q.Path, who, treeAlways)
	default:
		return proto.ErrMarshalling
	}
	return proto.OK
}

// watchesOf finds what checkWatches and removeWatches name.
func (t *Tree) watchesOf(q *proto.Request, who Watcher) (id uint32, kinds watchKinds, _ proto.Code) {
	switch q.Kind {
	case proto.WatcherChildren:
		kinds = childOnce
	case proto.WatcherData:
		kinds = dataOnce
	case proto.WatcherAny:
		kinds = ^watchKinds(0)
	case proto.WatcherPersistent:
		kinds = persistentBit
	case proto.WatcherPersistentRecursive:
		kinds = treeAlways
	default:
		return 0, 0, proto.ErrMarshalling
	}
	id, at := t.watches.get(q.Path, who)
	if at == nil || at.kinds&kinds == 0 {
		return 0, 0, proto.ErrNoWatcher
	}
	return id, kinds, proto.OK
}

// setWatches arms the watches of a client that has come back, and tells it what it
// missed. Events of persistent watches that were missed are lost, as in ZooKeeper.
func (t *Tree) setWatches(s *proto.SetWatches, who Watcher, events []Event) []Event {
	tell := func(typ proto.EventType, path string) {
		events = append(events, Event{Watcher: who, Type: typ, Path: path, Zxid: -1})
	}
	for _, path := range s.Data {
		switch id := t.find(path); {
		case id == 0:
			tell(proto.EventDeleted, path)
		case t.nodes.at(id).stat().Mzxid > s.RelativeZxid:
			tell(proto.EventDataChanged, path)
		default:
			t.watches.add(path, who, dataOnce)
		}
	}
	for _, path := range s.Exist {
		if t.find(path) != 0 {
			tell(proto.EventCreated, path)
		} else {
			t.watches.add(path, who, dataOnce)
		}
	}
	for _, path := range s.Child {
		id := t.find(path)
		if id == 0 {
			tell(proto.EventDeleted, path)
		} else if stat := t.nodes.at(id).stat(); stat.Pzxid > s.RelativeZxid {
			tell(proto.EventChildrenChanged, path)
		} else {
			t.watches.add(path, who, childOnce)
		}
	}
	for _, path := range s.Persistent {
		t.watches.add(path, who, persistentBit)
	}
	for _, path := range s.Recursively {
		t.watches.add(path, who, treeAlways)
	}
	return events
}
