package journal

import (
	"errors"
	"time"
)

// The keeper is one goroutine: Start begins it, Close ends it and waits for it. It does what rounds must not wait for: it recycles
// sealed files, makes and grows files, and runs rounds that nobody waits for.
func (j *Journal) keeper() {
	defer close(j.keeperDone)
	timer := time.NewTimer(flushDelay)
	timer.Stop()
	ticking := false
	for {
		select {
		case <-j.stop:
			timer.Stop()
			return
		case <-j.kick:
		case <-timer.C:
			ticking = false
			j.flushStale()
		}
		if !ticking && j.flushWanted() {
			ticking = true
			timer.Reset(flushDelay)
		}
		j.maintain()
	}
}

// wakeKeeper makes the keeper look at what there is to do. It never blocks.
func (j *Journal) wakeKeeper() {
	select {
	case j.kick <- struct{}{}:
	default:
	}
}

// maintain does all there is to do with files, until nothing is left or Close comes.
func (j *Journal) maintain() {
	for {
		select {
		case <-j.stop:
			return
		default:
		}
		busy := j.recycleOne()
		j.tellRecycled()
		if !busy && !j.makeOne() && !j.growOne() && !j.removeOne() {
			return
		}
	}
}

// recycleOne recycles the oldest sealed file. It reports whether it did.
func (j *Journal) recycleOne() bool {
	j.passMu.Lock()
	did, err := j.recycle(gently)
	j.passMu.Unlock()
	if err != nil {
		j.poison(err)
	}
	return did
}

// tellRecycled calls the hook if files were recycled since the last call, by whomever.
func (j *Journal) tellRecycled() {
	j.mu.Lock()
	tell := j.stats.Recycled != j.recycledTold
	j.recycledTold = j.stats.Recycled
	j.mu.Unlock()
	if tell && j.onRecycle != nil {
		j.onRecycle()
	}
}

// wantsFile reports whether another file should be made now: lazily, so that an idle broker does not write four of them,
// but before the last one is full. j.mu is held.
func (j *Journal) wantsFile(now time.Time) bool {
	if j.off || j.failed != nil || now.Before(j.noFileUntil) || len(j.free) > 0 || len(j.files) >= j.maxFiles {
		return false
	}
	f := j.current
	return f == nil || f.size < j.fileBytes || f.pos > f.size/2
}

// makeOne makes a file if one is wanted. If that fails, rounds that find none free sync the logs' files, and it is tried again
// after makeRetry. It does not poison, for nothing acknowledged depends on a file that is not there yet, unless it was the sync of the folder.
func (j *Journal) makeOne() bool {
	j.mu.Lock()
	want := j.wantsFile(time.Now())
	j.mu.Unlock()
	if !want {
		return false
	}
	f, err := j.makeFile(j.fileBytes, j.stop)
	var names *failedNamesError
	if errors.As(err, &names) {
		j.poison(err)
		return false
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if err != nil {
		j.noFileUntil = time.Now().Add(makeRetry)
		if !errors.Is(err, errStopped) {
			j.log.Warn("no further journal file; rounds that find none free sync the logs' files", "dir", j.dir, "err", err)
		}
		return false
	}
	j.files = append(j.files, f)
	j.free = append(j.free, f)
	return true
}

// growOne brings a small free file to full size, if rounds can do without it meanwhile.
func (j *Journal) growOne() bool {
	j.mu.Lock()
	var f *file
	spare := len(j.free) > 1 || j.current != nil && j.current.pos < j.current.size/2
	for i := range j.free {
		if spare && !time.Now().Before(j.noFileUntil) && j.failed == nil && j.free[i].size < j.fileBytes {
			f = j.free[i]
			j.free = append(j.free[:i], j.free[i+1:]...)
			break
		}
	}
	j.mu.Unlock()
	if f == nil {
		return false
	}
	free, err := j.fs.Free(j.dir)
	if err == nil && free < spareFiles*j.fileBytes {
		err = errNoSpace
	}
	if err == nil {
		err = prewrite(j.fs, f.name, f.size, j.fileBytes, j.stop)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if err == nil {
		f.size = j.fileBytes
	} else {
		j.noFileUntil = time.Now().Add(makeRetry) // it stays as it was
	}
	j.free = append(j.free, f)
	return err == nil
}

// removeOne removes one of the files that Start found no use for. Nothing in them can be replayed.
func (j *Journal) removeOne() bool {
	if len(j.doomed) == 0 { // the keeper's since Start
		return false
	}
	name := j.doomed[0]
	j.doomed = j.doomed[1:]
	if err := j.fs.Remove(name); err != nil {
		j.log.Warn("journal file not removed", "file", name, "err", err)
	}
	return true
}

// armFlush sees to it that the open round is run even if nobody waits for it. j.mu is held.
func (j *Journal) armFlush() {
	if !j.flushArmed {
		j.flushArmed = true
		j.wakeKeeper()
	}
}

func (j *Journal) flushWanted() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.flushArmed
}

// flushStale runs the open round if it has stood for a whole flushDelay with nobody waiting for it.
func (j *Journal) flushStale() {
	j.mu.Lock()
	r := j.open
	if r.empty() || j.refusal() != nil {
		j.flushArmed = false
		j.mu.Unlock()
		return
	}
	if stale := r.number == j.flushSeen; stale && r.waiters == 0 && j.running == nil {
		_ = j.run() // unlocks; a failure has poisoned the journal, which whoever comes next is told
		return
	}
	j.flushSeen = r.number
	j.mu.Unlock()
}
