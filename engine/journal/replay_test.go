package journal

import (
	"bytes"
	"fmt"
	"log/slog"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"millrace/engine/vfs"
	"millrace/engine/vfs/faultfs"
)

// quietLife is a life without keeper; tests call maintain.
func quietLife(t *testing.T, disk *faultfs.Disk, s setting) *life {
	t.Helper()
	l, err := openLife(disk, s, nil, newRand(1))
	must(t, disk, err, "open")
	return l
}

// put appends one batch of count offsets and waits.
func (l *life) put(t *testing.T, name string, count int64, size int) {
	t.Helper()
	l.serial++
	ticket, err := l.logs[name].append(batch{count: count, serial: l.serial, size: size})
	if err == nil {
		err = l.j.Wait(ticket)
	}
	if err != nil {
		t.Fatal(err)
	}
	h := l.history[name]
	h.written = slices.Clone(l.logs[name].all)
	h.acked = len(h.written)
}

// left opens the journal on a copy of the disk and says what it has of a log, as "base-end" words.
func left(t *testing.T, disk *faultfs.Disk, name string, logger *slog.Logger) string {
	t.Helper()
	j, err := Open(Options{FS: disk.Clone(), Dir: dataDir, DataDir: dataDir, Logger: logger})
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	var words []string
	for _, e := range j.Replay(fakeID(name)) {
		p := make([]byte, e.Size)
		if err := e.Read(p); err != nil {
			t.Fatal(err)
		}
		for rest := p; len(rest) > 0; {
			var ok bool
			if _, rest, ok = nextBatch(rest); !ok {
				t.Fatalf("entry %d-%d does not hold whole batches", e.Base, e.End)
			}
		}
		words = append(words, fmt.Sprintf("%d-%d", e.Base, e.End))
	}
	return strings.Join(words, " ")
}

func wantLeft(t *testing.T, disk *faultfs.Disk, name, want string) {
	t.Helper()
	if got := left(t, disk, name, nil); got != want {
		t.Errorf("left of %s: %q, want %q", name, got, want)
	}
}

// Claim: an earlier life's records are found, also when the journal is off now or shaped otherwise, and Start forgets them.
func TestReplayUnderOtherSettings(t *testing.T) {
	off, fewer := small, small
	off.Off = true
	fewer.Files, fewer.FileBytes = 2, 64*pageBytes
	for name, next := range map[string]setting{"same": small, "off": off, "other shape": fewer} {
		t.Run(name, func(t *testing.T) {
			disk := faultfs.New(t)
			l := quietLife(t, disk, small)
			for range 12 { // two files and a half
				l.put(t, "a", 1, 10)
				if len(l.j.sealed) < 2 {
					l.j.makeOne()
				}
			}
			wantLeft(t, disk, "a", "0-1 1-2 2-3 3-4 4-5 5-6 6-7 7-8 8-9 9-10 10-11 11-12")
			promised := l.promises()
			cut := disk.Clone()
			cut.CutPower(faultfs.KeepUnsynced(0))
			l.kill()

			second, err := openLife(cut, next, promised, newRand(1))
			must(t, cut, err, "second life")
			wantLeft(t, cut, "a", "")
			second.put(t, "a", 5, 10)
			second.j.maintain()
			if next.Off {
				wantLeft(t, cut, "a", "")
				if indexes, _, _ := listFiles(cut, dataDir); len(indexes) != 0 {
					t.Errorf("files %v are left though the journal is off", indexes)
				}
			} else {
				wantLeft(t, cut, "a", "12-17")
			}
			closeLife(t, cut, second)
		})
	}
}

