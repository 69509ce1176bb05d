package engine

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"millrace/engine/vfs/faultfs"
)

// life is a log under faults, and what its user may rely on.
type life struct {
	disk   *faultfs.Disk
	config Config
	off    bool // without a journal: rounds sync the segments
	rng    *rand.Rand
	log    *Log // nil when it could not be opened

	acked    map[Offset]string          // acknowledged and not taken back
	possible map[Offset]map[string]bool // all that was ever tried at an offset and not certainly taken back
	start    Offset                     // acknowledged
	mayStart Offset                     // asked for, at most
	mayEnd   Offset                     // a truncation to here was asked for and failed; -1 none
	serial   int
}

func newLife(d *faultfs.Disk, c Config, seed uint64) *life {
	return &life{
		disk: d, config: c, rng: rand.New(rand.NewPCG(seed, 1)), mayEnd: -1,
		acked: map[Offset]string{}, possible: map[Offset]map[string]bool{},
	}
}

func (f *life) open() error {
	var err error
	// A session: what the log still does after the power cut must not reach the
	// disk of the machine that is started then.
	f.log, err = tryOpen(f.disk.Session(), f.config, func(o *LogOptions) { o.JournalOff = f.off })
	return err
}

// leave ends the goroutines of a log whose disk is gone.
func (f *life) leave() {
	if f.log != nil {
		_ = f.log.Close()
		f.log = nil
	}
}

// append writes one to three batches in one run and waits for them.
func (f *life) append() error {
	list := make([]*Append, 1+f.rng.IntN(3))
	values := make([]string, len(list))
	at := f.log.End()
	for i := range list {
		f.serial++
		values[i] = fmt.Sprintf("%d-%s", f.serial, valueOf(0)[:10+f.rng.IntN(40)])
		f.mayBe(at+Offset(i), values[i])
		list[i] = leaderAppend(newBatch(1000, []string{values[i]}))
		f.log.Enqueue(list[i], 0)
	}
	var failed error
	for i, a := range list {
		err := f.log.Write(a)
		if err == nil {
			f.mayBe(a.Base, values[i])
			err = a.Wait()
		}
		if err != nil {
			failed = err
			continue
		}
		f.acked[a.Base] = values[i]
	}
	return failed
}

func (f *life) mayBe(o Offset, value string) {
	if f.possible[o] == nil {
		f.possible[o] = map[string]bool{}
	}
	f.possible[o][value] = true
}

func (f *life) truncate(o Offset) error {
	for at := range f.acked {
		if at >= o {
			delete(f.acked, at)
		}
	}
	if err := f.log.TruncateTo(o); err != nil || f.lostNames() {
		return err
	}
	for at := range f.possible {
		if at >= o {
			delete(f.possible, at)
		}
	}
	return nil
}

func (f *life) reset(o Offset) error {
	clear(f.acked)
	f.start, f.mayStart = min(f.start, o), max(f.mayStart, o)
	if err := f.log.ResetTo(o); err != nil || f.lostNames() {
		return err
	}
	clear(f.possible)
	f.start, f.mayStart = o, o
	return nil
}

func (f *life) setStart(o Offset) error {
	f.mayStart = max(f.mayStart, o)
	if err := f.log.SetStart(o); err != nil || f.lostNames() {
		return err
	}
	f.start = max(f.start, o)
	return nil
}

func (f *life) retain() error {
	// By size; what may go is what no reader is promised any more.
	f.mayStart = max(f.mayStart, f.log.Safe())
	_, err := f.log.Retain(time.UnixMilli(1000))
	if err == nil && !f.lostNames() {
		f.start = max(f.start, f.log.Start())
	}
	return err
}

// script is a short life that meets every kind of operation.
func (f *life) script() []func() error {
	a := f.append
	return []func() error{
		f.open, a, a, a, a, a, a, a,
		func() error { return f.setStart(min(3, f.log.End())) },
		a, a, a,
		func() error { return f.truncate(max(f.log.End()-7, f.log.Start())) },
		a, a, a, a, a, a,
		f.retain,
		a, func() error { return f.log.Sync() }, a,
		func() error { return f.log.snapshot() },
		a, a,
		func() error { return f.truncate(max(f.log.End()-2, f.log.Start())) },
		a, a, a, a,
		func() error { return f.reset(f.log.End() + 4) },
		a, a, a, a, a,
		func() error { return f.log.Close() }, f.open, a, a,
	}
}

