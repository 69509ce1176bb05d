package broker

import (
	"fmt"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"millrace/wire"
)

func (c *adminClient) topicPage(limit int32, cursor string, topics ...string) *kmsg.DescribeTopicPartitionsResponse {
	c.t.Helper()
	req := kmsg.NewPtrDescribeTopicPartitionsRequest()
	req.ResponsePartitionLimit = limit
	for _, name := range topics {
		req.Topics = append(req.Topics, kmsg.DescribeTopicPartitionsRequestTopic{Topic: name})
	}
	if name, partition, ok := strings.Cut(cursor, ":"); ok {
		at := kmsg.NewDescribeTopicPartitionsRequestCursor()
		at.Topic = name
		_, _ = fmt.Sscan(partition, &at.Partition)
		req.Cursor = &at
	}
	return ask[*kmsg.DescribeTopicPartitionsResponse](c, req)
}

// pageText is a page: topics with their partitions or error, and the next cursor.
func pageText(r *kmsg.DescribeTopicPartitionsResponse) string {
	var out []string
	for _, t := range r.Topics {
		line := textOf(t.Topic)
		if t.ErrorCode != 0 {
			line += "!" + itoa(int32(t.ErrorCode))
		}
		for _, p := range t.Partitions {
			line += " " + itoa(p.Partition)
		}
		out = append(out, line)
	}
	if c := r.NextCursor; c != nil {
		out = append(out, fmt.Sprintf("next %s:%d", c.Topic, c.Partition))
	}
	return strings.Join(out, ", ")
}

// Claim: topics come sorted, each once, in pages of at most as many partitions as asked
// for and as max.request.partition.size.limit allows, and each page's cursor leads to
// the next, wherever it was cut, with topics that are gone meanwhile passed over.
// Method: a table of limits, cursors and lists.
func TestDescribeTopicPartitionsInPages(t *testing.T) {
	c := dialAdmin(t, adminBroker(t, "", "max.request.partition.size.limit", "6"), "")
	c.createTopic("a", 3)
	c.createTopic("b", 2)
	c.createTopic("c", 3)
	for _, try := range []struct {
		limit  int32
		cursor string
		topics []string
		want   string
	}{
		{2000, "", nil, "a 0 1 2, b 0 1, c 0, next c:1"},
		{2000, "c:1", nil, "c 1 2"},
		{3, "", nil, "a 0 1 2, next b:0"},
		{2, "", nil, "a 0 1, next a:2"},
		{2, "a:2", nil, "a 2, b 0, next b:1"},
		{0, "b:1", nil, "b 1, next c:0"},
		{-1, "b:1", nil, "b 1, next c:0"},
		{5, "aa:7", nil, "b 0 1, c 0 1 2"},
		{5, "d:0", nil, ""},
		{5, "c:9", nil, "c"},
		{4, "", []string{"c", "a", "c", "none"}, "a 0 1 2, c 0, next c:1"},
		{4, "c:1", []string{"c", "a", "c", "none"}, "c 1 2, none!3"},
		{2, "", []string{"b", "none", "a b"}, "a b!17, b 0 1, next none:0"},
		{2, "none:0", []string{"b", "none", "a b"}, "none!3"},
		{2, "b:-1", []string{"b", "c"}, "b!42, c!42"},
		{2, "aa:0", []string{"b", "c"}, "b!42, c!42"}, // not a topic that is asked for
	} {
		if got := pageText(c.topicPage(try.limit, try.cursor, try.topics...)); got != try.want {
			t.Errorf("limit %d, cursor %q, topics %q: %q, want %q", try.limit, try.cursor, try.topics, got, try.want)
		}
	}
}

// Claim: a topic is told as Metadata tells it: id, leaders, epochs, replicas, the
// operations allowed, and no replicas that might be eligible beside those in sync.
// Method: one topic and an internal one.
func TestDescribeTopicPartitionsTellsAll(t *testing.T) {
	b := adminBroker(t, "")
	c := dialAdmin(t, b, "")
	id := c.createTopic("t", 1).TopicID
	c.createTopic("__consumer_offsets", 1)
	r := c.topicPage(2000, "", "t", "__consumer_offsets")
	if len(r.Topics) != 2 || !r.Topics[0].IsInternal || r.Topics[1].IsInternal || r.Topics[1].TopicID != id || r.Topics[1].AuthorizedOperations != topicOperations {
		t.Fatalf("%+v", r)
	}
	p := r.Topics[1].Partitions[0]
	if p.ErrorCode != 0 || p.LeaderID != 0 || p.LeaderEpoch != 0 || fmt.Sprint(p.Replicas, p.ISR, p.OfflineReplicas) != "[0] [0] []" || p.EligibleLeaderReplicas == nil || p.LastKnownELR == nil {
		t.Errorf("%+v", p)
	}
	if r = c.topicPage(1, "", "none"); r.Topics[0].ErrorCode != wire.ErrUnknownTopicOrPartition || r.NextCursor != nil {
		t.Errorf("%+v", r)
	}
}
