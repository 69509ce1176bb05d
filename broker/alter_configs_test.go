package broker

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"millrace/engine"
	"millrace/engine/batch"
	"millrace/wire"
)

const (
	opSet      = kmsg.IncrementalAlterConfigOpSet
	opDelete   = kmsg.IncrementalAlterConfigOpDelete
	opAppend   = kmsg.IncrementalAlterConfigOpAppend
	opSubtract = kmsg.IncrementalAlterConfigOpSubtract

	ofTopic  = kmsg.ConfigResourceTypeTopic
	ofBroker = kmsg.ConfigResourceTypeBroker
)

// alteration is one operation of a test's request.
type alteration struct {
	op         kmsg.IncrementalAlterConfigOp
	key, value string
}

func incremental(c *adminClient, version int16, dry bool, kind kmsg.ConfigResourceType, name string, ops ...alteration) kmsg.IncrementalAlterConfigsResponseResource {
	c.t.Helper()
	req := kmsg.NewPtrIncrementalAlterConfigsRequest()
	req.Version, req.ValidateOnly = version, dry
	r := kmsg.NewIncrementalAlterConfigsRequestResource()
	r.ResourceType, r.ResourceName = kind, name
	for _, op := range ops {
		config := kmsg.NewIncrementalAlterConfigsRequestResourceConfig()
		config.Name, config.Op = op.key, op.op
		if op.op != opDelete && op.value != "(null)" {
			config.Value = &op.value
		}
		r.Configs = append(r.Configs, config)
	}
	req.Resources = append(req.Resources, r)
	return ask[*kmsg.IncrementalAlterConfigsResponse](c, req).Resources[0]
}

// mustAlter is incremental that has to succeed.
func mustAlter(c *adminClient, kind kmsg.ConfigResourceType, name string, ops ...alteration) {
	c.t.Helper()
	if r := incremental(c, 1, false, kind, name, ops...); r.ErrorCode != 0 || r.ErrorMessage != nil {
		c.t.Fatalf("%v: %s %s", ops, wire.ErrorName(r.ErrorCode), textOf(r.ErrorMessage))
	}
}

func replaceConfigs(c *adminClient, version int16, dry bool, kind kmsg.ConfigResourceType, name string, config map[string]string) kmsg.AlterConfigsResponseResource {
	c.t.Helper()
	req := kmsg.NewPtrAlterConfigsRequest()
	req.Version, req.ValidateOnly = version, dry
	r := kmsg.NewAlterConfigsRequestResource()
	r.ResourceType, r.ResourceName = kind, name
	for _, key := range slices.Sorted(maps.Keys(config)) {
		one := kmsg.NewAlterConfigsRequestResourceConfig()
		value := config[key]
		one.Name, one.Value = key, &value
		r.Configs = append(r.Configs, one)
	}
	req.Resources = append(req.Resources, r)
	return ask[*kmsg.AlterConfigsResponse](c, req).Resources[0]
}

// overrides are what a topic has of its own.
func overrides(b *Broker, topic string) map[string]string { return b.coord.Image().Topic(topic).Config }

