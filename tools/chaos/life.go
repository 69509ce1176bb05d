package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"millrace/engine"
	"millrace/engine/vfs/faultfs"
)

// failure is a finding; it ends the episode.
type failure struct{ text string }

func failf(format string, args ...any) { panic(failure{fmt.Sprintf(format, args...)}) }

// caught turns a finding into an error.
func caught(err *error) {
	switch x := recover().(type) {
	case nil:
	case failure:
		*err = errors.New(x.text)
	default:
		panic(x)
	}
}

// life is a Store under random deeds, faults and restarts, beside the models of its logs.
type life struct {
	rng    *rand.Rand
	counts *counts
	stop   func() bool

	disk  *faultfs.Disk // nil: the real one
	dirs  []string
	store *engine.Store
	said  *tail

	logs   []*model
	clock  time.Time
	serial int
	ids    byte
	failed bool // something has failed since the start: only a restart makes it certain again
	armed  bool
	wasCut bool                          // the power was cut in the restart that is going on
	alarm  atomic.Pointer[engine.Damage] // the first false one of the scrub
	trace  []string                      // the last deeds, for the report
	before []string                      // the disk's operations up to the last power cut
}

// storeEpisode is the parts store and disk.
func storeEpisode(seed uint64, real bool, c *counts, stop func() bool) (err error) {
	base := ""
	if real {
		if base, err = os.MkdirTemp("", "chaos-disk-"); err != nil {
			return err
		}
		defer os.RemoveAll(base)
	}
	l := newLife(seed, base, c, stop)
	defer func() {
		if err != nil {
			err = fmt.Errorf("%w\n%s", err, l.report())
		}
		l.leave()
	}()
	defer caught(&err)
	l.open()
	for range 150 + l.rng.IntN(300) {
		if stop() {
			break
		}
		l.step()
	}
	l.restart()
	if err := l.store.Close(context.Background()); err != nil && (l.disk == nil || !l.disk.Fired()) {
		failf("close: %v", err)
	}
	return nil
}

// newLife is one on the disk of faultfs, or in folders below base.
func newLife(seed uint64, base string, c *counts, stop func() bool) *life {
	l := &life{rng: rand.New(rand.NewPCG(seed, 1)), counts: c, stop: stop, said: &tail{}, clock: time.UnixMilli(1_700_000_000_000)}
	for _, d := range []string{"/a", "/b", "/c"}[:1+l.rng.IntN(3)] {
		l.dirs = append(l.dirs, filepath.Join(base, d))
	}
	if base != "" {
		return l
	}
	opts := []faultfs.Option{faultfs.Seed(seed)}
	if oneIn(l.rng, 5) {
		opts = append(opts, faultfs.NoDirect())
	}
	if oneIn(l.rng, 5) {
		opts = append(opts, faultfs.NoPreallocate())
	}
	l.disk = faultfs.New(nil, opts...)
	return l
}

// step is one deed, now and then a restart or the arming of a fault.
func (l *life) step() {
	if d := l.alarm.Load(); d != nil {
		failf("the scrub gives a false alarm: %+v", *d)
	}
	switch {
	case l.disk != nil && l.armed && (l.disk.Fired() && oneIn(l.rng, 4) || oneIn(l.rng, 30)):
		l.restart()
	case oneIn(l.rng, 30):
		l.restart()
	case l.disk != nil && !l.armed && oneIn(l.rng, 25):
		l.arm()
	default:
		l.deed()
	}
}

// arm makes some operation to come fail, or cut the power, or takes the disk's space away.
func (l *life) arm() {
	l.armed = true
	n := l.rng.IntN(40)
	switch l.rng.IntN(6) {
	case 0, 1:
		l.note("the power is cut at operation %d from here", n)
		l.disk.CutAtOperation(n)
	case 2, 3:
		l.fail(n)
	case 4:
		f := faultfs.Fault{
			Kind:    one(l.rng, l.kinds()...),
			Pattern: one(l.rng, "", "", "*.log", "*.index", "millrace-journal-*", "*checkpoint*"),
			After:   n / 4, Times: one(l.rng, 1, 3, -1),
		}
		l.note("fault %+v", f)
		l.disk.Fail(f)
	case 5:
		n *= 500
		l.note("%d bytes are free", n)
		l.disk.SetFree(int64(n))
		l.failed = true // what fails for it has no effect, but a restart is what makes sure
		l.uncertain()
	}
}

// fail makes one operation to come fail, the n-th from here or of its kind.
func (l *life) fail(n int) {
	f := faultfs.Fault{After: n}
	if len(l.dirs) > 1 {
		f = faultfs.Fault{Kind: one(l.rng, l.kinds()...), After: n / 8}
	}
	l.note("fault %+v", f)
	l.disk.Fail(f)
}

// kinds are the operations that may fail alone. The disk of faultfs is one file system, and a failed sync of it loses, silently, what other
// directories have written, where Linux would tell each open file of the loss: so with several directories it does not fail.
func (l *life) kinds() []faultfs.Kind {
	all := []faultfs.Kind{faultfs.OpCreate, faultfs.OpWrite, faultfs.OpDirectWrite, faultfs.OpSync, faultfs.OpSyncDir, faultfs.OpFlush,
		faultfs.OpTruncate, faultfs.OpPreallocate, faultfs.OpRename, faultfs.OpRemove, faultfs.OpMkdir}
	if len(l.dirs) == 1 {
		all = append(all, faultfs.OpSyncFS)
	}
	return all
}

