package faultfs

import (
	"fmt"
	"testing"
)

// Claim: Sync keeps a file's bytes but not its name; SyncDir its name but not its
// bytes; SyncFS both.
// Method: each alone, then a cut that keeps nothing.
func TestNamesAndContentsAreDurableApart(t *testing.T) {
	d := newDisk(t)
	must(t, d.MkdirAll("/d/sub"))
	for _, name := range []string{"/d/sub/bytes", "/d/name", "/d/bytes"} {
		write(t, create(t, d, name), []byte("x"), 0)
	}
	must(t, create(t, d, "/d/sub/bytes").Sync())
	must(t, d.SyncDir("/d/sub"))
	all := d.Clone()
	must(t, d.Remove("/d/bytes"))
	must(t, d.SyncDir("/d"))
	write(t, create(t, d, "/d/bytes"), []byte("x"), 0)
	must(t, create(t, d, "/d/bytes").Sync())
	none := all.Clone()
	must(t, all.SyncFS("/"))

	d.CutPower(KeepUnsynced(0))
	if got := list(t, d, "/d"); got != "name sub" || len(read(t, d, "/d/name")) != 0 {
		t.Errorf("after SyncDir: %q", got)
	}
	if string(read(t, d, "/d/sub/bytes")) != "x" {
		t.Error("a synced file in a synced directory is gone")
	}
	none.CutPower(KeepUnsynced(0))
	if got := list(t, none, "/d"); got != "" {
		t.Errorf("a directory of unsynced name left %q", got)
	}
	all.CutPower(KeepUnsynced(0))
	if got := list(t, all, "/d"); got != "bytes name sub" || string(read(t, all, "/d/bytes")) != "x" {
		t.Errorf("after SyncFS: %q", got)
	}
}

// Claim: of a directory's unsynced changes a prefix survives, and every length comes.
// Method: creations, a removal and a rename in a row; the listing must be one of the history.
func TestChangesOfNamesSurviveInOrder(t *testing.T) {
	history := []string{"old", "a old", "a b old", "a b", "b c", "b c d"}
	seen := map[string]bool{}
	eachSeed(t, func(d *Disk) {
		durable(t, d, "/d/old", nil)
		create(t, d, "/d/a")
		create(t, d, "/d/b")
		must(t, d.Remove("/d/old"))
		must(t, d.Rename("/d/a", "/d/c"))
		create(t, d, "/d/d")
		d.CutPower(KeepUnsynced(50))
		got := list(t, d, "/d")
		for _, h := range history {
			if got == h {
				seen[got] = true
				return
			}
		}
		t.Fatalf("never was: %q", got)
	})
	if len(seen) != len(history) {
		t.Errorf("seen only %v", seen)
	}
}

// Claim: a rename is whole or absent, over an existing file and between directories.
// Method: at all seeds, exactly one of old and new state, with right contents.
func TestRenameIsAtomic(t *testing.T) {
	seen := map[string]int{}
	eachSeed(t, func(d *Disk) {
		must(t, d.MkdirAll("/e"))
		must(t, d.SyncDir("/"))
		durable(t, d, "/d/new", []byte("new"))
		durable(t, d, "/e/target", []byte("old"))
		if d.Seed()%2 == 0 { // something before it, in each directory
			create(t, d, "/d/x")
			create(t, d, "/e/y")
		}
		must(t, d.Rename("/d/new", "/e/target"))
		create(t, d, "/d/z")
		d.CutPower(KeepUnsynced(50))
		state := fmt.Sprintf("%s/%s", read(t, d, "/d/new"), read(t, d, "/e/target"))
		seen[state]++
		if state == "/new" && d.Seed()%2 == 0 && (read(t, d, "/d/x") == nil || read(t, d, "/e/y") == nil) {
			t.Fatal("the rename is there without what came before it")
		}
	})
	if len(seen) != 2 || seen["new/old"] == 0 || seen["/new"] == 0 {
		t.Errorf("states: %v", seen)
	}
}

// Claim: syncing one directory of a rename brings it, and what came before it in the
// other directory, to the disk.
// Method: renames to and fro; sync one side; cut with nothing kept.
func TestSyncDirOfOneSideOfARename(t *testing.T) {
	d := newDisk(t)
	must(t, d.MkdirAll("/e"))
	must(t, d.SyncDir("/"))
	durable(t, d, "/d/1", []byte("1"))
	durable(t, d, "/e/2", []byte("2"))
	create(t, d, "/e/before")
	must(t, d.Rename("/d/1", "/e/1"))
	must(t, d.Rename("/e/2", "/d/2"))
	create(t, d, "/e/after")
	must(t, d.SyncDir("/d"))
	d.CutPower(KeepUnsynced(0))
	if l, r := list(t, d, "/d"), list(t, d, "/e"); l != "2" || r != "1 before" {
		t.Errorf("d: %q, e: %q", l, r)
	}
}

// Claim: a removal that was not synced is undone, with the contents, also of a whole tree.
// Method: RemoveAll, cut with nothing kept, then with all.
func TestUnsyncedRemovalIsUndone(t *testing.T) {
	d := newDisk(t)
	durable(t, d, "/d/t/a", []byte("a"))
	durable(t, d, "/d/t/u/b", []byte("b"))
	must(t, d.RemoveAll("/d/t"))
	kept := d.Clone()
	d.CutPower(KeepUnsynced(0))
	if string(read(t, d, "/d/t/a"))+string(read(t, d, "/d/t/u/b")) != "ab" {
		t.Error("removed for good without a sync")
	}
	kept.CutPower(KeepUnsynced(100))
	if got := list(t, kept, "/d"); got != "" {
		t.Errorf("left: %q", got)
	}
}

// Claim: a cut during RemoveAll leaves a tree half removed, in every stage.
// Method: cut at each operation, keeping all that was done.
func TestRemoveAllIsManyOperations(t *testing.T) {
	stages := map[string]bool{}
	for n := range 4 {
		d := newDisk(t)
		durable(t, d, "/d/t/a", nil)
		durable(t, d, "/d/t/b", nil)
		durable(t, d, "/d/t/c", nil)
		d.CutAtOperation(n)
		failsWith(t, "RemoveAll", d.RemoveAll("/d/t"), ErrPowerCut)
		d.CutPower(KeepUnsynced(100))
		stages[list(t, d, "/d")+":"+fmt.Sprint(read(t, d, "/d/t/a") != nil, read(t, d, "/d/t/c") != nil)] = true
	}
	if len(stages) != 3 { // b, between a and c, makes no difference to what is looked at
		t.Errorf("stages: %v", stages)
	}
}
