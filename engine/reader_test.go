package engine

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"millrace/engine/batch"
	"millrace/engine/vfs/faultfs"
)

// Claim: any number of readers at the end of a log get every record once, in order, through rolls, and none before
// it is as safe as the log promises.
func TestTailsFollowAppends(t *testing.T) {
	for _, c := range []Config{smallLog(), pageCache()} {
		t.Run(c.Durability.String(), func(t *testing.T) {
			const records = 300
			l := openTestLog(t, faultfs.New(t), c)
			defer closeLog(t, l)
			var readers, writers sync.WaitGroup
			for range 4 {
				readers.Go(func() { // ends after the last record
					next := Offset(0)
					for r, err := range l.Tail(t.Context(), 0) {
						if err != nil || Offset(r.Offset) != next || string(r.Value) != "v" {
							t.Errorf("at %d: %d, %q, %v", next, r.Offset, r.Value, err)
							return
						}
						if safe := l.Safe(); next >= safe {
							t.Errorf("read %d, safe is %d", next, safe)
							return
						}
						if next++; next == records {
							return
						}
					}
				})
			}
			for range 3 {
				writers.Go(func() { // ends after its share
					for range records / 3 {
						if _, err := l.AppendRecords(Record{Value: []byte("v")}); err != nil {
							t.Error(err)
							return
						}
					}
				})
			}
			writers.Wait()
			readers.Wait()
		})
	}
}

// Claim (L5): a record that is written and could not be synced is shown to nobody.
func TestTailShowsNothingUnsynced(t *testing.T) {
	d := faultfs.New(t)
	l := openTestLog(t, d, smallLog())
	defer l.Close()
	putN(t, l, 3)
	d.Fail(faultfs.Fault{Kind: faultfs.OpWrite, Pattern: faultfs.JournalPattern, Times: -1})
	d.Fail(faultfs.Fault{Kind: faultfs.OpSync, Times: -1})
	if _, err := l.AppendRecords(Record{Value: []byte("lost")}); !errors.Is(err, ErrPoisoned) {
		t.Fatalf("append: %v, want it to have failed", err)
	}
	if l.End() != 4 {
		t.Fatalf("end %d: the record was to be in the file", l.End())
	}
	if got := collect(t, l, 0, 100); len(got) != 3 {
		t.Fatalf("%d records are shown, want 3", len(got))
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	for r, err := range l.Tail(ctx, 3) {
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("record %d, %v", r.Offset, err)
		}
	}
}

// nextIn runs Next in a goroutine that ends with it.
func nextIn(ctx context.Context, r *Reader) <-chan error {
	done := make(chan error, 1)
	go func() { // ends when Next returns, at the latest with ctx
		_, err := r.Next(ctx)
		done <- err
	}()
	return done
}

// Claim: a waiting reader ends with its context, with a truncation below it, and with the log.
func TestWaitingReadersAreWoken(t *testing.T) {
	for name, c := range map[string]struct {
		do   func(l *Log, cancel func()) error
		want error
	}{
		"context":  {func(_ *Log, cancel func()) error { cancel(); return nil }, context.Canceled},
		"truncate": {func(l *Log, _ func()) error { return l.TruncateTo(5) }, ErrOutOfRange},
		"reset":    {func(l *Log, _ func()) error { return l.ResetTo(50) }, ErrOutOfRange},
		"start":    {func(l *Log, _ func()) error { l.raiseStart(11); return nil }, ErrOutOfRange},
		"close":    {func(l *Log, _ func()) error { return l.Close() }, ErrClosed},
		"append":   {func(l *Log, _ func()) error { _, err := l.AppendRecords(Record{}); return err }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			l := openTestLog(t, faultfs.New(t), smallLog())
			defer l.Close()
			putN(t, l, 10)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			done := nextIn(ctx, l.NewReader(10))
			for l.news.waiting.Load() == nil {
				time.Sleep(time.Millisecond) // until it waits
			}
			if err := c.do(l, cancel); err != nil {
				t.Fatal(err)
			}
			if err := <-done; !errors.Is(err, c.want) {
				t.Fatalf("got %v, want %v", err, c.want)
			}
		})
	}
}

// Claim: a reader learns that records it has read were truncated, also when the log has grown past it again; one that
// has not read them does not care.
func TestTruncationIsToldToReaders(t *testing.T) {
	l := openTestLog(t, faultfs.New(t), smallLog())
	defer closeLog(t, l)
	putN(t, l, 10)
	ahead, behind := l.NewReader(10), l.NewReader(2)
	if err := l.TruncateTo(5); err != nil {
		t.Fatal(err)
	}
	for range 10 {
		put(t, l, "new")
	}
	var out *OutOfRangeError
	if _, err := ahead.Next(t.Context()); !errors.As(err, &out) || *out != (OutOfRangeError{Want: 10, Start: 0, End: 5}) {
		t.Fatalf("the reader at 10: %v", err)
	}
	var got []string
	for behind.Offset() < 15 {
		data, err := behind.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for r := range batch.Records(data) {
			got = append(got, string(r.Value))
		}
	}
	for i, v := range got {
		if want := i+2 < 5; want != (v == valueOf(Offset(i+2))) {
			t.Fatalf("offset %d: %q", i+2, v)
		}
	}
}

