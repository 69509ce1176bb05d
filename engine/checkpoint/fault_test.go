package checkpoint

import (
	"testing"

	"millrace/engine/vfs/faultfs"
)

// Claim: whatever operation the power is cut at or that fails, a file is what it was or what it was to be; when WriteFile returned
// nil, it is what it was to be.
// Method: replace a file, at every operation.
func TestWriteFileIsAtomic(t *testing.T) {
	for _, fail := range []bool{false, true} {
		for n := 0; ; n++ {
			disk := faultfs.New(t)
			if err := (Offsets{{"old", 0}: 1}).Write(disk, "/f"); err != nil {
				t.Fatal(err)
			}
			if fail {
				disk.FailOperation(n)
			} else {
				disk.CutAtOperation(n)
			}
			done := (Offsets{{"new", 0}: 2, {"new", 1}: 3}).Write(disk, "/f") == nil
			fired := disk.Fired()
			disk.CutPower(faultfs.Mixes()[n%len(faultfs.Mixes())].Options()...)
			o, err := ReadOffsets(disk, "/f")
			if isNew := len(o) == 2 && o[TopicPartition{"new", 1}] == 3; err != nil || done && !isNew || !isNew && o[TopicPartition{"old", 0}] != 1 {
				t.Fatalf("fail %v, operation %d, done %v: %v, %v", fail, n, done, o, err)
			}
			if !fired {
				break
			}
		}
	}
}

// Claim: an epoch that Assign returned nil for is known after a power cut; after a failure memory and file agree.
// Method: three epochs, at every operation.
func TestAssignedEpochSurvives(t *testing.T) {
	for n := 0; ; n++ {
		disk := faultfs.New(t)
		e, _ := OpenEpochs(disk, "/")
		disk.CutAtOperation(n)
		known := int32(-1)
		for epoch := range int32(3) {
			if err := e.Assign(epoch, int64(epoch)*10); err != nil {
				break
			}
			known = epoch
		}
		if got, _, ok := e.Latest(); ok && got != known {
			t.Fatalf("operation %d: memory is at %d, assigned %d", n, got, known)
		}
		fired := disk.Fired()
		disk.CutPower(faultfs.KeepUnsynced(50))
		again, err := OpenEpochs(disk, "/")
		if got, _, ok := again.Latest(); err != nil || known >= 0 && (!ok || got < known) {
			t.Fatalf("operation %d: %d after the cut, %d was assigned, %v", n, got, known, err)
		}
		if !fired {
			return
		}
	}
}
