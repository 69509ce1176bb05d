package coordinator

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"millrace/coord/group"
)

// joinNext is the first heartbeat of a member of the next-generation protocol.
func joinNext(s *Service, member string) *kmsg.ConsumerGroupHeartbeatResponse {
	req := kmsg.NewPtrConsumerGroupHeartbeatRequest()
	req.Group, req.MemberID, req.RebalanceTimeoutMillis, req.SubscribedTopicNames, req.Topics = "g", member, 1000, []string{"orders"}, []kmsg.ConsumerGroupHeartbeatRequestTopic{}
	return s.ConsumerHeartbeat(group.Client{Version: 1}, req).(*kmsg.ConsumerGroupHeartbeatResponse)
}

func membersOf(s *Service) (out []string) {
	req := kmsg.NewPtrConsumerGroupDescribeRequest()
	req.Groups = []string{"g"}
	for _, m := range s.DescribeConsumers(req, 0).(*kmsg.ConsumerGroupDescribeResponse).Groups[0].Members {
		out = append(out, m.MemberID)
	}
	return out
}

// Claim: LeaveGroup of a next-generation member is answered when the log has it,
// also while a step of another member is on its way there: a crash right after
// the answer does not bring the member back.
// Method: every append takes a second; one leaves while another joins; what is
// in the log at the answer is read again.
func TestLeaveGroupIsDurableBehindAnotherStep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &memoryLog{delay: func() time.Duration { return time.Second }}
		s := newService(log)
		defer s.Close()
		synctest.Wait()
		if r := joinNext(s, "a"); r.ErrorCode != 0 {
			t.Fatalf("%+v", r)
		}
		begun := time.Now()
		joined := make(chan struct{})
		go func() { // ends with the answer; awaited below
			defer close(joined)
			joinNext(s, "b")
		}()
		synctest.Wait()
		req := kmsg.NewPtrLeaveGroupRequest()
		req.Group, req.Members = "g", []kmsg.LeaveGroupRequestMember{{MemberID: "a"}}
		r := s.Leave(group.Client{Version: 5}, req).(*kmsg.LeaveGroupResponse)
		if took := time.Since(begun); took != 2*time.Second || r.ErrorCode != 0 || r.Members[0].ErrorCode != 0 {
			t.Errorf("answered after %v: %+v; two appends take 2 s", took, r)
		}
		again := newService(&memoryLog{batches: log.batches})
		defer again.Close()
		synctest.Wait()
		if got := membersOf(again); len(got) != 1 || got[0] != "b" {
			t.Errorf("after a crash the members are %v", got)
		}
		<-joined
	})
}
