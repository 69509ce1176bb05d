package batch

import (
	"bytes"
	"encoding/binary"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// Claim: whatever records a producer batches, with whatever codec, Check takes the batch and Records gives them back.
// Method: random records, all codecs; a second reader written apart from the first must agree.
func TestWhatIsBuiltIsCheckedAndReadBack(t *testing.T) {
	for _, codec := range allCodecs {
		t.Run(codec.String(), func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				records := anyRecords(t)
				b := build(codec, records)
				sent := bytes.Clone(b)
				info, err := Check(b, &Rules{})
				if err != nil {
					t.Fatal(err)
				}
				requireEqual(t, b, sent)
				if int(info.Count) != len(records) || info.Codec() != codec {
					t.Fatalf("%+v", info)
				}
				got, err := collect(b)
				if err != nil {
					t.Fatal(err)
				}
				requireEqual(t, got, records)
				payload, err := Decompress(codec, nil, View(b).Payload(), DefaultMaxExpanded)
				if err != nil {
					t.Fatal(err)
				}
				second, err := naive(payload, len(records), View(b).BaseTimestamp())
				if err != nil {
					t.Fatal(err)
				}
				requireEqual(t, second, records)
			})
		})
	}
}

// Claim: no single damaged bit of a batch goes unnoticed.
// Method: flip every bit; the batch must be refused, or (leader epoch, which is ours to write) decode to the same records.
func TestEveryFlippedBitIsAnErrorOrChangesNothing(t *testing.T) {
	records := someRecords(5, 60)
	for _, codec := range allCodecs {
		b := build(codec, records, Producer(9, 1, 0))
		for bit := range len(b) * 8 {
			damaged := bytes.Clone(b)
			damaged[bit/8] ^= 1 << (bit % 8)
			if _, err := Check(damaged, &Rules{}); err != nil {
				continue
			}
			if at := bit / 8; at < atLeaderEpoch || at >= atMagic {
				t.Fatalf("%v: bit %d of byte %d flipped unnoticed", codec, bit%8, at)
			}
			requireEqual(t, mustCollect(t, damaged), records)
		}
	}
}

// Claim: a stored entry of any magic with a flipped bit is found by recovery, except in fields outside the checksum.
// Method: flip every bit of golden entries; only offset and leader epoch may pass, and only with a legal value.
func TestEveryFlippedBitOfAStoredEntryIsFound(t *testing.T) {
	for _, text := range []string{goldenV0, goldenV1, goldenV2} {
		b := unhex(t, text)
		for bit := range len(b) * 8 {
			damaged := bytes.Clone(b)
			damaged[bit/8] ^= 1 << (bit % 8)
			_, err := CheckStored(damaged)
			outside := bit/8 < atLength || b[atMagic] == 2 && bit/8 >= atLeaderEpoch && bit/8 < atMagic
			if err == nil && !outside {
				t.Fatalf("magic %d: bit %d of byte %d flipped unnoticed", b[atMagic], bit%8, bit/8)
			}
		}
	}
}

// Claim: what passes Check can be read, even if the sender computed the checksum over nonsense.
// Method: put every value into every byte of the records, with a right checksum; accepted batches must satisfy the second reader.
func TestNonsenseWithARightChecksumIsRefusedOrReadable(t *testing.T) {
	records := goldenRecords()
	b := build(None, append(records, Record{Offset: 2, Timestamp: 1001, Key: make([]byte, 70), Value: []byte{}}))
	for at := atAttributes; at < len(b); at++ {
		for value := range 256 {
			c := bytes.Clone(b)
			c[at] = byte(value)
			resum(c)
			info, err := Check(c, &Rules{})
			if err != nil {
				continue
			}
			if _, err := naive(View(c).Payload(), int(info.Count), info.BaseTimestamp); err != nil {
				t.Fatalf("byte %d = %#x: Check took what cannot be read: %v", at, value, err)
			}
			if _, err := collect(c); err != nil {
				t.Fatalf("byte %d = %#x: Check took what Records cannot read: %v", at, value, err)
			}
		}
	}
}

// raw makes a batch around a hand-written payload.
func raw(count int32, payload string, t *testing.T) []byte {
	b := build(None, nil)
	b = append(b, unhex(t, payload)...)
	binary.BigEndian.PutUint32(b[atCount:], uint32(count))
	binary.BigEndian.PutUint32(b[atLastOffsetDelta:], uint32(count-1))
	return seal(b)
}

