package checkpoint

import (
	"errors"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"

	"millrace/engine/vfs"
)

func open(t *testing.T, dir string) *Epochs {
	t.Helper()
	e, err := OpenEpochs(vfs.OS(), dir)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// Claim: the history answers as Kafka's LeaderEpochFileCache does.
// Method: its documented cases, with epochs 2 at 10, 5 at 30, 6 at 31 and the log's end at 50.
func TestEndOfEpoch(t *testing.T) {
	dir := t.TempDir()
	e := open(t, dir)
	if epoch, end := e.EndOf(1, 50); epoch != -1 || end != -1 {
		t.Fatal("an empty history knew something")
	}
	for _, x := range []EpochStart{{2, 10}, {5, 30}, {5, 40}, {6, 31}} { // the third repeats its epoch: nothing
		if err := e.Assign(x.Epoch, x.Start); err != nil {
			t.Fatal(err)
		}
	}
	requireContent(t, filepath.Join(dir, EpochsName), "0\n3\n2 10\n5 30\n6 31\n")
	for _, c := range []struct {
		ask, epoch int32
		end        int64
	}{{-1, -1, -1}, {0, 0, 10}, {1, 1, 10}, {2, 2, 30}, {3, 2, 30}, {4, 2, 30}, {5, 5, 31}, {6, 6, 50}, {7, -1, -1}} {
		if epoch, end := e.EndOf(c.ask, 50); epoch != c.epoch || end != c.end {
			t.Errorf("EndOf(%d) = %d, %d; want %d, %d", c.ask, epoch, end, c.epoch, c.end)
		}
	}
	for off, want := range map[int64]int32{9: -1, 10: 2, 29: 2, 30: 5, 31: 6, 1000: 6} {
		if got, _ := e.At(off); got != want {
			t.Errorf("At(%d) = %d, want %d", off, got, want)
		}
	}
	if epoch, start, ok := open(t, dir).Latest(); epoch != 6 || start != 31 || !ok {
		t.Fatal(epoch, start, ok)
	}
}

// Claim: entries that contradict a new one are dropped; truncation at both ends keeps what is left true.
// Method: each operation with the file's content after it.
func TestEpochsAreCutAtBothEnds(t *testing.T) {
	dir := t.TempDir()
	e := open(t, dir)
	step := func(err error, want string) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		requireContent(t, filepath.Join(dir, EpochsName), want)
	}
	e.Assign(1, 0)
	e.Assign(2, 10)
	step(e.Assign(4, 20), "0\n3\n1 0\n2 10\n4 20\n")
	step(e.Assign(5, 20), "0\n3\n1 0\n2 10\n5 20\n")
	step(e.Assign(3, 15), "0\n3\n1 0\n2 10\n3 15\n")
	step(e.TruncateEnd(16), "0\n3\n1 0\n2 10\n3 15\n")
	step(e.TruncateEnd(15), "0\n2\n1 0\n2 10\n")
	step(e.TruncateStart(0), "0\n2\n1 0\n2 10\n")
	step(e.TruncateStart(5), "0\n2\n1 5\n2 10\n")
	step(e.TruncateStart(10), "0\n1\n2 10\n")
	step(e.TruncateStart(99), "0\n1\n2 99\n")
	e.Note(7, 100)
	step(nil, "0\n1\n2 99\n")
	step(e.Flush(), "0\n2\n2 99\n7 100\n")
	step(e.Clear(), "0\n0\n")
}

// Claim: whatever is assigned and cut, epochs and starts ascend strictly and the file says the same.
// Method: random histories, reopened at each step.
func TestEpochsAlwaysAscend(t *testing.T) {
	dir := t.TempDir()
	e := open(t, dir)
	r := rand.New(rand.NewPCG(3, 4))
	for range 150 {
		switch n := r.Int64N(100); r.IntN(5) {
		case 0:
			e.TruncateEnd(n)
		case 1:
			e.TruncateStart(n / 2)
		default:
			e.Assign(r.Int32N(50), n)
		}
		all := e.All()
		for i := 1; i < len(all); i++ {
			if all[i].Epoch <= all[i-1].Epoch || all[i].Start <= all[i-1].Start {
				t.Fatalf("%v", all)
			}
		}
		if again := open(t, dir).All(); !slices.Equal(again, all) {
			t.Fatalf("%v in memory, %v in the file", all, again)
		}
	}
}

// Claim: a damaged history is an error that comes with an empty, usable one.
// Method: entries out of order.
func TestDamagedHistoryIsEmptyAndUsable(t *testing.T) {
	dir := t.TempDir()
	put(t, filepath.Join(dir, EpochsName), "0\n2\n5 10\n4 20\n")
	e, err := OpenEpochs(vfs.OS(), dir)
	var format *FormatError
	if !errors.As(err, &format) || format.Line != 4 || len(e.All()) != 0 {
		t.Fatal(err)
	}
	e.Note(3, 0)
	if err := e.Flush(); err != nil {
		t.Fatal(err)
	}
	requireContent(t, filepath.Join(dir, EpochsName), "0\n1\n3 0\n")
}
