package batch

import (
	_ "embed"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"
)

// Written by Apache Kafka 4.3.1's own MemoryRecordsBuilder, one line for each magic, codec and
// timestamp type: name and bytes. Base offset 40, append time 5000, three records.
//
//go:embed testdata/kafka-4.3.1.txt
var kafkaBatches string

// Claim: what Kafka writes, in every format and codec, passes recovery's and a follower's checks and reads as Kafka meant it.
// Method: batches written by Kafka's Java code, against the three records they were made of; those of old formats also converted up.
func TestKafkasOwnBatchesAreRead(t *testing.T) {
	names := 0
	for line := range strings.Lines(kafkaBatches) {
		name, digits, _ := strings.Cut(strings.TrimSpace(line), " ")
		b, err := hex.DecodeString(digits)
		if err != nil {
			t.Fatal(err)
		}
		names++
		want := []Record{
			{Offset: 40, Timestamp: 1000, Key: []byte("k0"), Value: []byte("value value value value 0")},
			{Offset: 41, Timestamp: 1007, Value: []byte("value value value value 1")},
			{Offset: 42, Timestamp: 1003, Key: []byte("k2")},
		}
		magic, appendTime := b[atMagic], strings.HasSuffix(name, "-appendtime")
		for i := range want {
			switch {
			case magic == 0:
				want[i].Timestamp = -1
			case appendTime:
				want[i].Timestamp = 5000
			}
		}
		if magic == 2 {
			want[0].Headers = []Header{{Key: "h", Value: []byte("x")}, {Key: "n"}}
		}
		requireEqual(t, mustCollect(t, b), want)
		last := int64(-1)
		for rest := b; len(rest) > 0; {
			size, err := Split(rest)
			if err != nil {
				t.Fatal(name, err)
			}
			info, err := CheckStored(rest[:size])
			if err != nil || info.AppendTime() != appendTime {
				t.Fatalf("%s: %+v, %v", name, info, err)
			}
			last, rest = info.LastOffset(), rest[size:]
		}
		if last != 42 {
			t.Errorf("%s: last offset %d", name, last)
		}
		if magic == 2 {
			if _, err := Check(b, &Rules{FromFollowerOrDisk: true}); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		up, err := UpConvert(b, 0)
		if appendTime {
			requireReason(t, err, InvalidTimestamp)
			continue
		}
		if err != nil {
			t.Fatal(name, err)
		}
		for i := range want {
			want[i].Offset -= 40
		}
		requireEqual(t, mustCollect(t, up), want)
		if codec := View(up).Codec(); fmt.Sprintf("magic%d-%v", magic, codec) != name {
			t.Errorf("%s became %v", name, codec)
		}
	}
	if names != 22 {
		t.Errorf("%d batches", names)
	}
}
