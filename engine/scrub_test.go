package engine

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"millrace/engine/vfs"
	"millrace/engine/vfs/faultfs"
)

// findings collects what OnDamage tells.
type findings struct {
	mu   sync.Mutex
	list []Damage
}

func (f *findings) add(d Damage) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.list = append(f.list, d)
}

func (f *findings) all() []Damage {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]Damage(nil), f.list...)
}

// scrubbed are options of a quiet store whose scrub tells found.
func scrubbed(disk *faultfs.Disk, found *findings) StoreOptions {
	o := quiet(disk, "/a", "/b")
	o.Defaults = smallLog()
	o.OnDamage = found.add
	return o
}

// scrubOnce has a pass made over a store whose scrub is off. Only within a synctest bubble.
func scrubOnce(t testing.TB, s *Store) {
	t.Helper()
	before := s.ScrubStats().Passes
	s.SetScrubRate(1 << 30)
	for begun := time.Now(); s.ScrubStats().Passes == before; time.Sleep(time.Second) {
		if time.Since(begun) > 2*scrubEvery {
			t.Fatal("no pass")
		}
	}
}

// startsOf lists where the batches of a segment's file begin, and their last offsets.
func startsOf(t testing.TB, data []byte) (starts []entry) {
	t.Helper()
	for pos := 0; pos < len(data); {
		e, ok := parseEntry(data[pos:], int64(pos))
		if !ok {
			t.Fatalf("no entry at %d", pos)
		}
		starts = append(starts, e)
		pos += e.size
	}
	return starts
}

// Claim: any byte that is wrong in a closed segment is found and told once, at the batch that holds it, and nothing else stops; but for the
// leader's epoch, which no checksum covers.
// Method: every byte of one batch, header and record, is changed in turn; passes; appends and reads of this log and another.
func TestScrubFindsEveryChangedByte(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := faultfs.New(t)
		o := scrubbed(disk, &findings{})
		s := openStore(t, o)
		create(t, s, spec("t", 1, 2))
		for p := range int32(2) {
			putN(t, s.Log("t", p), 40)
		}
		closeStore(t, s)
		name := "/a/t-0/" + baseName(0) + logSuffix
		if _, err := disk.Stat(name); err != nil {
			name = strings.Replace(name, "/a", "/b", 1)
		}
		whole := readFile(t, disk, name)
		e := startsOf(t, whole)[2]
		for i := range e.size {
			if i >= 12 && i < 16 || testing.Short() && i%3 != 0 && i > 12 {
				continue
			}
			d := disk.Clone()
			var found findings
			var lines said
			o := scrubbed(d, &found)
			o.Logger = lines.logger()
			data := bytes.Clone(whole)
			data[int(e.pos)+i] ^= 0x40
			writeFile(t, d, name, data)
			s := openStore(t, o)
			scrubOnce(t, s)
			time.Sleep(3 * scrubEvery)
			got := found.all()
			if len(got) != 1 || got[0].Position != e.pos || got[0].File != name || got[0].IndexOnly || got[0].Topic != "t" || got[0].From > e.base || got[0].To < e.last {
				t.Fatalf("byte %d of the batch at %d: %+v", i, e.pos, got)
			}
			var c *CorruptError
			if !errors.As(got[0].Err, &c) || c.File != name || c.Position != e.pos {
				t.Fatal(got[0].Err)
			}
			if st := s.ScrubStats(); st.Passes < 3 || st.Damaged[got[0].Dir] != 1 || len(st.Damaged) != 2 || lines.count("level=ERROR") != 1 || lines.count("dump-log check") != 1 {
				t.Fatalf("%+v\n%s", st, lines.b.String())
			}
			l := s.Log("t", 0)
			_, _ = contents(l, l.End(), 1000) // returns, whatever it says
			putN(t, l, 1)
			requireValues(t, s.Log("t", 1), 0, 40)
			if err := s.Delete("t", 0); err != nil {
				t.Fatal(err)
			}
			if st := s.ScrubStats(); st.Damaged["/a"]+st.Damaged["/b"] != 0 {
				t.Fatalf("a segment that is gone still counts: %+v", st)
			}
			closeStore(t, s)
		}
	})
}

