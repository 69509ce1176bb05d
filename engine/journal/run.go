package journal

import (
	"math/bits"
	"runtime"
	"time"

	"millrace/engine/vfs"
)

// run runs the open round. j.mu is held when it is called and released when it returns; no round is running.
func (j *Journal) run() error {
	r := j.open
	next := &j.rounds[(r.number+1)&1]
	next.number = r.number + 1
	j.open, j.running = next, r
	begun := time.Now()
	f, at := j.place(r, begun)
	j.capture(r, f)
	j.mu.Unlock()

	err := j.perform(r, f, at)
	return j.finish(r, f, begun, err)
}

// place finds where r's block goes: the current file, or the next free one if it does not fit. A nil file means that there is
// nowhere, or nothing to write. j.mu is held.
func (j *Journal) place(r *round, now time.Time) (*file, int64) {
	if r.unsaid || !r.needsBlock() {
		return nil, 0
	}
	n := int64(padTo(len(r.block), pageBytes))
	if f := j.current; f != nil && f.pos+n > f.size && n <= f.size {
		j.sealed = append(j.sealed, f)
		j.current = nil
		j.wakeKeeper()
	}
	for i := 0; j.current == nil && i < len(j.free); i++ {
		if f := j.free[i]; n <= f.size {
			j.current = f
			j.free = append(j.free[:i], j.free[i+1:]...)
		}
	}
	if j.wantsFile(now) {
		j.wakeKeeper()
	}
	f := j.current
	if f == nil || f.pos+n > f.size {
		j.stats.Unplaced++
		return nil, 0
	}
	at := f.pos
	f.pos += n
	return f, at
}

// capture fixes what the round promises: up to where each owner will be durable, and which file now depends on it. With f == nil the owners'
// files stand in for the block. j.mu is held, as it is for every Cut, so a cut comes either before and is seen
// in End, or after and finds the member.
func (j *Journal) capture(r *round, f *file) {
	for i := range r.members {
		m := &r.members[i]
		if m.logged && f == nil && m.end > none {
			m.sync = true
		}
		if m.logged && f != nil && m.end > none {
			// Also if its files are synced in this very round: what stands in a block must be known to Cut.
			f.pin(m.state, m.end)
		}
		if m.sync {
			m.end = max(m.end, m.state.owner.End())
		}
	}
}

// perform makes the round durable: files first, then the block. So a block that replay finds whole says that its round's
// files were synced, and with it everything before: replay meets no gap that an unfinished round left.
func (j *Journal) perform(r *round, f *file, at int64) error {
	if err := j.syncMembers(r); err != nil {
		return err
	}
	if f == nil && (r.cuts > 0 || r.unsaid) {
		// The cut must not be lost, yet it has no place: take away everything that it could take back. The round's own
		// batches are in synced files by now.
		return j.emptyJournal()
	}
	if f == nil {
		return nil
	}
	j.blocks++
	h := blockHeader{
		length:     len(r.block) - headerBytes,
		generation: j.generation,
		number:     j.blocks,
		began:      j.began,
		count:      r.count,
	}
	h.seal(r.block)
	end := len(r.block)
	padded := r.block[:padTo(end, pageBytes)]
	clear(padded[end:])
	return f.write(padded, at)
}

// syncMembers syncs the files of those members that asked for it.
func (j *Journal) syncMembers(r *round) error {
	targets := j.targets[:0]
	for i := range r.members {
		if m := &r.members[i]; m.sync {
			targets = append(targets, target{state: m.state})
		}
	}
	j.targets = targets
	if len(targets) == 0 {
		return nil
	}
	n, err := j.syncTargets(targets, &j.syncing, atOnce)
	r.synced = n
	return err
}

// target is an owner whose files are being synced.
type target struct {
	state *ownerState
	files []vfs.File
}

