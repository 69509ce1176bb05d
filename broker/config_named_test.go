package broker

import (
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"millrace/coord/group"
	"millrace/wire"
)

const (
	ofLogger      = kmsg.ConfigResourceTypeBrokerLogger
	ofMetrics     = kmsg.ConfigResourceTypeClientMetrics
	ofGroupConfig = kmsg.ConfigResourceTypeGroupConfig
)

// Claim: settings of groups and subscriptions to clients' metrics are refused with
// Kafka's codes and with the value and the limit in the text; dry runs change nothing.
// Method: a table, against answers of Kafka 4.3.1.
func TestNamedConfigsAreRefused(t *testing.T) {
	b := adminBroker(t, "", "group.consumer.max.heartbeat.interval.ms", "50000")
	c := dialAdmin(t, b, "")
	for _, try := range []struct {
		kind kmsg.ConfigResourceType
		name string
		op   alteration
		code int16
		text string
	}{
		{ofGroupConfig, "g", alteration{opSet, "consumer.session.timeout.ms", "60001"}, wire.ErrInvalidConfig, "consumer.session.timeout.ms=60001 must be less than or equal to group.consumer.max.session.timeout.ms=60000"},
		{ofGroupConfig, "g", alteration{opSet, "consumer.session.timeout.ms", "44999"}, wire.ErrInvalidConfig, "group.consumer.min.session.timeout.ms=45000"},
		{ofGroupConfig, "g", alteration{opSet, "consumer.session.timeout.ms", "x"}, wire.ErrInvalidConfig, `invalid value "x"`},
		{ofGroupConfig, "g", alteration{opSet, "consumer.heartbeat.interval.ms", "45000"}, wire.ErrInvalidConfig, "consumer.session.timeout.ms=45000 must be greater than consumer.heartbeat.interval.ms=45000"},
		{ofGroupConfig, "g", alteration{opSet, "consumer.assignment.interval.ms", "15001"}, wire.ErrInvalidConfig, "group.consumer.max.assignment.interval.ms=15000"},
		{ofGroupConfig, "g", alteration{opSet, "share.auto.offset.reset", "never"}, wire.ErrInvalidConfig, "earliest, latest"},
		{ofGroupConfig, "g", alteration{opSet, "no.such", "1"}, wire.ErrInvalidConfig, `unknown config name "no.such"`},
		{ofGroupConfig, "g", alteration{opAppend, "consumer.session.timeout.ms", "1"}, wire.ErrInvalidConfig, "not a list"},
		{ofGroupConfig, "", alteration{opSet, "consumer.session.timeout.ms", "50000"}, wire.ErrInvalidRequest, "must not be empty"},
		{ofMetrics, "m", alteration{opSet, "interval.ms", "99"}, wire.ErrInvalidRequest, "from 100 to 3600000"},
		{ofMetrics, "m", alteration{opSet, "interval.ms", "x"}, wire.ErrInvalidConfig, `"x"`},
		{ofMetrics, "m", alteration{opSet, "match", "foo=.*"}, wire.ErrInvalidConfig, "illegal client matching pattern"},
		{ofMetrics, "m", alteration{opSet, "match", "client_id=("}, wire.ErrInvalidConfig, "illegal client matching pattern"},
		{ofMetrics, "m", alteration{opSet, "match", "client_id="}, wire.ErrInvalidConfig, "illegal client matching pattern"},
		{ofMetrics, "m", alteration{opSet, "bad", "1"}, wire.ErrInvalidRequest, `unknown config name "bad"`},
		{ofMetrics, "", alteration{opSet, "interval.ms", "1000"}, wire.ErrInvalidRequest, "must not be empty"},
		{ofLogger, "0", alteration{opSet, "no.such", "INFO"}, wire.ErrInvalidConfig, "logger no.such does not exist"},
		{ofLogger, "0", alteration{opSet, "root", "LOUD"}, wire.ErrInvalidConfig, "TRACE, DEBUG, INFO, WARN, ERROR, FATAL"},
		{ofLogger, "0", alteration{opSet, "root", "info"}, wire.ErrInvalidConfig, "INFO"},
		{ofLogger, "0", alteration{opDelete, "root", ""}, wire.ErrInvalidRequest, "root logger is not allowed"},
		{ofLogger, "0", alteration{opAppend, "root", "INFO"}, wire.ErrInvalidRequest, "not appended"},
		{ofLogger, "7", alteration{opSet, "root", "INFO"}, wire.ErrInvalidRequest, "broker 0"},
		{ofLogger, "", alteration{opSet, "root", "INFO"}, wire.ErrInvalidRequest, "must not be empty"},
		{3, "x", alteration{opSet, "root", "INFO"}, wire.ErrInvalidRequest, "group (32)"},
	} {
		for _, dry := range []bool{true, false} {
			r := incremental(c, 1, dry, try.kind, try.name, try.op)
			if r.ErrorCode != try.code || !strings.Contains(textOf(r.ErrorMessage), try.text) {
				t.Errorf("%+v: %s %s", try, wire.ErrorName(r.ErrorCode), textOf(r.ErrorMessage))
			}
		}
	}
	for _, dry := range []struct {
		kind       kmsg.ConfigResourceType
		name, key  string
		set, stays string
	}{
		{ofGroupConfig, "g", "consumer.session.timeout.ms", "50000", "45000"},
		{ofMetrics, "m", "interval.ms", "1000", "300000"},
		{ofLogger, "0", "root", "ERROR", "FATAL"},
	} {
		if r := incremental(c, 1, true, dry.kind, dry.name, alteration{opSet, dry.key, dry.set}); r.ErrorCode != 0 {
			t.Errorf("%+v: %+v", dry, r)
		}
		if v := byKeyName(describe(c, 4, dry.kind, dry.name))[dry.key]; textOf(v.Value) != dry.stays {
			t.Errorf("%+v: it is %s after a dry run", dry, textOf(v.Value))
		}
	}
	for _, kind := range []kmsg.ConfigResourceType{ofGroupConfig, ofMetrics, ofLogger} {
		if r := describe(c, 4, kind, ""); r.ErrorCode != wire.ErrInvalidRequest || r.ErrorMessage == nil {
			t.Errorf("%v without a name: %+v", kind, r)
		}
	}
	if r := replaceConfigs(c, 2, false, ofLogger, "0", map[string]string{"root": "INFO"}); r.ErrorCode != wire.ErrInvalidRequest {
		t.Errorf("AlterConfigs of loggers: %+v", r)
	}
}