// live runs the script. It goes on after errors that leave the log usable, and
// sees to L4: after a failed sync nothing is acknowledged.
func (f *life) live(t *testing.T) {
	poisoned := false
	for _, step := range f.script() {
		before, was := len(f.acked), f.log
		err := step()
		if f.log != was {
			poisoned = false // opened again
		}
		if poisoned && len(f.acked) > before {
			t.Fatalf("L4: acknowledged after a failed sync")
		}
		if f.log == nil || errors.Is(err, faultfs.ErrPowerCut) || errors.Is(err, ErrClosed) {
			return
		}
		if errors.Is(err, ErrPoisoned) {
			poisoned = true
		}
		if f.lostNames() {
			// The running system shows names that the disk does not have, and no
			// later sync will bring them there. Who goes on without a restart of
			// the machine cannot know which.
			return
		}
		if l := f.log; l.Start() > l.Durable() && l.mu.failed == nil && !poisoned || l.Durable() > l.End() {
			t.Fatalf("L2: %d, %d, %d after %v", l.Start(), l.Durable(), l.End(), err)
		}
	}
}

// lostNames tells that the sync of a folder has failed: also the journal's, in
// the background, while a deed of the log went on in the same folder and ended well.
func (f *life) lostNames() bool {
	for _, op := range f.disk.Trace() {
		if op.Kind == faultfs.OpSyncDir && op.Err != nil {
			return true
		}
	}
	return false
}

// verify opens the disk after the crash and holds it against the promises.
func (f *life) verify(t *testing.T) {
	t.Helper()
	var lines said
	l, err := tryOpen(f.disk.Session(), f.config, withLogger(lines.logger()))
	if err != nil {
		t.Fatalf("open after the crash: %v\n%s", err, lines.b.String())
	}
	f.log = l
	if l.Start() < f.start || l.Start() > f.mayStart {
		t.Fatalf("start %d, want [%d, %d]", l.Start(), f.start, f.mayStart)
	}
	got, err := contents(l, l.End(), 1<<20)
	if err != nil {
		t.Fatalf("read: %v", err)
	}
	next := l.Start()
	lost := f.lostNames()
	at := map[Offset]string{}
	for _, r := range got {
		at[r.offset] = r.value
		if lost && next < r.offset && r.offset <= f.mayStart {
			// Of two segments that retention gave up one after the other, the
			// first one's new name went with the failed sync.
			next = r.offset
		}
		if r.offset != next {
			t.Fatalf("offset %d follows %d", r.offset, next-1)
		}
		if !f.possible[r.offset][r.value] {
			t.Fatalf("offset %d holds %q, which was never written there or was taken back", r.offset, r.value)
		}
		next++
	}
	if next != l.End() {
		t.Fatalf("records end at %d, the log at %d", next, l.End())
	}
	if f.config.Durability == PageCache {
		return // nothing more was promised to survive
	}
	for o, value := range f.acked {
		if o < l.Start() || lost && o < f.mayStart {
			continue // retention may have it
		}
		if at[o] != value {
			t.Fatalf("L6: acknowledged record %d is gone; the log is [%d, %d)", o, l.Start(), l.End())
		}
	}
}

// goOn appends to the recovered log, stops it cleanly and looks again.
func (f *life) goOn(t *testing.T) {
	t.Helper()
	for range 3 {
		if err := f.append(); err != nil {
			t.Fatalf("append after recovery: %v", err)
		}
	}
	if err := f.log.Close(); err != nil {
		t.Fatalf("close: %v", err)
	}
	f.verify(t)
	closeLog(t, f.log)
}

