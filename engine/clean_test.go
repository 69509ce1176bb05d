package engine

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"millrace/engine/batch"
	"millrace/engine/compact"
	"millrace/engine/vfs/faultfs"
)

// keyed is a record of a compacted log.
type keyed struct {
	offset     Offset
	key, value string
	null       bool
}

func compacted() Config {
	c := smallLog()
	c.Delete, c.Compact, c.RetentionAge = false, true, -1
	c.DirtyRatio = 0
	return c
}

// putKeyed appends one batch of key=value records; an empty value is null.
func putKeyed(t logTB, l *Log, pairs ...string) Offset {
	t.Helper()
	a := leaderAppend(keyedBatch(1000, pairs))
	if err := l.Append(a, 0); err != nil {
		t.Fatalf("append: %v", err)
	}
	return a.Base
}

func keyedBatch(ts int64, pairs []string, opts ...batch.Option) []byte {
	b := batch.NewBuilder(batch.None, 0)
	for _, p := range pairs {
		k, v, _ := strings.Cut(p, "=")
		r := batch.Record{Timestamp: ts, Key: []byte(k), Value: []byte(v)}
		if v == "" {
			r.Value = nil
		}
		if err := b.Add(r); err != nil {
			panic(err)
		}
	}
	return b.Bytes(opts...)
}

func cleanAt(now time.Time) Cleaning { return Cleaning{Keys: compact.NewMap(64 << 10), Now: now} }

func mustClean(t logTB, l *Log, c Cleaning) CleanResult {
	t.Helper()
	r, err := l.Clean(c)
	if err != nil {
		t.Fatalf("clean: %v", err)
	}
	return r
}

// readKeyed reads [from, to) and demands that offsets rise.
func readKeyed(l *Log, from, to Offset) ([]keyed, error) {
	var all []keyed
	for at := from; at < to; {
		s, err := l.Read(at, 700, to, true)
		if err != nil {
			return all, err
		}
		data := make([]byte, s.Size())
		err = s.ReadInto(data)
		s.Release()
		if err != nil {
			return all, err
		}
		if len(data) == 0 {
			return all, nil
		}
		before := at
		for len(data) > 0 {
			n, err := batch.Split(data)
			if errors.Is(err, batch.ErrShort) {
				break
			}
			if err != nil {
				return all, err
			}
			info, err := batch.CheckStored(data[:n])
			if err != nil {
				return all, err
			}
			for r, err := range batch.Records(data[:n]) {
				if err != nil {
					return all, err
				}
				if Offset(r.Offset) >= at {
					all = append(all, keyed{Offset(r.Offset), string(r.Key), string(r.Value), r.Value == nil})
				}
			}
			at = max(at, Offset(info.LastOffset())+1)
			data = data[n:]
		}
		if at == before {
			return all, fmt.Errorf("no progress at %d", at)
		}
	}
	for i := 1; i < len(all); i++ {
		if all[i].offset <= all[i-1].offset {
			return all, fmt.Errorf("offset %d after %d", all[i].offset, all[i-1].offset)
		}
	}
	return all, nil
}

func mustReadKeyed(t logTB, l *Log) []keyed {
	t.Helper()
	all, err := readKeyed(l, l.Start(), l.End())
	if err != nil {
		t.Fatalf("read: %v", err)
	}
	return all
}

func offsetsOf(all []keyed) (out []Offset) {
	for _, k := range all {
		out = append(out, k.offset)
	}
	return out
}

