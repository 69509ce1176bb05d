package broker

import (
	"slices"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"millrace/wire"
)

func describe(c *adminClient, version int16, kind kmsg.ConfigResourceType, name string, keys ...string) kmsg.DescribeConfigsResponseResource {
	c.t.Helper()
	req := kmsg.NewPtrDescribeConfigsRequest()
	req.Version, req.IncludeSynonyms, req.IncludeDocumentation = version, true, true
	req.Resources = []kmsg.DescribeConfigsRequestResource{{ResourceType: kind, ResourceName: name, ConfigNames: keys}}
	return ask[*kmsg.DescribeConfigsResponse](c, req).Resources[0]
}

func byKeyName(r kmsg.DescribeConfigsResponseResource) map[string]kmsg.DescribeConfigsResponseResourceConfig {
	out := map[string]kmsg.DescribeConfigsResponseResourceConfig{}
	for _, config := range r.Configs {
		out[config.Name] = config
	}
	return out
}

// Claim: a topic's answer has every key, each with the place where its value was
// said; what is inherited from the broker is never shown as the topic's own, so
// that tools which compare see no change (F055).
// Method: retention by the broker, cleanup.policy by the topic; all versions.
func TestField_F055_SourcesOfTopicConfigs(t *testing.T) {
	c := dialAdmin(t, adminBroker(t, "", "log.retention.hours", "24", "log.retention.minutes", "60", "min.insync.replicas", "1"), "")
	c.createTopic("t", 1, "cleanup.policy", "compact")
	for version := int16(0); version <= 4; version++ {
		r := describe(c, version, kmsg.ConfigResourceTypeTopic, "t")
		got := byKeyName(r)
		if r.ErrorCode != 0 || len(got) != len(topicTable)-3 {
			t.Fatalf("v%d: %s, %d keys of %d", version, textOf(r.ErrorMessage), len(got), len(topicTable)-3)
		}
		for _, want := range []struct {
			key, value string
			source     int8
			synonyms   []string
		}{
			{"cleanup.policy", "compact", 1, []string{"cleanup.policy=compact", "log.cleanup.policy=delete"}},
			{"retention.ms", "3600000", 4, []string{"log.retention.minutes=60", "log.retention.hours=24", "log.retention.hours=168"}},
			{"segment.ms", "604800000", 5, nil}, // as Kafka has it: the default is of another key, in another unit
			{"segment.bytes", "1073741824", 5, []string{"log.segment.bytes=1073741824"}},
			{"message.timestamp.after.max.ms", "3600000", 5, []string{"log.message.timestamp.after.max.ms=3600000"}},
			{"min.insync.replicas", "1", 4, []string{"min.insync.replicas=1", "min.insync.replicas=1"}},
			{"millrace.durability", "sync", 5, []string{"millrace.durability=sync"}},
		} {
			k := got[want.key]
			if textOf(k.Value) != want.value || k.IsSensitive || k.ReadOnly {
				t.Errorf("v%d: %+v", version, k)
			}
			if version == 0 && k.IsDefault != (want.source == 5) {
				t.Errorf("v0: %s is default: %v", want.key, k.IsDefault)
			}
			var synonyms []string
			for _, s := range k.ConfigSynonyms {
				synonyms = append(synonyms, s.Name+"="+textOf(s.Value))
			}
			if version >= 1 && (int8(k.Source) != want.source || !slices.Equal(synonyms, want.synonyms)) {
				t.Errorf("v%d: %s is of source %d, synonyms %q", version, want.key, k.Source, synonyms)
			}
			if version >= 3 && (k.ConfigType == 0 || textOf(k.Documentation) == "(null)") {
				t.Errorf("v%d: %s has type %d, documentation %s", version, want.key, k.ConfigType, textOf(k.Documentation))
			}
		}
	}
}

// Claim: only the keys asked for are told, without synonyms and documentation
// unless wanted; what is not there is refused with a message.
// Method: a table of resources.
func TestDescribeConfigsTellsWhatWasAsked(t *testing.T) {
	c := dialAdmin(t, adminBroker(t, ""), "")
	c.createTopic("t", 1, "message.format.version", "3.0")
	if got := describe(c, 4, kmsg.ConfigResourceTypeTopic, "t", "retention.ms", "nonsense"); len(got.Configs) != 1 || got.Configs[0].Name != "retention.ms" {
		t.Errorf("%+v", got.Configs)
	}
	if _, told := byKeyName(describe(c, 4, kmsg.ConfigResourceTypeTopic, "t"))["message.format.version"]; !told {
		t.Error("an old key that was set is not told")
	}
	req := kmsg.NewPtrDescribeConfigsRequest()
	req.Version = 4
	req.Resources = []kmsg.DescribeConfigsRequestResource{{ResourceType: kmsg.ConfigResourceTypeTopic, ResourceName: "t"}}
	for _, k := range ask[*kmsg.DescribeConfigsResponse](c, req).Resources[0].Configs {
		if len(k.ConfigSynonyms) != 0 || k.Documentation != nil {
			t.Errorf("%+v", k)
		}
	}
	for _, try := range []struct {
		kind kmsg.ConfigResourceType
		name string
		code int16
	}{
		{kmsg.ConfigResourceTypeTopic, "none", wire.ErrUnknownTopicOrPartition},
		{kmsg.ConfigResourceTypeTopic, "a b", wire.ErrInvalidTopic},
		{kmsg.ConfigResourceTypeBroker, "7", wire.ErrInvalidRequest},
		{kmsg.ConfigResourceTypeBroker, "x", wire.ErrInvalidRequest},
		{kmsg.ConfigResourceTypeBrokerLogger, "7", wire.ErrInvalidRequest},
		{3, "0", wire.ErrInvalidRequest},
	} {
		if r := describe(c, 4, try.kind, try.name); r.ErrorCode != try.code || r.ErrorMessage == nil || len(r.Configs) != 0 {
			t.Errorf("%v %q: %+v", try.kind, try.name, r)
		}
	}
}

