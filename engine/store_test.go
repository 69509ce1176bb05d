package engine

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"millrace/engine/batch"
	"millrace/engine/checkpoint"
	"millrace/engine/vfs"
	"millrace/engine/vfs/faultfs"
)

// quiet are options whose background work happens only when a test asks for it. What
// is opened with them ends with the next power cut.
func quiet(fsys vfs.FS, dirs ...string) StoreOptions {
	if disk, ok := fsys.(*faultfs.Disk); ok {
		fsys = disk.Session()
	}
	c := DefaultConfig()
	c.DeleteDelay, c.IndexBytes = 0, 4096
	return StoreOptions{FS: fsys, Dirs: dirs, RetentionCheck: -1, CheckpointEvery: -1, Defaults: c, OpenFiles: openFilesOfTests}
}

func openStore(t testing.TB, o StoreOptions) *Store {
	t.Helper()
	s, err := OpenStore(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func closeStore(t testing.TB, s *Store) {
	t.Helper()
	if err := s.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
}

func topicID(n byte) [16]byte { return [16]byte{n, 15: 1} }

func spec(topic string, id byte, partitions int) LogSpec {
	s := LogSpec{Topic: topic, TopicID: topicID(id)}
	for p := range partitions {
		s.Partitions = append(s.Partitions, int32(p))
	}
	return s
}

func create(t testing.TB, s *Store, specs ...LogSpec) {
	t.Helper()
	if err := s.Create(specs...); err != nil {
		t.Fatal(err)
	}
}

// openOne opens a store that holds one log, partition 0 of t.
func openOne(t testing.TB, o StoreOptions) (*Store, *Log) {
	t.Helper()
	s := openStore(t, o)
	create(t, s, spec("t", 1, 1))
	return s, s.Log("t", 0)
}

// add appends one record and waits for its ack.
func add(l *Log, value string) error {
	b := batch.NewBuilder(batch.None, 0)
	b.Add(batch.Record{Timestamp: 1700000000000, Value: []byte(value)})
	data := b.Bytes()
	info, err := batch.Check(data, &batch.Rules{})
	if err != nil {
		return err
	}
	return l.Append(&Append{Batch: data, Info: info}, 0)
}

// values reads back every record of a log.
func values(t testing.TB, l *Log) []string {
	t.Helper()
	var got []string
	for next := l.Start(); next < l.End(); {
		slice, err := l.Read(next, 1<<30, l.End(), true) // to the end of a segment
		if err != nil {
			t.Fatal(err)
		}
		b := make([]byte, slice.Size())
		err = slice.ReadInto(b)
		slice.Release()
		if err != nil {
			t.Fatal(err)
		}
		for len(b) > 0 {
			n, err := batch.Split(b)
			if err != nil {
				t.Fatal(err)
			}
			for r, err := range batch.Records(b[:n]) {
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, string(r.Value))
				next = Offset(r.Offset) + 1
			}
			b = b[n:]
		}
	}
	return got
}

func requireHolds(t testing.TB, l *Log, want ...string) {
	t.Helper()
	if l == nil {
		t.Fatalf("no log; want one with %q", want)
	}
	if got := values(t, l); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Fatalf("%s holds %q, want %q", l.Dir(), got, want)
	}
}

// Claim: what is appended to many logs over two directories is there after a clean stop, and so are topic ids;
// the logs are spread evenly and none needs recovery.
// Method: ten partitions, two restarts.
func TestStoreKeepsManyLogs(t *testing.T) {
	disk := faultfs.New(t)
	var lines said
	o := quiet(disk, "/a", "/b")
	o.Logger = lines.logger()
	s := openStore(t, o)
	create(t, s, spec("t", 1, 10))
	create(t, s, spec("t", 1, 10)) // the same again: nothing
	for p := range int32(10) {
		if err := add(s.Log("t", p), fmt.Sprint("first ", p)); err != nil {
			t.Fatal(err)
		}
	}
	for round := range 2 {
		closeStore(t, s)
		s = openStore(t, o)
		inA := 0
		for p := range int32(10) {
			l := s.Log("t", p)
			want := []string{fmt.Sprint("first ", p), fmt.Sprint("round 0, ", p)}[:round+1]
			requireHolds(t, l, want...)
			if l.ID().Topic != topicID(1) || l.Durable() != l.End() {
				t.Fatalf("%v, durable %d, end %d", l.ID(), l.Durable(), l.End())
			}
			if s.DirOf(l) == "/a" {
				inA++
			}
			if err := add(l, fmt.Sprintf("round %d, %d", round, p)); err != nil {
				t.Fatal(err)
			}
		}
		if inA != 5 || len(s.Logs()) != 10 {
			t.Fatalf("%d of %d logs in /a", inA, len(s.Logs()))
		}
	}
	if s.Log("t", 10) != nil || s.Log("u", 0) != nil {
		t.Fatal("a log that nobody made")
	}
	closeStore(t, s)
	if n := lines.count("not stopped cleanly"); n > 0 {
		t.Fatalf("%d recoveries after clean stops", n)
	}
}

