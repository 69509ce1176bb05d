package broker

import (
	"fmt"
	"maps"
	"slices"

	"millrace/wire"
)

// TopicKey is a topic setting, as documentation shows it.
type TopicKey struct {
	ConfigKey
	Server []string // broker keys that give the default, the first that is set wins
	Gone   bool     // removed in Kafka 4.0: accepted, without effect
	Unread bool     // checked and told, but nothing acts on it yet
}

// TopicKeys returns every topic setting, in the table's order.
func TopicKeys() []TopicKey { return documented(topicTable) }

// CheckTopicConfig refuses settings that no topic may have.
func CheckTopicConfig(settings map[string]string) error {
	_, err := checkNamed(topicTable, settings, wire.ErrInvalidConfig)
	return err
}

// CheckBrokerConfig refuses settings that one broker, or all of them, cannot be given while they run.
func CheckBrokerConfig(settings map[string]string, all bool) error {
	scope, c := dynamicBroker, DefaultConfig()
	if all {
		scope = dynamicCluster
	}
	for _, key := range slices.Sorted(maps.Keys(settings)) {
		if LookupConfigKey(key) == nil {
			return fmt.Errorf("unknown broker config %q", key)
		}
		if err := c.setDynamic(key, settings[key], scope); err != nil {
			return err
		}
	}
	return nil
}

// GroupKeys returns every setting of a group that has an effect.
func GroupKeys() []TopicKey {
	return slices.DeleteFunc(documented(groupTable), func(k TopicKey) bool { return k.Unsupported })
}

// ClientMetricsKeys returns every setting of a subscription to clients' metrics.
func ClientMetricsKeys() []TopicKey { return documented(clientMetricsTable) }

func documented(table []topicKey) []TopicKey {
	out := make([]TopicKey, 0, len(table))
	for i := range table {
		k := &table[i]
		out = append(out, TopicKey{ConfigKey: k.ConfigKey, Server: k.Server, Gone: k.Gone, Unread: k.apply == nil})
	}
	return out
}

// Dynamic says whether a broker key can be changed while the broker runs.
func Dynamic(key string) bool { return scopeOf(key) != dynamicNever }
