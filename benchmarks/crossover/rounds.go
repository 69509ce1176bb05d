package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"millrace/benchmarks/peers/report"
	"millrace/engine/journal"
	"millrace/engine/vfs"
)

// commitLog is the least that a journal asks of a log: one file that grows, which nobody will read.
type commitLog struct {
	file vfs.File
	size int64
	end  int64
}

func (l *commitLog) ID() journal.LogID         { return journal.LogID{} }
func (l *commitLog) End() int64                { return l.end }
func (l *commitLog) Synced(int64)              {}
func (l *commitLog) SegmentSynced(int64)       {}
func (l *commitLog) Notify()                   {}
func (l *commitLog) SyncTargets() []vfs.File   { return []vfs.File{l.file} }
func (l *commitLog) ReleaseTargets([]vfs.File) {}

// commit appends data and waits until it is durable.
func (l *commitLog) commit(j *journal.Journal, data []byte) error {
	if _, err := l.file.WriteAt(data, l.size); err != nil {
		return err
	}
	l.size += int64(len(data))
	l.end++
	return j.Wait(j.Add(l, 1, l.end-1, l.end, [][]byte{data}))
}

// measureThreshold acknowledges batches of one size, once with all of them in the journal and once with none.
func measureThreshold(o options, r *results) error {
	for kib := 16; kib <= 1024; kib *= 2 {
		data := make([]byte, kib<<10)
		var ways []way
		for _, w := range []struct {
			name      string
			threshold int
		}{{"journal", -1}, {"sync of the file", 1}} {
			ways = append(ways, way{w.name, func() (report.Values, error) { return commits(o, data, w.threshold) }})
		}
		if err := r.row(o, fmt.Sprint(kib), float64(kib), ways); err != nil {
			return err
		}
	}
	return nil
}

// commits runs a journal from its start to its end. Its files are full-grown before it is measured.
func commits(o options, data []byte, threshold int) (v report.Values, err error) {
	dir, err := os.MkdirTemp(o.dir, "journal-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	fsys, err := vfs.OSWith(vfs.IOAuto)
	if err != nil {
		return nil, err
	}
	defer fsys.Close()
	file, err := fsys.OpenFile(filepath.Join(dir, "log"), os.O_RDWR|os.O_CREATE)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	j, err := journal.Open(journal.Options{FS: fsys, Dir: dir, DataDir: dir, Threshold: threshold})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, j.Close()) }()
	if err := j.Start(); err != nil {
		return nil, err
	}
	log := &commitLog{file: file}
	for s := j.Stats(); threshold < 0 && (s.Files < 2 || s.Recycled == 0); s = j.Stats() { // the first, small file has been left and grown
		if err := log.commit(j, make([]byte, 64<<10)); err != nil {
			return nil, err
		}
	}
	time.Sleep(300 * time.Millisecond) // for the keeper, which writes files full of zeros and pauses as long as each piece took
	return times(o.n, nil, func() error { return log.commit(j, data) })
}