// Claim: a directory has one owner; the second is refused by an error that names the lock, and the first goes on.
// Method: two stores on one directory.
func TestSecondStoreIsRefused(t *testing.T) {
	disk := faultfs.New(t)
	s := openStore(t, quiet(disk, "/a", "/b"))
	create(t, s, spec("t", 1, 1))
	_, err := OpenStore(context.Background(), quiet(disk, "/c", "/b"))
	if !errors.Is(err, vfs.ErrLocked) || !strings.Contains(err.Error(), "/b/.lock") {
		t.Fatal(err)
	}
	if err := add(s.Log("t", 0), "x"); err != nil {
		t.Fatal(err)
	}
	closeStore(t, s)
	closeStore(t, openStore(t, quiet(disk, "/c", "/b"))) // and gave its locks back
}

// Claim: directories of another broker are refused, whatever is asked for is remembered, and nothing is written without need.
// Method: broker 3 makes two directories; then other ids come.
func TestDirectoriesKnowTheirBroker(t *testing.T) {
	disk := faultfs.New(t)
	o := quiet(disk, "/a", "/b")
	o.BrokerID = 3
	s := openStore(t, o)
	cluster := s.ClusterID()
	closeStore(t, s)
	o.BrokerID = -1
	s = openStore(t, o)
	if s.BrokerID() != 3 || s.ClusterID() != cluster || len(cluster) != 22 {
		t.Fatal(s.BrokerID(), s.ClusterID(), cluster)
	}
	closeStore(t, s)
	for _, change := range []func(*StoreOptions){
		func(o *StoreOptions) { o.BrokerID = 4 },
		func(o *StoreOptions) { o.ClusterID = "another" },
	} {
		other := o
		change(&other)
		var conflict *checkpoint.MetaConflict
		if _, err := OpenStore(context.Background(), other); !errors.As(err, &conflict) || conflict.Dir != "/a" {
			t.Fatal(err)
		}
	}
}

// Claim: look-ups take no lock and see all logs of a Create or none, while logs come and go.
// Method: one goroutine makes and deletes a topic of three partitions, others look.
func TestLookupsSeeWholeTopics(t *testing.T) {
	s := openStore(t, quiet(faultfs.New(t), "/a"))
	create(t, s, spec("fixed", 9, 1))
	stop := make(chan struct{})
	var readers sync.WaitGroup
	for range 2 {
		readers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				table := *s.table.Load()
				n := 0
				for p := range int32(3) {
					if table[checkpoint.TopicPartition{Topic: "t", Partition: p}] != nil {
						n++
					}
				}
				if n != 0 && n != 3 {
					t.Errorf("%d of 3 partitions", n)
				}
				if s.Log("fixed", 0) == nil {
					t.Error("a log was gone for a moment")
				}
			}
		})
	}
	for i := range 20 {
		create(t, s, spec("t", byte(i), 3))
		if err := add(s.Log("t", 2), "x"); err != nil {
			t.Fatal(err)
		}
		if err := s.Delete("t"); err != nil {
			t.Fatal(err)
		}
	}
	close(stop)
	readers.Wait()
	closeStore(t, s)
}

// Claim: the journal may move to another folder, and back, also after a crash: nothing acknowledged is lost on the way.
// Method: append and cut the power, with the setting changed in turn.
func TestJournalMovesWithItsRecords(t *testing.T) {
	disk := faultfs.New(t)
	var want []string
	for i, place := range []string{"", "/fast/journals", "/other", "", "/fast/journals"} {
		o := quiet(disk, "/a")
		o.JournalDir = place
		s := openStore(t, o)
		if i == 0 {
			create(t, s, spec("t", 1, 1))
		}
		requireHolds(t, s.Log("t", 0), want...)
		v := fmt.Sprintf("%d in %q", i, place)
		if err := add(s.Log("t", 0), v); err != nil {
			t.Fatal(err)
		}
		want = append(want, v)
		disk.CutPower()
	}
	s := openStore(t, quiet(disk, "/a"))
	requireHolds(t, s.Log("t", 0), want...)
	closeStore(t, s)
	if _, err := disk.Stat("/a/" + journalPlaceName); err == nil {
		t.Fatal("the journal is home, but the file still says otherwise")
	}
}

