package compact

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"millrace/engine/batch"
)

var epochStart = time.UnixMilli(1_700_000_000_000)

// entry is one batch of a test's log.
func entry(t testing.TB, base int64, records []batch.Record, opts ...batch.Option) []byte {
	t.Helper()
	b := batch.NewBuilder(batch.Codec(base%5), batch.DefaultLevel)
	for _, r := range records {
		if err := b.Add(r); err != nil {
			t.Fatal(err)
		}
	}
	return b.Bytes(append([]batch.Option{batch.Base(base, 0)}, opts...)...)
}

func kv(key, value string) batch.Record {
	r := batch.Record{Timestamp: epochStart.UnixMilli(), Key: []byte(key)}
	if value != "" {
		r.Value = []byte(value)
	}
	return r
}

func marker(t testing.TB, base, producer int64, commit bool) []byte {
	key := []byte{0, 0, 0, controlAbort}
	if commit {
		key[3] = controlCommit
	}
	b := batch.NewBuilder(batch.None, batch.DefaultLevel)
	if err := b.Add(batch.Record{Timestamp: epochStart.UnixMilli(), Key: key, Value: []byte{0, 0, 0, 0, 0, 0}}); err != nil {
		t.Fatal(err)
	}
	return b.Bytes(batch.Base(base, 0), batch.Producer(producer, 0, -1), batch.Transactional(), batch.Control())
}

// clean runs one whole pass over entries with a map of so many bytes and returns what stays and the map's end.
func clean(t testing.TB, entries [][]byte, from int64, mapBytes int64, last int64, o Options) ([][]byte, int64, *Pass) {
	t.Helper()
	m := NewMap(mapBytes)
	f := NewFiller(m, from, o.Aborted)
	for _, e := range entries {
		ok, err := f.Add(e)
		if err != nil {
			t.Fatal(err)
		}
		if !ok {
			break
		}
	}
	o.End = m.End()
	p := NewPass(m, o)
	p.KeepLast(last)
	var out [][]byte
	for _, e := range entries {
		got, err := p.Thin(nil, e, epochStart)
		if err != nil {
			t.Fatal(err)
		}
		if len(got) > 0 {
			out = append(out, got)
		}
	}
	return out, m.End(), p
}

func show(t testing.TB, entries [][]byte) string {
	t.Helper()
	var b bytes.Buffer
	for _, e := range entries {
		for r, err := range batch.Records(e) {
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(&b, "%d:%s=%s ", r.Offset, r.Key, r.Value)
		}
	}
	return b.String()
}

// Claim (F026): whatever the keys, batches, codecs and the map's size, after enough passes exactly the newest record of each key is
// left, at its own offset; no pass loses a newest record or the end of the log.
func TestPassesLeaveTheNewest(t *testing.T) {
	for seed := range uint64(60) {
		rnd := rand.New(rand.NewPCG(seed, 7))
		var log [][]byte
		newest := map[string]int64{}
		values := map[int64]string{}
		next := int64(0)
		for range 1 + rnd.IntN(40) {
			var rs []batch.Record
			for range 1 + rnd.IntN(8) {
				k, v := fmt.Sprint("k", rnd.IntN(20)), fmt.Sprint("v", rnd.IntN(1000))
				at := next + int64(len(rs))
				newest[k], values[at] = at, v
				rs = append(rs, kv(k, v))
			}
			log = append(log, entry(t, next, rs))
			next += int64(len(rs))
		}
		mapBytes := int64(entryBytes * (2 + rnd.IntN(30)))
		now := epochStart
		for from := int64(0); from < next; {
			kept, end, p := clean(t, log, from, mapBytes, next-1, Options{Now: now, DeleteRetention: time.Hour})
			if end <= from {
				t.Fatalf("seed %d: a pass from %d got no further than %d", seed, from, end)
			}
			if p.Stats.BytesOut > p.Stats.BytesIn+60*int64(len(log)) {
				t.Fatalf("seed %d: %+v", seed, p.Stats)
			}
			log, from = kept, end
		}
		want := map[int64]bool{}
		for _, at := range newest {
			want[at] = true
		}
		got := map[int64]bool{}
		last := int64(-1)
		for _, e := range log {
			info, err := batch.CheckStored(e)
			if err != nil {
				t.Fatal(err)
			}
			if info.BaseOffset <= last {
				t.Fatalf("seed %d: batch %d after %d", seed, info.BaseOffset, last)
			}
			last = info.LastOffset()
			for r, err := range batch.Records(e) {
				if err != nil {
					t.Fatal(err)
				}
				got[r.Offset] = true
				if string(r.Value) != values[r.Offset] {
					t.Fatalf("seed %d: offset %d has %s", seed, r.Offset, r.Value)
				}
			}
		}
		if last != next-1 {
			t.Fatalf("seed %d: the log ends at %d, was %d", seed, last, next-1)
		}
		if len(got) != len(want) {
			t.Fatalf("seed %d: %d records left, want %d: %s", seed, len(got), len(want), show(t, log))
		}
		for at := range want {
			if !got[at] {
				t.Fatalf("seed %d: the newest record %d is gone", seed, at)
			}
		}
	}
}