// Claim: an index that lies about its segment, is cut short in an entry, or is gone is told once and made again; the log's bytes are not suspected.
// Method: every byte of the offset index; of the time index, what cannot be; cut; removed.
func TestScrubMakesIndexesAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := faultfs.New(t)
		s := openStore(t, scrubbed(disk, &findings{}))
		create(t, s, spec("t", 1, 1))
		putN(t, s.Log("t", 0), 40)
		dir := s.Log("t", 0).Dir()
		closeStore(t, s)
		try := func(suffix, what string, at int64, change func(d *faultfs.Disk, name string, b []byte)) {
			t.Helper()
			d := disk.Clone()
			var found findings
			s := openStore(t, scrubbed(d, &found))
			name := dir + "/" + baseName((*s.Log("t", 0).segments.Load())[1].base) + suffix
			whole := readFile(t, d, name)
			if len(whole) == 0 {
				t.Fatal("an empty index")
			}
			change(d, name, bytes.Clone(whole))
			scrubOnce(t, s)
			time.Sleep(3 * scrubEvery)
			if got := found.all(); len(got) != 1 || got[0].Position != at || got[0].File != name || !got[0].IndexOnly {
				t.Fatalf("%s: %+v, want it at %d", what, got, at)
			}
			if st := s.ScrubStats(); st.Indexes != 1 || st.Damaged["/a"]+st.Damaged["/b"] != 0 {
				t.Fatalf("%s: %+v", what, st)
			}
			if again := readFile(t, d, name); !bytes.Equal(again, whole) {
				t.Fatalf("%s: made again as %x, was %x", what, again, whole)
			}
			requireValues(t, s.Log("t", 0), 0, 40)
			closeStore(t, s)
		}
		flip := func(i int) func(d *faultfs.Disk, name string, b []byte) {
			return func(d *faultfs.Disk, name string, b []byte) {
				b[i] ^= 0x40
				writeFile(t, d, name, b)
			}
		}
		for i := range 3 * offsetEntryBytes {
			try(indexSuffix, fmt.Sprint("byte ", i), int64(i-i%offsetEntryBytes), flip(i))
		}
		for _, i := range []int{0, 5, 8, 10, 11} {
			try(timeSuffix, fmt.Sprint("time, byte ", i), 0, flip(i))
		}
		for _, suffix := range []string{indexSuffix, timeSuffix} {
			size := int64(map[string]int{indexSuffix: offsetEntryBytes, timeSuffix: timeEntryBytes}[suffix])
			cut := func(d *faultfs.Disk, name string, b []byte) { writeFile(t, d, name, append(b[:size], 1)) }
			try(suffix, "cut", size, cut)
			try(suffix, "removed", 0, func(d *faultfs.Disk, name string, _ []byte) {
				if err := d.Remove(name); err != nil {
					t.Fatal(err)
				}
			})
		}
	})
}

