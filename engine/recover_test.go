package engine

import (
	"errors"
	"fmt"
	"testing"

	"millrace/engine/batch"
	"millrace/engine/vfs/faultfs"
)

// Claim: the recovery table has exactly one row for everything that can be found.
// Method: all combinations of all columns.
func TestRecoveryTableIsComplete(t *testing.T) {
	n := 0
	for bits := range 1 << 8 {
		for _, where := range []place{lastSegment, beforeLast, earlier} {
			f := finding{
				length: bits&1 != 0, checksum: bits&2 != 0, sane: bits&4 != 0,
				clean: bits&8 != 0, above: bits&16 != 0, synced: bits&32 != 0, proven: bits&64 != 0, reached: bits&128 != 0,
				place: where,
			}
			var rows []int
			for i := range recoveryTable {
				if recoveryTable[i].holds(f) {
					rows = append(rows, i)
				}
			}
			if len(rows) != 1 {
				t.Errorf("rows %v hold for %+v", rows, f)
				continue
			}
			n++
			whole := f.length && f.checksum && f.sane
			v := decide(f)
			if whole != (v == keep) {
				t.Errorf("%v for %+v", v, f)
			}
			// What the table must never do, whatever its rows.
			if (v == cut || v == trim && !f.reached) && (!f.above || f.proven || f.synced && f.place == earlier) {
				t.Errorf("acknowledged bytes would be cut: %+v", f)
			}
		}
	}
	if n != 3<<8 {
		t.Errorf("%d findings decided, want %d", n, 3<<8)
	}
}

// Claim (F008, L3): bytes after the last whole batch are cut and never come back.
// Method: the field case's recipe, with a tail torn at every byte.
func TestField_F008_TornTail(t *testing.T) {
	d := faultfs.New(t)
	l := openTestLog(t, d, smallLog())
	putN(t, l, 100)
	last := newBatch(1000, []string{valueOf(99)}, batch.Base(99, 0))
	name := l.mu.active.path(logSuffix)
	d = crash(d)
	whole := readFile(t, d, name)
	for n := 1; n < len(last); n += 7 {
		d := d.Clone()
		writeFile(t, d, name, append(append([]byte(nil), whole...), last[:n]...))
		l := openTestLog(t, d, smallLog())
		requireValues(t, l, 0, 100)
		put(t, l, valueOf(100))
		d = crash(d)
		l = openTestLog(t, d, smallLog())
		requireValues(t, l, 0, 101)
		closeLog(t, l)
		l = openTestLog(t, d, smallLog())
		requireValues(t, l, 0, 101)
		closeLog(t, l)
	}
}

// Claim (F001): index files full of zeros, or of no whole number of entries, are
// made again; the next clean start has nothing to say.
func TestField_F001_IndexDamage(t *testing.T) {
	d := faultfs.New(t)
	c := smallLog()
	c.SegmentBytes = 1 << 20
	l := openTestLog(t, d, c)
	putN(t, l, 500)
	d = crash(d)
	for i, damage := range []func(b []byte) []byte{
		func(b []byte) []byte { return make([]byte, len(b)) },
		func(b []byte) []byte { return append(make([]byte, len(b)), 0, 0, 0) },
	} {
		d := d.Clone()
		for _, suffix := range []string{indexSuffix, timeSuffix} {
			for _, name := range fileNames(t, d, suffix) {
				writeFile(t, d, name, damage(readFile(t, d, name)))
			}
		}
		l := openTestLog(t, d, c)
		requireValues(t, l, 0, 500)
		closeLog(t, l)
		var lines said
		l = openTestLog(t, d, c, withLogger(lines.logger()))
		requireValues(t, l, 0, 500)
		if n := lines.count("index"); n != 0 {
			t.Errorf("case %d: a clean start says %s", i, lines.b.String())
		}
		closeLog(t, l)
	}
}

