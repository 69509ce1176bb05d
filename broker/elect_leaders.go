package broker

import (
	"fmt"

	"github.com/twmb/franz-go/pkg/kmsg"

	"millrace/coord"
	"millrace/wire"
)

// Kinds of election.
const (
	electPreferred = 0 // the first replica, if it is in sync
	electUnclean   = 1 // any live replica, if there is no leader; may lose records
)

// handleElectLeaders serves ElectLeaders. With one broker each partition's one replica
// leads it as long as the broker runs, so nothing is ever to be elected: all that can be
// said is why.
func (b *Broker) handleElectLeaders(_ *requestContext, request kmsg.Request) kmsg.Response {
	req := request.(*kmsg.ElectLeadersRequest)
	resp := req.ResponseKind().(*kmsg.ElectLeadersResponse)
	if req.ElectionType != electPreferred && req.ElectionType != electUnclean {
		refuseElection(req, resp)
		return resp
	}
	img := b.coord.Image()
	topics := req.Topics
	everything := topics == nil
	if everything {
		topics = everyPartition(img)
	}
	for i := range topics {
		asked := &topics[i]
		t := kmsg.NewElectLeadersResponseTopic()
		t.Topic = asked.Topic
		for _, index := range asked.Partitions {
			p := kmsg.NewElectLeadersResponseTopicPartition()
			p.Partition = index
			var message string
			p.ErrorCode, message = electLeader(img, asked.Topic, index, req.ElectionType)
			if everything && p.ErrorCode == wire.ErrElectionNotNeeded {
				continue // of all partitions, only those where something happened are told
			}
			if message != "" {
				p.ErrorMessage = &message
			}
			t.Partitions = append(t.Partitions, p)
		}
		if len(t.Partitions) > 0 || !everything {
			resp.Topics = append(resp.Topics, t)
		}
	}
	return resp
}

// refuseElection says in each place that there is that the type of the election is none.
func refuseElection(req *kmsg.ElectLeadersRequest, resp *kmsg.ElectLeadersResponse) {
	message := fmt.Sprintf("election type %d is unknown; there are preferred (%d) and unclean (%d)", req.ElectionType, electPreferred, electUnclean)
	resp.ErrorCode = wire.ErrInvalidRequest
	for i := range req.Topics {
		t := kmsg.NewElectLeadersResponseTopic()
		t.Topic = req.Topics[i].Topic
		for _, index := range req.Topics[i].Partitions {
			p := kmsg.NewElectLeadersResponseTopicPartition()
			p.Partition, p.ErrorCode, p.ErrorMessage = index, wire.ErrInvalidRequest, &message
			t.Partitions = append(t.Partitions, p)
		}
		resp.Topics = append(resp.Topics, t)
	}
}

func everyPartition(img *coord.Image) []kmsg.ElectLeadersRequestTopic {
	out := make([]kmsg.ElectLeadersRequestTopic, 0, len(img.Names()))
	for _, name := range img.Names() {
		t := kmsg.NewElectLeadersRequestTopic()
		t.Topic = name
		for i := range img.Topic(name).Partitions {
			t.Partitions = append(t.Partitions, int32(i))
		}
		out = append(out, t)
	}
	return out
}

// electLeader says why a partition gets no other leader.
func electLeader(img *coord.Image, topic string, index int32, kind int8) (code int16, message string) {
	p, code, message := findPartition(img, topic, index)
	switch {
	case code != wire.ErrNone:
		return code, message
	case kind == electUnclean && p.Leader >= 0:
		return wire.ErrElectionNotNeeded, fmt.Sprintf("partition %d of topic %q has a leader, broker %d", index, topic, p.Leader)
	case kind == electPreferred && p.Leader == p.Replicas[0]:
		return wire.ErrElectionNotNeeded, fmt.Sprintf("partition %d of topic %q is led by its preferred leader, broker %d", index, topic, p.Leader)
	case kind == electUnclean:
		return wire.ErrEligibleLeadersNotAvailable, fmt.Sprintf("partition %d of topic %q has no live replica", index, topic)
	}
	return wire.ErrPreferredLeaderNotAvailable, fmt.Sprintf("partition %d of topic %q: its preferred leader, broker %d, is not alive and in sync", index, topic, p.Replicas[0])
}

// findPartition finds a partition in the image, or says what is not there.
func findPartition(img *coord.Image, topic string, index int32) (p *coord.Partition, code int16, message string) {
	t := img.Topic(topic)
	if t == nil {
		return nil, wire.ErrUnknownTopicOrPartition, fmt.Sprintf("topic %q does not exist", topic)
	}
	if index < 0 || int(index) >= len(t.Partitions) {
		return nil, wire.ErrUnknownTopicOrPartition, fmt.Sprintf("topic %q has no partition %d, only 0 to %d", topic, index, len(t.Partitions)-1)
	}
	return &t.Partitions[index], wire.ErrNone, ""
}
