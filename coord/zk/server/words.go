package server

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"millrace/coord/zk/tree"
)

// version is the first line of srvr and stat; clients look for it there.
const version = "Zookeeper version: 3.9.0-millrace\n"

// traceMask is ZooKeeper's default. Nothing is traced here; the number is kept because
// there are words to set and ask it.
const traceMask = 306

// words are the four-letter words that there are here; others are no words. r is what the
// client sends behind the word.
var words = map[string]func(s *Server, r io.Reader) string{
	"ruok": func(*Server, io.Reader) string { return "imok" },
	"isro": func(*Server, io.Reader) string { return "rw" },
	"srvr": func(s *Server, _ io.Reader) string { return s.srvr() },
	"stat": func(s *Server, _ io.Reader) string {
		return version + "Clients:\n" + s.cons(false) + "\n" + strings.TrimPrefix(s.srvr(), version)
	},
	"cons": func(s *Server, _ io.Reader) string { return s.cons(true) + "\n" },
	"conf": func(s *Server, _ io.Reader) string { return s.conf() },
	"envi": func(*Server, io.Reader) string { return environment() },
	"dirs": func(s *Server, _ io.Reader) string { return s.dirs() },
	"dump": func(s *Server, _ io.Reader) string { return s.dump() },
	"wchs": func(s *Server, _ io.Reader) string { return s.wchs() },
	"wchc": func(s *Server, _ io.Reader) string { return s.watched(false) },
	"wchp": func(s *Server, _ io.Reader) string { return s.watched(true) },
	"mntr": func(s *Server, _ io.Reader) string { return s.mntr() },
	"hash": func(*Server, io.Reader) string { return "" }, // digests of the tree, of which none are kept
	"gtmk": func(s *Server, _ io.Reader) string { return strconv.FormatInt(s.traceMask.Load(), 10) },
	"stmk": (*Server).stmk,
	"srst": func(s *Server, _ io.Reader) string { s.meter.reset(); return "Server stats reset.\n" },
	"crst": func(s *Server, _ io.Reader) string { s.crst(); return "Connection stats reset.\n" },
}

func (s *Server) size() (size tree.Size, zxid int64, conns int) {
	s.store.View(func(t *tree.Tree) { size, zxid = t.Size(), t.Zxid() })
	s.mu.Lock()
	defer s.mu.Unlock()
	return size, zxid, len(s.conns)
}

func (s *Server) srvr() string {
	size, zxid, conns := s.size()
	r := s.meter.read()
	return version + fmt.Sprintf("Latency min/avg/max: %d/%.1f/%d\nReceived: %d\nSent: %d\nConnections: %d\nOutstanding: %d\nZxid: 0x%x\nMode: standalone\nNode count: %d\n",
		r.least, r.average, r.most, r.received, r.sent, conns, len(s.submit), zxid, size.Nodes)
}

// cons lists connections; in full with what was last done on each.
func (s *Server) cons(full bool) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var lines []string
	for _, c := range s.conns {
		lines = append(lines, c.line(full))
	}
	slices.Sort(lines)
	return strings.Join(lines, "")
}

// line needs Server.mu.
func (c *conn) line(full bool) string {
	c.mu.Lock()
	pending, l := c.pending, c.last
	c.mu.Unlock()
	r := c.meter.read()
	interest := 1 // that the server has in reading from it
	if c.session == 0 {
		interest = 0
	}
	line := fmt.Sprintf(" /%v[%d](queued=%d,recved=%d,sent=%d", c.nc.RemoteAddr(), interest, pending, r.received, r.sent)
	if full && c.session != 0 {
		line += fmt.Sprintf(",sid=0x%x,lop=%s,est=%d,to=%d,lcxid=0x%x,lzxid=0x%x,lresp=%d,llat=%d,minlat=%d,avglat=%.0f,maxlat=%d",
			c.session, opWord(l.op), c.began.UnixMilli(), c.timeout.Milliseconds(), uint32(l.xid), uint64(l.zxid), c.ago(l.at), l.latency, r.least, r.average, r.most)
	}
	return line + ")\n"
}

// ago is the time of the newest answer, in ms since the service began; 0 none.
func (c *conn) ago(at time.Time) int64 {
	if at.IsZero() {
		return 0
	}
	return at.Sub(c.s.began).Milliseconds()
}

func (s *Server) crst() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.conns {
		c.meter.reset()
	}
}

// stmk sets the mask, the eight bytes behind the word.
func (s *Server) stmk(r io.Reader) string {
	var b [4 + 8]byte
	if _, err := io.ReadFull(r, b[:]); err != nil {
		return ""
	}
	mask := int64(binary.BigEndian.Uint64(b[4:]))
	s.traceMask.Store(mask)
	return strconv.FormatInt(mask, 10)
}

