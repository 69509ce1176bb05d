package broker

import (
	"net/http"
	"runtime/pprof"
	execution "runtime/trace"
	"strconv"
	"time"
)

// The profiles of /debug/pprof, as `go tool pprof` and `go tool trace` ask for
// them. net/http/pprof is not used: importing it serves profiles from whatever
// program embeds a broker.

const (
	defaultProfileTime = 30 * time.Second
	maxProfileTime     = 2 * time.Minute
)

// serveProfiles adds the profiles to the admin listener.
func serveProfiles(mux *http.ServeMux) {
	mux.HandleFunc("GET /debug/pprof/profile", func(w http.ResponseWriter, r *http.Request) {
		if err := pprof.StartCPUProfile(w); err != nil {
			http.Error(w, err.Error(), http.StatusConflict)
			return
		}
		defer pprof.StopCPUProfile()
		sleepFor(r, defaultProfileTime)
	})
	mux.HandleFunc("GET /debug/pprof/trace", func(w http.ResponseWriter, r *http.Request) {
		if err := execution.Start(w); err != nil {
			http.Error(w, err.Error(), http.StatusConflict)
			return
		}
		defer execution.Stop()
		sleepFor(r, time.Second)
	})
	mux.HandleFunc("GET /debug/pprof/{name}", func(w http.ResponseWriter, r *http.Request) {
		p := pprof.Lookup(r.PathValue("name"))
		if p == nil {
			http.Error(w, "no such profile", http.StatusNotFound)
			return
		}
		debug, _ := strconv.Atoi(r.FormValue("debug"))
		if debug == 0 {
			w.Header().Set("Content-Type", "application/octet-stream")
		}
		_ = p.WriteTo(w, debug)
	})
}

// sleepFor waits as long as the request says, or until its client has gone.
func sleepFor(r *http.Request, d time.Duration) {
	if seconds, err := strconv.ParseFloat(r.FormValue("seconds"), 64); err == nil && seconds > 0 {
		d = time.Duration(min(seconds, maxProfileTime.Seconds()) * float64(time.Second))
	}
	select {
	case <-r.Context().Done():
	case <-time.After(d):
	}
}
