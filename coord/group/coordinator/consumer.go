package coordinator

import (
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"millrace/coord/group"
	"millrace/wire"
)

// ConsumerHeartbeat serves ConsumerGroupHeartbeat. What it answers is durable.
func (s *Service) ConsumerHeartbeat(from group.Client, req *kmsg.ConsumerGroupHeartbeatRequest) kmsg.Response {
	refuse := func(code int16) kmsg.Response { return group.RefuseConsumer(code, "") }
	return s.shardOf(req.Group).begin(req.Group, refuse, func(now time.Time, g *group.Groups, c group.Call) { g.ConsumerHeartbeat(now, c, from, req) }).wait()
}

// DescribeConsumers serves ConsumerGroupDescribe; operations is what the client
// may do with the groups, if it asked.
func (s *Service) DescribeConsumers(req *kmsg.ConsumerGroupDescribeRequest, operations int32) kmsg.Response {
	r := kmsg.NewPtrConsumerGroupDescribeResponse()
	for _, id := range req.Groups {
		d := s.describeConsumer(id)
		if req.IncludeAuthorizedOperations && d.ErrorCode == wire.ErrNone {
			d.AuthorizedOperations = operations
		}
		r.Groups = append(r.Groups, d)
	}
	return r
}

func (s *Service) describeConsumer(id string) kmsg.ConsumerGroupDescribeResponseGroup {
	sh := s.shardOf(id)
	switch {
	case !s.o.Settings.Consumer.Enabled:
		return group.ConsumerNotDescribed(id, wire.ErrUnsupportedVersion, "The consumer group protocol is not enabled: group.coordinator.rebalance.protocols does not name it.")
	case id == "":
		return group.ConsumerNotDescribed(id, wire.ErrInvalidGroupID, "")
	case sh == nil:
		return group.ConsumerNotDescribed(id, wire.ErrNotCoordinator, "")
	}
	var d kmsg.ConsumerGroupDescribeResponseGroup
	writes, code := sh.step(func(_ time.Time, g *group.Groups) { d = g.DescribeConsumer(id, s.o.Topics()) })
	sh.seeThrough(writes)
	if code != wire.ErrNone {
		return group.ConsumerNotDescribed(id, code, "")
	}
	return d
}