func (s *Server) conf() string {
	port, host := -1, ""
	if addr, ok := s.Addr().(*net.TCPAddr); ok {
		port, host = addr.Port, addr.IP.String()
	}
	u := s.store.Usage()
	return fmt.Sprintf("clientPort=%d\nclientPortAddress=%s\nsecureClientPort=-1\ndataDir=%s\ndataDirSize=%d\ndataLogDir=%s\ndataLogSize=%d\ntickTime=%d\nmaxClientCnxns=%d\n"+
		"minSessionTimeout=%d\nmaxSessionTimeout=%d\nserverId=%d\n", port, host, u.SnapshotDir, u.Snapshots, u.LogDir, u.Log,
		s.cfg.Tick.Milliseconds(), max(0, s.cfg.MaxPerHost), s.cfg.MinTimeout.Milliseconds(), s.cfg.MaxTimeout.Milliseconds(), s.cfg.ServerID)
}

func (s *Server) dirs() string {
	u := s.store.Usage()
	return fmt.Sprintf("datadir_size: %d\nlogdir_size: %d\n", u.Snapshots, u.Log)
}

// environment has ZooKeeper's keys, those of Java too: clients look for them.
func environment() string {
	host, _ := os.Hostname()
	dir, _ := os.Getwd()
	var b strings.Builder
	b.WriteString("Environment:\n")
	for _, pair := range [][2]string{
		{"zookeeper.version", strings.TrimSpace(strings.TrimPrefix(version, "Zookeeper version: "))}, {"host.name", host},
		{"java.version", "none"}, {"java.vendor", "none"}, {"go.version", runtime.Version()},
		{"os.name", runtime.GOOS}, {"os.arch", runtime.GOARCH}, {"user.dir", dir},
	} {
		fmt.Fprintf(&b, "%s=%s\n", pair[0], pair[1])
	}
	return b.String()
}

// dump lists sessions and their ephemerals.
func (s *Server) dump() string {
	var ids, lines []string
	owners := 0
	s.store.View(func(t *tree.Tree) {
		t.Sessions(func(id int64, _ int32) {
			ids = append(ids, fmt.Sprintf("\t0x%x\n", id))
			if paths := t.Ephemerals(id); len(paths) > 0 {
				owners++
				lines = append(lines, fmt.Sprintf("0x%x:\n\t%s\n", id, strings.Join(paths, "\n\t")))
			}
		})
	})
	slices.Sort(ids)
	slices.Sort(lines)
	return fmt.Sprintf("SessionTracker dump:\nSessions (%d):\n%sephemeral nodes dump:\nSessions with Ephemerals (%d):\n%s", len(ids), strings.Join(ids, ""), owners, strings.Join(lines, ""))
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

// mntr has the names of ZooKeeper that mean something here, and the newest zxid.
func (s *Server) mntr() string {
	size, zxid, conns := s.size()
	r := s.meter.read()
	var b strings.Builder
	for _, line := range []struct {
		name  string
		value any
	}{
		{"version", strings.TrimSpace(strings.TrimPrefix(version, "Zookeeper version: "))}, {"server_state", "standalone"},
		{"avg_latency", fmt.Sprintf("%.1f", r.average)}, {"min_latency", r.least}, {"max_latency", r.most},
		{"packets_received", r.received}, {"packets_sent", r.sent}, {"bytes_received_count", r.bytes},
		{"num_alive_connections", conns}, {"outstanding_requests", len(s.submit)}, {"auth_failed_count", s.authFailed.Load()},
		{"znode_count", size.Nodes}, {"watch_count", size.Watches}, {"ephemerals_count", size.Ephemerals}, {"approximate_data_size", size.DataBytes},
		{"global_sessions", size.Sessions}, {"local_sessions", 0}, {"uptime", time.Since(s.began).Milliseconds()}, {"last_processed_zxid", zxid},
	} {
		fmt.Fprintf(&b, "zk_%s\t%v\n", line.name, line.value)
	}
	if open, most, ok := descriptors(); ok {
		fmt.Fprintf(&b, "zk_open_file_descriptor_count\t%d\nzk_max_file_descriptor_count\t%d\n", open, most)
	}
	return b.String()
}

// descriptors are those of the process; not every system tells.
func descriptors() (open int, most uint64, ok bool) {
	list, err := os.ReadDir("/proc/self/fd")
	var limit unix.Rlimit
	if err != nil || unix.Getrlimit(unix.RLIMIT_NOFILE, &limit) != nil {
		return 0, 0, false
	}
	return len(list), limit.Cur, true
}