// Claim: settings of groups and subscriptions are told with their sources, listed,
// survive a restart without a clean stop, and are gone when the last is deleted.
// Method: set, copy the data directory as kill -9 would leave it, start over the copy.
func TestNamedConfigsAreKept(t *testing.T) {
	dir := t.TempDir()
	b := adminBroker(t, dir, "group.consumer.heartbeat.interval.ms", "6000")
	c := dialAdmin(t, b, "")
	mustAlter(c, ofGroupConfig, "g", alteration{opSet, "consumer.session.timeout.ms", "50000"}, alteration{opSet, "share.session.timeout.ms", "46000"})
	mustAlter(c, ofMetrics, "m", alteration{opSet, "metrics", "a."}, alteration{opSet, "interval.ms", "1000"})
	mustAlter(c, ofMetrics, "m", alteration{opAppend, "metrics", "b."})
	if r := replaceConfigs(c, 2, false, ofMetrics, "n", map[string]string{"match": "client_id=x"}); r.ErrorCode != 0 {
		t.Error(r)
	}
	look := func(c *adminClient) {
		t.Helper()
		g := byKeyName(describe(c, 4, ofGroupConfig, "g"))
		for key, want := range map[string][]string{ // value, then sources of the synonyms
			"consumer.session.timeout.ms":    {"50000", "GROUP_CONFIG consumer.session.timeout.ms", "DEFAULT_CONFIG group.consumer.session.timeout.ms"},
			"consumer.heartbeat.interval.ms": {"6000", "STATIC_BROKER_CONFIG group.consumer.heartbeat.interval.ms", "DEFAULT_CONFIG group.consumer.heartbeat.interval.ms"},
			"share.auto.offset.reset":        {"latest", "DEFAULT_CONFIG share.auto.offset.reset"},
		} {
			got := []string{textOf(g[key].Value)}
			for _, s := range g[key].ConfigSynonyms {
				got = append(got, strings.TrimPrefix(s.Source.String(), "DYNAMIC_")+" "+s.Name)
			}
			if !slices.Equal(got, want) || g[key].ReadOnly || g[key].IsSensitive {
				t.Errorf("%s: %q, want %q", key, got, want)
			}
		}
		if len(g) != len(groupTable) {
			t.Errorf("%d keys", len(g))
		}
		m := byKeyName(describe(c, 4, ofMetrics, "m"))
		if textOf(m["metrics"].Value) != "a.,b." || textOf(m["interval.ms"].Value) != "1000" || m["match"].Source != kmsg.ConfigSourceDefaultConfig {
			t.Errorf("%+v", m)
		}
		req := kmsg.NewPtrListConfigResourcesRequest()
		req.Version, req.ResourceTypes = 1, []int8{16, 32}
		var names []string
		for _, r := range ask[*kmsg.ListConfigResourcesResponse](c, req).ConfigResources {
			names = append(names, r.Name)
		}
		if !slices.Equal(names, []string{"g", "m", "n"}) {
			t.Errorf("listed %q", names)
		}
	}
	look(c)

	crashed := t.TempDir()
	text, err := os.ReadFile(filepath.Join(dir, "meta.properties"))
	if err == nil {
		err = os.WriteFile(filepath.Join(crashed, "meta.properties"), text, 0o644)
	}
	if err == nil {
		err = os.CopyFS(filepath.Join(crashed, coordinationFolder), os.DirFS(filepath.Join(dir, coordinationFolder)))
	}
	if err != nil {
		t.Fatal(err)
	}
	again := adminBroker(t, crashed, "group.consumer.heartbeat.interval.ms", "6000")
	c = dialAdmin(t, again, "")
	look(c)
	if n := len(again.telemetry.subscriptions.Load().list); n != 2 {
		t.Errorf("%d subscriptions are in force", n)
	}
	mustAlter(c, ofGroupConfig, "g", alteration{opDelete, "consumer.session.timeout.ms", ""}, alteration{opDelete, "share.session.timeout.ms", ""})
	if all := again.coord.Image().GroupConfigs(); len(all) != 0 {
		t.Errorf("%v is left", all)
	}
}

