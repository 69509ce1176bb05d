package broker

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"sync/atomic"
	"time"
)

// health serves /healthz (the process lives) and /readyz (it serves clients,
// from all its data directories) on the admin listener.
type health struct {
	b      *Broker
	socket net.Listener
	server *http.Server
	ready  atomic.Bool
}

func newHealth(ctx context.Context, b *Broker, address string) (*health, error) {
	var lc net.ListenConfig
	lc.SetMultipathTCP(false)
	socket, err := lc.Listen(ctx, "tcp", address)
	if err != nil {
		return nil, &ConfigError{Key: "admin.listener", Value: address, Rule: "cannot listen: " + err.Error()}
	}
	h := &health{b: b, socket: socket}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.HandleFunc("GET /readyz", h.readyz)
	h.server = &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second, IdleTimeout: time.Minute, MaxHeaderBytes: 16 << 10}
	// Answers from here on, so that /readyz can say "starting" while logs are
	// recovered. Owner: the broker; ends with close, which closes the socket.
	go func() { _ = h.server.Serve(socket) }()
	return h, nil
}

func (h *health) readyz(w http.ResponseWriter, _ *http.Request) {
	switch {
	case h.b.isStopping():
		http.Error(w, "stopping", http.StatusServiceUnavailable)
	case !h.ready.Load():
		http.Error(w, "starting", http.StatusServiceUnavailable)
	case len(h.b.store.OfflineDirs()) > 0:
		http.Error(w, "a data directory is offline", http.StatusServiceUnavailable)
	default:
		fmt.Fprintln(w, "ok")
	}
}

func (h *health) setReady()    { h.ready.Store(true) }
func (h *health) addr() string { return h.socket.Addr().String() }
func (h *health) close()       { _ = h.server.Close() }
