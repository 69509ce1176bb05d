package broker

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// logLimit lets one line of a kind through every logEvery, and tells with the
// next one how many were left out: clients can provoke these lines at will.
type logLimit struct {
	mu      sync.Mutex
	last    time.Time
	skipped int
}

func (l *logLimit) log(logger *slog.Logger, level slog.Level, message string, args ...any) {
	now := time.Now()
	l.mu.Lock()
	if now.Sub(l.last) < logEvery {
		l.skipped++
		l.mu.Unlock()
		return
	}
	skipped := l.skipped
	l.last, l.skipped = now, 0
	l.mu.Unlock()
	if skipped > 0 {
		args = append(args, "more_like_this", skipped)
	}
	logger.Log(context.Background(), level, message, args...)
}
