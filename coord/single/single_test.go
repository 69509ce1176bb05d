package single

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"testing"

	"millrace/coord"
	"millrace/engine/vfs"
	"millrace/engine/vfs/faultfs"
	"millrace/wire"
)

const path = "/data/topics.json"

var quiet = slog.New(slog.DiscardHandler)

func newDisk(t *testing.T) *faultfs.Disk {
	t.Helper()
	d := faultfs.New(t)
	if err := d.MkdirAll("/data"); err != nil {
		t.Fatal(err)
	}
	if err := d.SyncFS("/"); err != nil {
		t.Fatal(err)
	}
	return d
}

func open(t *testing.T, fsys vfs.FS) *Service {
	t.Helper()
	s, err := Open(Options{FS: fsys, Path: path, BrokerID: 1, Logger: quiet})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.RegisterBroker(t.Context(), coord.Broker{ID: 1}); err != nil {
		t.Fatal(err)
	}
	return s
}

func create(s *Service, names ...string) []coord.TopicResult {
	var topics []coord.NewTopic
	for _, name := range names {
		topics = append(topics, coord.NewTopic{Name: name, Partitions: 2, Factor: 1, Config: map[string]string{"retention.ms": "1"}})
	}
	return s.CreateTopics(context.Background(), topics, false)
}

// Claim: what was answered is there after a restart, with ids, settings,
// partitions and cluster id; producer ids are never handed out twice.
// Method: change, open again, compare.
func TestStateSurvivesARestart(t *testing.T) {
	disk := newDisk(t)
	s := open(t, disk)
	if !s.Fresh() {
		t.Error("not fresh")
	}
	for _, r := range create(s, "b", "a", "__consumer_offsets") {
		if r.Code != 0 {
			t.Fatal(r)
		}
	}
	if r := s.DeleteTopics(t.Context(), []string{"b", "b", "none"}); r[0].Code != 0 || r[1].Code != wire.ErrUnknownTopicOrPartition || r[2].Code != wire.ErrUnknownTopicOrPartition {
		t.Errorf("%+v", r)
	}
	first, count, err := s.AllocateProducerIDs(t.Context())
	if err != nil || count < 1 {
		t.Fatal(first, count, err)
	}
	before := s.Image()
	_ = s.Close()
	if create(s, "late")[0].Code != wire.ErrKafkaStorageError {
		t.Error("created after Close")
	}

	s = open(t, disk)
	after := s.Image()
	if s.Fresh() || after.ClusterID() != before.ClusterID() || !slices.Equal(after.Names(), []string{"__consumer_offsets", "a"}) {
		t.Errorf("%v of cluster %s", after.Names(), after.ClusterID())
	}
	old, now := before.Topic("a"), after.Topic("a")
	if old.ID != now.ID || len(now.Partitions) != 2 || now.Partitions[1].Leader != 1 || now.Config["retention.ms"] != "1" || now.Internal || !after.Topic("__consumer_offsets").Internal {
		t.Errorf("%+v became %+v", old, now)
	}
	if second, _, err := s.AllocateProducerIDs(t.Context()); err != nil || second != first+count {
		t.Errorf("second block begins at %d, %v", second, err)
	}
	if err := s.BumpEpochs(t.Context()); err != nil || s.Image().Topic("a").Partitions[1].Epoch != 1 || now.Partitions[1].Epoch != 0 {
		t.Error("epochs not raised, or in an image that was published")
	}
}

// Claim: validate only answers the same and changes nothing.
// Method: both, and the trace of the disk.
func TestValidateOnlyChangesNothing(t *testing.T) {
	disk := newDisk(t)
	s := open(t, disk)
	topics := []coord.NewTopic{{Name: "a", Partitions: 1, Factor: 1}, {Name: "a b", Partitions: 1, Factor: 1}, {Name: "c", Partitions: 1, Factor: 9}}
	before, ops := s.Image(), disk.Operations()
	dry := s.CreateTopics(t.Context(), topics, true)
	if s.Image() != before || disk.Operations() != ops {
		t.Error("something changed")
	}
	for i, r := range s.CreateTopics(t.Context(), topics, false) {
		if r.Code != dry[i].Code || r.Message != dry[i].Message {
			t.Errorf("%+v, validated %+v", r, dry[i])
		}
	}
}

