package index

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sort"
	"sync"
	"testing"

	"millrace/engine/vfs"
)

const maxBytes = 1 << 20

func openOffset(t *testing.T, s *Set, path string, base int64, active bool) *Offset {
	t.Helper()
	x, err := s.OpenOffset(vfs.OS(), path, base, maxBytes, active)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { x.Close() })
	return x
}

func fill(t *testing.T, x *Offset, base int64, from, to int) {
	t.Helper()
	for i := from; i < to; i++ {
		if err := x.Append(base+int64(i)*10+9, int32(i+1)*4100); err != nil {
			t.Fatalf("entry %d: %v", i, err)
		}
	}
}

// requireLookups asks for every border of n entries made by fill.
func requireLookups(t *testing.T, x *Offset, base int64, n int) {
	t.Helper()
	if x.Entries() != n {
		t.Fatalf("%d entries, want %d", x.Entries(), n)
	}
	step := max(1, n/997) // all borders of small ones, a spread of big ones
	for i := -1; i < n; i += step {
		for _, d := range []int64{0, 5, 9} {
			wantOff, wantPos := base+int64(i)*10+9, int32(i+1)*4100
			if i < 0 {
				wantOff, wantPos = base, 0
			}
			ask := base + int64(i)*10 + 9 + d
			if off, pos, err := x.Lookup(ask); off != wantOff || pos != wantPos || err != nil {
				t.Fatalf("Lookup(%d) = %d, %d, %v; want %d, %d", ask, off, pos, err, wantOff, wantPos)
			}
		}
	}
	if off, pos, ok := x.Last(); n > 0 && (off != base+int64(n-1)*10+9 || pos != int32(n)*4100 || !ok) {
		t.Fatalf("Last() = %d, %d, %v", off, pos, ok)
	}
}

// Claim: an index answers alike in all its states: mapped, paged, sealed, and opened again (deferred or not).
// Method: the same entries in each state, at sizes around the page borders; every look-up border is asked.
func TestAnswersAreTheSameInEveryState(t *testing.T) {
	for _, n := range []int{0, 1, 2, 511, 512, 513, 1024, 5000} {
		for _, max := range []int{0, 4} { // 0: no map allowed, so paged
			t.Run(fmt.Sprintf("n=%d/maps=%d", n, max), func(t *testing.T) {
				path := filepath.Join(t.TempDir(), "00000000000000000100.index")
				s := NewSet(max)
				x := openOffset(t, s, path, 100, true)
				fill(t, x, 100, 0, n)
				if got := s.Maps(); got != min(max, 1, n/2) {
					t.Fatalf("%d maps", got)
				}
				requireLookups(t, x, 100, n)
				if err := x.Seal(); err != nil {
					t.Fatal(err)
				}
				requireLookups(t, x, 100, n)
				requireSize(t, path, int64(n*8))
				if err := x.Append(1<<30, 1<<30); err == nil {
					t.Fatal("a sealed index took an entry")
				}
				x.Close()
				requireLookups(t, openOffset(t, s, path, 100, false), 100, n)
				again := openOffset(t, s, path, 100, true)
				requireLookups(t, again, 100, n)
				fill(t, again, 100, n, n+600)
				requireLookups(t, again, 100, n+600)
				again.Close()
				requireSize(t, path, int64((n+600)*8))
				if s.Maps() != 0 {
					t.Fatalf("%d maps left", s.Maps())
				}
			})
		}
	}
}

func requireSize(t *testing.T, path string, want int64) {
	t.Helper()
	if info, err := os.Stat(path); err != nil || info.Size() != want {
		t.Fatalf("%s: size %v, %v; want %d", path, info.Size(), err, want)
	}
}

// Claim: the bytes are Kafka's.
// Method: three entries each, compared with the bytes written out by hand from the format's table.
func TestFilesAreKafkas(t *testing.T) {
	dir := t.TempDir()
	x := openOffset(t, nil, filepath.Join(dir, "o"), 1000, true)
	for i, e := range [][2]int64{{1004, 4200}, {1010, 8400}, {1099, 70000}} {
		if err := x.Append(e[0], int32(e[1])); err != nil {
			t.Fatal(i, err)
		}
	}
	x.Close()
	ti, err := OpenTime(vfs.OS(), filepath.Join(dir, "t"), 1000, maxBytes, true)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range [][2]int64{{1700000000000, 1004}, {1700000000000, 1005}, {1600000000000, 1006}, {1700000000001, 1010}} {
		if err := ti.Append(e[0], e[1]); err != nil { // the second and third are left out
			t.Fatal(err)
		}
	}
	ti.Close()
	want := []byte{0, 0, 0, 4, 0, 0, 0x10, 0x68, 0, 0, 0, 10, 0, 0, 0x20, 0xd0, 0, 0, 0, 99, 0, 1, 0x11, 0x70}
	if got, _ := os.ReadFile(filepath.Join(dir, "o")); string(got) != string(want) {
		t.Fatalf("offset index % x", got)
	}
	want = []byte{0, 0, 1, 0x8b, 0xcf, 0xe5, 0x68, 0, 0, 0, 0, 4, 0, 0, 1, 0x8b, 0xcf, 0xe5, 0x68, 1, 0, 0, 0, 10}
	if got, _ := os.ReadFile(filepath.Join(dir, "t")); string(got) != string(want) {
		t.Fatalf("time index % x", got)
	}
}

