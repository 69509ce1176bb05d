package faultfs

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	"millrace/engine/vfs"
)

// Claim: what was synced is exactly there; what was not is gone with 0, there with 100.
// Method: one synced part, one overwritten, one appended; both extremes.
func TestSyncedIsKeptAndUnsyncedIsNotPromised(t *testing.T) {
	for pct, want := range map[int][]byte{
		0:   sectors(2, 1),
		100: slices.Concat(sectors(1, 1), sectors(2, 2)),
	} {
		d := newDisk(t)
		f := create(t, d, "/d/f")
		write(t, f, sectors(2, 1), 0)
		must(t, f.Sync())
		must(t, d.SyncDir("/d"))
		write(t, f, sectors(2, 2), sectorBytes)
		d.CutPower(KeepUnsynced(pct))
		if !bytes.Equal(read(t, d, "/d/f"), want) {
			t.Errorf("keep %d%%: got %v", pct, sectorsOf(read(t, d, "/d/f")))
		}
	}
}

// Claim: each sector is in a state that it had at some moment since the last sync,
// the size is between the synced and the current one, and all of that happens.
// Method: versions written over each other, sector-wise, at all seeds; sectors
// never reached are zeros.
func TestEachSectorIsInAStateItOnceHad(t *testing.T) {
	sizes, values := map[int]bool{}, map[int]bool{}
	torn := false
	eachSeed(t, func(d *Disk) {
		f := durable(t, d, "/d/f", sectors(4, 1))
		write(t, f, sectors(6, 2), sectorBytes)   // 1 to 6
		write(t, f, sectors(4, 3), 2*sectorBytes) // 2 to 5
		write(t, f, sectors(2, 4), 8*sectorBytes) // 8 and 9; 7 is a hole
		d.CutPower(KeepUnsynced(50))
		got := read(t, d, "/d/f")
		sizes[len(got)] = true
		if len(got) < 4*sectorBytes || len(got) > 10*sectorBytes {
			t.Fatalf("size %d", len(got))
		}
		allowed := [][]int{{1}, {1, 2}, {1, 2, 3}, {1, 2, 3}, {0, 2, 3}, {0, 2, 3}, {0, 2}, {0}, {0, 4}, {0, 4}}
		fill := sectorsOf(got)
		for i, v := range fill {
			values[v] = true
			if !slices.Contains(allowed[i], v) {
				t.Fatalf("sector %d is %d of %v", i, v, fill)
			}
		}
		torn = torn || len(fill) == 10 && fill[8] != fill[9]
	})
	extremes := sizes[4*sectorBytes] && sizes[10*sectorBytes]
	if len(sizes) < 20 || !extremes || len(values) != 5 || !torn {
		t.Errorf("%d sizes, values %v, torn %v: chance does not reach everything", len(sizes), values, torn)
	}
}

// Claim: a sector never holds a later write without an earlier one of the same sector.
// Method: two small appends into one sector.
func TestASectorIsWrittenWhole(t *testing.T) {
	seen := map[string]bool{}
	eachSeed(t, func(d *Disk) {
		f := durable(t, d, "/d/f", nil)
		write(t, f, []byte("AA"), 0)
		write(t, f, []byte("BB"), 2)
		d.CutPower(KeepUnsynced(50))
		got := string(append(read(t, d, "/d/f"), 0, 0, 0, 0)[:4])
		seen[got] = true
		if got[0] == 0 && got[2] != 0 {
			t.Fatalf("got %q", got)
		}
	})
	for _, want := range []string{"\x00\x00\x00\x00", "AA\x00\x00", "AABB"} {
		if !seen[want] {
			t.Errorf("%q never came", want)
		}
	}
}

// Claim: an unsynced truncation is there or not; what it cut off may be back.
// Method: cut, write shorter; look for the old tail and for its absence.
func TestUnsyncedTruncationMayBeLost(t *testing.T) {
	back, gone := false, false
	eachSeed(t, func(d *Disk) {
		f := durable(t, d, "/d/f", sectors(4, 1))
		must(t, f.Truncate(sectorBytes))
		write(t, f, sectors(1, 2), sectorBytes)
		d.CutPower(KeepUnsynced(50))
		fill := sectorsOf(read(t, d, "/d/f"))
		if fill[0] != 1 {
			t.Fatalf("sector 0: %v", fill)
		}
		back = back || slices.Equal(fill, []int{1, 2, 1, 1})
		gone = gone || slices.Equal(fill, []int{1, 2})
	})
	if !back || !gone {
		t.Errorf("back %v, gone %v", back, gone)
	}
	d := newDisk(t)
	f := durable(t, d, "/d/f", sectors(4, 1))
	must(t, f.Truncate(sectorBytes))
	must(t, f.Sync())
	d.CutPower(KeepUnsynced(0))
	if got := sectorsOf(read(t, d, "/d/f")); !slices.Equal(got, []int{1}) {
		t.Errorf("a synced truncation: %v", got)
	}
}

