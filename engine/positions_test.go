package engine

import (
	"testing"

	"millrace/engine/vfs/faultfs"
)

const positionsFile = logDir + "/positions"

// Claim: whatever operation of Set fails or is cut off by a loss of power, the file has the old positions or the new ones, and
// what Set has acknowledged is there.
func TestPositionsSurviveAnyFault(t *testing.T) {
	for _, cut := range []bool{false, true} {
		for n := 0; ; n++ {
			d := faultfs.New(nil, faultfs.Seed(uint64(n)))
			if err := d.MkdirAll(logDir); err != nil {
				t.Fatal(err)
			}
			if err := d.SyncFS("/"); err != nil {
				t.Fatal(err)
			}
			if cut {
				d.CutAtOperation(n)
			} else {
				d.FailOperation(n)
			}
			acked, tried := livePositions(t, d)
			fired := d.Fired()
			d.CutPower(faultfs.KeepUnsynced(n * 37 % 101))
			p, err := OpenPositions(d, positionsFile)
			if err != nil {
				t.Fatalf("operation %d: %v", n, err)
			}
			got, _ := p.Get("reader")
			if got < acked || got > tried {
				t.Fatalf("operation %d: position %d, acknowledged %d, tried %d", n, got, acked, tried)
			}
			if other, ok := p.Get("other"); ok && other != 7 {
				t.Fatalf("operation %d: the other position is %d", n, other)
			}
			if !fired {
				break
			}
		}
	}
}

func livePositions(t *testing.T, d *faultfs.Disk) (acked, tried Offset) {
	p, err := OpenPositions(d, positionsFile)
	if err != nil {
		return 0, 0 // a fault
	}
	if p.Set("other", 7) != nil {
		return 0, 0
	}
	for tried = 1; tried < 4; tried++ {
		if p.Set("reader", tried) == nil {
			acked = tried
		}
		if got, _ := p.Get("reader"); got != acked {
			t.Fatalf("position %d, acknowledged %d", got, acked)
		}
	}
	return acked, tried
}

// Claim: a name that the file cannot hold is refused, a removed position is gone, and a file that is not ours is named.
func TestPositionsKnowTheirNames(t *testing.T) {
	d := faultfs.New(t)
	if err := d.MkdirAll(logDir); err != nil {
		t.Fatal(err)
	}
	p, err := OpenPositions(d, positionsFile)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"", "a b", "a\nb"} {
		if p.Set(name, 1) == nil {
			t.Errorf("the name %q was taken", name)
		}
	}
	if err := p.Set("a", 1); err != nil {
		t.Fatal(err)
	}
	if err := p.Set("a", -1); err != nil {
		t.Fatal(err)
	}
	if _, ok := p.Get("a"); ok {
		t.Error("a removed position is there")
	}
	writeFile(t, d, positionsFile, []byte("something else\n"))
	if _, err := OpenPositions(d, positionsFile); err == nil {
		t.Error("a file of something else was read")
	}
}