// Claim (F024): the first pass that meets a null value fixes when it goes; later passes without new writes take it then.
func TestNullValuesGoAfterTheirHorizon(t *testing.T) {
	log := [][]byte{entry(t, 0, []batch.Record{kv("a", "1")}), entry(t, 1, []batch.Record{kv("a", ""), kv("b", "2")}), entry(t, 3, []batch.Record{kv("c", "3")})}
	now := epochStart
	var goes int64
	pass := func() string {
		var p *Pass
		log, _, p = clean(t, log, 0, 1000, 3, Options{Now: now, DeleteRetention: 3 * time.Second})
		goes = p.NextHorizon()
		return show(t, log)
	}
	horizon := epochStart.Add(3 * time.Second).UnixMilli()
	for _, step := range []struct {
		wait time.Duration
		want string
		goes int64
	}{{0, "1:a= 2:b=2 3:c=3 ", horizon}, {2 * time.Second, "1:a= 2:b=2 3:c=3 ", horizon}, {2 * time.Second, "2:b=2 3:c=3 ", 0}} {
		now = now.Add(step.wait)
		if got := pass(); got != step.want || goes != step.goes {
			t.Fatalf("after %s: %q, want %q; next horizon %d, want %d", now.Sub(epochStart), got, step.want, goes, step.goes)
		}
	}
}

// Claim: records of aborted transactions neither stay nor shadow older ones; the marker stays while readers may hold its records,
// and goes after its own horizon; a commit marker goes likewise once its records are gone.
func TestTransactions(t *testing.T) {
	txn := func(base, producer int64, rs ...batch.Record) []byte {
		return entry(t, base, rs, batch.Producer(producer, 0, 0), batch.Transactional())
	}
	log := [][]byte{
		entry(t, 0, []batch.Record{kv("a", "old"), kv("b", "old")}),
		txn(2, 1, kv("a", "aborted")),
		txn(3, 2, kv("b", "committed")),
		marker(t, 4, 1, false),
		marker(t, 5, 2, true),
		entry(t, 6, []batch.Record{kv("b", "newest"), kv("c", "end")}),
	}
	now := epochStart
	o := func(aborted ...Aborted) Options {
		return Options{Now: now, DeleteRetention: time.Second, Aborted: aborted}
	}
	var p *Pass
	log, _, p = clean(t, log, 0, 1000, 7, o(Aborted{1, 2, 4, 2}))
	if got := show(t, log); got != "0:a=old 4:\x00\x00\x00\x00=\x00\x00\x00\x00\x00\x00 5:\x00\x00\x00\x01=\x00\x00\x00\x00\x00\x00 6:b=newest 7:c=end " {
		t.Fatalf("first pass: %q", got)
	}
	still := p.StillAborted()
	if !slices.Equal(still, []Aborted{{1, 2, 4, 2}}) {
		t.Fatalf("the new index has %v", still)
	}
	// The second pass meets no records before the markers: they get their horizon. The third, after it, drops them.
	log, _, p = clean(t, log, 0, 1000, 7, o(still...))
	if got := len(log); got != 4 || len(p.StillAborted()) != 0 {
		t.Fatalf("second pass: %d entries", got)
	}
	now = now.Add(2 * time.Second)
	log, _, _ = clean(t, log, 0, 1000, 7, o())
	if got := show(t, log); got != "0:a=old 6:b=newest 7:c=end " {
		t.Fatalf("third pass: %q", got)
	}
}

