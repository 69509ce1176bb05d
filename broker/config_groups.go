package broker

import (
	"fmt"
	"strings"
	"time"

	"millrace/coord/group"
	"millrace/wire"
)

// groupTable is every setting of a group that Kafka 4.3 knows. Those of share and
// streams groups are kept, checked, and without effect.
var groupTable = []topicKey{
	ofGroup(number[int]("consumer.assignment.interval.ms", TypeInt, "1000", 0, maxInt32, "ms", "next-generation protocol: least time between two assignments of the group", nil)),
	ofGroup(number[int]("consumer.heartbeat.interval.ms", TypeInt, "5000", 1, maxInt32, "ms", "next-generation protocol: how often members are told to send a heartbeat", nil)),
	ofGroup(number[int]("consumer.session.timeout.ms", TypeInt, "45000", 1, maxInt32, "ms", "next-generation protocol: a member that is silent for this long is removed", nil)),
	unbuiltGroup(number[int]("share.assignment.interval.ms", TypeInt, "1000", 0, maxInt32, "ms", "", nil)),
	unbuiltGroup(parsed("share.auto.offset.reset", TypeString, "latest", "earliest, latest or by_duration:DURATION", "", checkShareReset)),
	unbuiltGroup(number[int]("share.delivery.count.limit", TypeInt, "5", 2, maxInt32, "count", "", nil)),
	unbuiltGroup(number[int]("share.heartbeat.interval.ms", TypeInt, "5000", 1, maxInt32, "ms", "", nil)),
	unbuiltGroup(choice("share.isolation.level", "read_uncommitted", "", nil, "read_committed", "read_uncommitted")),
	unbuiltGroup(number[int]("share.partition.max.record.locks", TypeInt, "2000", 100, maxInt32, "count", "", nil)),
	unbuiltGroup(number[int]("share.record.lock.duration.ms", TypeInt, "30000", 1000, maxInt32, "ms", "", nil)),
	unbuiltGroup(boolean("share.renew.acknowledge.enable", "true", "", nil)),
	unbuiltGroup(number[int]("share.session.timeout.ms", TypeInt, "45000", 1, maxInt32, "ms", "", nil)),
	unbuiltGroup(number[int]("streams.assignment.interval.ms", TypeInt, "1000", 0, maxInt32, "ms", "", nil)),
	unbuiltGroup(number[int]("streams.heartbeat.interval.ms", TypeInt, "5000", 1, maxInt32, "ms", "", nil)),
	unbuiltGroup(number[int]("streams.initial.rebalance.delay.ms", TypeInt, "3000", 0, maxInt32, "ms", "", nil)),
	unbuiltGroup(number[int]("streams.num.standby.replicas", TypeInt, "0", 0, maxInt32, "count", "", nil)),
	unbuiltGroup(number[int]("streams.session.timeout.ms", TypeInt, "45000", 1, maxInt32, "ms", "", nil)),
}

// ofGroup is a row of groupTable. Behind most keys stands a broker key of the same
// name, for all groups.
func ofGroup(k ConfigKey) topicKey {
	row := topicKey{ConfigKey: k, source: sourceGroup}
	if server := "group." + k.Name; LookupConfigKey(server) != nil {
		row.Server = []string{server}
	}
	return row
}

// unbuiltGroup is a row of a kind of group that is not built yet.
func unbuiltGroup(k ConfigKey) topicKey {
	kind, _, _ := strings.Cut(k.Name, ".")
	k.Text, k.Unsupported = kind+" groups are not built yet", true
	return ofGroup(k)
}

func checkShareReset(_ *Config, v string) error {
	if v == "earliest" || v == "latest" || strings.HasPrefix(v, "by_duration:P") {
		return nil
	}
	return fmt.Errorf("must be earliest, latest or by_duration: and an ISO 8601 duration, as by_duration:PT1H")
}

