package batch

import (
	"bytes"
	"encoding/binary"
	"errors"
	"slices"
	"testing"
)

// wrap makes a compressed message of messages, as an old client or broker would.
func wrap(codec Codec, outer message, inner ...message) []byte {
	var set []byte
	for i := range inner {
		inner[i].magic = outer.magic
		set = appendMessage(set, &inner[i])
	}
	sum := lz4Descriptor
	if outer.magic == 0 {
		sum = lz4FromMagic
	}
	value, err := compress(codec, DefaultLevel, nil, set, sum)
	if err != nil {
		panic(err)
	}
	outer.attributes |= byte(codec)
	outer.value = value
	return appendMessage(nil, &outer)
}

var legacyCodecs = []Codec{Gzip, Snappy, LZ4}

// three are messages with the given offsets.
func three(offsets ...int64) []message {
	var all []message
	for i, o := range offsets {
		all = append(all, message{offset: o, timestamp: 1000 + int64(i), key: []byte{byte('a' + i)}, value: []byte("value")})
	}
	return all
}

// Claim: the offsets inside a wrapper are read by the rules of its magic, old librdkafka's zero included.
// Method: wrappers of every codec with each kind of offsets; what is read is compared with the rule's result.
func TestWrapperOffsets(t *testing.T) {
	for _, c := range []struct {
		name    string
		magic   int8
		wrapper int64
		inner   []int64
		want    []int64
	}{
		{"magic 0 has absolute offsets", 0, 42, []int64{40, 41, 42}, []int64{40, 41, 42}},
		{"magic 1 counts from 0, the wrapper has the last", 1, 42, []int64{0, 1, 2}, []int64{40, 41, 42}},
		{"magic 1 thinned by compaction", 1, 42, []int64{0, 5, 9}, []int64{33, 38, 42}},
		{"magic 1 with a wrapper of 0 starts at 0", 1, 0, []int64{0, 1, 2}, []int64{0, 1, 2}},
		{"magic 1 with absolute offsets inside", 1, 42, []int64{40, 41, 42}, []int64{40, 41, 42}},
	} {
		for _, codec := range legacyCodecs {
			b := wrap(codec, message{magic: c.magic, offset: c.wrapper, timestamp: 1002}, three(c.inner...)...)
			var got []int64
			for _, r := range mustCollect(t, b) {
				got = append(got, r.Offset)
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("%s, %v: got %v, want %v", c.name, codec, got, c.want)
			}
			info, err := CheckStored(b)
			if err != nil || info.LastOffset() != c.wrapper || info.Count != CountUnknown || info.Codec() != codec {
				t.Errorf("%s: %+v, %v", c.name, info, err)
			}
		}
	}
}

// Claim: a magic 1 wrapper with LogAppendTime gives its time to every message in it.
// Method: such a wrapper with other times inside.
func TestWrapperAppendTime(t *testing.T) {
	b := wrap(Gzip, message{magic: 1, offset: 2, timestamp: 777, attributes: attrAppendTime}, three(0, 1, 2)...)
	for _, r := range mustCollect(t, b) {
		if r.Timestamp != 777 {
			t.Errorf("got %d", r.Timestamp)
		}
	}
	if off, ts, found, err := OffsetForTime(b, 700, 1); off != 1 || ts != 777 || !found || err != nil {
		t.Error(off, ts, found, err)
	}
}

// Claim: magic 0's wrong lz4 header checksum is written where old clients demand it, and read whichever it is.
// Method: the byte of a down-converted batch against both rules; then both forms read back.
func TestLZ4HeaderChecksumOfMagic0(t *testing.T) {
	b := build(LZ4, someRecords(4, 100))
	for magic, skip := range map[int8]int{0: 0, 1: 4} {
		set, err := DownConvert(nil, b, magic, 0)
		if err != nil {
			t.Fatal(err)
		}
		m, err := parseMessage(set)
		if err != nil {
			t.Fatal(err)
		}
		if want := byte(xxh32(m.value[skip:6]) >> 8); m.value[6] != want {
			t.Errorf("magic %d: header checksum %#x, want %#x", magic, m.value[6], want)
		}
		for range 2 {
			if n := len(mustCollect(t, set)); n != 4 {
				t.Errorf("magic %d: %d records", magic, n)
			}
			m.value[6] ^= 0x55
		}
	}
}

// Claim: wrappers that mean nothing are refused, stored or produced.
// Method: each kind, once through Records and once through UpConvert.
func TestWrappersThatMeanNothing(t *testing.T) {
	nested := message{offset: 1, attributes: byte(Gzip), value: []byte("x")}
	empty, _ := Compress(Gzip, 0, nil, nil)
	cut, _ := Compress(Gzip, 0, nil, appendMessage(nil, &message{magic: 1, value: []byte("abc")})[:30])
	other, _ := Compress(Gzip, 0, nil, appendMessage(nil, &message{magic: 0, value: []byte("abc")}))
	whole := unhex(t, goldenV2)
	v2, _ := Compress(Gzip, 0, nil, whole)
	gz := func(value []byte) []byte {
		return appendMessage(nil, &message{magic: 1, attributes: byte(Gzip), value: value})
	}
	for name, b := range map[string][]byte{
		"null value":        gz(nil),
		"no messages":       gz(empty),
		"not gzip":          gz([]byte("plain")),
		"a cut message":     gz(cut),
		"another magic":     gz(other),
		"a batch":           gz(v2),
		"a nested wrapper":  wrap(Gzip, message{magic: 1}, nested),
		"zstd":              appendMessage(nil, &message{magic: 1, attributes: byte(Zstd), value: []byte("x")}),
		"codec 7":           appendMessage(nil, &message{magic: 1, attributes: 7, value: []byte("x")}),
		"zstd with magic 0": appendMessage(nil, &message{magic: 0, attributes: byte(Zstd), value: []byte("x")}),
	} {
		if _, err := collect(b); err == nil {
			t.Errorf("%s: read", name)
		}
		_, err := UpConvert(b, 0)
		var e *Error
		if !errors.As(err, &e) {
			t.Errorf("%s: converted, or not refused by reason: %v", name, err)
		}
	}
}

// Claim: a message whose fields do not fill it exactly is refused.
// Method: lengths one off and below -1, with a right checksum.
func TestBrokenMessagesAreRefused(t *testing.T) {
	for _, text := range []string{goldenV0, goldenV1} {
		good := unhex(t, text)
		keyAt := atMessageKeyV0
		if good[atMagic] == 1 {
			keyAt = atMessageKeyV1
		}
		for _, length := range []uint32{2, 3, 100, 1 << 31, 0xfffffffe} {
			b := bytes.Clone(good)
			binary.BigEndian.PutUint32(b[keyAt:], length)
			sealMessage(b, 0)
			if _, err := CheckStored(b); err == nil {
				t.Errorf("magic %d, key length %d: taken", b[atMagic], length)
			}
			if _, err := UpConvert(b, 0); err == nil {
				t.Errorf("magic %d, key length %d: converted", b[atMagic], length)
			}
		}
	}
}
