package main

import (
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

func sampleRecord() *kgo.Record {
	return &kgo.Record{
		Topic: "t", Partition: 2, Offset: 7, Timestamp: time.UnixMilli(1700000000000),
		Key: []byte("k<"), Value: []byte{0xff, 'v'},
		Headers: []kgo.RecordHeader{{Key: "a", Value: []byte("1")}, {Key: "b", Value: nil}},
	}
}

// Claim: each way of writing writes just what the help says.
// Method: one record with headers, a null and bytes that are no text.
func TestWaysOfWriting(t *testing.T) {
	for _, c := range []struct {
		name string
		o    consumeOptions
		want string
	}{
		{"plain", consumeOptions{delimiter: `\n`}, "\xffv\n"},
		{"delimiter", consumeOptions{delimiter: `\0--`}, "\xffv\x00--"},
		{"exact", consumeOptions{exact: true}, "\xffv"},
		{"format", consumeOptions{format: `%t %p %o %d %k=%v|%h|%%h\n`}, "t 2 7 1700000000000 k<=\xffv|a=1 b= |%h\n"},
		{"shaped", consumeOptions{format: `%h{%k:%v,}%v{base64}`}, "a:1,b:,/3Y="},
		{"json", consumeOptions{asJSON: true}, `{"topic":"t","partition":2,"offset":7,"timestamp":1700000000000,"key":"k<","value":null,"value_base64":"/3Y=",` +
			`"headers":[{"key":"a","value":"1"},{"key":"b","value":null}]}` + "\n"},
	} {
		write, err := c.o.writer(func(string) bool { return false })
		if err != nil {
			t.Fatal(c.name, err)
		}
		if got := string(write(nil, sampleRecord())); got != c.want {
			t.Errorf("%s:\ngot  %q\nwant %q", c.name, got, c.want)
		}
	}
}

// Claim: a record is written once, in its span only; control records move the
// position and are not written.
// Method: a drain of offsets 5 to 8 is offered 5 (control), 6, 7 and 8.
func TestDrainKeepsToItsSpan(t *testing.T) {
	cl, err := kgo.NewClient()
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	d := &drain{client: cl, topic: "t", spans: map[int32]span{0: {5, 8}}, toEnd: true}
	control := &kgo.Record{Offset: 5, Attrs: kgo.NewRecordAttrs(kgo.RecordAttrsOpts{Control: true})}
	for _, c := range []struct {
		r    *kgo.Record
		want bool
		left int64
	}{{control, false, 2}, {&kgo.Record{Offset: 6}, true, 1}, {&kgo.Record{Offset: 7}, true, 0}, {&kgo.Record{Offset: 8}, false, 0}} {
		if got := d.take(c.r); got != c.want || d.remaining() != c.left {
			t.Errorf("offset %d: %v, %d left", c.r.Offset, got, d.remaining())
		}
	}
	if !d.finished() || d.written != 2 {
		t.Errorf("finished %v, %d written", d.finished(), d.written)
	}
}