// groupBounds are the broker keys that bound what single groups may have.
var groupBounds = []struct{ key, least, most string }{
	{"consumer.session.timeout.ms", "group.consumer.min.session.timeout.ms", "group.consumer.max.session.timeout.ms"},
	{"consumer.heartbeat.interval.ms", "group.consumer.min.heartbeat.interval.ms", "group.consumer.max.heartbeat.interval.ms"},
	{"consumer.assignment.interval.ms", "group.consumer.min.assignment.interval.ms", "group.consumer.max.assignment.interval.ms"},
}

// groupBoundKeys are their rows.
var groupBoundKeys = func() (rows []ConfigKey) {
	for _, b := range []struct {
		key, least, most string
		low              int64
	}{
		{"session.timeout.ms", "45000", "60000", 1},
		{"heartbeat.interval.ms", "5000", "15000", 1},
		{"assignment.interval.ms", "0", "15000", 0},
	} {
		rows = append(rows,
			number[int]("group.consumer.min."+b.key, TypeInt, b.least, b.low, maxInt32, "ms", "least that a single group may have as consumer."+b.key, nil),
			number[int]("group.consumer.max."+b.key, TypeInt, b.most, b.low, maxInt32, "ms", "most that a single group may have as consumer."+b.key, nil))
	}
	return rows
}()

// bound reads a broker key that holds a whole number.
func (c *Config) bound(key string) int64 {
	v, _ := c.Get(key)
	return asInt(v)
}

// checkGroupBounds demands that the bounds leave something between them.
func (c *Config) checkGroupBounds() error {
	for _, b := range groupBounds {
		if least, most := c.bound(b.least), c.bound(b.most); least > most {
			return &ConfigError{b.most, fmt.Sprint(most), fmt.Sprintf("must be at least %s=%d", b.least, least)}
		}
	}
	return nil
}

// checkGroupConfig says what is wrong with the settings that a group is to have.
func (c *Config) checkGroupConfig(overrides map[string]string) (code int16, err error) {
	if code, err := checkNamed(groupTable, overrides, wire.ErrInvalidConfig); err != nil {
		return code, err
	}
	for _, b := range groupBounds {
		v, set := overrides[b.key]
		if !set {
			continue
		}
		switch n, least, most := asInt(v), c.bound(b.least), c.bound(b.most); {
		case n < least:
			return wire.ErrInvalidConfig, fmt.Errorf("%s=%d must be greater than or equal to %s=%d", b.key, n, b.least, least)
		case n > most:
			return wire.ErrInvalidConfig, fmt.Errorf("%s=%d must be less than or equal to %s=%d", b.key, n, b.most, most)
		}
	}
	value := func(key string) int64 { return asInt(rowOf(groupTable, key).value(c, overrides).Value) }
	for _, of := range []string{"consumer", "share", "streams"} {
		session, heartbeat := of+".session.timeout.ms", of+".heartbeat.interval.ms"
		_, a := overrides[session]
		_, b := overrides[heartbeat]
		if (a || b) && value(session) <= value(heartbeat) {
			return wire.ErrInvalidConfig, fmt.Errorf("%s=%d must be greater than %s=%d", session, value(session), heartbeat, value(heartbeat))
		}
	}
	return wire.ErrNone, nil
}

// groupTimes are the times that hold for a group now. What was set when the bounds
// were others is taken into them.
func (b *Broker) groupTimes(id string) group.ConsumerTimes {
	c := b.configNow()
	times := group.ConsumerTimes{Session: c.Groups.Consumer.Session, Heartbeat: c.Groups.Consumer.Heartbeat, Interval: c.Groups.Consumer.Interval}
	overrides := b.coord.Image().GroupConfigs()[id]
	if len(overrides) == 0 {
		return times
	}
	for i, field := range []*time.Duration{&times.Session, &times.Heartbeat, &times.Interval} {
		bounds := groupBounds[i]
		if v, set := overrides[bounds.key]; set {
			*field = time.Duration(min(max(asInt(v), c.bound(bounds.least)), c.bound(bounds.most))) * time.Millisecond
		}
	}
	return times
}
