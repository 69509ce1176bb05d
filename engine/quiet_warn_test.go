package engine

import (
	"strings"
	"testing"
	"time"

	"millrace/engine/vfs/faultfs"
)

// Claim: after a crash of the process nobody is warned of the indexes of a healthy log: one that was active and had no entry yet is empty, or all
// room. One that is really damaged is still told of.
// Method: kill -9 with less than an index interval written; the same with an index of zeros, and with bytes that no entry has.
func TestHealthyIndexesAfterACrashAreNotCalledDamaged(t *testing.T) {
	for index, damaged := range map[string]bool{"": false, strings.Repeat("\x00", 80): false, strings.Repeat("x", 80): true} {
		d := faultfs.New(t)
		l := openTestLog(t, d.Session(), DefaultConfig())
		fail(t, l.Append(leaderAppend(newBatch(1000, []string{"one"})), NoEpoch))
		fail(t, l.Append(leaderAppend(newBatch(1001, []string{"two"})), NoEpoch))
		d.CutPower(faultfs.KeepUnsynced(100), faultfs.KeepNames(100))
		_ = l.Close()
		if index != "" {
			writeFile(t, d, logDir+"/"+baseName(0)+indexSuffix, []byte(index))
		}
		var lines said
		l = openTestLog(t, d.Session(), DefaultConfig(), withLogger(lines.logger()))
		if n := lines.count("index damaged"); (n > 0) != damaged {
			t.Errorf("damaged %v: said %s", damaged, lines.b.String())
		}
		if _, _, found, err := l.OffsetForTime(1001); err != nil || !found {
			t.Error(found, err)
		}
		closeLog(t, l)
	}
}

// Claim: a log that nobody has written to has no indexes, and whoever asks it for times is told so without a warning.
// Method: a topic just made, asked in every way, before and after a restart.
func TestUnwrittenLogsAreNotCalledDamaged(t *testing.T) {
	var lines said
	o := quiet(faultfs.New(t), "/a")
	o.Logger = lines.logger()
	s := openStore(t, o)
	create(t, s, spec("t", 1, 1))
	for range 2 {
		l := s.Log("t", 0)
		for _, ts := range []int64{-1, 0, 1000} {
			if _, _, found, err := l.OffsetForTime(ts); err != nil || found {
				t.Error(ts, found, err)
			}
		}
		if off, _, err := l.MaxTimestamp(); err != nil || off != -1 {
			t.Error(off, err)
		}
		fail(t, s.Retain())
		closeStore(t, s)
		s = openStore(t, o)
	}
	closeStore(t, s)
	if lines.count("index damaged") > 0 {
		t.Error(lines.b.String())
	}
}

// Claim: a reader that looks for an index while the log's folder is being renamed, for deletion, finds it under the new name, and nobody is warned.
// Method: the index is looked for between the rename and the log's knowing of it: it waits for that, which the rename gives it a moment to fail in.
func TestIndexOfAFolderOnItsWayOutIsNotCalledDamaged(t *testing.T) {
	var lines said
	disk := faultfs.New(t)
	o := quiet(disk, "/a")
	o.Logger = lines.logger()
	s := openStore(t, o)
	create(t, s, spec("t", 1, 1))
	fail(t, s.Log("t", 0).Append(leaderAppend(newBatch(1000, []string{"one"})), NoEpoch))
	closeStore(t, s)
	s = openStore(t, o)
	l := s.Log("t", 0)
	seg := l.mu.active
	met := make(chan error, 1)
	disk.AfterOperation(func(op faultfs.Op) {
		if op.Kind == faultfs.OpRename && op.Name == "/a/t-0" {
			go func() { met <- seg.times.Load() }() // ends with the look-up
			for begun := time.Now(); len(met) == 0 && time.Since(begun) < 50*time.Millisecond; {
				time.Sleep(time.Millisecond)
			}
		}
	})
	fail(t, l.moveAway("/a/t-0.0-delete"))
	if err := <-met; err != nil {
		t.Fatalf("between the rename and its note: %v", err)
	}
	if _, _, found, err := l.OffsetForTime(1000); err != nil || !found {
		t.Error(found, err)
	}
	if lines.count("index damaged") > 0 {
		t.Error(lines.b.String())
	}
	_ = s.Close(t.Context())
}