// Claim: a copy that follows Tail, and goes back where the error of a truncation says, ends as the log is, whatever
// truncations, resets, retention and appends came between: no record of another life is ever in it.
func TestMirrorFollowsTheLog(t *testing.T) {
	c := smallLog()
	c.RetentionAge, c.RetentionBytes = -1, 3000
	l := openTestLog(t, faultfs.New(t), c)
	defer closeLog(t, l)
	const last = "the end"
	var readers sync.WaitGroup
	for range 2 {
		readers.Go(func() { mirror(t, l, last) }) // ends with the last record
	}
	rng := rand.New(rand.NewPCG(1, 2))
	steps := 1500
	if testing.Short() {
		steps = 500
	}
	for i := range steps {
		var err error
		switch rng.IntN(12) {
		case 0:
			err = l.TruncateTo(max(l.Start(), l.End()-Offset(rng.IntN(12))))
		case 1:
			_, err = l.Retain(time.UnixMilli(1000))
		case 2:
			if rng.IntN(10) == 0 {
				err = l.ResetTo(l.End() + Offset(rng.IntN(5)) - 2)
			}
		default:
			_, err = l.AppendRecords(Record{Value: fmt.Appendf(nil, "%d-%s", i, strings.Repeat("y", rng.IntN(200)))}, Record{Value: fmt.Appendf(nil, "%d", i)})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if _, err := l.AppendRecords(Record{Value: []byte(last)}); err != nil {
		t.Fatal(err)
	}
	readers.Wait()
}

// mirror copies the log until it meets a record with the value last, and compares.
func mirror(t *testing.T, l *Log, last string) {
	copied := map[Offset]string{}
	for from, met := l.Start(), false; !met; {
		for r, err := range l.Tail(t.Context(), from) {
			var out *OutOfRangeError
			if errors.As(err, &out) {
				if from = out.Start; out.Want > out.End {
					from = max(out.Start, out.End)
				}
				for o := range copied {
					if o >= from {
						delete(copied, o)
					}
				}
				break
			}
			if err != nil {
				t.Error(err)
				return
			}
			copied[Offset(r.Offset)] = string(r.Value)
			if met = string(r.Value) == last; met {
				break
			}
		}
	}
	for _, r := range mustContents(t, l) {
		if copied[r.offset] != r.value {
			t.Errorf("offset %d: the copy has %.20q, the log %.20q", r.offset, copied[r.offset], r.value)
			return
		}
	}
}

// Claim: retention that overtakes a reader is told, with the place to go on.
func TestRetentionIsToldToReaders(t *testing.T) {
	l := openTestLog(t, faultfs.New(t), smallLog())
	defer closeLog(t, l)
	putN(t, l, 40)
	r := l.NewReader(3)
	if err := l.SetStart(20); err != nil {
		t.Fatal(err)
	}
	if n, err := l.Retain(time.UnixMilli(1000)); n == 0 || err != nil {
		t.Fatalf("%d segments went, %v", n, err)
	}
	var out *OutOfRangeError
	if _, err := r.Next(t.Context()); !errors.As(err, &out) || out.Want != 3 || out.Start != 20 {
		t.Fatalf("got %v", err)
	}
	if got := collect(t, l, out.Start, l.End()); len(got) != 20 || got[0].Offset != 20 {
		t.Fatalf("%d records from the start", len(got))
	}
}

// Claim: readers pass the gaps that compaction leaves, and what is gone is said to be.
func TestReadersPassCompactedGaps(t *testing.T) {
	l := openTestLog(t, faultfs.New(t), compacted())
	defer closeLog(t, l)
	for i := range 60 {
		if _, err := l.AppendRecords(Record{Key: fmt.Appendf(nil, "k%d", i%3), Value: fmt.Appendf(nil, "%d-%s", i, strings.Repeat("z", 60))}); err != nil {
			t.Fatal(err)
		}
	}
	early := l.NewReader(1)
	mustClean(t, l, cleanAt(time.Now()))
	if _, err := l.Get(1); !errors.Is(err, ErrNoRecord) {
		t.Fatalf("a record that compaction took: %v", err)
	}
	newest := map[string]int64{}
	seen := 0
	for early.Offset() < l.End() {
		data, err := early.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for r := range batch.Records(data) {
			newest[string(r.Key)] = r.Offset
			seen++
		}
	}
	if len(newest) != 3 || newest["k0"] != 57 || newest["k1"] != 58 || newest["k2"] != 59 || seen > 40 {
		t.Fatalf("newest %v of %d records", newest, seen)
	}
}

// Claim: bytes that are not what was appended are named and not returned.
func TestReaderNamesDamage(t *testing.T) {
	d := faultfs.New(t)
	l := openTestLog(t, d, DefaultConfig())
	defer closeLog(t, l)
	putN(t, l, 3)
	first := l.Size() / 3
	file := fileNames(t, d, logSuffix)[0]
	if err := d.Damage(file, first+70, 1); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Get(0); err != nil {
		t.Fatal(err)
	}
	var c *CorruptError
	if _, err := l.Get(1); !errors.As(err, &c) || c.Position != first || c.File != file {
		t.Fatalf("got %v", err)
	}
}

// Claim (L5, L6): what a tail has shown is there after a loss of power, in the same places, unless it was truncated; and
// after the restart a tail shows all that was acknowledged. Whatever operation fails or is cut off.
// Method: the life of TestAcknowledgedBatchesSurviveAnyFault, with a reader that looks after each step.
func TestTailedRecordsSurviveAnyFault(t *testing.T) {
	mixes := faultfs.Mixes()
	stride := 1
	if testing.Short() {
		stride = 5
	}
	for n := 0; ; n += stride {
		d := faultfs.New(nil, faultfs.Seed(uint64(n)))
		f := newLife(d, faultConfig(Sync), uint64(n))
		if n%2 == 0 {
			d.CutAtOperation(n)
		} else {
			d.FailOperation(n)
		}
		shown := f.liveTailed(t)
		fired := d.Fired()
		mix := mixes[n%len(mixes)]
		d.CutPower(mix.Options()...)
		f.leave()
		f.verify(t)
		got := map[Offset]string{}
		for r, err := range f.log.Records(f.log.Start(), f.log.End()) {
			if err != nil {
				t.Fatalf("operation %d, %v: %v", n, mix, err)
			}
			got[Offset(r.Offset)] = string(r.Value)
		}
		for o, value := range shown {
			if o >= f.log.Start() && got[o] != value {
				t.Fatalf("operation %d, %v: a reader saw %q at %d; now it is %q", n, mix, value, o, got[o])
			}
		}
		for o, value := range f.acked {
			if o >= f.log.Start() && got[o] != value {
				t.Fatalf("operation %d, %v: acknowledged %q at %d; a reader gets %q", n, mix, value, o, got[o])
			}
		}
		f.leave()
		if !fired {
			t.Logf("%d operations", n)
			return
		}
	}
}

// liveTailed runs the script as live does, and returns what a reader has seen of it that nobody asked to take back.
func (f *life) liveTailed(t *testing.T) map[Offset]string {
	shown := map[Offset]string{}
	var r *Reader
	for _, step := range f.script() {
		was := f.log
		var end Offset
		if was != nil {
			end = was.End()
		}
		err := step()
		if f.log == nil || errors.Is(err, faultfs.ErrPowerCut) || errors.Is(err, ErrClosed) || f.lostNames() {
			if f.log == was && was != nil {
				f.forgetCut(shown, end, r)
			}
			return shown
		}
		if f.log != was {
			r = f.log.NewReader(f.log.Start())
		}
		for {
			data, err := r.read()
			var out *OutOfRangeError
			if errors.As(err, &out) {
				if out.Want > out.End {
					forgetAbove(shown, out.End)
				}
				r = f.log.NewReader(f.log.Start()) // for the next step
			}
			if err != nil || data == nil {
				break
			}
			for rec := range batch.Records(data) {
				shown[Offset(rec.Offset)] = string(rec.Value)
			}
		}
	}
	return shown
}

// forgetCut: the step that was cut off may have been a truncation, or a reset, that the disk has already.
func (f *life) forgetCut(shown map[Offset]string, end Offset, r *Reader) {
	if f.log.End() < end {
		forgetAbove(shown, f.log.End())
	}
	if r != nil {
		for n := r.seen.next.Load(); n != nil; n = n.next.Load() {
			forgetAbove(shown, n.at)
		}
	}
}

func forgetAbove(shown map[Offset]string, o Offset) {
	for at := range shown {
		if at >= o {
			delete(shown, at)
		}
	}
}

// Claim (L5): bytes that a truncation has replaced while they were read are not shown.
// Method: between the reader's look at the log and its read of the file, truncate and write a record that cannot be synced.
func TestReaderDropsWhatWasReplaced(t *testing.T) {
	d := faultfs.New(t)
	var l *Log
	armed := false
	d.BeforeRead(func(name string) {
		if !armed || !strings.HasSuffix(name, logSuffix) {
			return
		}
		armed = false
		if err := l.TruncateTo(5); err != nil {
			t.Error(err)
		}
		d.Fail(faultfs.Fault{Kind: faultfs.OpWrite, Pattern: faultfs.JournalPattern, Times: -1})
		d.Fail(faultfs.Fault{Kind: faultfs.OpSync, Times: -1})
		a := leaderAppend(newBatch(1000, []string{strings.Replace(valueOf(5), "x", "Y", 1)}))
		l.Enqueue(a, 0)
		if err := l.Write(a); err != nil {
			t.Error(err)
		}
	})
	l = openTestLog(t, d, DefaultConfig())
	defer l.Close()
	putN(t, l, 10)
	r := l.NewReader(5)
	armed = true
	if data, err := r.read(); data != nil || err != nil || armed {
		t.Fatalf("got %d bytes, %v; truncated: %v", len(data), err, !armed)
	}
}
