package engine

import "time"

// flushDue is Kafka's own flushing, for page-cache mode. It reports whether the
// appends of this write have to wait for a sync because flush.messages is
// reached, and sees to flush.ms. Caller holds mu.
func (l *Log) flushDue(c *Config, records int64) bool {
	l.mu.unflushed += records
	if l.mu.unflushed >= c.FlushMessages {
		l.mu.unflushed = 0
		l.mu.last = l.home.Load().addSync()
		return true
	}
	if c.FlushEvery != noLimit && l.mu.flushTimer == nil {
		l.flushes.Add(1)
		// Owner: the log. Runs once; Close stops it, or waits for it.
		l.mu.flushTimer = time.AfterFunc(c.FlushEvery, l.flushNow)
	}
	return false
}

func (l *Log) flushNow() {
	defer l.flushes.Done()
	l.mu.Lock()
	l.mu.flushTimer = nil // armed again by the next append
	l.mu.Unlock()
	if l.closed.Load() {
		return // Close syncs
	}
	if err := l.Sync(); err != nil {
		l.logger.Error("flush.ms: sync failed", "log", l.Dir(), "error", err)
	}
}