// Claim: each operation does what Kafka's does, in every version: set, delete (of
// nothing too), append and subtract, which start from the inherited list; and
// AlterConfigs replaces all. validate_only answers the same and changes nothing.
// Method: a script of operations and what the topic has after each, first dry.
func TestTopicConfigsAreAltered(t *testing.T) {
	b := adminBroker(t, "", "log.cleanup.policy", "compact")
	c := dialAdmin(t, b, "")
	for version := int16(0); version <= 1; version++ {
		topic := fmt.Sprintf("t%d", version)
		c.createTopic(topic, 1)
		for i, step := range []struct {
			ops  []alteration
			want string
		}{
			{[]alteration{{opSet, "retention.ms", "5000"}, {opSet, "segment.bytes", "1048576"}}, "map[retention.ms:5000 segment.bytes:1048576]"},
			{[]alteration{{opDelete, "retention.ms", ""}, {opDelete, "flush.ms", ""}, {opDelete, "nonsense", ""}}, "map[segment.bytes:1048576]"},
			{[]alteration{{opAppend, "cleanup.policy", "delete,compact"}}, "map[cleanup.policy:compact,delete segment.bytes:1048576]"},
			{[]alteration{{opSubtract, "cleanup.policy", "compact"}, {opDelete, "segment.bytes", ""}}, "map[cleanup.policy:delete]"},
			{[]alteration{{opAppend, "leader.replication.throttled.replicas", "0:0"}}, "map[cleanup.policy:delete leader.replication.throttled.replicas:0:0]"},
			{nil, "map[cleanup.policy:delete leader.replication.throttled.replicas:0:0]"},
		} {
			before := fmt.Sprint(overrides(b, topic))
			if r := incremental(c, version, true, ofTopic, topic, step.ops...); r.ErrorCode != 0 || fmt.Sprint(overrides(b, topic)) != before {
				t.Errorf("v%d dry step %d: %s, %s became %v", version, i, textOf(r.ErrorMessage), before, overrides(b, topic))
			}
			if r := incremental(c, version, false, ofTopic, topic, step.ops...); r.ErrorCode != 0 || r.ResourceName != topic || r.ResourceType != ofTopic {
				t.Errorf("v%d step %d: %s", version, i, textOf(r.ErrorMessage))
			}
			if got := fmt.Sprint(overrides(b, topic)); got != step.want {
				t.Errorf("v%d step %d: %s, want %s", version, i, got, step.want)
			}
		}
	}
	for version := int16(0); version <= 2; version++ {
		config := map[string]string{"retention.ms": "7", "max.message.bytes": fmt.Sprint(1000 + version)}
		before := fmt.Sprint(overrides(b, "t0"))
		if r := replaceConfigs(c, version, true, ofTopic, "t0", config); r.ErrorCode != 0 || fmt.Sprint(overrides(b, "t0")) != before {
			t.Errorf("v%d dry: %s, %v", version, textOf(r.ErrorMessage), overrides(b, "t0"))
		}
		if r := replaceConfigs(c, version, false, ofTopic, "t0", config); r.ErrorCode != 0 || !maps.Equal(overrides(b, "t0"), config) {
			t.Errorf("v%d: %s, %v", version, textOf(r.ErrorMessage), overrides(b, "t0"))
		}
	}
	if r := replaceConfigs(c, 2, false, ofTopic, "t0", nil); r.ErrorCode != 0 || len(overrides(b, "t0")) != 0 {
		t.Errorf("%s, %v", textOf(r.ErrorMessage), overrides(b, "t0"))
	}
}

