package journal

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"millrace/engine/vfs"
	"millrace/engine/vfs/faultfs"
)

// gentleFile notes what a pass does with it.
type gentleFile struct {
	vfs.File
	name        string
	size, dirty int64
	did         *deeds
}

type deeds struct {
	sync.Mutex
	list []string
}

func (d *deeds) add(format string, args ...any) {
	d.Lock()
	defer d.Unlock()
	d.list = append(d.list, fmt.Sprintf(format, args...))
}

func (d *deeds) take() []string {
	d.Lock()
	defer d.Unlock()
	list := d.list
	d.list = nil
	return list
}

func (f *gentleFile) Dirty() (int64, error) { return f.dirty, nil }
func (f *gentleFile) Size() (int64, error)  { return f.size, nil }
func (f *gentleFile) Sync() error           { f.did.add("sync %s", f.name); return nil }
func (f *gentleFile) WriteOut(off, n int64, wait bool) error {
	switch {
	case !wait:
		f.did.add("begin %s", f.name)
	case n == 0:
		f.did.add("end %s", f.name)
	default:
		f.did.add("%s [%d,%d)", f.name, off, off+n)
	}
	return nil
}

// gentleJournal is a journal with a free file, and no life of its own.
func gentleJournal(t *testing.T) *Journal {
	j := &Journal{fs: faultfs.New(t), dataDir: "/", piece: 100, maxFiles: 2, files: []*file{{}, {}}, free: []*file{{}}}
	j.idle = sync.NewCond(&j.mu)
	return j
}

func (j *Journal) begin(number uint64) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.running = nil
	if number > 0 {
		r := &j.rounds[number&1]
		r.number = number
		j.running = r
	}
	j.idle.Broadcast()
}

// Claim: a pass has one device write under way beside a round at most: what is large goes in pieces, syncs come after that and a few at a time,
// and between any two the round that runs then ends first. Rounds without a gap do not stop it.
func TestAPassDoesOneThingBesideEachRound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := gentleJournal(t)
		var did deeds
		files := []vfs.File{&gentleFile{name: "large", size: 350, dirty: 350, did: &did}}
		for i := range passFiles {
			files = append(files, &gentleFile{name: fmt.Sprint(i), size: 900, dirty: 100, did: &did})
		}
		j.begin(1)
		done := make(chan error, 1)
		go func() { done <- j.syncGently(files) }() // ends with the pass
		for i, want := range [][]string{{}, {"large [0,100)"}, {"large [100,200)"}, {"large [200,300)"}, {"large [300,400)"},
			{"sync 0", "sync 1", "sync 2", "sync 3", "sync 4", "sync 5", "sync large"}, {"sync 6"}} {
			if i > 0 {
				j.begin(uint64(i + 1)) // the round before has ended, and the next one has begun at once
			}
			synctest.Wait()
			got := did.take()
			slices.Sort(got)
			if !slices.Equal(got, want) {
				t.Errorf("beside round %d: %q, want %q", i+1, got, want)
			}
		}
		j.begin(0)
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// Claim: many files with little each are written out first, no more beside a round than one piece in all, and take one sync of the file system.
func TestAPassOverManyFilesSyncsTheFileSystem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := gentleJournal(t)
		disk := j.fs.(*faultfs.Disk)
		syncs := 0
		disk.AfterOperation(func(op faultfs.Op) {
			if op.Kind == faultfs.OpSyncFS {
				syncs++
			}
		})
		var did deeds
		var files []vfs.File
		for i := range passMany + 6 {
			files = append(files, &gentleFile{name: fmt.Sprint(i), size: 900, dirty: 40, did: &did})
		}
		j.begin(1)
		done := make(chan error, 1)
		go func() { done <- j.syncGently(files) }() // ends with the pass
		synctest.Wait()
		if got := did.take(); len(got) != 0 {
			t.Errorf("beside the round that ran before: %q", got)
		}
		for i := range len(files) / 2 {
			j.begin(uint64(i + 2))
			synctest.Wait()
			want := []string{fmt.Sprint("begin ", 2*i), fmt.Sprint("begin ", 2*i+1), fmt.Sprint("end ", 2*i), fmt.Sprint("end ", 2*i+1)}
			if got := did.take(); !slices.Equal(got, want) {
				t.Errorf("beside round %d: %q, want %q", i+2, got, want)
			}
		}
		if syncs != 0 {
			t.Error("synced before all was written out and a round could pass")
		}
		j.begin(0)
		if err := <-done; err != nil {
			t.Error(err)
		}
		if got := did.take(); syncs != 1 || len(got) != 0 {
			t.Errorf("%d syncs of the file system, and %q", syncs, got)
		}
	})
}

