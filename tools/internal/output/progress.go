package output

import (
	"io"
	"sync"
	"time"

	"github.com/schollz/progressbar/v3"
)

// redraw is how often a progress line may change: often enough to look alive,
// seldom enough to cost nothing.
const redraw = 200 * time.Millisecond

// Progress is a live line on a terminal. A nil Progress does nothing, which is
// what StartProgress returns when nobody watches. Safe for concurrent use.
type Progress struct {
	mu  sync.Mutex
	bar *progressbar.ProgressBar
}

// StartProgress begins a progress line on w if w is a terminal. total < 0 means
// that the end is not known. Counts are bytes if asBytes, else records.
func StartProgress(w io.Writer, total int64, asBytes bool, what string) *Progress {
	if !IsTerminal(w) {
		return nil
	}
	o := []progressbar.Option{
		progressbar.OptionSetWriter(w),
		progressbar.OptionSetDescription(what),
		progressbar.OptionShowCount(),
		progressbar.OptionThrottle(redraw),
		progressbar.OptionSetWidth(24),
		progressbar.OptionClearOnFinish(),
		progressbar.OptionSetPredictTime(true),
	}
	if asBytes {
		o = append(o, progressbar.OptionShowBytes(true))
	} else {
		o = append(o, progressbar.OptionShowIts(), progressbar.OptionSetItsString("rec"))
	}
	return &Progress{bar: progressbar.NewOptions64(total, o...)}
}

// Set moves the line to n.
func (p *Progress) Set(n int64) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	_ = p.bar.Set64(n) // only fails beyond the total, where a stale line does no harm
}

// Aside clears the line, runs f, which may print, and lets the line come back.
func (p *Progress) Aside(f func()) {
	if p == nil {
		f()
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	_ = p.bar.Clear()
	f()
}

// Stop clears the line for good.
func (p *Progress) Stop() {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	_ = p.bar.Exit()
	_ = p.bar.Clear()
}
