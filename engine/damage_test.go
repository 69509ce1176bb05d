package engine

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"millrace/engine/batch"
	"millrace/engine/checkpoint"
	"millrace/engine/vfs/faultfs"
)

// damageDisk is a disk with every kind of small file on it: logs with closed segments, epochs and producers, one moved, one compacted, one
// whose start is inside a segment, and what was acknowledged last in the journal only. It is as a clean stop, a kill or a power cut left it.
func damageDisk(t *testing.T, state string) (*faultfs.Disk, map[string][]string) {
	t.Helper()
	disk := faultfs.New(nil, faultfs.Seed(3))
	o := quiet(disk, "/a", "/b")
	o.Defaults = smallLog()
	o.Cleaner.Memory = 1 << 20 // no threads
	s := openStore(t, o)
	keyed := spec("keyed", 2, 1)
	keyed.Config = compacted()
	create(t, s, spec("t", 1, 2), keyed)
	l := s.Log("t", 0)
	for i := range 30 {
		b := newBatch(1700000000000+int64(i), []string{valueOf(Offset(i))}, batch.Producer(7, 0, int32(i)))
		if err := l.Append(leaderAppend(b), NoEpoch); err != nil {
			t.Fatal(err)
		}
		putKeyed(t, s.Log("keyed", 0), fmt.Sprintf("k%d=%s", i%5, valueOf(Offset(i))))
		putN(t, s.Log("t", 1), 1)
		if i == 10 || i == 20 {
			if err := l.SetEpoch(l.Epoch() + 1); err != nil {
				t.Fatal(err)
			}
		}
	}
	mustClean(t, s.Log("keyed", 0), cleanAt(time.UnixMilli(2000)))
	if err := l.SetStart(3); err != nil {
		t.Fatal(err)
	}
	if err := s.Move("t", 1, map[string]string{"/a": "/b", "/b": "/a"}[s.DirOf(s.Log("t", 1))]); err != nil {
		t.Fatal(err)
	}
	for len(s.Moves()) > 0 {
		time.Sleep(time.Millisecond)
	}
	if err := s.Checkpoint(); err != nil {
		t.Fatal(err)
	}
	for _, l := range s.Logs() {
		if err := l.Append(leaderAppend(keyedBatch(1700000001000, []string{"last=" + valueOf(0)})), NoEpoch); err != nil {
			t.Fatal(err)
		}
	}
	want := map[string][]string{}
	for _, l := range s.Logs() {
		want[folderName(l.key())] = records(t, l, state)
	}
	switch state {
	case "clean":
		closeStore(t, s)
	case "kill":
		disk.CutPower(faultfs.KeepUnsynced(100))
	case "cut":
		disk.CutPower(faultfs.KeepUnsynced(0), faultfs.KeepJournal(100))
	}
	_ = s.Close(context.Background())
	return disk, want
}

// records are all of a log, compacted or not.
func records(t *testing.T, l *Log, what string) (list []string) {
	t.Helper()
	all, err := readKeyed(l, l.Start(), l.End())
	if err != nil {
		t.Fatalf("%s: read %s: %v", what, l.Dir(), err)
	}
	for _, r := range all {
		list = append(list, fmt.Sprintf("%d %s=%s", r.offset, r.key, r.value))
	}
	return list
}

// smallFiles are the files of a disk that are not segments.
func smallFiles(t *testing.T, disk *faultfs.Disk, dir string) (files []string) {
	t.Helper()
	list, err := disk.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range list {
		name := path.Join(dir, e.Name)
		switch {
		case e.IsDir:
			files = append(files, smallFiles(t, disk, name)...)
		case !strings.HasSuffix(name, logSuffix) && !strings.HasSuffix(name, deletedSuffix):
			files = append(files, name)
		}
	}
	return files
}

// damagePlaces are the positions of a file that are damaged in turn: all of a text or a snapshot; of an index that is preallocated and of a journal
// the part in use, the rest here and there.
func damagePlaces(size, step, phase int) (at []int) {
	for i := 0; i < size; i++ {
		if i < 200 || i > size-16 && size < 1<<16 || i < 4096 && i%61 == 0 || i < 64<<10 && i%1999 == 0 {
			at = append(at, i)
		}
	}
	at = slices.DeleteFunc(at, func(i int) bool { return i%step != phase })
	if len(at) == 0 && size > 0 { // a file shorter than the phase
		at = append(at, phase%size)
	}
	return at
}

