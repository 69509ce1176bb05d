package faultfs

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"

	"millrace/engine/vfs"
)

// life does one operation of nearly every kind and stops at the first error.
func life(d vfs.FS) error {
	if err := d.MkdirAll("/d"); err != nil {
		return err
	}
	f, err := d.OpenFile("/d/f", os.O_RDWR|os.O_CREATE)
	if err != nil {
		return err
	}
	for _, do := range []func() error{
		func() error { return f.Preallocate(0, 8192) },
		func() error { _, err := f.WriteAt(sectors(8, 1), 0); return err },
		func() error { _, err := f.WriteVAt([][]byte{sectors(1, 2), sectors(2, 3)}, 0); return err },
		f.Sync,
		func() error { return f.Truncate(6 * sectorBytes) },
		func() error { return d.Rename("/d/f", "/d/g") },
		func() error { return d.SyncDir("/d") },
		func() error { return d.SyncFS("/d") },
		func() error { return d.Remove("/d/g") },
	} {
		if err := do(); err != nil {
			return err
		}
	}
	return f.Close()
}

// Claim: each counted operation can be made to fail, exactly once, and is traced.
// Method: fail operation 0, 1, 2 of a short life until none is left.
func TestEachOperationCanFail(t *testing.T) {
	var kinds []string
	for n := 0; ; n++ {
		d := New(t).FailOperation(n)
		err := life(d)
		if !d.Fired() {
			must(t, err)
			break
		}
		failsWith(t, "life", err, ErrInjected)
		failsWith(t, "life", err, syscall.EIO)
		ops := d.Ops()
		last := ops[len(ops)-1]
		if len(ops) != n+1 || d.Operations() != n+1 || !strings.Contains(last, "injected fault") {
			t.Fatalf("operation %d: trace %q", n, ops)
		}
		kinds = append(kinds, strings.Fields(last)[1])
	}
	want := []string{"mkdir", "create", "preallocate", "write", "write", "sync", "truncate", "rename", "sync-dir", "sync-fs", "remove"}
	if !slices.Equal(kinds, want) {
		t.Errorf("got %v", kinds)
	}
}

// Claim: a fault strikes the kind, name and number it names, as often as it says.
// Method: two files; faults by kind, pattern, number and times.
func TestFaultsAreChosenByKindNameAndNumber(t *testing.T) {
	d := newDisk(t)
	a, b := durable(t, d, "/d/a.log", nil), durable(t, d, "/d/b.index", nil)
	d.FailKind(OpSync, 1)
	must(t, a.Sync())
	write(t, a, []byte("x"), 0)
	failsWith(t, "second sync", b.Sync(), ErrInjected)
	must(t, b.Sync())

	full := errors.New("worn out")
	d.Fail(Fault{Kind: OpWrite, Pattern: "*.index", Times: 2, Err: full})
	write(t, a, []byte("x"), 0)
	for range 2 {
		_, err := b.WriteAt([]byte("x"), 0)
		failsWith(t, "write of the index", err, full)
	}
	write(t, b, []byte("x"), 0)

	d.Fail(Fault{Kind: AnySync, Pattern: "/d", Times: -1})
	for range 3 {
		failsWith(t, "sync of the directory", d.SyncDir("/d"), ErrInjected)
		failsWith(t, "sync of the disk", d.SyncFS("/d"), ErrInjected)
	}
	must(t, a.Sync())

	d.FailKind(OpRead, 0)
	_, err := a.ReadAt(make([]byte, 1), 0)
	failsWith(t, "read", err, ErrInjected)
	d.FailKind(OpOpen, 0)
	_, err = d.OpenFile("/d/a.log", os.O_RDWR)
	failsWith(t, "open", err, ErrInjected)
	d.FailKind(OpMap, 0)
	_, err = a.Map(1)
	failsWith(t, "map", err, ErrInjected)

	d.CutPower()
	must(t, d.SyncDir("/d")) // faults end with the machine
}