// syncTargets syncs the owners' files with as few operations as possible and says how many there were. No lock is held.
// It clears targets; scratch is the caller's to keep.
func (j *Journal) syncTargets(targets []target, scratch *[]vfs.File, how pace) (int, error) {
	all := (*scratch)[:0]
	for i := range targets {
		t := &targets[i]
		t.files = t.state.owner.SyncTargets()
		all = append(all, t.files...)
	}
	var err error
	if how == gently {
		err = j.syncGently(all)
	} else {
		err = vfs.SyncMany(j.fs, j.dataDir, all)
	}
	for i := range targets {
		t := &targets[i]
		if len(t.files) > 0 {
			t.state.owner.ReleaseTargets(t.files)
		}
		*t = target{}
	}
	n := len(all)
	clear(all)
	*scratch = all
	return n, err
}

// finish ends the running round: tells the owners, wakes its waiters and hands on the token.
func (j *Journal) finish(r *round, f *file, begun time.Time, err error) error {
	if err != nil {
		j.poison(err) // also wakes everybody
	}
	j.mu.Lock()
	j.running = nil
	if j.failed != nil { // also by a pass that failed meanwhile: then nothing is acknowledged, whatever became of this round
		r.reset()
		all := r.waiting.take()
		j.mu.Unlock()
		all.wakeAll(failed)
		j.idle.Broadcast()
		return j.cause.Load()
	}
	j.ended = r.number
	told := j.tell(r)
	j.done.Store(r.number) // after the owners know: Wait looks at it without the lock, and who returns from Wait may look at the log
	j.count(r, f, begun)
	released := r.waiting.take()
	r.reset()
	next := j.open.waiting.pop()
	j.mu.Unlock()

	released.wakeAll(ended)
	if next != nil {
		next.wake(token) // last: the scheduler runs the goroutine readied last first
	}
	j.idle.Broadcast()
	j.notify(told)
	return nil
}

// tell passes the round's result to its owners; a Cut that came meanwhile has lowered what they are told. j.mu is held.
func (j *Journal) tell(r *round) *[]Owner {
	told := j.toldPool.Get().(*[]Owner)
	for i := range r.members {
		m := &r.members[i]
		if m.end > none {
			m.state.owner.Synced(m.end)
			if m.sync {
				m.state.segmentSynced(m.end)
			}
			*told = append(*told, m.state.owner)
		}
	}
	for i := range r.members {
		if s := r.members[i].state; s.gone {
			s.in[r.slot()].round = 0
			j.forget(s)
		}
	}
	return told
}

func (j *Journal) notify(told *[]Owner) {
	for _, o := range *told {
		o.Notify()
	}
	clear(*told)
	*told = (*told)[:0]
	j.toldPool.Put(told)
}

// count keeps the statistics. j.mu is held.
func (j *Journal) count(r *round, f *file, begun time.Time) {
	took := time.Since(begun)
	s := &j.stats
	s.Rounds++
	if f != nil {
		s.Blocks++
		s.BlockBytes += uint64(padTo(len(r.block), pageBytes))
	}
	s.Records += uint64(r.count)
	s.Synced += uint64(r.synced)
	s.Waiters += uint64(r.waiters)
	s.Time += took
	s.Last = took
	s.Max = max(s.Max, took)
	s.Latency[min(bits.Len64(uint64(took.Microseconds())), len(s.Latency)-1)]++
}

// emptyJournal leaves nothing in the files that could be replayed. The runner calls it, and Close.
func (j *Journal) emptyJournal() error {
	j.mu.Lock()
	j.emptying = true // or a pass that lets this round pass would be waited for by it
	j.mu.Unlock()
	j.idle.Broadcast()
	j.passMu.Lock()
	defer j.passMu.Unlock()
	j.mu.Lock()
	j.emptying = false
	if f := j.current; f != nil {
		j.sealed = append(j.sealed, f)
		j.current = nil
	}
	j.mu.Unlock()
	for patience := time.Now().Add(cutPatience); ; {
		progress, err := j.recycle(atOnce) // the runner is waited for by gentle passes
		if err != nil {
			return err
		}
		j.mu.Lock()
		left := len(j.sealed)
		j.mu.Unlock()
		if left == 0 {
			j.wakeKeeper()
			return nil
		}
		if progress {
			continue
		}
		if time.Now().After(patience) {
			return errStuck
		}
		runtime.Gosched()
	}
}