// Claim: of each key the newest record stays, at its offset and with its value; every read from any offset, look-ups by time, the end
// and what a reader has pinned are as before; so it is after a kill and after a clean stop.
func TestCleanKeepsTheNewest(t *testing.T) {
	d := faultfs.New(t)
	l := openTestLog(t, d.Session(), compacted())
	for i := range 60 {
		putKeyed(t, l, fmt.Sprintf("k%d=%s", i%7, valueOf(Offset(i))))
	}
	pinned, err := l.Read(0, 600, l.End(), true)
	if err != nil {
		t.Fatal(err)
	}
	old := make([]byte, pinned.Size())
	if err := pinned.ReadInto(old); err != nil {
		t.Fatal(err)
	}
	dirt, err := l.Dirt(time.UnixMilli(2000))
	if err != nil || dirt.Ratio() != 1 || dirt.Oldest.UnixMilli() != 1000 {
		t.Fatalf("%+v, %v", dirt, err)
	}
	size, end, segments := l.Size(), l.End(), len(*l.segments.Load())
	r := mustClean(t, l, cleanAt(time.UnixMilli(2000)))
	active := l.mu.active.base
	if !r.Whole || r.To != active || l.End() != end || l.Size() >= size/2 || l.FirstDirty() != active {
		t.Fatalf("%+v; size %d of %d, end %d of %d, first dirty %d", r, l.Size(), size, l.End(), end, l.FirstDirty())
	}
	again := make([]byte, pinned.Size())
	if err := pinned.ReadInto(again); err != nil || string(again) != string(old) {
		t.Fatalf("what was pinned changed: %v", err)
	}
	pinned.Release()

	var want []keyed // below the active segment the newest of each key, from there on everything
	for o := range end {
		k := fmt.Sprintf("k%d", o%7)
		if o >= active || o+7 >= active {
			want = append(want, keyed{o, k, valueOf(o), false})
		}
	}
	check := func(what string, l *Log) {
		t.Helper()
		for from := Offset(0); from <= end; from++ {
			got, err := readKeyed(l, from, end)
			at := slices.IndexFunc(want, func(k keyed) bool { return k.offset >= from })
			if at < 0 {
				at = len(want)
			}
			if err != nil || !slices.Equal(got, want[at:]) && len(got)+len(want[at:]) > 0 {
				t.Fatalf("%s: from %d: %v, want %v (%v)", what, from, offsetsOf(got), offsetsOf(want[at:]), err)
			}
		}
		off, _, found, err := l.OffsetForTime(500)
		if err != nil || !found || off != want[0].offset {
			t.Fatalf("%s: the first record at or after a time is %d, %v (%v), want %d", what, off, found, err, want[0].offset)
		}
	}
	check("after the pass", l)
	killed := openTestLog(t, crash(d).Session(), compacted())
	check("after a kill", killed)
	putKeyed(t, killed, "k0=after")
	closeLog(t, killed)
	closeLog(t, l)
	l = openTestLog(t, d.Session(), compacted())
	check("after a stop", l)
	if r := mustClean(t, l, cleanAt(time.UnixMilli(2000))); r.RecordsOut != r.RecordsIn || len(*l.segments.Load()) >= segments {
		t.Fatalf("a second pass takes nothing and joins small segments: %+v, %d of %d", r, len(*l.segments.Load()), segments)
	}
	check("after another pass", l)
	closeLog(t, l)
}

// Claim (F026): a map that holds fewer keys than the log cleans as far as it reaches and goes on there; in the end the newest of
// every key is left.
func TestField_F026_CleaningInRounds(t *testing.T) {
	l := openTestLog(t, faultfs.New(t).Session(), compacted())
	const keys = 40
	for i := range 3 * keys {
		putKeyed(t, l, fmt.Sprintf("key-%d=%d", i%keys, i))
	}
	for range 10 {
		putKeyed(t, l, "filler="+strings.Repeat("x", 200))
	}
	c := Cleaning{Keys: compact.NewMap(24 * 12), Now: time.UnixMilli(2000)}
	rounds := 0
	for ; ; rounds++ {
		before := l.FirstDirty()
		r := mustClean(t, l, c)
		if r.Whole {
			break
		}
		if r.To <= before || rounds > 100 {
			t.Fatalf("round %d came from %d to %d", rounds, before, r.To)
		}
	}
	if rounds < 3 {
		t.Fatalf("only %d rounds: the map was not too small", rounds)
	}
	var got []Offset
	for _, k := range mustReadKeyed(t, l) {
		if k.key != "filler" {
			got = append(got, k.offset)
		}
	}
	var want []Offset
	for o := Offset(2 * keys); o < 3*keys; o++ {
		want = append(want, o)
	}
	if !slices.Equal(got, want) {
		t.Fatalf("left: %v", got)
	}
	closeLog(t, l)
}

