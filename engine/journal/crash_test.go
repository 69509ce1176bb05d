package journal

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"testing"

	"millrace/engine/vfs/faultfs"
)

// How many lives and of what length; small in -short runs, since every operation of each is tried in many ways.
// MILLRACE_FAULT_EFFORT multiplies.
func effort(short, long int) int {
	times, err := strconv.Atoi(os.Getenv("MILLRACE_FAULT_EFFORT"))
	switch {
	case err == nil:
		return long * times
	case testing.Short():
		return short
	}
	return long
}

// settings are the ways in which a journal is run in the fault loops.
func settings() map[string]setting {
	off, other, roomy, plain := small, small, small, small
	off.Off = true
	other.Dir = "elsewhere/journal" // named apart from the data: another device as far as anyone can tell
	roomy.FileBytes, roomy.Files = 64*pageBytes, 2
	return map[string]setting{"small files": small, "off": off, "other directory": other, "roomy": roomy, "no O_DIRECT": plain}
}

func newDisk(t testing.TB, name string, seed uint64) *faultfs.Disk {
	opts := []faultfs.Option{faultfs.Seed(seed)}
	if name == "no O_DIRECT" {
		opts = append(opts, faultfs.NoDirect())
	}
	return faultfs.New(t, opts...)
}

func newRand(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 1)) }

// Claim (L6): whatever single file operation fails, everything acknowledged is there after the process was killed, after the power was
// cut, and after both, and nothing that was cut is back.
// Method: the same short life, failing operation 0, then 1, until none is left.
func TestAcknowledgedSurvivesAnyFault(t *testing.T) {
	for name, s := range settings() {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(effort(1, 2)) {
				for n := 0; ; n++ {
					disk := newDisk(t, name, seed*1000+uint64(n))
					disk.FailOperation(n)
					promised, err := liveOnce(disk, s, seed)
					if b := (broken{}); errors.As(err, &b) {
						t.Fatal(err)
					}
					if !disk.Fired() {
						must(t, disk, err, "a life without fault")
						break
					}
					afterwards(t, disk, s, promised, fmt.Sprintf("operation %d failed (%v)", n, err))
				}
			}
		})
	}
}

// liveOnce opens, lives and closes; the life's promises stand whatever ended it.
func liveOnce(disk *faultfs.Disk, s setting, seed uint64) (map[string]*history, error) {
	l, err := openLife(disk, s, nil, newRand(seed))
	if err != nil {
		return nil, err
	}
	if err = l.live(60, true); err != nil {
		l.kill()
	}
	return l.promises(), err
}

// afterwards crashes the disk in every way and looks at what is there: killed only; killed, opened again and then without power;
// without power at once, in every mix of what survives.
func afterwards(t *testing.T, disk *faultfs.Disk, s setting, promised map[string]*history, what string) {
	t.Helper()
	killed := disk.Clone()
	if failedSyncDir(disk) {
		// The test's log resets by a rename. If its sync failed, the name that a machine shows which goes on running is lost with
		// the power, and no later sync helps. That is the log's to solve; the journal is not asked.
		killed.CutPower(faultfs.KeepNames(100), faultfs.KeepUnsynced(100))
	}
	again := reopen(t, killed, s, promised, what+", killed")
	for _, mix := range someMixes() {
		cut := killed.Clone()
		cut.CutPower(mix.Options()...)
		closeLife(t, cut, reopen(t, cut, s, again.promises(), fmt.Sprintf("%s, killed, opened, power cut %v", what, mix)))
	}
	closeLife(t, killed, again)
	for _, mix := range someMixes() {
		cut := disk.Clone()
		cut.CutPower(mix.Options()...)
		l := reopen(t, cut, s, promised, fmt.Sprintf("%s, power cut %v", what, mix))
		must(t, cut, l.live(10, false), what+": a short second life")
		next := l.promises()
		l.kill()
		closeLife(t, cut, reopen(t, cut, s, next, what+": third life"))
	}
}

func failedSyncDir(disk *faultfs.Disk) bool {
	for _, op := range disk.Trace() {
		if op.Kind == faultfs.OpSyncDir && op.Err != nil {
			return true
		}
	}
	return false
}

func reopen(t *testing.T, disk *faultfs.Disk, s setting, promised map[string]*history, what string) *life {
	t.Helper()
	l, err := openLife(disk, s, promised, newRand(disk.Seed()))
	must(t, disk, err, what)
	return l
}

