package broker

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"millrace/wire"
)

// Claim: topics are deleted by name in every version and by id from 6 on; each
// answer names what was asked; afterwards the topic and its logs are gone, and
// a topic of that name has another id.
// Method: create, delete, look; all versions.
func TestDeleteTopicsInEveryVersion(t *testing.T) {
	b := adminBroker(t, "")
	c := dialAdmin(t, b, "")
	ids := map[[16]byte]bool{}
	for version := int16(0); version <= 6; version++ {
		id := c.createTopic("t", 2).TopicID
		if ids[id] {
			t.Errorf("id %x again", id)
		}
		ids[id] = true
		req := kmsg.NewPtrDeleteTopicsRequest()
		req.Version, req.TopicNames = version, []string{"t", "none"}
		if version >= 6 {
			req.TopicNames = nil
			none := "none"
			req.Topics = []kmsg.DeleteTopicsRequestTopic{{TopicID: id}, {Topic: &none}, {TopicID: [16]byte{1}}}
		}
		r := ask[*kmsg.DeleteTopicsResponse](c, req).Topics
		if r[0].ErrorCode != 0 || textOf(r[0].Topic) != "t" || r[1].ErrorCode != wire.ErrUnknownTopicOrPartition || textOf(r[1].Topic) != "none" {
			t.Errorf("v%d: %+v", version, r)
		}
		if version >= 6 && (r[0].TopicID != id || r[2].ErrorCode != wire.ErrUnknownTopicID || r[2].Topic != nil) {
			t.Errorf("v%d: %+v", version, r)
		}
		if version >= 5 && r[1].ErrorMessage == nil {
			t.Errorf("v%d: no message", version)
		}
		if b.coord.Image().Topic("t") != nil || b.store.Log("t", 0) != nil || b.replicas.Topic("t") != nil {
			t.Errorf("v%d: still there", version)
		}
	}
}

// Claim: contradictions delete nothing, and delete.topic.enable=false answers
// with the code that the version knows.
// Method: a table.
func TestDeleteTopicsRefusals(t *testing.T) {
	b := adminBroker(t, "")
	c := dialAdmin(t, b, "")
	id := c.createTopic("t", 1).TopicID
	name := "t"
	for what, topics := range map[string][]kmsg.DeleteTopicsRequestTopic{
		"name and id":  {{Topic: &name, TopicID: id}},
		"neither":      {{}},
		"twice":        {{Topic: &name}, {Topic: &name}},
		"twice, both":  {{Topic: &name}, {TopicID: id}},
		"twice, by id": {{TopicID: id}, {TopicID: id}},
	} {
		req := kmsg.NewPtrDeleteTopicsRequest()
		req.Version, req.Topics = 6, topics
		for _, r := range ask[*kmsg.DeleteTopicsResponse](c, req).Topics {
			if r.ErrorCode != wire.ErrInvalidRequest {
				t.Errorf("%s: %+v", what, r)
			}
		}
		if b.coord.Image().Topic("t") == nil {
			t.Fatalf("%s: deleted", what)
		}
	}
	off := dialAdmin(t, adminBroker(t, "", "delete.topic.enable", "false"), "")
	off.createTopic("t", 1)
	for version, want := range map[int16]int16{2: wire.ErrInvalidRequest, 3: wire.ErrTopicDeletionDisabled, 6: wire.ErrTopicDeletionDisabled} {
		req := kmsg.NewPtrDeleteTopicsRequest()
		req.Version, req.TopicNames = version, []string{"t"}
		if version >= 6 {
			req.TopicNames, req.Topics = nil, []kmsg.DeleteTopicsRequestTopic{{Topic: &name}}
		}
		if r := ask[*kmsg.DeleteTopicsResponse](off, req).Topics[0]; r.ErrorCode != want {
			t.Errorf("v%d: %s", version, wire.ErrorName(r.ErrorCode))
		}
	}
}
