package batch

import (
	"bytes"
	"errors"
	"testing"
)

// fuzzExpanded keeps the fuzzer from spending its time on big payloads.
const fuzzExpanded = 1 << 20

// seeds are entries of every magic and codec, whole and cut.
func seeds(f *testing.F) [][]byte {
	all := [][]byte{unhex(f, goldenV0), unhex(f, goldenV1), unhex(f, goldenV2)}
	records := append(goldenRecords(), someRecords(3, 40)...)
	for _, codec := range allCodecs {
		all = append(all, build(codec, records, Producer(1, 0, 0)))
	}
	for _, codec := range legacyCodecs {
		all = append(all,
			wrap(codec, message{magic: 0, offset: 2}, three(0, 1, 2)...),
			wrap(codec, message{magic: 1, offset: 2, timestamp: 5}, three(0, 1, 2)...))
	}
	all = append(all, bytes.Join(all, nil), all[3][:70])
	return all
}

// rightSums makes the checksums of all entries right, so that the fuzzer gets behind them.
func rightSums(b []byte) []byte {
	b = bytes.Clone(b)
	for rest := b; len(rest) > 0; {
		size, err := Split(rest)
		if err != nil {
			break
		}
		if rest[atMagic] == 2 {
			resum(rest[:size])
		} else {
			sealMessage(rest[:size], 0)
		}
		rest = rest[size:]
	}
	return b
}

func fuzzEntries(f *testing.F, check func(t *testing.T, b []byte)) {
	for _, s := range seeds(f) {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		check(t, bytes.Clone(b))
		check(t, rightSums(b))
	})
}

// Claim: Check never panics, and what it takes can be stored, read, and converted.
func FuzzCheck(f *testing.F) {
	fuzzEntries(f, func(t *testing.T, b []byte) {
		info, err := Check(b, &Rules{MaxExpanded: fuzzExpanded})
		if err != nil {
			var e *Error
			if !errors.As(err, &e) {
				t.Fatalf("not a refusal: %v", err)
			}
			return
		}
		stored, err := CheckStored(b)
		if err != nil || stored != info {
			t.Fatalf("%+v, stored %+v, %v", info, stored, err)
		}
		if _, err := Check(b, &Rules{FromFollowerOrDisk: true, MaxExpanded: fuzzExpanded}); err != nil {
			t.Fatal(err)
		}
		got, err := collect(b)
		if err != nil || len(got) != int(info.Count) {
			t.Fatalf("%d of %d records, %v", len(got), info.Count, err)
		}
		payload, err := Decompress(info.Codec(), nil, View(b).Payload(), fuzzExpanded)
		if err != nil {
			t.Fatal(err)
		}
		second, err := naive(payload, len(got), info.BaseTimestamp)
		if err != nil {
			t.Fatal(err)
		}
		requireEqual(t, second, got)
		if plain, err := Recompress(b, None, 0); err != nil {
			t.Fatal(err)
		} else if _, err := Check(plain, &Rules{}); err != nil {
			t.Fatal(err)
		}
	})
}

// Claim: CheckStored never panics, takes exactly one entry, and says CorruptError otherwise.
func FuzzCheckStored(f *testing.F) {
	fuzzEntries(f, func(t *testing.T, b []byte) {
		info, err := CheckStored(b)
		var c *CorruptError
		if err != nil && !errors.As(err, &c) {
			t.Fatalf("not a CorruptError: %v", err)
		}
		if err == nil && (info.Size != len(b) || info.LastOffset() < info.BaseOffset) {
			t.Fatalf("%+v of %d bytes", info, len(b))
		}
	})
}

// Claim: Split never panics and never finds an entry longer than what is there.
func FuzzSplit(f *testing.F) {
	fuzzEntries(f, func(t *testing.T, b []byte) {
		size, err := Split(b)
		if err == nil && (size > len(b) || size < LogOverhead+messageOverheadV0) || err == ErrShort && size != 0 && size <= len(b) {
			t.Fatalf("%d of %d bytes, %v", size, len(b), err)
		}
	})
}

// Claim: Records, OffsetForTime and MaxTimestampOffset never panic, and agree with each other.
func FuzzRecords(f *testing.F) {
	fuzzEntries(f, func(t *testing.T, b []byte) {
		size, err := Split(b)
		if err != nil {
			size = len(b)
		}
		records, err := collect(b[:size])
		off, ts, err2 := MaxTimestampOffset(b[:size])
		if (err == nil) != (err2 == nil) && len(b) > 0 {
			t.Fatalf("%v, %v", err, err2)
		}
		_, _, _, _ = OffsetForTime(b[:size], 1002, 1)
		for _, r := range records {
			if err == nil && r.Timestamp > ts {
				t.Fatalf("%d is newer than %d at %d", r.Timestamp, ts, off)
			}
		}
	})
}

// Claim: UpConvert never panics, and its result is a batch that Check takes.
func FuzzUpConvert(f *testing.F) {
	fuzzEntries(f, func(t *testing.T, b []byte) {
		up, err := UpConvert(b, fuzzExpanded)
		if err != nil {
			var e *Error
			if !errors.As(err, &e) {
				t.Fatalf("not a refusal: %v", err)
			}
			return
		}
		info, err := Check(up, &Rules{})
		if err != nil || info.BaseOffset != 0 {
			t.Fatalf("%+v, %v", info, err)
		}
	})
}

// Claim: DownConvert never panics, never touches what stood in dst, and its result is whole entries of the magic asked for.
func FuzzDownConvert(f *testing.F) {
	fuzzEntries(f, func(t *testing.T, b []byte) {
		for magic := range int8(2) {
			set, err := DownConvert([]byte("dst"), b, magic, 1)
			if string(set[:3]) != "dst" || err != nil && len(set) != 3 {
				t.Fatalf("dst was changed: %v", err)
			}
			for set = set[3:]; len(set) > 0; {
				size, err := Split(set)
				if err != nil || int8(set[atMagic]) > magic {
					t.Fatal(err)
				}
				set = set[size:]
			}
		}
	})
}

// Claim: Decompress never panics, whatever the codec, and never gives more than it was allowed.
func FuzzDecompress(f *testing.F) {
	for _, codec := range allCodecs {
		b, _ := Compress(codec, 0, nil, bytes.Repeat([]byte("seed "), 50))
		f.Add(int8(codec), b, uint32(250))
	}
	for _, c := range bombs() {
		f.Add(int8(c.codec), c.payload[:min(len(c.payload), 300)], uint32(1000))
	}
	f.Fuzz(func(t *testing.T, codec int8, b []byte, max uint32) {
		limit := int(max % fuzzExpanded)
		out, err := Decompress(Codec(codec), []byte("dst"), b, limit)
		if string(out[:3]) != "dst" || len(out)-3 > limit || err != nil && len(out) != 3 {
			t.Fatalf("%d bytes under a limit of %d, %v", len(out)-3, limit, err)
		}
	})
}
