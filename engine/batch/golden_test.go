package batch

import (
	"bytes"
	"testing"
)

// goldenV2 is written by hand from the format table; its checksum was computed bit by
// bit by a program of its own.
const goldenV2 = `
	0000000000000000  | base offset
	00000046          | length 70
	ffffffff          | leader epoch -1
	02                | magic
	6a329ccc          | CRC-32C of all that follows
	0010              | attributes: transactional
	00000001          | last offset delta
	00000000000003e8  | base timestamp 1000
	00000000000003ed  | max timestamp 1005
	0000000000000007  | producer id
	0003              | producer epoch
	00000005          | base sequence
	00000002          | count
	1a 00 00 00       | record 0: 13 bytes, attributes, timestamp +0, offset +0
	02 6b  04 7631    | key "k", value "v1"
	02 02 68 02 78    | one header: "h" = "x"
	0c 00 0a 02       | record 1: 6 bytes, timestamp +5, offset +1
	01 01 00          | null key, null value, no headers`

func goldenRecords() []Record {
	return []Record{
		{Offset: 0, Timestamp: 1000, Key: []byte("k"), Value: []byte("v1"), Headers: []Header{{Key: "h", Value: []byte("x")}}},
		{Offset: 1, Timestamp: 1005},
	}
}

const goldenV0 = `
	0000000000000005 00000010  | offset 5, 16 bytes
	1fecd70a 00 00             | CRC-32, magic 0, no codec
	00000001 6b  00000001 76   | "k", "v"`

const goldenV1 = `
	0000000000000006 00000018  | offset 6, 24 bytes
	06614b6d 01 00             | CRC-32, magic 1, no codec
	00000000000003e8           | timestamp 1000
	ffffffff  00000002 6869    | null key, "hi"`

// Claim: the header fields, the records and the checksum of a batch stand where Kafka's table has them.
// Method: read bytes written by hand, field by field; then build the same batch and compare bytes.
func TestGoldenBatchIsReadAndWrittenByteForByte(t *testing.T) {
	b := unhex(t, goldenV2)
	info, err := Check(b, &Rules{})
	if err != nil {
		t.Fatal(err)
	}
	requireEqual(t, info, Info{
		Size: 82, BaseOffset: 0, Count: 2, LastOffsetDelta: 1, BaseTimestamp: 1000, MaxTimestamp: 1005,
		ProducerID: 7, ProducerEpoch: 3, BaseSequence: 5, Attributes: 0x10, LeaderEpoch: -1, Magic: 2,
	})
	if !info.IsTransactional() || info.IsControl() || info.Codec() != None || info.LastSequence() != 6 || info.LastOffset() != 1 {
		t.Fatalf("flags are wrong: %+v", info)
	}
	v := View(b)
	requireEqual(t, v.info(), info)
	if v.Size() != 82 || v.Magic() != 2 || v.CRC() != 0x6a329ccc || v.AppendTime() || v.HasDeleteHorizon() ||
		!v.IsTransactional() || v.IsControl() || v.LastOffset() != 1 {
		t.Fatal("the view's accessors are wrong")
	}
	requireEqual(t, mustCollect(t, b), goldenRecords())
	built := build(None, goldenRecords(), Producer(7, 3, 5), Transactional())
	requireEqual(t, built, b)
}

// Claim: messages of magic 0 and 1 are read, checked and written as Kafka's table has them.
// Method: bytes written by hand, both in one set; then the same entries rebuilt.
func TestGoldenMessagesAreReadAndWrittenByteForByte(t *testing.T) {
	v0, v1 := unhex(t, goldenV0), unhex(t, goldenV1)
	set := append(bytes.Clone(v0), v1...)
	requireEqual(t, mustCollect(t, set), []Record{
		{Offset: 5, Timestamp: -1, Key: []byte("k"), Value: []byte("v")},
		{Offset: 6, Timestamp: 1000, Value: []byte("hi")},
	})
	for _, entry := range [][]byte{v0, v1} {
		info, err := CheckStored(entry)
		if err != nil {
			t.Fatal(err)
		}
		if info.Size != len(entry) || info.Count != 1 || info.Magic != int8(entry[16]) || info.ProducerID != -1 || info.LastOffset() != int64(entry[7]) {
			t.Fatalf("%+v", info)
		}
		m, err := parseMessage(entry)
		if err != nil {
			t.Fatal(err)
		}
		requireEqual(t, appendMessage(nil, &m), entry)
	}
}

// Claim: stamping offset and epoch leaves the checksum valid; stamping the append time renews it.
// Method: stamp the golden batch both ways, look at the fields and check again.
func TestStampsKeepTheBatchValid(t *testing.T) {
	b := unhex(t, goldenV2)
	crc := View(b).CRC()
	Stamp(b, 1<<40, 9)
	info, err := CheckStored(b)
	if err != nil || info.BaseOffset != 1<<40 || info.LeaderEpoch != 9 || View(b).CRC() != crc {
		t.Fatalf("%+v, %v", info, err)
	}
	StampAppendTime(b, 123456)
	info, err = CheckStored(b)
	if err != nil || !info.AppendTime() || info.MaxTimestamp != 123456 {
		t.Fatalf("%+v, %v", info, err)
	}
	for _, r := range mustCollect(t, b) {
		if r.Timestamp != 123456 {
			t.Fatalf("with LogAppendTime a record has time %d", r.Timestamp)
		}
	}
}

// Claim: a sequence wraps from 2^31-1 to 0, as producers count.
// Method: the last sequence of batches around the end of the range.
func TestLastSequenceWraps(t *testing.T) {
	const top = 1<<31 - 1
	for _, c := range []struct{ base, delta, want int32 }{
		{0, 0, 0}, {5, 4, 9}, {top, 0, top}, {top, 1, 0}, {top - 1, 3, 1}, {-1, 3, -1},
	} {
		i := Info{BaseSequence: c.base, LastOffsetDelta: c.delta}
		if got := i.LastSequence(); got != c.want {
			t.Errorf("%d + %d: got %d, want %d", c.base, c.delta, got, c.want)
		}
	}
}

// Claim: Split finds the end of an entry of any magic, asks for more when it is cut, and refuses what is no entry.
// Method: every prefix of a golden entry; headers with impossible lengths and magics.
func TestSplitFindsWhereAnEntryEnds(t *testing.T) {
	for _, text := range []string{goldenV0, goldenV1, goldenV2} {
		b := unhex(t, text)
		for n := range len(b) + 1 {
			size, err := Split(b[:n])
			switch {
			case n < splitHeader && (size != 0 || err != ErrShort),
				n >= splitHeader && n < len(b) && (size != len(b) || err != ErrShort),
				n == len(b) && (size != len(b) || err != nil):
				t.Fatalf("first %d of %d bytes: %d, %v", n, len(b), size, err)
			}
		}
	}
	for name, at := range map[string]struct {
		pos int
		val byte
	}{"negative length": {8, 0xff}, "length below the header": {11, 3}, "magic 3": {16, 3}, "magic -1": {16, 0xff}} {
		b := unhex(t, goldenV2)
		b[at.pos] = at.val
		if _, err := Split(b); err == nil || err == ErrShort {
			t.Errorf("%s: %v", name, err)
		}
	}
}