// Claim (F003): an index file of any length and content leads to a normal start
// and the same answers, after a clean stop too.
// Method: cut and scribble over every index file of a log with several segments.
func TestField_F003_IndexShape(t *testing.T) {
	d := faultfs.New(t)
	l := openTestLog(t, d, smallLog())
	putN(t, l, 60)
	closeLog(t, l)
	half := -1
	for _, size := range []int{0, 1, 7, 8, 9, 11, 12, 13, half} {
		for _, fill := range []int{-1, 0, 0xff, 0x41} {
			d := d.Clone()
			for _, suffix := range []string{indexSuffix, timeSuffix} {
				for _, name := range fileNames(t, d, suffix) {
					b := readFile(t, d, name)
					n := size
					if n == half {
						n = len(b) / 2
					}
					b = append(b, make([]byte, 20)...)[:n]
					for i := range b {
						if fill >= 0 {
							b[i] = byte(fill)
						}
					}
					writeFile(t, d, name, b)
				}
			}
			l := openTestLog(t, d, smallLog())
			requireValues(t, l, 0, 60)
			for o := range Offset(60) {
				s, err := l.Read(o, 1, 60, true)
				if err != nil || s.First != o {
					t.Fatalf("size %d fill %d: read at %d: first %v, %v", size, fill, o, s, err)
				}
				s.Release()
			}
			if off, ts, found, err := l.OffsetForTime(1000); off != 0 || ts != 1000 || !found || err != nil {
				t.Fatalf("size %d fill %d: offset for time: %d, %d, %v, %v", size, fill, off, ts, found, err)
			}
			closeLog(t, l)
		}
	}
}

// Claim (F003): single entries that lie do not mislead either: each is held
// against the batch it names.
func TestIndexEntriesThatLieAreFound(t *testing.T) {
	d := faultfs.New(t)
	l := openTestLog(t, d, smallLog())
	putN(t, l, 60)
	closeLog(t, l)
	for seed := range int64(40) {
		d := d.Clone()
		for _, name := range fileNames(t, d, "index") {
			b := readFile(t, d, name)
			if len(b) > 8 {
				b[int(seed*7)%len(b)] ^= byte(1 << (seed % 8))
			}
			writeFile(t, d, name, b)
		}
		l := openTestLog(t, d, smallLog())
		for o := range Offset(60) {
			s, err := l.Read(o, 1, 60, true)
			if err != nil || s.First != o {
				t.Fatalf("seed %d: read at %d: %v", seed, o, err)
			}
			s.Release()
		}
		requireValues(t, l, 0, 60)
		closeLog(t, l)
	}
}

// Claim (F005): a ready-made segment whose offsets span more than 2^31-1 opens;
// both ends can be read, and what follows goes to a new segment.
func TestField_F005_OffsetSpan(t *testing.T) {
	const far = 2_200_000_000
	d := faultfs.New(t)
	data := newBatch(1000, []string{"near"}, batch.Base(0, 0))
	data = append(data, newBatch(2000, []string{"far"}, batch.Base(far, 0))...)
	writeFile(t, d, logDir+"/"+baseName(0)+logSuffix, data)
	c := smallLog()
	c.IndexInterval = 0
	check := func(l *Log, end Offset) {
		t.Helper()
		if l.End() != end {
			t.Fatalf("end %d, want %d", l.End(), end)
		}
		got := mustContents(t, l)
		if got[0] != (gotRecord{0, "near"}) || got[1] != (gotRecord{far, "far"}) || len(got) != int(end-far)+1 {
			t.Fatalf("read %v", got)
		}
	}
	l := openTestLog(t, d, c)
	check(l, far+1)
	put(t, l, "more")
	if s := l.mu.active; s.base != far+1 {
		t.Fatalf("appended to the segment at %d", s.base)
	}
	// A follower that goes on behind a wide gap.
	for _, base := range []int64{2*far + 7, 2*far + 8} {
		if err := l.Append(followerAppend(newBatch(1000, []string{"gap"}, batch.Base(base, 0))), NoEpoch); err != nil {
			t.Fatal(err)
		}
	}
	for _, s := range *l.segments.Load() {
		if last, _, ok := s.index.Last(); ok && Offset(last)-s.base > maxOffsetSpan {
			t.Fatalf("index of %d names %d", s.base, last)
		}
	}
	d = crash(d)
	l = openTestLog(t, d, c)
	if got := mustContents(t, l); len(got) != 5 || got[4].offset != 2*far+8 {
		t.Fatalf("read %v", got)
	}
	closeLog(t, l)
}

