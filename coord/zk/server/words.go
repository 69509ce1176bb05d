package server

import (
	"fmt"
	"slices"
	"strings"

	"millrace/coord/zk/tree"
)

// version is the first line of srvr and stat; clients look for it there.
const version = "Zookeeper version: 3.9.0-millrace\n"

// words are the four-letter words that there are here; others are no words.
var words = map[string]func(*Server) string{
	"ruok": func(*Server) string { return "imok" },
	"isro": func(*Server) string { return "rw" },
	"srvr": (*Server).srvr,
	"stat": func(s *Server) string {
		return version + "Clients:\n" + s.cons() + "\n" + strings.TrimPrefix(s.srvr(), version)
	},
	"cons": (*Server).cons,
	"conf": (*Server).conf,
	"dump": (*Server).dump,
	"wchs": (*Server).wchs,
	"wchc": func(s *Server) string { return s.watched(false) },
	"wchp": func(s *Server) string { return s.watched(true) },
	"mntr": (*Server).mntr,
}

func (s *Server) size() (size tree.Size, zxid int64, conns int) {
	s.store.View(func(t *tree.Tree) { size, zxid = t.Size(), t.Zxid() })
	s.mu.Lock()
	defer s.mu.Unlock()
	return size, zxid, len(s.conns)
}

func (s *Server) srvr() string {
	size, zxid, conns := s.size()
	return version + fmt.Sprintf("Connections: %d\nOutstanding: %d\nZxid: 0x%x\nMode: standalone\nNode count: %d\n",
		conns, len(s.submit), zxid, size.Nodes)
}

func (s *Server) cons() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var lines []string
	for _, c := range s.conns {
		lines = append(lines, fmt.Sprintf(" %v[1](sid=0x%x)\n", c.nc.RemoteAddr(), c.session))
	}
	slices.Sort(lines)
	return strings.Join(lines, "")
}

func (s *Server) conf() string {
	return fmt.Sprintf("clientPort=%v\ntickTime=%d\nmaxClientCnxns=%d\nminSessionTimeout=%d\nmaxSessionTimeout=%d\nserverId=%d\n",
		s.Addr(), s.cfg.Tick.Milliseconds(), s.cfg.MaxPerHost, s.cfg.MinTimeout.Milliseconds(), s.cfg.MaxTimeout.Milliseconds(), s.cfg.ServerID)
}

// dump lists sessions and their ephemerals.
func (s *Server) dump() string {
	var lines []string
	owners := 0
	s.store.View(func(t *tree.Tree) {
		t.Sessions(func(id int64, _ int32) {
			if paths := t.Ephemerals(id); len(paths) > 0 {
				owners++
				lines = append(lines, fmt.Sprintf("0x%x:\n\t%s\n", id, strings.Join(paths, "\n\t")))
			}
		})
	})
	slices.Sort(lines)
	return fmt.Sprintf("Sessions: %d\nSessions with Ephemerals (%d):\n%s", s.tracker.Len(), owners, strings.Join(lines, ""))
}

func (s *Server) wchs() string {
	size, _, _ := s.size()
	return fmt.Sprintf("%d connections watching %d paths\nTotal watches:%d\n", size.Watchers, size.WatchedPaths, size.Watches)
}

// watched lists watches, by path or by session.
func (s *Server) watched(byPath bool) string {
	by := map[string][]string{}
	s.store.View(func(t *tree.Tree) {
		s.mu.Lock()
		defer s.mu.Unlock()
		t.Watched(func(path string, who tree.Watcher) {
			session := "0x0"
			if c := s.conns[who]; c != nil {
				session = fmt.Sprintf("0x%x", c.session)
			}
			if byPath {
				by[path] = append(by[path], session)
			} else {
				by[session] = append(by[session], path)
			}
		})
	})
	var b strings.Builder
	for key, list := range by {
		slices.Sort(list)
		fmt.Fprintf(&b, "%s\n\t%s\n", key, strings.Join(list, "\n\t"))
	}
	return b.String()
}

func (s *Server) mntr() string {
	size, zxid, conns := s.size()
	return fmt.Sprintf("zk_version\t3.9.0-millrace\nzk_server_state\tstandalone\nzk_num_alive_connections\t%d\nzk_outstanding_requests\t%d\n"+
		"zk_znode_count\t%d\nzk_watch_count\t%d\nzk_ephemerals_count\t%d\nzk_approximate_data_size\t%d\nzk_global_sessions\t%d\nzk_last_processed_zxid\t%d\n",
		conns, len(s.submit), size.Nodes, size.Watches, size.Ephemerals, size.DataBytes, size.Sessions, zxid)
}
