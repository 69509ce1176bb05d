package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"millrace/coord/controller/znode"
)

func isNoNode(err error) bool     { return errors.Is(err, zk.ErrNoNode) }
func isNodeExists(err error) bool { return errors.Is(err, zk.ErrNodeExists) }
func isBadVersion(err error) bool { return errors.Is(err, zk.ErrBadVersion) }

// events are the paths whose watches fired and that nobody has looked at yet, each once; so their number is bounded by that of watches.
type events struct {
	wake chan struct{} // holds a token if there may be something

	mu      sync.Mutex
	waiting []string
	known   map[string]bool
}

func newEvents() *events {
	return &events{wake: make(chan struct{}, 1), known: map[string]bool{}}
}

func (e *events) wakeUp() {
	select {
	case e.wake <- struct{}{}:
	default:
	}
}

func (e *events) add(path string) {
	e.mu.Lock()
	if !e.known[path] {
		e.known[path] = true
		e.waiting = append(e.waiting, path)
	}
	e.mu.Unlock()
	e.wakeUp()
}

func (e *events) take() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	out := e.waiting
	e.waiting = nil
	clear(e.known)
	return out
}

// sessionState tells whether one session is lost. Events of an older session than the present one say nothing.
type sessionState struct {
	mu    sync.Mutex
	lost  bool
	away  bool // it has no connection
	again bool // it has another connection than when somebody looked last
}

func (s *sessionState) isLost() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lost
}

func (s *sessionState) isAway() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.away || s.lost
}

func (s *sessionState) takeAgain() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	again := s.again
	s.again = false
	return again
}

// sessionConn is a Conn that knows whether its session is lost.
type sessionConn struct {
	Conn
	state *sessionState
}

// dial gets a session.
func (s *Service) dial(ctx context.Context) (Conn, error) {
	state := &sessionState{}
	conn, err := s.o.Dial(ctx, func(e zk.Event) {
		if e.Type == zk.EventSession {
			state.mu.Lock()
			state.lost = state.lost || e.State == zk.StateExpired
			state.again = state.again || e.State == zk.StateHasSession
			state.away = e.State == zk.StateDisconnected || state.away && e.State != zk.StateHasSession
			state.mu.Unlock()
			s.events.wakeUp()
			return
		}
		s.events.add(e.Path)
	})
	if err != nil {
		return nil, err
	}
	return sessionConn{conn, state}, nil
}

// begin takes a session into use. Caller holds mu.
func (s *Service) begin(conn Conn) {
	s.mu.conn, s.mu.epoch, s.mu.stale = conn, 0, true
	s.member.conn.Store(&conn)
}

// drop gives up the session and what stood on it. Caller holds mu.
func (s *Service) drop() {
	s.resign("its session is over")
	if s.mu.conn != nil {
		s.mu.conn.Close()
	}
	s.mu.conn, s.mu.epoch, s.mu.stale = nil, 0, true
}

// doubt notes that a write's outcome is unknown, so nothing that is known can be relied on. Caller holds mu.
func (s *Service) doubt(err error) {
	s.o.Logger.Warn("coordination did not answer; the tree is read again", "error", err)
	s.mu.stale = true
	s.events.wakeUp()
}

// resign ends this broker's office: every later write of this office would be refused anyway (C1). Caller holds mu.
func (s *Service) resign(why string) {
	if s.mu.lead == nil {
		return
	}
	s.o.Logger.Info("no longer the controller", "epoch", s.mu.lead.epoch, "reason", why)
	s.mu.lead, s.mu.stale = nil, true
	s.events.wakeUp()
}

// run keeps a session and acts on what changes in the tree, until Close.
func (s *Service) run() {
	defer close(s.ended)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-s.ctx.Done():
			return
		case <-s.events.wake:
		case <-timer.C:
		}
		if err := s.step(); err != nil && s.ctx.Err() == nil {
			if !errors.Is(err, errOldLife) {
				s.o.Logger.Warn("coordination", "error", err)
			}
			timer.Reset(s.o.Retry)
		}
	}
}

// step brings everything up to date once.
func (s *Service) step() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c, ok := s.mu.conn.(sessionConn); ok && c.state.isLost() {
		s.o.Logger.Warn("the session with coordination is lost")
		s.status.expired.Add(1)
		s.drop()
	} else if ok && c.state.takeAgain() {
		s.mu.stale = true
	}
	if s.mu.conn == nil {
		ctx, cancel := context.WithTimeout(s.ctx, s.o.SessionTimeout)
		defer cancel()
		s.mu.Unlock() // what needs the tree is refused meanwhile, not held up
		conn, err := s.dial(ctx)
		s.mu.Lock()
		if err != nil {
			return err
		}
		s.begin(conn)
	}
	paths := s.events.take()
	if s.mu.stale {
		return s.resync() // looks at everything
	}
	for _, path := range paths {
		if err := s.changed(path); err != nil {
			s.mu.stale = true
			s.events.wakeUp()
			return fmt.Errorf("after a change of %s: %w", path, err)
		}
	}
	return nil
}