// Claim: what Kafka refuses is refused with its code and a message that names key,
// value and rule; nothing of a refused resource is changed, others of the same
// request are.
// Method: a table; each also dry.
func TestWrongConfigsAreRefused(t *testing.T) {
	b := adminBroker(t, "")
	c := dialAdmin(t, b, "")
	c.createTopic("t", 1)
	for _, try := range []struct {
		kind kmsg.ConfigResourceType
		name string
		ops  []alteration
		code int16
		text string
	}{
		{ofTopic, "t", []alteration{{opSet, "flush.ms", "1"}, {opSet, "retention.ms", "abc"}}, wire.ErrInvalidConfig, `"abc" for topic config retention.ms`},
		{ofTopic, "t", []alteration{{opSet, "max.message.bytes", "-1"}}, wire.ErrInvalidConfig, "from 0 to 2147483647"},
		{ofTopic, "t", []alteration{{opSet, "nope", "1"}}, wire.ErrInvalidConfig, `"nope"`},
		{ofTopic, "t", []alteration{{opSet, "log.retention.ms", "1"}}, wire.ErrInvalidConfig, `"log.retention.ms"`},
		{ofTopic, "t", []alteration{{opAppend, "retention.ms", "1"}}, wire.ErrInvalidConfig, "not a list"},
		{ofTopic, "t", []alteration{{opAppend, "nope", "1"}}, wire.ErrInvalidConfig, `"nope"`},
		{ofTopic, "t", []alteration{{opSubtract, "cleanup.policy", "(null)"}}, wire.ErrInvalidRequest, "null"},
		{ofTopic, "t", []alteration{{opSet, "retention.ms", "(null)"}}, wire.ErrInvalidRequest, "null"},
		{ofTopic, "t", []alteration{{opSet, "retention.ms", "1"}, {opDelete, "retention.ms", ""}}, wire.ErrInvalidRequest, "more than once"},
		{ofTopic, "t", []alteration{{9, "retention.ms", "1"}}, wire.ErrInvalidRequest, "operation 9"},
		{ofTopic, "t", []alteration{{opSet, "min.compaction.lag.ms", "2"}, {opSet, "max.compaction.lag.ms", "1"}}, wire.ErrInvalidConfig, "must not be above"},
		{ofTopic, "none", []alteration{{opSet, "retention.ms", "1"}}, wire.ErrUnknownTopicOrPartition, `"none"`},
		{ofTopic, "a b", []alteration{{opSet, "retention.ms", "1"}}, wire.ErrInvalidTopic, "a b"},
		{ofTopic, "", []alteration{{opSet, "retention.ms", "1"}}, wire.ErrInvalidRequest, "empty"},
		{ofBroker, "7", []alteration{{opSet, "log.retention.ms", "1"}}, wire.ErrInvalidRequest, `"7"`},
		{ofBroker, "x", []alteration{{opSet, "log.retention.ms", "1"}}, wire.ErrInvalidRequest, `"x"`},
		{ofBroker, "0", []alteration{{opSet, "log.dirs", "/tmp"}}, wire.ErrInvalidRequest, "log.dirs"},
		{ofBroker, "", []alteration{{opSet, "num.partitions", "3"}}, wire.ErrInvalidRequest, "num.partitions"},
		{ofBroker, "", []alteration{{opSet, "log.retention.hours", "3"}}, wire.ErrInvalidRequest, "log.retention.hours"},
		{ofBroker, "0", []alteration{{opSet, "message.max.bytes", "many"}}, wire.ErrInvalidRequest, `"many"`},
		{ofBroker, "0", []alteration{{opSet, "leader.replication.throttled.rate", "many"}}, wire.ErrInvalidRequest, `"many"`},
		{ofBroker, "0", []alteration{{opSet, "transaction.partition.verification.enable", "maybe"}}, wire.ErrInvalidRequest, `"maybe"`},
		{ofBroker, "0", []alteration{{opSet, "log.cleaner.io.buffer.load.factor", "much"}}, wire.ErrInvalidRequest, `"much"`},
		{ofBroker, "", []alteration{{opAppend, "message.max.bytes", "1"}}, wire.ErrInvalidConfig, "not a list"},
		{ofBroker, "0", []alteration{{opSet, "num.io.threads", "100"}}, wire.ErrInvalidRequest, "doubled to 16"},
		{ofBroker, "0", []alteration{{opSet, "num.io.threads", "3"}}, wire.ErrInvalidRequest, "halved to 4"},
		{ofBroker, "0", []alteration{{opSet, "num.recovery.threads.per.data.dir", "0"}}, wire.ErrInvalidRequest, "0"},
		{ofBroker, "0", []alteration{{opSet, "log.cleaner.min.compaction.lag.ms", "2"}, {opSet, "log.cleaner.max.compaction.lag.ms", "1"}}, wire.ErrInvalidRequest, "must not be above"},
		{99, "x", []alteration{{opSet, "a", "1"}}, wire.ErrInvalidRequest, "99"},
	} {
		for _, dry := range []bool{true, false} {
			r := incremental(c, 1, dry, try.kind, try.name, try.ops...)
			if r.ErrorCode != try.code || !strings.Contains(textOf(r.ErrorMessage), try.text) {
				t.Errorf("%v: %s %s", try, wire.ErrorName(r.ErrorCode), textOf(r.ErrorMessage))
			}
		}
	}
	if got := overrides(b, "t"); len(got) != 0 {
		t.Errorf("a refused change left %v", got)
	}

	c.createTopic("u", 1)
	req := kmsg.NewPtrIncrementalAlterConfigsRequest()
	req.Version = 1
	value, wrong := "5", "five"
	for _, r := range []struct {
		name  string
		value *string
	}{{"t", &value}, {"u", &wrong}, {"twice", &value}, {"twice", &value}} {
		req.Resources = append(req.Resources, kmsg.IncrementalAlterConfigsRequestResource{ResourceType: ofTopic, ResourceName: r.name,
			Configs: []kmsg.IncrementalAlterConfigsRequestResourceConfig{{Name: "retention.ms", Value: r.value}}})
	}
	var codes []int16
	for _, r := range ask[*kmsg.IncrementalAlterConfigsResponse](c, req).Resources {
		codes = append(codes, r.ErrorCode)
	}
	if !slices.Equal(codes, []int16{0, wire.ErrInvalidConfig, wire.ErrInvalidRequest, wire.ErrInvalidRequest}) || overrides(b, "t")["retention.ms"] != "5" || len(overrides(b, "u")) != 0 {
		t.Errorf("%v, t has %v, u has %v", codes, overrides(b, "t"), overrides(b, "u"))
	}
}

