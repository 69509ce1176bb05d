package journal

import (
	"errors"

	"millrace/engine/vfs"
)

// pace is how a pass syncs.
type pace int

const (
	atOnce pace = iota // in the cheapest way: nobody is in the way, or somebody waits for it
	gently             // so that a round meanwhile is held up by one device write at most
)

// syncGently syncs files for a pass beside the rounds. All at once, gigabytes of segments may stand in the device's queue before the next block of the
// journal. So what a file has unwritten is written out piece by piece, and then a few files are synced at a time; between two of these a round
// that is running comes first. No lock of a file is held while it is waited for.
//
// Rounds that follow each other without a gap would keep a pass from ever ending: it waits for the end of one, then goes on beside the
// next. And if no free file is left, rounds depend on the pass, and it hurries.
func (j *Journal) syncGently(files []vfs.File) error {
	for _, f := range files {
		if err := j.writeOut(f); err != nil {
			return err
		}
	}
	if j.hurries() {
		return vfs.SyncMany(j.fs, j.dataDir, files)
	}
	for len(files) > 0 {
		n := min(len(files), passFiles)
		j.letRoundPass()
		if err := vfs.SyncMany(j.fs, j.dataDir, files[:n]); err != nil {
			return err
		}
		files = files[n:]
	}
	return nil
}

// writeOut writes what f has unwritten, unless a sync will do with one write. An error is that of a sync.
func (j *Journal) writeOut(f vfs.File) error {
	dirty, err := f.Dirty()
	if errors.Is(err, vfs.ErrUnsupported) || err == nil && dirty <= j.piece {
		return nil
	}
	var size int64
	if err == nil {
		size, err = f.Size()
	}
	for at := int64(0); at < size && err == nil; at += j.piece {
		j.letRoundPass()
		err = f.WriteOut(at, j.piece)
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
