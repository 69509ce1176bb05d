package server

import (
	"crypto/hmac"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"millrace/coord/zk/expiry"
	"millrace/coord/zk/proto"
	"millrace/coord/zk/store"
	"millrace/coord/zk/tree"
)

// Config says how to serve; its zero value is usable. Without a Listener only Dial connects. The key of
// ZooKeeper's configuration is named beside each field that has one.
type Config struct {
	Listener net.Listener // the server's from Start on

	Tick        time.Duration // tickTime; 0: 2 s
	MinTimeout  time.Duration // minSessionTimeout; 0: 2 ticks
	MaxTimeout  time.Duration // maxSessionTimeout; 0: 20 ticks
	MaxRequest  int           // jute.maxbuffer, bytes; 0: 1,048,575
	MaxPerHost  int           // maxClientCnxns; 0: 60; < 0: no limit
	Rules       tree.Rules    // enforceQuota, extendedTypesEnabled, skipACL
	SuperDigest string        // DigestAuthenticationProvider.superDigest; "": nobody
	Words       []string      // 4lw.commands.whitelist; nil: srvr; "*": all that there are
	ServerID    uint8         // the top byte of session ids; at most 254
	Logger      *slog.Logger  // nil: discarded
}

func (c *Config) complete() error {
	if c.ServerID > 254 {
		return fmt.Errorf("zookeeper server: ServerID=%d: must be at most 254, since 255 marks TTL nodes", c.ServerID)
	}
	def := func(d *time.Duration, v time.Duration) {
		if *d == 0 {
			*d = v
		}
	}
	def(&c.Tick, 2*time.Second)
	def(&c.MinTimeout, 2*c.Tick)
	def(&c.MaxTimeout, 20*c.Tick)
	if c.MaxRequest == 0 {
		c.MaxRequest = 0xfffff
	}
	if c.MaxPerHost == 0 {
		c.MaxPerHost = 60
	}
	if c.Words == nil {
		c.Words = []string{"srvr"}
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return nil
}

// Server is a service that runs.
type Server struct {
	cfg     Config
	store   *store.Store
	secret  []byte
	tracker *expiry.Tracker
	budget  budget
	submit  chan *request
	stop    chan struct{}
	began   time.Time
	running sync.WaitGroup

	meter      meter
	authFailed atomic.Int64
	traceMask  atomic.Int64
	overSoft   map[string]time.Time // quotas warned of, and when; the committer's

	mu       sync.Mutex // after the store's
	stopped  bool
	conns    map[tree.Watcher]*conn
	sessions map[int64]*conn
	hosts    map[string]int
	nextID   int64
	nextConn tree.Watcher
	failed   error
}

// Start serves what st has until Close. Every session in it gets its whole time-out. Session passwords are made with secret: it must
// be the same after a restart, or no session is resumed.
func Start(st *store.Store, secret []byte, cfg Config) (*Server, error) {
	if len(secret) == 0 {
		return nil, errors.New("zookeeper server: a secret must be given")
	}
	if err := cfg.complete(); err != nil {
		return nil, err
	}
	s := &Server{
		cfg: cfg, store: st, secret: secret, tracker: expiry.New(cfg.Tick), submit: make(chan *request, maxQueued), stop: make(chan struct{}), began: time.Now(),
		conns: map[tree.Watcher]*conn{}, sessions: map[int64]*conn{}, hosts: map[string]int{},
		nextID: int64(uint64(time.Now().UnixMilli())<<24>>8) | int64(uint64(cfg.ServerID)<<56),
	}
	s.traceMask.Store(traceMask)
	s.budget.init(max(budgetBytes, int64(cfg.MaxRequest)))
	s.store.View(func(t *tree.Tree) {
		t.Sessions(func(id int64, timeout int32) { s.tracker.Add(id, time.Duration(timeout)*time.Millisecond) })
	})
	if cfg.Listener != nil {
		s.running.Go(s.accept) // ends when the listener is closed
	}
	s.running.Go(s.committer) // ends with stop
	s.running.Go(s.ticker)    // ends with stop
	return s, nil
}

// Addr is where the service listens; nil if it does not.
func (s *Server) Addr() net.Addr {
	if s.cfg.Listener == nil {
		return nil
	}
	return s.cfg.Listener.Addr()
}

// Err is what ended the service, if it was not Close: the store takes no writes any more.
func (s *Server) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.failed
}

// Done is closed when the service ends, by Close or because of Err.
func (s *Server) Done() <-chan struct{} { return s.stop }

// EndSession ends a session as if it had expired: for whoever knows that its client is gone. It returns once the session's nodes are.
func (s *Server) EndSession(id int64) error {
	done := make(chan bool, 1)
	if s.put(&request{done: done, txn: tree.Txn{Session: id, Rules: tree.Internal, Req: proto.Request{Op: proto.OpCloseSession}}}) {
		select {
		case stored := <-done:
			if stored {
				s.tracker.Remove(id)
				return nil
			}
		case <-s.stop:
		}
	}
	return fmt.Errorf("session 0x%x could not be ended", id)
}