func faultConfig(d Durability) Config {
	c := smallLog()
	c.Durability = d
	c.SegmentBytes = 600
	c.RetentionAge, c.RetentionBytes = -1, 900
	return c
}

// Claim (L6, L4, L2): whatever single operation fails or is interrupted by a
// power cut, an acknowledged batch is there afterwards, and nothing that was
// taken back returns.
// Method: run one short life, failing (or cutting the power at) operation 0,
// then 1, then 2, until none is left; then cut the power, with page cache,
// journal and names surviving in every mix in turn.
func TestAcknowledgedBatchesSurviveAnyFault(t *testing.T) {
	mixes := faultfs.Mixes()
	rounds := 2
	if testing.Short() {
		rounds = 1
	}
	if n, err := strconv.Atoi(os.Getenv("MILLRACE_FAULT_ROUNDS")); err == nil {
		rounds = n // for a night
	}
	for _, mode := range []struct {
		durability Durability
		off        bool
	}{{Sync, false}, {Sync, true}, {PageCache, false}} {
		durability := mode.durability
		for _, cutPower := range []bool{false, true} {
			for round := range rounds {
				for n := 0; ; n++ {
					d := faultfs.New(nil, faultfs.Seed(uint64(n*10+round)))
					f := newLife(d, faultConfig(durability), uint64(n))
					f.off = mode.off
					if cutPower {
						d.CutAtOperation(n)
					} else {
						d.FailOperation(n)
					}
					f.live(t)
					fired := d.Fired()
					mix := mixes[(n*7+round*13)%len(mixes)]
					d.CutPower(mix.Options()...)
					f.leave()
					requireKept(t, f, n, mix)
					if !fired {
						t.Logf("%v, journal off %v, cut %v: %d operations", durability, mode.off, cutPower, n)
						break
					}
				}
			}
		}
	}
}

func requireKept(t *testing.T, f *life, n int, mix faultfs.Mix) {
	t.Helper()
	defer func() {
		if t.Failed() {
			ops := f.disk.Ops()
			t.Logf("seed %d, operation %d, then %v; of %d operations the last:\n%s",
				f.disk.Seed(), n, mix, len(ops), strings.Join(ops[max(0, len(ops)-150):], "\n"))
		}
	}()
	f.verify(t)
	f.goOn(t)
}

// Claim (L7, L6): the same for every operation of the start after a crash:
// recovery, replay, the journal's forgetting.
// Method: live, cut the power, then open under faults, cut again, verify.
func TestAcknowledgedBatchesSurviveFaultsOfRecovery(t *testing.T) {
	mixes := faultfs.Mixes()
	for m, mix := range mixes {
		if testing.Short() && m%3 != 0 {
			continue
		}
		seed := uint64(1000 + m)
		base := faultfs.New(nil, faultfs.Seed(seed))
		first := newLife(base, faultConfig(Sync), seed)
		for _, step := range first.script()[:20+m%20] {
			if err := step(); err != nil {
				t.Fatal(err)
			}
		}
		base.CutPower(mix.Options()...)
		first.leave()
		for n := 0; ; n++ {
			d := base.Clone()
			f := *first
			f.disk = d
			f.acked, f.possible = copyMap(first.acked), copyMaps(first.possible)
			if n%2 == 0 {
				d.CutAtOperation(n / 2)
			} else {
				d.FailOperation(n / 2)
			}
			if f.open() == nil {
				_ = f.append()
			}
			fired := d.Fired()
			again := mixes[(n*5+m)%len(mixes)]
			d.CutPower(again.Options()...)
			f.leave()
			requireKept(t, &f, n, again)
			if !fired {
				break
			}
		}
	}
}

func copyMap[V any](m map[Offset]V) map[Offset]V {
	c := make(map[Offset]V, len(m))
	for k, v := range m {
		c[k] = v
	}
	return c
}

func copyMaps(m map[Offset]map[string]bool) map[Offset]map[string]bool {
	c := make(map[Offset]map[string]bool, len(m))
	for k, v := range m {
		c[k] = map[string]bool{}
		for s := range v {
			c[k][s] = true
		}
	}
	return c
}
