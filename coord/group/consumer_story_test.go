package group

import (
	"fmt"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kmsg"

	"millrace/wire"
)

// modernClient is a member of the next-generation protocol as a client sees it.
type modernClient struct {
	s        *story
	group    string
	id       string
	instance *string
	epoch    int32
	topics   []string
	pattern  *string
	assignor *string
	owns     map[[16]byte][]int32 // what it uses
	told     map[[16]byte][]int32 // what it shall use
	why      string
	resend   bool // all, for an answer was lost
}

func (s *story) modern(id string, topics ...string) *modernClient {
	if len(topics) == 0 {
		topics = []string{"orders"}
	}
	return &modernClient{s: s, group: "g", id: id, topics: topics}
}

func (c *modernClient) twin(instance string) *modernClient { c.instance = &instance; return c }

// request is a heartbeat: whole, or as short as may be with what the client owns.
func (c *modernClient) request(whole bool) *kmsg.ConsumerGroupHeartbeatRequest {
	r := kmsg.NewPtrConsumerGroupHeartbeatRequest()
	r.Group, r.MemberID, r.MemberEpoch, r.InstanceID = c.group, c.id, c.epoch, c.instance
	if whole {
		r.RebalanceTimeoutMillis, r.SubscribedTopicNames, r.SubscribedTopicRegex, r.ServerAssignor = 30_000, c.topics, c.pattern, c.assignor
	}
	r.Topics = []kmsg.ConsumerGroupHeartbeatRequestTopic{}
	for id, p := range c.owns {
		r.Topics = append(r.Topics, kmsg.ConsumerGroupHeartbeatRequestTopic{TopicID: id, Partitions: p})
	}
	return r
}

func (c *modernClient) send(r *kmsg.ConsumerGroupHeartbeatRequest) Call {
	call := c.s.call()
	c.s.g.ConsumerHeartbeat(c.s.now, call, Client{ID: "app", Host: "/10.0.0.1", Version: 1}, r)
	c.s.settle()
	return call
}

// took takes the answer to a heartbeat; -100 if there is none yet.
func (c *modernClient) took(call Call) int16 {
	r, ok := c.s.done[call].(*kmsg.ConsumerGroupHeartbeatResponse)
	if !ok {
		return -100
	}
	c.why = ""
	if r.ErrorMessage != nil {
		c.why = *r.ErrorMessage
	}
	switch r.ErrorCode {
	case wire.ErrNone:
		c.epoch = r.MemberEpoch
		if r.Assignment != nil {
			c.told = map[[16]byte][]int32{}
			for _, t := range r.Assignment.Topics {
				c.told[t.TopicID] = t.Partitions
			}
		}
	case wire.ErrFencedMemberEpoch, wire.ErrUnknownMemberID:
		c.epoch, c.owns, c.told = 0, nil, nil
	}
	return r.ErrorCode
}

// join joins, or joins again.
func (c *modernClient) join() int16 {
	c.epoch, c.owns, c.told = 0, nil, nil
	return c.took(c.send(c.request(true)))
}

// obey uses what it was told to, no more and no less.
func (c *modernClient) obey() { c.owns = c.told }

// beat is a heartbeat that tells what the client owns.
func (c *modernClient) beat() int16 { return c.took(c.send(c.request(false))) }

func (c *modernClient) leave() int16 {
	c.epoch, c.owns = epochLeaves, nil
	return c.took(c.send(c.request(false)))
}

// commit commits one offset for a partition of orders.
func (c *modernClient) commit(version int16, epoch, partition int32) int16 {
	req := kmsg.NewPtrOffsetCommitRequest()
	req.Group, req.MemberID, req.Generation = c.group, c.id, epoch
	p := kmsg.NewOffsetCommitRequestTopicPartition()
	p.Partition, p.Offset = partition, 7
	req.Topics = []kmsg.OffsetCommitRequestTopic{{Topic: "orders", TopicID: [16]byte{1}, Partitions: []kmsg.OffsetCommitRequestTopicPartition{p}}}
	call := c.s.call()
	c.s.g.Commit(c.s.now, call, Client{Version: version}, req, c.s.known)
	c.s.settle()
	return c.s.done[call].(*kmsg.OffsetCommitResponse).Topics[0].Partitions[0].ErrorCode
}

// has tells what the client was told, as "1:0,1".
func (c *modernClient) has() string {
	var out []string
	for id, list := range c.told {
		out = append(out, fmt.Sprintf("%d:%s", id[0], strings.Trim(strings.ReplaceAll(fmt.Sprint(list), " ", ","), "[]")))
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}