// Claim: page cache, journal and names are lost apart from each other, in every mix.
// Method: the extremes of all mixes.
func TestMixesAreIndependent(t *testing.T) {
	for _, mix := range Mixes() {
		d := newDisk(t)
		cache := durable(t, d, "/d/0.log", sectors(1, 1))
		journal := durable(t, d, "/d/millrace-journal-0", sectors(1, 1))
		write(t, cache, sectors(1, 2), 0)
		write(t, journal, sectors(1, 2), 0)
		create(t, d, "/d/new")
		d.CutPower(mix.Options()...)
		check := func(what string, pct int, kept bool) {
			if pct != 50 && kept != (pct == 100) {
				t.Errorf("%v: %s kept: %v", mix, what, kept)
			}
		}
		check("cache", mix.Cache, read(t, d, "/d/0.log")[0] == 2)
		check("journal", mix.Journal, read(t, d, "/d/millrace-journal-0")[0] == 2)
		check("name", mix.Names, read(t, d, "/d/new") != nil)
	}
}

// Claim: a direct write is durable when it returns, with the size; one that the
// cut interrupts is torn at sectors; older cached writes do not come over it.
// Method: keep nothing after a return; cut during a write at all seeds.
func TestDirectWritesAreDurableWhenTheyReturn(t *testing.T) {
	b := vfs.AlignedBuffer(8192)
	defer vfs.FreeBuffer(b)
	copy(b, sectors(16, 7))
	states := map[string]bool{}
	eachSeed(t, func(d *Disk) {
		plain := durable(t, d, "/d/j", sectors(8, 1))
		write(t, plain, sectors(8, 2), 0) // cached, unsynced
		f, direct, err := d.OpenDirect("/d/j")
		must(t, err)
		if !direct {
			t.Fatal("not direct")
		}
		write(t, f, b, 0)
		d.CutAtOperation(0)
		copy(b, sectors(16, 8))
		_, err = f.WriteAt(b, 8192)
		failsWith(t, "the interrupted write", err, ErrPowerCut)
		copy(b, sectors(16, 7))
		d.CutPower(KeepUnsynced(50))
		fill := sectorsOf(read(t, d, "/d/j"))
		for i, v := range fill {
			if i < 16 && v != 7 || i >= 16 && v != 0 && v != 8 {
				t.Fatalf("sector %d: %v", i, fill)
			}
		}
		if len(fill) < 16 {
			t.Fatalf("%d sectors", len(fill))
		}
		states[fmt.Sprint(fill)] = true
	})
	if len(states) < seeds/4 {
		t.Errorf("only %d ways to tear", len(states))
	}
}

// Claim: a direct write makes nothing else of its file durable, and loses none of it.
// Method: cached writes around a direct one; both extremes.
func TestDirectWritesLeaveTheRestUnsynced(t *testing.T) {
	for pct, want := range map[int][]int{0: {1, 7, 1}, 100: {2, 7, 2}} {
		d := newDisk(t)
		plain := durable(t, d, "/d/j", sectors(24, 1))
		write(t, plain, sectors(24, 2), 0)
		f, _, err := d.OpenDirect("/d/j")
		must(t, err)
		b := vfs.AlignedBuffer(4096)
		copy(b, sectors(8, 7))
		write(t, f, b, 4096)
		vfs.FreeBuffer(b)
		d.CutPower(KeepUnsynced(pct))
		fill := sectorsOf(read(t, d, "/d/j"))
		if got := []int{fill[7], fill[8], fill[16]}; !slices.Equal(got, want) || fill[15] != 7 {
			t.Errorf("keep %d%%: %v", pct, fill)
		}
	}
}

// Claim: direct files refuse what some disk would refuse; a disk without direct
// I/O gives plain files that need a sync.
// Method: each misalignment; then NoDirect.
func TestDirectFilesWantAlignment(t *testing.T) {
	d := newDisk(t)
	durable(t, d, "/d/j", sectors(16, 1))
	f, _, err := d.OpenDirect("/d/j")
	must(t, err)
	b := vfs.AlignedBuffer(8192)
	defer vfs.FreeBuffer(b)
	for name, try := range map[string]func() (int, error){
		"offset":  func() (int, error) { return f.WriteAt(b, 512) },
		"length":  func() (int, error) { return f.WriteAt(b[:100], 0) },
		"address": func() (int, error) { return f.WriteAt(b[8:4104], 0) },
		"vector":  func() (int, error) { return f.WriteVAt([][]byte{b[:512], b[512:4096]}, 0) },
		"read":    func() (int, error) { return f.ReadAt(b[:100], 0) },
	} {
		if n, err := try(); n != 0 || err == nil {
			t.Errorf("%s: taken", name)
		}
	}
	d = newDisk(t, NoDirect())
	durable(t, d, "/d/j", sectors(1, 1))
	f, direct, err := d.OpenDirect("/d/j")
	must(t, err)
	write(t, f, []byte("any"), 5)
	d.CutPower(KeepUnsynced(0))
	if direct || read(t, d, "/d/j")[5] != 1 {
		t.Error("a plain file's write was durable")
	}
}

