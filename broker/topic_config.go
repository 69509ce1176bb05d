package broker

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"millrace/engine"
	"millrace/replica"
)

// topicKey is one row of the table of topic settings.
type topicKey struct {
	ConfigKey
	Server []string // broker keys that give the default, first found wins
	Gone   bool     // removed in Kafka 4.0: accepted, without effect, told only if set

	apply  func(*topicSettings, string) // nil: checked, but nothing reads it (yet)
	source int8                         // of an override; 0: sourceTopic (see config_named.go for the others)
}

// override is what was set for just this topic, or whatever the table is of.
func (k *topicKey) override(v string) configValue {
	if k.source != 0 {
		return configValue{k.Name, v, k.source}
	}
	return configValue{k.Name, v, sourceTopic}
}

// topicSettings is what a topic's settings mean to the rooms below.
type topicSettings struct {
	Log    engine.Config
	Policy replica.Policy

	gzip, lz4, zstd int // compression levels; the codec's own goes into Policy
}

// Sources of a value, as DescribeConfigs numbers them.
const (
	sourceTopic   int8 = 1
	sourceBroker  int8 = 2 // set for this broker while it runs
	sourceCluster int8 = 3 // set for all brokers while they run
	sourceStatic  int8 = 4
	sourceDefault int8 = 5
	sourceLogger  int8 = 6

	sourceClientMetrics int8 = 7
	sourceGroup         int8 = 8
)

// configValue is a value and where it was said.
type configValue struct {
	Name   string // the key under which it was said
	Value  string
	Source int8
}

// lookupTopicKey finds a row; nil if there is none.
func lookupTopicKey(name string) *topicKey {
	if i, ok := topicIndex[name]; ok {
		return &topicTable[i]
	}
	return nil
}

var topicIndex = func() map[string]int {
	index := make(map[string]int, len(topicTable))
	for i := range topicTable {
		index[topicTable[i].Name] = i
	}
	return index
}()

// synonyms lists where the key's value is said, the winner first: the topic's
// own, then the broker keys behind it in their layers, then their defaults. As in
// Kafka's answer a default is left out if it stands under a weaker key alone, in
// another unit.
func (k *topicKey) synonyms(c *Config, overrides map[string]string) []configValue {
	var out []configValue
	if v, ok := overrides[k.Name]; ok {
		out = append(out, k.override(v))
	}
	if k.source == sourceGroup && len(k.Server) == 0 { // as Kafka's answer has it
		return append(out, configValue{k.Name, k.Default, sourceDefault})
	}
	said := c.said(k.Server...)
	if len(said) > 0 && (said[0].Source != sourceDefault || said[0].Name == k.Server[0]) {
		out = append(out, said...)
	}
	return out
}

// value is the winner, in the topic key's unit. It is what topicSettings reads for
// each of thousands of topics, so it makes no list.
func (k *topicKey) value(c *Config, overrides map[string]string) configValue {
	if v, ok := overrides[k.Name]; ok {
		return k.override(v)
	}
	if v, ok := c.given(k.Server...); ok {
		v.Value = inUnitOf(v)
		return v
	}
	name := k.Name
	if len(k.Server) > 0 {
		name = k.Server[0]
	}
	return configValue{name, k.Default, sourceDefault}
}

// inUnitOf turns hours and minutes of broker keys into the milliseconds of the
// topic's. -1 means the same in each.
func inUnitOf(v configValue) string {
	factor := int64(1)
	switch {
	case strings.HasSuffix(v.Name, ".hours"):
		factor = time.Hour.Milliseconds()
	case strings.HasSuffix(v.Name, ".minutes"):
		factor = time.Minute.Milliseconds()
	}
	n, err := strconv.ParseInt(v.Value, 10, 64)
	if factor == 1 || err != nil || n < 0 {
		return v.Value
	}
	return strconv.FormatInt(n*factor, 10)
}

// check returns what is wrong with a value; the error names key, value, range.
func (k *topicKey) check(value string) error {
	if err := k.set(new(Config), value); err != nil {
		return fmt.Errorf("invalid value %q for topic config %s: %w", value, k.Name, err)
	}
	return nil
}

// checkTopicConfig checks the overrides of a topic that is to be made: names,
// values, and what they mean together with the broker's defaults.
func (c *Config) checkTopicConfig(overrides map[string]string) error {
	for _, name := range slices.Sorted(maps.Keys(overrides)) {
		k := lookupTopicKey(name)
		if k == nil {
			return fmt.Errorf("unknown topic config name %q", name)
		}
		if err := k.check(overrides[name]); err != nil {
			return err
		}
	}
	_, err := c.topicSettings(overrides)
	return err
}

// topicSettings resolves all keys: override, broker key, default. Overrides
// that are unknown or wrong (written by another version) are errors; the
// settings returned with an error have defaults in their places.
func (c *Config) topicSettings(overrides map[string]string) (topicSettings, error) {
	s := topicSettings{Log: engine.DefaultConfig()}
	var wrong error
	for i := range topicTable {
		k := &topicTable[i]
		if k.apply == nil {
			continue
		}
		v := k.value(c, overrides)
		if err := k.check(v.Value); err != nil {
			if wrong == nil {
				wrong = err
			}
			v.Value = k.Default
		}
		k.apply(&s, v.Value)
	}
	s.finish()
	if v, ok := c.Get("producer.id.expiration.ms"); ok {
		s.Log.ProducerExpiry = time.Duration(asInt(v)) * time.Millisecond
	}
	if wrong != nil {
		return s, wrong
	}
	if low, high := c.lag("min.compaction.lag.ms", overrides), c.lag("max.compaction.lag.ms", overrides); low > high {
		return s, fmt.Errorf("min.compaction.lag.ms=%d must not be above max.compaction.lag.ms=%d", low, high)
	}
	return s, s.Log.Validate()
}

func (c *Config) lag(name string, overrides map[string]string) int64 {
	return asInt(lookupTopicKey(name).value(c, overrides).Value)
}

// asInt reads a number that check has let pass.
func asInt(v string) int64 {
	n, _ := strconv.ParseInt(v, 10, 64)
	return n
}

// asTime reads milliseconds that check has let pass; negative stays negative.
func asTime(v string) time.Duration { return durationOf(asInt(v), time.Millisecond) }

// asBound is asTime where the greatest durations mean that there is no bound.
func asBound(v string) time.Duration {
	if d := asTime(v); d != maxInt64 {
		return d
	}
	return -1
}