// Claim: subscribers see every image, in order, before Image returns it, and the
// topic is on disk by then.
// Method: a subscriber that looks at all three.
func TestSubscribersActBeforeTheImageIsSeen(t *testing.T) {
	disk := newDisk(t)
	s := open(t, disk)
	var seen []string
	cancel := s.Subscribe(func(img *coord.Image) {
		seen = append(seen, strings.Join(img.Names(), ","))
		if len(img.Names()) == 0 {
			return
		}
		if s.image.Load() == img {
			t.Error("the image was visible before the subscriber had acted")
		}
		if raw, err := disk.ReadSynced(path); err != nil || !bytes.Contains(raw, []byte(img.Names()[0])) {
			t.Errorf("not on disk: %v", err)
		}
	})
	create(s, "a")
	create(s, "b")
	s.DeleteTopics(t.Context(), []string{"a"})
	cancel()
	create(s, "c")
	if want := []string{"", "a", "a,b", "b"}; !slices.Equal(seen, want) {
		t.Errorf("seen %q, want %q", seen, want)
	}
}

// life is what a broker does with its topics, until an error stops it. It
// returns the names as they were answered, and as they would be after the
// change that was not.
func life(fsys vfs.FS) (answered, attempted map[string]bool, ids int64, err error) {
	answered, attempted = map[string]bool{}, map[string]bool{}
	s, err := Open(Options{FS: fsys, Path: path, BrokerID: 1, Logger: quiet})
	if err != nil {
		return
	}
	_ = s.RegisterBroker(context.Background(), coord.Broker{ID: 1})
	change := func(create bool, names ...string) bool {
		attempted = maps.Clone(answered)
		var results []coord.TopicResult
		if create {
			var topics []coord.NewTopic
			for _, name := range names {
				topics = append(topics, coord.NewTopic{Name: name, Partitions: 2, Factor: 1})
			}
			results = s.CreateTopics(context.Background(), topics, false)
		} else {
			results = s.DeleteTopics(context.Background(), names)
		}
		for _, name := range names {
			if delete(attempted, name); create {
				attempted[name] = true
			}
		}
		if results[0].Code != 0 {
			err = errors.New(results[0].Message)
			return false
		}
		answered = attempted
		return true
	}
	if !change(true, "a", "b") || !change(true, "c") || !change(false, "a") {
		return
	}
	var first, count int64
	if first, count, err = s.AllocateProducerIDs(context.Background()); err != nil {
		return
	}
	ids = first + count
	change(true, "d", "e")
	return
}

// Claim: whatever operation fails, or at whatever operation the power goes, the
// state at the next start is the one before or the one after the change that
// was cut off, never another, and ids that were handed out stay handed out.
// Method: the same short life, failing operation 0, 1, 2 … until none is left;
// then with the power cut there.
func TestACrashLeavesBeforeOrAfter(t *testing.T) {
	for _, how := range []string{"fail", "cut"} {
		for n := 0; ; n++ {
			disk := newDisk(t)
			if how == "fail" {
				disk.FailOperation(n)
			} else {
				disk.CutAtOperation(n)
			}
			answered, attempted, ids, _ := life(disk)
			if !disk.Fired() {
				break
			}
			disk.CutPower(faultfs.KeepUnsynced(50))
			s, err := Open(Options{FS: disk, Path: path, BrokerID: 1, Logger: quiet})
			if err != nil {
				t.Fatalf("%s at %d: %v", how, n, err)
			}
			got := map[string]bool{}
			for _, name := range s.Image().Names() {
				got[name] = true
			}
			if !maps.Equal(got, answered) && !maps.Equal(got, attempted) {
				t.Fatalf("%s at %d: %v, want %v or %v", how, n, got, answered, attempted)
			}
			_ = s.RegisterBroker(t.Context(), coord.Broker{ID: 1})
			if first, _, err := s.AllocateProducerIDs(t.Context()); err != nil || first < ids {
				t.Fatalf("%s at %d: id %d again, below %d (%v)", how, n, first, ids, err)
			}
		}
	}
}

