package server

import (
	"millrace/coord/zk/store"
	"millrace/coord/zk/tree"
)

// Stats are figures of a service, for metrics. Counts are of its whole life, whatever words have reset.
type Stats struct {
	tree.Size
	Bytes       int64 // what the tree takes in memory, about
	Connections int
	Outstanding int   // writes that wait to be committed
	Received    int64 // requests
	Sent        int64 // answers and events
	Store       store.Stats
}

// Stats may be called by anybody at any time.
func (s *Server) Stats() Stats {
	out := Stats{Outstanding: len(s.submit), Store: s.store.Stats()}
	s.store.View(func(t *tree.Tree) { out.Size, out.Bytes = t.Size(), t.Bytes() })
	s.mu.Lock()
	out.Connections = len(s.conns)
	s.mu.Unlock()
	s.meter.mu.Lock()
	out.Received, out.Sent = s.meter.allReceived, s.meter.allSent
	s.meter.mu.Unlock()
	return out
}
