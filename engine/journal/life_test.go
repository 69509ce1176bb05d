package journal

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"millrace/engine/vfs"
	"millrace/engine/vfs/faultfs"
)

var logNames = []string{"a", "b", "c"}

// history is what a life has promised of one log. It is kept beside the log, by whoever calls it.
type history struct {
	written []batch         // all that was written and not taken back by a cut that returned
	acked   int             // so many of them were acknowledged
	gone    map[uint64]bool // serials that a returned cut took back
	cut     *pendingCut     // one that has begun and not returned
}

// pendingCut: until it returns, a crash may leave the log before or after it.
type pendingCut struct {
	keep  int  // how many of written stay
	reset bool // and where the log begins is new
	start int64
}

func (h *history) clone() *history {
	c := *h
	c.written = slices.Clone(h.written)
	c.gone = maps.Clone(h.gone)
	return &c
}

// check says what is wrong with a log that came out of a crash.
func (h *history) check(l *fakeLog) error {
	for _, b := range l.all {
		if h.gone[b.serial] {
			return fmt.Errorf("batch %+v came back after its cut had returned", b)
		}
	}
	if l.end.Load() != l.start && len(l.all) == 0 {
		return fmt.Errorf("end %d, start %d, empty", l.end.Load(), l.start)
	}
	if h.cut != nil && h.cut.reset && l.start == h.cut.start {
		return nil // the reset happened; until it returns, old batches may follow the new start
	}
	for i, b := range l.all {
		if i >= len(h.written) || h.written[i] != b {
			return fmt.Errorf("batch %d is %+v, which was not written there; written %+v", i, b, h.written)
		}
	}
	must := h.acked
	if h.cut != nil {
		must = min(must, h.cut.keep)
	}
	if len(l.all) < must {
		return fmt.Errorf("%d batches, %d were acknowledged: %+v", len(l.all), must, h.written[:must])
	}
	return nil
}

// life is one run of a process: a journal, some logs, and what has been promised.
type life struct {
	j       *Journal
	logs    map[string]*fakeLog
	history map[string]*history
	tickets []owed
	serial  uint64
	rng     *rand.Rand
	said    sync.Mutex // guards history against those who look while the life goes on
}

// owed is a ticket not waited for yet: then the first count batches of the log are acknowledged.
type owed struct {
	t     Ticket
	log   string
	count int
}

// setting is how a journal is opened in a test.
type setting struct {
	Dir       string
	Off       bool
	FileBytes int64
	Files     int
	Threshold int
	Keeper    bool // its real goroutine; otherwise tests call maintain
}

var small = setting{Dir: dataDir, FileBytes: 5 * pageBytes, Files: 3, Threshold: 6000}

func (s setting) options(fsys vfs.FS) Options {
	return Options{FS: fsys, Dir: s.Dir, DataDir: dataDir, Off: s.Off, FileBytes: s.FileBytes, Files: s.Files, Threshold: s.Threshold}
}

// openLife opens everything, replays, checks against what was promised before (nil: nothing), and starts. What is there
// then counts as acknowledged.
func openLife(fsys vfs.FS, s setting, promised map[string]*history, rng *rand.Rand) (*life, error) {
	if err := fsys.MkdirAll(dataDir); err != nil {
		return nil, err
	}
	if err := fsys.SyncDir("."); err != nil {
		return nil, err
	}
	j, err := Open(s.options(fsys))
	if err != nil {
		return nil, err
	}
	l := &life{j: j, logs: map[string]*fakeLog{}, history: map[string]*history{}, rng: rng}
	for _, name := range logNames {
		log, err := openFake(fsys, j, name)
		if err != nil {
			l.kill()
			return nil, err
		}
		l.logs[name] = log
		h := &history{gone: map[uint64]bool{}}
		if p := promised[name]; p != nil {
			if err := p.check(log); err != nil {
				l.kill()
				return nil, broken{fmt.Errorf("log %s: %w", name, err)}
			}
			h.gone = maps.Clone(p.gone)
			for _, b := range append(slices.Clone(log.all), p.written...) {
				l.serial = max(l.serial, b.serial)
			}
			for serial := range h.gone {
				l.serial = max(l.serial, serial)
			}
		}
		h.written = slices.Clone(log.all)
		h.acked = len(h.written)
		l.history[name] = h
	}
	if err := fsys.SyncDir(dataDir); err != nil { // a rename may have been seen, and not be durable
		l.kill()
		return nil, err
	}
	if s.Keeper {
		err = j.Start()
	} else if err = j.start(); err == nil {
		close(j.keeperDone)
	}
	if err != nil {
		l.kill()
		return nil, err
	}
	return l, nil
}