// Claim: the file of an active index is not longer than its entries before the second; from then on it has its preallocated length, rounded down to whole
// entries, and takes no space for it.
// Method: stat after the opening, after closing, and after each entry.
func TestActiveFileIsPreallocatedSparse(t *testing.T) {
	path := filepath.Join(t.TempDir(), "t")
	x, err := OpenTime(vfs.OS(), path, 0, maxBytes, true)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		requireSize(t, path, 0)
		if x.Limit() != maxBytes/12 || x.Entries() != 0 {
			t.Fatalf("%d entries of %d", x.Entries(), x.Limit())
		}
		if err := x.Reset(); err != nil {
			t.Fatal(err)
		}
		if err := x.Close(); err != nil {
			t.Fatal(err)
		}
		requireSize(t, path, 0)
		if x, err = OpenTime(vfs.OS(), path, 0, maxBytes, true); err != nil {
			t.Fatal(err)
		}
	}
	defer x.Close()
	for i := range int64(2) {
		if err := x.Append(5+i, 5+i); err != nil {
			t.Fatal(err)
		}
		if err := x.Write(); err != nil {
			t.Fatal(err)
		}
		requireSize(t, path, []int64{12, maxBytes / 12 * 12}[i])
	}
}

// Claim: F001 a pre-sized index full of zeros is either known as damaged or harmless, never an answer.
// Method: zeros of the same size: a sealed index reports them, an active one is an empty index and works.
func TestField_F001_IndexFullOfZeros(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x")
	if err := os.WriteFile(path, make([]byte, 4096), 0o644); err != nil {
		t.Fatal(err)
	}
	x := openOffset(t, nil, path, 7, false)
	if _, _, err := x.Lookup(9); !errors.Is(err, ErrCorrupt) {
		t.Fatalf("Lookup in zeros: %v", err)
	}
	if err := x.Reset(); err != nil {
		t.Fatal(err)
	}
	fill(t, x, 7, 0, 700)
	requireLookups(t, x, 7, 700)
	x.Close()
	if err := os.WriteFile(path, make([]byte, maxBytes), 0o644); err != nil {
		t.Fatal(err)
	}
	x = openOffset(t, nil, path, 7, true)
	requireLookups(t, x, 7, 0)
	fill(t, x, 7, 0, 3)
	requireLookups(t, x, 7, 3)
}

// Claim: F003 any length of an index file leads to a rebuild or to right answers.
// Method: a good file cut to each length in turn, as either kind, sealed and active.
func TestField_F003_AnyLength(t *testing.T) {
	dir := t.TempDir()
	good := make([]byte, 0, 48)
	for i := range uint32(6) {
		good = binary.BigEndian.AppendUint32(good, i*3+1)
		good = binary.BigEndian.AppendUint32(good, (i+1)*5000)
	}
	for n := 0; n <= len(good); n++ {
		for _, active := range []bool{true, false} {
			path := filepath.Join(dir, fmt.Sprintf("%d-%v", n, active))
			if err := os.WriteFile(path, good[:n], 0o644); err != nil {
				t.Fatal(err)
			}
			x, err := OpenOffset(vfs.OS(), path, 0, maxBytes, active)
			if err == nil {
				_, _, err = x.Lookup(100)
			}
			if whole := n%8 == 0; whole != (err == nil) || !whole && !errors.Is(err, ErrCorrupt) {
				t.Fatalf("length %d, active %v: %v", n, active, err)
			}
			if err := x.Reset(); err != nil {
				t.Fatal(err)
			}
			fill(t, x, 0, 0, 10)
			requireLookups(t, x, 0, 10)
			x.Close()
		}
	}
	x := openOffset(t, nil, filepath.Join(dir, "missing"), 0, false)
	if _, _, err := x.Lookup(1); !errors.Is(err, ErrCorrupt) {
		t.Fatalf("a missing sealed index: %v", err)
	}
}