// Claim: a cut between two batches of one Add keeps the lower ones; a cut of all keeps what came after it.
func TestCutInsideAnEntry(t *testing.T) {
	disk := faultfs.New(t)
	s := small
	s.FileBytes *= 2
	l := quietLife(t, disk, s)
	a := l.logs["a"]
	ticket, err := a.append(batch{count: 3, serial: 1}, batch{count: 3, serial: 2, size: 40}, batch{count: 3, serial: 3})
	must(t, disk, err, "append")
	must(t, disk, l.j.Wait(ticket), "wait")
	wantLeft(t, disk, "a", "0-9")
	must(t, disk, a.truncate(6), "truncate")
	wantLeft(t, disk, "a", "0-6")
	l.serial = 3
	l.put(t, "a", 2, 0)
	wantLeft(t, disk, "a", "0-6 6-8")
	must(t, disk, a.truncate(4), "truncate")
	wantLeft(t, disk, "a", "0-3")
	must(t, disk, a.reset(100), "reset")
	l.put(t, "a", 2, 0)
	wantLeft(t, disk, "a", "100-102")
	closeLife(t, disk, l)
}

// Claim: a file that is used again shows nothing of its earlier use, at whatever block the new chain ends.
func TestReusedFileShowsNoStaleBlocks(t *testing.T) {
	disk := faultfs.New(t)
	l := quietLife(t, disk, small)
	for i := range 60 {
		l.put(t, "a", 1, 10)
		l.j.maintain() // frees what is sealed at once
		words := strings.Fields(left(t, disk, "a", nil))
		if len(words) == 0 || len(words) > 5 || words[len(words)-1] != fmt.Sprintf("%d-%d", i, i+1) {
			t.Fatalf("after %d rounds: %v", i+1, words)
		}
	}
	if s := l.j.Stats(); s.Recycled < 10 || s.Unplaced > 0 {
		t.Errorf("%+v", s)
	}
	closeLife(t, disk, l)
}

// Claim: no byte of a block can change without the block and all after it being passed over.
func TestEveryByteOfABlockIsChecked(t *testing.T) {
	disk := faultfs.New(t)
	l := quietLife(t, disk, small)
	l.put(t, "b", 7, 0)
	l.put(t, "a", 1, 0)
	l.put(t, "a", 1, 0)
	wantLeft(t, disk, "a", "0-1 1-2")
	size := int64(headerBytes + recordBytes + padTo(batchHead+8, 8))
	for at := int64(0); at < size; at++ {
		damaged := disk.Clone()
		if err := damaged.Damage(dataDir+"/"+filePrefix+"0", pageBytes+at, 1); err != nil {
			t.Fatal(err)
		}
		wantLeft(t, damaged, "a", "")
		wantLeft(t, damaged, "b", "0-7")
	}
	closeLife(t, disk, l)
}

// Claim: if a file is damaged that another followed, what is older than the damage is not replayed, since a cut may be among what is missing,
// and an error says so. What is newer is replayed.
func TestHoleIsReportedAndNotCrossed(t *testing.T) {
	disk := faultfs.New(t)
	l := quietLife(t, disk, small)
	for range 12 {
		l.put(t, "a", 1, 10)
		l.put(t, "b", 1, 10)
		if len(l.j.sealed) < 2 {
			l.j.makeOne()
		}
	}
	whole := strings.Fields(left(t, disk, "a", nil))
	for page := range int64(5) {
		damaged := disk.Clone()
		if err := damaged.Damage(dataDir+"/"+filePrefix+"1", page*pageBytes+100, 1); err != nil {
			t.Fatal(err)
		}
		var said bytes.Buffer
		got := strings.Fields(left(t, damaged, "a", slog.New(slog.NewTextHandler(&said, nil))))
		if len(got) == 0 || len(got) >= len(whole)-3 || !slices.Equal(got, whole[len(whole)-len(got):]) {
			t.Errorf("page %d: %v of %v", page, got, whole)
		}
		if !strings.Contains(said.String(), "hole") {
			t.Errorf("page %d: said %q", page, said.String())
		}
	}
	l.kill()
}

