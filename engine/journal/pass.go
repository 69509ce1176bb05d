package journal

// A pass syncs segment files outside of rounds, so that journal files can be used again. One runs at a time (passMu).

// recycle takes the oldest sealed file, syncs what is not synced yet of all that it holds, and frees it. It reports false if there was none,
// or if a log is between lowering its End and calling Cut. The error is a failed sync or write; the caller poisons.
//
// The order is what keeps a cut from being undone. Say that at some moment block b is readable, that is, replay would find it.
// Then so is every block after b:
//
//   - blocks get rising numbers, and block b+1 is written after the write of b has returned;
//   - a block becomes unreadable only when its file's head is overwritten (kill). Files are sealed in the order of their blocks and killed in the
//     order in which they were sealed, each after the kill of the one before has returned;
//   - blocks are written over older ones only in files that were killed (or made new), and the first of them replaces the head; what is left
//     behind it in the file is of another generation or has a lower number than the chain demands.
//
// So if replay finds a batch, it finds every cut that was written after it, and a free file, in whatever order it is
// used again, holds nothing that could come back. passMu is held.
func (j *Journal) recycle(how pace) (bool, error) {
	j.mu.Lock()
	if j.failed != nil {
		j.mu.Unlock()
		return false, j.cause.Load()
	}
	if len(j.sealed) == 0 {
		j.mu.Unlock()
		return false, nil
	}
	f := j.sealed[0]
	for s, pin := range f.pins {
		if s.synced < pin {
			j.addTarget(s)
		}
	}
	j.mu.Unlock()
	if err := j.pass(how); err != nil {
		return false, err
	}

	j.mu.Lock()
	for s, pin := range f.pins {
		if s.synced < pin { // End was lowered, Cut is about to be called
			j.mu.Unlock()
			return false, nil
		}
	}
	j.mu.Unlock()
	if err := f.kill(j.page); err != nil {
		return false, err
	}

	j.mu.Lock()
	defer j.mu.Unlock()
	j.sealed = append(j.sealed[:0], j.sealed[1:]...)
	f.pos = 0
	for s := range f.pins {
		s.pins--
		j.forget(s)
	}
	clear(f.pins)
	j.free = append(j.free, f)
	j.stats.Recycled++
	return true, nil
}

// addTarget makes s part of the pass to come. j.mu and passMu are held.
func (j *Journal) addTarget(s *ownerState) {
	s.passing = true
	s.passEnd = s.owner.End()
	j.passTargets = append(j.passTargets, target{state: s})
	j.passStates = append(j.passStates, s)
}

// pass syncs the files of the targets and tells their owners. passMu is held.
func (j *Journal) pass(how pace) error {
	if len(j.passTargets) == 0 {
		return nil
	}
	_, err := j.syncTargets(j.passTargets, &j.passFiles, how)
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, s := range j.passStates {
		s.passing = false
		if err == nil {
			s.segmentSynced(s.passEnd)
		}
		if s.gone {
			j.forget(s)
		}
	}
	j.stats.Passes++
	clear(j.passStates)
	j.passStates = j.passStates[:0]
	j.passTargets = j.passTargets[:0]
	return err
}

// SyncAll syncs the files of every owner that added something that is not synced where it belongs yet, beside the rounds.
// A failure poisons the journal.
func (j *Journal) SyncAll() error {
	j.mu.Lock()
	err := j.refusal()
	j.mu.Unlock()
	if err != nil {
		return err
	}
	return j.syncAll()
}

func (j *Journal) syncAll() error {
	j.passMu.Lock()
	defer j.passMu.Unlock()
	j.mu.Lock()
	for _, s := range j.owners {
		if s.added > s.synced {
			j.addTarget(s)
		}
	}
	j.mu.Unlock()
	if err := j.pass(atOnce); err != nil {
		j.poison(err)
		return j.cause.Load()
	}
	return nil
}
