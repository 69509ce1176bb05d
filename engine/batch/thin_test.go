package batch

import (
	"bytes"
	"fmt"
	"testing"
)

func thinRecords(n int) []Record {
	var out []Record
	for i := range n {
		r := Record{Timestamp: 1_700_000_000_000 + int64(i), Key: fmt.Append(nil, "key", i), Value: fmt.Append(nil, "value", i), Headers: []Header{{Key: "h", Value: []byte{byte(i)}}}}
		if i%4 == 3 {
			r.Value = nil
		}
		out = append(out, r)
	}
	return out
}

func thinBatch(t *testing.T, c Codec, n int, opts ...Option) []byte {
	t.Helper()
	b := NewBuilder(c, DefaultLevel)
	for _, r := range thinRecords(n) {
		if err := b.Add(r); err != nil {
			t.Fatal(err)
		}
	}
	return b.Bytes(opts...)
}

// Claim: what stays of a batch keeps offsets, times, headers and every field of the header, whatever the codec; a batch that
// keeps everything stays byte for byte.
func TestThinKeepsWhatItKeeps(t *testing.T) {
	for _, codec := range []Codec{None, Gzip, Snappy, LZ4, Zstd} {
		t.Run(codec.String(), func(t *testing.T) {
			b := thinBatch(t, codec, 10, Base(100, 7), Producer(42, 3, 500), Transactional())
			same, kept, err := Thin(nil, b, &Thinning{Horizon: -1, Keep: func(*Record) bool { return true }})
			if err != nil || kept != 10 || !bytes.Equal(same, b) {
				t.Fatalf("all kept: %d records, %v, bytes equal %v", kept, err, bytes.Equal(same, b))
			}
			out, kept, err := Thin([]byte("before"), b, &Thinning{Horizon: -1, Keep: func(r *Record) bool { return r.Offset%2 == 1 }})
			if err != nil || kept != 5 || string(out[:6]) != "before" {
				t.Fatalf("%d kept, %v", kept, err)
			}
			out = out[6:]
			info, err := CheckStored(out)
			if err != nil {
				t.Fatal(err)
			}
			v := View(out)
			if v.BaseOffset() != 100 || v.LastOffset() != 109 || v.LeaderEpoch() != 7 || info.ProducerID != 42 || v.ProducerEpoch() != 3 || v.BaseSequence() != 500 ||
				!v.IsTransactional() || v.Codec() != codec || v.Count() != 5 || v.HasDeleteHorizon() {
				t.Fatalf("header %+v", info)
			}
			for i, r := range mustCollect(t, out) {
				want := thinRecords(10)[2*i+1]
				if r.Offset != int64(101+2*i) || r.Timestamp != want.Timestamp || !bytes.Equal(r.Key, want.Key) || (r.Value == nil) != (want.Value == nil) || !bytes.Equal(r.Value, want.Value) {
					t.Fatalf("record %d: %+v, want %+v", i, r, want)
				}
			}
		})
	}
}

// Claim: the horizon is put once, on the first batch that keeps a null value, moves no record's time, and is never moved again.
func TestThinPutsTheHorizonOnce(t *testing.T) {
	b := thinBatch(t, None, 8, Base(0, 0))
	all := func(*Record) bool { return true }
	out, _, err := Thin(nil, b, &Thinning{Horizon: 1_800_000_000_000, Keep: all})
	if err != nil {
		t.Fatal(err)
	}
	v := View(out)
	if !v.HasDeleteHorizon() || v.BaseTimestamp() != 1_800_000_000_000 || v.MaxTimestamp() != View(b).MaxTimestamp() {
		t.Fatalf("horizon %v at %d, newest %d", v.HasDeleteHorizon(), v.BaseTimestamp(), v.MaxTimestamp())
	}
	for i, r := range mustCollect(t, out) {
		if r.Timestamp != thinRecords(8)[i].Timestamp {
			t.Fatalf("record %d has time %d", i, r.Timestamp)
		}
	}
	again, _, err := Thin(nil, out, &Thinning{Horizon: 1_900_000_000_000, Keep: func(r *Record) bool { return r.Offset > 2 }})
	if err != nil || View(again).BaseTimestamp() != 1_800_000_000_000 || len(mustCollect(t, again)) != 5 || mustCollect(t, again)[0].Timestamp != thinRecords(8)[3].Timestamp {
		t.Fatalf("a second pass moved the horizon to %d (%v)", View(again).BaseTimestamp(), err)
	}
	none, _, err := Thin(nil, b, &Thinning{Horizon: 1_800_000_000_000, Keep: func(r *Record) bool { return r.Value != nil }})
	if err != nil || View(none).HasDeleteHorizon() {
		t.Fatalf("a batch without null values got a horizon (%v)", err)
	}
}

