package journal

import (
	"errors"

	"millrace/engine/vfs"
)

// pace is how a pass syncs.
type pace int

const (
	atOnce pace = iota // in the cheapest way: nobody is in the way, or somebody waits for it
	gently             // so that a round meanwhile is held up by the device writes of one piece at most
)

// syncGently syncs files for a pass beside the rounds. All at once, gigabytes of segments may stand in the device's queue before the next block of the
// journal. So what is unwritten is written out piece by piece; few files are then synced a few at a time, and many, whose syncs would be as many
// commits of the file system's own journal, by one sync of the file system. Between two of these a round that is running comes first. No
// lock of a file is held while it is waited for.
//
// Rounds that follow each other without a gap would keep a pass from ever ending: it waits for the end of one, then goes on beside the
// next. And if no free file is left, rounds depend on the pass, and it hurries.
func (j *Journal) syncGently(files []vfs.File) error {
	spare := j.piece // so much may be left to a file's sync
	if len(files) > passMany {
		spare = 0
	}
	if err := j.writeOut(files, spare); err != nil {
		return err
	}
	if j.hurries() {
		return vfs.SyncMany(j.fs, j.dataDir, files)
	}
	for len(files) > 0 {
		n := len(files)
		if n <= passMany {
			n = min(n, passFiles)
		}
		j.letRoundPass()
		if err := vfs.SyncMany(j.fs, j.dataDir, files[:n]); err != nil {
			return err
		}
		files = files[n:]
	}
	return nil
}

// writeOut writes out those files that have more unwritten than spare: a piece at a time, be it of one file or of many together, for one small file after
// the other would take the device as long as a piece each. An error is that of a sync.
func (j *Journal) writeOut(files []vfs.File, spare int64) error {
	var together []vfs.File // begun, not waited for
	var bytes int64         // of them
	wait := func() error {
		for _, f := range together {
			if err := f.WriteOut(0, 0, true); err != nil {
				return err
			}
		}
		together, bytes = together[:0], 0
		return nil
	}
	for _, f := range files {
		dirty, err := f.Dirty()
		if errors.Is(err, vfs.ErrUnsupported) || err == nil && dirty <= spare {
			continue
		}
		if err != nil {
			return err
		}
		if bytes+dirty > j.piece {
			if err := wait(); err != nil {
				return err
			}
		}
		if dirty > j.piece {
			if err := j.writeLarge(f); err != nil {
				return err
			}
			continue
		}
		if bytes == 0 {
			j.letRoundPass()
		}
		if err := f.WriteOut(0, 0, false); err != nil {
			return err
		}
		together, bytes = append(together, f), bytes+dirty
	}
	return wait()
}

// writeLarge writes out a file of more than a piece.
func (j *Journal) writeLarge(f vfs.File) error {
	size, err := f.Size()
	for at := int64(0); at < size && err == nil; at += j.piece {
		j.letRoundPass()
		err = f.WriteOut(at, j.piece, true)
	}
	return err
}

// letRoundPass waits for the end of the round that is running, if one is and rounds can wait for the pass.
func (j *Journal) letRoundPass() {
	j.mu.Lock()
	defer j.mu.Unlock()
	r := j.running
	if r == nil {
		return
	}
	for n := r.number; j.running != nil && j.running.number == n && !j.pressed(); {
		j.idle.Wait()
	}
}

func (j *Journal) hurries() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.pressed()
}

// pressed: the next round that does not fit in the current file finds no other, or a round waits for passMu. j.mu is held.
func (j *Journal) pressed() bool {
	return j.failed != nil || j.emptying || len(j.files) >= j.maxFiles && len(j.free) == 0
}
