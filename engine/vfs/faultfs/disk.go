// Package faultfs is a disk in memory that keeps only what it promised to keep.
// Everything written is "unsynced" until a sync of that very thing has returned;
// when the power is cut, what is unsynced survives in part, by seeded chance, as
// on a real disk: sector by sector, with sizes and names on their own. It also
// fails the operation it is told to fail, runs full, and damages bytes.
//
// What it models, and where it is harsher than most real file systems:
//
//   - Contents. Of each 512-byte sector, the state at the cut is the synced one or
//     that after any one later write; sectors are independent of each other. The
//     size ends up anywhere between the synced and the current one; parts never
//     written are zeros. A Sync makes the file's contents and size durable, not
//     its name.
//   - Names. Creations, removals and renames are durable after SyncDir of the
//     directory (both directories, for a rename across two), or SyncFS. At the
//     cut, of each directory's unsynced changes a prefix survives. A rename is
//     whole or absent. A synced file whose name is not durable vanishes, and a
//     removed file whose removal is not durable is back.
//   - Files from OpenDirect. A write is durable when it returns; one that the cut
//     interrupts is torn at sectors. Unaligned use is refused with EINVAL.
//   - Mappings. Stores are unsynced writes of the pages they changed.
//   - Failed syncs. What the sync covered is there or lost, in parts; reads go on
//     showing it, and no later sync brings it back (as Linux does: the pages are
//     marked clean).
//   - Failed writes may have written a part; failed direct writes any sectors.
//     Other failed operations have done nothing.
//
// What it does not model: bytes of other files in parts never written, sectors that
// go bad by themselves (see Damage), holes that turn out to have no space when they
// are stored to through a mapping, directories and times synced by the way.
//
// A run is repeated exactly by its seed, if the operations come in the same order.
// The seed is printed when the test fails.
//
// Reading order: disk.go, operation.go (counting and failing), fs.go, file.go and
// mapping.go (vfs.FS and vfs.File), then what makes it honest: node.go, image.go,
// names.go, settle.go, power.go; clone.go and inspect.go are for tests.
package faultfs

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"

	"millrace/engine/vfs"
)

// SeedVariable is the environment variable that sets the seed of every Disk that
// was not given one by the Seed option.
const SeedVariable = "MILLRACE_FAULT_SEED"

var (
	// ErrInjected is the error of an operation that was told to fail. It is also
	// syscall.EIO.
	ErrInjected = fmt.Errorf("faultfs: injected fault: %w", syscall.EIO)

	// ErrPowerCut is the error of every operation while the power is off, and for
	// ever of every File, Mapping, lock and Session from before a cut.
	ErrPowerCut = errors.New("faultfs: power was cut")
)

// TB is the part of testing.TB that a Disk needs; rapid's T has it too.
type TB interface {
	Helper()
	Logf(format string, args ...any)
	Failed() bool
	Cleanup(func())
}

// Disk is the disk, and a vfs.FS whose files are on it. It may be used from many
// goroutines at once. Names are slash-separated; relative ones start at the root.
type Disk struct {
	directRefused      bool
	preallocateRefused bool
	now                func() time.Time
	seed               uint64
	before             func(Kind, string) // set before use: BeforeOperation
	beforeRead         func(string)       // set before use: BeforeRead
	after              func(Op)           // set before use: AfterOperation

	mu      sync.Mutex // guards all below, and every node and handle
	rng     *rand.Rand
	root    *node
	dirty   []*node          // nodes with something unsynced, in the order in which they became so
	mapped  []*node          // nodes with a mapping, in the order of mapping
	locks   map[string]*lock // held locks by name
	power   int              // how often the power came back; handles of an earlier one are dead
	off     bool             // the power is off
	space   int64            // bytes there are, unbounded if without bound
	spent   int64            // bytes allocated to files
	faults  []*Fault
	fired   bool
	count   int // mutating operations begun
	trace   []Op
	pending []Op // operations whose After hook is still to be called
	clones  uint64
}

// Option configures New.
type Option func(*Disk)

// Seed sets the seed of all chance on this disk.
func Seed(seed uint64) Option { return func(d *Disk) { d.seed = seed } }

// NoDirect makes OpenDirect fall back to plain files, as on tmpfs.
func NoDirect() Option { return func(d *Disk) { d.directRefused = true } }

// NoPreallocate makes Preallocate answer vfs.ErrUnsupported.
func NoPreallocate() Option { return func(d *Disk) { d.preallocateRefused = true } }

// Now sets the clock for modification times; time.Now by default.
func Now(now func() time.Time) Option { return func(d *Disk) { d.now = now } }

// New returns an empty disk. When the test tb fails, the seed and the last
// operations are logged. tb may be nil.
func New(tb TB, opts ...Option) *Disk {
	d := &Disk{
		now:   time.Now,
		seed:  defaultSeed(),
		root:  newDir(),
		locks: make(map[string]*lock),
		space: unbounded,
	}
	for _, o := range opts {
		o(d)
	}
	d.rng = rand.New(rand.NewPCG(d.seed, 0))
	if tb != nil {
		tb.Cleanup(func() {
			if tb.Failed() {
				tb.Helper()
				d.report(tb)
			}
		})
	}
	return d
}

func defaultSeed() uint64 {
	if s, err := strconv.ParseUint(os.Getenv(SeedVariable), 10, 64); err == nil {
		return s
	}
	return rand.Uint64()
}

// report is what a failed test wants to know of its disk.
func (d *Disk) report(tb TB) {
	tb.Helper()
	const last = 25
	ops := d.Ops()
	tb.Logf("faultfs: seed %d (%s=%d repeats it), %d operations; the last of them:",
		d.seed, SeedVariable, d.seed, len(ops))
	for _, op := range ops[max(0, len(ops)-last):] {
		tb.Logf("  %s", op)
	}
}

// Seed is the seed in use.
func (d *Disk) Seed() uint64 { return d.seed }

// SetFree sets how many bytes may still be allocated: growth of files and
// Preallocate use them up, removal and truncation give back. A write that does
// not fit is cut short with ENOSPC. n < 0 takes the bound away.
func (d *Disk) SetFree(n int64) *Disk {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.space = unbounded
	if n >= 0 {
		d.space = d.spent + n
	}
	return d
}

// chance is true in pct of 100 cases.
func (d *Disk) chance(pct int) bool {
	switch {
	case pct <= 0:
		return false
	case pct >= 100:
		return true
	}
	return d.rng.IntN(100) < pct
}

// markDirty notes that n has something to lose, clean that it has nothing any more.
func (d *Disk) markDirty(n *node) {
	if !n.dirty {
		n.dirty = true
		d.dirty = append(d.dirty, n)
	}
}

func (d *Disk) clean(n *node) {
	if i := slices.Index(d.dirty, n); i >= 0 {
		d.dirty = slices.Delete(d.dirty, i, i+1)
	}
	n.dirty = false
}

var (
	_ vfs.FS = (*Disk)(nil)
	_ vfs.FS = (*Session)(nil)
)
