package store

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"millrace/coord/zk/proto"
	"millrace/coord/zk/tree"
	"millrace/engine"
	"millrace/engine/vfs"
	"millrace/engine/vfs/faultfs"
)

const (
	logDir  = "/zk/log-0"
	snapDir = "/zk/snapshots"
)

// service is a store, its log, and what its user may rely on: transaction i makes the
// node /n<i> and sets /last to i.
type service struct {
	log   *engine.Log
	store *Store
}

func open(fsys vfs.FS, o Options) (*service, error) {
	c := LogConfig()
	c.SegmentBytes, c.IndexBytes = 2000, 240
	log, err := engine.OpenLog(logDir, engine.LogOptions{FS: fsys, Topic: "zk", Config: c, JournalBytes: 16 << 10})
	if err != nil {
		return nil, err
	}
	o.FS, o.Dir = fsys, snapDir
	s, err := Open(log, o)
	if err != nil {
		return nil, errors.Join(err, log.Close())
	}
	return &service{log, s}, nil
}

func (s *service) close() error {
	s.store.Close()
	return s.log.Close()
}

const session = 7

// write is transaction i. Number 0 opens the session.
func write(i int) tree.Txn {
	x := tree.Txn{Time: int64(i), Session: session, Req: proto.Request{Op: proto.OpCreateSession, Timeout: 4000}}
	if i == 0 {
		return x
	}
	name := fmt.Sprint("/n", i)
	x.Req = proto.Request{Op: proto.OpMulti, Ops: []proto.Request{
		{Op: proto.OpCreate, Path: name, Data: []byte(name), ACL: proto.OpenACL, Mode: proto.Mode(i % 2)},
		{Op: proto.OpSetData, Path: "/zookeeper/quota", Data: fmt.Append(nil, i), Version: -1},
	}}
	return x
}

// commit commits transactions [from, to) together and returns how many were acknowledged.
func (s *service) commit(from, to int) (int, error) {
	var list []tree.Txn
	for i := from; i < to; i++ {
		list = append(list, write(i))
	}
	return s.store.Commit(list, func(i int, res proto.Result, _ []tree.Event) {
		if res.Err != proto.OK || len(res.Results) > 0 && res.Results[0].Err != proto.OK {
			panic(fmt.Sprintf("transaction %d: %+v", from+i, res))
		}
	})
}