// Claim: random bytes never make a panic, and what is accepted ascends.
// Method: random files of random lengths, partly ascending, opened both ways and searched.
func TestRandomBytesAreRefusedOrAscend(t *testing.T) {
	dir := t.TempDir()
	r := rand.New(rand.NewPCG(1, 2))
	for round := range 300 {
		b := make([]byte, r.IntN(3000))
		for i := range b {
			b[i] = byte(r.Uint32() >> 24 >> r.IntN(9))
		}
		path := filepath.Join(dir, fmt.Sprint(round))
		if err := os.WriteFile(path, b, 0o644); err != nil {
			t.Fatal(err)
		}
		x, _ := OpenOffset(vfs.OS(), path, 5, 4096, round%2 == 0)
		for range 5 {
			ask := r.Int64N(1 << 33)
			off, pos, err := x.Lookup(ask)
			if err != nil && !errors.Is(err, ErrCorrupt) {
				t.Fatal(err)
			}
			if err == nil && pos != 0 && (off > ask || off < 5) {
				t.Fatalf("Lookup(%d) = %d, %d", ask, off, pos)
			}
		}
		x.TruncateTo(50)
		x.Close()
		y, _ := OpenTime(vfs.OS(), path, 5, 4096, round%2 == 1)
		y.Lookup(r.Int64())
		y.Append(1<<60, 1<<20)
		y.Close()
	}
}

// Claim: truncation drops exactly the entries at or above the offset, for good, in every state.
// Method: random histories of append, truncate, seal, reopen against a plain slice.
func TestTruncationAgainstAModel(t *testing.T) {
	for seed := range uint64(12) {
		r := rand.New(rand.NewPCG(seed, 1))
		path := filepath.Join(t.TempDir(), "x")
		s := NewSet(int(seed % 2))
		x := openOffset(t, s, path, 50, true)
		var model []int64
		next := int64(50)
		for range 60 {
			switch r.IntN(5) {
			case 0, 1:
				for range r.IntN(900) {
					next += 1 + r.Int64N(5)
					if err := x.Append(next, int32(next)*3); err != nil {
						t.Fatal(err)
					}
					model = append(model, next)
				}
			case 2:
				cut := 50 + r.Int64N(next-50+2)
				if err := x.TruncateTo(cut); err != nil {
					t.Fatal(err)
				}
				model = model[:sort.Search(len(model), func(i int) bool { return model[i] >= cut })]
				next = max(50, cut-1)
			case 3:
				x.Close()
				x = openOffset(t, s, path, 50, true)
			case 4:
				if err := x.Seal(); err != nil {
					t.Fatal(err)
				}
				if err := x.TruncateTo(next + 10); err != nil { // active again
					t.Fatal(err)
				}
			}
			if x.Entries() != len(model) {
				t.Fatalf("seed %d: %d entries, want %d", seed, x.Entries(), len(model))
			}
			for range 20 {
				ask := 50 + r.Int64N(next-50+3)
				want := int64(50)
				if i := sort.Search(len(model), func(i int) bool { return model[i] > ask }); i > 0 {
					want = model[i-1]
				}
				if off, _, err := x.Lookup(ask); off != want || err != nil {
					t.Fatalf("seed %d: Lookup(%d) = %d, %v; want %d", seed, ask, off, err, want)
				}
			}
		}
	}
}

// Claim: a full index says so, and the time index keeps one entry spare.
// Method: an index of ten entries, filled.
func TestFullAndSpare(t *testing.T) {
	dir := t.TempDir()
	x, _ := OpenOffset(vfs.OS(), filepath.Join(dir, "o"), 0, 87, true)
	defer x.Close()
	fill(t, x, 0, 0, 10)
	if err := x.Append(1000, 1<<20); !x.Full() || !errors.Is(err, ErrFull) {
		t.Fatalf("full %v, %v", x.Full(), err)
	}
	ti, _ := OpenTime(vfs.OS(), filepath.Join(dir, "t"), 0, 120, true)
	defer ti.Close()
	for i := range int64(9) {
		if ti.Full() {
			t.Fatalf("full at %d", i)
		}
		ti.Append(i+1, i)
	}
	if err := ti.Append(100, 100); !ti.Full() || err != nil {
		t.Fatalf("full %v, the spare entry: %v", ti.Full(), err)
	}
}

// Claim: entries that do not follow are refused and change nothing.
// Method: each kind of disorder once.
func TestDisorderIsRefused(t *testing.T) {
	x := openOffset(t, nil, filepath.Join(t.TempDir(), "o"), 100, true)
	fill(t, x, 100, 0, 3)
	var order *OrderError
	for _, e := range [][2]int64{{129, 99999}, {140, 4100}, {99, 99999}, {100 + 1<<31, 99999}, {150, -1}} {
		if err := x.Append(e[0], int32(e[1])); !errors.As(err, &order) {
			t.Fatalf("%v: %v", e, err)
		}
	}
	requireLookups(t, x, 100, 3)
}