// Claim: dynamic settings stand between a topic's own and the file: for one broker
// over those for all. Every layer is told with its source and as a synonym, the
// winner first, whatever unit it is in; taking layers away uncovers the next; and
// all of it is there after a restart (F055).
// Method: put the layers on one by one, look, restart, take them off.
func TestField_F055_DynamicLayers(t *testing.T) {
	dir := t.TempDir()
	b := adminBroker(t, dir, "log.retention.hours", "2")
	c := dialAdmin(t, b, "")
	c.createTopic("t", 1, "cleanup.policy", "compact")
	look := func(kind kmsg.ConfigResourceType, name, key, value string, source int8, synonyms ...string) {
		t.Helper()
		for version := int16(1); version <= 4; version++ {
			k, found := byKeyName(describe(c, version, kind, name, key))[key]
			var got []string
			for _, s := range k.ConfigSynonyms {
				got = append(got, fmt.Sprintf("%d:%s=%s", s.Source, s.Name, textOf(s.Value)))
			}
			if !found || textOf(k.Value) != value || int8(k.Source) != source || !slices.Equal(got, synonyms) || k.ReadOnly {
				t.Errorf("v%d %s: %s of source %d, read-only %v, synonyms %q, want %s of %d, %q", version, key, textOf(k.Value), k.Source, k.ReadOnly, got, value, source, synonyms)
			}
		}
		if k := byKeyName(describe(c, 0, kind, name, key))[key]; k.IsDefault != (source == 5) {
			t.Errorf("v0 %s: default %v", key, k.IsDefault)
		}
	}
	static, def := "4:log.retention.hours=2", "5:log.retention.hours=168"
	look(ofTopic, "t", "retention.ms", "7200000", 4, static, def)

	mustAlter(c, ofBroker, "", alteration{opSet, "log.retention.ms", "120000"})
	look(ofTopic, "t", "retention.ms", "120000", 3, "3:log.retention.ms=120000", static, def)
	look(ofBroker, "", "log.retention.ms", "120000", 3, "3:log.retention.ms=120000")
	look(ofBroker, "0", "log.retention.ms", "120000", 3, "3:log.retention.ms=120000", static, def)

	mustAlter(c, ofBroker, "0", alteration{opSet, "log.retention.ms", "3600000"})
	layers := []string{"2:log.retention.ms=3600000", "3:log.retention.ms=120000", static, def}
	look(ofTopic, "t", "retention.ms", "3600000", 2, layers...)
	look(ofTopic, "t", "cleanup.policy", "compact", 1, "1:cleanup.policy=compact", "5:log.cleanup.policy=delete")

	mustAlter(c, ofTopic, "t", alteration{opSet, "retention.ms", "1000"})
	look(ofTopic, "t", "retention.ms", "1000", 1, append([]string{"1:retention.ms=1000"}, layers...)...)
	if got := b.replicas.Topic("t").Partition(0).Log().Config().RetentionAge; got != time.Second {
		t.Errorf("the log keeps %s", got)
	}

	// A key that nobody knows is kept, as Kafka does, and not told: it may be a secret.
	mustAlter(c, ofBroker, "0", alteration{opSet, "my.plugin.password", "hunter2"})
	if k := byKeyName(describe(c, 4, ofBroker, "0"))["my.plugin.password"]; k.Value != nil || !k.IsSensitive || !k.ReadOnly || k.ConfigType != 0 || k.Source != kmsg.ConfigSourceDynamicBrokerConfig {
		t.Errorf("%+v", k)
	}

	stopAdmin(t, b)
	b = adminBroker(t, dir, "log.retention.hours", "2")
	c = dialAdmin(t, b, "")
	look(ofTopic, "t", "retention.ms", "1000", 1, append([]string{"1:retention.ms=1000"}, layers...)...)
	mustAlter(c, ofTopic, "t", alteration{opDelete, "retention.ms", ""})
	look(ofTopic, "t", "retention.ms", "3600000", 2, layers...)
	if r := replaceConfigs(c, 2, false, ofBroker, "0", nil); r.ErrorCode != 0 {
		t.Error(textOf(r.ErrorMessage))
	}
	look(ofTopic, "t", "retention.ms", "120000", 3, layers[1:]...)
	mustAlter(c, ofBroker, "", alteration{opDelete, "log.retention.ms", ""})
	look(ofTopic, "t", "retention.ms", "7200000", 4, static, def)
	if got := b.replicas.Topic("t").Partition(0).Log().Config().RetentionAge; got != 2*time.Hour {
		t.Errorf("the log keeps %s", got)
	}
	if r := describe(c, 4, ofBroker, ""); len(r.Configs) != 0 {
		t.Errorf("%+v", r.Configs)
	}
}

