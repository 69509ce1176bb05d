package engine

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"

	"millrace/engine/batch"
	"millrace/engine/checkpoint"
	"millrace/engine/vfs/faultfs"
)

// Claim: F014 a full disk does not keep a store from starting, and everything acknowledged is there.
// Method: kill -9 (the page cache stays), no byte free, start, read; then free space and append.
func TestField_F014_StartOnFullDisk(t *testing.T) {
	disk := faultfs.New(t)
	s := openStore(t, quiet(disk, "/a"))
	create(t, s, spec("t", 1, 3))
	for p := range int32(3) {
		if err := add(s.Log("t", p), "kept"); err != nil {
			t.Fatal(err)
		}
	}
	disk.CutPower(faultfs.KeepUnsynced(100), faultfs.KeepNames(100))
	disk.SetFree(0)
	s = openStore(t, quiet(disk, "/a"))
	for p := range int32(3) {
		requireHolds(t, s.Log("t", p), "kept")
	}
	disk.SetFree(0) // a start gives back what the journal had begun to prepare before the cut
	if err := add(s.Log("t", 0), "refused"); !errors.Is(err, ErrStorage) {
		t.Fatalf("an append to a full disk: %v, want a storage error", err)
	}
	disk.SetFree(-1)
	if err := add(s.Log("t", 0), "again"); err != nil {
		t.Fatal(err)
	}
	requireHolds(t, s.Log("t", 0), "kept", "again")
	closeStore(t, s)
}

// Claim: F014 when there is no space to replay the journal, the directory is offline and says why, and the journal keeps
// what was acknowledged until there is.
// Method: power cut, page cache lost, no byte free; start twice; then free space.
func TestField_F014_NoSpaceToReplay(t *testing.T) {
	disk := faultfs.New(t)
	s := openStore(t, quiet(disk, "/a", "/b"))
	create(t, s, spec("t", 1, 2))
	for p := range int32(2) {
		if err := add(s.Log("t", p), "kept"); err != nil {
			t.Fatal(err)
		}
	}
	disk.CutPower(faultfs.KeepUnsynced(0), faultfs.KeepJournal(100))
	disk.SetFree(0)
	for range 2 {
		if _, err := OpenStore(context.Background(), quiet(disk, "/a", "/b")); !errors.Is(err, syscall.ENOSPC) {
			t.Fatal(err)
		}
	}
	disk.SetFree(-1)
	s = openStore(t, quiet(disk, "/a", "/b"))
	for p := range int32(2) {
		requireHolds(t, s.Log("t", p), "kept")
	}
	closeStore(t, s)
}

// Claim: what the journal holds of a log that is set aside is not forgotten: it is in a file beside the logs, as batches.
// Method: an acknowledged batch of a log whose partition.metadata is damaged, the page cache lost.
func TestJournalOfDamagedLogIsRescued(t *testing.T) {
	disk := faultfs.New(t)
	s := openStore(t, quiet(disk, "/a"))
	create(t, s, spec("t", 1, 2))
	for p := range int32(2) {
		if err := add(s.Log("t", p), "kept"); err != nil {
			t.Fatal(err)
		}
	}
	disk.CutPower(faultfs.KeepUnsynced(0), faultfs.KeepJournal(100))
	disk.WriteFile("/a/t-0/"+checkpoint.PartitionMetadataName, []byte("version: 0\ntopic_id: nonsense"))
	s = openStore(t, quiet(disk, "/a"))
	if d := s.Damaged(); len(d) != 1 || !strings.Contains(d[0].Err.Error(), "nonsense") {
		t.Fatal(d)
	}
	requireHolds(t, s.Log("t", 1), "kept")
	closeStore(t, s)
	names, _ := disk.ReadDir("/a")
	for _, n := range names {
		if strings.HasPrefix(n.Name, "millrace-rescued-") {
			b, err := disk.ReadSynced("/a/" + n.Name)
			if info, bad := batch.CheckStored(b); err != nil || bad != nil || info.Count != 1 {
				t.Fatal(err, bad)
			}
			return
		}
	}
	t.Fatal("no file with what was acknowledged", names)
}