// Claim: a pass does not wait for a round that waits for the pass: one that empties the journal, or all when no free file is left.
func TestAPassWaitsForNoRoundThatWaitsForIt(t *testing.T) {
	for name, press := range map[string]func(j *Journal){
		"emptying": func(j *Journal) { j.emptying = true },
		"full":     func(j *Journal) { j.free = nil },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				j := gentleJournal(t)
				var did deeds
				done := make(chan error, 1)
				j.begin(1)
				go func() { done <- j.syncGently([]vfs.File{&gentleFile{name: "f", size: 300, dirty: 300, did: &did}}) }() // ends with the pass
				synctest.Wait()
				if got := did.take(); len(got) != 0 {
					t.Fatalf("beside the round: %q", got)
				}
				j.mu.Lock()
				press(j)
				j.mu.Unlock()
				j.idle.Broadcast()
				if err := <-done; err != nil {
					t.Error(err)
				}
				if got := did.take(); len(got) != 4 {
					t.Errorf("then: %q", got)
				}
			})
		})
	}
}

// Claim: the runner that empties the journal and a pass that lets rounds pass do not wait for each other.
// Method: a pass that stands before its first piece while a round runs whose cut found no place; the hook holds the round until the pass waits for it.
func TestEmptyingAndAGentlePassDoNotBlockEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := gentleJournal(t)
		j.page = vfs.AlignedBuffer(pageBytes)
		defer vfs.FreeBuffer(j.page)
		var did deeds
		j.begin(1)
		passed := make(chan error, 1)
		go func() { // ends with the pass
			j.passMu.Lock()
			defer j.passMu.Unlock()
			passed <- j.syncGently([]vfs.File{&gentleFile{name: "f", size: 300, dirty: 300, did: &did}})
		}()
		synctest.Wait()
		if err := j.emptyJournal(); err != nil { // as the runner of round 1 does
			t.Error(err)
		}
		if err := <-passed; err != nil {
			t.Error(err)
		}
	})
}

// Claim: a failed write-out poisons, as a failed sync does: the system tells of it once, so a later sync that succeeds says nothing (L4).
func TestAFailedWriteOutPoisons(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := faultfs.New(t)
		must(t, disk, disk.WriteFile(dataDir+"/x", nil), "write")
		j, err := Open(Options{FS: disk, Dir: dataDir, DataDir: dataDir, FileBytes: minFileBytes, Files: 2})
		must(t, disk, err, "open")
		j.piece = 1
		log, err := openFake(disk, j, "a")
		must(t, disk, err, "open log")
		must(t, disk, j.Start(), "start")
		disk.Fail(faultfs.Fault{Kind: faultfs.OpWriteOut, Pattern: "a.log"})
		for serial := uint64(1); serial < 100; serial++ {
			ticket, err := log.append(batch{count: 1, serial: serial, size: 3000})
			must(t, disk, err, "append")
			if err = j.Wait(ticket); err != nil {
				var poisoned *PoisonedError
				if !errors.As(err, &poisoned) || !errors.Is(err, faultfs.ErrInjected) {
					t.Errorf("Wait says %v", err)
				}
				break
			}
			synctest.Wait()
		}
		if !disk.Fired() {
			t.Fatal("nothing was written out")
		}
		if err := j.Wait(j.AddSync(log)); err == nil {
			t.Error("a round after it was acknowledged")
		}
		_ = j.Close()
	})
}