// Claim: rounds never wait for a file: with none free they sync the logs' files; and a cut in such a round empties the journal, so that it holds.
func TestFullJournalSyncsFiles(t *testing.T) {
	disk := faultfs.New(t)
	l := quietLife(t, disk, small) // nobody maintains: one file of five pages
	for range 9 {
		l.put(t, "a", 1, 10)
	}
	a := l.logs["a"]
	if s := l.j.Stats(); s.Blocks != 5 || s.Unplaced != 4 || a.synced.Load() != 9 {
		t.Fatalf("%d blocks, %d without place, synced to %d", s.Blocks, s.Unplaced, a.synced.Load())
	}
	wantLeft(t, disk, "a", "0-1 1-2 2-3 3-4 4-5")
	must(t, disk, a.truncate(3), "truncate")
	wantLeft(t, disk, "a", "")
	l.put(t, "a", 1, 10)
	wantLeft(t, disk, "a", "3-4")
	closeLife(t, disk, l)
}

// Claim: more cuts than a block holds are as good as recorded.
func TestMoreCutsThanABlockHolds(t *testing.T) {
	disk := faultfs.New(t)
	s := small
	s.FileBytes = maxBlockBytes
	l := quietLife(t, disk, s)
	l.put(t, "a", 4, 10)
	a := l.logs["a"]
	l.put(t, "b", 4, 10)
	ticket, err := l.logs["b"].append(batch{count: 1, serial: 77, size: 10})
	must(t, disk, err, "append")
	a.end.Store(0)
	for range maxBlockBytes/recordBytes + 10 {
		l.j.Cut(a, 0)
	}
	must(t, disk, l.j.Wait(ticket), "wait")
	wantLeft(t, disk, "a", "")
	if got := l.logs["b"].synced.Load(); got != 5 {
		t.Errorf("b synced to %d", got)
	}
	l.kill()
}

// Claim: a cut is recorded also if the log's only batches in the journal stand in a round that synced the log's files as well.
func TestCutOfWhatWasSyncedInItsRound(t *testing.T) {
	disk := faultfs.New(t)
	l := quietLife(t, disk, small)
	a, b := l.logs["a"], l.logs["b"]
	_, err := a.append(batch{count: 4, serial: 1, size: 10})
	must(t, disk, err, "append")
	_, err = b.append(batch{count: 1, serial: 2, size: 10}) // without it no block is written
	must(t, disk, err, "append")
	must(t, disk, l.j.Wait(l.j.AddSync(a)), "wait")
	wantLeft(t, disk, "a", "0-4")
	must(t, disk, a.truncate(0), "truncate")
	wantLeft(t, disk, "a", "")
	closeLife(t, disk, l)
}

// Claim: a cut of what the journal does not hold costs no round: deleting idle topics is free of it.
func TestCutOfNothingNeedsNoRound(t *testing.T) {
	disk := faultfs.New(t)
	l := quietLife(t, disk, small)
	l.put(t, "a", 4, 10)
	if cut := l.j.Cut(l.logs["b"], math.MinInt64); cut != (Ticket{}) {
		t.Error("a log that never added")
	}
	if cut := l.j.Cut(l.logs["a"], math.MinInt64); cut == (Ticket{}) || l.j.Wait(cut) != nil {
		t.Error("a log in the journal")
	}
	if len(l.j.owners) != 0 || len(l.j.current.pins) != 0 {
		t.Errorf("%d owners, %d pins are left after the deletion", len(l.j.owners), len(l.j.current.pins))
	}
	closeLife(t, disk, l)
}

// Claim: what a newer version wrote stops the start rather than being passed over.
func TestUnknownRecordStopsOpen(t *testing.T) {
	disk := faultfs.New(t)
	block := make([]byte, pageBytes)
	rec := record{id: fakeID("a"), kind: 9}
	rec.put(block[headerBytes:])
	h := blockHeader{length: recordBytes, number: 1, count: 1}
	h.seal(block)
	must(t, disk, disk.WriteFile(dataDir+"/"+filePrefix+"0", block), "write")
	_, err := Open(Options{FS: disk, Dir: dataDir, DataDir: dataDir})
	if err == nil || !strings.Contains(err.Error(), "newer version") {
		t.Errorf("got %v", err)
	}
}