// Claim: a directory whose sync fails goes offline alone: its logs refuse appends and can be read, the other
// directory's serve, new logs go there, and Close gives the marker of a clean stop to the good one only.
// Method: the syncs of one directory's journal fail.
func TestFailedDirectoryGoesOfflineAlone(t *testing.T) {
	disk := faultfs.New(t)
	o := quiet(disk, "/a", "/b")
	told := make(chan string, 10)
	o.DirOffline = func(dir string, err error) { told <- dir }
	s := openStore(t, o)
	create(t, s, spec("t", 1, 2))
	bad, good := s.Log("t", 0), s.Log("t", 1)
	for _, l := range []*Log{bad, good} {
		if err := add(l, "kept"); err != nil {
			t.Fatal(err)
		}
	}
	disk.Fail(faultfs.Fault{Kind: faultfs.OpDirectWrite, Pattern: "/a/*", Times: -1})
	for range 2 {
		if err := add(bad, "lost"); !errors.Is(err, ErrPoisoned) {
			t.Fatal(err)
		}
	}
	if dir := <-told; dir != "/a" || len(told) > 0 || s.OfflineDirs()["/a"] == nil || len(s.OfflineDirs()) != 1 {
		t.Fatal(dir, s.OfflineDirs())
	}
	if err := add(good, "too"); err != nil {
		t.Fatal(err)
	}
	if got := values(t, bad); got[0] != "kept" {
		t.Fatal(got)
	}
	create(t, s, spec("u", 2, 2))
	if s.DirOf(s.Log("u", 0)) != "/b" || s.DirOf(s.Log("u", 1)) != "/b" {
		t.Fatal("a new log in the failed directory")
	}
	closeStore(t, s)
	for dir, want := range map[string]bool{"/a": false, "/b": true} {
		if _, err := disk.Stat(dir + "/" + checkpoint.CleanName); (err == nil) != want {
			t.Fatalf("marker of %s: %v", dir, err)
		}
	}
	disk.CutPower()
	s = openStore(t, quiet(disk, "/a", "/b"))
	requireHolds(t, s.Log("t", 1), "kept", "too")
	if got := values(t, s.Log("t", 0)); got[0] != "kept" {
		t.Fatal(got)
	}
	closeStore(t, s)
}

// Claim: a directory that cannot be read at the start is offline, the others serve; its logs are not made anew by
// mistake, but a new topic can be made. With no directory left the start fails and says why.
// Method: reads in one directory fail.
func TestUnreadableDirectoryIsOfflineFromTheStart(t *testing.T) {
	disk := faultfs.New(t)
	s := openStore(t, quiet(disk, "/a", "/b"))
	create(t, s, spec("t", 1, 2))
	closeStore(t, s)
	unreadable := func() { disk.Fail(faultfs.Fault{Kind: faultfs.OpRead, Pattern: "/a/*", Times: -1}) }
	unreadable()
	s = openStore(t, quiet(disk, "/a", "/b"))
	if s.Log("t", 0) != nil || s.Log("t", 1) == nil || s.OfflineDirs()["/a"] == nil {
		t.Fatal(s.Logs(), s.OfflineDirs())
	}
	if err := s.Create(spec("t", 1, 2)); !errors.Is(err, ErrStorage) {
		t.Fatal(err)
	}
	u := spec("u", 2, 1)
	u.New = true
	create(t, s, u)
	closeStore(t, s)
	if _, err := OpenStore(context.Background(), quiet(disk, "/a")); err == nil || !strings.Contains(err.Error(), "/a") {
		t.Fatal(err)
	}
	disk.CutPower()
	s = openStore(t, quiet(disk, "/a", "/b"))
	if len(s.Logs()) != 3 {
		t.Fatal(s.Logs())
	}
	closeStore(t, s)
}

