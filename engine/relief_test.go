package engine

import (
	"context"
	"syscall"
	"testing"

	"millrace/engine/vfs/faultfs"
)

// Claim (F127, L4): an operation that finds no descriptor is done again once others' files were closed; nothing is poisoned for lack of one, and all of it
// is there after a loss of power.
// Method: a store of three logs; every operation that opens something of appends that roll, of deleting and making a log, and of a checkpoint finds none
// left, in turn.
func TestField_F127_NoDescriptorIsNotAFailedSync(t *testing.T) {
	for _, kind := range []faultfs.Kind{faultfs.OpCreate, faultfs.OpSyncDir, faultfs.OpSyncFS} {
		for n, fired := 0, true; fired; n++ {
			disk := faultfs.New(t)
			o := quiet(disk, "/a")
			o.Defaults, o.OpenFiles = smallLog(), 10
			s := openStore(t, o)
			create(t, s, spec("t", 1, 3))
			for _, l := range s.Logs() {
				putN(t, l, 20)
			}
			disk.Fail(faultfs.Fault{Kind: kind, After: n, Err: syscall.EMFILE})
			for _, l := range s.Logs() {
				putN(t, l, 20)
			}
			create(t, s, spec("u", 2, 1))
			if err := s.Delete("u"); err != nil {
				t.Fatalf("%s %d: %v", kind, n, err)
			}
			if err := s.Checkpoint(); err != nil {
				t.Fatalf("%s %d: %v", kind, n, err)
			}
			fired = disk.Fired()
			disk.CutPower(faultfs.KeepUnsynced(0), faultfs.KeepJournal(0), faultfs.KeepNames(0))
			_ = s.Close(context.Background())
			o.FS = disk.Session()
			s = openStore(t, o)
			for _, l := range s.Logs() {
				if got := mustContents(t, l); len(got) != 40 {
					t.Fatalf("%s %d: %s holds %d of 40", kind, n, l.Dir(), len(got))
				}
			}
			_ = s.Close(context.Background())
		}
	}
}

// Claim (F127): where an operation of a Store finds no descriptor and no segment file can be closed, idle index files are.
// Method: look-ups open the indexes of closed segments; all segment files are closed; then a topic is made with no descriptor left for a moment.
func TestField_F127_IndexFilesAreGivenUp(t *testing.T) {
	disk := faultfs.New(t)
	o := quiet(disk, "/a")
	o.Defaults = smallLog()
	s := openStore(t, o)
	create(t, s, spec("t", 1, 1))
	l := s.Log("t", 0)
	putTimed(t, l, 60)
	requireTimes(t, l)
	for s.files.relieve(relievedFiles) > 0 {
	}
	held := s.indexes.Files()
	if held == 0 {
		t.Fatal("no index file is open")
	}
	disk.Fail(faultfs.Fault{Kind: faultfs.OpCreate, Err: syscall.EMFILE})
	create(t, s, spec("u", 2, 1))
	if !disk.Fired() || s.indexes.Files() >= held {
		t.Errorf("fired %v, %d of %d index files are open", disk.Fired(), s.indexes.Files(), held)
	}
	requireTimes(t, l)
	closeStore(t, s)
}