// Claim (F024): a null value goes delete.retention.ms after the first pass that met it, without new writes, and the log says when a
// pass is due for that.
func TestField_F024_NullValueGoes(t *testing.T) {
	c := compacted()
	c.DeleteRetention = 3 * time.Second
	d := faultfs.New(t)
	l := openTestLog(t, d.Session(), c)
	putKeyed(t, l, "k=v")
	putKeyed(t, l, "k=")
	for range 20 {
		putKeyed(t, l, "filler="+strings.Repeat("x", 200))
	}
	has := func() bool {
		return slices.ContainsFunc(mustReadKeyed(t, l), func(k keyed) bool { return k.key == "k" })
	}
	now := time.UnixMilli(10_000)
	end := l.End()
	r := mustClean(t, l, cleanAt(now))
	if !has() || !r.NextHorizon.Equal(now.Add(3*time.Second)) {
		t.Fatalf("the null value must stay for readers: %+v", r)
	}
	for _, at := range []time.Duration{time.Second, 2 * time.Second} {
		if dirt, err := l.Dirt(now.Add(at)); err != nil || dirt.Expired {
			t.Fatalf("%+v %v", dirt, err)
		}
		mustClean(t, l, cleanAt(now.Add(at)))
	}
	if !has() {
		t.Fatal("it went early")
	}
	if dirt, err := l.Dirt(now.Add(4 * time.Second)); err != nil || !dirt.Expired || dirt.Dirty != 0 {
		t.Fatalf("no pass is due: %+v %v", dirt, err)
	}
	mustClean(t, l, cleanAt(now.Add(4*time.Second)))
	if has() || l.End() != end {
		t.Fatalf("it stays after its time; end %d of %d", l.End(), end)
	}
	if dirt, err := l.Dirt(now.Add(time.Hour)); err != nil || dirt.Expired {
		t.Fatalf("passes without end: %+v %v", dirt, err)
	}
	closeLog(t, l)
}

// Claim (F005): a segment whose offsets span more than 2^31-1 is split by a pass; both ends stay readable.
func TestField_F005_CleanSplitsAWideSegment(t *testing.T) {
	const far = 2_200_000_000
	d := faultfs.New(t)
	if err := d.MkdirAll(logDir); err != nil {
		t.Fatal(err)
	}
	wide := slices.Concat(keyedBatch(1000, []string{"a=1", "b=1"}, batch.Base(0, 0)), keyedBatch(1000, []string{"c=2"}, batch.Base(far, 0)))
	writeFile(t, d, logDir+"/"+baseName(0)+logSuffix, wide)
	l := openTestLog(t, d.Session(), compacted())
	for range 8 {
		putKeyed(t, l, "a="+strings.Repeat("x", 200))
	}
	r := mustClean(t, l, cleanAt(time.UnixMilli(2000)))
	if r.SegmentsOut < 2 {
		t.Fatalf("%+v", r)
	}
	all := mustReadKeyed(t, l)
	if len(all) < 3 || all[0].offset != 1 || all[1].offset != far {
		t.Fatalf("left: %v", offsetsOf(all))
	}
	if again := mustReadKeyed(t, openTestLog(t, crash(d).Session(), compacted())); !slices.Equal(again, all) {
		t.Fatalf("after a kill: %v, before %v", offsetsOf(again), offsetsOf(all))
	}
	closeLog(t, l)
}

// compactLife is a compacted log under faults. Of each key the newest acknowledged record must be there, or a newer one.
type compactLife struct {
	disk   *faultfs.Disk
	config Config
	rng    *rand.Rand
	log    *Log
	acked  map[string]Offset          // newest acknowledged
	tried  map[Offset]map[string]bool // key=value at an offset
	serial int
	now    time.Time
}