// Claim: Set.max bounds maps and files over many indexes, which all keep answering.
// Method: 40 active and 40 sealed indexes through a set of 8, used from four goroutines.
func TestSetBoundsMapsAndFiles(t *testing.T) {
	dir := t.TempDir()
	s := NewSet(8)
	var all []*Offset
	for i := range 80 {
		x := openOffset(t, s, filepath.Join(dir, fmt.Sprint(i)), 0, true)
		fill(t, x, 0, 0, 1200)
		if i%2 == 1 {
			if err := x.Seal(); err != nil {
				t.Fatal(err)
			}
		}
		all = append(all, x)
	}
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(uint64(g), 9))
			for range 500 {
				i := r.IntN(80)
				k := r.IntN(1200)
				if off, pos, err := all[i].Lookup(int64(k)*10 + 9); off != int64(k)*10+9 || pos != int32(k+1)*4100 || err != nil {
					t.Errorf("index %d: Lookup = %d, %d, %v", i, off, pos, err)
				}
				if s.Maps() > 8 || s.Files() > 8 {
					t.Errorf("%d maps, %d files", s.Maps(), s.Files())
				}
			}
		})
	}
	for k := 1200; k < 1300; k++ { // the appender runs beside the readers
		for i := 0; i < 80; i += 2 {
			if err := all[i].Append(int64(k)*10+9, int32(k+1)*4100); err != nil {
				t.Fatal(err)
			}
		}
	}
	wg.Wait()
	for i := 0; i < 80; i += 2 {
		requireLookups(t, all[i], 0, 1300)
	}
}

// Claim: F012 a deferred index costs no I/O until it is used, and closes without any.
// Method: the file does not exist; deferring and closing do not notice, Load does.
func TestField_F012_DeferredIndexReadsNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "no", "such", "file")
	x := (*Set)(nil).DeferOffset(vfs.OS(), path, 0, maxBytes, true)
	if err := x.Close(); err != nil {
		t.Fatal(err)
	}
	if err := (*Set)(nil).DeferTime(vfs.OS(), path, 0, maxBytes, true).Load(); !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
}

func BenchmarkAppend(b *testing.B) {
	for _, mode := range []string{"mapped", "paged"} {
		b.Run("state="+mode, func(b *testing.B) {
			s := NewSet(map[string]int{"mapped": 1, "paged": 0}[mode])
			x, _ := s.OpenOffset(vfs.OS(), filepath.Join(b.TempDir(), "x"), 0, 10<<20, true)
			defer x.Discard()
			b.ReportAllocs()
			i := int64(0)
			for b.Loop() {
				if i++; x.Append(i, int32(i)) != nil {
					x.Reset()
					i = 0
				}
			}
		})
	}
}

func BenchmarkLookup(b *testing.B) {
	for _, mode := range []string{"mapped", "sealed"} {
		b.Run("state="+mode, func(b *testing.B) {
			x, _ := OpenOffset(vfs.OS(), filepath.Join(b.TempDir(), "x"), 0, 10<<20, true)
			defer x.Close()
			for i := range int64(1 << 20) {
				x.Append(i+1, int32(i+1))
			}
			if mode == "sealed" {
				x.Seal()
			}
			b.ReportAllocs()
			for b.Loop() {
				x.Lookup(rand.Int64N(1 << 20))
			}
		})
	}
}

// Claim: F127 files that nobody uses are closed for who finds no descriptor, and opened again for the next look-up; one in use stays.
// Method: sealed indexes with open files, one of them locked, are relieved in two steps.
func TestRelieveClosesIdleFiles(t *testing.T) {
	dir := t.TempDir()
	s := NewSet(8)
	var all []*Offset
	for i := range 6 {
		x := openOffset(t, s, filepath.Join(dir, fmt.Sprint(i)), 0, true)
		fill(t, x, 0, 0, 1200)
		if err := x.Seal(); err != nil {
			t.Fatal(err)
		}
		requireLookups(t, x, 0, 1200)
		all = append(all, x)
	}
	if s.Files() != 6 {
		t.Fatalf("%d files are open", s.Files())
	}
	all[2].mu.RLock()
	if n := s.Relieve(2); n != 2 || s.Files() != 4 {
		t.Errorf("%d closed, %d left", n, s.Files())
	}
	if n := s.Relieve(100); n != 3 || s.Files() != 1 || all[2].file == nil {
		t.Errorf("%d closed, %d left", n, s.Files())
	}
	all[2].mu.RUnlock()
	for _, x := range all {
		requireLookups(t, x, 0, 1200)
	}
	if n := (*Set)(nil).Relieve(1); n != 0 {
		t.Errorf("%d closed of no set", n)
	}
}