// Claim: the broker's answer has every key of its table; given ones are static,
// the others defaults; passwords are never told.
// Method: one given key, one default, one password.
func TestDescribeConfigsOfTheBroker(t *testing.T) {
	b := adminBroker(t, "", "num.partitions", "7")
	c := dialAdmin(t, b, "")
	got := byKeyName(describe(c, 4, kmsg.ConfigResourceTypeBroker, "0"))
	if len(got) != len(ConfigKeys()) {
		t.Errorf("%d keys of %d", len(got), len(ConfigKeys()))
	}
	if k := got["num.partitions"]; textOf(k.Value) != "7" || k.Source != kmsg.ConfigSourceStaticBrokerConfig || !k.ReadOnly || len(k.ConfigSynonyms) != 2 {
		t.Errorf("%+v", k)
	}
	if k := got["default.replication.factor"]; textOf(k.Value) != "1" || k.Source != kmsg.ConfigSourceDefaultConfig || k.ConfigType != kmsg.ConfigTypeShort && k.ConfigType != kmsg.ConfigTypeInt {
		t.Errorf("%+v", k)
	}
	if k := got["node.id"]; textOf(k.Value) != "0" {
		t.Errorf("%+v", k)
	}
	if k := got["log.retention.ms"]; k.Value != nil {
		t.Errorf("a key without a value has %q", *k.Value)
	}
	if r := describe(c, 4, kmsg.ConfigResourceTypeBroker, ""); r.ErrorCode != 0 || len(r.Configs) != 0 {
		t.Errorf("cluster-wide defaults: %+v", r)
	}
	var d describer
	d.synonyms = true
	password := configValue{"ssl.key.password", "hunter2", sourceStatic}
	secret := d.describe(&ConfigKey{Name: "ssl.key.password", Type: TypePassword}, password, []configValue{password})
	if secret.Value != nil || !secret.IsSensitive || secret.ConfigSynonyms[0].Value != nil {
		t.Errorf("%+v", secret)
	}
}

// Claim: the table of topic keys is sound: alphabetical, documented, typed, each
// default allowed and the same as that of the broker key behind it.
// Method: walk it.
func TestTopicTableIsSound(t *testing.T) {
	var before string
	config := DefaultConfig()
	for i := range topicTable {
		k := &topicTable[i]
		if !k.Gone && k.Name <= before {
			t.Errorf("%s stands behind %s", k.Name, before)
		}
		if before = k.Name; k.Text == "" || configTypes[k.Type] == 0 || strings.HasSuffix(k.Text, ".") {
			t.Errorf("%s: %+v", k.Name, k)
		}
		if err := k.check(k.Default); err != nil {
			t.Error(err)
		}
		for _, name := range k.Server {
			row := LookupConfigKey(name)
			if row == nil {
				t.Errorf("%s: the broker does not know %s", k.Name, name)
				continue
			}
			// Behind a key without a default stands the next; one must say it.
			if v := inUnitOf(configValue{name, row.Default, 0}); row.Default != "" && v != k.Default {
				t.Errorf("%s=%s, but %s=%s", k.Name, k.Default, name, v)
			}
		}
	}
	if _, err := config.topicSettings(nil); err != nil {
		t.Error(err)
	}
}

// Claim: settings reach the engine and the leader in their units, and a value
// that cannot be read falls back to its default, with an error.
// Method: a table of overrides.
func TestTopicSettingsAreResolved(t *testing.T) {
	config := DefaultConfig()
	for key, value := range map[string]string{"log.roll.hours": "2", "message.max.bytes": "1000", "producer.id.expiration.ms": "5000"} {
		if err := config.Set(key, value); err != nil {
			t.Fatal(err)
		}
	}
	s, err := config.topicSettings(map[string]string{
		"retention.ms": "-1", "compression.type": "zstd", "compression.zstd.level": "7", "millrace.durability": "page-cache",
		"cleanup.policy": "compact,delete", "message.timestamp.type": "LogAppendTime", "flush.messages": "1", "min.insync.replicas": "2",
		"millrace.validate": "header", "segment.bytes": "14",
	})
	if err != nil {
		t.Fatal(err)
	}
	l, p := s.Log, s.Policy
	if l.RetentionAge >= 0 || l.SegmentAge.Hours() != 2 || l.SegmentBytes != 14 || l.Durability.String() != "page-cache" || !l.Compact || !l.Delete || !l.AppendTime || l.FlushMessages != 1 || l.ProducerExpiry.Seconds() != 5 {
		t.Errorf("%+v", l)
	}
	if p.MaxMessage != 1000 || !p.Recompress || p.Codec.String() != "zstd" || p.CodecLevel != 7 || !p.Compacted || !p.AppendTime || p.MinInSync != 2 || p.Validate == 0 || p.BeforeMax >= 0 || p.AfterMax.Hours() != 1 {
		t.Errorf("%+v", p)
	}
	if s, err := config.topicSettings(map[string]string{"segment.bytes": "many"}); err == nil || s.Log.SegmentBytes != 1<<30 {
		t.Errorf("%v, %+v", err, s)
	}
	if err := config.checkTopicConfig(map[string]string{"min.compaction.lag.ms": "2", "max.compaction.lag.ms": "1"}); err == nil {
		t.Error("lags the wrong way round")
	}
}
