package group

import (
	"fmt"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// BenchmarkRebalance is one whole rebalance: everybody joins, the leader
// assigns, everybody gets its share.
func BenchmarkRebalance(b *testing.B) {
	for _, n := range []int{500, 5000} {
		b.Run(fmt.Sprint("members=", n), func(b *testing.B) {
			s := newStory(b)
			clients := crowd(s, "g", n)
			b.ReportAllocs()
			b.ResetTimer()
			for range b.N {
				clear(s.done)
				s.log = nil
				joins := make([]Call, n)
				for i, c := range clients {
					joins[i] = c.join()
				}
				if s.state("g") == "PreparingRebalance" {
					s.pass(7 * time.Second) // the first time
				}
				syncs := make([]Call, n)
				for i, c := range clients {
					c.joined(joins[i])
				}
				for i, c := range clients {
					syncs[i] = c.sync()
				}
				for i, c := range clients {
					if c.synced(syncs[i]) != 0 {
						b.Fatal("not assigned")
					}
				}
			}
			b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/float64(n), "µs/member")
		})
	}
}

// crowd is n clients that speak to one group; the first joins with news each
// time, so that each round is a rebalance.
func crowd(s *story, group string, n int) []*client {
	clients := make([]*client, n)
	for i := range clients {
		clients[i] = s.client(group)
		clients[i].session = time.Hour / 4
	}
	return clients
}

// BenchmarkHeartbeat is the cost of one heartbeat, with time going by, so that
// the alarms that were put off are in it.
func BenchmarkHeartbeat(b *testing.B) {
	for _, shape := range []struct{ groups, members int }{{2000, 5}, {1, 5000}} {
		b.Run(fmt.Sprintf("groups=%d/members=%d", shape.groups, shape.members), func(b *testing.B) {
			s := newStory(b)
			joins := map[*client]Call{}
			for i := range shape.groups {
				for _, c := range crowd(s, fmt.Sprint("group-", i), shape.members) {
					joins[c] = c.join()
				}
			}
			s.pass(7 * time.Second)
			s.assign(joins)
			var beats []*kmsg.HeartbeatRequest
			for c := range joins {
				req := kmsg.NewPtrHeartbeatRequest()
				req.Group, req.MemberID, req.Generation = c.group, c.id, c.generation
				beats = append(beats, req)
			}
			step := 3 * time.Second / time.Duration(len(beats)) // each beats every 3 s
			b.ReportAllocs()
			b.ResetTimer()
			for i := range b.N {
				if code := s.g.Heartbeat(s.now, beats[i%len(beats)]); code != 0 {
					b.Fatal(code)
				}
				s.now = s.now.Add(step)
				s.g.Advance(s.now)
			}
		})
	}
}