// Claim: stores to a mapping are unsynced until Flush or Sync; in-between states
// can be on the disk; what is stored after the power went is on none.
// Method: store, flush, store, cut; then store and freeze.
func TestMappingStoresAreUnsynced(t *testing.T) {
	seen := map[byte]bool{}
	eachSeed(t, func(d *Disk) {
		f := durable(t, d, "/d/i", make([]byte, 10_000))
		m, err := f.Map(10_000)
		must(t, err)
		m.Bytes()[5000] = 1
		must(t, m.Flush())
		m.Bytes()[5000] = 2
		for range 20 { // time passes; the kernel may write back
			must(t, d.SyncDir("/d"))
		}
		m.Bytes()[5000] = 3
		m.Bytes()[9000] = 3
		d.Freeze()
		m.Bytes()[5000] = 4
		frozen := d.Clone()
		if got := read(t, d, "/d/i"); got[5000] != 3 || got[9000] != 3 {
			t.Fatalf("at the cut: %d, %d", got[5000], got[9000])
		}
		failsWith(t, "Flush", m.Flush(), ErrPowerCut)
		failsWith(t, "Close", m.Close(), ErrPowerCut)
		d.CutPower(KeepUnsynced(50))
		frozen.CutPower(KeepUnsynced(0))
		seen[read(t, d, "/d/i")[5000]] = true
		if read(t, frozen, "/d/i")[5000] != 1 {
			t.Fatal("a flushed store was lost, or an unflushed one kept at 0%")
		}
	})
	if !seen[1] || !seen[2] || !seen[3] || len(seen) != 3 {
		t.Errorf("states seen: %v", seen)
	}
}

// Claim: after a cut everything opened before is dead, for ever, and the disk serves on.
// Method: freeze, try all; boot, try the old handles and a new one.
func TestPowerCutEndsWhatWasOpen(t *testing.T) {
	d := newDisk(t)
	session := d.Session()
	f := durable(t, d, "/d/f", sectors(1, 1))
	lock, err := session.Lock("/d/.lock")
	must(t, err)
	d.Freeze()
	dead := func(when string) {
		t.Helper()
		_, size := f.Size()
		_, read := f.ReadAt(make([]byte, 1), 0)
		_, write := f.WriteAt(make([]byte, 1), 0)
		_, open := session.OpenFile("/d/f", 0)
		_, dir := session.ReadDir("/d")
		_, stat := session.Stat("/d")
		_, relock := session.Lock("/d/.lock")
		for what, err := range map[string]error{
			"Size": size, "ReadAt": read, "WriteAt": write, "Sync": f.Sync(), "Truncate": f.Truncate(0),
			"Close": f.Close(), "OpenFile": open, "ReadDir": dir, "Stat": stat, "Lock": relock,
			"Rename": session.Rename("/d/f", "/d/g"), "Remove": session.Remove("/d/f"),
			"RemoveAll": session.RemoveAll("/d"), "MkdirAll": session.MkdirAll("/e"),
			"SyncDir": session.SyncDir("/d"), "SyncFS": session.SyncFS("/d"),
		} {
			failsWith(t, when+": "+what, err, ErrPowerCut)
		}
	}
	dead("power off")
	failsWith(t, "the disk itself", d.SyncDir("/d"), ErrPowerCut)
	d.CutPower()
	dead("rebooted")
	if lock.Close() == nil {
		t.Error("a lock from before the cut is still held")
	}
	_, err = d.Lock("/d/.lock")
	must(t, err)
	must(t, create(t, d, "/d/f").Sync())
}

// Claim: whatever operation the cut falls on, only that one is in doubt.
// Method: a small life of a file, cut at operation 0, 1, 2 and so on: bytes whose sync
// had returned are there.
func TestCutAtEachOperation(t *testing.T) {
	for n := 0; ; n++ {
		d := New(t).CutAtOperation(n)
		synced := 0
		func() {
			if d.MkdirAll("/d") != nil || d.SyncDir("/") != nil {
				return
			}
			f, err := d.OpenFile("/d/f", 2|64)
			if err != nil || d.SyncDir("/d") != nil {
				return
			}
			for i := range 3 {
				if _, err := f.WriteAt(sectors(2, byte(i+1)), int64(i)*2*sectorBytes); err != nil {
					return
				}
				if f.Sync() != nil {
					return
				}
				synced = i + 1
			}
		}()
		fired := d.Fired()
		d.CutPower()
		got := read(t, d, "/d/f")
		for i := range synced {
			part := got[i*2*sectorBytes : (i+1)*2*sectorBytes]
			if !bytes.Equal(part, sectors(2, byte(i+1))) {
				t.Fatalf("cut at %d: part %d of %d is lost", n, i, synced)
			}
		}
		if !fired {
			if n != 10 || synced != 3 {
				t.Fatalf("%d operations, %d synced", n, synced)
			}
			return
		}
	}
}
