package store

import (
	"fmt"
	"path/filepath"
	"testing"

	"millrace/coord/zk/proto"
	"millrace/coord/zk/tree"
	"millrace/engine"
)

// BenchmarkCommit is synced creates of 100 bytes on a real disk, group at a time: what so
// many clients with one request in flight each would get.
func BenchmarkCommit(b *testing.B) {
	for _, group := range []int{1, 10, 100, 1000} {
		b.Run(fmt.Sprintf("group=%d", group), func(b *testing.B) {
			dir := b.TempDir()
			log, err := engine.OpenLog(filepath.Join(dir, "log-0"), engine.LogOptions{Config: LogConfig()})
			if err != nil {
				b.Fatal(err)
			}
			defer log.Close()
			s, err := Open(log, Options{Dir: filepath.Join(dir, "snapshots")})
			if err != nil {
				b.Fatal(err)
			}
			defer s.Close()
			nothing := func(int, proto.Result, []tree.Event) {}
			if _, err := s.Commit([]tree.Txn{write(0)}, nothing); err != nil {
				b.Fatal(err)
			}
			list := make([]tree.Txn, group)
			data := make([]byte, 100)
			n := 0
			for b.Loop() {
				for i := range list {
					n++
					list[i] = tree.Txn{Time: int64(n), Session: session, Req: proto.Request{
						Op: proto.OpCreate, Path: fmt.Sprintf("/node-%09d", n), Data: data, ACL: proto.OpenACL, TTL: -1}}
				}
				if _, err := s.Commit(list, nothing); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "creates/s")
		})
	}
}
