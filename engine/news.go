package engine

import "sync/atomic"

// news is what readers at the end of a log wait for, and what tells them that
// bytes they look at, or have read, were taken back. It costs a writer one load
// as long as nobody waits.
type news struct {
	waiting atomic.Pointer[chan struct{}] // closed by the next wake; nil: nobody waits
	newest  atomic.Pointer[cutNote]       // the end of the chain; nil: no reader has begun yet
}

// cutNote says that everything at or above an offset was removed. A reader keeps
// the note that was the newest when it began, and finds the later ones behind it;
// what no reader holds any more is garbage.
type cutNote struct {
	at   Offset
	next atomic.Pointer[cutNote]
}

// changed returns a channel that is closed when there may be something new to
// read, or the log was cut or closed. To be asked for before the look at the log.
func (p *news) changed() <-chan struct{} {
	for {
		if c := p.waiting.Load(); c != nil {
			return *c
		}
		c := make(chan struct{})
		if p.waiting.CompareAndSwap(nil, &c) {
			return c
		}
	}
}

// wake ends the waits that have begun. It is called after the change: a reader
// that has not seen the change has left its channel before wake looks for it.
func (p *news) wake() {
	if c := p.waiting.Load(); c != nil && p.waiting.CompareAndSwap(c, nil) {
		close(*c)
	}
}

// cut tells that everything at or above o goes. The caller holds Log.mu, has
// lowered End, and has not touched any file yet: a reader that finds no note
// after it has copied bytes has copied them whole.
func (p *news) cut(o Offset) {
	if last := p.newest.Load(); last != nil {
		n := &cutNote{at: o}
		last.next.Store(n)
		p.newest.Store(n)
	}
	p.wake()
}

// latest is the note from which a new reader goes on.
func (p *news) latest() *cutNote {
	if p.newest.Load() == nil {
		p.newest.CompareAndSwap(nil, new(cutNote))
	}
	return p.newest.Load()
}
