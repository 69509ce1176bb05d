package broker

import (
	"os"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"millrace/wire"
)

// Claim: names that would break a folder or collide are refused in every
// version, also when only validated; the longest name works with many
// partitions (F051).
// Method: the field case's list.
func TestField_F051_TopicNamesOverTheWire(t *testing.T) {
	dir := t.TempDir()
	b := adminBroker(t, dir)
	c := dialAdmin(t, b, "")
	bad := []string{strings.Repeat("x", 250), "", ".", "..", "a b", "a/b", "t\u00e9", "a_b"}
	longest := strings.Repeat("y", 249)
	if r := c.createTopic("a.b", 1); r.ErrorCode != 0 {
		t.Fatal(textOf(r.ErrorMessage))
	}
	for version := int16(0); version <= 7; version++ {
		for _, validateOnly := range []bool{true, false} {
			req := kmsg.NewPtrCreateTopicsRequest()
			req.Version, req.ValidateOnly = version, validateOnly && version >= 1
			for _, name := range bad {
				topic := kmsg.NewCreateTopicsRequestTopic()
				topic.Topic, topic.NumPartitions, topic.ReplicationFactor = name, 1, 1
				req.Topics = append(req.Topics, topic)
			}
			for i, r := range ask[*kmsg.CreateTopicsResponse](c, req).Topics {
				if r.ErrorCode != wire.ErrInvalidTopic || (version >= 1 && r.ErrorMessage == nil) {
					t.Errorf("v%d %q: %s %s", version, bad[i], wire.ErrorName(r.ErrorCode), textOf(r.ErrorMessage))
				}
				if version >= 1 && r.Topic == "a_b" && !strings.Contains(*r.ErrorMessage, `"a.b"`) {
					t.Errorf("the colliding name is not told: %s", *r.ErrorMessage)
				}
			}
		}
	}
	if r := c.createTopic(longest, 100); r.ErrorCode != 0 {
		t.Error(textOf(r.ErrorMessage))
	}
	requireDeleted(t, c, longest)
	folders, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range folders {
		if strings.HasPrefix(f.Name(), longest+"-") && !strings.HasSuffix(f.Name(), "-delete") {
			t.Errorf("%s is left", f.Name())
		}
	}
	if n := len(b.coord.Image().Names()); n != 1 {
		t.Errorf("%d topics are left", n)
	}
}

// Claim: a new topic's answer tells its id, size and settings, with -1 standing
// for the broker's defaults; validate_only tells the same and makes nothing.
// Method: create with defaults and one override, twice.
func TestCreateTopicsTellsWhatItMade(t *testing.T) {
	b := adminBroker(t, "", "num.partitions", "4", "log.retention.hours", "24")
	c := dialAdmin(t, b, "")
	for _, validateOnly := range []bool{true, false} {
		value := "compact"
		req := kmsg.NewPtrCreateTopicsRequest()
		req.Version, req.ValidateOnly = 7, validateOnly
		topic := kmsg.NewCreateTopicsRequestTopic()
		topic.Topic, topic.NumPartitions, topic.ReplicationFactor = "t", -1, -1
		topic.Configs = append(topic.Configs, kmsg.CreateTopicsRequestTopicConfig{Name: "cleanup.policy", Value: &value})
		req.Topics = append(req.Topics, topic)
		r := ask[*kmsg.CreateTopicsResponse](c, req).Topics[0]
		if r.ErrorCode != 0 || r.NumPartitions != 4 || r.ReplicationFactor != 1 || (r.TopicID == [16]byte{}) != validateOnly {
			t.Errorf("%+v", r)
		}
		found := map[string]kmsg.CreateTopicsResponseTopicConfig{}
		for _, config := range r.Configs {
			found[config.Name] = config
		}
		if p := found["cleanup.policy"]; textOf(p.Value) != "compact" || p.Source != sourceTopic {
			t.Errorf("%+v", p)
		}
		if p := found["retention.ms"]; textOf(p.Value) != "86400000" || p.Source != sourceStatic {
			t.Errorf("%+v", p)
		}
		if p := found["segment.bytes"]; textOf(p.Value) != "1073741824" || p.Source != sourceDefault {
			t.Errorf("%+v", p)
		}
		if made := b.coord.Image().Topic("t") != nil; made == validateOnly {
			t.Errorf("validate only %v: made %v", validateOnly, made)
		}
	}
	if log := b.store.Log("t", 3); log == nil || !log.Config().Compact || log.Config().RetentionAge.Hours() != 24 {
		t.Error("the log does not have the topic's settings")
	}
}

