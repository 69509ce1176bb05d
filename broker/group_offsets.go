package broker

import "github.com/twmb/franz-go/pkg/kmsg"

// handleOffsetCommit serves OffsetCommit: what it answers without error has
// been synced.
func (b *Broker) handleOffsetCommit(rc *requestContext, request kmsg.Request) kmsg.Response {
	return b.groups.Commit(rc.groupClient(), request.(*kmsg.OffsetCommitRequest))
}

func (b *Broker) handleOffsetFetch(_ *requestContext, request kmsg.Request) kmsg.Response {
	return b.groups.Fetch(request.(*kmsg.OffsetFetchRequest))
}

func (b *Broker) handleOffsetDelete(_ *requestContext, request kmsg.Request) kmsg.Response {
	return b.groups.DeleteOffsets(request.(*kmsg.OffsetDeleteRequest))
}
