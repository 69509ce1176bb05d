package engine

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"millrace/engine/checkpoint"
)

// Close stops cleanly: everything is synced, producer snapshots and checkpoints are
// written, the journals are empty, and each directory of which all that is true gets
// the marker of a clean stop. Nobody may append any more. When ctx ends first, what
// is left is left as after a crash, which costs the next start a recovery and nothing
// else; the locks are released in any case.
func (s *Store) Close(ctx context.Context) error {
	s.mu.Lock()
	if s.mu.closed {
		s.mu.Unlock()
		return nil
	}
	s.mu.closed = true
	s.mu.Unlock()
	close(s.stop)
	s.keeper.Wait()
	s.moves.running.Wait()
	s.cleaner.close()
	s.scrub.close()
	s.background.Close()

	errs := make([]error, len(s.dirs))
	var dirs sync.WaitGroup
	for i, d := range s.dirs {
		dirs.Go(func() {
			if err := d.close(ctx); err != nil {
				errs[i] = fmt.Errorf("%s: %w", d.path, err)
			}
		})
	}
	dirs.Wait()
	s.closeSystem()
	return errors.Join(errs...)
}

func (d *dataDir) close(ctx context.Context) error {
	defer d.release()
	if d.journal == nil {
		return nil
	}
	if err := d.offline(); err != nil {
		for _, l := range d.logs() {
			l.Close() // claims nothing: the journal is poisoned
		}
		return nil // it was said when it happened
	}
	// Together first: one sync of the file system in place of one a log (F125).
	err := errors.Join(d.journal.SyncAll(), d.syncPageCache())
	marks := d.writeHighMarks()
	if err = errors.Join(err, marks, d.closeLogs(ctx)); err != nil {
		return err
	}
	// Indexes, snapshots and histories were written but not synced by themselves.
	if err := d.fs.SyncFS(d.path); err != nil {
		return err
	}
	for _, l := range d.logs() {
		l.indexesSynced()
	}
	if err := d.journal.Close(); err != nil {
		return err
	}
	if err := d.checkpoint(); err != nil {
		return err
	}
	if d.store.anyDamaged(d) {
		d.store.log.Warn("no marker of a clean stop, since a damaged log is set aside: the next start looks at it again", "dir", d.path)
		return nil
	}
	if l, cause := d.failedLog(); l != nil {
		d.store.log.Warn("no marker of a clean stop, since an operation of a log has failed half-way: the next start recovers it", "log", l.Dir(), "cause", cause)
		return nil
	}
	return checkpoint.MarkClean(d.fs, d.path, -1)
}

// failedLog is a log that takes no more appends until it is opened again, and why: its files need not be what it says, and after a clean
// stop nobody would look.
func (d *dataDir) failedLog() (*Log, error) {
	for _, l := range d.logs() {
		if cause := l.failure(); cause != nil && !errors.Is(cause, ErrClosed) {
			return l, cause
		}
	}
	return nil, nil
}

// closeLogs closes all logs with a few workers; each waits for file operations only.
func (d *dataDir) closeLogs(ctx context.Context) error {
	logs := d.logs()
	errs := make([]error, d.store.o.RecoveryThreads)
	var next atomic.Int64
	var workers sync.WaitGroup
	for w := range errs {
		workers.Go(func() {
			for {
				i := int(next.Add(1)) - 1
				if i >= len(logs) {
					return
				}
				if errs[w] == nil && ctx.Err() != nil {
					errs[w] = ctx.Err()
				}
				if ctx.Err() != nil {
					return // release gives back what they hold, after the journal
				}
				if err := logs[i].Close(); err != nil {
					errs[w] = errors.Join(errs[w], fmt.Errorf("close %s: %w", logs[i].Dir(), err))
				}
			}
		})
	}
	workers.Wait()
	return errors.Join(errs...)
}

func (s *Store) anyDamaged(d *dataDir) bool {
	for _, x := range s.Damaged() {
		if x.Dir == d.path {
			return true
		}
	}
	return false
}