// Claim: every refusal has Kafka's code and says the value, the limit or the
// setting that it breaks, and the topics beside it are made.
// Method: a table of single faults, each in one request with a good topic.
func TestCreateTopicsRefusals(t *testing.T) {
	b := adminBroker(t, "")
	c := dialAdmin(t, b, "")
	assigned := func(partition int32, replicas ...int32) kmsg.CreateTopicsRequestTopicReplicaAssignment {
		return kmsg.CreateTopicsRequestTopicReplicaAssignment{Partition: partition, Replicas: replicas}
	}
	config := func(name string, value *string) func(*kmsg.CreateTopicsRequestTopic) {
		return func(t *kmsg.CreateTopicsRequestTopic) {
			t.Configs = append(t.Configs, kmsg.CreateTopicsRequestTopicConfig{Name: name, Value: value})
		}
	}
	manual := func(a ...kmsg.CreateTopicsRequestTopicReplicaAssignment) func(*kmsg.CreateTopicsRequestTopic) {
		return func(t *kmsg.CreateTopicsRequestTopic) {
			t.NumPartitions, t.ReplicationFactor, t.ReplicaAssignment = -1, -1, a
		}
	}
	for name, try := range map[string]struct {
		spoil func(*kmsg.CreateTopicsRequestTopic)
		code  int16
		says  string
	}{
		"partitions":    {func(t *kmsg.CreateTopicsRequestTopic) { t.NumPartitions = 0 }, wire.ErrInvalidPartitions, "is 0"},
		"too-many":      {func(t *kmsg.CreateTopicsRequestTopic) { t.NumPartitions = 2147483647 }, wire.ErrPolicyViolation, "10000"},
		"factor":        {func(t *kmsg.CreateTopicsRequestTopic) { t.ReplicationFactor = 2 }, wire.ErrInvalidReplicationFactor, "only 1 broker"},
		"no-factor":     {func(t *kmsg.CreateTopicsRequestTopic) { t.ReplicationFactor = -3 }, wire.ErrInvalidReplicationFactor, "is -3"},
		"unknown-key":   {config("retention.msec", kmsg.StringPtr("1")), wire.ErrInvalidConfig, `"retention.msec"`},
		"null-value":    {config("retention.ms", nil), wire.ErrInvalidConfig, "retention.ms is null"},
		"bad-value":     {config("retention.ms", kmsg.StringPtr("-2")), wire.ErrInvalidConfig, "at least -1"},
		"bad-word":      {config("cleanup.policy", kmsg.StringPtr("shred")), wire.ErrInvalidConfig, "compact, delete"},
		"tiered":        {config("remote.storage.enable", kmsg.StringPtr("true")), wire.ErrInvalidConfig, "not built"},
		"lags":          {config("min.compaction.lag.ms", kmsg.StringPtr("9223372036854775807")), wire.ErrNone, ""},
		"durability":    {config("millrace.durability", kmsg.StringPtr("maybe")), wire.ErrInvalidConfig, "sync, page-cache"},
		"unknown-node":  {manual(assigned(0, 99)), wire.ErrInvalidReplicaAssignment, "broker 99"},
		"gap":           {manual(assigned(1, 0)), wire.ErrInvalidReplicaAssignment, "0 to 0"},
		"twice":         {manual(assigned(0, 0), assigned(0, 0)), wire.ErrInvalidReplicaAssignment, "assigned twice"},
		"manual":        {manual(assigned(1, 0), assigned(0, 0)), wire.ErrNone, ""},
		"no-replicas":   {manual(assigned(0)), wire.ErrInvalidReplicaAssignment, "no replicas"},
		"both":          {func(t *kmsg.CreateTopicsRequestTopic) { manual(assigned(0, 0))(t); t.NumPartitions = 1 }, wire.ErrInvalidRequest, "must be -1"},
		"tiny-segments": {config("segment.bytes", kmsg.StringPtr("13")), wire.ErrInvalidConfig, "segment.bytes"},
	} {
		req := kmsg.NewPtrCreateTopicsRequest()
		req.Version = 5
		topic := kmsg.NewCreateTopicsRequestTopic()
		topic.Topic, topic.NumPartitions, topic.ReplicationFactor = name, 1, 1
		try.spoil(&topic)
		good := kmsg.NewCreateTopicsRequestTopic()
		good.Topic, good.NumPartitions, good.ReplicationFactor = "beside-"+name, 1, 1
		req.Topics = append(req.Topics, topic, good)
		r := ask[*kmsg.CreateTopicsResponse](c, req).Topics
		if r[0].ErrorCode != try.code || (try.says != "" && !strings.Contains(textOf(r[0].ErrorMessage), try.says)) {
			t.Errorf("%s: %s %s, want %s with %q", name, wire.ErrorName(r[0].ErrorCode), textOf(r[0].ErrorMessage), wire.ErrorName(try.code), try.says)
		}
		if r[1].ErrorCode != 0 {
			t.Errorf("%s: the topic beside it: %s", name, textOf(r[1].ErrorMessage))
		}
	}

	req := kmsg.NewPtrCreateTopicsRequest()
	req.Version = 7
	topic := kmsg.NewCreateTopicsRequestTopic()
	topic.Topic, topic.NumPartitions, topic.ReplicationFactor = "same", 1, 1
	req.Topics = append(req.Topics, topic, topic)
	if r := ask[*kmsg.CreateTopicsResponse](c, req).Topics; len(r) != 1 || r[0].ErrorCode != wire.ErrInvalidRequest || b.coord.Image().Topic("same") != nil {
		t.Errorf("the same name twice: %+v", r)
	}
	if r := c.createTopic("manual", 1); r.ErrorCode != wire.ErrTopicAlreadyExists {
		t.Errorf("a name that is there: %+v", r)
	}
}
