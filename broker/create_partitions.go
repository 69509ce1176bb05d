package broker

import (
	"slices"

	"github.com/twmb/franz-go/pkg/kmsg"

	"millrace/coord"
	"millrace/engine"
	"millrace/wire"
)

// handleCreatePartitions serves CreatePartitions. When the answer is sent the new
// partitions are durable and take records.
func (b *Broker) handleCreatePartitions(rc *requestContext, request kmsg.Request) kmsg.Response {
	req := request.(*kmsg.CreatePartitionsRequest)
	resp := req.ResponseKind().(*kmsg.CreatePartitionsResponse)
	asked := make([]coord.MorePartitions, len(req.Topics))
	for i := range req.Topics {
		t := &req.Topics[i]
		m := coord.MorePartitions{Name: t.Topic, Count: t.Count, Prepare: b.makeNewLogs}
		if t.Assignment != nil {
			m.Assignment = make([][]int32, len(t.Assignment))
			for j := range t.Assignment {
				m.Assignment[j] = slices.Clone(t.Assignment[j].Replicas)
			}
		}
		asked[i] = m
	}
	answered := make(map[string]bool, len(asked))
	for _, r := range b.coord.CreatePartitions(rc.ctx, asked, req.ValidateOnly) {
		if answered[r.Name] {
			continue // twice in the request: refused, and said so once
		}
		answered[r.Name] = true
		t := kmsg.NewCreatePartitionsResponseTopic()
		t.Topic, t.ErrorCode = r.Name, r.Code
		if r.Code != wire.ErrNone {
			t.ErrorMessage = &r.Message
		} else if !req.ValidateOnly {
			rc.log.Info("topic has more partitions", "topic", r.Name, "partitions", len(r.Topic.Partitions), "client_id", rc.header.ClientID)
		}
		resp.Topics = append(resp.Topics, t)
	}
	return resp
}

// makeNewLogs makes the logs that a topic will need before anybody is told of the
// partitions: with no room for them (a full disk, no descriptors left) nothing has
// happened. A crash before the topic grows leaves empty logs, which the next try
// takes, or the topic's deletion.
func (b *Broker) makeNewLogs(next *coord.Topic) error {
	spec := engine.LogSpec{Topic: next.Name, TopicID: next.ID, Config: b.settingsOf(next.Name, next.Config).Log, New: true}
	have := 0
	if now := b.coord.Image().Topic(next.Name); now != nil {
		have = len(now.Partitions)
	}
	for i := have; i < len(next.Partitions); i++ {
		if slices.Contains(next.Partitions[i].Replicas, b.node) {
			spec.Partitions = append(spec.Partitions, int32(i))
		}
	}
	return b.store.Create(spec)
}
