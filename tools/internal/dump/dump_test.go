package dump

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"millrace/engine"
	"millrace/engine/batch"
)

// Claim: every kind of file is printed to the byte as Kafka 4.3.1's DumpLogSegments prints it.
// Method: testdata/kafka is what that tool printed of these very files.
func TestPrintsAsKafkaDoes(t *testing.T) {
	t.Chdir("testdata")
	snapshots, err := filepath.Glob("t-0/*.snapshot")
	if err != nil || len(snapshots) == 0 {
		t.Fatal("no snapshot", err)
	}
	const log = "t-0/00000000000000000000"
	for _, c := range []struct {
		want, file string
		o          Options
	}{
		{"log", log + ".log", Options{}},
		{"deep", log + ".log", Options{Deep: true}},
		{"data", log + ".log", Options{Print: true}},
		{"bare", log + ".log", Options{Print: true, SkipMetadata: true}},
		{"index", log + ".index", Options{}},
		{"sanity", log + ".index", Options{SanityCheck: true}},
		{"timeindex", log + ".timeindex", Options{}},
		{"snapshot", snapshots[len(snapshots)-1], Options{}},
		{"offsets", "__consumer_offsets-0/00000000000000000000.log", Options{Offsets: true}},
	} {
		var out, errs bytes.Buffer
		if err := File(&out, &errs, c.file, c.o); err != nil || errs.Len() > 0 {
			t.Errorf("%s: %v %s", c.want, err, errs.String())
		}
		want, err := os.ReadFile("kafka/" + c.want + ".txt")
		if err != nil {
			t.Fatal(err)
		}
		if out.String() != string(want) {
			t.Errorf("%s:\n%s\nKafka's:\n%s", c.want, out.String(), want)
		}
	}
}

// store writes a partition of 60 records in small segments and returns its folder. Stopped cleanly, or as by kill -9 where nothing
// of the journal is left to mend with.
func store(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	s := open(t, root)
	c := engine.DefaultConfig()
	c.SegmentBytes = 1000
	if err := s.Create(engine.LogSpec{Topic: "t", TopicID: [16]byte{1}, Partitions: []int32{0}, Config: c}); err != nil {
		t.Fatal(err)
	}
	for i := range 60 {
		b := batch.NewBuilder(batch.None, batch.DefaultLevel)
		if err := b.Add(batch.Record{Timestamp: 1000, Value: fmt.Append(nil, "value-", i, strings.Repeat("x", 30))}); err != nil {
			t.Fatal(err)
		}
		data := b.Bytes()
		info, err := batch.Check(data, &batch.Rules{})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Log("t", 0).Append(&engine.Append{Batch: data, Info: info}, 0); err != nil {
			t.Fatal(err)
		}
	}
	closeStore(t, s)
	return filepath.Join(root, "t-0")
}

func open(t *testing.T, root string) *engine.Store {
	t.Helper()
	s, err := engine.OpenStore(context.Background(), engine.StoreOptions{Dirs: []string{root}, RetentionCheck: -1, CheckpointEvery: -1})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func closeStore(t *testing.T, s *engine.Store) {
	t.Helper()
	if err := s.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
}

// offsets reads the partition with the engine.
func offsets(t *testing.T, dir string) (got []int64, end engine.Offset) {
	t.Helper()
	s := open(t, filepath.Dir(dir))
	defer closeStore(t, s)
	if d := s.Damaged(); len(d) > 0 {
		t.Fatalf("the repaired log does not open: %v", d[0].Err)
	}
	l := s.Log("t", 0)
	for at := l.Start(); at < l.End(); {
		sl, err := l.Read(at, 1<<20, l.End(), true)
		if err != nil {
			t.Fatal(err)
		}
		b := make([]byte, sl.Size())
		if err := sl.ReadInto(b); err != nil {
			t.Fatal(err)
		}
		sl.Release()
		if len(b) == 0 {
			break
		}
		for len(b) > 0 {
			n, err := batch.Split(b)
			if err != nil {
				break
			}
			for r, err := range batch.Records(b[:n]) {
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, r.Offset)
			}
			at = engine.Offset(batch.View(b[:n]).LastOffset()) + 1
			b = b[n:]
		}
	}
	return got, l.End()
}