// Claim: a failed write has written a part, and says how much.
// Method: all seeds; any length comes, and no other bytes change.
func TestFailedWritesMayBePartial(t *testing.T) {
	lengths := map[int]bool{}
	eachSeed(t, func(d *Disk) {
		f := durable(t, d, "/d/f", sectors(2, 1))
		d.FailOperation(0)
		n, err := f.WriteVAt([][]byte{sectors(1, 2), sectors(2, 2)}, sectorBytes)
		failsWith(t, "write", err, ErrInjected)
		lengths[n] = true
		want := append(sectors(1, 1), sectors(3, 2)[:n]...)
		want = append(want, sectors(2, 1)[min(len(want), 1024):]...)
		if !bytes.Equal(read(t, d, "/d/f"), want) {
			t.Fatalf("%d written: wrong contents", n)
		}
	})
	if len(lengths) < seeds/4 {
		t.Errorf("only %d lengths", len(lengths))
	}
}

// Claim: a failed direct write may have landed in any sectors, durably, and claims none.
// Method: all seeds; keep nothing.
func TestFailedDirectWritesLandAnywhere(t *testing.T) {
	b := vfs.AlignedBuffer(4096)
	defer vfs.FreeBuffer(b)
	copy(b, sectors(8, 2))
	states := map[string]bool{}
	eachSeed(t, func(d *Disk) {
		durable(t, d, "/d/j", sectors(8, 1))
		f, _, err := d.OpenDirect("/d/j")
		must(t, err)
		d.FailKind(OpDirectWrite, 0)
		n, err := f.WriteAt(b, 0)
		failsWith(t, "write", err, ErrInjected)
		if n != 0 {
			t.Fatalf("claims %d", n)
		}
		d.CutPower(KeepUnsynced(0))
		states[fmt.Sprint(sectorsOf(read(t, d, "/d/j")))] = true
	})
	if len(states) < seeds/4 {
		t.Errorf("only %d states", len(states))
	}
}

// Claim: a failed sync loses or keeps what it covered, and no later sync, nor the
// kindest cut, brings back what was lost; what is written afterwards is synced
// as ever. Reads show no loss until the power goes.
// Method: all seeds, for each of the syncs; the state is looked at after a good sync.
func TestFailedSyncLosesForGood(t *testing.T) {
	syncs := map[Kind]func(*Disk, vfs.File, vfs.Mapping) error{
		OpSync:   func(d *Disk, f vfs.File, m vfs.Mapping) error { return f.Sync() },
		OpSyncFS: func(d *Disk, f vfs.File, m vfs.Mapping) error { return d.SyncFS("/d") },
		OpFlush:  func(d *Disk, f vfs.File, m vfs.Mapping) error { return m.Flush() },
	}
	for kind, sync := range syncs {
		lost, kept, torn := 0, 0, 0
		eachSeed(t, func(d *Disk) {
			f := durable(t, d, "/d/f", sectors(5, 1))
			m, err := f.Map(5 * sectorBytes)
			must(t, err)
			write(t, f, sectors(4, 2), 0)
			d.FailKind(kind, 0)
			failsWith(t, "sync", sync(d, f, m), ErrInjected)
			if !bytes.Equal(read(t, d, "/d/f")[:4*sectorBytes], sectors(4, 2)) {
				t.Fatal("the loss shows before the cut")
			}
			write(t, f, sectors(1, 3), 4*sectorBytes)
			must(t, sync(d, f, m))
			must(t, f.Sync())
			must(t, d.SyncFS("/d"))
			d.CutPower(KeepUnsynced(100))
			fill := sectorsOf(read(t, d, "/d/f"))
			if len(fill) != 5 || fill[4] != 3 {
				t.Fatalf("%s: what came after the failure: %v", kind, fill)
			}
			switch fmt.Sprint(fill[:4]) {
			case "[1 1 1 1]":
				lost++
			case "[2 2 2 2]":
				kept++
			default:
				torn++
			}
		})
		if lost == 0 || kept == 0 || torn == 0 {
			t.Errorf("%s: lost %d, kept %d, torn %d", kind, lost, kept, torn)
		}
	}
}

// Claim: a failed SyncDir keeps a prefix of the changes of names and loses the rest for good.
// Method: two creations, at all seeds; a good SyncDir afterwards.
func TestFailedSyncDirLosesForGood(t *testing.T) {
	seen := map[string]bool{}
	eachSeed(t, func(d *Disk) {
		create(t, d, "/d/a")
		create(t, d, "/d/b")
		d.FailKind(OpSyncDir, 0)
		failsWith(t, "SyncDir", d.SyncDir("/d"), ErrInjected)
		create(t, d, "/d/c")
		must(t, d.SyncDir("/d"))
		d.CutPower(KeepUnsynced(100))
		seen[list(t, d, "/d")] = true
	})
	if len(seen) != 3 || !seen["c"] || !seen["a c"] || !seen["a b c"] {
		t.Errorf("got %v", seen)
	}
}