// Claim: what a deletion left behind is removed at the next start; folders of other kinds are left alone.
// Method: folders of each kind.
func TestLeftoversAreRemovedAtTheStart(t *testing.T) {
	disk := faultfs.New(t)
	closeStore(t, openStore(t, quiet(disk, "/a")))
	kinds := map[string]bool{"t-0.0123456789abcdef0123456789abcdef-delete": false, "t-0.0123456789abcdef0123456789abcdef-future": true,
		"t-1-stray": true, "notes": true, "t-007": true, "lost+found": true, "__cluster_metadata-0": true}
	for name := range kinds {
		disk.MkdirAll("/a/" + name)
		disk.WriteFile("/a/"+name+"/file", []byte("x"))
	}
	s := openStore(t, quiet(disk, "/a"))
	if len(s.Logs()) > 0 {
		t.Fatal(s.Logs())
	}
	s.background.idle.Wait()
	closeStore(t, s)
	for name, want := range kinds {
		if _, err := disk.Stat("/a/" + name); (err == nil) != want {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Claim: names that Kafka refuses are refused, with the reason; so are bad settings, before anything is made.
// Method: one of each.
func TestCreateRefusesBadSpecs(t *testing.T) {
	disk := faultfs.New(t)
	s := openStore(t, quiet(disk, "/a"))
	before := disk.Operations()
	for _, name := range []string{"", ".", "..", "a/b", "a b", "ä", strings.Repeat("x", 250)} {
		var bad *TopicNameError
		if err := s.Create(spec(name, 1, 1)); !errors.As(err, &bad) {
			t.Errorf("%q: %v", name, err)
		}
	}
	c := spec("t", 1, 1)
	c.Config.SegmentBytes = -1
	var bad *ConfigError
	if err := s.Create(spec("good", 1, 1), c); !errors.As(err, &bad) {
		t.Error(err)
	}
	if err := s.Create(LogSpec{Topic: "t", Partitions: []int32{-1}}); err == nil {
		t.Error("a negative partition")
	}
	if err := s.Delete("t"); !errors.Is(err, ErrNoLog) {
		t.Error(err)
	}
	if n := disk.Operations(); n != before || len(s.Logs()) > 0 {
		t.Errorf("%d operations for nothing", n-before)
	}
	create(t, s, spec(strings.Repeat("x", 249), 1, 1))
	if err := s.Create(spec(strings.Repeat("x", 249), 2, 1)); !errors.Is(err, ErrExists) {
		t.Error(err)
	}
	if err := s.Delete(strings.Repeat("x", 249)); err != nil { // the name on its way out is cut to 255 characters
		t.Error(err)
	}
	closeStore(t, s)
}

// Claim: F127 the limits and what is needed are told; where not even the reserve can be kept, a log is refused as a storage error.
// Method: the advice for limits that suffice and that do not.
func TestField_F127_LimitsAreTold(t *testing.T) {
	for _, a := range CheckLimits(10) {
		if a.Text == "" || a.Have <= 0 || a.Need <= 0 {
			t.Errorf("%+v", a)
		}
	}
	if a := adviseFiles(2000, 1024); !a.OK || !strings.Contains(a.Text, "1024") || !strings.Contains(a.Text, "512") || !strings.Contains(a.Text, "ulimit -n") {
		t.Errorf("%+v", a)
	}
	if a := adviseFiles(17500, 20000); !a.OK || strings.Contains(a.Text, "ulimit -n") {
		t.Errorf("%+v", a)
	}
	if a := adviseFiles(1, 50); a.OK || !strings.Contains(a.Text, "50") || !strings.Contains(a.Text, "ulimit -n") {
		t.Errorf("%+v", a)
	}
	if a := adviseMaps(100); a.OK || !strings.Contains(a.Text, "vm.max_map_count") {
		t.Errorf("%+v", a)
	}
	if err := error(&LimitError{"RLIMIT_NOFILE", 1024, 2000}); !errors.Is(err, ErrStorage) {
		t.Error(err)
	}
}

// Claim: a topic made anew under the name of one just deleted loses nothing to what the checkpoint files said of that one.
// Method: delete behind a checkpoint, make anew, append less than there was, and lose power with every share of the page cache kept.
func TestTopicMadeAnewForgetsTheFormersRecoveryPoint(t *testing.T) {
	for pct := 0; pct <= 100; pct += 5 {
		disk := faultfs.New(t)
		s := openStore(t, quiet(disk, "/a"))
		create(t, s, spec("t", 1, 1))
		putN(t, s.Log("t", 0), 50)
		if err := errors.Join(s.dirs[0].journal.SyncAll(), s.Checkpoint(), s.Delete("t")); err != nil {
			t.Fatal(err)
		}
		create(t, s, spec("t", 2, 1))
		putN(t, s.Log("t", 0), 10)
		disk.CutPower(faultfs.KeepUnsynced(pct))
		s = openStore(t, quiet(disk, "/a"))
		if len(s.Damaged()) > 0 {
			t.Fatalf("%d%% kept: %v", pct, s.Damaged())
		}
		requireValues(t, s.Log("t", 0), 0, 10)
		closeStore(t, s)
	}
}