func (l *life) uncertain() {
	for _, m := range l.logs {
		m.certain = false
	}
}

func (l *life) note(format string, args ...any) {
	const kept = 60
	l.trace = append(l.trace, fmt.Sprintf(format, args...))
	l.trace = l.trace[max(0, len(l.trace)-kept):]
	l.counts.Operations++
	if verbose {
		fmt.Println(l.trace[len(l.trace)-1])
	}
}

// open starts the Store under options drawn anew. A fault that is armed may strike: then the power goes too, and it starts again without.
func (l *life) open() {
	for first := true; ; first = false {
		if l.disk != nil && first && oneIn(l.rng, 3) {
			if n := l.rng.IntN(60); oneIn(l.rng, 2) {
				l.disk.CutAtOperation(n)
			} else {
				l.fail(n)
			}
		}
		s, err := engine.OpenStore(context.Background(), l.options())
		l.store = s
		if l.disk != nil {
			l.disk.Disarm()
		}
		if l.disk != nil && l.disk.Fired() {
			l.note("a fault struck the start: %v", err)
			l.cut(l.mix())
			continue
		}
		if err != nil {
			failf("open: %v", err)
		}
		if off, bad := s.OfflineDirs(), s.Damaged(); len(off)+len(bad) > 0 {
			failf("offline %v, damaged %+v", off, bad)
		}
		return
	}
}

func (l *life) options() engine.StoreOptions {
	o := drawOptions(l.rng, l.dirs)
	l.note("open: journal %s in %q, threshold %d", o.Journal, o.JournalDir, o.JournalThreshold)
	o.Now = func() time.Time { return l.clock }
	o.Logger = slog.New(slog.NewTextHandler(l.said, nil))
	o.ConfigFor = func(topic string) engine.Config {
		for _, m := range l.logs {
			if m.topic == topic {
				return m.config
			}
		}
		return engine.DefaultConfig()
	}
	if l.disk != nil {
		o.FS = l.disk.Session()
	} else {
		scrubbedReal(l.rng, &o, func(d engine.Damage) { l.alarm.CompareAndSwap(nil, &d) })
	}
	return o
}

func (l *life) mix() faultfs.Mix { return faultfs.Mixes()[l.rng.IntN(27)] }

// restart stops the Store in one of the ways there are, starts it again and looks at everything.
func (l *life) restart() {
	broken := l.disk != nil && (l.failed || l.disk.Fired())
	l.wasCut = false
	switch how := l.rng.IntN(4); {
	case l.disk == nil || how == 0 && !broken:
		l.note("clean restart")
		err := l.store.Close(context.Background())
		if l.disk != nil && l.disk.Fired() { // while closing
			l.cut(l.mix())
			break
		}
		if err != nil {
			failf("close: %v", err)
		}
		for _, m := range l.logs {
			m.allSafe()
		}
	case how == 1 && !broken, how == 1 && !l.lostNames():
		l.note("kill")
		l.counts.Kills++
		after := l.disk.Clone()
		l.disk.Freeze()
		l.leave()
		l.disk = after
	default:
		l.cut(l.mix())
	}
	l.failed, l.armed = false, false
	if l.disk != nil {
		l.disk.SetFree(-1)
	}
	l.open()
	l.verifyAll(l.wasCut)
}

// lostNames tells that the running system may show names that the disk does not have and that no later sync brings there: who goes on
// without a restart of the machine cannot know which. With the power off there is nothing to go on with.
func (l *life) lostNames() bool {
	for _, op := range l.disk.Trace() {
		if op.Err != nil && (op.Kind == faultfs.OpSyncDir || op.Kind == faultfs.OpSyncFS || errors.Is(op.Err, faultfs.ErrPowerCut)) {
			return true
		}
	}
	return false
}

// cut cuts the power. What the dead Store still does goes nowhere.
func (l *life) cut(mix faultfs.Mix) {
	l.note("power cut, %v", mix)
	l.counts.PowerCuts++
	l.wasCut = true
	l.before = l.disk.Ops()
	l.disk.CutPower(mix.Options()...)
	l.leave()
	l.disk = l.disk.Clone() // the same, with nothing armed and nothing fired
}

// leave ends the goroutines of a Store, whatever has become of its disk.
func (l *life) leave() {
	if l.store != nil {
		_ = l.store.Close(context.Background())
		l.store = nil
	}
}

// report is what a person wants to know of an episode that ended with a finding.
func (l *life) report() string {
	var b strings.Builder
	for _, m := range l.logs {
		fmt.Fprintf(&b, "model of %v: certain %v, start [%d, %d], end %d, %v, compact %v\n", m, m.certain, m.start, m.mayStart, m.end, m.config.Durability, m.config.Compact)
	}
	fmt.Fprintf(&b, "the last deeds:\n  %s\nthe last lines logged:\n%s", strings.Join(l.trace, "\n  "), l.said)
	if l.disk != nil {
		fmt.Fprintf(&b, "the last operations before the last power cut:\n  %s\n", strings.Join(l.before[max(0, len(l.before)-80):], "\n  "))
		ops := l.disk.Ops()
		fmt.Fprintf(&b, "the last of %d operations of the disk:\n  %s\n", len(ops), strings.Join(ops[max(0, len(ops)-40):], "\n  "))
	}
	return b.String()
}