// broken is an error that is a failure of the test, not of the disk.
type broken struct{ error }

// kill lets go of what the process held; the disk is frozen or abandoned.
func (l *life) kill() {
	l.j.Close()
}

func (l *life) promises() map[string]*history {
	l.said.Lock()
	defer l.said.Unlock()
	m := map[string]*history{}
	for name, h := range l.history {
		m[name] = h.clone()
	}
	return m
}

// step does one thing at random. The first error ends the life.
func (l *life) step() error {
	name := logNames[l.rng.IntN(len(logNames))]
	log, h := l.logs[name], l.history[name]
	switch n := l.rng.IntN(100); {
	case n < 55:
		return l.append(name)
	case n < 75:
		return l.waitAll()
	case n < 82:
		// As log.mu would: nothing else is added to this log until Truncate returns, but what was is still on its way.
		keep := l.rng.IntN(len(log.all) + 1)
		to := log.start
		if keep > 0 {
			to = log.all[keep-1].end()
		}
		return l.cut(name, pendingCut{keep: keep}, func() error { return log.truncate(to) })
	case n < 85:
		start := max(0, log.end.Load()+int64(l.rng.IntN(41)-20))
		return l.cut(name, pendingCut{reset: true, start: start}, func() error { return log.reset(start) })
	case n < 88:
		return l.ack(owed{l.j.AddSync(log), name, len(h.written)})
	case n < 90:
		if err := l.j.SyncAll(); err != nil {
			return err
		}
		return l.waitAll()
	default:
		l.j.maintain()
	}
	return nil
}

func (l *life) append(name string) error {
	h := l.history[name]
	var batches []batch
	for range 1 + l.rng.IntN(3) {
		l.serial++
		b := batch{count: 1 + l.rng.Int64N(5), serial: l.serial, size: l.rng.IntN(800)}
		if l.rng.IntN(10) == 0 {
			b.size += small.Threshold
		}
		batches = append(batches, b)
	}
	// A write that fails may still be there in part.
	base := l.logs[name].end.Load()
	l.said.Lock()
	for _, b := range batches {
		b.base = base
		base = b.end()
		h.written = append(h.written, b)
	}
	l.said.Unlock()
	t, err := l.logs[name].append(batches...)
	if err != nil {
		return err
	}
	l.tickets = append(l.tickets, owed{t, name, len(h.written)})
	return nil
}

func (l *life) ack(o owed) error {
	if err := l.j.Wait(o.t); err != nil {
		return err
	}
	if !l.j.Done(o.t) {
		return broken{fmt.Errorf("waited for, not done")}
	}
	l.said.Lock()
	defer l.said.Unlock()
	h := l.history[o.log]
	h.acked = max(h.acked, o.count)
	if h.acked == 0 {
		return nil
	}
	if end := h.written[h.acked-1].end(); l.logs[o.log].durable.Load() < end {
		return broken{fmt.Errorf("log %s: acknowledged up to %d, durable up to %d", o.log, end, l.logs[o.log].durable.Load())}
	}
	return nil
}

func (l *life) waitAll() error {
	for _, o := range l.tickets {
		if o.count == 0 {
			continue // cut meanwhile
		}
		if err := l.ack(o); err != nil {
			return err
		}
	}
	l.tickets = nil
	return nil
}

func (l *life) cut(name string, c pendingCut, do func() error) error {
	h := l.history[name]
	l.said.Lock()
	h.cut = &c
	l.said.Unlock()
	if err := do(); err != nil {
		return err
	}
	l.said.Lock()
	defer l.said.Unlock()
	for _, b := range h.written[c.keep:] {
		h.gone[b.serial] = true
	}
	h.written = slices.Clone(h.written[:c.keep])
	h.acked = min(h.acked, c.keep)
	h.cut = nil
	for i := range l.tickets {
		if o := &l.tickets[i]; o.log == name {
			o.count = min(o.count, c.keep)
		}
	}
	return nil
}

// live does n steps, then closes if asked.
func (l *life) live(n int, closing bool) error {
	for range n {
		if err := l.step(); err != nil {
			return err
		}
	}
	if closing {
		return l.j.Close()
	}
	return nil
}

// must fails the test if err says that a promise was broken, or is an error that no fault explains.
func must(t testing.TB, disk *faultfs.Disk, err error, doing string) {
	t.Helper()
	if err != nil {
		t.Fatalf("%s: %v (seed %d)", doing, err, disk.Seed())
	}
}