// Claim (F022): a batch that must stay stays as a bare header that readers and recovery accept, and one that need not is gone.
func TestThinToABareHeader(t *testing.T) {
	b := thinBatch(t, Zstd, 4, Base(10, 2), Producer(9, 1, 77))
	no := func(*Record) bool { return false }
	out, kept, err := Thin(nil, b, &Thinning{Horizon: 5, Keep: no, KeepEmpty: true})
	if err != nil || kept != 0 || len(out) != HeaderSize {
		t.Fatalf("%d bytes, %d kept, %v", len(out), kept, err)
	}
	info, err := CheckStored(out)
	if err != nil {
		t.Fatal(err)
	}
	if v := View(out); v.BaseOffset() != 10 || v.LastOffset() != 13 || v.ProducerID() != 9 || v.BaseSequence() != 77 || v.LeaderEpoch() != 2 || v.HasDeleteHorizon() || v.MaxTimestamp() != View(b).MaxTimestamp() {
		t.Fatalf("header %+v", info)
	}
	if len(mustCollect(t, out)) != 0 {
		t.Fatal("records in a bare header")
	}
	if again, _, err := Thin(nil, out, &Thinning{Keep: no, KeepEmpty: true}); err != nil || !bytes.Equal(again, out) {
		t.Fatalf("a second pass changed it: %v", err)
	}
	if gone, _, err := Thin(nil, b, &Thinning{Keep: no}); err != nil || len(gone) != 0 {
		t.Fatalf("%d bytes stayed, %v", len(gone), err)
	}
}

// Claim: an old message set that loses a record becomes a batch of magic 2 with the same offsets and times.
func TestThinOldMessages(t *testing.T) {
	for _, magic := range []int8{0, 1} {
		for _, codec := range []Codec{None, Gzip} {
			set, err := DownConvert(nil, thinBatch(t, codec, 6, Base(20, 0)), magic, 20)
			if err != nil {
				t.Fatal(err)
			}
			var out []byte
			for len(set) > 0 {
				size, err := Split(set)
				if err != nil {
					t.Fatal(err)
				}
				if out, _, err = Thin(out, set[:size], &Thinning{Horizon: -1, Keep: func(r *Record) bool { return r.Offset != 22 }}); err != nil {
					t.Fatal(err)
				}
				set = set[size:]
			}
			var offsets []int64
			for _, r := range mustCollect(t, out) {
				offsets = append(offsets, r.Offset)
				if want := thinRecords(6)[r.Offset-20].Timestamp; magic == 1 && r.Timestamp != want {
					t.Fatalf("magic %d, %v: offset %d has time %d, want %d", magic, codec, r.Offset, r.Timestamp, want)
				}
			}
			if fmt.Sprint(offsets) != "[20 21 23 24 25]" {
				t.Fatalf("magic %d, %v: offsets %v", magic, codec, offsets)
			}
		}
	}
}

// Claim: what Thin makes anew is compressed at the level that is asked for, and so only.
func TestThinCompressesAtTheLevel(t *testing.T) {
	records := []Record{{Key: []byte("a"), Value: bytes.Repeat([]byte("abcabd"), 500)}, {Key: []byte("b"), Value: bytes.Repeat([]byte("abcabe"), 500)}}
	made := func(level int) []byte {
		b := NewBuilder(Gzip, level)
		if err := b.AddAt(1, records[1]); err != nil {
			t.Fatal(err)
		}
		return b.Bytes(Base(0, -1), LastDelta(1))
	}
	whole := NewBuilder(Gzip, DefaultLevel)
	for _, r := range records {
		if err := whole.Add(r); err != nil {
			t.Fatal(err)
		}
	}
	asked := Codec(-1)
	thin := Thinning{Horizon: -1, Keep: func(r *Record) bool { return string(r.Key) == "b" }, Level: func(c Codec) int { asked = c; return 1 }}
	got, _, err := Thin(nil, whole.Bytes(Base(0, -1)), &thin)
	if err != nil || asked != Gzip || !bytes.Equal(got, made(1)) || bytes.Equal(got, made(9)) {
		t.Fatalf("%v, asked for %v, %d bytes; level 1 makes %d, level 9 %d", err, asked, len(got), len(made(1)), len(made(9)))
	}
}
