package raftlog

import (
	"testing"

	raftbench "github.com/hashicorp/raft/bench"
)

// raft's own benchmarks, on the real disk. Its DeleteRange leaves gaps, which a monotonic store refuses.
func BenchmarkStore(b *testing.B) {
	for name, run := range map[string]func(*testing.B, *Store){
		"FirstIndex": func(b *testing.B, s *Store) { raftbench.FirstIndex(b, s) },
		"LastIndex":  func(b *testing.B, s *Store) { raftbench.LastIndex(b, s) },
		"GetLog":     func(b *testing.B, s *Store) { raftbench.GetLog(b, s) },
		"StoreLog":   func(b *testing.B, s *Store) { raftbench.StoreLog(b, s) },
		"StoreLogs":  func(b *testing.B, s *Store) { raftbench.StoreLogs(b, s) },
		"Set":        func(b *testing.B, s *Store) { raftbench.Set(b, s) },
		"Get":        func(b *testing.B, s *Store) { raftbench.Get(b, s) },
		"SetUint64":  func(b *testing.B, s *Store) { raftbench.SetUint64(b, s) },
		"GetUint64":  func(b *testing.B, s *Store) { raftbench.GetUint64(b, s) },
	} {
		b.Run(name, func(b *testing.B) {
			s, err := Open(b.TempDir(), Options{})
			if err != nil {
				b.Fatal(err)
			}
			defer s.Close()
			run(b, s)
		})
	}
}
