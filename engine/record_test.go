package engine

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"sync"
	"testing"
	"time"

	"millrace/engine/batch"
	"millrace/engine/vfs/faultfs"
)

// Claim: records come back as they went in, with every codec: nulls, empty values, headers, times; 0 is the present.
func TestRecordsAreReadBack(t *testing.T) {
	now := time.UnixMilli(1_700_000_000_000)
	l := openTestLog(t, faultfs.New(t), DefaultConfig(), func(o *LogOptions) { o.Now = func() time.Time { return now } })
	defer closeLog(t, l)
	in := []Record{
		{Timestamp: 0, Key: []byte("k"), Value: []byte("v")},
		{Timestamp: -1, Value: []byte{}},
		{Timestamp: 5, Key: []byte{}, Headers: []Header{{Key: "a", Value: []byte("1")}, {Key: "b"}}},
	}
	var want []Record
	expect := func(base Offset) {
		for i, r := range in {
			r.Offset = int64(base) + int64(i)
			if r.Timestamp == 0 {
				r.Timestamp = now.UnixMilli()
			}
			want = append(want, r)
		}
	}
	base, err := l.AppendRecords(in...)
	if err != nil {
		t.Fatal(err)
	}
	expect(base)
	for c := batch.None; c <= batch.Zstd; c++ {
		a, err := l.NewAppend(c, in...)
		if err == nil {
			err = l.Append(a, NoEpoch)
		}
		if err != nil {
			t.Fatalf("%v: %v", c, err)
		}
		if a.Info.Codec() != c {
			t.Fatalf("codec %v, want %v", a.Info.Codec(), c)
		}
		expect(a.Base)
	}
	if got := collect(t, l, 0, l.End()); !reflect.DeepEqual(got, want) {
		t.Fatalf("got  %+v\nwant %+v", got, want)
	}
	if got := collect(t, l, 4, 8); !reflect.DeepEqual(got, want[4:8]) {
		t.Fatalf("got  %+v\nwant %+v", got, want[4:8])
	}
	for o, w := range want {
		if got, err := l.Get(Offset(o)); err != nil || !reflect.DeepEqual(got, w) {
			t.Fatalf("offset %d: %+v, %v; want %+v", o, got, err, w)
		}
	}
	if _, err := l.Get(l.End()); !errors.Is(err, ErrOutOfRange) {
		t.Fatalf("a look-up at the end: %v", err)
	}
}

// collect clones the records of [from, to).
func collect(t logTB, l *Log, from, to Offset) []Record {
	t.Helper()
	var got []Record
	for r, err := range l.Records(from, to) {
		if err != nil {
			t.Fatalf("records [%d, %d): %v", from, to, err)
		}
		got = append(got, r.Clone())
	}
	return got
}

// Claim: what cannot be stored is refused, and the log is as it was.
func TestAppendOfRecordsRefuses(t *testing.T) {
	l := openTestLog(t, faultfs.New(t), compacted())
	defer closeLog(t, l)
	if _, err := l.AppendRecords(); err == nil {
		t.Error("no records were appended")
	}
	if _, err := l.AppendRecords(Record{Key: []byte("k")}, Record{Value: []byte("v")}); !errors.Is(err, ErrNoKey) {
		t.Errorf("no key: %v", err)
	}
	if _, err := l.AppendRecords(Record{Key: []byte("k"), Value: make([]byte, 2000)}); !errors.Is(err, ErrTooLarge) {
		t.Errorf("larger than a segment: %v", err)
	}
	if _, err := l.NewAppend(batch.Codec(9), Record{Key: []byte("k")}); err == nil {
		t.Error("a codec that does not exist was taken")
	}
	if l.End() != 0 {
		t.Errorf("end %d", l.End())
	}
}

// Claim: one goroutine that begins many appends and then waits pays for one write and one sync.
func TestPipelinedAppendsShareARound(t *testing.T) {
	l := openTestLog(t, faultfs.New(t), DefaultConfig(), func(o *LogOptions) { o.JournalBytes = 1 << 20 })
	defer closeLog(t, l)
	before := l.Metrics()
	list := make([]*Append, 50)
	for i := range list {
		a, err := l.NewAppend(batch.None, Record{Value: fmt.Appendf(nil, "%d", i)})
		if err != nil {
			t.Fatal(err)
		}
		l.Enqueue(a, NoEpoch)
		list[i] = a
	}
	for i, a := range list {
		if err := errors.Join(l.Write(a), a.Wait()); err != nil {
			t.Fatal(err)
		}
		if a.Base != Offset(i) {
			t.Fatalf("append %d is at %d", i, a.Base)
		}
	}
	m := l.Metrics()
	if m.Writes != 1 || m.Batches != 50 || m.Records != 50 || m.Appended != m.Bytes {
		t.Errorf("%d writes, %d batches, %d records, %d of %d bytes; want 1 write of 50", m.Writes, m.Batches, m.Records, m.Appended, m.Bytes)
	}
	if rounds := m.Journal.Rounds - before.Journal.Rounds; rounds > 2 { // one, and one that the journal's keeper may run
		t.Errorf("%d rounds for 50 appends", rounds)
	}
	if m.Durable != 50 || m.Readable != 50 || m.End != 50 {
		t.Errorf("durable %d, readable %d, end %d", m.Durable, m.Readable, m.End)
	}
}

// Claim: many goroutines may append records at once, and each learns where its own are.
func TestConcurrentRecordsKeepTheirPlaces(t *testing.T) {
	l := openTestLog(t, faultfs.New(t), smallLog())
	defer closeLog(t, l)
	var mu sync.Mutex
	places := map[Offset]string{}
	var all sync.WaitGroup
	for w := range 8 {
		all.Go(func() { // ends after its 30 appends
			for i := range 30 {
				value := fmt.Sprintf("%d-%d", w, i)
				o, err := l.AppendRecords(Record{Value: []byte(value)}, Record{Value: []byte(value + "b")})
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				places[o], places[o+1] = value, value+"b"
				mu.Unlock()
			}
		})
	}
	all.Wait()
	got := collect(t, l, 0, l.End())
	if len(got) != len(places) {
		t.Fatalf("%d records, want %d", len(got), len(places))
	}
	for _, r := range got {
		if want := places[Offset(r.Offset)]; !bytes.Equal(r.Value, []byte(want)) {
			t.Fatalf("offset %d holds %q, want %q", r.Offset, r.Value, want)
		}
	}
}
