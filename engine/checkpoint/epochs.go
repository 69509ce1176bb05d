package checkpoint

import (
	"fmt"
	"path/filepath"
	"slices"
	"sort"
	"strconv"
	"sync"
	"sync/atomic"

	"millrace/engine/vfs"
)

// EpochsName is the file of the leader-epoch history, in the log's folder.
const EpochsName = "leader-epoch-checkpoint"

// EpochStart says that an epoch began at an offset.
type EpochStart struct {
	Epoch int32
	Start int64
}

// Epochs is the leader-epoch history of one log: in memory, and in its file, which is
// written with every change. Both epochs and starts ascend strictly. Safe for
// concurrent use.
type Epochs struct {
	fs vfs.FS

	mu    sync.Mutex
	dir   string
	list  []EpochStart
	dirty bool // memory is ahead of the file

	begins atomic.Int64 // of the newest epoch; every append looks at it
}

// keep makes list the history. Caller holds mu.
func (e *Epochs) keep(list []EpochStart, dirty bool) {
	e.list, e.dirty = list, dirty
	begins := int64(0)
	if n := len(list); n > 0 {
		begins = list[n-1].Start
	}
	e.begins.Store(begins)
}

// OpenEpochs reads the history in a log's folder; a missing file is an empty one. With
// an error (the file makes no sense) the history is empty and usable: recovery fills
// it from the batches.
func OpenEpochs(fsys vfs.FS, dir string) (*Epochs, error) {
	e := &Epochs{fs: fsys, dir: dir}
	err := readLines(fsys, filepath.Join(dir, EpochsName), "an ascending entry \"epoch offset\"", func(fields []string) bool {
		if len(fields) != 2 {
			return false
		}
		epoch, ok := parseInt32(fields[0])
		start, err := strconv.ParseInt(fields[1], 10, 64)
		if !ok || err != nil || epoch < 0 || start < 0 {
			return false
		}
		if n := len(e.list); n > 0 && (e.list[n-1].Epoch >= epoch || e.list[n-1].Start >= start) {
			return false
		}
		e.list = append(e.list, EpochStart{epoch, start})
		return true
	})
	if err != nil {
		e.list = nil
	}
	e.keep(e.list, err != nil)
	return e, err
}

// NewEpochs is the empty history of a log just made; its file is written by the first change.
func NewEpochs(fsys vfs.FS, dir string) *Epochs { return &Epochs{fs: fsys, dir: dir} }

// WriteFirstEpoch writes the history of a log just made: epoch 0 from offset 0, as
// Kafka does when a leader takes it. Nothing is durable yet: the caller makes many
// logs and syncs the file system once. Without it the first append to each log would
// wait for two syncs of its own.
func WriteFirstEpoch(fsys vfs.FS, dir string) error {
	e := Epochs{list: []EpochStart{{Epoch: 0, Start: 0}}}
	return writeBeside(fsys, filepath.Join(dir, EpochsName), e.encode(), false)
}

// Assign notes that epoch begins at start and writes the file, synced, before it
// returns. Nothing happens if the epoch is the newest already. Entries that
// contradict (same or later epoch, same or later start) are dropped. After an error
// nothing has changed.
func (e *Epochs) Assign(epoch int32, start int64) error {
	return e.change(func() { e.note(epoch, start) })
}

// Note is Assign in memory only, for recovery, which ends with Flush.
func (e *Epochs) Note(epoch int32, start int64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.note(epoch, start)
}

func (e *Epochs) note(epoch int32, start int64) {
	if epoch < 0 || start < 0 {
		return
	}
	if n := len(e.list); n > 0 && e.list[n-1].Epoch == epoch && e.list[n-1].Start <= start {
		return
	}
	keep := sort.Search(len(e.list), func(i int) bool { return e.list[i].Epoch >= epoch || e.list[i].Start >= start })
	e.keep(append(slices.Clip(e.list[:keep]), EpochStart{epoch, start}), true)
}

// Flush writes the file if memory is ahead of it.
func (e *Epochs) Flush() error { return e.change(func() {}) }

