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

// flushSoon has the log synced in the background now. Caller holds mu, and the log is not closed.
func (l *Log) flushSoon() {
	if t := l.mu.flushTimer; t == nil || !t.Stop() { // else it is that one's place among the flushes
		l.flushes.Add(1)
	}
	l.mu.flushTimer = time.AfterFunc(0, l.flushNow)
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
		l.logger.Error("sync in the background failed", "log", l.Dir(), "error", err)
	}
}
