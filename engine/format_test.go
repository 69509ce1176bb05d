package engine

import (
	"encoding/hex"
	"fmt"
	"testing"

	"millrace/engine/batch"
	"millrace/engine/vfs/faultfs"
)

// Claim: the files of a log are Kafka's to the byte, also when it was written in
// combined runs, and when it was made anew by recovery.
// Method: what Kafka's LogSegment would write for these batches, worked out by
// hand from its rules, against a log written in three ways.
func TestFilesAreKafkas(t *testing.T) {
	config := DefaultConfig()
	config.IndexInterval = 200
	// Sizes 61 + record; timestamps rise, fall, rise.
	times := []int64{100, 300, 200, 200, 400, 500, 450, 600}
	batches := func() (list [][]byte) {
		for i, ts := range times {
			list = append(list, newBatch(ts, []string{fmt.Sprintf("%060d", i), "second"}, batch.Base(0, -1)))
		}
		return list
	}
	size := len(batches()[0]) // 61 + 67 + 14 = 142 bytes; all the same
	if size != 142 {
		t.Fatalf("a batch has %d bytes", size)
	}
	// An entry is due before the batch that comes when more than 200 bytes were
	// written since the last one: before the 3rd, 5th and 7th batch. It names the
	// last offset of that batch and its position; the time entry the largest
	// timestamp so far and the last offset of the batch that brought it.
	wantIndex := "00000005" + "0000011c" + // offset 5 at 284
		"00000009" + "00000238" + // offset 9 at 568
		"0000000d" + "00000354" // offset 13 at 852
	wantTimes := "000000000000012c" + "00000003" + // 300 from the batch that ends at 3
		"0000000000000190" + "00000009" + // 400 at 9
		"00000000000001f4" + "0000000b" + // 500 at 11
		"0000000000000258" + "0000000f" // at the end: 600 at 15
	var wantLog []byte
	for i, b := range batches() {
		batch.Stamp(b, int64(2*i), 3)
		wantLog = append(wantLog, b...)
	}
	ways := map[string]func(d *faultfs.Disk, l *Log) (*faultfs.Disk, *Log){
		"one by one": func(d *faultfs.Disk, l *Log) (*faultfs.Disk, *Log) {
			for _, b := range batches() {
				if err := l.Append(leaderAppend(b), 3); err != nil {
					t.Fatal(err)
				}
			}
			return d, l
		},
		"combined": func(d *faultfs.Disk, l *Log) (*faultfs.Disk, *Log) {
			var list []*Append
			for _, b := range batches() {
				a := leaderAppend(b)
				l.Enqueue(a, 3)
				list = append(list, a)
			}
			for _, a := range list {
				if err := l.Write(a); err != nil {
					t.Fatal(err)
				}
				if err := a.Wait(); err != nil {
					t.Fatal(err)
				}
			}
			return d, l
		},
	}
	ways["recovered"] = func(d *faultfs.Disk, l *Log) (*faultfs.Disk, *Log) {
		ways["one by one"](d, l)
		d = crash(d)
		for _, name := range append(fileNames(t, d, indexSuffix), fileNames(t, d, timeSuffix)...) {
			if err := d.Remove(name); err != nil {
				t.Fatal(err)
			}
		}
		return d, openTestLog(t, d, config)
	}
	for name, way := range ways {
		d := faultfs.New(t)
		d, l := way(d, openTestLog(t, d, config))
		closeLog(t, l)
		base := logDir + "/00000000000000000000"
		if got := readFile(t, d, base+".log"); string(got) != string(wantLog) {
			t.Errorf("%s: .log differs", name)
		}
		if got := hex.EncodeToString(readFile(t, d, base+".index")); got != wantIndex {
			t.Errorf("%s: .index\n got %s\nwant %s", name, got, wantIndex)
		}
		if got := hex.EncodeToString(readFile(t, d, base+".timeindex")); got != wantTimes {
			t.Errorf("%s: .timeindex\n got %s\nwant %s", name, got, wantTimes)
		}
		if got := string(readFile(t, d, logDir+"/leader-epoch-checkpoint")); got != "0\n1\n3 0\n" {
			t.Errorf("%s: leader-epoch-checkpoint %q", name, got)
		}
		if got := readFile(t, d, logDir+"/00000000000000000016.snapshot"); len(got) != 10 {
			t.Errorf("%s: snapshot of no producers has %d bytes", name, len(got))
		}
	}
}

// Claim: offsets for times and the largest timestamp are right over segments,
// after a start offset, and when time does not rise.
func TestTimesAreFound(t *testing.T) {
	for _, reopen := range []bool{false, true} {
		d := faultfs.New(t)
		l := openTestLog(t, d, smallLog())
		times := []int64{10, 50, 30, 20, 60, 60, 40, 100, 90, 95, 300, 299, 5, 301, 2, 302, 1, 303, 303, 300}
		for _, ts := range times {
			if err := l.Append(leaderAppend(newBatch(ts, []string{valueOf(0), valueOf(1)})), 0); err != nil {
				t.Fatal(err)
			}
		}
		if reopen {
			closeLog(t, l)
			l = openTestLog(t, d, smallLog())
		}
		for start := Offset(0); start < 40; start += 3 {
			if err := l.SetStart(start); err != nil {
				t.Fatal(err)
			}
			for ts := int64(0); ts < 306; ts++ {
				want, wantTs := Offset(-1), int64(-1)
				for i, at := range times {
					if o := Offset(2 * i); at >= ts && (o >= start || o+1 >= start) {
						want, wantTs = max(o, start), at
						break
					}
				}
				off, got, found, err := l.OffsetForTime(ts)
				if err != nil || off != want || got != wantTs || found != (want >= 0) {
					t.Fatalf("start %d, time %d: got %d, %d, %v, %v; want %d, %d", start, ts, off, got, found, err, want, wantTs)
				}
			}
		}
		if off, ts, err := l.MaxTimestamp(); off != 34 || ts != 303 || err != nil {
			t.Fatalf("largest: %d at %d, %v", ts, off, err)
		}
		closeLog(t, l)
	}
	l := openTestLog(t, faultfs.New(t), smallLog())
	if off, ts, err := l.MaxTimestamp(); off != -1 || ts != -1 || err != nil {
		t.Fatalf("of an empty log: %d at %d, %v", ts, off, err)
	}
	closeLog(t, l)
}