func (f *compactLife) open() error {
	var err error
	f.log, err = tryOpen(f.disk.Session(), f.config)
	return err
}

func (f *compactLife) append() error {
	f.serial++
	key := fmt.Sprint("k", f.rng.IntN(6))
	pair := fmt.Sprintf("%s=%d-%s", key, f.serial, valueOf(0)[:f.rng.IntN(50)])
	note := func(o Offset) {
		if f.tried[o] == nil {
			f.tried[o] = map[string]bool{}
		}
		f.tried[o][pair] = true
	}
	note(f.log.End())
	a := leaderAppend(keyedBatch(1000, []string{pair}))
	if err := f.log.Append(a, 0); err != nil {
		return err
	}
	note(a.Base)
	f.acked[key] = a.Base
	return nil
}

func (f *compactLife) clean() error {
	f.now = f.now.Add(time.Second)
	// Small maps, so that some passes do a part only.
	_, err := f.log.Clean(Cleaning{Keys: compact.NewMap(24 * int64(3+f.rng.IntN(10))), Now: f.now})
	return err
}

func (f *compactLife) run() {
	steps := []func() error{f.open}
	for i := range 44 {
		steps = append(steps, f.append)
		if i%11 == 10 {
			steps = append(steps, f.clean)
		}
	}
	steps = append(steps, func() error { return f.log.Close() }, f.open, f.append, f.append, f.clean, f.append)
	for _, step := range steps {
		err := step()
		if f.log == nil || errors.Is(err, faultfs.ErrPowerCut) || errors.Is(err, ErrClosed) {
			return
		}
		for _, op := range f.disk.Trace() {
			if op.Kind == faultfs.OpSyncDir && op.Err != nil {
				return // names that only the running system has: see life.live
			}
		}
	}
}

func (f *compactLife) verify(t *testing.T) {
	t.Helper()
	var lines said
	l, err := tryOpen(f.disk.Session(), f.config, withLogger(lines.logger()))
	if err != nil {
		t.Fatalf("open after the crash: %v\n%s", err, lines.b.String())
	}
	f.log = l
	all, err := readKeyed(l, l.Start(), l.End())
	if err != nil {
		t.Fatalf("read: %v", err)
	}
	newest := map[string]Offset{}
	for _, k := range all {
		if !f.tried[k.offset][k.key+"="+k.value] {
			t.Fatalf("offset %d holds %s=%q, which was never written there", k.offset, k.key, k.value)
		}
		newest[k.key] = k.offset
	}
	if f.config.Durability == PageCache {
		return
	}
	for key, o := range f.acked {
		if n, ok := newest[key]; !ok || n < o {
			t.Fatalf("L6: the acknowledged record %d of %s is gone: newest is %d (%v); the log is [%d, %d) with %v", o, key, n, ok, l.Start(), l.End(), offsetsOf(all))
		}
	}
}

// Claim (L9, L6, L7): whatever single operation of a pass fails or is interrupted by a power cut, the newest acknowledged record of every key
// is there afterwards, nothing is there that was never written, and cleaning goes on.
// Method: as TestAcknowledgedBatchesSurviveAnyFault, with passes of compaction in the life.
func TestCleaningSurvivesAnyFault(t *testing.T) {
	for _, durability := range []Durability{Sync, PageCache} {
		cleaningSurvivesAnyFault(t, durability, nil)
	}
}