// Claim: on a real directory Start takes little time, leaves nothing odd behind, and a small first file grows.
func TestRealFiles(t *testing.T) {
	dir, err := os.MkdirTemp(".", "journal-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	o := Options{FS: vfs.OS(), Dir: dir, DataDir: dir, FileBytes: 4 << 20, Files: 2}
	log := &fakeLog{fs: o.FS, id: fakeID("a"), name: dir + "/a.log"}
	if log.file, err = o.FS.OpenFile(log.name, os.O_RDWR|os.O_CREATE); err != nil {
		t.Fatal(err)
	}
	defer log.file.Close()
	for range 2 {
		j, err := Open(o)
		if err != nil {
			t.Fatal(err)
		}
		if len(j.Logs()) != 0 {
			t.Error("something to replay")
		}
		if err := j.Start(); err != nil {
			t.Fatal(err)
		}
		log.j = j
		for i := range 40 {
			ticket, err := log.append(batch{count: 1, serial: uint64(i), size: 120 << 10})
			if err == nil {
				err = j.Wait(ticket)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		if s := j.Stats(); s.Rounds < 40 || s.Records == 0 {
			t.Errorf("%+v", s)
		}
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
	}
	indexes, _, err := listFiles(o.FS, dir)
	if err != nil || len(indexes) == 0 || len(indexes) > 2 {
		t.Errorf("files %v, %v", indexes, err)
	}
}

// Claim (L4): a file whose name was lost in a failed sync of an earlier life, and which the system has taken for written since, is not
// relied on under that name: what is acknowledged in it survives.
// Method: the sync of the file system fails over a file that was just made; the next life acknowledges one batch, and all that is unsynced is lost.
func TestNamesOfAnEarlierLifeAreMadeAgain(t *testing.T) {
	disk := faultfs.New(t)
	l := quietLife(t, disk, small)
	l.j.makeOne()
	l.kill()
	name := dataDir + "/" + filePrefix + "9"
	f, err := disk.OpenFile(name, os.O_RDWR|os.O_CREATE)
	must(t, disk, err, "make a file")
	_, err = f.WriteAt(make([]byte, small.FileBytes), 0)
	must(t, disk, err, "write it")
	disk.Fail(faultfs.Fault{Kind: faultfs.OpSyncFS})
	if err := disk.SyncFS(dataDir); err == nil {
		t.Fatal("the sync did not fail")
	}
	indexes, _, err := listFiles(disk, dataDir)
	must(t, disk, err, "list")
	for _, n := range indexes { // it is the one that is there
		if n != 9 {
			must(t, disk, disk.Remove(fmt.Sprintf("%s/%s%d", dataDir, filePrefix, n)), "remove")
		}
	}
	second, err := openLife(disk, small, nil, newRand(1))
	must(t, disk, err, "second life")
	second.put(t, "a", 5, 10)
	disk.CutPower(faultfs.KeepUnsynced(0))
	wantLeft(t, disk, "a", "0-5")

	// What a crash between the two renames leaves is nothing but space.
	must(t, disk, disk.WriteFile(dataDir+"/"+filePrefix+"3"+againSuffix, []byte("x")), "left over")
	third, err := openLife(disk, small, nil, newRand(1))
	must(t, disk, err, "third life")
	third.j.maintain()
	if _, left, err := listFiles(disk, dataDir); err != nil || len(left) > 0 {
		t.Errorf("%v are left, %v", left, err)
	}
	closeLife(t, disk, third)
}

// Claim (L4): a journal does not start over a folder whose name could not be synced.
func TestStartNeedsTheNamesAbove(t *testing.T) {
	disk := faultfs.New(t)
	j, err := Open(Options{FS: disk, Dir: "/other/j", DataDir: "/data"})
	must(t, disk, err, "open")
	disk.Fail(faultfs.Fault{Kind: faultfs.OpSyncDir, Pattern: "/other"})
	if err := j.Start(); err == nil || !disk.Fired() {
		t.Fatalf("%v; the sync failed: %v", err, disk.Fired())
	}
	_ = j.Close()
}