// Claim: after an error that leaves the file in doubt no change is taken, so
// that no answer rests on a guess; a full disk leaves no doubt.
// Method: fail the directory's sync; run full.
func TestAStateInDoubtTakesNoChanges(t *testing.T) {
	disk := newDisk(t)
	s := open(t, disk)
	disk.FailKind(faultfs.OpSyncDir, 0)
	if create(s, "a")[0].Code != wire.ErrKafkaStorageError || create(s, "b")[0].Code != wire.ErrKafkaStorageError || len(s.Image().Names()) != 0 {
		t.Error("a change was taken")
	}

	disk = newDisk(t)
	s = open(t, disk)
	disk.SetFree(0)
	if r := create(s, "a")[0]; r.Code != wire.ErrKafkaStorageError || !strings.Contains(r.Message, path) {
		t.Errorf("%+v", r)
	}
	disk.SetFree(1 << 20)
	if r := create(s, "a")[0]; r.Code != 0 {
		t.Errorf("%+v", r)
	}

	// A failed sync of the file beside leaves the real one as it was, and the
	// next change writes all bytes anew.
	disk.FailKind(faultfs.OpSync, 0)
	if create(s, "b")[0].Code != wire.ErrKafkaStorageError || create(s, "c")[0].Code != 0 {
		t.Error("a failed sync of the new file")
	}
	disk.CutPower()
	if got := open(t, disk).Image().Names(); !slices.Equal(got, []string{"a", "c"}) {
		t.Errorf("after a power cut: %v", got)
	}
}

// Claim: a file that is damaged anywhere, empty, or of another version, stops
// the start with an error that names it; it is never an empty cluster.
// Method: flip every byte, cut at every length.
func TestADamagedFileStopsTheStart(t *testing.T) {
	disk := newDisk(t)
	create(open(t, disk), "a", "b")
	good, err := disk.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	try := func(what string, content []byte) {
		t.Helper()
		if err := disk.WriteFile(path, content); err != nil {
			t.Fatal(err)
		}
		s, err := Open(Options{FS: disk, Path: path, BrokerID: 1, Logger: quiet})
		var damaged *FileError
		switch {
		case err == nil && len(s.Image().Names()) == 2: // white space, or a letter's other case in a key
		case !errors.As(err, &damaged) || !strings.Contains(err.Error(), path):
			t.Errorf("%s: %v", what, err)
		}
	}
	for i := range good {
		bad := bytes.Clone(good)
		bad[i] ^= 0x20
		try("flipped", bad)
		bad[i] ^= 0x21
		try("flipped", bad)
		if i < len(good)-1 { // the last is a line feed
			try("cut", good[:i])
		}
	}
	try("version 2", bytes.Replace(good, []byte(`"version": 1`), []byte(`"version": 2`), 1))
}

// Claim: data of one cluster is not taken for another's.
// Method: open with the wrong cluster id, and as another broker.
func TestAnotherClustersStateIsRefused(t *testing.T) {
	disk := newDisk(t)
	create(open(t, disk), "a")
	if _, err := Open(Options{FS: disk, Path: path, BrokerID: 1, ClusterID: "other", Logger: quiet}); err == nil || !strings.Contains(err.Error(), "other") {
		t.Error(err)
	}
	s := open(t, disk)
	if err := s.RegisterBroker(t.Context(), coord.Broker{ID: 2}); err == nil {
		t.Error("a second broker joined")
	}
	fresh, err := Open(Options{FS: disk, Path: "/data/new.json", BrokerID: 1, ClusterID: "mine", Logger: quiet})
	if err != nil || fresh.Image().ClusterID() != "mine" {
		t.Error(err)
	}
}

// Claim: ids are random UUIDs, never zero, and their text never begins with '-'.
// Method: a source that gives the two bad ones first, then real ones.
func TestTopicIDs(t *testing.T) {
	dash := append([]byte{0xf8}, make([]byte, 15)...)
	s, err := Open(Options{FS: newDisk(t), Path: path, ClusterID: "c", Logger: quiet, Random: io.MultiReader(bytes.NewReader(dash), bytes.NewReader(make([]byte, 16)))})
	if err != nil {
		t.Fatal(err)
	}
	id, err := s.newID()
	if err != nil || id == (coord.ID{}) || coord.IDText(id)[0] == '-' {
		t.Errorf("%s, %v", coord.IDText(id), err)
	}
	if _, err := s.newID(); err == nil {
		t.Error("an id without randomness")
	}
}
