package broker

import (
	"errors"
	"sync"

	"millrace/engine"
)

// retainSoon applies retention to logs at once, where the next regular check may
// be minutes away: after their settings changed or their records were deleted.
type retainSoon struct {
	kick chan struct{} // cap 1

	mu   sync.Mutex
	logs map[*engine.Log]struct{} // waiting; bounded by the logs there are
}

func newRetainSoon() *retainSoon {
	return &retainSoon{kick: make(chan struct{}, 1), logs: map[*engine.Log]struct{}{}}
}

func (r *retainSoon) add(logs ...*engine.Log) {
	if len(logs) == 0 {
		return
	}
	r.mu.Lock()
	for _, log := range logs {
		r.logs[log] = struct{}{}
	}
	r.mu.Unlock()
	select {
	case r.kick <- struct{}{}:
	default: // one is pending, and takes all
	}
}

func (r *retainSoon) take() map[*engine.Log]struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	logs := r.logs
	r.logs = map[*engine.Log]struct{}{}
	return logs
}

// retain is the goroutine behind retainSoon.
func (b *Broker) retain() {
	defer b.background.Done()
	for {
		select {
		case <-b.stopping:
			return
		case <-b.retention.kick:
		}
		for log := range b.retention.take() {
			if b.isStopping() {
				return
			}
			if _, err := log.Retain(b.now()); err != nil && !errors.Is(err, engine.ErrClosed) && !errors.Is(err, engine.ErrPoisoned) {
				b.log.Error("retention failed; it is tried again at the next check", "log", log.Dir(), "error", err)
			}
		}
	}
}
