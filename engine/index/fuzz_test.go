package index

import (
	"errors"
	"testing"

	"millrace/engine/vfs/faultfs"
)

// Claim: whatever an index file holds, sealed or active, opening and asking never panics: it is refused as damaged, or its answers ascend with
// the question and never lie above it.
func FuzzIndexes(f *testing.F) {
	good := make([]byte, 0, 96)
	for i := range byte(8) {
		good = append(good, 0, 0, 0, i*3+1, 0, 0, i+1, 100)
	}
	times := make([]byte, 0, 96)
	for i := range byte(8) {
		times = append(times, 0, 0, 1, 0, 0, 0, i, 1, 0, 0, 0, i*3+1)
	}
	for _, s := range [][]byte{good, good[:17], append(good[:24:24], make([]byte, 40)...), times, times[:30], append(times[:24:24], make([]byte, 36)...), {}} {
		f.Add(s, true, int64(0), int64(9))
		f.Add(s, false, int64(100), int64(120))
	}
	f.Fuzz(func(t *testing.T, b []byte, active bool, base, ask int64) {
		if len(b) > 1<<16 || base < 0 || base > 1<<60 {
			return
		}
		disk := faultfs.New(nil, faultfs.Seed(1))
		disk.WriteFile("/o", b)
		disk.WriteFile("/t", b)
		refused := func(err error) bool {
			if err != nil && !errors.Is(err, ErrCorrupt) {
				t.Fatalf("not a refusal: %v", err)
			}
			return err != nil
		}
		if x, err := OpenOffset(disk, "/o", base, 4096, active); !refused(err) {
			last, at := base-1, int32(-1)
			for _, q := range []int64{base, min(base, ask), ask, base + int64(len(b)), 1 << 61} {
				off, pos, err := x.Lookup(q)
				if refused(err) {
					break
				}
				if off > max(q, base) || pos < 0 || q >= last && pos < at && q > base {
					t.Fatalf("asked for %d: entry %d at %d after %d at %d", q, off, pos, last, at)
				}
				if q > base {
					last, at = q, pos
				}
			}
			x.Last()
			x.Close()
		}
		if x, err := OpenTime(disk, "/t", base, 4096, active); !refused(err) {
			for _, q := range []int64{-1, 0, ask, 1 << 61} {
				ts, off, err := x.Lookup(q)
				if refused(err) {
					break
				}
				if ts > max(q, -1) || off < base && ts >= 0 {
					t.Fatalf("asked for %d: %d at %d, base %d", q, ts, off, base)
				}
			}
			x.Last()
			x.Close()
		}
	})
}
