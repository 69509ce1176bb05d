package broker

import (
	"context"
	"fmt"
	"slices"

	"github.com/twmb/franz-go/pkg/kmsg"

	"millrace/coord"
	"millrace/wire"
)

// handleCreateTopics serves CreateTopics. Each topic is made or refused for
// itself; a refusal says which value broke which rule. When the answer is sent
// the topics are durable and take records.
func (b *Broker) handleCreateTopics(rc *requestContext, request kmsg.Request) kmsg.Response {
	req := request.(*kmsg.CreateTopicsRequest)
	resp := req.ResponseKind().(*kmsg.CreateTopicsResponse)

	// A topic that is malformed in itself never reaches the service; one that
	// is in the request twice must, so that both are refused.
	results := make([]coord.TopicResult, len(req.Topics))
	var asked []coord.NewTopic
	var places []int // where each of asked stands in the request
	for i := range req.Topics {
		t, refused := b.newTopic(&req.Topics[i])
		if refused.Code != wire.ErrNone {
			results[i] = refused
			continue
		}
		asked, places = append(asked, t), append(places, i)
	}
	for i, r := range b.createTopics(rc, asked, req.ValidateOnly) {
		results[places[i]] = r
	}
	answered := make(map[string]bool, len(results))
	for i := range results {
		r := &results[i]
		if answered[r.Name] {
			continue // twice in the request: refused, and said so once
		}
		answered[r.Name] = true
		resp.Topics = append(resp.Topics, b.createTopicsResult(r))
		if r.Code == wire.ErrNone && !req.ValidateOnly {
			rc.log.Info("topic made", "topic", r.Name, "partitions", len(r.Topic.Partitions), "id", coord.IDText(r.Topic.ID), "client", rc.header.ClientID)
		}
	}
	return resp
}

// newTopic turns a topic of the request into a wish, or refuses it.
func (b *Broker) newTopic(asked *kmsg.CreateTopicsRequestTopic) (t coord.NewTopic, refused coord.TopicResult) {
	refuse := func(code int16, format string, args ...any) (coord.NewTopic, coord.TopicResult) {
		return t, coord.TopicResult{Name: asked.Topic, Code: code, Message: fmt.Sprintf(format, args...)}
	}
	t = coord.NewTopic{Name: asked.Topic, Partitions: asked.NumPartitions, Factor: asked.ReplicationFactor}
	if t.Partitions == -1 {
		t.Partitions = b.config.Topics.Partitions
	}
	if t.Factor == -1 {
		t.Factor = b.config.Topics.ReplicationFactor
	}
	if len(asked.ReplicaAssignment) > 0 {
		if asked.NumPartitions != -1 || asked.ReplicationFactor != -1 {
			return refuse(wire.ErrInvalidRequest, "topic %q: partitions are %d and replication factor is %d, but with a manual assignment both must be -1", asked.Topic, asked.NumPartitions, asked.ReplicationFactor)
		}
		var wrong string
		if t.Assignment, wrong = assignmentOf(asked.ReplicaAssignment); wrong != "" {
			return refuse(wire.ErrInvalidReplicaAssignment, "topic %q: %s", asked.Topic, wrong)
		}
	}
	if len(asked.Configs) > 0 {
		t.Config = make(map[string]string, len(asked.Configs))
	}
	for i := range asked.Configs {
		c := &asked.Configs[i]
		if c.Value == nil {
			return refuse(wire.ErrInvalidConfig, "topic %q: config %s is null; leave it out for its default", asked.Topic, c.Name)
		}
		t.Config[c.Name] = *c.Value
	}
	if err := b.configNow().checkTopicConfig(t.Config); err != nil {
		return refuse(wire.ErrInvalidConfig, "topic %q: %v", asked.Topic, err)
	}
	return t, refused
}

// assignmentOf orders a manual assignment by partition.
func assignmentOf(asked []kmsg.CreateTopicsRequestTopicReplicaAssignment) (_ [][]int32, wrong string) {
	out := make([][]int32, len(asked))
	for i := range asked {
		p := asked[i].Partition
		switch {
		case p < 0 || int(p) >= len(out):
			return nil, fmt.Sprintf("the assignment has %d partitions, so they must be 0 to %d, but one is %d", len(out), len(out)-1, p)
		case out[p] != nil:
			return nil, fmt.Sprintf("partition %d is assigned twice", p)
		}
		out[p] = append([]int32{}, asked[i].Replicas...)
	}
	return out, ""
}

// createTopics asks the service, and takes back what it made but this broker
// could not make logs for (a full disk, no descriptors left): a topic that
// takes no records is no topic.
func (b *Broker) createTopics(rc *requestContext, topics []coord.NewTopic, validateOnly bool) []coord.TopicResult {
	if len(topics) == 0 {
		return nil
	}
	results := b.coord.CreateTopics(rc.ctx, topics, validateOnly)
	for i := range results {
		r := &results[i]
		if r.Code != wire.ErrNone || validateOnly || b.holds(r.Topic) {
			continue
		}
		b.coord.DeleteTopics(context.WithoutCancel(rc.ctx), []string{r.Name})
		why := any("its log says why")
		if err, ok := b.notMade.LoadAndDelete(r.Name); ok {
			why = err
		}
		*r = coord.TopicResult{Name: r.Name, Code: wire.ErrKafkaStorageError, Message: fmt.Sprintf("topic %q: this broker could not make its logs: %v", r.Name, why)}
	}
	return results
}

// holds says whether this broker has a log for each of the topic's partitions
// that it has a replica of.
func (b *Broker) holds(t *coord.Topic) bool {
	held := b.replicas.Topic(t.Name)
	for i := range t.Partitions {
		if !slices.Contains(t.Partitions[i].Replicas, b.node) {
			continue
		}
		if held == nil || held.Partition(int32(i)) == nil || held.Partition(int32(i)).Log() == nil {
			return false
		}
	}
	return true
}

// createTopicsResult is one topic's answer. From version 5 on it tells the
// settings that the topic has, so that nobody needs to ask again.
func (b *Broker) createTopicsResult(r *coord.TopicResult) kmsg.CreateTopicsResponseTopic {
	t := kmsg.NewCreateTopicsResponseTopic()
	t.Topic, t.ErrorCode = r.Name, r.Code
	t.Configs = []kmsg.CreateTopicsResponseTopicConfig{} // of a refused topic too: null means that they may not be seen
	if r.Code != wire.ErrNone {
		t.ErrorMessage = &r.Message
		return t
	}
	t.TopicID = r.Topic.ID
	t.NumPartitions = int32(len(r.Topic.Partitions))
	t.ReplicationFactor = int16(len(r.Topic.Partitions[0].Replicas))
	for i := range topicTable {
		k := &topicTable[i]
		if _, set := r.Topic.Config[k.Name]; k.Gone && !set {
			continue
		}
		v := k.value(b.configNow(), r.Topic.Config)
		c := kmsg.NewCreateTopicsResponseTopicConfig()
		c.Name, c.Value, c.Source = k.Name, &v.Value, v.Source
		t.Configs = append(t.Configs, c)
	}
	return t
}