// closeLife closes and checks L7: after a clean stop there is nothing to replay.
func closeLife(t *testing.T, disk *faultfs.Disk, l *life) {
	t.Helper()
	must(t, disk, l.j.Close(), "close")
	j, err := Open(l.options(disk))
	must(t, disk, err, "open after close")
	if n := len(j.Logs()); n > 0 {
		t.Fatalf("%d logs to replay after a clean close", n)
	}
	must(t, disk, j.Close(), "close")
}

func (l *life) options(disk *faultfs.Disk) Options {
	return Options{FS: disk, Dir: l.j.dir, DataDir: dataDir}
}

// someMixes leaves out, in short runs, what only differs in names.
func someMixes() []faultfs.Mix {
	all := faultfs.Mixes()
	if !testing.Short() {
		return all
	}
	var some []faultfs.Mix
	for _, m := range all {
		if m.Names == 50 || m.Cache == 0 && m.Journal == 0 {
			some = append(some, m)
		}
	}
	return some
}

// Claim (L6, L7): power may go during any operation, also of replay, of reuse and of Close, with page cache and journal
// kept or lost apart: everything acknowledged is there, nothing cut is back.
// Method: one life; the power is cut in the middle of operation n, for every n; then the next life, in whose opening the power is cut
// in the middle of operation m; then a third.
func TestAcknowledgedSurvivesPowerCutInAnyOperation(t *testing.T) {
	for name, s := range settings() {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(effort(1, 2)) {
				for n := 0; ; n++ {
					disk := newDisk(t, name, seed*1000+uint64(n))
					disk.CutAtOperation(n)
					promised, err := liveOnce(disk, s, seed+100)
					if b := (broken{}); errors.As(err, &b) {
						t.Fatal(err)
					}
					if !disk.Fired() {
						must(t, disk, err, "a life without fault")
						break
					}
					mixes := someMixes()
					for i, mix := range mixes {
						first := disk.Clone()
						first.CutPower(mix.Options()...)
						cutReplay(t, first, s, promised, n+i, fmt.Sprintf("power cut in operation %d, %v", n, mix))
					}
				}
			}
		})
	}
}

// cutReplay opens the disk, cutting the power in one of the first operations, and then once more.
func cutReplay(t *testing.T, disk *faultfs.Disk, s setting, promised map[string]*history, n int, what string) {
	t.Helper()
	whole := disk.Clone()
	closeLife(t, whole, reopen(t, whole, s, promised, what))

	disk.CutAtOperation(n % 23)
	l, err := openLife(disk, s, promised, newRand(7))
	if b := (broken{}); errors.As(err, &b) {
		t.Fatalf("%s, second: %v", what, err)
	}
	if err == nil {
		// The power is still on, or went while logs were opened for the last time: live on a little.
		err = l.live(4, false)
		promised = l.promises()
		l.kill()
	}
	disk.CutPower(faultfs.KeepUnsynced(50), faultfs.KeepJournal(n%3*50))
	closeLife(t, disk, reopen(t, disk, s, promised, fmt.Sprintf("%s, cut again in %d (%v)", what, n%23, err)))
}

// Claim (L6, L7): a crash after any operation loses nothing, with the keeper at work beside the rounds.
// Method: the disk is cloned after every operation, together with what had been promised before it began.
func TestAcknowledgedSurvivesBesideTheKeeper(t *testing.T) {
	s := small
	s.Keeper = true
	for seed := range uint64(effort(4, 12)) {
		disk := faultfs.New(t, faultfs.Seed(seed))
		var mu sync.Mutex
		var l *life
		disk.AfterOperation(func(op faultfs.Op) {
			mu.Lock()
			defer mu.Unlock()
			if l == nil {
				return
			}
			clone := disk.Clone()
			mixes := faultfs.Mixes()
			clone.CutPower(mixes[op.Index%len(mixes)].Options()...)
			quiet := s
			quiet.Keeper = false
			next, err := openLife(clone, quiet, l.promises(), newRand(seed))
			if err != nil {
				t.Errorf("seed %d, after %v: %v", seed, op, err)
				return
			}
			next.kill()
		})
		opened, err := openLife(disk, s, nil, newRand(seed))
		must(t, disk, err, "open")
		mu.Lock()
		l = opened
		mu.Unlock()
		must(t, disk, l.live(80, true), "live")
	}
}
