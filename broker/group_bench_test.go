package broker

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"millrace/wire"
)

// BenchmarkGroupRebalance is one whole rebalance over the wire: every member
// sends JoinGroup and then SyncGroup on a connection of its own; the leader
// assigns. Run with -benchtime 3x.
func BenchmarkGroupRebalance(b *testing.B) {
	for _, n := range []int{500, 5000} {
		b.Run(fmt.Sprint("members=", n), func(b *testing.B) {
			tb := startBroker(b, "group.initial.rebalance.delay.ms=5000", "offsets.topic.num.partitions=1")
			members := make([]*rawMember, n)
			for i := range members {
				members[i] = &rawMember{c: tb.dial()}
			}
			tb.coordinator(members[0].c, "g")
			each := func(f func(m *rawMember)) {
				var all sync.WaitGroup
				for _, m := range members {
					all.Go(func() { f(m) })
				}
				all.Wait()
			}
			each(func(m *rawMember) { m.join(); m.sync() })
			b.ResetTimer()
			var slowest time.Duration
			for range b.N {
				begun := time.Now()
				each(func(m *rawMember) { m.round++; m.join(); m.sync() })
				slowest = max(slowest, time.Since(begun))
			}
			b.ReportMetric(float64(slowest.Milliseconds()), "ms-slowest")
		})
	}
}

// rawMember is a member of group g on a connection of its own.
type rawMember struct {
	c      *client
	id     string
	round  byte
	joined *kmsg.JoinGroupResponse
}

func (m *rawMember) join() {
	req := kmsg.NewPtrJoinGroupRequest()
	req.Group, req.MemberID, req.ProtocolType = "g", m.id, "consumer"
	req.SessionTimeoutMillis, req.RebalanceTimeoutMillis = 300_000, 300_000
	req.Protocols = []kmsg.JoinGroupRequestProtocol{{Name: "range", Metadata: []byte{0, 0, 0, 0, 0, 0, m.round}}}
	m.c.write(m.c.frame(req, 3))
	_ = m.c.nc.SetReadDeadline(time.Time{})
	_, rest, err := m.c.tryRead(5 * time.Minute)
	if err != nil {
		m.c.t.Error(err)
		return
	}
	m.joined = m.c.decode(req, 3, rest).(*kmsg.JoinGroupResponse)
	if m.id = m.joined.MemberID; m.joined.ErrorCode != 0 {
		m.c.t.Error(wire.ErrorName(m.joined.ErrorCode))
	}
}

func (m *rawMember) sync() {
	req := kmsg.NewPtrSyncGroupRequest()
	req.Group, req.MemberID, req.Generation = "g", m.id, m.joined.Generation
	if m.joined.LeaderID == m.id {
		for _, other := range m.joined.Members {
			req.GroupAssignment = append(req.GroupAssignment, kmsg.SyncGroupRequestGroupAssignment{MemberID: other.MemberID, MemberAssignment: []byte("a share of the partitions")})
		}
	}
	m.c.write(m.c.frame(req, 3))
	_, rest, err := m.c.tryRead(5 * time.Minute)
	if err != nil {
		m.c.t.Error(err)
		return
	}
	if r := m.c.decode(req, 3, rest).(*kmsg.SyncGroupResponse); r.ErrorCode != 0 {
		m.c.t.Errorf("sync: %s", wire.ErrorName(r.ErrorCode))
	}
}
