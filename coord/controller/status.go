package controller

import "sync/atomic"

// Status is what metrics tell of a Service.
type Status struct {
	Session bool  // there is one with coordination, and a connection
	Expired int64 // sessions lost since Open
	Leads   bool  // this broker is the controller
	Epoch   int32 // of its office; 0 if it has none
	// What only the controller knows; 0 elsewhere.
	Brokers    int // live
	Offline    int // partitions that nobody leads, of topics that are not being deleted
	Imbalanced int // partitions whose leader is not the preferred one
	Deleting   int // topics
	Moving     int // partitions whose replicas are being moved
}

// statusKept is apart from Service.mu, which a change of a thousand topics holds for seconds.
type statusKept struct {
	last    atomic.Pointer[Status]
	expired atomic.Int64
}

// Status is that of now, or, while something is being changed, of the last time that somebody asked before. It waits for nothing.
func (s *Service) Status() Status {
	if !s.mu.TryLock() {
		if last := s.status.last.Load(); last != nil {
			return *last
		}
		return Status{}
	}
	defer s.mu.Unlock()
	conn, ok := s.mu.conn.(sessionConn)
	out := Status{Session: ok && !conn.state.isAway(), Expired: s.status.expired.Load()}
	if l := s.mu.lead; l != nil {
		out.Leads, out.Epoch = true, l.epoch
		out.count(l)
	}
	s.status.last.Store(&out)
	return out
}

func (out *Status) count(l *lead) {
	if l.state == nil {
		return // about to take office
	}
	out.Brokers = len(l.state.Brokers)
	for _, t := range l.state.Topics {
		if t.Deletion != nil {
			out.Deleting++
			continue
		}
		for _, p := range t.Partitions {
			if !l.state.Live(p.Leader) {
				out.Offline++
			} else if p.Leader != p.Replicas[0] {
				out.Imbalanced++
			}
			if len(p.Adding)+len(p.Removing) > 0 {
				out.Moving++
			}
		}
	}
}