// Claim: changed settings hold for the very next request on logs that are in use.
// Method: for each setting, the same act before and after; by the topic's own
// setting or by that of all brokers.
func TestChangedConfigsHoldAtOnce(t *testing.T) {
	b := startBroker(t)
	b.topic("t", 1)
	b.topic("inherits", 1)
	admin, c := dialAdmin(t, b.Broker, ""), b.dial()
	code := func(topic string, records []byte) int16 { return b.produce(c, 9, topic, 0, records).ErrorCode }

	big := sized(2000)
	if got := code("t", big); got != 0 {
		t.Fatal(got)
	}
	mustAlter(admin, ofTopic, "t", alteration{opSet, "max.message.bytes", "1999"})
	mustAlter(admin, ofBroker, "", alteration{opSet, "message.max.bytes", "1998"})
	if code("t", big) != wire.ErrMessageTooLarge || code("inherits", big) != wire.ErrMessageTooLarge || code("t", sized(1999)) != 0 {
		t.Error("the largest message did not change")
	}
	mustAlter(admin, ofTopic, "t", alteration{opDelete, "max.message.bytes", ""})
	mustAlter(admin, ofBroker, "", alteration{opDelete, "message.max.bytes", ""})

	mustAlter(admin, ofTopic, "t", alteration{opSet, "compression.type", "lz4"})
	base := b.mustProduce("t", 0, values(batch.None, strings.Repeat("a", 500)))
	stored := c.fetch(b.fetchOf(11, want{topic: "t", offset: base}), 11).Topics[0].Partitions[0].RecordBatches
	if got := batch.View(stored).Codec(); got != batch.LZ4 {
		t.Errorf("stored with %s", got)
	}

	late := batch.NewBuilder(batch.None, 0)
	_ = late.Add(batch.Record{Timestamp: time.Now().Add(30 * time.Minute).UnixMilli(), Value: []byte("v")})
	if got := code("t", slices.Clone(late.Bytes())); got != 0 {
		t.Errorf("half an hour ahead: %d", got)
	}
	mustAlter(admin, ofTopic, "t", alteration{opSet, "message.timestamp.after.max.ms", "1000"})
	if got := code("t", slices.Clone(late.Bytes())); got != wire.ErrInvalidTimestamp {
		t.Errorf("half an hour ahead: %d", got)
	}
	mustAlter(admin, ofTopic, "t", alteration{opSet, "message.timestamp.type", "LogAppendTime"})
	if p := b.produce(c, 9, "t", 0, slices.Clone(late.Bytes())); p.ErrorCode != 0 || p.LogAppendTime < 0 {
		t.Errorf("%+v", p)
	}
	mustAlter(admin, ofTopic, "t", alteration{opSet, "cleanup.policy", "compact"})
	if got := code("t", values(batch.None, "no key")); got != wire.ErrInvalidRecord {
		t.Errorf("a record without key on a compacted topic: %d", got)
	}
}

