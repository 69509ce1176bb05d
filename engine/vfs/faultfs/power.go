package faultfs

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
)

// unbounded is the space left on a disk that cannot run full.
const unbounded = math.MaxInt64

// keepDefault is the percentage kept where no CutOption says anything.
const keepDefault = 50

// JournalPattern is the name pattern of the engine's commit journal files.
const JournalPattern = "millrace-journal-*"

// CutOption says what survives a power cut. Later options go before earlier ones.
type CutOption func(*survival)

type survival struct {
	contents []keep
	names    int
}

type keep struct {
	pattern string
	pct     int
}

// KeepUnsynced keeps about pct percent of all that is unsynced: of the sectors of
// every file and, if not 0 or 100 (nothing, everything), any prefix of each
// directory's changes of names.
func KeepUnsynced(pct int) CutOption {
	return func(s *survival) {
		s.contents = append(s.contents, keep{"*", pct})
		s.names = pct
	}
}

// KeepMatching is KeepUnsynced for the contents of files that pattern matches:
// path.Match on the name's last part, or on all of it if pattern has a slash.
func KeepMatching(pattern string, pct int) CutOption {
	return func(s *survival) { s.contents = append(s.contents, keep{pattern, pct}) }
}

// KeepJournal is KeepMatching(JournalPattern, pct).
func KeepJournal(pct int) CutOption { return KeepMatching(JournalPattern, pct) }

// KeepNames is KeepUnsynced for changes of names only.
func KeepNames(pct int) CutOption { return func(s *survival) { s.names = pct } }

// Mix is one way in which page cache, journal and names may survive.
type Mix struct {
	Cache, Journal, Names int // percent
}

// Mixes are all combinations of nothing, some and everything.
func Mixes() []Mix {
	var all []Mix
	for _, cache := range []int{0, 50, 100} {
		for _, journal := range []int{0, 50, 100} {
			for _, names := range []int{0, 50, 100} {
				all = append(all, Mix{cache, journal, names})
			}
		}
	}
	return all
}

// Options is the mix for CutPower.
func (m Mix) Options() []CutOption {
	return []CutOption{KeepUnsynced(m.Cache), KeepJournal(m.Journal), KeepNames(m.Names)}
}

func (m Mix) String() string {
	return fmt.Sprintf("cache=%d/journal=%d/names=%d", m.Cache, m.Journal, m.Names)
}

func (s *survival) percent(name string) int {
	for i := len(s.contents) - 1; i >= 0; i-- {
		if s.contents[i].pattern == "*" || matchName(s.contents[i].pattern, name) {
			return s.contents[i].pct
		}
	}
	return keepDefault
}

// Freeze cuts the power and leaves it off: everything fails with ErrPowerCut until
// CutPower. Inspection (ReadFile, Clone, Dump) still sees the state at the cut.
func (d *Disk) Freeze() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.powerOff()
}

func (d *Disk) powerOff() {
	if d.off {
		return
	}
	d.sampleAll()
	for _, n := range d.mapped { // what is stored from here on, no disk has seen
		n.shared = nil
	}
	d.mapped = nil
	d.off = true
}

// CutPower cuts the power, if it is not off yet, and starts the machine again: the
// disk holds what was synced and, of the rest, what the options leave to it.
// Everything opened before fails with ErrPowerCut for ever; locks are free; armed
// faults are gone; the bound of SetFree stays, with the space of what was lost
// given back.
func (d *Disk) CutPower(opts ...CutOption) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.powerOff()
	s := survival{names: keepDefault}
	for _, o := range opts {
		o(&s)
	}
	d.settleNames(s.names)
	d.root = d.boot(d.root, "", &s)
	d.dirty = nil
	d.locks = make(map[string]*lock)
	d.faults = nil
	d.power++
	d.off = false
	d.spent = d.used()
}

// settleNames puts a prefix of each directory's unsynced changes of names on the
// disk. A rename between two directories is there if either prefix has it, and then
// brings what came before it in the other.
func (d *Disk) settleNames(pct int) {
	var kept []*nameOp // all of them first: carrying one out shortens the lists
	for _, n := range d.dirty {
		if n.isDir {
			kept = append(kept, n.unnamed[:d.prefix(len(n.unnamed), pct)]...)
		}
	}
	syncNames(kept)
}

// boot makes the node that the next machine finds from what is on the disk.
func (d *Disk) boot(n *node, name string, s *survival) *node {
	if !n.isDir {
		img := d.settle(n, s.percent(name))
		mtime := n.diskMtime
		if d.chance(s.percent(name)) {
			mtime = n.mtime
		}
		return &node{live: img, disk: img.clone(), mtime: mtime, diskMtime: mtime, links: 1}
	}
	fresh := newDir()
	fresh.links = 1
	fresh.mtime, fresh.diskMtime = n.diskMtime, n.diskMtime
	for _, base := range sortedNames(n.synced) {
		child := d.boot(n.synced[base], name+"/"+base, s)
		fresh.names[base], fresh.synced[base] = child, child
	}
	return fresh
}

// used is the space taken by the files that have live names.
func (d *Disk) used() int64 {
	var sum int64
	var walk func(*node)
	walk = func(n *node) {
		sum += n.allocated()
		for _, child := range n.names {
			walk(child)
		}
	}
	walk(d.root)
	return sum
}

// cutIf turns the power off if err is the cut's, and returns err.
func (d *Disk) cutIf(err error) error {
	if isCut(err) {
		d.powerOff()
	}
	return err
}

func isCut(err error) bool { return errors.Is(err, ErrPowerCut) }

func isAbsent(err error) bool { return errors.Is(err, fs.ErrNotExist) }
