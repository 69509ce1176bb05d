package producers

import (
	"bytes"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"millrace/engine/vfs"
)

// Claim: the snapshot's bytes are Kafka's.
// Method: two producers, one with an open transaction, one known only by a marker, against bytes laid
// out by hand from the format's table (checksum computed apart, CRC-32C of what follows it).
func TestSnapshotIsKafkas(t *testing.T) {
	table := New(time.Hour)
	i := info(4000, 2, 10, 3)
	i.Attributes = 0x10
	table.Update(i, 100, 1700000000000)
	table.Update(marker(1, 6), 103, 1700000000001)
	table.NoteCoordinator(1, 9)
	want := "0001" + "74cd88e3" + "00000002" +
		"0000000000000001" + "0006" + "ffffffff" + "ffffffffffffffff" + "00000000" + "0000018bcfe56801" + "00000009" + "ffffffffffffffff" +
		"0000000000000fa0" + "0002" + "0000000c" + "0000000000000066" + "00000002" + "0000018bcfe56800" + "ffffffff" + "0000000000000064"
	if got := hex.EncodeToString(table.Snapshot()); got != want {
		t.Fatalf("\n got %s\nwant %s", got, want)
	}
}

// Claim: what is loaded is what was saved: same bytes, same verdicts on the last batch.
// Method: save, load, save; a duplicate of the last and of the one before.
func TestSnapshotRoundTrip(t *testing.T) {
	table := New(time.Hour)
	for _, h := range five(3, 1) {
		table.Update(h, 10, noon.UnixMilli())
	}
	again := New(time.Hour)
	if err := again.Load(table.Snapshot(), noon); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(again.Snapshot(), table.Snapshot()) {
		t.Fatal("other bytes")
	}
	if dup, err := again.Check(info(3, 1, 8, 2)); err != nil || dup == nil || dup.Base != 10 {
		t.Fatal(dup, err)
	}
	if _, err := again.Check(info(3, 1, 10, 1)); err != nil {
		t.Fatal(err)
	}
	again.Load(table.Snapshot(), noon.Add(2*time.Hour))
	if again.Len() != 0 {
		t.Fatal("an expired producer came back")
	}
}

// Claim: no damage of a snapshot goes unnoticed.
// Method: every byte flipped, every shorter length, one byte more.
func TestDamagedSnapshotIsRefused(t *testing.T) {
	table := New(time.Hour)
	table.Update(info(1, 0, 0, 1), 0, noon.UnixMilli())
	good := table.Snapshot()
	load := func(b []byte) {
		t.Helper()
		var damaged *CorruptError
		if err := table.Load(b, noon); !errors.As(err, &damaged) || table.Len() != 0 {
			t.Fatalf("%v, %d producers", err, table.Len())
		}
	}
	for i := range good {
		b := bytes.Clone(good)
		b[i] ^= 0x40
		load(b)
		load(good[:i])
	}
	load(append(bytes.Clone(good), 0))
}

// Claim: the newest whole snapshot at or below an offset is loaded; damaged ones are removed, later ones left.
// Method: four snapshots, one of them damaged, among files of other kinds.
func TestLatestWholeSnapshotIsLoaded(t *testing.T) {
	dir := t.TempDir()
	table := New(time.Hour)
	for n := range int64(4) {
		table.Update(info(n, 0, 0, 1), 0, noon.UnixMilli())
		if err := table.WriteSnapshot(vfs.OS(), dir, n*100); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"00000000000000000300.log", "300.snapshot", "00000000000000000250.snapshot.tmp", "-0000000000000000250.snapshot"} {
		os.WriteFile(filepath.Join(dir, name), []byte("?"), 0o644)
	}
	damaged := filepath.Join(dir, SnapshotName(200))
	os.WriteFile(damaged, []byte{0, 1, 2}, 0o644)
	if off, err := LatestSnapshot(vfs.OS(), dir, 299); off != 200 || err != nil {
		t.Fatal(off, err)
	}
	if off, err := table.LoadLatest(vfs.OS(), dir, 299, noon); off != 100 || err != nil || table.Len() != 2 {
		t.Fatal(off, err, table.Len())
	}
	if _, err := os.Stat(damaged); !errors.Is(err, os.ErrNotExist) {
		t.Fatal("the damaged one is still there")
	}
	if off, err := table.LoadLatest(vfs.OS(), dir, 300, noon); off != 300 || err != nil || table.Len() != 4 {
		t.Fatal(off, err, table.Len())
	}
	if off, err := table.LoadLatest(vfs.OS(), t.TempDir(), 300, noon); off != -1 || err != nil || table.Len() != 0 {
		t.Fatal(off, err, table.Len())
	}
}