// Claim: a topic that becomes synced has everything that readers saw before synced,
// and stays readable to its end; and back.
// Method: append in page-cache mode, change, compare the ends with no further append.
func TestDurabilityChangesOnALiveLog(t *testing.T) {
	b := startBroker(t, "millrace.durability=page-cache")
	admin := dialAdmin(t, b.Broker, "")
	b.topic("t", 2)
	b.mustProduce("t", 0, values(batch.None, "a", "b"))
	log := b.replicas.Topic("t").Partition(0).Log()
	mustAlter(admin, ofBroker, "0", alteration{opSet, "millrace.durability", "sync"})
	if log.Config().Durability != engine.Sync || log.Durable() != 2 || b.end("t", 0) != 2 {
		t.Errorf("%s, durable %d, readable to %d", log.Config().Durability, log.Durable(), b.end("t", 0))
	}
	mustAlter(admin, ofTopic, "t", alteration{opSet, "millrace.durability", "page-cache"})
	b.mustProduce("t", 0, values(batch.None, "c"))
	if log.Config().Durability != engine.PageCache || b.end("t", 0) != 3 {
		t.Errorf("%s, readable to %d", log.Config().Durability, b.end("t", 0))
	}
}

// Claim: segment.bytes and retention change what is kept without waiting for the
// regular check, which is five minutes away.
// Method: many small segments by the first, all but the newest gone by the second.
func TestRetentionChangesOnALiveLog(t *testing.T) {
	b := startBroker(t)
	admin := dialAdmin(t, b.Broker, "")
	b.topic("t", 1)
	log := b.replicas.Topic("t").Partition(0).Log()
	mustAlter(admin, ofTopic, "t", alteration{opSet, "segment.bytes", "1000"})
	for range 5 {
		b.mustProduce("t", 0, sized(900))
	}
	mustAlter(admin, ofTopic, "t", alteration{opSet, "retention.bytes", "1000"})
	waitFor(t, "retention", func() bool { return log.Start() == 3 })
	mustAlter(admin, ofBroker, "", alteration{opSet, "log.retention.ms", "0"})
	waitFor(t, "retention", func() bool { return log.Start() == 5 })
	if log.End() != 5 {
		t.Errorf("end %d", log.End())
	}
}

// waitFor polls a condition of a background goroutine.
func waitFor(t *testing.T, what string, done func() bool) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); !done(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s did not come", what)
		}
	}
}