// Claim: damage below the recovery point, or in a closed segment of a log that
// syncs, is named and set aside; the files stay as they are.
// Method: flip one byte of every segment in turn, at a clean stop with the mark
// removed (so that all is below the recovery point).
func TestDamageIsNamedAndNeverTakenForTheEnd(t *testing.T) {
	d := faultfs.New(t)
	l := openTestLog(t, d, smallLog())
	putN(t, l, 60)
	closeLog(t, l)
	if err := d.Remove(logDir + "/.kafka_cleanshutdown"); err != nil {
		t.Fatal(err)
	}
	if err := d.Remove(logDir + "/recovery-point-offset-checkpoint"); err != nil {
		t.Fatal(err)
	}
	logs := fileNames(t, d, logSuffix)
	for i, name := range logs[:len(logs)-2] { // the last two may be torn by a crash
		d := d.Clone()
		if err := d.Damage(name, 200, 1); err != nil {
			t.Fatal(err)
		}
		before := readFile(t, d, name)
		_, err := tryOpen(d, smallLog())
		var bad *CorruptError
		if !errors.As(err, &bad) || bad.File != name || bad.Position > 200 {
			t.Fatalf("segment %d: %v", i, err)
		}
		if after := readFile(t, d, name); string(after) != string(before) {
			t.Fatalf("segment %d was changed", i)
		}
	}
}

// Claim: in page-cache mode a torn closed segment is cut, and what lay behind is
// kept under another name.
func TestPageCacheCutsAtATornSegment(t *testing.T) {
	d := faultfs.New(t)
	l := openTestLog(t, d, pageCache())
	putN(t, l, 60)
	d = crash(d)
	logs := fileNames(t, d, logSuffix)
	if err := d.Damage(logs[2], 5, 1); err != nil {
		t.Fatal(err)
	}
	end := l.segmentBase(2)
	l = openTestLog(t, d, pageCache())
	requireValues(t, l, 0, end)
	if kept := fileNames(t, d, logSuffix+cutSuffix); len(kept) != len(logs)-3 {
		t.Fatalf("kept %v of %v", kept, logs)
	}
	putN(t, l, 20)
	requireValues(t, l, 0, end+20)
	closeLog(t, l)
}

func (l *Log) segmentBase(i int) Offset { return (*l.segments.Load())[i].base }

// Claim: recovery reads what lies above the recovery point, and says how far it is.
func TestRecoveryIsBoundedByTheRecoveryPoint(t *testing.T) {
	d := faultfs.New(t)
	c := smallLog()
	c.SegmentBytes = 1 << 20
	l := openTestLog(t, d, c)
	putN(t, l, 300)
	if err := l.Sync(); err != nil {
		t.Fatal(err)
	}
	if err := l.home.Load().checkpoint(l); err != nil {
		t.Fatal(err)
	}
	putN(t, l, 10)
	d = crash(d)
	var done, total int64
	l = openTestLog(t, d, c, func(o *LogOptions) {
		o.Progress = func(a, b int64) { done, total = a, b }
	})
	requireValues(t, l, 0, 310)
	one := int64(len(newBatch(1000, []string{valueOf(0)})))
	if done != total || total < 10*one || total > 50*one {
		t.Fatalf("read %d of %d bytes, want the last 10 batches of %d bytes and at most an index interval before them", done, total, one)
	}
	closeLog(t, l)
	// A byte far below the point is not looked at.
	if err := d.Damage(fileNames(t, d, logSuffix)[0], 20, 1); err != nil {
		t.Fatal(err)
	}
	if err := d.Remove(logDir + "/.kafka_cleanshutdown"); err != nil {
		t.Fatal(err)
	}
	l = openTestLog(t, d, c)
	if l.End() != 310 {
		t.Fatalf("end %d", l.End())
	}
	closeLog(t, l)
}

// Claim (L7): replaying the journal twice changes nothing.
// Method: lose the page cache but not the journal; open, crash before the
// journal forgets (the disk is cloned as it was), open again.
func TestReplayingTwiceChangesNothing(t *testing.T) {
	d := faultfs.New(t)
	l := openTestLog(t, d, smallLog())
	putN(t, l, 40)
	d.CutPower(faultfs.KeepUnsynced(0))
	var states []string
	for range 3 {
		again := d.Clone()
		l = openTestLog(t, again, smallLog())
		requireValues(t, l, 0, 40)
		closeLog(t, l)
		states = append(states, fmt.Sprint(mustFiles(t, again)))
	}
	if states[0] != states[1] || states[1] != states[2] {
		t.Fatal("three recoveries of one disk differ")
	}
}

func mustFiles(t logTB, d *faultfs.Disk) map[string]string {
	t.Helper()
	files := map[string]string{}
	for _, name := range fileNames(t, d, logSuffix) {
		files[name] = string(readFile(t, d, name))
	}
	return files
}