// Claim (L3, L6): a byte that is wrong in any small file (checkpoints, snapshots, epochs, topic id, meta.properties, indexes, journal, marks)
// costs at most the time of a recovery, or is an error that names the file; no record is served that is not the log's, and none is missing but
// for what the damaged file alone was to say: a Kafka text file has no checksum, so another start, epoch or id is believed, and the tail of a
// journal that does not check is a torn one.
// Method: the bytes of each file in turn, after a clean stop, a kill and a power cut: every seventh, another seventh each time (all of them
// with MILLRACE_FAULT_ROUNDS set); open; read everything.
func TestDamageOfSmallFilesIsNeverWrongData(t *testing.T) {
	step, phase := 7, rand.IntN(7)
	if testing.Short() {
		step, phase = 31, rand.IntN(31)
	}
	if os.Getenv("MILLRACE_FAULT_ROUNDS") != "" {
		step, phase = 1, 0 // for a night: each byte
	}
	t.Logf("positions %d modulo %d", phase, step)
	for _, state := range []string{"clean", "kill", "cut"} {
		t.Run(state, func(t *testing.T) {
			base, want := damageDisk(t, state)
			tried := map[string]int{}
			for _, dir := range []string{"/a", "/b"} {
				for _, name := range smallFiles(t, base, dir) {
					b := readFile(t, base, name)
					for _, at := range damagePlaces(len(b), step, phase) {
						disk := base.Clone()
						if err := disk.Damage(name, int64(at), 1); err != nil {
							t.Fatal(err)
						}
						requireRightOrNamed(t, disk, fmt.Sprintf("%s, byte %d of %d", name, at, len(b)), name, want)
						tried[kindOf(name)]++
					}
				}
			}
			t.Log(tried)
			for _, kind := range []string{".index", ".timeindex", ".snapshot", checkpoint.EpochsName, checkpoint.MetaName, checkpoint.RecoveryPoints, checkpoint.LogStarts} {
				if tried[kind] == 0 && (state != "cut" || !strings.HasSuffix(kind, "index")) { // indexes are not synced
					t.Errorf("no %s was damaged", kind)
				}
			}
		})
	}
}

// kindOf is a file's name without what differs from file to file.
func kindOf(name string) string {
	base := path.Base(name)
	if strings.HasPrefix(base, "millrace-journal") {
		return "journal"
	}
	if len(base) > 20 && base[0] == '0' {
		return base[20:]
	}
	return base
}

func requireRightOrNamed(t *testing.T, disk *faultfs.Disk, what, name string, want map[string][]string) {
	t.Helper()
	o := quiet(disk, "/a", "/b")
	o.Defaults = smallLog()
	o.Cleaner.Memory = 1 << 20
	opened := make(chan *Store, 1)
	var err error
	go func() { // ends with the opening; one that hangs ends with the test
		var s *Store
		s, err = OpenStore(context.Background(), o)
		opened <- s
	}()
	var s *Store
	select {
	case s = <-opened:
	case <-time.After(20 * time.Second):
		t.Fatalf("%s: the opening hangs", what)
	}
	defer disk.CutPower()
	if err != nil {
		if !strings.Contains(err.Error(), path.Base(name)) {
			t.Fatalf("%s: an error that does not name the file: %v", what, err)
		}
		return
	}
	defer s.Close(context.Background())
	for dir, err := range s.OfflineDirs() {
		if !strings.Contains(err.Error(), path.Base(name)) {
			t.Fatalf("%s: %s is offline and does not name the file: %v", what, dir, err)
		}
	}
	for _, d := range s.Damaged() {
		if !strings.Contains(d.Err.Error(), path.Base(name)) {
			t.Fatalf("%s: %s-%d is set aside and does not name the file: %v", what, d.Topic, d.Partition, d.Err)
		}
	}
	for _, l := range s.Logs() {
		requireRight(t, l, what, kindOf(name), want[folderName(l.key())])
	}
	if missing := len(want) - len(s.Logs()); missing > 0 && len(s.Damaged()) == 0 && len(s.OfflineDirs()) == 0 {
		t.Fatalf("%s: %d logs are missing and nothing says why", what, missing)
	}
}

func requireRight(t *testing.T, l *Log, what, kind string, want []string) {
	t.Helper()
	got := records(t, l, what)
	tail, head := want[max(0, len(want)-len(got)):], want[:min(len(want), len(got))]
	switch kind {
	case checkpoint.LogStarts:
		if slices.Equal(got, tail) || len(got) > len(want) && slices.Equal(got[len(got)-len(want):], want) {
			return // another start; what lay below it is still in the file
		}
	case "journal", checkpoint.PartitionMetadataName:
		if slices.Equal(got, head) {
			return // without what only the journal had, or had under another id
		}
	}
	if !slices.Equal(got, want) {
		t.Fatalf("%s: %s [%d, %d) holds %d records, want %d", what, l.Dir(), l.Start(), l.End(), len(got), len(want))
	}
	if off, _, found, err := l.OffsetForTime(1); err != nil || !found || !strings.HasPrefix(got[0], fmt.Sprint(off, " ")) {
		t.Fatalf("%s: %s: the first record by time is at %d, %v (%v), want %s", what, l.Dir(), off, found, err, got[0])
	}
	if err := l.Append(leaderAppend(keyedBatch(1700000002000, []string{"k=goes on"})), NoEpoch); err != nil {
		t.Fatalf("%s: %s takes no appends: %v", what, l.Dir(), err)
	}
}