// count finds how many transactions the tree has, and that it has these and no others.
func (s *service) count(t *testing.T) int {
	t.Helper()
	n := 0
	s.store.View(func(tr *tree.Tree) {
		n = int(tr.Zxid())
		for i := 1; i < n; i++ {
			name := fmt.Sprint("/n", i)
			res, _ := tr.Read(&proto.Request{Op: proto.OpGetData, Path: name}, &tree.Reader{}, nil)
			if res.Err != proto.OK || string(res.Data) != name || res.Stat.Czxid != int64(i)+1 {
				t.Fatalf("of %d transactions number %d is not whole: %+v", n, i, res)
			}
		}
		if want := 4 + max(0, n-1); tr.Size().Nodes != want {
			t.Fatalf("%d nodes after %d transactions, want %d", tr.Size().Nodes, n, want)
		}
		if n > 1 {
			res, _ := tr.Read(&proto.Request{Op: proto.OpGetData, Path: "/zookeeper/quota"}, &tree.Reader{}, nil)
			if string(res.Data) != fmt.Sprint(n-1) || res.Stat.Version != int32(n-1) {
				t.Fatalf("after %d transactions the last is %q, version %d", n, res.Data, res.Stat.Version)
			}
		}
	})
	return n
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

var manual = Options{SnapshotEvery: -1, Keep: 2}

// fill makes a disk with a hundred transactions and four snapshots, of which two are kept.
func fill(t *testing.T) *faultfs.Disk {
	d := faultfs.New(t)
	s, err := open(d, manual)
	must(t, err)
	for i := 0; i < 100; i += 5 {
		_, err := s.commit(i, i+5)
		must(t, err)
		if i%25 == 20 {
			must(t, s.store.Snapshot())
		}
	}
	if n := s.count(t); n != 100 {
		t.Fatalf("%d transactions", n)
	}
	must(t, s.close())
	return d
}

// live is a short life: commits of one to four, snapshots, a restart. It returns how many
// were acknowledged and how many were asked for.
func live(t *testing.T, d *faultfs.Disk) (acked, asked int) {
	s, err := open(d.Session(), manual)
	if err != nil {
		return 0, 0
	}
	defer func() {
		if s != nil {
			s.close()
		}
	}()
	for step := range 26 {
		if step%6 == 5 {
			s.store.Snapshot()
		}
		if step == 15 {
			s.close()
			if s, err = open(d.Session(), manual); err != nil {
				return acked, asked
			}
			acked, asked = max(acked, s.count(t)), s.count(t)
		}
		asked = max(asked, acked+1+step%4)
		n, err := s.commit(acked, acked+1+step%4)
		acked += n
		if errors.Is(err, faultfs.ErrPowerCut) || lostNames(d) {
			return acked, asked
		}
	}
	return acked, asked
}

// lostNames: see the engine's own test of faults.
func lostNames(d *faultfs.Disk) bool {
	return slices.ContainsFunc(d.Trace(), func(op faultfs.Op) bool { return op.Kind == faultfs.OpSyncDir && op.Err != nil })
}

// Claim (C2): whatever single operation fails or is cut off by a loss of power, every
// transaction that was acknowledged is in the tree afterwards, with all before it and at
// most such as were asked for after it.
// Method: one short life with snapshots and a restart, failing (or cutting at) operation 0,
// then 1, until none is left; then the power is cut in every mix in turn.
func TestAcknowledgedWritesSurviveAnyFault(t *testing.T) {
	mixes := faultfs.Mixes()
	for _, cut := range []bool{false, true} {
		for n := 0; ; n++ {
			d := faultfs.New(nil, faultfs.Seed(uint64(n)))
			if cut {
				d.CutAtOperation(n)
			} else {
				d.FailOperation(n)
			}
			acked, asked := live(t, d)
			fired := d.Fired()
			mix := mixes[n*7%len(mixes)]
			d.CutPower(mix.Options()...)
			s, err := open(d.Session(), manual)
			if err != nil {
				t.Fatalf("cut %v at operation %d, then %v: %v\n%s", cut, n, mix, err, strings.Join(d.Ops(), "\n"))
			}
			if got := s.count(t); got < acked || got > asked {
				t.Fatalf("cut %v at operation %d, then %v: %d transactions; %d were acknowledged, %d asked for", cut, n, mix, got, acked, asked)
			}
			got := s.count(t)
			if _, err := s.commit(got, got+3); err != nil {
				t.Fatal(err)
			}
			must(t, s.store.Snapshot())
			must(t, s.close())
			if !fired {
				t.Logf("cut %v: %d operations", cut, n)
				break
			}
		}
	}
}

// Claim: every operation of a start may fail, and the next start is whole.
func TestStartsThatFail(t *testing.T) {
	base := fill(t)
	for n := 0; ; n++ {
		d := base.Clone()
		d.FailOperation(n)
		s, err := open(d.Session(), manual)
		fired := d.Fired()
		if err == nil {
			if got := s.count(t); got != 100 {
				t.Fatalf("operation %d failed and %d transactions are left", n, got)
			}
			s.close()
		}
		d.CutPower(faultfs.KeepUnsynced(50))
		s, err = open(d.Session(), manual)
		if err != nil {
			t.Fatalf("after operation %d: %v", n, err)
		}
		if got := s.count(t); got != 100 {
			t.Fatalf("after operation %d: %d transactions", n, got)
		}
		s.close()
		if !fired {
			return
		}
	}
}

func snapshots(t *testing.T, d *faultfs.Disk) (names []string) {
	t.Helper()
	entries, err := d.ReadDir(snapDir)
	must(t, err)
	for _, e := range entries {
		names = append(names, filepath.Join(snapDir, e.Name))
	}
	return names
}

// Claim: old snapshots go, and with them the log's prefix; what is left makes the tree.
func TestOnlyTheNewestAreKept(t *testing.T) {
	d := fill(t)
	if names := snapshots(t, d); len(names) != 2 {
		t.Fatalf("%q", names)
	}
	s, err := open(d, manual)
	must(t, err)
	defer s.close()
	if start := s.log.Start(); start != 75 {
		t.Fatalf("the log begins at %d, the older snapshot at 75", start)
	}
	if n := s.count(t); n != 100 {
		t.Fatal(n)
	}
}

// Claim: any damage to the newest snapshot is seen, and the one before it is taken.
func TestDamagedSnapshotsArePassedOver(t *testing.T) {
	base := fill(t)
	newest := snapshots(t, base)[1]
	whole, err := base.ReadFile(newest)
	must(t, err)
	step := 1
	if testing.Short() {
		step = 37
	}
	damage := func(what string, bytes []byte) {
		d := base.Clone()
		must(t, d.WriteFile(newest, bytes))
		r, err := openFile(d, newest)
		if err == nil {
			_, err = tree.LoadSnapshot(r)
		}
		if err == nil {
			t.Fatalf("%s: it is read", what)
		}
		if len(bytes)%101 != 0 && what != "empty" {
			return // a whole start for some
		}
		s, err := open(d, manual)
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		if n := s.count(t); n != 100 {
			t.Fatalf("%s: %d transactions", what, n)
		}
		s.close()
	}
	damage("empty", nil)
	for i := 0; i < len(whole); i += step {
		damage(fmt.Sprint("cut at ", i), whole[:i])
		b := slices.Clone(whole)
		b[i] ^= 1 << (i % 8)
		damage(fmt.Sprint("a bit flipped at ", i), b)
	}
	damage("a byte more", append(slices.Clone(whole), 0))
}

// Claim: log and snapshots that do not fit make an error that says so, never an empty
// tree and never one with a hole.
func TestMissingPartsAreErrors(t *testing.T) {
	base := fill(t)
	names := snapshots(t, base)
	for what, spoil := range map[string]func(d *faultfs.Disk) error{
		"no snapshots":          func(d *faultfs.Disk) error { return d.RemoveAll(snapDir) },
		"no log":                func(d *faultfs.Disk) error { return d.RemoveAll(logDir) },
		"both damaged":          func(d *faultfs.Disk) error { return errors.Join(d.Damage(names[0], 30, 4), d.Damage(names[1], 30, 4)) },
		"log behind a snapshot": func(d *faultfs.Disk) error { return d.Rename(names[1], snapDir+"/snapshot.00000000000000000200") },
	} {
		d := base.Clone()
		must(t, spoil(d))
		_, err := open(d, manual)
		var gap *GapError
		if !errors.As(err, &gap) {
			t.Errorf("%s: %v", what, err)
		}
	}
	d := faultfs.New(t)
	s, err := open(d, manual)
	must(t, err)
	_, err = s.commit(0, 5)
	must(t, err)
	must(t, s.store.Snapshot())
	must(t, s.close())
	must(t, d.RemoveAll(snapDir))
	s, err = open(d, manual) // the log has everything
	must(t, err)
	defer s.close()
	if n := s.count(t); n != 5 {
		t.Fatal(n)
	}
}

// Claim: snapshots taken while commits and reads go on hold up no commit for long and
// restore to the same tree.
func TestSnapshotsInTheBackground(t *testing.T) {
	d := faultfs.New(t)
	o := Options{SnapshotEvery: 50, Keep: 2}
	s, err := open(d, o)
	must(t, err)
	stop := make(chan struct{})
	var readers sync.WaitGroup
	readers.Go(func() { // ends with stop
		for {
			select {
			case <-stop:
				return
			default:
				s.store.View(func(tr *tree.Tree) {
					tr.Read(&proto.Request{Op: proto.OpGetChildren2, Path: "/"}, &tree.Reader{}, nil)
				})
			}
		}
	})
	const total = 600
	for i := 0; i < total; i += 3 {
		_, err := s.commit(i, i+3)
		must(t, err)
	}
	close(stop)
	readers.Wait()
	must(t, s.close())
	if len(snapshots(t, d)) == 0 {
		t.Fatal("no snapshot was taken")
	}
	s, err = open(d, o)
	must(t, err)
	defer s.close()
	if n := s.count(t); n != total {
		t.Fatal(n)
	}
}

// Claim: when nothing can be stored, nothing is acknowledged, and it goes on when it can.
func TestFullDisk(t *testing.T) {
	d := faultfs.New(t)
	s, err := open(d, manual)
	must(t, err)
	defer s.close()
	_, err = s.commit(0, 3)
	must(t, err)
	d.SetFree(0)
	n := 3
	for {
		if _, err = s.commit(n, n+1); err != nil {
			break
		}
		n++
	}
	if got := s.count(t); got != n {
		t.Fatalf("%d transactions, %d were acknowledged", got, n)
	}
	if !errors.Is(err, engine.ErrStorage) {
		t.Skipf("the log is poisoned by a full disk (%v)", err)
	}
	d.SetFree(1 << 30)
	_, err = s.commit(n, n+2)
	must(t, err)
	if got := s.count(t); got != n+2 {
		t.Fatal(got)
	}
}

// Claim C3: whoever watches has the event before anybody can read what it is about.
// Method: readers look at a node all the time; each time, the events handed out so far
// must be at least as many as the node's version says.
func TestEventsComeBeforeWhatTheyAreAbout(t *testing.T) {
	s, err := open(faultfs.New(t), manual)
	must(t, err)
	defer s.close()
	_, err = s.commit(0, 1)
	must(t, err)
	s.store.Change(func(tr *tree.Tree) {
		tr.Read(&proto.Request{Op: proto.OpAddWatch, Path: "/zookeeper/quota"}, &tree.Reader{Watcher: 1}, nil)
	})
	var handed atomic.Int32
	stop := make(chan struct{})
	var readers sync.WaitGroup
	for range 3 {
		readers.Go(func() { // ends with stop
			for {
				select {
				case <-stop:
					return
				default:
				}
				s.store.View(func(tr *tree.Tree) {
					res, _ := tr.Read(&proto.Request{Op: proto.OpGetData, Path: "/zookeeper/quota"}, &tree.Reader{}, nil)
					if got := handed.Load(); got < res.Stat.Version {
						t.Errorf("version %d is read after %d events", res.Stat.Version, got)
					}
				})
			}
		})
	}
	for i := range 300 {
		x := tree.Txn{Session: session, Req: proto.Request{Op: proto.OpSetData, Path: "/zookeeper/quota", Data: fmt.Append(nil, i), Version: -1}}
		_, err := s.store.Commit([]tree.Txn{x, x}, func(_ int, _ proto.Result, events []tree.Event) { handed.Add(int32(len(events))) })
		must(t, err)
	}
	close(stop)
	readers.Wait()
	if n := handed.Load(); n != 600 {
		t.Fatalf("%d events", n)
	}
}
