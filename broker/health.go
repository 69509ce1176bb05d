package broker

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// health serves the admin listener: /healthz (the process lives), /readyz (it
// serves clients, from all its data directories), /metrics, and profiles if
// millrace.admin.pprof says so.
type health struct {
	b      *Broker
	socket net.Listener
	server *http.Server
	ready  atomic.Bool

	scrapes sync.RWMutex // held for reading by a scrape, for writing once they must end
	ended   bool
}

// maxScrapes is how many scrapes may be going on; further ones get a 503.
const maxScrapes = 3

// scrapeTime is what one may take, reading included.
const scrapeTime = 30 * time.Second

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
	mux.Handle("GET /metrics", h.metrics())
	if on, _ := b.config.Get("millrace.admin.pprof"); on == "true" {
		serveProfiles(mux)
	}
	h.server = &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second, IdleTimeout: time.Minute, MaxHeaderBytes: 16 << 10}
	// Answers from here on, so that /readyz can say "starting" while logs are
	// recovered. Owner: the broker; ends with close, which closes the socket.
	go func() { _ = h.server.Serve(socket) }()
	return h, nil
}

// metrics gathers with a registry of the broker's own: there may be several in
// one program. What one collector cannot tell does not hide the rest.
func (h *health) metrics() http.Handler {
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	registry.MustRegister(&collector{b: h.b, ready: h.ready.Load, lagSeries: maxLagSeries})
	serve := promhttp.HandlerFor(registry, promhttp.HandlerOpts{
		ErrorLog:            scrapeErrors{h.b},
		ErrorHandling:       promhttp.ContinueOnError,
		MaxRequestsInFlight: maxScrapes,
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.scrapes.RLock()
		defer h.scrapes.RUnlock()
		if h.ended {
			http.Error(w, "stopping", http.StatusServiceUnavailable)
			return
		}
		// Who asks and does not read must not hold a place for ever.
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(scrapeTime))
		serve.ServeHTTP(w, r)
	})
}

// scrapeErrors logs what goes wrong in a scrape.
type scrapeErrors struct{ b *Broker }

// Println is what promhttp calls.
func (e scrapeErrors) Println(v ...any) { e.b.log.Warn("metrics: " + fmt.Sprint(v...)) }

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
		for _, d := range h.b.store.ScrubFindings() { // all else is served
			fmt.Fprintf(w, "damaged: %s at %d, offsets %d to %d\n", d.File, d.Position, d.From, d.To)
		}
	}
}

func (h *health) setReady()    { h.ready.Store(true) }
func (h *health) addr() string { return h.socket.Addr().String() }

// close ends all: connections at once, and a scrape before the logs that it
// walks are closed. A scrape's own waits are bounded (lagTimePatience).
func (h *health) close() {
	_ = h.server.Close()
	h.scrapes.Lock()
	h.ended = true
	h.scrapes.Unlock()
}
