package coordinator

import (
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"millrace/coord/group"
	"millrace/wire"
)

// Join serves JoinGroup. The answer comes when the rebalance is over, which may
// take minutes. The request may be used again when Join has returned.
func (s *Service) Join(from group.Client, req *kmsg.JoinGroupRequest) *Call {
	refuse := func(code int16) kmsg.Response {
		r := kmsg.NewPtrJoinGroupResponse()
		r.ErrorCode, r.MemberID, r.Generation = code, req.MemberID, -1
		return r
	}
	return s.shardOf(req.Group).begin(req.Group, refuse, func(now time.Time, g *group.Groups, c group.Call) { g.Join(now, c, from, req) })
}

// Sync serves SyncGroup. The answer comes when the leader's assignment is
// durable.
func (s *Service) Sync(from group.Client, req *kmsg.SyncGroupRequest) *Call {
	refuse := func(code int16) kmsg.Response {
		r := kmsg.NewPtrSyncGroupResponse()
		if r.ErrorCode = code; code == wire.ErrCoordinatorLoadInProgress {
			// What was going on is lost: start over, without looking for
			// another coordinator.
			r.ErrorCode = wire.ErrRebalanceInProgress
		}
		return r
	}
	return s.shardOf(req.Group).begin(req.Group, refuse, func(now time.Time, g *group.Groups, c group.Call) { g.Sync(now, c, from, req) })
}

// Heartbeat serves Heartbeat.
func (s *Service) Heartbeat(req *kmsg.HeartbeatRequest) kmsg.Response {
	r := kmsg.NewPtrHeartbeatResponse()
	sh := s.shardOf(req.Group)
	if sh == nil {
		r.ErrorCode = wire.ErrNotCoordinator
		return r
	}
	writes, code := sh.step(func(now time.Time, g *group.Groups) { r.ErrorCode = g.Heartbeat(now, req) })
	sh.seeThrough(writes)
	if code != wire.ErrNone && code != wire.ErrCoordinatorLoadInProgress { // sessions begin when all is loaded: all is well
		r.ErrorCode = code
	}
	return r
}

// Leave serves LeaveGroup.
func (s *Service) Leave(from group.Client, req *kmsg.LeaveGroupRequest) kmsg.Response {
	refuse := func(code int16) kmsg.Response {
		r := kmsg.NewPtrLeaveGroupResponse()
		r.ErrorCode = code
		return r
	}
	return s.shardOf(req.Group).begin(req.Group, refuse, func(now time.Time, g *group.Groups, c group.Call) { g.Leave(now, c, from, req) }).wait()
}

// Commit serves OffsetCommit. What it answers without error is durable.
func (s *Service) Commit(from group.Client, req *kmsg.OffsetCommitRequest) kmsg.Response {
	refuse := func(code int16) kmsg.Response {
		r := kmsg.NewPtrOffsetCommitResponse()
		for i := range req.Topics {
			t := kmsg.OffsetCommitResponseTopic{Topic: req.Topics[i].Topic, TopicID: req.Topics[i].TopicID}
			for j := range req.Topics[i].Partitions {
				t.Partitions = append(t.Partitions, kmsg.OffsetCommitResponseTopicPartition{Partition: req.Topics[i].Partitions[j].Partition, ErrorCode: code})
			}
			r.Topics = append(r.Topics, t)
		}
		return r
	}
	// The state of the cluster is asked under the shard's mutex: a deletion
	// after that finds the commit in flight, one before it is seen here (F053).
	return s.shardOf(req.Group).begin(req.Group, refuse, func(now time.Time, g *group.Groups, c group.Call) {
		g.Commit(now, c, from, req, s.o.Topics())
	}).wait()
}

// wait is for calls that end by themselves.
func (c *Call) wait() kmsg.Response {
	<-c.Done
	return c.response
}

// fetchGroups is the first version of OffsetFetch that asks for several groups.
const fetchGroups = 8

// Fetch serves OffsetFetch in all versions.
func (s *Service) Fetch(req *kmsg.OffsetFetchRequest) kmsg.Response {
	r := kmsg.NewPtrOffsetFetchResponse()
	if req.Version >= fetchGroups {
		for i := range req.Groups {
			r.Groups = append(r.Groups, s.fetch(req.Version, &req.Groups[i]))
		}
		return r
	}
	asked := kmsg.NewOffsetFetchRequestGroup()
	asked.Group = req.Group
	if req.Topics != nil {
		asked.Topics = make([]kmsg.OffsetFetchRequestGroupTopic, len(req.Topics))
		for i := range req.Topics {
			asked.Topics[i] = kmsg.OffsetFetchRequestGroupTopic{Topic: req.Topics[i].Topic, Partitions: req.Topics[i].Partitions}
		}
	}
	got := s.fetch(req.Version, &asked)
	r.ErrorCode = got.ErrorCode
	if got.ErrorCode != wire.ErrNone && req.Version < 2 {
		got = failFetch(&asked, got.ErrorCode) // which have no place for an error of the whole
	}
	for i := range got.Topics {
		t := kmsg.OffsetFetchResponseTopic{Topic: got.Topics[i].Topic}
		for _, p := range got.Topics[i].Partitions {
			t.Partitions = append(t.Partitions, kmsg.OffsetFetchResponseTopicPartition{
				Partition: p.Partition, Offset: p.Offset, LeaderEpoch: p.LeaderEpoch, Metadata: p.Metadata, ErrorCode: p.ErrorCode,
			})
		}
		r.Topics = append(r.Topics, t)
	}
	return r
}

func (s *Service) fetch(version int16, asked *kmsg.OffsetFetchRequestGroup) kmsg.OffsetFetchResponseGroup {
	r := kmsg.NewOffsetFetchResponseGroup()
	r.Group = asked.Group
	sh := s.shardOf(asked.Group)
	switch {
	case asked.Group == "":
		r.ErrorCode = wire.ErrInvalidGroupID
	case sh == nil:
		r.ErrorCode = wire.ErrNotCoordinator
	default:
		writes, code := sh.step(func(_ time.Time, g *group.Groups) { r = g.Fetch(version, asked, s.o.Topics()) })
		sh.seeThrough(writes)
		if code != wire.ErrNone {
			r.ErrorCode = code
		}
	}
	return r
}

// failFetch says of each partition that it could not be looked up.
func failFetch(asked *kmsg.OffsetFetchRequestGroup, code int16) kmsg.OffsetFetchResponseGroup {
	r := kmsg.NewOffsetFetchResponseGroup()
	for i := range asked.Topics {
		t := kmsg.OffsetFetchResponseGroupTopic{Topic: asked.Topics[i].Topic}
		for _, index := range asked.Topics[i].Partitions {
			p := kmsg.NewOffsetFetchResponseGroupTopicPartition()
			metadata := ""
			p.Partition, p.Offset, p.Metadata, p.ErrorCode = index, -1, &metadata, code
			t.Partitions = append(t.Partitions, p)
		}
		r.Topics = append(r.Topics, t)
	}
	return r
}
