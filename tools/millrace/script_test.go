package main

import (
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Claim: lines become records by the rules of Kafka's LineMessageReader.
// Method: each property, and each way a line can be wrong.
func TestLinesBecomeRecords(t *testing.T) {
	const both = "parse.key=true parse.headers=true"
	for _, c := range []struct{ properties, line, want, refused string }{
		{"", "a:b\tc", "- a:b\tc", ""},
		{"", "", "- ", ""},
		{"parse.key=true", "k\tv\tw", "k v\tw", ""},
		{"parse.key=TRUE key.separator=--", "k--v", "k v", ""},
		{"parse.key=yes", "k\tv", "- k\tv", ""},
		{"parse.key=true", "no", "", "No key separator found on line number 1: 'no'"},
		{"parse.key=true ignore.error=true", "no", "- no", ""},
		{both, "a:1,b:2\tk\tv", "k v [a:1 b:2]", ""},
		{both + " headers.delimiter=| headers.separator=; headers.key.separator==", "a=1;b=|k\tv", "k v [a:1 b:]", ""},
		{both, "a:1", "", "No headers delimiter found on line number 1: 'a:1'"},
		{both, "a:1\tk", "", "No key separator found on line number 1: 'a:1\tk'"},
		{both, "a\tk\tv", "", "No header key separator found in pair 'a' on line number 1"},
		{both + " ignore.error=true", "a\tk\tv", "k v [a:-]", ""},
		{both + " null.marker=N", "a:N\tN\tN", "- - [a:-]", ""},
		{both + " null.marker=N", "N\tk\tv", "k v", ""},
		{both + " null.marker=N", "N:1\tk\tv", "", "Header keys should not be equal to the null marker 'N' as they can't be null"},
	} {
		r, err := newLineReader("t", splitPairs(c.properties))
		if err != nil {
			t.Fatal(c.properties, err)
		}
		record, err := r.record(c.line)
		if c.refused != "" {
			if err == nil || err.Error() != c.refused {
				t.Errorf("%s: %q: %v", c.properties, c.line, err)
			}
			continue
		}
		if err != nil || recordText(record) != c.want {
			t.Errorf("%s: %q: %v, %v, want %q", c.properties, c.line, record, err, c.want)
		}
	}
	for _, bad := range []string{"headers.delimiter=,", "headers.delimiter=:", "headers.separator=:", "null.marker=:", "null.marker=,", "key.separator=N null.marker=N"} {
		if _, err := newLineReader("t", splitPairs(bad)); err == nil {
			t.Errorf("%s was taken", bad)
		}
	}
}

func splitPairs(text string) map[string]string {
	out := map[string]string{}
	for _, pair := range strings.Fields(text) {
		name, value, _ := strings.Cut(pair, "=")
		out[name] = value
	}
	return out
}

func recordText(r *kgo.Record) string {
	field := func(b []byte) string {
		if b == nil {
			return "-"
		}
		return string(b)
	}
	text := field(r.Key) + " " + field(r.Value)
	for i, h := range r.Headers {
		text += map[bool]string{true: " [", false: " "}[i == 0] + h.Key + ":" + field(h.Value)
	}
	if len(r.Headers) > 0 {
		text += "]"
	}
	return text
}

// Claim: records are written as Kafka's DefaultMessageFormatter writes them.
// Method: the fields alone and together, nulls, numbers.
func TestRecordsAreWrittenAsKafkaDoes(t *testing.T) {
	full := &kgo.Record{Partition: 2, Offset: 7, LeaderEpoch: 3, Timestamp: time.UnixMilli(1700000000000), Key: []byte("k"), Value: []byte("v"), Headers: []kgo.RecordHeader{{Key: "a", Value: []byte("1")}, {Key: "b"}}}
	number := &kgo.Record{Key: []byte{0, 0, 1, 0}, Value: []byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xfe}}
	const all = "print.timestamp=true print.partition=true print.offset=true print.epoch=true print.headers=true print.key=true"
	for _, c := range []struct {
		properties string
		r          *kgo.Record
		want       string
	}{
		{"", full, "v\n"},
		{all, full, "CreateTime:1700000000000\tPartition:2\tOffset:7\tEpoch:3\ta:1,b:null\tk\tv\n"},
		{all + " print.value=false key.separator=; headers.separator=| null.literal=-", full, "CreateTime:1700000000000;Partition:2;Offset:7;Epoch:3;a:1|b:-;k\n"},
		{"print.value=false print.key=true line.separator=!", full, "k!"},
		{"print.headers=true", number, "NO_HEADERS\t\xff\xff\xff\xff\xff\xff\xff\xfe\n"},
		{"print.key=true key.deserializer=org.apache.kafka.common.serialization.IntegerDeserializer value.deserializer=x.LongDeserializer", number, "256\t-2\n"},
		{"print.key=true", &kgo.Record{}, "null\tnull\n"},
	} {
		f, err := newMessageFormatter(splitPairs(c.properties))
		if err != nil {
			t.Fatal(c.properties, err)
		}
		if got, err := f.appendRecord(nil, c.r); err != nil || string(got) != c.want {
			t.Errorf("%s: %q, %v", c.properties, got, err)
		}
	}
	if _, err := newMessageFormatter(map[string]string{"key.deserializer": "com.example.Avro"}); err == nil {
		t.Error("a class that is not there was taken")
	}
	f, _ := newMessageFormatter(map[string]string{"value.deserializer": "LongDeserializer"})
	if _, err := f.appendRecord(nil, full); err == nil {
		t.Error("a long of one byte was taken")
	}
}

