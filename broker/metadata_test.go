package broker

import (
	"encoding/hex"
	"fmt"
	"slices"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"millrace/wire"
)

func metadataFor(version int16, autoCreate bool, names ...string) *kmsg.MetadataRequest {
	req := kmsg.NewPtrMetadataRequest()
	req.Version, req.AllowAutoTopicCreation = version, autoCreate
	req.Topics = []kmsg.MetadataRequestTopic{}
	for i := range names {
		t := kmsg.NewMetadataRequestTopic()
		t.Topic = &names[i]
		req.Topics = append(req.Topics, t)
	}
	return req
}

// Claim: "all topics" is an empty list in version 0 and null from 1 on, where an
// empty list is none; brokers and controller are told each time (F035).
// Method: the field case's raw bodies against three topics.
func TestField_F035_AllTopicsIsNullOrEmptyByVersion(t *testing.T) {
	b := adminBroker(t, "", "auto.create.topics.enable", "false")
	c := dialAdmin(t, b, "")
	for _, name := range []string{"a", "b", "c"} {
		if r := c.createTopic(name, 1); r.ErrorCode != 0 {
			t.Fatal(textOf(r.ErrorMessage))
		}
	}
	for _, try := range []struct {
		version int16
		body    string
		topics  int
	}{
		{0, "00000000", 3},
		{1, "ffffffff", 3},
		{1, "00000000", 0},
		{4, "ffffffff00", 3},
		{4, "0000000000", 0},
		{9, "0000000000", 3}, // compact null, three booleans, no tags
		{9, "0100000000", 0}, // compact empty
		{12, "00000000", 3},
		{13, "01000000", 0},
	} {
		body, err := hex.DecodeString(try.body)
		if err != nil {
			t.Fatal(err)
		}
		m := c.raw(wire.KeyMetadata, try.version, body).(*kmsg.MetadataResponse)
		if len(m.Topics) != try.topics || len(m.Brokers) != 1 {
			t.Errorf("v%d %s: %d topics and %d brokers, want %d and 1", try.version, try.body, len(m.Topics), len(m.Brokers), try.topics)
		}
		if try.version >= 1 && m.ControllerID != b.node {
			t.Errorf("v%d: controller %d", try.version, m.ControllerID)
		}
	}
}

// Claim: every version tells a topic's partitions with their leader, and each
// what it has beside: cluster id, topic id, operations.
// Method: ask in all versions.
func TestMetadataInEveryVersion(t *testing.T) {
	b := adminBroker(t, "")
	c := dialAdmin(t, b, "")
	id := c.createTopic("orders", 3).TopicID
	for version := int16(0); version <= 13; version++ {
		req := metadataFor(version, false, "orders", "orders", "none")
		req.IncludeTopicAuthorizedOperations, req.IncludeClusterAuthorizedOperations = true, true
		m := ask[*kmsg.MetadataResponse](c, req)
		if len(m.Topics) != 2 || m.Brokers[0].NodeID != b.node || m.Brokers[0].Host != "127.0.0.1" || m.Brokers[0].Port == 0 {
			t.Fatalf("v%d: %+v", version, m)
		}
		topic, none := m.Topics[0], m.Topics[1]
		if topic.ErrorCode != 0 || textOf(topic.Topic) != "orders" || len(topic.Partitions) != 3 || topic.IsInternal {
			t.Errorf("v%d: %+v", version, topic)
		}
		wantNone := wire.ErrUnknownTopicOrPartition
		if version < 4 { // those versions cannot say "do not create"
			wantNone = wire.ErrNone
			requireDeleted(t, c, "none")
		}
		if none.ErrorCode != wantNone {
			t.Errorf("v%d: none is %s", version, wire.ErrorName(none.ErrorCode))
		}
		for i, p := range topic.Partitions {
			if p.ErrorCode != 0 || p.Partition != int32(i) || p.Leader != b.node || !slices.Equal(p.Replicas, []int32{b.node}) || !slices.Equal(p.ISR, []int32{b.node}) || len(p.OfflineReplicas) != 0 {
				t.Errorf("v%d: %+v", version, p)
			}
		}
		if version >= 2 && textOf(m.ClusterID) != b.coord.Image().ClusterID() {
			t.Errorf("v%d: cluster %s", version, textOf(m.ClusterID))
		}
		if version >= 8 && topic.AuthorizedOperations != topicOperations {
			t.Errorf("v%d: operations %x", version, topic.AuthorizedOperations)
		}
		if version >= 8 && version <= 10 && m.AuthorizedOperations != clusterOperations {
			t.Errorf("v%d: cluster operations %x", version, m.AuthorizedOperations)
		}
		if version >= 10 && topic.TopicID != id {
			t.Errorf("v%d: topic id %x", version, topic.TopicID)
		}
	}
}

func requireDeleted(t *testing.T, c *adminClient, name string) {
	t.Helper()
	req := kmsg.NewPtrDeleteTopicsRequest()
	req.Version, req.TopicNames = 5, []string{name}
	if r := ask[*kmsg.DeleteTopicsResponse](c, req).Topics[0]; r.ErrorCode != 0 {
		t.Fatal(textOf(r.ErrorMessage))
	}
}

