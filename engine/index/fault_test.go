package index

import (
	"errors"
	"fmt"
	"syscall"
	"testing"

	"millrace/engine/vfs/faultfs"
)

// Claim: a full disk is an error of the append that needed space, never a lost process or a wrong entry; when there
// is space again the index goes on where it was.
// Method: mapped and paged, with and without fallocate, on a disk that fills up at every place.
func TestFullDiskIsAnError(t *testing.T) {
	for _, maps := range []int{0, 1} {
		for _, opts := range [][]faultfs.Option{nil, {faultfs.NoPreallocate()}} {
			for free := int64(0); free <= 80<<10; free += 6 << 10 {
				disk := faultfs.New(t, opts...)
				disk.SetFree(free)
				x, err := NewSet(maps).OpenOffset(disk, "/x", 0, 1<<20, true)
				if err != nil {
					t.Fatal(err) // opening an index writes nothing that it cannot do without
				}
				n := 0
				for ; n < 12000 && err == nil; n++ {
					err = x.Append(int64(n)*10+9, int32(n+1)*4100)
				}
				if !errors.Is(err, syscall.ENOSPC) {
					t.Fatalf("maps %d, free %d: %v after %d entries", maps, free, err, n)
				}
				n--
				requireLookups(t, x, 0, n)
				disk.SetFree(-1)
				fill(t, x, 0, n, n+700)
				requireLookups(t, x, 0, n+700)
				if err := x.Close(); err != nil {
					t.Fatal(err)
				}
				again := openDisk(t, disk, 1)
				requireLookups(t, again, 0, n+700)
			}
		}
	}
}

func openDisk(t *testing.T, disk *faultfs.Disk, maps int) *Offset {
	t.Helper()
	x, err := NewSet(maps).OpenOffset(disk, "/x", 0, 1<<20, true)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// Claim: after a power cut the entries below are right, or the file is known as corrupt; what TruncateTo dropped is not back.
// Method: append, flush, append, truncate, append, cut, in every mix of survival, mapped and paged.
func TestPowerCutLeavesRightEntriesOrNone(t *testing.T) {
	for seed := range uint64(20) {
		for maps := range 2 {
			disk := faultfs.New(t, faultfs.Seed(seed))
			x := openDisk(t, disk, maps)
			disk.SyncDir("/")
			fill(t, x, 0, 0, 700)
			if err := x.Flush(); err != nil {
				t.Fatal(err)
			}
			fill(t, x, 0, 700, 1500)
			if err := x.TruncateTo(1000*10 + 9); err != nil {
				t.Fatal(err)
			}
			for i := 1000; i < 1200; i++ { // other positions than before
				if err := x.Append(int64(i)*10+9, int32(i+1)*4100+7); err != nil {
					t.Fatal(err)
				}
			}
			disk.CutPower(faultfs.KeepUnsynced(int(seed*13) % 101))
			x, err := NewSet(1).OpenOffset(disk, "/x", 0, 1<<20, true)
			if errors.Is(err, ErrCorrupt) {
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			for i := range min(x.Entries(), 1000) {
				if off, pos, err := x.Lookup(int64(i)*10 + 9); off != int64(i)*10+9 || pos != int32(i+1)*4100 || err != nil {
					t.Fatalf("seed %d: entry %d is %d at %d, %v", seed, i, off, pos, err)
				}
			}
			for i := 1000; i < x.Entries(); i++ {
				if off, pos, _ := x.Lookup(1 << 30); pos%4100 != 7 {
					t.Fatalf("seed %d: an entry that was cut is back: %d at %d", seed, off, pos)
				}
			}
			if x.Entries() < 1000 {
				t.Fatalf("seed %d: only %d entries, 1000 were flushed or cut to", seed, x.Entries())
			}
		}
	}
}

// Claim: whatever operation fails, an index answers right or with an error, and never with another entry.
// Method: a short life, each operation failing in turn.
func TestAnyFailureIsAnErrorOrNone(t *testing.T) {
	for n := 0; ; n++ {
		for maps := range 2 {
			disk := faultfs.New(t)
			disk.FailOperation(n)
			x, err := NewSet(maps).OpenOffset(disk, "/x", 0, 1<<20, true)
			if err == nil {
				err = shortLife(x)
			}
			fired := disk.Fired()
			disk.SetFree(-1)
			if err != nil && !errors.Is(err, faultfs.ErrInjected) {
				t.Fatalf("operation %d: %v", n, err)
			}
			again, err := NewSet(1).OpenOffset(disk, "/x", 0, 1<<20, false)
			if err == nil {
				_, _, err = again.Lookup(1 << 40)
			}
			if err != nil && !errors.Is(err, ErrCorrupt) {
				t.Fatalf("operation %d: %v", n, err)
			}
			if maps == 1 && !fired {
				return
			}
		}
	}
}

func shortLife(x *Offset) error {
	for i := range 1300 {
		if err := x.Append(int64(i)*10+9, int32(i+1)*4100); err != nil {
			return err
		}
		if off, pos, err := x.Lookup(int64(i) * 10); i > 0 && (err != nil || off != int64(i-1)*10+9 || pos != int32(i)*4100) {
			if err == nil {
				err = fmt.Errorf("Lookup(%d) = %d, %d", i*10, off, pos)
			}
			return err
		}
	}
	return errors.Join(x.Write(), x.TruncateTo(9000), x.Flush(), x.Seal(), x.TruncateTo(5000), x.Close())
}
