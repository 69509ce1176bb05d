package engine

import "millrace/engine/producers"

// Producers lists the idempotent producers that the log remembers, by id.
func (l *Log) Producers() []producers.State {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.mu.producers.List()
}
