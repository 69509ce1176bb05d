package broker

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// dynamicScope says where a broker key may be set while the broker runs.
type dynamicScope int8

const (
	dynamicNever   dynamicScope = iota
	dynamicBroker               // for one broker
	dynamicCluster              // for all brokers, and for one
)

// dynamicKeys are the keys that Kafka lets change while the broker runs, beside
// those behind topic settings (serverKeys). Source: Kafka 4.3's DynamicBrokerConfig. Of its keys those of listeners and TLS are not here: they
// need a restart.
var dynamicKeys = map[string]dynamicScope{
	"background.threads":                             dynamicCluster,
	"follower.fetch.last.tiered.offset.enable":       dynamicCluster,
	"follower.replication.throttled.rate":            dynamicCluster,
	"group.consumer.assignment.interval.ms":          dynamicCluster,
	"leader.replication.throttled.rate":              dynamicCluster,
	"log.cleaner.backoff.ms":                         dynamicCluster,
	"log.cleaner.dedupe.buffer.size":                 dynamicCluster,
	"log.cleaner.io.buffer.load.factor":              dynamicCluster,
	"log.cleaner.io.buffer.size":                     dynamicCluster,
	"log.cleaner.io.max.bytes.per.second":            dynamicCluster,
	"log.cleaner.threads":                            dynamicCluster,
	"log.local.retention.bytes":                      dynamicCluster,
	"log.local.retention.ms":                         dynamicCluster,
	"max.connection.creation.rate":                   dynamicCluster,
	"max.connections":                                dynamicCluster,
	"max.connections.per.ip":                         dynamicCluster,
	"max.connections.per.ip.overrides":               dynamicCluster,
	"metric.reporters":                               dynamicCluster,
	"millrace.scrub.bytes.per.second":                dynamicCluster,
	"num.io.threads":                                 dynamicCluster,
	"num.network.threads":                            dynamicCluster,
	"num.recovery.threads.per.data.dir":              dynamicCluster,
	"num.replica.fetchers":                           dynamicCluster,
	"producer.id.expiration.ms":                      dynamicCluster,
	"replica.alter.log.dirs.io.max.bytes.per.second": dynamicCluster,
	"transaction.partition.verification.enable":      dynamicCluster,
}

// threadKeys are sizes of thread pools: Kafka lets them at most halve or double
// at once.
var threadKeys = []string{
	"background.threads", "log.cleaner.threads", "num.io.threads", "num.network.threads",
	"num.recovery.threads.per.data.dir", "num.replica.fetchers",
}

// scopeOf is where a broker key may be set while the broker runs.
func scopeOf(key string) dynamicScope {
	if scope, ok := dynamicKeys[key]; ok {
		return scope
	}
	if serverKeys[key] {
		return dynamicCluster
	}
	return dynamicNever
}

// serverKeys are the broker keys behind topic settings that can be changed while the
// broker runs: of several that name one setting in different units only the first, as
// a running Kafka 4.3.1 has it.
var serverKeys = func() map[string]bool {
	keys := map[string]bool{}
	for i := range topicTable {
		if chain := topicTable[i].Server; len(chain) > 0 {
			keys[chain[0]] = true
		}
	}
	return keys
}()

func checkScope(key string, wanted dynamicScope) error {
	switch scope := scopeOf(key); {
	case scope == dynamicNever:
		return fmt.Errorf("broker config %s cannot be changed while the broker runs; set it in server.properties and restart", key)
	case scope < wanted:
		return fmt.Errorf("broker config %s cannot be set for all brokers; name the broker", key)
	}
	return nil
}

// checkLayer says what is wrong with the settings that a broker (dynamicBroker), or
// all of them (dynamicCluster), are to have while they run in place of before.
func (b *Broker) checkLayer(before, layer map[string]string, scope dynamicScope) error {
	now := b.live.Load()
	layers := now.asked
	if scope == dynamicBroker {
		layers.own = layer
	} else {
		layers.all = layer
	}
	trial := b.config
	for _, key := range slices.Sorted(maps.Keys(layer)) {
		if err := trial.setDynamic(key, layer[key], scope); err != nil {
			return err
		}
	}
	// What is wrong in the other layer is left out and hinders nothing here.
	fresh, _ := b.config.withLayers(layers)
	for _, key := range threadKeys {
		if value, set := layer[key]; set && value != before[key] {
			running, _ := now.Get(key)
			if err := checkThreads(key, running, value); err != nil {
				return err
			}
		}
	}
	_, err := fresh.topicSettings(nil)
	return err
}

func checkThreads(key, before, after string) error {
	from, err := strconv.ParseInt(before, 10, 32)
	if err != nil {
		return nil
	}
	switch to := asInt(after); {
	case to < 1:
		return fmt.Errorf("broker config %s is %d, it must be at least 1", key, to)
	case to > 2*from:
		return fmt.Errorf("broker config %s is %d now, so it can be at most doubled to %d at once, not set to %d", key, from, 2*from, to)
	case to < from/2:
		return fmt.Errorf("broker config %s is %d now, so it can be at most halved to %d at once, not set to %d", key, from, from/2, to)
	}
	return nil
}

var (
	errNotNumber = errors.New("must be a whole number")
	errNotReal   = errors.New("must be a number")
	errNotBool   = errors.New("must be true or false")
)

// check says what is wrong with a value, and sets the field behind the key. Of a
// key that nothing here acts on only the type is known.
func (k *ConfigKey) check(c *Config, value string) error {
	if k.set != nil {
		return k.set(c, value)
	}
	bits := 64
	switch k.Type {
	case TypeBool:
		if !strings.EqualFold(value, "true") && !strings.EqualFold(value, "false") {
			return errNotBool
		}
	case TypeDouble:
		if _, err := strconv.ParseFloat(value, 64); err != nil {
			return errNotReal
		}
	case TypeShort, TypeInt:
		bits = 32
		if k.Type == TypeShort {
			bits = 16
		}
		fallthrough
	case TypeLong:
		if _, err := strconv.ParseInt(value, 10, bits); err != nil {
			return fmt.Errorf("%w of %d bits", errNotNumber, bits)
		}
	}
	return nil
}

// chainOf lists the broker keys that name the same setting as this one, from
// strongest to weakest: itself, save where units have keys of their own.
func chainOf(key string) []string {
	for i := range topicTable {
		if chain := topicTable[i].Server; len(chain) > 1 && slices.Contains(chain, key) {
			return chain
		}
	}
	return []string{key}
}