// Claim: a group's own times hold at once, also for members that are there, and no
// further than the broker's bounds.
// Method: a member's heartbeats before and after each change.
func TestGroupConfigsHoldAtOnce(t *testing.T) {
	b := startBroker(t, append(slices.Clone(brisk), "group.consumer.min.heartbeat.interval.ms=50", "group.consumer.max.heartbeat.interval.ms=700", "group.consumer.min.session.timeout.ms=800")...)
	b.topic("t", 1)
	c := b.dial()
	beat := func(id string, member string, epoch int32) *kmsg.ConsumerGroupHeartbeatResponse {
		req := kmsg.NewPtrConsumerGroupHeartbeatRequest()
		req.Group, req.MemberID, req.MemberEpoch, req.RebalanceTimeoutMillis = id, member, epoch, 1000
		req.SubscribedTopicNames, req.Topics = []string{"t"}, []kmsg.ConsumerGroupHeartbeatRequestTopic{}
		var r *kmsg.ConsumerGroupHeartbeatResponse
		b.eventually("the group is loaded", func() bool {
			r = c.ask(req, 1).(*kmsg.ConsumerGroupHeartbeatResponse)
			return r.ErrorCode != wire.ErrCoordinatorLoadInProgress && r.ErrorCode != wire.ErrCoordinatorNotAvailable && r.ErrorCode != wire.ErrNotCoordinator
		})
		if r.ErrorCode != 0 {
			t.Fatal(wire.ErrorName(r.ErrorCode), textOf(r.ErrorMessage))
		}
		return r
	}
	b.commit("x", "t", 0) // so that groups have their topic
	one, other := beat("g", "one", 0), beat("h", "other", 0)
	set := func(kind kmsg.ConfigResourceType, name, key, value string) {
		t.Helper()
		mustAlter(dialAdmin(t, b.Broker, ""), kind, name, alteration{opSet, key, value})
	}
	set(ofGroupConfig, "g", "consumer.heartbeat.interval.ms", "600")
	if a, z := beat("g", "one", one.MemberEpoch), beat("h", "other", other.MemberEpoch); a.HeartbeatIntervalMillis != 600 || z.HeartbeatIntervalMillis != 100 {
		t.Errorf("heartbeats each %d and %d ms, want 600 and 100", a.HeartbeatIntervalMillis, z.HeartbeatIntervalMillis)
	}
	set(ofGroupConfig, "g", "consumer.session.timeout.ms", "900")
	set(ofGroupConfig, "g", "consumer.assignment.interval.ms", "70")
	if got, want := b.groupTimes("g"), (group.ConsumerTimes{Session: 900 * time.Millisecond, Heartbeat: 600 * time.Millisecond, Interval: 70 * time.Millisecond}); got != want {
		t.Errorf("%+v", got)
	}
	// The shorter session ends the silent member's time; the other group's goes on.
	beat("g", "one", one.MemberEpoch)
	b.eventually("the silent member is removed", func() bool {
		beat("h", "other", other.MemberEpoch)
		return len(b.describedNext("g").Members) == 0
	})
	if n := len(b.describedNext("h").Members); n != 1 {
		t.Errorf("the other group has %d members", n)
	}
}

