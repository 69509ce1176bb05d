package broker

// TopicKey is a topic setting, as documentation shows it.
type TopicKey struct {
	ConfigKey
	Server []string // broker keys that give the default, the first that is set wins
	Gone   bool     // removed in Kafka 4.0: accepted, without effect
	Unread bool     // checked and told, but nothing acts on it yet
}

// TopicKeys returns every topic setting, in the table's order.
func TopicKeys() []TopicKey {
	out := make([]TopicKey, 0, len(topicTable))
	for i := range topicTable {
		k := &topicTable[i]
		out = append(out, TopicKey{ConfigKey: k.ConfigKey, Server: k.Server, Gone: k.Gone, Unread: k.apply == nil})
	}
	return out
}

// Dynamic says whether a broker key can be changed while the broker runs.
func Dynamic(key string) bool { return scopeOf(key) != dynamicNever }