// Claim: the newest batch of a live producer stays as a bare header, and so does the last batch of the range.
func TestLastBatchesStay(t *testing.T) {
	idempotent := func(base, producer int64, seq int32, rs ...batch.Record) []byte {
		return entry(t, base, rs, batch.Producer(producer, 0, seq))
	}
	log := [][]byte{
		idempotent(0, 5, 0, kv("a", "1")),
		idempotent(1, 5, 1, kv("a", "2")),
		idempotent(2, 6, 0, kv("a", "3")),
		entry(t, 3, []batch.Record{kv("a", "4")}),
		entry(t, 4, []batch.Record{{Timestamp: 1, Value: []byte("no key")}}),
	}
	out, _, p := clean(t, log, 0, 1000, 4, Options{Now: epochStart, Producers: map[int64]Newest{5: {Data: 1}}})
	var bases []string
	for _, e := range out {
		v := batch.View(e)
		bases = append(bases, fmt.Sprintf("%d/%d", v.BaseOffset(), v.Count()))
	}
	if got := fmt.Sprint(bases); got != "[1/0 3/1 4/0]" || p.Stats.Null != 1 {
		t.Fatalf("%s, %+v", got, p.Stats)
	}
	if v := batch.View(out[0]); v.ProducerID() != 5 || v.BaseSequence() != 1 {
		t.Fatalf("producer %d, sequence %d", v.ProducerID(), v.BaseSequence())
	}
}

// Claim: a map of any size holds what fits and refuses the rest without forgetting.
func TestMapIsBounded(t *testing.T) {
	m := NewMap(24 * 100)
	n := 0
	for m.Put(fmt.Append(nil, n), int64(n)) {
		n++
	}
	if n != 90 || m.Len() != n || m.End() != int64(n) {
		t.Fatalf("%d keys, Len %d, End %d", n, m.Len(), m.End())
	}
	if !m.Put([]byte("0"), 1000) || m.End() != 1001 {
		t.Fatal("a key that is in the map must be taken when it is full")
	}
	for i := 1; i < n; i++ {
		if at, ok := m.Newest(fmt.Append(nil, i)); !ok || at != int64(i) {
			t.Fatalf("key %d: %d %v", i, at, ok)
		}
	}
	if _, ok := m.Newest([]byte("absent")); ok {
		t.Fatal("a key nobody put")
	}
	m.Clear()
	if _, ok := m.Newest([]byte("0")); ok || m.End() != 0 {
		t.Fatal("not empty after Clear")
	}
}

// What the two passes cost: 100 records of 100 bytes to a batch, a tenth of them distinct.
func BenchmarkPass(b *testing.B) {
	var log [][]byte
	size := 0
	for i := range 200 {
		var rs []batch.Record
		for j := range 100 {
			rs = append(rs, batch.Record{Timestamp: epochStart.UnixMilli(), Key: fmt.Append(nil, "key-", (i*100+j)%2000), Value: make([]byte, 80)})
		}
		bb := batch.NewBuilder(batch.None, batch.DefaultLevel)
		for _, r := range rs {
			if err := bb.Add(r); err != nil {
				b.Fatal(err)
			}
		}
		e := bb.Bytes(batch.Base(int64(i*100), 0))
		size += len(e)
		log = append(log, e)
	}
	b.SetBytes(int64(size))
	for b.Loop() {
		clean(b, log, 0, 1<<20, 19_999, Options{Now: epochStart})
	}
}
