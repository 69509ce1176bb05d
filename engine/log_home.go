package engine

import (
	"errors"
	"os"
	"sync"
	"sync/atomic"

	"millrace/engine/journal"
	"millrace/engine/vfs"
)

// home is where a log lives: its folder, and the commit journal of that data
// directory. A move (store_move.go) gives a log another one while it serves. What
// was begun in the old one ends there: an append that waits keeps the home whose
// journal has its bytes.
type home struct {
	// What every append looks at.
	folder   *folder
	journal  *journal.Journal
	poisoned atomic.Pointer[PoisonedError] // L4: a sync has failed here
	low      *lowSpaceState                // of the directory; nil: nobody looks
	owner    logOwner                      // what the journal sees of the log

	checkpoint func(*Log) error // never nil
	names      unsyncedNames
	loose      bool // looseName is in the folder; the holder of Log.mu
}

// looseName is the file that tells the next opening that segments were closed here in page-cache mode and nobody has promised since that
// they are on disk: a loss of power may have torn any of them, also if the topic is a synced one by then. It is made before the
// names that it excuses, and goes when all is synced.
const looseName = ".millrace-page-cache"

// loosen makes it. Caller holds mu.
func (l *Log) loosen() error {
	h := l.home.Load()
	if h.loose {
		return nil
	}
	f, err := h.folder.open(looseName, os.O_RDWR|os.O_CREATE)
	if err != nil {
		return l.storageError("roll", err)
	}
	h.loose = true
	return f.Close()
}

// tighten removes it; all of the log is synced. Should the removal be lost, a start is only more lenient than it need be. Caller holds mu, or the log is not visible yet.
func (l *Log) tighten() error {
	h := l.home.Load()
	if !h.loose {
		return nil
	}
	if err := h.folder.fs.Remove(h.folder.file(looseName)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return l.storageError("remove "+looseName, err)
	}
	h.loose = false
	return nil
}

// unsyncedNames stands for a folder in which a roll in page-cache mode has made a file
// and not synced its name. The next sync of the log does: without the name the bytes
// would be lost, and what is appended in sync mode behind them.
type unsyncedNames struct {
	vfs.File // none of its other methods is called
	folder   *folder

	mu   sync.Mutex
	made atomic.Int64 // files made; raised with Log.mu held
	done atomic.Int64 // of them, those whose names are synced
}

// Sync is vfs.File's. One that comes while another is at it waits for that.
func (n *unsyncedNames) Sync() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	made := n.made.Load()
	if n.done.Load() >= made {
		return nil
	}
	if err := n.folder.syncNames(); err != nil {
		return err
	}
	n.done.Store(made)
	return nil
}

// Dirty is vfs.File's: names are no bytes.
func (n *unsyncedNames) Dirty() (int64, error) { return 0, nil }

// promise is a round of a home's journal. The zero promise is kept already.
type promise struct {
	home  *home
	round journal.Ticket
}

func newHome(l *Log, f *folder, j *journal.Journal, id journal.LogID, checkpoint func(*Log) error) *home {
	if checkpoint == nil {
		checkpoint = func(*Log) error { return nil }
	}
	h := &home{folder: f, journal: j, checkpoint: checkpoint}
	h.owner.log, h.owner.id, h.names.folder = l, id, f
	return h
}

// addSync has the next round sync the log's files.
func (h *home) addSync() promise { return promise{h, h.journal.AddSync(&h.owner)} }

// kept reports, without waiting, whether everything promised is durable.
func (p promise) kept() bool { return p.home == nil || p.home.journal.Done(p.round) }

// wait waits for a round and remembers a failure (L4). When the log has moved away
// since, all that the old journal was to make durable was synced in the new place
// first (L8), whatever has become of the old one.
func (l *Log) wait(p promise) error {
	if p.home == nil {
		return nil
	}
	err := p.home.journal.Wait(p.round)
	if err == nil || l.home.Load() != p.home {
		return nil
	}
	if errors.Is(err, journal.ErrPoisoned) {
		p.home.poison(l, err)
		return p.home.poisoned.Load()
	}
	return err
}

// suspectName is the file that tells the next opening that a sync has failed
// here (see rewriter). It need not be durable: with the machine's memory goes
// what it warns of.
const suspectName = ".millrace-sync-failed"

// poison refuses all further appends (L4); reads go on. The journal is told, also
// when the failed sync was the log's own: its records may be the only copy of
// what was acknowledged, so it must neither acknowledge more nor forget them.
func (h *home) poison(l *Log, cause error) {
	if !h.poisoned.CompareAndSwap(nil, &PoisonedError{Dir: h.folder.dir(), Cause: cause}) {
		return
	}
	h.journal.Fail(cause)
	f, err := h.folder.open(suspectName, os.O_RDWR|os.O_CREATE)
	if err != nil {
		l.logger.Error("cannot note that a sync has failed; start the machine anew before opening this log again",
			"log", h.folder.dir(), "error", err)
		return
	}
	f.Close()
}

func (l *Log) poison(cause error) { l.home.Load().poison(l, cause) }

// poisonError is nil while no sync of the log's home has failed.
func (l *Log) poisonError() error {
	if p := l.home.Load().poisoned.Load(); p != nil {
		return p
	}
	return nil
}
