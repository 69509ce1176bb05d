package dump

import (
	"encoding/base64"
	"encoding/json"
	"fmt"

	"github.com/twmb/franz-go/pkg/kmsg"

	"millrace/coord/group/record"
)

// typed is a key as Kafka's decoder prints it, versioned a value.
type typed struct {
	Type string `json:"type"`
	Data any    `json:"data"`
}

type versioned struct {
	Version string `json:"version"`
	Data    any    `json:"data"`
}

// decodeGroupRecord makes JSON of a record of __consumer_offsets: commits and classic groups in Kafka's words. Of the records of the
// consumer protocol it gives the key, and the value in base64.
func decodeGroupRecord(key, value []byte) (k, v string, err error) {
	parsed, err := record.ParseKey(key)
	if err != nil {
		return fmt.Sprintf("%q", key), "", err
	}
	version := int16(key[0])<<8 | int16(key[1])
	switch version {
	case 0, 1:
		k, err = jsonOf(typed{fmt.Sprint(version), struct {
			Group     string `json:"group"`
			Topic     string `json:"topic"`
			Partition int32  `json:"partition"`
		}{parsed.Group, parsed.Topic, parsed.Partition}})
	case 2:
		k, err = jsonOf(typed{"2", struct {
			Group string `json:"group"`
		}{parsed.Group}})
	default:
		k, err = jsonOf(typed{fmt.Sprint(version), struct {
			Group  string `json:"groupId"`
			Member string `json:"memberId,omitempty"`
		}{parsed.Group, parsed.Member}})
	}
	if err != nil || value == nil {
		return k, "<DELETE>", err
	}
	switch version {
	case 0, 1:
		v, err = commitJSON(value)
	case 2:
		v, err = groupJSON(value)
	default:
		v = base64.StdEncoding.EncodeToString(value)
	}
	return k, v, err
}

func jsonOf(v any) (string, error) {
	b, err := json.Marshal(v)
	return string(b), err
}

func commitJSON(b []byte) (string, error) {
	c, err := record.ParseCommit(b)
	if err != nil {
		return "", err
	}
	version := int16(b[0])<<8 | int16(b[1])
	data := struct {
		Offset    int64   `json:"offset"`
		Epoch     *int32  `json:"leaderEpoch,omitempty"`
		Metadata  string  `json:"metadata"`
		Timestamp int64   `json:"commitTimestamp"`
		Expire    *int64  `json:"expireTimestamp,omitempty"`
		TopicID   *string `json:"topicId,omitempty"`
	}{Offset: c.Offset, Metadata: c.Metadata, Timestamp: c.At}
	if version >= 3 {
		data.Epoch = &c.LeaderEpoch
	}
	if version == 1 {
		data.Expire = &c.Expires
	}
	if version >= 4 {
		id := base64.RawURLEncoding.EncodeToString(c.TopicID[:])
		data.TopicID = &id
	}
	return jsonOf(versioned{fmt.Sprint(version), data})
}

type groupData struct {
	ProtocolType string        `json:"protocolType"`
	Generation   int32         `json:"generation"`
	Protocol     *string       `json:"protocol"`
	Leader       *string       `json:"leader"`
	Since        *int64        `json:"currentStateTimestamp,omitempty"`
	Members      []groupMember `json:"members"`
}

type groupMember struct {
	ID           string  `json:"memberId"`
	Instance     *string `json:"groupInstanceId"`
	ClientID     string  `json:"clientId"`
	ClientHost   string  `json:"clientHost"`
	Rebalance    int32   `json:"rebalanceTimeout"`
	Session      int32   `json:"sessionTimeout"`
	Subscription any     `json:"subscription"`
	Assignment   any     `json:"assignment"`
}

func groupJSON(b []byte) (string, error) {
	if _, err := record.ParseGroup(b); err != nil {
		return "", err
	}
	g := kmsg.NewGroupMetadataValue()
	if err := g.ReadFrom(b); err != nil {
		return "", err
	}
	data := groupData{ProtocolType: g.ProtocolType, Generation: g.Generation, Protocol: g.Protocol, Leader: g.Leader, Members: []groupMember{}}
	if g.Version >= 2 {
		data.Since = &g.CurrentStateTimestamp
	}
	for i := range g.Members {
		m := &g.Members[i]
		data.Members = append(data.Members, groupMember{
			ID: m.MemberID, Instance: m.InstanceID, ClientID: m.ClientID, ClientHost: m.ClientHost, Rebalance: m.RebalanceTimeoutMillis, Session: m.SessionTimeoutMillis,
			Subscription: subscriptionOf(g.ProtocolType, m.Subscription), Assignment: assignmentOf(g.ProtocolType, m.Assignment),
		})
	}
	return jsonOf(versioned{fmt.Sprint(g.Version), data})
}

type ownedPartitions struct {
	Topic      string  `json:"topic"`
	Partitions []int32 `json:"partitions"`
}

// subscriptionOf decodes what a consumer said of itself; bytes of another protocol stay bytes.
func subscriptionOf(protocol string, b []byte) any {
	m := kmsg.NewConsumerMemberMetadata()
	if protocol != "consumer" || len(b) == 0 || m.ReadFrom(b) != nil {
		return b
	}
	out := struct {
		Topics     []string          `json:"topics"`
		UserData   []byte            `json:"userData"`
		Owned      []ownedPartitions `json:"ownedPartitions"`
		Generation int32             `json:"generationId"`
		Rack       *string           `json:"rackId"`
	}{Topics: m.Topics, UserData: m.UserData, Owned: []ownedPartitions{}, Generation: m.Generation, Rack: m.Rack}
	for _, o := range m.OwnedPartitions {
		out.Owned = append(out.Owned, ownedPartitions{o.Topic, o.Partitions})
	}
	return out
}

func assignmentOf(protocol string, b []byte) any {
	a := kmsg.NewConsumerMemberAssignment()
	if protocol != "consumer" || len(b) == 0 || a.ReadFrom(b) != nil {
		return b
	}
	out := struct {
		Assigned []ownedPartitions `json:"assignedPartitions"`
		UserData []byte            `json:"userData"`
	}{Assigned: []ownedPartitions{}, UserData: a.UserData}
	for _, t := range a.Topics {
		out.Assigned = append(out.Assigned, ownedPartitions{t.Topic, t.Partitions})
	}
	return out
}