// change runs f under the lock and writes what changed; if that fails it is taken back.
func (e *Epochs) change(f func()) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	old, wasDirty := e.list, e.dirty
	f()
	if !e.dirty {
		return nil
	}
	if err := WriteFile(e.fs, filepath.Join(e.dir, EpochsName), e.encode()); err != nil {
		e.keep(old, wasDirty)
		return fmt.Errorf("%s: %w", e.dir, err)
	}
	e.dirty = false
	return nil
}

// WriteCopy writes the history as it is now into another folder, synced.
func (e *Epochs) WriteCopy(dir string) error {
	e.mu.Lock()
	b := e.encode()
	e.mu.Unlock()
	return WriteFile(e.fs, filepath.Join(dir, EpochsName), b)
}

func (e *Epochs) encode() []byte {
	b := appendHead(nil, len(e.list))
	for _, x := range e.list {
		b = strconv.AppendInt(b, int64(x.Epoch), 10)
		b = append(b, ' ')
		b = strconv.AppendInt(b, x.Start, 10)
		b = append(b, '\n')
	}
	return b
}

// EndOf answers a follower's question "where did epoch end": the largest known epoch
// at or below it, and the offset at which the next one began; logEnd for the newest.
// An epoch older than all known answers itself and the first start; (-1, -1) says
// that it is newer than all known, or that nothing is known.
func (e *Epochs) EndOf(epoch int32, logEnd int64) (int32, int64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	n := len(e.list)
	if epoch < 0 || n == 0 || epoch > e.list[n-1].Epoch {
		return -1, -1
	}
	if epoch == e.list[n-1].Epoch {
		return epoch, logEnd
	}
	next := sort.Search(n, func(i int) bool { return e.list[i].Epoch > epoch })
	if next == 0 {
		return epoch, e.list[0].Start
	}
	return e.list[next-1].Epoch, e.list[next].Start
}

// At returns the epoch of the leader that wrote offset; ok is false if that was before
// the known history.
func (e *Epochs) At(offset int64) (epoch int32, ok bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	i := sort.Search(len(e.list), func(i int) bool { return e.list[i].Start > offset })
	if i == 0 {
		return -1, false
	}
	return e.list[i-1].Epoch, true
}

// Latest returns the newest entry; ok is false if there is none.
func (e *Epochs) Latest() (epoch int32, start int64, ok bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	n := len(e.list)
	if n == 0 {
		return -1, -1, false
	}
	return e.list[n-1].Epoch, e.list[n-1].Start, true
}

// Above tells whether the newest epoch begins above offset.
func (e *Epochs) Above(offset int64) bool { return e.begins.Load() > offset }

// All returns a copy of the history, ascending.
func (e *Epochs) All() []EpochStart {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.list)
}

// TruncateEnd drops the epochs that begin at or above end, and writes the file if any did.
func (e *Epochs) TruncateEnd(end int64) error {
	return e.change(func() {
		keep := sort.Search(len(e.list), func(i int) bool { return e.list[i].Start >= end })
		if keep < len(e.list) {
			e.keep(e.list[:keep:keep], true)
		}
	})
}

// TruncateStart drops the epochs that ended at or below start; the one that start
// belongs to begins there now. The file is written if anything changed.
func (e *Epochs) TruncateStart(start int64) error {
	return e.change(func() {
		after := sort.Search(len(e.list), func(i int) bool { return e.list[i].Start > start })
		if after == 0 || after == 1 && e.list[0].Start == start {
			return
		}
		rest := slices.Clone(e.list[after-1:])
		rest[0].Start = start
		e.keep(rest, true)
	})
}

// Clear drops all: the log begins anew.
func (e *Epochs) Clear() error {
	return e.change(func() {
		if len(e.list) > 0 {
			e.keep(nil, true)
		}
	})
}

// SetDir tells that the log's folder was renamed.
func (e *Epochs) SetDir(dir string) {
	e.mu.Lock()
	e.dir = dir
	e.mu.Unlock()
}
