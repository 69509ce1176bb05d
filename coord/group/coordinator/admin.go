package coordinator

import (
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"millrace/coord/group"
	"millrace/wire"
)

// DeleteOffsets serves OffsetDelete.
func (s *Service) DeleteOffsets(req *kmsg.OffsetDeleteRequest) kmsg.Response {
	refuse := func(code int16) kmsg.Response {
		r := kmsg.NewPtrOffsetDeleteResponse()
		r.ErrorCode = code
		return r
	}
	return s.shardOf(req.Group).begin(req.Group, refuse, func(_ time.Time, g *group.Groups, c group.Call) { g.DeleteOffsets(c, req) }).wait()
}

// DeleteGroups serves DeleteGroups. What it answers without error is durable.
func (s *Service) DeleteGroups(req *kmsg.DeleteGroupsRequest) kmsg.Response {
	r := kmsg.NewPtrDeleteGroupsResponse()
	for _, id := range req.Groups {
		refuse := func(code int16) kmsg.Response { return group.Deleted(id, code) }
		one := s.shardOf(id).begin(id, refuse, func(_ time.Time, g *group.Groups, c group.Call) { g.DeleteGroup(c, id) }).wait()
		r.Groups = append(r.Groups, one.(*kmsg.DeleteGroupsResponse).Groups...)
	}
	return r
}

// Describe serves DescribeGroups; operations is what the client may do with the
// groups, if it asked.
func (s *Service) Describe(req *kmsg.DescribeGroupsRequest, operations int32) kmsg.Response {
	r := kmsg.NewPtrDescribeGroupsResponse()
	for _, id := range req.Groups {
		d := s.describe(req.Version, id)
		if req.IncludeAuthorizedOperations && d.ErrorCode == wire.ErrNone {
			d.AuthorizedOperations = operations
		}
		r.Groups = append(r.Groups, d)
	}
	return r
}

func (s *Service) describe(version int16, id string) kmsg.DescribeGroupsResponseGroup {
	d := kmsg.NewDescribeGroupsResponseGroup()
	d.Group = id
	sh := s.shardOf(id)
	switch {
	case id == "":
		d.ErrorCode = wire.ErrInvalidGroupID
	case sh == nil:
		d.ErrorCode = wire.ErrNotCoordinator
	default:
		writes, code := sh.step(func(_ time.Time, g *group.Groups) { d = g.Describe(version, id) })
		sh.seeThrough(writes)
		if code != wire.ErrNone {
			d.ErrorCode = code
		}
	}
	return d
}

// List serves ListGroups: the groups of all partitions that this broker leads.
// While one of them is loading the list would be wrong, and is not given.
func (s *Service) List(req *kmsg.ListGroupsRequest) kmsg.Response {
	r := kmsg.NewPtrListGroupsResponse()
	for _, sh := range *s.shards.Load() {
		if sh == nil {
			continue
		}
		writes, code := sh.step(func(_ time.Time, g *group.Groups) {
			r.Groups = append(r.Groups, g.List(req.StatesFilter, req.TypesFilter)...)
		})
		sh.seeThrough(writes)
		if code == wire.ErrCoordinatorLoadInProgress || code == wire.ErrCoordinatorNotAvailable {
			r.ErrorCode, r.Groups = code, nil
			break
		}
	}
	return r
}
