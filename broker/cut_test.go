package broker

import (
	"context"
	"errors"
	"net"
	"sync"
)

// cut is a client's network that can be cut: then nothing gets through any more,
// as if the machine had died.
type cut struct {
	mu    sync.Mutex
	dead  bool
	conns []net.Conn
}

func newCut() *cut { return &cut{} }

func (c *cut) dial(ctx context.Context, network, host string) (net.Conn, error) {
	var d net.Dialer
	nc, err := d.DialContext(ctx, network, host)
	c.mu.Lock()
	defer c.mu.Unlock()
	if err == nil && c.dead {
		nc.Close()
		return nil, errors.New("the network is cut")
	}
	c.conns = append(c.conns, nc)
	return nc, err
}

func (c *cut) cut() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.dead = true
	for _, nc := range c.conns {
		if nc != nil {
			nc.Close()
		}
	}
}