// Claim: a full disk cuts writes short to the byte, and space given back can be used.
// Method: fill it by writing, reserving and extending; free by truncation, removal, close.
func TestFullDisk(t *testing.T) {
	d := newDisk(t)
	f := durable(t, d, "/d/f", sectors(1, 1))
	d.SetFree(1000)
	free := func(want int64) {
		t.Helper()
		got, err := d.Free("/d")
		must(t, err)
		if got != want {
			t.Fatalf("free: %d, want %d", got, want)
		}
	}
	write(t, f, sectors(1, 2), 0) // in place: takes nothing
	free(1000)
	n, err := f.WriteAt(sectors(3, 3), sectorBytes)
	failsWith(t, "write", err, syscall.ENOSPC)
	if size, _ := f.Size(); n != 1000 || size != sectorBytes+1000 {
		t.Fatalf("%d written, size %d", n, size)
	}
	free(0)
	n, err = f.WriteAt([]byte("x"), 5000)
	failsWith(t, "write past the end", err, syscall.ENOSPC)
	if n != 0 {
		t.Fatalf("%d written", n)
	}
	must(t, f.Truncate(sectorBytes))
	free(1000)
	failsWith(t, "reserve", f.Preallocate(0, 2000), syscall.ENOSPC)
	failsWith(t, "extend", f.Truncate(2000), syscall.ENOSPC)
	must(t, f.Preallocate(0, sectorBytes+1000))
	free(0)
	must(t, f.Truncate(sectorBytes)) // gives the reserve back
	free(1000)
	must(t, f.Preallocate(0, sectorBytes+1000))
	write(t, f, make([]byte, 1000), sectorBytes) // into what was reserved
	must(t, d.Remove("/d/f"))
	free(0) // still open
	must(t, f.Close())
	free(1000 + sectorBytes)

	g := create(t, d, "/d/g")
	write(t, g, make([]byte, 1512), 0)
	free(0)
	d.CutPower(KeepUnsynced(0)) // the removal is undone, g was never there
	free(1000)
	d.SetFree(-1)
	if got, _ := d.Free("/d"); got != plenty {
		t.Errorf("without bound: %d", got)
	}
}

// Claim: a disk that cannot reserve says so, and counts nothing.
// Method: the option.
func TestNoPreallocate(t *testing.T) {
	d := newDisk(t, NoPreallocate())
	before := d.Operations()
	f := create(t, d, "/d/f")
	failsWith(t, "Preallocate", f.Preallocate(0, 1), vfs.ErrUnsupported)
	if d.Operations() != before+1 {
		t.Error("it was counted")
	}
}

// Claim: Damage changes every byte of the range and no other, live, synced and
// unsynced alike.
// Method: damage a synced, an unsynced and a mapped part.
func TestDamageChangesExactlyTheRange(t *testing.T) {
	for _, pct := range []int{0, 100} {
		d := newDisk(t)
		f := durable(t, d, "/d/f", sectors(4, 1))
		write(t, f, sectors(2, 2), 2*sectorBytes)
		m, err := f.Map(4 * sectorBytes)
		must(t, err)
		before := read(t, d, "/d/f")
		must(t, d.Damage("/d/f", 1000, 500))
		check := func(what string, got, want []byte) {
			t.Helper()
			for i := range want {
				if (got[i] != want[i]) != (i >= 1000 && i < 1500) {
					t.Fatalf("%s: byte %d: %d, was %d", what, i, got[i], want[i])
				}
			}
		}
		check("live", read(t, d, "/d/f"), before)
		check("mapped", m.Bytes(), before)
		d.CutPower(KeepUnsynced(pct))
		if pct == 0 {
			before = sectors(4, 1)
		}
		check(fmt.Sprintf("after a cut at %d%%", pct), read(t, d, "/d/f"), before)
		must(t, d.Damage("/d/f", 1<<20, 5)) // past the end: nothing
		failsWith(t, "missing", d.Damage("/d/x", 0, 1), fs.ErrNotExist)
	}
}
