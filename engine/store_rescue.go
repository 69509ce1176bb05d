package engine

import (
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"millrace/engine/journal"
)

// rescue saves what the journals hold of logs that are not open, before the journals
// forget it: such a log was set aside, and acknowledged batches of it may be nowhere
// else. They go to plain files in the data directory, as batches one after another,
// in the format of a segment. If no log was set aside they are those of a
// deleted topic. It reports whether it wrote anything; the caller syncs.
func (d *dataDir) rescue() (bool, error) {
	d.mu.Lock()
	aside := d.mu.aside
	open := make(map[journal.LogID]bool)
	for _, l := range d.mu.live {
		open[l.ID()] = true
	}
	d.mu.Unlock()
	if !aside {
		return false, nil
	}
	wrote := false
	for _, j := range []*journal.Journal{d.former, d.journal} {
		if j == nil {
			continue
		}
		for _, id := range j.Logs() {
			if open[id] {
				continue
			}
			if err := d.rescueLog(id, j.Replay(id)); err != nil {
				return wrote, fmt.Errorf("save what the journal holds of a log that was set aside: %w", err)
			}
			wrote = true
		}
	}
	return wrote, nil
}

func (d *dataDir) rescueLog(id journal.LogID, entries []journal.Entry) (err error) {
	if len(entries) == 0 {
		return nil
	}
	name := fmt.Sprintf("millrace-rescued-%s-%d-%s", hex.EncodeToString(id.Topic[:]), id.Partition, baseName(Offset(entries[0].Base)))
	f, err := d.fs.OpenFile(filepath.Join(d.path, name), os.O_RDWR|os.O_CREATE|os.O_TRUNC)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	pos := int64(0)
	for i := range entries {
		b := make([]byte, entries[i].Size)
		if err := entries[i].Read(b); err != nil {
			return err
		}
		if _, err := f.WriteAt(b, pos); err != nil {
			return err
		}
		pos += int64(len(b))
	}
	d.store.log.Error("acknowledged batches of a log that was set aside are saved from the journal",
		"file", f.Name(), "topic_id", hex.EncodeToString(id.Topic[:]), "partition", id.Partition,
		"base", entries[0].Base, "end", entries[len(entries)-1].End, "bytes", pos)
	return nil
}