// Claim: a damaged log is set aside and named with file and position, the others serve; there is no marker of a clean stop while
// it is there; it can be deleted, and made anew.
// Method: a byte of a closed segment is damaged, and the checkpoint that would pass over it is removed.
func TestDamagedLogIsSetAside(t *testing.T) {
	disk := faultfs.New(t)
	o := quiet(disk, "/a")
	o.Defaults = smallLog()
	s := openStore(t, o)
	create(t, s, spec("t", 1, 2))
	for i := range 40 {
		for p := range int32(2) {
			if err := add(s.Log("t", p), fmt.Sprintf("a value of some length, number %d", i)); err != nil {
				t.Fatal(err)
			}
		}
	}
	closeStore(t, s)
	disk.Remove("/a/" + checkpoint.CleanName)
	disk.Remove("/a/" + checkpoint.RecoveryPoints)
	disk.Damage("/a/t-0/00000000000000000000.log", 200, 1)
	for range 2 {
		s = openStore(t, o)
		var corrupt *CorruptError
		if d := s.Damaged(); len(d) != 1 || d[0].Topic != "t" || d[0].Partition != 0 || d[0].Dir != "/a" ||
			!errors.As(d[0].Err, &corrupt) || !strings.HasSuffix(corrupt.File, "/t-0/00000000000000000000.log") {
			t.Fatalf("%+v", d)
		}
		if s.Log("t", 0) != nil || s.Log("t", 1).End() != 40 {
			t.Fatal("the wrong log was set aside")
		}
		if err := s.Create(spec("t", 1, 2)); !errors.Is(err, ErrExists) {
			t.Fatal(err)
		}
		closeStore(t, s)
		if _, err := disk.Stat("/a/" + checkpoint.CleanName); err == nil {
			t.Fatal("marked clean with a damaged log")
		}
	}
	s = openStore(t, o)
	if err := s.Delete("t", 0); err != nil {
		t.Fatal(err)
	}
	if len(s.Damaged()) > 0 {
		t.Fatal("still there")
	}
	create(t, s, spec("t", 1, 2))
	if s.Log("t", 0).End() != 0 {
		t.Fatal("not a new one")
	}
	closeStore(t, s)
}

// Claim: a sync that a log does itself, outside the journal's rounds, and that fails, ends all acks of the directory as a failed round
// does, and a Close after it forgets nothing that only the journal holds (L4, L6).
// Method: ack a record that no segment sync has reached; fail the directory sync of another log's roll; close; lose the page cache.
func TestLogsOwnFailedSyncEndsTheDirectorysAcks(t *testing.T) {
	disk := faultfs.New(t)
	o := quiet(disk, "/a")
	o.Defaults.SegmentBytes = 200
	s := openStore(t, o)
	create(t, s, spec("rolls", 1, 1), spec("other", 2, 1))
	if err := add(s.Log("other", 0), "acked"); err != nil {
		t.Fatal(err)
	}
	disk.Fail(faultfs.Fault{Kind: faultfs.OpSyncDir, Pattern: "/a/rolls-0", Times: -1})
	var err error
	for range 5 {
		if err = add(s.Log("rolls", 0), "a record that fills the segment"); err != nil {
			break
		}
	}
	if !errors.Is(err, ErrPoisoned) {
		t.Fatalf("the append that rolls: %v, want ErrPoisoned", err)
	}
	if err := add(s.Log("other", 0), "too late"); !errors.Is(err, ErrPoisoned) {
		t.Errorf("an append to another log of the directory: %v, want ErrPoisoned", err)
	}
	if s.OfflineDirs()["/a"] == nil {
		t.Error("the directory is not offline")
	}
	_ = s.Close(context.Background())
	disk.CutPower(faultfs.KeepUnsynced(0), faultfs.KeepJournal(100))

	s = openStore(t, quiet(disk, "/a"))
	defer closeStore(t, s)
	requireHolds(t, s.Log("other", 0), "acked")
}