// Claim: whatever is done to a segment's bytes, check names it, a repair without --dry-run saves every batch that is whole and keeps the old
// files, the log opens again, its end has not gone back, and check finds nothing any more.
func TestRepairSavesWhatIsWhole(t *testing.T) {
	for name, damage := range map[string]struct {
		do   func(b []byte) []byte
		last bool  // to the last segment, else to the second
		lost int64 // records
	}{
		"a flipped byte in a batch": {func(b []byte) []byte { b[100] ^= 1; return b }, false, 1},
		"zeros over two batches":    {func(b []byte) []byte { clear(b[70:230]); return b }, false, 3},
		"a length that lies":        {func(b []byte) []byte { b[8] = 0x7f; return b }, false, 1},
		"a torn end":                {func(b []byte) []byte { return b[:len(b)-20] }, true, 1},
		"an end of garbage":         {func(b []byte) []byte { return append(b, bytes.Repeat([]byte("garbage"), 30)...) }, true, 0},
	} {
		t.Run(name, func(t *testing.T) {
			dir := store(t)
			if found, err := Check(dir); err != nil || len(found) > 0 {
				t.Fatalf("before the damage: %v %v", found, err)
			}
			logs, err := segmentsOf(dir)
			if err != nil || len(logs) < 4 {
				t.Fatal(logs, err)
			}
			victim := logs[1]
			if damage.last {
				victim = logs[len(logs)-1]
			}
			before, err := os.ReadFile(victim)
			if err != nil {
				t.Fatal(err)
			}
			damaged := damage.do(slices.Clone(before))
			if err := os.WriteFile(victim, damaged, 0o644); err != nil {
				t.Fatal(err)
			}
			found, err := Check(dir)
			if err != nil || !slices.ContainsFunc(found, func(f Finding) bool { return f.Fatal && f.File == filepath.Base(victim) }) {
				t.Fatalf("check does not name the damage: %v %v", found, err)
			}
			backup := filepath.Join(t.TempDir(), "backup")
			dry, err := Repair(dir, backup, -1, true)
			if err != nil || len(dry) != 1 {
				t.Fatal(dry, err)
			}
			if now, _ := os.ReadFile(victim); !bytes.Equal(now, damaged) {
				t.Fatal("a dry run changed the segment")
			}
			saved, err := Repair(dir, backup, -1, false)
			if err != nil || fmt.Sprint(saved) != fmt.Sprint(dry) {
				t.Fatalf("%+v, the dry run said %+v (%v)", saved, dry, err)
			}
			if kept, _ := os.ReadFile(filepath.Join(backup, filepath.Base(victim))); !bytes.Equal(kept, damaged) {
				t.Fatal("the backup is not the old file")
			}
			got, end := offsets(t, dir)
			if int64(len(got)) != 60-damage.lost || end != 60 {
				t.Fatalf("%d records, want %d; end %d: %v", len(got), 60-damage.lost, end, got)
			}
			if found, err := Check(dir); err != nil || slices.ContainsFunc(found, func(f Finding) bool { return f.Fatal }) {
				t.Fatalf("after the repair: %v %v", found, err)
			}
		})
	}
}

// Claim: a running broker's folder is not repaired, and a folder without segments is named.
func TestRepairRefuses(t *testing.T) {
	dir := store(t)
	s := open(t, filepath.Dir(dir))
	if _, err := Repair(dir, t.TempDir(), -1, false); err == nil || !strings.Contains(err.Error(), "in use") {
		t.Fatalf("%v", err)
	}
	closeStore(t, s)
	if _, err := Check(t.TempDir()); err == nil || !strings.Contains(err.Error(), "no segment") {
		t.Fatalf("%v", err)
	}
}
