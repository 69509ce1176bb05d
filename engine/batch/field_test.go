package batch

import (
	"bytes"
	"testing"
)

// Claim (F028): a record without key on a compacted topic is refused as invalid, by its index; with keys the batch passes.
// Method: three records, the second without key, in every codec and in an old message set.
func TestField_F028_RecordWithoutKeyOnCompactedTopic(t *testing.T) {
	records := []Record{{Key: []byte("a")}, {Value: []byte("no key")}, {Key: []byte{}}}
	for _, codec := range allCodecs {
		b := build(codec, records)
		_, err := Check(b, &Rules{RequireKeys: true})
		e := requireReason(t, err, InvalidRecord)
		if len(e.Records) != 1 || e.Records[0].Index != 1 || e.Records[0].Message == "" {
			t.Errorf("%v: %v", codec, err)
		}
		if _, err := Check(b, &Rules{}); err != nil {
			t.Errorf("%v, topic not compacted: %v", codec, err)
		}
	}
	set, err := DownConvert(nil, build(Gzip, records), 1, 0)
	if err != nil {
		t.Fatal(err)
	}
	b, err := UpConvert(set, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, err = Check(b, &Rules{RequireKeys: true})
	if e := requireReason(t, err, InvalidRecord); e.Records[0].Index != 1 {
		t.Error(err)
	}
	_, err = Check(build(None, make([]Record, 1000)), &Rules{RequireKeys: true})
	if e := requireReason(t, err, InvalidRecord); len(e.Records) != maxRecordErrors {
		t.Errorf("%d records are named", len(e.Records))
	}
}

// Claim (F047): zstd and the old formats do not go together: neither down-converted nor accepted in a message set, and always said by reason.
// Method: a zstd batch down to both magics; a message that says zstd up. Kept as it is, it passes.
func TestField_F047_ZstdAndOldFormats(t *testing.T) {
	b := build(Zstd, someRecords(5, 50))
	if info, err := Check(b, &Rules{}); err != nil || info.Codec() != Zstd {
		t.Fatal(err)
	}
	for magic := range int8(2) {
		_, err := DownConvert(nil, b, magic, 0)
		requireReason(t, err, UnsupportedCodec)
		_, err = UpConvert(appendMessage(nil, &message{magic: magic, attributes: byte(Zstd), value: b}), 0)
		requireReason(t, err, UnsupportedCodec)
	}
}

// Claim (F049): the size limit is that of the whole batch as sent, compressed, its 61-byte header included.
// Method: a batch of exactly the limit, one byte more, and 100 KB of zeros that gzip makes small.
func TestField_F049_SizeLimitIsTheBatchAsSent(t *testing.T) {
	const limit = 1000
	overhead := len(build(None, []Record{{Value: make([]byte, 900)}})) - 900
	exact := build(None, []Record{{Value: make([]byte, limit-overhead)}})
	if len(exact) != limit {
		t.Fatal(len(exact))
	}
	if _, err := Check(exact, &Rules{MaxSize: limit}); err != nil {
		t.Error(err)
	}
	_, err := Check(build(None, []Record{{Value: make([]byte, limit-overhead+1)}}), &Rules{MaxSize: limit})
	requireReason(t, err, TooLarge)
	zeros := build(Gzip, []Record{{Value: bytes.Repeat([]byte{0}, 100_000)}})
	if info, err := Check(zeros, &Rules{MaxSize: limit}); err != nil || info.Size != len(zeros) {
		t.Errorf("%d bytes: %v", len(zeros), err)
	}
}