// Claim: a file that is cut short, gone, or cannot be read is told as such, with the position; the scrub goes on behind it.
func TestScrubTellsWhatCannotBeRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, c := range []struct {
			name string
			do   func(d *faultfs.Disk, name string) error
			want func(Damage) bool
		}{
			{"cut", func(d *faultfs.Disk, name string) error { b, _ := d.ReadFile(name); return d.WriteFile(name, b[:500]) },
				func(f Damage) bool { return f.Position <= 500 && strings.Contains(f.Err.Error(), "its end at 500") }},
			{"gone", func(d *faultfs.Disk, name string) error { return d.Remove(name) },
				func(f Damage) bool { return f.Position == 0 && errors.Is(f.Err, fs.ErrNotExist) }},
			{"unreadable", func(d *faultfs.Disk, name string) error {
				d.Fail(faultfs.Fault{Kind: faultfs.OpRead, Pattern: name, Times: -1})
				return nil
			}, func(f Damage) bool { return f.Position == 0 && errors.Is(f.Err, faultfs.ErrInjected) }},
		} {
			disk := faultfs.New(t)
			var found findings
			s := openStore(t, scrubbed(disk, &found))
			create(t, s, spec("t", 1, 1))
			l := s.Log("t", 0)
			putN(t, l, 40)
			s1 := (*l.segments.Load())[1]
			if err := c.do(disk, s1.path(logSuffix)); err != nil {
				t.Fatal(err)
			}
			scrubOnce(t, s)
			if got := found.all(); len(got) != 1 || got[0].File != s1.path(logSuffix) || !c.want(got[0]) {
				t.Fatalf("%s: %+v", c.name, got)
			}
			if st := s.ScrubStats(); st.Segments < int64(len(*l.segments.Load())-1) {
				t.Fatalf("%s: %+v", c.name, st)
			}
			putN(t, l, 1)
			closeStore(t, s)
		}
	})
}

// Claim: the scrub reads no more than its rate allows; a change counts at once, 0 stops it, and Close does not wait for it.
func TestScrubKeepsItsRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := faultfs.New(t)
		o := scrubbed(disk, &findings{})
		o.Defaults.SegmentBytes, o.Defaults.IndexBytes = 1<<20, 1<<20
		s := openStore(t, o)
		create(t, s, spec("t", 1, 2))
		for p := range int32(2) {
			for range 50 {
				put(t, s.Log("t", p), strings.Repeat("x", 100<<10))
			}
		}
		const rate = 1 << 20
		begun := time.Now()
		s.SetScrubRate(rate)
		for range 5 {
			time.Sleep(time.Second)
			read, most := s.ScrubStats().Bytes, int64(time.Since(begun).Seconds()*rate)+scrubWindow
			if read > most || read < most-scrubWindow {
				t.Fatalf("%d bytes after %v at %d a second", read, time.Since(begun), rate)
			}
		}
		s.SetScrubRate(0)
		synctest.Wait()
		at := s.ScrubStats().Bytes
		time.Sleep(time.Hour)
		if now := s.ScrubStats().Bytes; now != at {
			t.Fatalf("%d bytes read while it is off", now-at)
		}
		s.SetScrubRate(1) // a window takes days
		time.Sleep(time.Hour)
		s.SetScrubRate(8 << 20)
		time.Sleep(2 * time.Second)
		if st := s.ScrubStats(); st.Passes != 1 {
			t.Fatalf("%+v", st)
		}
		s.SetScrubRate(1)
		time.Sleep(scrubEvery)
		begun = time.Now()
		closeStore(t, s)
		if took := time.Since(begun); took > 0 {
			t.Fatalf("closing waited %v", took)
		}
	})
}

// Claim: a pass goes on where a stop broke it off.
func TestScrubGoesOnAfterARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := faultfs.New(t)
		s := openStore(t, scrubbed(disk, &findings{}))
		create(t, s, spec("t", 1, 4))
		for p := range int32(4) {
			putN(t, s.Log("t", p), 40)
		}
		all := int64(0)
		for _, l := range s.Logs() {
			all += int64(len(*l.segments.Load()) - 1)
		}
		segments := int64(0)
		for range 10 {
			s.SetScrubRate(4096) // a block, and so a segment, a second
			time.Sleep(time.Duration(all) * time.Second / 5)
			st := s.ScrubStats()
			segments += st.Segments
			closeStore(t, s)
			if st.Passes > 0 {
				if segments < all || segments > all+10 {
					t.Fatalf("%d segments looked at in one pass over %d", segments, all)
				}
				return
			}
			s = openStore(t, scrubbed(disk, &findings{}))
		}
		t.Fatal("no pass has come to its end")
	})
}