// Close ends all connections, but no session, and waits for everything of the server's.
// The store stays its owner's.
func (s *Server) Close() {
	s.shut(nil)
	s.running.Wait()
}

// shut begins the end.
func (s *Server) shut(why error) {
	s.mu.Lock()
	if s.stopped {
		s.mu.Unlock()
		return
	}
	s.stopped, s.failed = true, why
	close(s.stop)
	if s.cfg.Listener != nil {
		s.cfg.Listener.Close()
	}
	var list []*conn
	for _, c := range s.conns {
		list = append(list, c)
	}
	s.mu.Unlock()
	s.budget.close()
	for _, c := range list {
		c.close()
	}
}

func (s *Server) accept() {
	for {
		nc, err := s.cfg.Listener.Accept()
		if err != nil {
			select {
			case <-s.stop:
				return
			case <-time.After(10 * time.Millisecond): // out of descriptors, say
				continue
			}
		}
		host, _, _ := net.SplitHostPort(nc.RemoteAddr().String())
		if !s.serve(nc, host, s.cfg.MaxPerHost) {
			s.cfg.Logger.Warn("connection refused", "host", host, "maxClientCnxns", s.cfg.MaxPerHost)
			nc.Close()
		}
	}
}

// serve takes a connection, unless its host has most already or the server ends.
func (s *Server) serve(nc net.Conn, host string, most int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped || most > 0 && s.hosts[host] >= most {
		return false
	}
	s.nextConn++
	c := newConn(s, nc, host, s.nextConn)
	s.conns[c.watcher] = c
	s.hosts[host]++
	s.running.Add(2)
	go c.read()  // ends with the connection
	go c.write() // likewise
	return true
}

// Dial connects a client in the same process, past the listener and its limits.
func (s *Server) Dial() (net.Conn, error) {
	client, nc := newPipe()
	if !s.serve(nc, "in-process", -1) {
		client.Close()
		nc.Close()
		return nil, net.ErrClosed
	}
	return client, nil
}

// forget takes a connection that has ended out of all tables.
func (s *Server) forget(c *conn) {
	s.store.Change(func(t *tree.Tree) { t.Unwatch(c.watcher) })
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns, c.watcher)
	if s.sessions[c.session] == c {
		delete(s.sessions, c.session)
	}
	if s.hosts[c.host]--; s.hosts[c.host] == 0 {
		delete(s.hosts, c.host)
	}
}

// ticker expires sessions and reaps.
func (s *Server) ticker() {
	every := time.NewTicker(s.cfg.Tick)
	defer every.Stop()
	reaped := time.Now()
	var memory lean
	s.tracker.Advance(time.Since(s.began))
	for {
		select {
		case <-s.stop:
			return
		case <-every.C:
		}
		var bytes int64
		s.store.View(func(t *tree.Tree) { bytes = t.Bytes() })
		memory.adjust(bytes)
		for _, id := range s.tracker.Advance(time.Since(s.began)) {
			s.put(&request{txn: tree.Txn{Session: id, Rules: tree.Internal, Req: proto.Request{Op: proto.OpCloseSession}}})
		}
		if time.Since(reaped) < reapEvery {
			continue
		}
		reaped = time.Now()
		var paths []string
		s.store.View(func(t *tree.Tree) { paths = t.Reapable(reaped.UnixMilli(), reapMost) })
		for _, path := range paths {
			s.put(&request{txn: tree.Txn{Rules: tree.Internal, Req: proto.Request{Op: proto.OpDeleteContainer, Path: path}}})
		}
	}
}

// passwd is the password of a session.
func (s *Server) passwd(id int64) []byte {
	m := hmac.New(sha256.New, s.secret)
	fmt.Fprintf(m, "%016x", uint64(id))
	return m.Sum(nil)[:proto.PasswdSize]
}

// newSession is an id that no session has.
func (s *Server) newSession() (id int64) {
	s.store.View(func(t *tree.Tree) {
		s.mu.Lock()
		defer s.mu.Unlock()
		for taken := true; taken; s.nextID++ {
			id = s.nextID
			_, taken = t.HasSession(id)
		}
	})
	return id
}

// budget is bytes that requests in flight share.
type budget struct {
	mu     sync.Mutex
	freed  *sync.Cond
	left   int64
	closed bool
}

func (b *budget) init(n int64) {
	b.left = n
	b.freed = sync.NewCond(&b.mu)
}

// take waits for n bytes; false: the server ends.
func (b *budget) take(n int64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	for b.left < n && !b.closed {
		b.freed.Wait()
	}
	b.left -= n
	return !b.closed
}

func (b *budget) give(n int64) {
	b.mu.Lock()
	b.left += n
	b.mu.Unlock()
	b.freed.Broadcast()
}

func (b *budget) close() {
	b.mu.Lock()
	b.closed = true
	b.mu.Unlock()
	b.freed.Broadcast()
}