// Claim: a logger's level decides what it lets through, from the next line on; the
// others follow the root.
// Method: change levels through the API, look at what is written.
func TestLoggerLevels(t *testing.T) {
	b := startBroker(t) // logs at DEBUG
	c := dialAdmin(t, b.Broker, "")
	levels := func() (out []string) {
		for _, name := range loggerNames {
			out = append(out, textOf(byKeyName(describe(c, 4, ofLogger, "0"))[name].Value))
		}
		return out
	}
	expect := func(want ...string) {
		t.Helper()
		if got := levels(); !slices.Equal(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	}
	expect("DEBUG", "DEBUG", "DEBUG", "DEBUG", "DEBUG")
	mustAlter(c, ofLogger, "0", alteration{opSet, "millrace.broker", "ERROR"}, alteration{opSet, "millrace.engine", "TRACE"})
	expect("DEBUG", "ERROR", "DEBUG", "TRACE", "DEBUG")
	b.topic("silent", 1)
	mustAlter(c, ofLogger, "0", alteration{opDelete, "millrace.broker", ""}, alteration{opSet, "root", "INFO"})
	expect("INFO", "INFO", "INFO", "TRACE", "INFO")
	b.topic("told", 1)
	if n := b.log.count("topic=silent"); n != 0 {
		t.Errorf("%d lines at ERROR", n)
	}
	if n := b.log.count("topic=told"); n == 0 {
		t.Error("no line at INFO")
	}
	handler := b.levels.logger(logEngine).WithGroup("x").With("y", 1).Handler()
	if !handler.Enabled(t.Context(), slog.LevelDebug-4) || b.levels.logger(logCoord).With("y", 1).Enabled(t.Context(), slog.LevelDebug) {
		t.Error("what is derived from a logger has another level")
	}
}