// cleaningSurvivesAnyFault is the loop of one durability; change, if not nil, changes the settings.
func cleaningSurvivesAnyFault(t *testing.T, durability Durability, change func(*Config)) {
	mixes := faultfs.Mixes()
	for _, cutPower := range []bool{false, true} {
		for n := 0; ; n++ {
			if testing.Short() && n%5 != 0 {
				continue
			}
			d := faultfs.New(nil, faultfs.Seed(uint64(n)))
			c := compacted()
			c.Durability, c.SegmentBytes = durability, 500
			if change != nil {
				change(&c)
			}
			f := &compactLife{disk: d, config: c, rng: rand.New(rand.NewPCG(uint64(n), 3)), acked: map[string]Offset{}, tried: map[Offset]map[string]bool{}, now: time.UnixMilli(2000)}
			if cutPower {
				d.CutAtOperation(n)
			} else {
				d.FailOperation(n)
			}
			f.run()
			fired := d.Fired()
			mix := mixes[n%len(mixes)]
			d.CutPower(mix.Options()...)
			if f.log != nil {
				_ = f.log.Close()
			}
			func() {
				defer func() {
					if t.Failed() {
						ops := d.Ops()
						t.Logf("operation %d, cut %v, then %v; of %d operations the last:\n%s", n, cutPower, mix, len(ops), strings.Join(ops[max(0, len(ops)-150):], "\n"))
					}
				}()
				f.verify(t)
				for range 5 {
					if err := f.append(); err != nil {
						t.Fatalf("append after recovery: %v", err)
					}
				}
				if err := f.clean(); err != nil {
					t.Fatalf("clean after recovery: %v", err)
				}
				closeLog(t, f.log)
				f.verify(t)
				closeLog(t, f.log)
			}()
			if !fired {
				t.Logf("%v, cut %v: %d operations", durability, cutPower, n)
				break
			}
		}
	}
}

// Claim: whatever is appended, cut, cleaned and restarted in whatever shape, the newest record of each key is there and nothing else
// was ever made up.
func TestCleanedLogsReadRight(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawShape(t, "shape")
		s.config.Delete, s.config.Compact, s.config.RetentionAge = false, true, -1
		d := faultfs.New(t)
		l := openTestLog(t, d.Session(), s.config)
		wrote := map[Offset]string{}
		now := time.UnixMilli(5000)
		for i := range rapid.IntRange(1, 50).Draw(t, "deeds") {
			switch rapid.SampledFrom([]string{"put", "put", "put", "put", "clean", "cut", "restart"}).Draw(t, "deed") {
			case "put":
				var pairs []string
				for j := range rapid.IntRange(1, 5).Draw(t, "records") {
					pairs = append(pairs, fmt.Sprintf("k%d=%d/%d", rapid.IntRange(0, 5).Draw(t, "key"), i, j))
				}
				at := putKeyed(t, l, pairs...)
				for j, p := range pairs {
					wrote[at+Offset(j)] = p
				}
			case "clean":
				now = now.Add(time.Second)
				_, err := l.Clean(Cleaning{Keys: compact.NewMap(24 * int64(rapid.IntRange(8, 40).Draw(t, "map"))), Now: now})
				if err != nil {
					t.Fatalf("clean: %v", err)
				}
			case "cut":
				// Nothing below the high watermark is cut, and nothing above it is cleaned.
				o := max(l.Start(), l.FirstDirty(), l.End()-Offset(rapid.IntRange(0, 9).Draw(t, "back")))
				if err := l.TruncateTo(o); err != nil {
					t.Fatalf("truncate: %v", err)
				}
				for at := range wrote {
					if at >= l.End() {
						delete(wrote, at)
					}
				}
			case "restart":
				if i%2 == 0 {
					closeLog(t, l)
				} else {
					d.CutPower(faultfs.KeepUnsynced(100))
					_ = l.Close()
				}
				first := l.FirstDirty()
				l = openTestLog(t, d.Session(), s.config)
				l.SetFirstDirty(first)
			}
		}
		newest := map[string]Offset{}
		for o, p := range wrote {
			k, _, _ := strings.Cut(p, "=")
			newest[k] = max(newest[k], o+1)
		}
		got := map[Offset]string{}
		for _, k := range mustReadKeyed(t, l) {
			got[k.offset] = k.key + "=" + k.value
			if wrote[k.offset] != got[k.offset] {
				t.Fatalf("offset %d is %s, was written as %q", k.offset, got[k.offset], wrote[k.offset])
			}
		}
		for k, o := range newest {
			if got[o-1] == "" {
				t.Fatalf("the newest record of %s, %d, is gone", k, o-1)
			}
		}
		closeLog(t, l)
	})
}
