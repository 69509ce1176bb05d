package journal

import (
	"errors"
	"math"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"millrace/engine/vfs/faultfs"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// startLife opens a life on a new disk, with the real keeper.
func startLife(t testing.TB, disk *faultfs.Disk, s setting) *life {
	t.Helper()
	s.Keeper = true
	l, err := openLife(disk, s, nil, newRand(1))
	must(t, disk, err, "open")
	return l
}

// Claim: with many waiters on many logs nobody sleeps for ever, nobody is told too early.
// Method: 32 goroutines append to 3 logs, each under the log's lock, and check Durable when Wait returns; meanwhile one truncates.
func TestManyWaitersAreAllServed(t *testing.T) {
	disk := faultfs.New(t)
	l := startLife(t, disk, setting{Dir: dataDir, FileBytes: 64 * pageBytes, Files: 3, Threshold: 6000})
	locks := map[string]*sync.Mutex{"a": {}, "b": {}, "c": {}}
	var serial atomic.Uint64
	var wg sync.WaitGroup
	for w := range 32 {
		name := logNames[w%3]
		log, mu := l.logs[name], locks[name]
		wg.Go(func() {
			for i := range 200 {
				mu.Lock()
				b := batch{count: 2, serial: serial.Add(1), size: 100 + i}
				if i%50 == w {
					b.size = 7000
				}
				ticket, err := log.append(b)
				end := log.end.Load()
				mu.Unlock()
				if err == nil {
					err = l.j.Wait(ticket)
				}
				if err != nil {
					t.Error(err)
					return
				}
				if name != "c" && log.durable.Load() < end {
					t.Errorf("acknowledged %d, durable %d", end, log.durable.Load())
				}
				if name == "c" && i%40 == 0 {
					mu.Lock()
					if err := log.truncate(log.end.Load() - 2); err != nil {
						t.Error(err)
					}
					if d, s, e := log.durable.Load(), log.synced.Load(), log.end.Load(); d > e || s > e {
						t.Errorf("L2: durable %d, synced %d, end %d", d, s, e)
					}
					mu.Unlock()
				}
			}
		})
	}
	wg.Wait()
	s := l.j.Stats()
	if s.Rounds > s.Waiters {
		t.Errorf("%d waits in %d rounds: some were run for nobody", s.Waiters, s.Rounds)
	}
	if s.Recycled == 0 || s.Large == 0 {
		t.Errorf("nothing recycled or nothing large: %+v", s)
	}
	closeLife(t, disk, l)
	for _, log := range l.logs {
		if log.pins.Load() != 0 {
			t.Errorf("%d sets of files not released", log.pins.Load())
		}
		if log.synced.Load() != log.end.Load() {
			t.Errorf("after Close synced %d, end %d", log.synced.Load(), log.end.Load())
		}
	}
}

// heldDisk is a disk on which the writes of rounds wait to be let through.
func heldDisk(t *testing.T) (disk *faultfs.Disk, hold func(), begun func(), pass func()) {
	disk = faultfs.New(t)
	var on atomic.Bool
	here, go_ := make(chan struct{}), make(chan struct{})
	disk.BeforeOperation(func(kind faultfs.Kind, _ string) {
		if kind == faultfs.OpDirectWrite && on.Load() {
			here <- struct{}{}
			<-go_
		}
	})
	return disk, func() { on.Store(true) }, func() { <-here }, func() { go_ <- struct{}{} }
}

// Claim: while a round runs its like gather in the next one, and its end wakes its own waiters and exactly one of the next round's, who runs it.
// Method: the disk holds each round's write; under synctest "asleep" is a fact, not a guess.
func TestOneTokenWakesOneWaiter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk, hold, begun, pass := heldDisk(t)
		l := startLife(t, disk, small)
		log := l.logs["a"]
		hold()
		var done atomic.Int64
		wait := func(n int) {
			for range n {
				ticket, err := log.append(batch{count: 1, serial: uint64(log.end.Load()) + 1, size: 10})
				must(t, disk, err, "append")
				go func() {
					must(t, disk, l.j.Wait(ticket), "wait")
					done.Add(1)
				}()
				synctest.Wait()
			}
		}
		wait(1)
		begun() // round 1 is being written by its only waiter
		wait(5) // these can only be in round 2
		if done.Load() != 0 || l.j.Stats().Rounds != 0 {
			t.Fatal("somebody was told too early")
		}
		pass()
		begun() // one of the five runs round 2
		synctest.Wait()
		if done.Load() != 1 {
			t.Fatalf("%d waits returned after round 1", done.Load())
		}
		l.j.mu.Lock()
		parked := 0
		for w := l.j.running.waiting.first; w != nil; w = w.next {
			parked++
		}
		l.j.mu.Unlock()
		if parked != 4 {
			t.Fatalf("%d of the five are asleep while one runs", parked)
		}
		wait(3)
		pass()
		begun()
		synctest.Wait()
		if done.Load() != 6 {
			t.Fatalf("%d waits returned after round 2", done.Load())
		}
		go func() { must(t, disk, l.j.Close(), "close") }() // waits for round 3
		pass()
		begun() // the head is killed
		pass()
		synctest.Wait()
		if s := l.j.Stats(); done.Load() != 9 || s.Rounds != 3 || s.Waiters != 9 {
			t.Fatalf("%d waits, %+v", done.Load(), s)
		}
	})
}

