package group

import (
	"github.com/twmb/franz-go/pkg/kmsg"

	"millrace/coord/group/assign"
	"millrace/wire"
)

// commitByEpoch is the first version of OffsetCommit that a member of a modern
// group can use: older ones cannot tell it that its epoch is stale.
const commitByEpoch = 9

// mayCommit says which member commits, or what is wrong; nobody and no error:
// an administrator, or a consumer that assigns its partitions itself.
func (n *modern) mayCommit(from Client, req *kmsg.OffsetCommitRequest) (*consumer, int16) {
	if req.Generation < 0 && len(n.members) == 0 {
		return nil, wire.ErrNone
	}
	x := n.members[req.MemberID]
	switch {
	case x == nil:
		return nil, wire.ErrUnknownMemberID
	case x.said.Classic != nil && req.Generation != x.epoch:
		return nil, wire.ErrIllegalGeneration
	case x.said.Classic == nil && from.Version < commitByEpoch:
		return nil, wire.ErrUnsupportedVersion
	case req.Generation < 0 || req.Generation > x.epoch:
		return nil, wire.ErrStaleMemberEpoch
	}
	return x, wire.ErrNone
}

// mayCommitAt says whether a member that names an epoch may commit a
// partition. An older epoch than its own will do if it has had the partition
// since: then the epoch has only risen while the commit was under way.
func (x *consumer) mayCommitAt(p assign.Place, epoch int32) bool {
	if epoch == x.epoch {
		return true
	}
	since, ok := x.assigned[p]
	if !ok {
		since, ok = x.revoking[p]
	}
	return ok && epoch >= since
}

// mayFetch checks who asks for commits, if that is told.
func (n *modern) mayFetch(member *string, epoch int32) int16 {
	if member == nil && epoch < 0 {
		return wire.ErrNone
	}
	var x *consumer
	if member != nil {
		x = n.members[*member]
	}
	switch {
	case x == nil:
		return wire.ErrUnknownMemberID
	case epoch != x.epoch && x.said.Classic != nil:
		return wire.ErrIllegalGeneration
	case epoch != x.epoch:
		return wire.ErrStaleMemberEpoch
	}
	return wire.ErrNone
}
