package tree

import (
	"bytes"
	"fmt"
	"math"
	"runtime"
	"testing"

	"millrace/coord/zk/proto"
)

// wide makes n nodes in directories of a thousand, each with size bytes of data.
func wide(n, size int) *Tree {
	t := start()
	data := make([]byte, size)
	dir := ""
	for i := range n {
		if i%1000 == 0 {
			dir = fmt.Sprintf("/dir-%05d", i/1000)
			do(t, proto.Request{Op: proto.OpCreate, Path: dir})
		}
		do(t, proto.Request{Op: proto.OpCreate, Path: fmt.Sprintf("%s/node-%06d", dir, i), Data: data})
	}
	return t
}

func BenchmarkCreate(b *testing.B) {
	b.ReportAllocs()
	t := start()
	do(t, proto.Request{Op: proto.OpCreate, Path: "/d"})
	q := proto.Request{Op: proto.OpCreate, Data: make([]byte, 100), ACL: proto.OpenACL}
	for i := 0; b.Loop(); i++ {
		q.Path = fmt.Sprintf("/d/node-%09d", i)
		do(t, q)
	}
}

func BenchmarkSetData(b *testing.B) {
	b.ReportAllocs()
	t := wide(100_000, 100)
	q := proto.Request{Op: proto.OpSetData, Path: "/dir-00050/node-050123", Data: make([]byte, 100), Version: -1, ACL: proto.OpenACL}
	for b.Loop() {
		do(t, q)
	}
}

func BenchmarkGetData(b *testing.B) {
	b.ReportAllocs()
	t := wide(100_000, 100)
	q := proto.Request{Op: proto.OpGetData, Path: "/dir-00050/node-050123"}
	r := Reader{Auth: []proto.ID{{Scheme: "ip", ID: "127.0.0.1"}}}
	for b.Loop() {
		t.Read(&q, &r, nil)
	}
}

// BenchmarkMillion reports what a znode of a million costs on the heap, with its name
// (11 bytes) and data, how long a snapshot and its loading take, and what a watch costs.
func BenchmarkMillion(b *testing.B) {
	heap := func() float64 {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return float64(m.HeapAlloc)
	}
	for _, size := range []int{0, 100} {
		b.Run(fmt.Sprintf("data=%d", size), func(b *testing.B) {
			for b.Loop() {
				before := heap()
				t := wide(1_000_000, size)
				b.ReportMetric((heap()-before)/1e6, "B/znode")
				before = heap()
				for i := range 1_000_000 {
					t.watches.add(fmt.Sprintf("/dir-%05d/node-%06d", i/1000, i), Watcher(1+i%100), dataOnce)
				}
				b.ReportMetric((heap()-before)/1e6, "B/watch")
				n, s := 0, t.BeginSnapshot()
				for buf, done := []byte(nil), false; !done; n += len(buf) {
					buf, done = s.Step(1<<18, buf)
				}
				b.ReportMetric(float64(n)/1e6, "snapshot-B/znode")
				runtime.KeepAlive(t)
			}
		})
	}
}

func BenchmarkLoadSnapshot(b *testing.B) {
	out, _ := wide(100_000, 100).BeginSnapshot().Step(math.MaxInt, nil)
	b.SetBytes(int64(len(out)))
	for b.Loop() {
		if _, err := LoadSnapshot(bytes.NewReader(out)); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/100_000, "ns/znode")
}
