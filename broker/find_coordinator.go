package broker

import (
	"fmt"
	"log/slog"

	"github.com/twmb/franz-go/pkg/kmsg"

	"millrace/coord/group/coordinator"
	"millrace/replica"
	"millrace/wire"
)

// Kinds of coordinators, as FindCoordinator numbers them.
const (
	groupCoordinator       int8 = 0
	transactionCoordinator int8 = 1
)

// findsMany is the first version of FindCoordinator that asks for several keys.
const findsMany = 4

// handleFindCoordinator serves FindCoordinator. A group's coordinator is the
// leader of its partition of __consumer_offsets, which is made on first use; so
// the first answer is one that the client can work with (F067).
func (b *Broker) handleFindCoordinator(rc *requestContext, request kmsg.Request) kmsg.Response {
	req := request.(*kmsg.FindCoordinatorRequest)
	resp := req.ResponseKind().(*kmsg.FindCoordinatorResponse)
	if req.Version < findsMany {
		c := b.findCoordinator(rc, req.CoordinatorType, req.CoordinatorKey)
		resp.NodeID, resp.Host, resp.Port, resp.ErrorCode, resp.ErrorMessage = c.NodeID, c.Host, c.Port, c.ErrorCode, c.ErrorMessage
		return resp
	}
	for _, key := range req.CoordinatorKeys {
		resp.Coordinators = append(resp.Coordinators, b.findCoordinator(rc, req.CoordinatorType, key))
	}
	return resp
}

func (b *Broker) findCoordinator(rc *requestContext, kind int8, key string) kmsg.FindCoordinatorResponseCoordinator {
	c := kmsg.NewFindCoordinatorResponseCoordinator()
	c.Key, c.NodeID, c.Port = key, -1, -1
	refuse := func(code int16, format string, args ...any) kmsg.FindCoordinatorResponseCoordinator {
		message := fmt.Sprintf(format, args...)
		c.ErrorCode, c.ErrorMessage = code, &message
		b.groupRefused.log(rc.log, slog.LevelWarn, "no coordinator found: "+message, "key", key, "error", wire.ErrorName(code), "client_id", rc.header.ClientID)
		return c
	}
	switch kind {
	case groupCoordinator:
	case transactionCoordinator:
		// One that clients take for final: they would look for ever otherwise.
		return refuse(wire.ErrUnsupportedVersion, "transactions are not built yet; leave transactional.id unset for an idempotent producer")
	default:
		return refuse(wire.ErrInvalidRequest, "there are no coordinators of type %d", kind)
	}
	topic, code, why := b.makeOffsets(rc)
	if code != wire.ErrNone {
		return refuse(code, "%s", why)
	}
	index := coordinator.PartitionOf(key, len(topic.Partitions))
	leader := b.coord.Image().Broker(topic.Partitions[index].Leader)
	if leader == nil {
		return refuse(wire.ErrCoordinatorNotAvailable, "partition %d of %s has no leader", index, topic.Name)
	}
	if leader.ID == b.node {
		if err := b.leadsGroups(topic.Name, index); err != nil {
			return refuse(wire.ErrCoordinatorNotAvailable, "partition %d of %s: %v", index, topic.Name, err)
		}
	}
	e, ok := leader.Endpoint(rc.listener)
	if !ok {
		return refuse(wire.ErrCoordinatorNotAvailable, "broker %d has no listener %s", leader.ID, rc.listener)
	}
	c.NodeID, c.Host, c.Port = leader.ID, e.Host, e.Port
	if rc.header.Version < 1 || rc.header.Version >= findsMany {
		return c
	}
	none := "NONE" // what Kafka says in these versions
	c.ErrorMessage = &none
	return c
}

// leadsGroups says why this broker cannot serve a partition of groups, though
// it leads it.
func (b *Broker) leadsGroups(topic string, index int32) error {
	held := b.replicas.Topic(topic)
	if held == nil || held.Partition(index) == nil {
		return replica.ErrOffline
	}
	return held.Partition(index).Lead()
}
