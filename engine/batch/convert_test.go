package batch

import (
	"bytes"
	"testing"

	"pgregory.net/rapid"
)

// Claim: any mixture of messages and wrappers of magic 0 and 1 becomes one good batch with all records in order.
// Method: random sets, converted, checked and compared record by record.
func TestUpConvertMakesOneBatchOfAnySet(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var set []byte
		var want []Record
		last := None
		field := rapid.OneOf(rapid.Just([]byte(nil)), rapid.SliceOfN(rapid.Byte(), 0, 30))
		draw := func(magic int8, offset int64) message {
			m := message{magic: magic, offset: offset, timestamp: -1, key: field.Draw(t, "key"), value: field.Draw(t, "value")}
			if magic == 1 {
				m.timestamp = rapid.Int64Range(-1, 1<<50).Draw(t, "ms")
			}
			want = append(want, Record{Offset: int64(len(want)), Timestamp: m.timestamp, Key: m.key, Value: m.value})
			return m
		}
		for range rapid.IntRange(1, 6).Draw(t, "entries") {
			magic := int8(rapid.IntRange(0, 1).Draw(t, "magic"))
			if rapid.Bool().Draw(t, "plain") {
				m := draw(magic, rapid.Int64Range(0, 9).Draw(t, "offset"))
				set = appendMessage(set, &m)
				continue
			}
			var inner []message
			for i := range rapid.IntRange(1, 5).Draw(t, "inner") {
				inner = append(inner, draw(magic, int64(i)))
			}
			last = rapid.SampledFrom(legacyCodecs).Draw(t, "codec")
			set = append(set, wrap(last, message{magic: magic, timestamp: 5}, inner...)...)
		}
		b, err := UpConvert(set, 0)
		if err != nil {
			t.Fatal(err)
		}
		info, err := Check(b, &Rules{})
		if err != nil {
			t.Fatal(err)
		}
		if info.Codec() != last || info.BaseOffset != 0 || int(info.Count) != len(want) {
			t.Fatalf("%+v, want codec %v and %d records", info, last, len(want))
		}
		got, err := collect(b)
		if err != nil {
			t.Fatal(err)
		}
		requireEqual(t, got, want)
	})
}

// Claim: damage in any message of a produced set, in a wrapper too, is found and the message is named.
// Method: flip a bit in the third message, plain and wrapped (the wrapper's own checksum made right).
func TestUpConvertChecksEveryMessage(t *testing.T) {
	var plain []byte
	for _, m := range three(0, 1, 2) {
		m.magic = 1
		plain = appendMessage(plain, &m)
	}
	plain[len(plain)-1] ^= 1
	value, _ := Compress(Snappy, 0, nil, plain)
	wrapped := appendMessage(nil, &message{magic: 1, attributes: byte(Snappy), value: value})
	for name, set := range map[string][]byte{"plain": plain, "wrapped": wrapped} {
		_, err := UpConvert(set, 0)
		e := requireReason(t, err, Corrupt)
		if len(e.Records) != 1 || e.Records[0].Index != 2 {
			t.Errorf("%s: %v", name, err)
		}
	}
	good := unhex(t, goldenV1)
	for n := 1; n < len(good); n++ {
		_, err := UpConvert(append(unhex(t, goldenV0), good[:n]...), 0)
		if e := requireReason(t, err, Corrupt); e.Records[0].Index != 1 {
			t.Errorf("cut after %d bytes: %v", n, err)
		}
	}
	_, err := UpConvert(nil, 0)
	requireReason(t, err, InvalidRecord)
	_, err = UpConvert(unhex(t, goldenV2), 0)
	requireReason(t, err, InvalidRecord)
	stamped := appendMessage(nil, &message{magic: 1, attributes: attrAppendTime, timestamp: 5})
	_, err = UpConvert(stamped, 0)
	requireReason(t, err, InvalidTimestamp)
}

// Claim: a batch converted down keeps keys, values, offsets, codec and (magic 1) times, and converts up to the same again.
// Method: random batches at random offsets, every codec but zstd, both magics, there and back.
func TestDownConvertKeepsWhatTheFormatCanHold(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		codec := rapid.SampledFrom([]Codec{None, Gzip, Snappy, LZ4}).Draw(t, "codec")
		magic := int8(rapid.IntRange(0, 1).Draw(t, "magic"))
		base := rapid.Int64Range(0, 1<<40).Draw(t, "base")
		want := anyRecords(t)
		b := build(codec, want, Base(base, 3))
		for i := range want {
			want[i].Offset += base
			want[i].Headers = nil
			if magic == 0 {
				want[i].Timestamp = -1
			}
		}
		set, err := DownConvert([]byte("head"), b, magic, 0)
		if err != nil || string(set[:4]) != "head" {
			t.Fatal(err)
		}
		set = set[4:]
		for rest := set; len(rest) > 0; {
			size, err := Split(rest)
			if err != nil || int8(rest[atMagic]) != magic {
				t.Fatal(err)
			}
			info, err := CheckStored(rest[:size])
			if err != nil || info.Codec() != codec {
				t.Fatalf("%+v, %v", info, err)
			}
			rest = rest[size:]
		}
		got, err := collect(set)
		if err != nil {
			t.Fatal(err)
		}
		requireEqual(t, got, want)
		again, err := UpConvert(set, 0)
		if err != nil {
			t.Fatal(err)
		}
		for i := range want {
			want[i].Offset -= base
		}
		if got, err = collect(again); err != nil {
			t.Fatal(err)
		}
		requireEqual(t, got, want)
	})
}

