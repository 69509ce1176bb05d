package server

import (
	"sync"
	"time"

	"millrace/coord/zk/proto"
	"millrace/coord/zk/tree"
)

// request is a write on its way.
type request struct {
	c     *conn // nil: the service's own
	xid   int32
	size  int64     // of the budget
	begun time.Time // when it was read; zero of the service's own
	txn   tree.Txn
	done  chan<- bool // of the service's own, told whether it was stored; has room; nil: nobody asks
}

// requests are those that nobody has, to be used again: one is half a KiB.
var requests = sync.Pool{New: func() any { return new(request) }}

// put gives r to the committer; false: the server ends.
func (s *Server) put(r *request) bool {
	select {
	case s.submit <- r:
		return true
	case <-s.stop:
		return false
	}
}

// committer commits what has been submitted, all that is there together.
func (s *Server) committer() {
	var group []*request
	var txns []tree.Txn
	for {
		group, txns = group[:0], txns[:0]
		select {
		case <-s.stop:
			return
		case r := <-s.submit:
			group = append(group, r)
		}
	gather:
		for len(group) < maxGroup {
			select {
			case r := <-s.submit:
				group = append(group, r)
			default:
				break gather
			}
		}
		now := time.Now().UnixMilli()
		for _, r := range group {
			r.txn.Time = now
			txns = append(txns, r.txn)
		}
		n, err := s.store.Commit(txns, func(i int, res proto.Result, events []tree.Event) {
			s.deliver(events)
			s.answer(group[i], txns[i].Zxid, &res)
		})
		for _, r := range group[n:] {
			s.drop(r)
		}
		if err != nil {
			s.cfg.Logger.Error("coordination cannot store transactions", "transactions", len(group)-n, "error", err)
			if s.store.Failed() != nil {
				go s.shut(err) // ends by itself; it waits for nobody
				return
			}
		}
		s.warnQuotas(txns[:n])
		for _, r := range group {
			*r = request{}
			requests.Put(r)
		}
		clear(group)
		clear(txns)
	}
}

// deliver puts events into their connections' buffers. The tree is held.
func (s *Server) deliver(events []tree.Event) {
	for i := range events {
		e := &events[i]
		s.mu.Lock()
		c := s.conns[e.Watcher]
		s.mu.Unlock()
		if c == nil || s.cfg.Rules&tree.SkipACL == 0 && !tree.Allows(e.ACL, proto.PermRead, c.who()) {
			continue
		}
		c.send(func(b []byte) []byte {
			return proto.AppendEvent(b, e.Zxid, &proto.WatchEvent{Type: e.Type, State: proto.StateConnected, Path: e.Path})
		})
	}
}

// answer tells who asked. The tree is held.
func (s *Server) answer(r *request, zxid int64, res *proto.Result) {
	c := r.c
	if r.done != nil {
		r.done <- true
	}
	switch op := r.txn.Req.Op; {
	case c == nil && op == proto.OpCloseSession: // expired
		s.mu.Lock()
		c = s.sessions[r.txn.Session]
		s.mu.Unlock()
		if c != nil {
			c.finish()
		}
		return
	case c == nil:
		return
	case op == proto.OpCreateSession: // hello answers; tracked here, or nobody might
		s.tracker.Add(r.txn.Session, time.Duration(r.txn.Req.Timeout)*time.Millisecond)
	default:
		c.reply(op, r.begun, r.xid, zxid, res)
		if op == proto.OpCloseSession {
			s.tracker.Remove(r.txn.Session)
			c.finish()
		}
	}
	s.budget.give(r.size)
	c.answered()
}

// drop ends the connection of a write that was not stored: its client does not know
// what has become of it, as after any lost connection.
func (s *Server) drop(r *request) {
	if r.done != nil {
		r.done <- false
	}
	if r.c == nil {
		if r.txn.Req.Op == proto.OpCloseSession { // to be tried again
			s.tracker.Add(r.txn.Session, s.cfg.MinTimeout)
		}
		return
	}
	r.c.close()
	s.budget.give(r.size)
	r.c.answered()
}