// resync reads everything again: after a start, a new session, an election, or a write whose outcome is unknown. Caller holds mu.
func (s *Service) resync() error {
	if s.mu.conn == nil {
		return errNoSession
	}
	if err := s.sameCluster(); err != nil { // before anything is written, or read for true
		return err
	}
	if err := s.makeNodes(); err != nil {
		return err
	}
	if s.mu.self != nil && s.mu.epoch == 0 { // first, as it may have to wait
		if err := s.register(); err != nil {
			return err
		}
	}
	all, err := s.followSettings(s.Image().Names())
	if err != nil {
		return err
	}
	s.member.replace(all)
	s.mu.stale = false // a write in doubt from here on sets it again
	return s.join()
}

// sameCluster says whether the tree is still the one that this broker began with (C5). One that has lost its data knows no topics; to follow it would be to
// delete all logs.
func (s *Service) sameCluster() error {
	data, _, err := s.mu.conn.Get(znode.ClusterIDPath, false)
	if isNoNode(err) {
		return fmt.Errorf("coordination has no %s: it has lost its data, or is another; nothing is taken from it or written to it until cluster %s is back", znode.ClusterIDPath, s.Image().ClusterID())
	}
	if err != nil {
		return err
	}
	id, err := znode.DecodeClusterID(data)
	if err != nil {
		return &damaged{znode.ClusterIDPath, err}
	}
	if id != s.Image().ClusterID() {
		return fmt.Errorf("coordination belongs to cluster %s, this broker to cluster %s: nothing is taken from it or written to it", id, s.Image().ClusterID())
	}
	return nil
}

// join registers this broker, if it is to be, and has it stand for election. What fails is done again with all else. Caller holds mu.
func (s *Service) join() (err error) {
	switch {
	case s.mu.stale:
		return s.resync()
	case s.mu.self == nil:
		return nil
	case s.mu.epoch == 0:
		err = s.register()
	}
	if err == nil {
		err = s.elect()
	}
	if err != nil {
		s.mu.stale = true
	}
	return err
}

// makeNodes makes the nodes that every broker makes at its start: those that are missing, in one multi, unless another broker makes them just now.
func (s *Service) makeNodes() error {
	paths := slices.Concat(znode.AlwaysThere, znode.AlwaysOurs)
	there := make([]bool, len(paths))
	err := s.each(len(paths), func(i int) error {
		stat, err := s.mu.conn.Exists(paths[i], false)
		there[i] = stat != nil
		return err
	})
	if err != nil {
		return err
	}
	var ops []any
	for i, path := range paths {
		if !there[i] {
			ops = append(ops, create(path, nil))
		}
	}
	if len(ops) == 0 {
		return nil
	}
	if _, err = multi(s.mu.conn, ops...); !isNodeExists(err) {
		return err
	}
	for _, path := range paths {
		if err := s.ensure(path); err != nil {
			return err
		}
	}
	return nil
}

// ensure makes a node if it is missing; its parent must be there.
func (s *Service) ensure(path string) error {
	stat, err := s.mu.conn.Exists(path, false)
	if err != nil || stat != nil {
		return err
	}
	if _, err := multi(s.mu.conn, create(path, nil)); err != nil && !isNodeExists(err) {
		return err
	}
	return nil
}

// errOldLife says that the node of this broker's last life has not expired yet.
var errOldLife = errors.New("the last life's session of this broker has not expired yet, or another broker has its id")

// register makes this broker's node, or writes it anew if it is this session's. The broker epoch is the transaction that made it. Caller holds mu.
func (s *Service) register() error {
	path := znode.BrokerPath(s.o.BrokerID)
	node := znode.Broker{Endpoints: s.mu.self.Endpoints, Protocols: s.o.Protocols, Rack: s.mu.self.Rack, JMXPort: -1, Timestamp: s.o.Now().UnixMilli()}
	if node.Protocols == nil {
		node.Protocols = map[string]string{}
		for _, e := range node.Endpoints {
			node.Protocols[e.Listener] = e.Listener
		}
	}
	stat, err := s.mu.conn.Exists(path, true)
	if err != nil {
		return err
	}
	ops := []any{createEphemeral(path, nil), set(path, node.Encode(), 0)} // the set tells the transaction that made it
	if stat != nil {
		if stat.EphemeralOwner != s.mu.conn.SessionID() {
			return fmt.Errorf("broker %d: %w", s.o.BrokerID, errOldLife)
		}
		ops = []any{set(path, node.Encode(), -1)}
	}
	results, err := multi(s.mu.conn, ops...)
	if err != nil {
		return err
	}
	s.mu.epoch = results[len(results)-1].Stat.Czxid
	s.member.life.Store(s.mu.epoch)
	return nil
}