// Claim: an old fetcher gets the records from its offset on, no markers, old entries as they stand, and no cut batch.
// Method: a range with each of them, converted to both magics from the middle.
func TestDownConvertOfARange(t *testing.T) {
	v0, v1 := unhex(t, goldenV0), unhex(t, goldenV1)
	marker := build(None, []Record{{Key: []byte{0, 0, 0, 1}}}, Control(), Transactional(), Producer(1, 0, -1), Base(7, 0))
	plain := build(None, someRecords(3, 20), Base(8, 0))
	empty := NewBuilder(None, DefaultLevel).Bytes(Base(11, 0), LastDelta(3))
	packed := build(Gzip, someRecords(3, 20), Base(20, 0), AppendTime(99))
	for magic := range int8(2) {
		whole := bytes.Join([][]byte{v0, v1, marker, plain, empty, packed}, nil)
		set, err := DownConvert(nil, append(whole, plain[:70]...), magic, 9)
		if err != nil {
			t.Fatal(err)
		}
		var got []int64
		for r, err := range Records(set) {
			if err != nil {
				t.Fatal(err)
			}
			if want := int64(99); magic == 1 && r.Offset >= 20 && r.Timestamp != want {
				t.Errorf("append time is %d, want %d", r.Timestamp, want)
			}
			got = append(got, r.Offset)
		}
		want := []int64{5, 6, 9, 10, 20, 21, 22}
		if magic == 0 { // golden message 6 is of magic 1: converted, and below 9
			want = []int64{5, 9, 10, 20, 21, 22}
		}
		requireEqual(t, got, want)
		if !bytes.HasPrefix(set, v0) {
			t.Error("an entry that is old already was changed")
		}
	}
	broken := bytes.Clone(plain)
	broken[HeaderSize] = 0x7e
	dst := []byte("keep")
	if got, err := DownConvert(dst, broken, 1, 0); err == nil || string(got) != "keep" {
		t.Error(string(got), err)
	}
}

// Claim: a look-up by time finds the first record at or behind both time and offset, in every format, and does not expand what cannot have it.
// Method: the same four records in one entry or several, against a table of times.
func TestOffsetForTime(t *testing.T) {
	times := []int64{100, 300, 200, 300}
	var records []Record
	var messages []message
	for i, ts := range times {
		records = append(records, Record{Timestamp: ts})
		messages = append(messages, message{magic: 1, offset: int64(i), timestamp: ts})
	}
	entries := map[string][]byte{
		"gzip v1": wrap(Gzip, message{magic: 1, offset: 13, timestamp: 300}, messages...),
		"thinned": build(None, records, Base(10, 0)),
	}
	for _, codec := range allCodecs {
		entries[codec.String()] = build(codec, records, Base(10, 0))
	}
	for name, b := range entries {
		for _, c := range []struct {
			ts, from, off, rec int64
		}{{0, 0, 10, 100}, {100, 11, 11, 300}, {101, 0, 11, 300}, {101, 12, 12, 200}, {250, 12, 13, 300}, {301, 0, -1, -1}, {0, 14, -1, -1}} {
			off, rec, found, err := OffsetForTime(b, c.ts, c.from)
			if err != nil || off != c.off || rec != c.rec || found != (c.off >= 0) {
				t.Errorf("%s, time %d from %d: got %d, %d, %v, %v", name, c.ts, c.from, off, rec, found, err)
			}
		}
		if off, ts, err := MaxTimestampOffset(b); off != 11 || ts != 300 || err != nil {
			t.Errorf("%s: the newest is %d at %d, %v", name, ts, off, err)
		}
		// An entry whose header rules it out is not opened, so damage inside is not met.
		damaged := append(bytes.Clone(b[:len(b)-1]), b[len(b)-1]^0xff)
		if _, _, found, err := OffsetForTime(damaged, 301, 0); found || err != nil {
			t.Errorf("%s: %v, %v", name, found, err)
		}
	}
	stamped := build(LZ4, records, Base(10, 0), AppendTime(500))
	if off, ts, found, err := OffsetForTime(stamped, 400, 12); off != 12 || ts != 500 || !found || err != nil {
		t.Error(off, ts, found, err)
	}
	if off, ts, err := MaxTimestampOffset(stamped); off != 10 || ts != 500 || err != nil {
		t.Error(off, ts, err)
	}
	if off, ts, err := MaxTimestampOffset(unhex(t, goldenV0)); off != -1 || ts != -1 || err != nil {
		t.Error(off, ts, err)
	}
	if _, _, _, err := OffsetForTime(stamped[:70], 0, 0); err != ErrShort {
		t.Error(err)
	}
}