// Claim: --add-config holds values with commas in brackets.
// Method: what Kafka's script takes and refuses.
func TestAddConfig(t *testing.T) {
	for text, want := range map[string]map[string]string{
		"a=1":               {"a": "1"},
		"a=1,b=[x,y],c=z=w": {"a": "1", "b": "x,y", "c": "z=w"},
		" a = 1 , b=":       {"a": "1", "b": ""},
		"a":                 nil,
		"a=1,b":             nil,
		"=1":                nil,
	} {
		got, err := parseAddConfig(text)
		if (err == nil) != (want != nil) || err == nil && !maps.Equal(got, want) {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
}

// Claim: patterns of topics and partitions choose as Kafka's scripts do.
// Method: tables over a few partitions.
func TestPatterns(t *testing.T) {
	for spec, want := range map[string]string{
		"a": "a-0 a-1 a-5", "a:1": "a-1", "a:1-": "a-1 a-5", "a:-1": "a-0", "a:0-5": "a-0 a-1", ":5": "a-5", ".*:0": "a-0 ab-0", "": "a-0 a-1 a-5 ab-0",
	} {
		rule, err := partitionRule(spec)
		if err != nil {
			t.Fatal(spec, err)
		}
		var got []string
		for _, tp := range []topicPartition{{"a", 0}, {"a", 1}, {"a", 5}, {"ab", 0}} {
			if rule(tp) {
				got = append(got, tp.dashed())
			}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%q: %q", spec, got)
		}
	}
	for pattern, want := range map[string]bool{"a": true, "a,b": true, "b": false, `"a"`: true, "a.*": true, "x|a": true} {
		if p, err := topicPattern(pattern); err != nil || p.MatchString("a") != want {
			t.Errorf("%s: %v", pattern, err)
		}
	}
	if _, err := topicPattern("a["); err == nil {
		t.Error("a[ was taken")
	}
}

// Claim: assignments are lists of brokers of one length, without doubles.
// Method: a table.
func TestReplicaAssignments(t *testing.T) {
	if got, err := parseAssignment("1:2, 2:1"); err != nil || len(got) != 2 || got[1][0] != 2 {
		t.Errorf("%v, %v", got, err)
	}
	for text, want := range map[string]string{
		"1:1": "Partition replica lists may not contain duplicate entries: 1", "1:2,1": "Partition 1 has different replication factor: [1]", "x": `For input string: "x"`,
	} {
		if _, err := parseAssignment(text); err == nil || err.Error() != want {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// Claim: numbers look as Java writes them.
// Method: those that differ from Go's.
func TestJavaNumbers(t *testing.T) {
	for v, want := range map[float64]string{0: "0.0", 1: "1.0", 12.5: "12.5", 1048576: "1048576.0", 1e7: "1.0E7", 123456789: "1.23456789E8", 0.0001: "1.0E-4"} {
		if got := javaDouble(v); got != want {
			t.Errorf("%v: %s, want %s", v, got, want)
		}
	}
}
