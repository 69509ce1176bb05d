package engine

import (
	"errors"
	"fmt"
	"io/fs"
	"testing"

	"millrace/engine/vfs/faultfs"
)

// Claim (L4): in a directory that has gone offline no log acknowledges anything any more, whatever sync it was that failed, and also in
// page-cache mode, where an append waits for none.
// Method: the directory's sync of a Delete fails, or a round of the journal; then one append in each mode.
func TestOfflineDirectoryAcknowledgesNothing(t *testing.T) {
	for name, fault := range map[string]faultfs.Fault{
		"delete":  {Kind: faultfs.OpSyncDir, Pattern: "/a"},
		"journal": {Kind: faultfs.OpDirectWrite},
	} {
		t.Run(name, func(t *testing.T) {
			disk := faultfs.New(t)
			s := openStore(t, quiet(disk, "/a"))
			cached := spec("cached", 3, 1)
			cached.Config = s.o.Defaults
			cached.Config.Durability = PageCache
			create(t, s, spec("goes", 1, 1), spec("synced", 2, 1), cached)
			for _, l := range s.Logs() {
				if err := add(l, "kept"); err != nil {
					t.Fatal(err)
				}
			}
			disk.Fail(fault)
			if name == "delete" {
				_ = s.Delete("goes")
			} else {
				_ = add(s.Log("goes", 0), "lost")
			}
			if !disk.Fired() || s.OfflineDirs()["/a"] == nil {
				t.Fatal("the directory is not offline")
			}
			for _, topic := range []string{"synced", "cached"} {
				if err := add(s.Log(topic, 0), "refused"); !errors.Is(err, ErrPoisoned) {
					t.Errorf("%s: %v, want ErrPoisoned", topic, err)
				}
				if got := values(t, s.Log(topic, 0)); got[0] != "kept" {
					t.Errorf("%s: %q", topic, got)
				}
			}
			disk.CutPower()
		})
	}
}

// Claim (L4): a sync that failed over a log which nobody waited for is remembered too: the next life of a process does not take for synced what the system
// has taken for written.
// Method: the sync of a checkpoint fails over a page-cache log; the process is killed, the next one syncs all and is asked after a loss of power.
func TestFailedSyncOfNobodyIsRemembered(t *testing.T) {
	for _, kind := range []faultfs.Kind{faultfs.OpSync, faultfs.OpSyncFS} {
		t.Run(fmt.Sprint(kind), func(t *testing.T) {
			disk := faultfs.New(t)
			o := quiet(disk, "/a")
			s := openStore(t, o)
			logs := 1
			if kind == faultfs.OpSyncFS {
				logs = 20
			}
			cached := spec("cached", 3, logs)
			cached.Config = s.o.Defaults
			cached.Config.Durability = PageCache
			create(t, s, cached)
			for _, l := range s.Logs() {
				if err := add(l, "kept"); err != nil {
					t.Fatal(err)
				}
			}
			disk.Fail(faultfs.Fault{Kind: kind})
			if err := s.Checkpoint(); err == nil || !disk.Fired() {
				t.Fatalf("%v; the sync failed: %v", err, disk.Fired())
			}
			disk = crash(disk)
			s = openStore(t, quiet(disk, "/a"))
			if err := s.Checkpoint(); err != nil {
				t.Fatal(err)
			}
			for _, l := range s.Logs() {
				if l.RecoveryPoint() != 1 {
					t.Errorf("%s: recovery point %d", l.Dir(), l.RecoveryPoint())
				}
			}
			disk.CutPower()
			s = openStore(t, quiet(disk, "/a"))
			for _, l := range s.Logs() {
				if got := values(t, l); len(got) != 1 || got[0] != "kept" {
					t.Errorf("%s: %q", l.Dir(), got)
				}
			}
			closeStore(t, s)
		})
	}
}

// Claim (L4): a directory whose name could not be synced is not left for somebody who would find it there and rely on it.
func TestDirectoryWithoutADurableNameIsTakenAway(t *testing.T) {
	disk := faultfs.New(t)
	disk.Fail(faultfs.Fault{Kind: faultfs.OpSyncDir, Pattern: "/"})
	if err := makeDir(disk, "/j/x"); err == nil || !disk.Fired() {
		t.Fatal("the sync did not fail")
	}
	if _, err := disk.Stat("/j"); !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	if err := makeDir(disk, "/j/x"); err != nil {
		t.Fatal(err)
	}
	disk.CutPower(faultfs.KeepNames(0))
	if _, err := disk.Stat("/j/x"); err != nil {
		t.Fatal(err)
	}
}