// Claim: it is so on real files too, with direct reads or without.
func TestScrubOnRealFiles(t *testing.T) {
	dir := t.TempDir()
	var found findings
	o := quiet(vfs.OS(), dir)
	o.Defaults = smallLog()
	o.OnDamage = found.add
	s, l := openOne(t, o)
	putN(t, l, 60)
	list := *l.segments.Load()
	spoil := func(name string, at int64) {
		t.Helper()
		f, err := vfs.OS().OpenFile(name, 2)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		var b [1]byte
		if err := readFull(f, b[:], at); err != nil {
			t.Fatal(err)
		}
		b[0] ^= 0xff
		if _, err := f.WriteAt(b[:], at); err != nil {
			t.Fatal(err)
		}
	}
	spoil(list[1].path(logSuffix), 70)
	spoil(list[2].path(indexSuffix), 3)
	s.SetScrubRate(1 << 30)
	for begun := time.Now(); s.ScrubStats().Passes == 0; time.Sleep(time.Millisecond) {
		if time.Since(begun) > time.Minute {
			t.Fatal("no pass in a minute")
		}
	}
	got := found.all()
	if len(got) != 2 || got[0].File != list[1].path(logSuffix) || got[0].Position != 0 || got[0].IndexOnly || got[1].File != list[2].path(indexSuffix) || !got[1].IndexOnly {
		t.Fatalf("%+v", got)
	}
	if st := s.ScrubStats(); st.Segments != int64(len(list)-1) || st.Damaged[dir] != 1 || st.Indexes != 1 {
		t.Fatalf("%+v", st)
	}
	closeStore(t, s)
}

// Claim: a length that lies is found at its batch, also a large one within the segment, which is not read for it; a batch that is large is no damage.
func TestScrubDoubtsLargeLengths(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := faultfs.New(t)
		var found findings
		o := scrubbed(disk, &found)
		o.Defaults.SegmentBytes, o.Defaults.IndexBytes = 8<<20, 1<<20
		s, l := openOne(t, o)
		for i := range 40 {
			put(t, l, strings.Repeat("x", 100<<10+3<<20*(i%4/3)))
		}
		scrubOnce(t, s)
		if got := found.all(); len(got) > 0 || len(*l.segments.Load()) < 4 {
			t.Fatalf("%+v", got)
		}
		s1 := (*l.segments.Load())[1]
		data := readFile(t, disk, s1.path(logSuffix))
		e := startsOf(t, data)[1]
		data[e.pos+9] ^= 0x20 // 2 MiB more
		writeFile(t, disk, s1.path(logSuffix), data)
		time.Sleep(2 * scrubEvery)
		if got := found.all(); len(got) != 1 || got[0].Position != e.pos || got[0].File != s1.path(logSuffix) {
			t.Fatalf("%+v, want it at %d", got, e.pos)
		}
		closeStore(t, s)
	})
}

// Claim: a file system that refuses direct reads, and a process that is out of descriptors, are no damage: the scrub reads plainly, or waits and goes on.
func TestScrubKnowsWhatIsNoDamage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, fault := range []faultfs.Fault{{Kind: faultfs.OpRead, Pattern: "*.log", Err: syscall.EINVAL}, {Kind: faultfs.OpOpen, Pattern: "*.log", Err: syscall.EMFILE}} {
			disk := faultfs.New(t)
			var found findings
			s := openStore(t, scrubbed(disk, &found))
			create(t, s, spec("t", 1, 1))
			l := s.Log("t", 0)
			putN(t, l, 40)
			disk.Fail(fault)
			scrubOnce(t, s)
			if st := s.ScrubStats(); len(found.all()) > 0 || !disk.Fired() || st.Segments != int64(len(*l.segments.Load())-1) {
				t.Fatalf("%v: %+v, %+v, fired %v", fault.Err, found.all(), st, disk.Fired())
			}
			closeStore(t, s)
		}
	})
}