// Claim: topics can be asked for by id from version 12 on, and an id in 10 or 11
// is an error, as in Kafka.
// Method: a known id, an unknown one, and a known one too early.
func TestMetadataByTopicID(t *testing.T) {
	c := dialAdmin(t, adminBroker(t, ""), "")
	id := c.createTopic("orders", 1).TopicID
	byID := func(version int16, id [16]byte, name *string) kmsg.MetadataResponseTopic {
		req := metadataFor(version, true)
		topic := kmsg.NewMetadataRequestTopic()
		topic.TopicID, topic.Topic = id, name
		req.Topics = append(req.Topics, topic)
		return ask[*kmsg.MetadataResponse](c, req).Topics[0]
	}
	for _, version := range []int16{12, 13} {
		if r := byID(version, id, nil); r.ErrorCode != 0 || textOf(r.Topic) != "orders" || len(r.Partitions) != 1 {
			t.Errorf("v%d: %+v", version, r)
		}
		if r := byID(version, [16]byte{1}, nil); r.ErrorCode != wire.ErrUnknownTopicID || r.Topic != nil || r.TopicID != [16]byte{1} {
			t.Errorf("v%d: %+v", version, r)
		}
	}
	name := "orders"
	if r := byID(11, id, &name); r.ErrorCode != wire.ErrInvalidRequest {
		t.Errorf("v11: %+v", r)
	}
}

// Claim: a topic that is made on first use has its leaders in the very first
// answer, in every version, and takes records from then on (F057).
// Method: new names one by one and twenty at once.
func TestField_F057_FirstAnswerHasTheLeader(t *testing.T) {
	b := adminBroker(t, "", "num.partitions", "3")
	c := dialAdmin(t, b, "")
	check := func(m *kmsg.MetadataResponse, want int) {
		t.Helper()
		if len(m.Topics) != want {
			t.Fatalf("%d topics, want %d", len(m.Topics), want)
		}
		for _, topic := range m.Topics {
			if topic.ErrorCode != 0 || len(topic.Partitions) != 3 {
				t.Errorf("%s: %s, %d partitions", textOf(topic.Topic), wire.ErrorName(topic.ErrorCode), len(topic.Partitions))
			}
			for i, p := range topic.Partitions {
				if p.ErrorCode != 0 || p.Leader != b.node || b.replicas.Topic(*topic.Topic).Partition(int32(i)).Lead() != nil {
					t.Errorf("%s: %+v", textOf(topic.Topic), p)
				}
			}
		}
	}
	for version := int16(0); version <= 13; version++ {
		check(ask[*kmsg.MetadataResponse](c, metadataFor(version, true, fmt.Sprintf("v%d", version))), 1)
	}
	var names []string
	for i := range 20 {
		names = append(names, fmt.Sprintf("new-%d", i))
	}
	check(ask[*kmsg.MetadataResponse](c, metadataFor(9, true, names...)), 20)
}

// Claim: topics are made on first use only where broker and client allow it, and
// what cannot be made says why.
// Method: a table of names and switches.
func TestWhatIsNotMadeOnFirstUse(t *testing.T) {
	off := dialAdmin(t, adminBroker(t, "", "auto.create.topics.enable", "false"), "")
	if r := ask[*kmsg.MetadataResponse](off, metadataFor(9, true, "new")).Topics[0]; r.ErrorCode != wire.ErrUnknownTopicOrPartition || textOf(r.Topic) != "new" {
		t.Errorf("switched off: %+v", r)
	}
	b := adminBroker(t, "", "default.replication.factor", "3")
	c := dialAdmin(t, b, "")
	c.createTopic("a.b", 1)
	for name, want := range map[string]int16{
		"a b":                wire.ErrInvalidTopic,
		"":                   wire.ErrInvalidTopic,
		"a_b":                wire.ErrInvalidTopic,
		"__consumer_offsets": wire.ErrUnknownTopicOrPartition,
		"new":                wire.ErrInvalidReplicationFactor,
	} {
		if r := ask[*kmsg.MetadataResponse](c, metadataFor(9, true, name)).Topics[0]; r.ErrorCode != want {
			t.Errorf("%q: %s, want %s", name, wire.ErrorName(r.ErrorCode), wire.ErrorName(want))
		}
	}
	if r := ask[*kmsg.MetadataResponse](c, metadataFor(9, false, "other")).Topics[0]; r.ErrorCode != wire.ErrUnknownTopicOrPartition {
		t.Errorf("not allowed: %+v", r)
	}
	if names := b.coord.Image().Names(); !slices.Equal(names, []string{"a.b"}) {
		t.Errorf("made all the same: %v", names)
	}
}

// Claim: each listener's clients are told the addresses of that listener (F117).
// Method: two listeners with different advertised hosts.
func TestMetadataTellsTheListenersOwnAddress(t *testing.T) {
	b := adminBroker(t, "",
		"listener.security.protocol.map", "IN:PLAINTEXT,OUT:PLAINTEXT",
		"listeners", "IN://127.0.0.1:0,OUT://127.0.0.1:0",
		"advertised.listeners", "IN://inside.example:1111,OUT://outside.example:2222")
	for listener, want := range map[string]string{"IN": "inside.example:1111", "OUT": "outside.example:2222"} {
		m := ask[*kmsg.MetadataResponse](dialAdmin(t, b, listener), metadataFor(9, false))
		if got := fmt.Sprintf("%s:%d", m.Brokers[0].Host, m.Brokers[0].Port); len(m.Brokers) != 1 || got != want {
			t.Errorf("%s is told %s", listener, got)
		}
	}
}