// Claim: each way a record can be broken is refused with the record's index and the reason.
// Method: a first good record, then a second broken in one way; both from hand-written bytes.
func TestABrokenRecordIsNamedWithItsReason(t *testing.T) {
	const good = "0c 00 00 00 01 01 00"
	for _, c := range []struct{ name, second, want string }{
		{"missing", "", "the payload ends before"},
		{"negative length", "01", "its length"},
		{"length too small for a record", "0a 00 00 02 01 01", "its length"},
		{"length past the end", "7e 00 00 02 01 01 00", "its length"},
		{"length of six bytes", "8c 80 80 80 80 00", "its length"},
		{"length with more than 32 bits", "8c 80 80 80 10", "its length"},
		{"timestamp of eleven bytes", "1e 00 8080808080808080808000 02 01 01 00", "its timestamp delta"},
		{"offset of six bytes", "16 00 00 808080808000 01 01 00", "its offset delta"},
		{"offset repeated", "0c 00 00 00 01 01 00", "its offset delta is 0, after 0"},
		{"offset skipped", "0c 00 00 04 01 01 00", "its offset delta is 2, after 0"},
		{"key length -2", "0c 00 00 02 03 01 00", "its key"},
		{"key past the end", "0e 00 00 02 08 6b 01 00", "its key"},
		{"value length -2", "0c 00 00 02 01 03 00", "its value"},
		{"value past the end", "0e 00 00 02 01 08 76 00", "its value"},
		{"header count negative", "0c 00 00 02 01 01 01", "its header count"},
		{"more headers than fit", "10 00 00 02 01 01 04 00 01", "its header count"},
		{"header key null", "10 00 00 02 01 01 02 01 01", "a header key"},
		{"header key past the end", "10 00 00 02 01 01 02 08 01", "a header key"},
		{"header value length -2", "10 00 00 02 01 01 02 00 03", "a header value"},
		{"header value past the end", "10 00 00 02 01 01 02 00 02", "a header value"},
		{"bytes behind the headers", "0e 00 00 02 01 01 00 00", "bytes are left"},
	} {
		_, err := Check(raw(2, good+c.second, t), &Rules{})
		e := requireReason(t, err, InvalidRecord)
		if len(e.Records) != 1 || e.Records[0].Index != 1 || !strings.Contains(e.Records[0].Message, c.want) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	_, err := Check(raw(1, good+good, t), &Rules{})
	if e := requireReason(t, err, InvalidRecord); !strings.Contains(e.Message, "7 bytes follow the last of 1 records") {
		t.Errorf("bytes behind the last record: %v", err)
	}
	if _, err := Check(raw(1, good, t), &Rules{}); err != nil {
		t.Errorf("the good record: %v", err)
	}
}

// Claim: each rule about the header refuses with its own reason, in Kafka's order.
// Method: change one field at a time of a good batch, keeping the checksum right, under the rules of a producer.
func TestHeaderRules(t *testing.T) {
	put16 := func(at int, v uint16) func([]byte) { return func(b []byte) { binary.BigEndian.PutUint16(b[at:], v) } }
	put32 := func(at int, v uint32) func([]byte) { return func(b []byte) { binary.BigEndian.PutUint32(b[at:], v) } }
	for _, c := range []struct {
		name   string
		change func([]byte)
		want   Reason
	}{
		{"base offset", put32(atBaseOffset+4, 1), InvalidRecord},
		{"no records", func(b []byte) { put32(atCount, 0)(b); put32(atLastOffsetDelta, ^uint32(0))(b) }, InvalidRecord},
		{"count negative", put32(atCount, ^uint32(0)), InvalidRecord},
		{"count too high", put32(atCount, 4), InvalidRecord},
		{"delta too high", put32(atLastOffsetDelta, 3), InvalidRecord},
		{"count and delta too high", func(b []byte) { put32(atCount, 4)(b); put32(atLastOffsetDelta, 3)(b) }, InvalidRecord},
		{"count and delta too low", func(b []byte) { put32(atCount, 2)(b); put32(atLastOffsetDelta, 1)(b) }, InvalidRecord},
		{"count and delta at the top", func(b []byte) { put32(atCount, 1<<31-1)(b); put32(atLastOffsetDelta, 1<<31-2)(b) }, InvalidRecord},
		{"control", put16(atAttributes, attrControl), InvalidRecord},
		{"delete horizon", put16(atAttributes, attrDeleteHorizon), InvalidRecord},
		{"transactional without producer", func(b []byte) { put16(atAttributes, attrTransactional)(b); put32(atProducerID, ^uint32(0))(b) }, InvalidRecord},
		{"sequence", put32(atBaseSequence, ^uint32(0)), InvalidRecord},
		{"producer epoch", put16(atProducerEpoch, 0xffff), InvalidRecord},
		{"append time", put16(atAttributes, attrAppendTime), InvalidTimestamp},
		{"codec 5", put16(atAttributes, 5), UnsupportedCodec},
		{"says gzip, is not", put16(atAttributes, uint16(Gzip)), InvalidRecord},
		{"says snappy, is not", put16(atAttributes, uint16(Snappy)), InvalidRecord},
		{"says lz4, is not", put16(atAttributes, uint16(LZ4)), InvalidRecord},
		{"says zstd, is not", put16(atAttributes, uint16(Zstd)), InvalidRecord},
	} {
		b := build(None, someRecords(3, 50), Producer(4, 0, 0))
		c.change(b)
		_, err := Check(resum(b), &Rules{})
		t.Log(c.name, "→", err)
		requireReason(t, err, c.want)
	}
	for name, c := range map[string]struct {
		b    []byte
		want Reason
	}{
		"nothing":      {nil, Corrupt},
		"a byte":       {[]byte{1}, Corrupt},
		"cut header":   {unhex(t, goldenV2)[:60], Corrupt},
		"cut":          {unhex(t, goldenV2)[:80], Corrupt},
		"two batches":  {append(unhex(t, goldenV2), unhex(t, goldenV2)...), InvalidRecord},
		"a message":    {unhex(t, goldenV1), InvalidRecord},
		"wrong length": {func() []byte { b := unhex(t, goldenV2); b[8] = 0x80; return b }(), Corrupt},
	} {
		_, err := Check(c.b, &Rules{})
		t.Log(name, "→", err)
		requireReason(t, err, c.want)
	}
}

// Claim: markers and thinned batches pass where they may, and only there.
// Method: a marker with and without AllowControl; a batch with gaps, an offset and fewer records as a producer's and as a follower's.
func TestWhatOnlyWeMayStore(t *testing.T) {
	marker := func() []byte {
		return build(None, []Record{{Timestamp: 1, Key: []byte{0, 0, 0, 1}, Value: make([]byte, 6)}}, Control(), Transactional(), Producer(3, 0, -1))
	}
	if _, err := Check(marker(), &Rules{AllowControl: true}); err != nil {
		t.Error(err)
	}
	_, err := Check(marker(), &Rules{})
	requireReason(t, err, InvalidRecord)
	short := build(None, []Record{{Key: []byte{0, 0}}}, Control())
	_, err = Check(short, &Rules{AllowControl: true})
	requireReason(t, err, InvalidRecord)

	thin := func(codec Codec) []byte {
		b := NewBuilder(codec, DefaultLevel)
		_ = b.AddAt(2, Record{Timestamp: 5, Value: []byte("a")})
		_ = b.AddAt(7, Record{Timestamp: 6, Value: []byte("b")})
		return b.Bytes(Base(100, 4), LastDelta(9))
	}
	for _, codec := range allCodecs {
		b := thin(codec)
		info, err := Check(b, &Rules{FromFollowerOrDisk: true})
		if err != nil || info.LastOffset() != 109 || info.Count != 2 {
			t.Errorf("%+v, %v", info, err)
		}
		requireEqual(t, mustCollect(t, b), []Record{
			{Offset: 102, Timestamp: 5, Value: []byte("a")}, {Offset: 107, Timestamp: 6, Value: []byte("b")}})
		_, err = Check(thin(codec), &Rules{})
		requireReason(t, err, InvalidRecord)
	}
	empty := NewBuilder(None, DefaultLevel).Bytes(Base(100, 4), LastDelta(9))
	empty[atAttributes+1] |= byte(Gzip) // the codec bits of an emptied batch mean nothing
	resum(empty)
	if info, err := CheckStored(empty); err != nil || info.Count != 0 || info.LastOffset() != 109 {
		t.Errorf("an emptied batch: %+v, %v", info, err)
	}
	if _, err := Check(empty, &Rules{FromFollowerOrDisk: true}); err != nil {
		t.Error(err)
	}
	if got := mustCollect(t, empty); len(got) != 0 {
		t.Error(got)
	}
}

// Claim: a record outside the topic's time bounds is refused by name; -1, LogAppendTime topics and no limits let everything pass.
// Method: one early and one late record among three, under several rules.
func TestTimestampBounds(t *testing.T) {
	ms := now.UnixMilli()
	records := []Record{{Timestamp: ms - 11_000}, {Timestamp: ms}, {Timestamp: -1}, {Timestamp: ms + 6_000}}
	strict := Rules{Now: now, BeforeMax: 10 * time.Second, AfterMax: 5 * time.Second}
	for _, codec := range allCodecs {
		_, err := Check(build(codec, records), &strict)
		e := requireReason(t, err, InvalidTimestamp)
		if len(e.Records) != 2 || e.Records[0].Index != 0 || e.Records[1].Index != 3 {
			t.Error(err)
		}
	}
	for _, r := range []Rules{
		{Now: now, BeforeMax: 11 * time.Second, AfterMax: 6 * time.Second},
		{Now: now, BeforeMax: -1, AfterMax: -1},
		{Now: now, BeforeMax: 1, AfterMax: 1, AppendTime: true},
		{Now: now, BeforeMax: 1, AfterMax: 1, FromFollowerOrDisk: true},
	} {
		if _, err := Check(build(None, records), &r); err != nil {
			t.Errorf("%+v: %v", r, err)
		}
	}
	strict.Level = HeaderOnly
	_, err := Check(build(Gzip, records), &strict)
	requireReason(t, err, InvalidTimestamp)
	if _, err := Check(build(Gzip, records[1:3]), &strict); err != nil {
		t.Error(err)
	}
}

// Claim: a header's max timestamp that its records do not bear out is put right on the way in, and left alone on a follower.
// Method: a batch that claims the year 2200, and one that claims nothing.
func TestMaxTimestampIsMadeTrue(t *testing.T) {
	for _, codec := range allCodecs {
		for _, claim := range []int64{7_258_118_400_000, -1} {
			b := build(codec, someRecords(9, 30))
			want := View(b).MaxTimestamp()
			stampMaxTimestamp(b, claim)
			if info, err := Check(b, &Rules{FromFollowerOrDisk: true}); err != nil || info.MaxTimestamp != claim {
				t.Fatalf("follower: %+v, %v", info, err)
			}
			info, err := Check(b, &Rules{})
			if err != nil || info.MaxTimestamp != want || View(b).MaxTimestamp() != want {
				t.Fatalf("%+v, %v", info, err)
			}
			if _, err := CheckStored(b); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// Claim: at header level records are not read, and the checksum still is.
// Method: a broken record with a right and with a wrong checksum.
func TestHeaderLevelChecksTheChecksumOnly(t *testing.T) {
	b := raw(1, "7e", t)
	if _, err := Check(b, &Rules{Level: HeaderOnly}); err != nil {
		t.Fatal(err)
	}
	b[len(b)-1]++
	_, err := Check(b, &Rules{Level: HeaderOnly})
	requireReason(t, err, Corrupt)
}

// Claim: checking an uncompressed batch allocates nothing, and a compressed one nothing in steady state.
// Method: count allocations over many runs; pools may lose an item to the collector now and then.
func TestCheckDoesNotAllocate(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector empties pools at random")
	}
	for _, codec := range allCodecs {
		b := build(codec, someRecords(100, 100))
		rules := Rules{RequireKeys: true, Now: now, BeforeMax: time.Hour, AfterMax: time.Hour, MaxSize: 1 << 20}
		check := func() {
			if _, err := Check(b, &rules); err != nil {
				t.Fatal(err)
			}
		}
		check()
		if n := testing.AllocsPerRun(200, check); n > 0 && (codec == None || n >= 1) {
			t.Errorf("%v: %v allocations", codec, n)
		}
	}
}
