package engine

import (
	"errors"
	"testing"
	"time"

	"millrace/engine/vfs/faultfs"
)

// Claim (L4): a failed sync of the folder that a journal makes for a file of its own ends all acks: the folder may be the log's as well, and the next sync, for
// the name of a new segment, would be told that all is well while the name is lost.
// Method: a log in one folder with its journal; the folder's next sync fails, once, and there is no other reason for one than the journal's second file.
func TestJournalsFailedSyncOfTheFolderEndsAcks(t *testing.T) {
	disk := faultfs.New(t)
	c := smallLog()
	c.SegmentBytes = 64 << 20
	l := openTestLog(t, disk.Session(), c)
	fail(t, l.Append(leaderAppend(newBatch(1000, []string{"kept"})), 0))
	disk.Fail(faultfs.Fault{Kind: faultfs.OpSyncDir, Times: 1})
	var err error
	for begun := time.Now(); err == nil && time.Since(begun) < time.Minute; {
		err = l.Append(leaderAppend(newBatch(1000, []string{"more"})), 0)
	}
	if !errors.Is(err, ErrPoisoned) || !disk.Fired() {
		t.Errorf("appends ended with %v (the fault fired: %v), want ErrPoisoned", err, disk.Fired())
	}
	_ = l.Close()
}