// Claim: limits on connections can be changed while they are open.
// Method: a limit at what is open refuses the next; taking it away lets it in.
func TestConnectionLimitsChangeWhileOpen(t *testing.T) {
	b := startBroker(t)
	admin := dialAdmin(t, b.Broker, "")
	mustAlter(admin, ofBroker, "0", alteration{opSet, "max.connections.per.ip", "1"}, alteration{opSet, "max.connections.per.ip.overrides", "127.0.0.2:5"})
	c := b.dial()
	c.write(c.frame(kmsg.NewPtrApiVersionsRequest(), 0))
	if _, _, err := c.tryRead(5 * time.Second); err == nil {
		t.Error("a connection over the limit was served")
	}
	mustAlter(admin, ofBroker, "0", alteration{opDelete, "max.connections.per.ip", ""})
	if c = b.dial(); c.ask(kmsg.NewPtrApiVersionsRequest(), 0).(*kmsg.ApiVersionsResponse).ErrorCode != 0 {
		t.Error("refused without a limit")
	}
}

// Claim: a real admin client changes and reads settings.
// Method: kadm.
func TestKadmAltersConfigs(t *testing.T) {
	b := startBroker(t)
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	cl, err := kgo.NewClient(kgo.SeedBrokers(b.Addr("")))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	adm := kadm.NewClient(cl)
	if _, err := adm.CreateTopic(ctx, 1, 1, nil, "t"); err != nil {
		t.Fatal(err)
	}
	must := func(responses kadm.AlterConfigsResponses, err error) {
		t.Helper()
		if err != nil || responses[0].Err != nil {
			t.Fatalf("%v, %+v", err, responses)
		}
	}
	must(adm.AlterTopicConfigs(ctx, []kadm.AlterConfig{{Op: kadm.AppendConfig, Name: "cleanup.policy", Value: kadm.StringPtr("compact")}}, "t"))
	must(adm.AlterBrokerConfigs(ctx, []kadm.AlterConfig{{Name: "log.retention.ms", Value: kadm.StringPtr("1234567")}}))
	must(adm.AlterBrokerConfigs(ctx, []kadm.AlterConfig{{Name: "log.segment.bytes", Value: kadm.StringPtr("2097152")}}, 0))
	must(adm.AlterTopicConfigsState(ctx, []kadm.AlterConfig{{Name: "flush.ms", Value: kadm.StringPtr("9")}}, "t"))
	configs, err := adm.DescribeTopicConfigs(ctx, "t")
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, c := range configs[0].Configs {
		got[c.Key] = fmt.Sprintf("%s from %s", c.MaybeValue(), c.Source)
	}
	for key, want := range map[string]string{
		"cleanup.policy": "delete from DEFAULT_CONFIG", // AlterTopicConfigsState replaced it
		"flush.ms":       "9 from DYNAMIC_TOPIC_CONFIG",
		"retention.ms":   "1234567 from DYNAMIC_DEFAULT_BROKER_CONFIG",
		"segment.bytes":  "2097152 from DYNAMIC_BROKER_CONFIG",
	} {
		if got[key] != want {
			t.Errorf("%s: %s, want %s", key, got[key], want)
		}
	}
}

// Claim: the tables of dynamic keys name keys that there are.
// Method: walk them.
func TestDynamicKeysAreKnown(t *testing.T) {
	for _, key := range slices.Concat(slices.Collect(maps.Keys(dynamicKeys)), threadKeys) {
		if LookupConfigKey(key) == nil || scopeOf(key) == dynamicNever {
			t.Errorf("%s is not known, or not dynamic", key)
		}
	}
	if scopeOf("log.retention.ms") != dynamicCluster || scopeOf("log.retention.hours") != dynamicNever || scopeOf("log.dirs") != dynamicNever {
		t.Error("scopes")
	}
}
