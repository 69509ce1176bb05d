// Package broker is the Kafka-facing side of Millrace: configuration, listeners,
// connections, request memory, and one file for each API. It is thin: what a
// log is and does is engine's, a partition's role is replica's, the protocol's
// bytes are wire's, and what the cluster looks like is coord's.
//
// A broker is a library: any Go program may Start one. Reading order:
// broker.go, start.go, listener.go, conn.go, frames.go, budget.go, dispatch.go,
// produce.go, fetch.go, errors.go; config_table.go for the settings.
//
// Goroutines: one for each listener, one for each connection, the sweeper, and
// what engine.Store has. All end with Stop.
package broker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"millrace/coord"
	"millrace/coord/zk"
	"millrace/engine"
	"millrace/replica"
)

// Broker is one running broker.
type Broker struct {
	config  Config
	node    int32
	unclean bool // a data directory was not stopped cleanly
	log     *slog.Logger
	levels  *logLevels // of log and of what the other rooms log with
	now     func() time.Time

	store    *engine.Store
	built    *zk.Service // coordination in this process; nil: an ensemble's
	coord    coord.Service
	replicas *replica.Manager
	notMade  sync.Map // topic name → error: why its logs could not be made, until createTopics has told
	adminState
	groupState

	live atomic.Pointer[liveConfig] // config with what was set since the start, see config_layers.go

	buffers   *buffers
	budget    *budget
	sessions  *fetchSessions
	quotas    *quotas
	telemetry *telemetry
	retention *retainSoon
	conns     *connections

	listeners []*listener
	health    *health
	meters    *meters
	ready     Ready

	limits struct { // of log lines
		garbage, unsupported, acks0, storage, old, connections, throttled logLimit
	}

	ctx        context.Context // ends when the broker has drained
	cancel     context.CancelFunc
	stopping   chan struct{} // closed when a stop begins
	accepting  sync.WaitGroup
	background sync.WaitGroup
	stop       sync.Once
	stopped    chan struct{} // closed when all is over; stopErr is set before
	stopErr    error
}

// Addr is the address a listener is bound to ("host:port"), by its name; ""
// means the first one. "" if there is no such listener.
func (b *Broker) Addr(name string) string {
	for _, l := range b.listeners {
		if name == "" || l.name == name {
			return l.socket.Addr().String()
		}
	}
	return ""
}

// Ready tells what has started; for the line that says so.
func (b *Broker) Ready() Ready { return b.ready }

// Stop ends the broker: no new connections or requests, the requests at hand
// are answered, the logs are synced and closed, so that the next start need not
// recover. When ctx ends earlier, what is left is cut off; nothing that was
// acknowledged depends on a clean stop (L6). Later calls wait for the first.
func (b *Broker) Stop(ctx context.Context) error {
	b.stop.Do(func() {
		b.stopErr = b.shutDown(ctx)
		close(b.stopped)
	})
	<-b.stopped
	return b.stopErr
}

// Wait returns when the broker has stopped, with Stop's error.
func (b *Broker) Wait() error {
	<-b.stopped
	return b.stopErr
}

func (b *Broker) isStopping() bool {
	select {
	case <-b.stopping:
		return true
	default:
		return false
	}
}

func (b *Broker) shutDown(ctx context.Context) error {
	begun := time.Now()
	close(b.stopping)
	b.closeListeners()
	b.accepting.Wait()
	b.groups.Stop() // ends the waits in JoinGroup and SyncGroup
	draining, cancel := context.WithTimeout(ctx, drainTime)
	if !b.conns.drain(draining) {
		b.log.Error("some requests hang; closing the logs under them")
	}
	cancel()
	b.cancel()
	b.background.Wait()
	b.groups.Close() // before the logs that it writes to
	var errs []error
	if b.coord != nil {
		errs = append(errs, b.coord.Close())
	}
	if b.store != nil {
		if err := b.store.Close(ctx); err != nil {
			errs = append(errs, fmt.Errorf("closing the logs: %w", err))
		}
	}
	if b.built != nil {
		if err := b.built.Close(); err != nil {
			errs = append(errs, fmt.Errorf("closing coordination: %w", err))
		}
	}
	err := errors.Join(errs...)
	if err != nil {
		b.log.Error("stopped, but not cleanly; the next start will recover", "took", time.Since(begun), "error", err)
	} else {
		b.log.Info("stopped", "took", time.Since(begun).Round(time.Millisecond))
	}
	return err
}

func (b *Broker) closeListeners() {
	for _, l := range b.listeners {
		_ = l.socket.Close()
	}
	if b.health != nil {
		b.health.close()
	}
}
