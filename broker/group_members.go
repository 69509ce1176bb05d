package broker

import (
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"millrace/coord/group"
	"millrace/coord/group/coordinator"
	"millrace/wire"
)

// handleJoinGroup serves JoinGroup, which is answered when the group's
// rebalance is over.
func (b *Broker) handleJoinGroup(rc *requestContext, request kmsg.Request) kmsg.Response {
	return rc.await(b.groups.Join(rc.groupClient(), request.(*kmsg.JoinGroupRequest)))
}

// handleSyncGroup serves SyncGroup, which is answered when the leader has
// assigned.
func (b *Broker) handleSyncGroup(rc *requestContext, request kmsg.Request) kmsg.Response {
	req := request.(*kmsg.SyncGroupRequest)
	if req.Version >= 5 && (req.ProtocolType == nil || req.Protocol == nil) { // KIP-559: from then on clients say both
		resp := req.ResponseKind().(*kmsg.SyncGroupResponse)
		resp.ErrorCode = wire.ErrInconsistentGroupProtocol
		return resp
	}
	return rc.await(b.groups.Sync(rc.groupClient(), req))
}

func (b *Broker) handleHeartbeat(_ *requestContext, request kmsg.Request) kmsg.Response {
	return b.groups.Heartbeat(request.(*kmsg.HeartbeatRequest))
}

func (b *Broker) handleLeaveGroup(rc *requestContext, request kmsg.Request) kmsg.Response {
	return b.groups.Leave(rc.groupClient(), request.(*kmsg.LeaveGroupRequest))
}

func (b *Broker) handleConsumerGroupHeartbeat(rc *requestContext, request kmsg.Request) kmsg.Response {
	return b.groups.ConsumerHeartbeat(rc.groupClient(), request.(*kmsg.ConsumerGroupHeartbeatRequest))
}

// groupClient is the client as groups show it.
func (rc *requestContext) groupClient() group.Client {
	return group.Client{ID: rc.header.ClientID, Host: "/" + rc.conn.ip, Version: rc.header.Version}
}

// await waits for a group, which may take minutes, on the connection's own
// goroutine: its later requests wait too, as in Kafka. Answers to earlier ones
// leave first. A stop ends the wait, for the coordinator answers all then.
// Nobody reads the socket meanwhile, so now and then we look whether the client
// is still there; if not, there is no answer.
func (rc *requestContext) await(call *coordinator.Call) kmsg.Response {
	select {
	case <-call.Done:
		return call.Response()
	default:
	}
	if err := rc.conn.flush(); err != nil {
		call.Abandon()
		return nil
	}
	defer rc.conn.meter.waits(rc.conn.meter.m.clock())
	look := time.NewTicker(peekEvery)
	defer look.Stop()
	for {
		select {
		case <-call.Done:
			return call.Response()
		case <-look.C:
			if rc.conn.gone() {
				call.Abandon()
				return nil
			}
		}
	}
}
