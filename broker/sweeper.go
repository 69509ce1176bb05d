package broker

import (
	"log/slog"
	"net"
	"time"

	"golang.org/x/sys/unix"
)

// sweepState is what the sweeper remembers of a connection. Its own; no lock.
type sweepState struct {
	received int64     // at the last look
	acked    uint64    // bytes the client's system took, at the last look
	since    time.Time // when something last changed

	slowSince    time.Time // start of the current stall check
	slowReceived int64
}

// sweep looks at all connections now and then: it closes those that are idle
// for too long (F119), those whose client takes no answers, and those that hold
// memory which others wait for without sending on (F131). Connections therefore
// need no timers of their own.
//
// Owner: the broker; ends when it stops; Stop waits for it.
func (b *Broker) sweep() {
	defer b.background.Done()
	every := maxSweep
	if idle := b.config.Socket.IdleMax; idle > 0 {
		every = min(every, max(idle/10, 10*time.Millisecond))
	}
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	trimmed := time.Now()
	for {
		select {
		case <-b.stopping:
			return
		case now := <-ticker.C:
			b.conns.each(func(c *conn) { c.look(now) })
			if now.Sub(trimmed) >= trimEvery {
				trimmed = now
				b.buffers.trim()
				b.telemetry.expire(b.now())
			}
		}
	}
}

func (c *conn) look(now time.Time) {
	s := &c.sweep
	received, acked := c.received.Load(), s.acked
	writing := c.writing.Load()
	if writing {
		acked = c.acked()
	}
	// A request that is outstanding without a write going on (a held fetch)
	// means that the client waits for us: not idle.
	waiting := !writing && c.state.Load() == connBusy
	if s.since.IsZero() || waiting || received != s.received || acked != s.acked {
		s.received, s.acked, s.since = received, acked, now
	}
	c.lookSlow(now, received)
	idle := c.b.config.Socket.IdleMax
	if idle < 0 || now.Sub(s.since) < idle {
		return
	}
	switch {
	case c.state.CompareAndSwap(connIdle, connClosing):
		// The socket's receive queue is empty, so this sends FIN and not RST.
		_ = c.nc.Close()
	case writing && c.writing.Load():
		c.b.limits.connections.log(c.log, slog.LevelInfo, "closing a connection: the client takes no answers", "idle", now.Sub(s.since).Round(time.Second))
		_ = c.nc.Close()
	}
}

// lookSlow closes a connection whose large frame arrives too slowly while
// others wait for memory.
func (c *conn) lookSlow(now time.Time, received int64) {
	s := &c.sweep
	if c.frames.held.Load() == 0 || c.frames.waiting.Load() || c.b.budget.waiting.Load() == 0 || s.slowSince.IsZero() {
		s.slowSince, s.slowReceived = now, received
		return
	}
	if now.Sub(s.slowSince) < stallCheck {
		return
	}
	if received-s.slowReceived < stallRate*int64(stallCheck/time.Second) && c.state.CompareAndSwap(connIdle, connClosing) {
		c.b.limits.connections.log(c.log, slog.LevelWarn, "closing a connection: its request arrives too slowly while others wait for memory",
			"bytes_held", c.frames.held.Load(), "queued.max.request.bytes", c.b.budget.limit)
		_ = c.nc.Close()
	}
	s.slowSince, s.slowReceived = now, received
}

// acked is how many bytes of our answers the client's system has taken.
func (c *conn) acked() (n uint64) {
	if _, ok := c.nc.(*net.TCPConn); !ok || c.raw == nil {
		return 0
	}
	_ = c.raw.Control(func(fd uintptr) {
		if info, err := unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO); err == nil {
			n = info.Bytes_acked
		}
	})
	return n
}
