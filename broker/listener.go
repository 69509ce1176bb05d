package broker

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"strconv"
	"sync"
	"time"

	"millrace/engine"
)

// listener takes connections on one address. Its goroutine ends when the socket
// is closed; Broker.Stop waits for it.
type listener struct {
	name   string
	socket net.Listener
}

// listen binds an address. Multipath TCP is off: Go would turn it on, and such
// sockets refuse part of what plain ones do (LIMITS, fetch path).
func listen(ctx context.Context, l Listener) (*listener, error) {
	var lc net.ListenConfig
	lc.SetMultipathTCP(false)
	socket, err := lc.Listen(ctx, "tcp", l.Address())
	if err != nil {
		return nil, &ConfigError{Key: "listeners", Value: l.String(), Rule: "cannot listen: " + err.Error()}
	}
	return &listener{name: l.Name, socket: socket}, nil
}

// port is the one bound, also where 0 was asked for.
func (l *listener) port() int32 {
	_, port, err := net.SplitHostPort(l.socket.Addr().String())
	if err != nil {
		return 0
	}
	n, _ := strconv.ParseInt(port, 10, 32)
	return int32(n)
}

func (b *Broker) accept(l *listener) {
	defer b.accepting.Done()
	for {
		nc, err := l.socket.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			// Most likely no descriptors are left: others may close theirs.
			b.limits.connections.log(b.log, slog.LevelError, "accepting a connection failed", "listener", l.name, "error", err)
			select {
			case <-time.After(acceptPause):
			case <-b.stopping:
				return
			}
			continue
		}
		b.conns.admit(b, nc, l.name)
	}
}

// connections is the set of those open, and the rules about how many there may be.
type connections struct {
	mu      sync.Mutex
	open    map[*conn]struct{}
	perIP   map[string]int
	closed  bool
	most    int // by the descriptors that the process may have
	running sync.WaitGroup
}

func newConnections() *connections {
	return &connections{open: map[*conn]struct{}{}, perIP: map[string]int{}, most: engine.Sockets()}
}

// admit starts serving a connection, or closes it at once.
func (s *connections) admit(b *Broker, nc net.Conn, listener string) {
	c := newConn(b, nc, listener)
	if why := s.add(c, &b.configNow().Socket); why != "" {
		b.limits.connections.log(c.log, slog.LevelWarn, "refusing a connection: "+why)
		_ = nc.Close() // after the line that says why: who sees the one finds the other
		return
	}
	// Owner: the connection. Ends when the client goes, when the sweeper or a
	// stop closes the socket. Stop waits for it.
	go func() {
		defer s.running.Done()
		defer s.remove(c)
		c.serve()
	}()
}

// add counts a connection in, or says which limit forbids it.
func (s *connections) add(c *conn, config *SocketConfig) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	perIP := config.MaxPerIP
	if n, ok := config.MaxPerIPOverrides[c.ip]; ok {
		perIP = n
	}
	switch {
	case s.closed:
		return "stopping"
	case len(s.open) >= config.MaxConnections:
		return "max.connections=" + strconv.Itoa(config.MaxConnections) + " is reached"
	case len(s.open) >= s.most:
		return strconv.Itoa(s.most) + " are open, and the logs need what descriptors are left; raise RLIMIT_NOFILE (ulimit -n, LimitNOFILE= of the service) for more"
	case s.perIP[c.ip] >= perIP:
		return "max.connections.per.ip=" + strconv.Itoa(perIP) + " is reached for " + c.ip
	}
	s.open[c] = struct{}{}
	s.perIP[c.ip]++
	s.running.Add(1)
	return ""
}

func (s *connections) remove(c *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, c)
	if s.perIP[c.ip]--; s.perIP[c.ip] == 0 {
		delete(s.perIP, c.ip)
	}
}

// each calls f for every open connection.
func (s *connections) each(f func(*conn)) {
	s.mu.Lock()
	all := make([]*conn, 0, len(s.open))
	for c := range s.open {
		all = append(all, c)
	}
	s.mu.Unlock()
	for _, c := range all {
		f(c)
	}
}

// drain ends all connections: idle ones at once, the others after the request
// they are in, and whatever is left when ctx ends by closing its socket. It
// reports whether all have ended: one that waits for a disk that hangs may not.
func (s *connections) drain(ctx context.Context) bool {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.each((*conn).interrupt)
	done := make(chan struct{})
	go func() { // ends with the last connection
		s.running.Wait()
		close(done)
	}()
	select {
	case <-done:
		return true
	case <-ctx.Done():
	}
	s.each(func(c *conn) { _ = c.nc.Close() })
	select {
	case <-done:
		return true
	case <-time.After(cutOffTime):
		return false
	}
}