// Claim (L4): after the first failure every Wait fails with the same error: of those asleep, of later ones, and of rounds that ended well
// before. Nothing is tried again.
func TestFailureIsForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk, hold, begun, pass := heldDisk(t)
		l := startLife(t, disk, small)
		var told error
		l.j.onPoison = func(err error) { told = err }
		log := l.logs["a"]
		add := func() Ticket {
			ticket, err := log.append(batch{count: 1, serial: uint64(log.end.Load()) + 1, size: 10})
			must(t, disk, err, "append")
			return ticket
		}
		early := add()
		must(t, disk, l.j.Wait(early), "wait")
		hold()
		disk.FailKind(faultfs.OpDirectWrite, 0)
		errs := make(chan error, 8)
		for range 4 {
			ticket := add()
			go func() { errs <- l.j.Wait(ticket) }()
			synctest.Wait()
		}
		begun()
		pass()
		synctest.Wait()
		writes := disk.Operations()
		errs <- l.j.Wait(add())
		errs <- l.j.Wait(early)
		errs <- l.j.Wait(l.j.Cut(log, 0))
		errs <- l.j.SyncAll()
		for range 8 {
			err := <-errs
			var p *PoisonedError
			if !errors.As(err, &p) || !errors.Is(err, ErrPoisoned) || !errors.Is(err, faultfs.ErrInjected) || error(p) != told {
				t.Fatalf("got %v, the hook was told %v", err, told)
			}
		}
		if err := l.j.Close(); !errors.Is(err, ErrPoisoned) {
			t.Fatalf("close: %v", err)
		}
		if l.j.Done(early) {
			t.Error("done")
		}
		for _, op := range disk.Trace()[writes:] {
			if op.Kind != faultfs.OpWrite { // the log's own appends
				t.Errorf("after the failure: %v", op)
			}
		}
	})
}

// Claim: what was added becomes durable soon, also if nobody waits; and an idle journal does nothing at all.
func TestUnwaitedRoundIsRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := faultfs.New(t)
		l := startLife(t, disk, small)
		log := l.logs["a"]
		ticket, err := log.append(batch{count: 4, serial: 1, size: 10})
		must(t, disk, err, "append")
		time.Sleep(2*flushDelay + time.Millisecond)
		synctest.Wait()
		if !l.j.Done(ticket) || log.durable.Load() != 4 || log.notices.Load() != 1 {
			t.Fatalf("durable %d, %d notices", log.durable.Load(), log.notices.Load())
		}
		time.Sleep(2 * flushDelay)
		synctest.Wait()
		before := disk.Operations()
		time.Sleep(time.Hour)
		if l.j.flushWanted() || disk.Operations() != before {
			t.Error("the keeper is not at rest")
		}
		must(t, disk, l.j.Close(), "close")
	})
}

// Claim: what a cut took back is never told as durable afterwards, though the round or pass that speaks of it began before the cut.
// Method: a round is held in its write while the log is cut and appended to anew.
func TestCutDuringRoundLowersWhatItTells(t *testing.T) {
	for _, from := range []int64{4, math.MinInt64} {
		synctest.Test(t, func(t *testing.T) {
			disk, hold, begun, pass := heldDisk(t)
			l := startLife(t, disk, small)
			log := l.logs["a"]
			first, err := log.append(batch{count: 4, serial: 1}, batch{count: 4, serial: 2})
			must(t, disk, err, "append")
			hold()
			go func() { must(t, disk, l.j.Wait(first), "wait") }()
			begun()
			end := max(from, 0)
			log.end.Store(end)
			cut := l.j.Cut(log, from)
			log.durable.Store(0)
			log.end.Store(end + 10)
			second := l.j.Add(log, 1, end, end+10, [][]byte{make([]byte, 50)})
			go func() { must(t, disk, l.j.Wait(second), "wait") }()
			pass()
			begun()
			if got := log.durable.Load(); got != end {
				t.Errorf("cut from %d, durable %d", from, got)
			}
			if cut != second {
				t.Error("not in one round")
			}
			pass()
			synctest.Wait()
			if got := log.durable.Load(); got != end+10 {
				t.Errorf("durable %d", got)
			}
			go func() { _ = l.j.Close() }()
			begun()
			pass()
			synctest.Wait()
		})
	}
}

// Claim: Wait for what is done already costs next to nothing, and neither Add nor a round allocates in steady state.
func TestSteadyStateAllocatesNothing(t *testing.T) {
	disk := faultfs.New(t)
	s := small
	s.FileBytes = 64 << 20 // no reuse within the test
	s.Threshold = DefaultThreshold
	disk.WriteFile(dataDir+"/"+filePrefix+"0", make([]byte, 8<<20))
	l, err := openLife(disk, s, nil, newRand(1))
	must(t, disk, err, "open")
	log := l.logs["a"]
	data := [][]byte{make([]byte, 200)}
	end := int64(0)
	var ticket Ticket
	add := func() {
		log.end.Store(end + 1)
		ticket = l.j.Add(log, 1, end, end+1, data)
		end++
	}
	add()
	must(t, disk, l.j.Wait(ticket), "wait")
	if n := testing.AllocsPerRun(100, func() { add(); _ = l.j.Done(ticket) }); n != 0 {
		t.Errorf("Add allocates %v times", n)
	}
	must(t, disk, l.j.Wait(ticket), "wait")
	disk.Freeze() // its own allocations are not ours: from here every write fails
	l.kill()
}
