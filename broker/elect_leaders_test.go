package broker

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"millrace/coord"
	"millrace/wire"
)

// Claim: with one broker no election is needed, in every version, and that is told for
// each partition that was named; for "all" nothing is told, since nothing happened.
// Method: both kinds of election, named and all, and what is not there.
func TestElectLeaders(t *testing.T) {
	c := dialAdmin(t, adminBroker(t, ""), "")
	c.createTopic("t", 2)
	for version := int16(0); version <= 2; version++ {
		for _, kind := range []int8{electPreferred, electUnclean} {
			req := kmsg.NewPtrElectLeadersRequest()
			req.Version, req.ElectionType = version, kind
			if r := ask[*kmsg.ElectLeadersResponse](c, req); r.ErrorCode != 0 || len(r.Topics) != 0 {
				t.Errorf("v%d all: %+v", version, r)
			}
			req.Topics = []kmsg.ElectLeadersRequestTopic{{Topic: "t", Partitions: []int32{0, 5}}, {Topic: "none", Partitions: []int32{0}}}
			r := ask[*kmsg.ElectLeadersResponse](c, req)
			if r.ErrorCode != 0 || len(r.Topics) != 2 || r.Topics[0].Partitions[0].ErrorCode != wire.ErrElectionNotNeeded || r.Topics[0].Partitions[1].ErrorCode != wire.ErrUnknownTopicOrPartition || r.Topics[1].Partitions[0].ErrorCode != wire.ErrUnknownTopicOrPartition {
				t.Errorf("v%d type %d: %+v", version, kind, r)
			}
			for _, p := range append(r.Topics[0].Partitions, r.Topics[1].Partitions...) {
				if p.ErrorMessage == nil {
					t.Errorf("v%d: %+v", version, p)
				}
			}
		}
	}
	for version := int16(1); version <= 2; version++ {
		req := kmsg.NewPtrElectLeadersRequest()
		req.Version, req.ElectionType = version, 7
		req.Topics = []kmsg.ElectLeadersRequestTopic{{Topic: "t", Partitions: []int32{0}}}
		if r := ask[*kmsg.ElectLeadersResponse](c, req); r.ErrorCode != wire.ErrInvalidRequest || r.Topics[0].Partitions[0].ErrorCode != wire.ErrInvalidRequest || r.Topics[0].Partitions[0].ErrorMessage == nil {
			t.Errorf("v%d: %+v", version, r)
		}
	}

	// Without a live replica the codes are Kafka's.
	img := coord.NewImage("c", 1, nil, []coord.Topic{{Name: "t", Partitions: []coord.Partition{{Leader: -1, Replicas: []int32{1}}}}})
	if code, _ := electLeader(img, "t", 0, electPreferred); code != wire.ErrPreferredLeaderNotAvailable {
		t.Error(code)
	}
	if code, _ := electLeader(img, "t", 0, electUnclean); code != wire.ErrEligibleLeadersNotAvailable {
		t.Error(code)
	}
}
