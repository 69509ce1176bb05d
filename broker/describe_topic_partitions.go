package broker

import (
	"slices"
	"sort"

	"github.com/twmb/franz-go/pkg/kmsg"

	"millrace/coord"
	"millrace/wire"
)

// handleDescribeTopicPartitions serves DescribeTopicPartitions: topics by name, in
// order, page by page. A page ends where the partitions that were asked for at most
// are full, and names what comes next.
func (b *Broker) handleDescribeTopicPartitions(rc *requestContext, request kmsg.Request) kmsg.Response {
	req := request.(*kmsg.DescribeTopicPartitionsRequest)
	resp := req.ResponseKind().(*kmsg.DescribeTopicPartitionsResponse)
	if !soundCursor(req) {
		for i := range req.Topics { // the answer has no other place for a code
			t := kmsg.NewDescribeTopicPartitionsResponseTopic()
			t.Topic, t.ErrorCode, t.AuthorizedOperations = &req.Topics[i].Topic, wire.ErrInvalidRequest, notAsked
			resp.Topics = append(resp.Topics, t)
		}
		return resp
	}
	page := topicPage{
		view: metadataView{img: b.coord.Image(), listener: rc.listener, version: 13}, // codes as in the newest Metadata
		room: b.pageLimit(req.ResponsePartitionLimit),
		resp: resp,
	}
	page.fill(pageNames(req, page.view.img), req.Cursor)
	return resp
}

// soundCursor tells whether the cursor can be one of ours: a partition of a topic that
// was asked for.
func soundCursor(req *kmsg.DescribeTopicPartitionsRequest) bool {
	c := req.Cursor
	if c == nil {
		return true
	}
	asked := len(req.Topics) == 0 || slices.ContainsFunc(req.Topics, func(t kmsg.DescribeTopicPartitionsRequestTopic) bool { return t.Topic == c.Topic })
	return c.Partition >= 0 && asked
}

// pageLimit is how many partitions one page may have.
func (b *Broker) pageLimit(asked int32) int {
	limit, _ := b.config.Get("max.request.partition.size.limit")
	return int(max(min(int64(asked), asInt(limit)), 1))
}

// pageNames lists the topics wanted, sorted, each once, from the cursor's on. One of
// the cursor's that is gone meanwhile is passed over, if all were asked for.
func pageNames(req *kmsg.DescribeTopicPartitionsRequest, img *coord.Image) []string {
	names := img.Names()
	if len(req.Topics) > 0 {
		names = make([]string, 0, len(req.Topics))
		for i := range req.Topics {
			names = append(names, req.Topics[i].Topic)
		}
		slices.Sort(names)
		names = slices.Compact(names)
	}
	if req.Cursor != nil {
		names = names[sort.SearchStrings(names, req.Cursor.Topic):]
	}
	return names
}

// topicPage is one answer being made.
type topicPage struct {
	view metadataView
	room int // partitions it may still have
	resp *kmsg.DescribeTopicPartitionsResponse
}

func (p *topicPage) fill(names []string, cursor *kmsg.DescribeTopicPartitionsRequestCursor) {
	for _, name := range names {
		from := 0
		if cursor != nil && cursor.Topic == name {
			from = int(cursor.Partition)
		}
		if p.room == 0 {
			p.next(name, from)
			return
		}
		if more := p.add(name, from); more > 0 {
			p.next(name, more)
			return
		}
	}
}

// add puts a topic's partitions from there on in the page. more is the first that had
// no room, 0 if all had.
func (p *topicPage) add(name string, from int) (more int) {
	t := kmsg.NewDescribeTopicPartitionsResponseTopic()
	t.Topic, t.AuthorizedOperations = &name, topicOperations
	topic := p.view.img.Topic(name)
	if topic == nil {
		if t.ErrorCode = wire.ErrUnknownTopicOrPartition; coord.CheckName(name) != "" {
			t.ErrorCode = wire.ErrInvalidTopic
		}
		p.resp.Topics = append(p.resp.Topics, t)
		return 0
	}
	t.TopicID, t.IsInternal = topic.ID, topic.Internal
	end := min(len(topic.Partitions), from+p.room)
	for _, m := range p.view.partitionsIn(topic, min(from, end), end) {
		one := kmsg.NewDescribeTopicPartitionsResponseTopicPartition()
		one.ErrorCode, one.Partition, one.LeaderID, one.LeaderEpoch = m.ErrorCode, m.Partition, m.Leader, m.LeaderEpoch
		one.Replicas, one.ISR, one.OfflineReplicas = m.Replicas, m.ISR, m.OfflineReplicas
		one.EligibleLeaderReplicas, one.LastKnownELR = []int32{}, []int32{} // known, and none
		t.Partitions = append(t.Partitions, one)
	}
	p.room -= len(t.Partitions)
	p.resp.Topics = append(p.resp.Topics, t)
	if end < len(topic.Partitions) {
		return end
	}
	return 0
}

func (p *topicPage) next(topic string, partition int) {
	c := kmsg.NewDescribeTopicPartitionsResponseNextCursor()
	c.Topic, c.Partition = topic, int32(partition)
	p.resp.NextCursor = &c
}
